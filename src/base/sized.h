/*
 * Structs of programs that were compiled with an older or newer header than the library: they begin
 * with struct_bytes, their size (tandem/api.h). A public function works on a struct of its own,
 * into which options are copied as far as both know them, and from which results are copied back.
 */
#pragma once

#include "tandem/error.h"

/* Write the defaults, which usual holds, as far as the program's struct goes. */
void tdmi_options_init(void *options, size_t struct_bytes, const void *usual, size_t usual_bytes);
/* Copy the program's options (NULL: none) over the defaults in own. TDM_E_USAGE: a member that this
 * library lacks is set, or struct_bytes is no size. */
tdm_status tdmi_options_copy(const char *name, const void *options, void *own, size_t own_bytes,
                             tdm_error *err) TDM_MUST_USE;

/* Let options, a parameter, point to the library's own copy; usual initializes it. */
#define TDMI_OPTIONS(type, options, usual, err)                                                 \
    struct type options##_own = usual;                                                          \
    if (tdmi_options_copy(#type, options, &options##_own, sizeof options##_own, err) != TDM_OK) \
        return TDM_E_USAGE;                                                                     \
    options = &options##_own

struct tdmi_result {
    void *result; /* the program's; NULL: none */
    const void *own;
    size_t own_bytes;
};

/* TDM_E_USAGE: struct_bytes is no size. */
tdm_status tdmi_result_check(const char *name, const void *result, tdm_error *err) TDM_MUST_USE;
/* Copy own into the program's struct, all of which is written. */
void tdmi_result_copy(const struct tdmi_result *given);

/* Zero all members but the size. */
void tdmi_result_clear(void *result);

/* Let result, a parameter, point to the library's own, which is copied back when the function
 * returns; failed is the statement for a struct without a size. */
#define TDMI_RESULT_OR(type, result, err, failed)                                                  \
    if (tdmi_result_check(#type, result, err) != TDM_OK)                                           \
        failed;                                                                                    \
    struct type result##_own = {.struct_bytes = sizeof result##_own};                              \
    const struct tdmi_result result##_given                                                        \
        __attribute__((cleanup(tdmi_result_copy))) = {result, &result##_own, sizeof result##_own}; \
    (void)result##_given;                                                                          \
    result = &result##_own
#define TDMI_RESULT(type, result, err) TDMI_RESULT_OR(type, result, err, return TDM_E_USAGE)
