/*
 * Leaving a function early without a leak. A variable marked TDMI_AT_END is released when its scope
 * ends, however it ends, so a function needs neither a label nor a list of releases:
 *
 *     TDMI_AT_END(tdmi_text_release) tdmi_text path = {0};
 *     TDMI_AT_END(tdmi_free_at) float *values = NULL;
 *     TDMI_TRY(TDMI_NEW(values, n, err));
 *     TDMI_TRY(read_values(name, values, err));
 *     *result = tdmi_take(&values);            the caller owns them now
 *     return TDM_OK;
 *
 * The release function must accept a zeroed variable, and it runs for every variable whose
 * declaration was reached, last one first. GCC and Clang have the attribute in every language mode.
 */
#pragma once

#include "base/memory.h"
#include "tandem/error.h"
#include <string.h>

#define TDMI_AT_END(release) __attribute__((cleanup(release)))

/* Define release_at for variables that are pointers: what `release` takes is then the pointer. */
#define TDMI_POINTER_RELEASE(type, release)        \
    static inline void release##_at(type **object) \
    {                                              \
        release(*object);                          \
    }

/* Return from the calling function when expr fails. TDM_TRY also adds a sentence. */
#define TDMI_TRY(expr)                       \
    do {                                     \
        tdm_status tdmi_try_status = (expr); \
        if (tdmi_try_status != TDM_OK)       \
            return tdmi_try_status;          \
    } while (0)

/* tdmi_free for a variable that is any pointer. */
static inline void tdmi_free_at(void *pointer)
{
    void *block;
    memcpy(&block, pointer, sizeof block);
    tdmi_free(block);
}

/* close for a variable that is a descriptor, or below 0. */
void tdmi_close_at(const int *descriptor);

/* The value of a pointer variable, which is NULL afterwards: its scope no longer releases it. */
static inline void *tdmi_take(void *pointer)
{
    void *block, *none = NULL;
    memcpy(&block, pointer, sizeof block);
    memcpy(pointer, &none, sizeof none);
    return block;
}

/* Zeroed memory for `count` items of the type that the lvalue `pointer` points to: TDM_OK, or the
 * error "no memory for N x M bytes". */
#define TDMI_NEW(pointer, count, err) \
    tdmi_new(&(pointer), (size_t)(count), sizeof *(pointer), __FILE__, __LINE__, (err))
tdm_status tdmi_new(void *pointer, size_t count, size_t item_bytes, const char *file, int line,
                    tdm_error *err);

/* Return from the calling function with "no memory" unless the pointer, or all of those that an
 * expression names, is there: for memory of an arena. */
#define TDMI_CHECK_MEMORY(is_there, err)                     \
    do {                                                     \
        if (!(is_there))                                     \
            return TDM_FAIL(err, TDM_E_MEMORY, "no memory"); \
    } while (0)

/* TDMI_GROW with an error of the same form. */
#define TDMI_MAKE_ROOM(array, capacity, n, err) \
    tdmi_make_room(&(array), &(capacity), (int64_t)(n), sizeof *(array), __FILE__, __LINE__, (err))
tdm_status tdmi_make_room(void *array, int64_t *capacity, int64_t n, size_t item_bytes,
                          const char *file, int line, tdm_error *err);
