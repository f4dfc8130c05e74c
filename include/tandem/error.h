/*
 * Errors are values. A function that can fail returns tdm_status (TDM_OK is 0) and takes a
 * tdm_error last. The error is plain caller-owned memory: a code and a chain of at most
 * TDM_ERROR_FRAMES sentences, innermost first. Reporting allocates nothing and never fails.
 *
 *     tdm_error err = {0};
 *     if (tdm_train(&options, sink, &result, &err) != TDM_OK)
 *         fputs(tdm_status_text(err.code), stderr);
 *
 * A sentence says what was attempted, on which object, what was found and what would be accepted.
 */
#ifndef TANDEM_ERROR_H
#define TANDEM_ERROR_H

#include "tandem/api.h"
#include <stdarg.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tdm_status {
    TDM_OK = 0,
#define X(name, exit_status, text, advice) TDM_E_##name,
#include "tandem/error.def"
#undef X
} tdm_status;

#define TDM_ERROR_FRAMES 8
/* The longest sentence. All sentences of an error share so many bytes: where they do not fit, the
 * longest ones lose their middle to a "…". */
#define TDM_ERROR_TEXT_BYTES 880

struct tdm_error_frame {
    const char *file; /* static storage, from __FILE__ */
    int line;
    unsigned at; /* of the sentence in text; see tdm_error_sentence */
};

typedef struct tdm_error {
    tdm_status code;
    int rank; /* of the process that failed; 0 when there is one */
    int n_frames;
    struct tdm_error_frame frames[TDM_ERROR_FRAMES]; /* [0] is the innermost cause */
    char text[TDM_ERROR_TEXT_BYTES];
} tdm_error;

/* Forget the error. err may be NULL in every function here: only the status is passed on. */
TDM_API void tdm_error_clear(tdm_error *err);

/* Start a chain (what was there is forgotten) and return code. Use TDM_FAIL. */
TDM_API tdm_status tdm_error_start(tdm_error *err, tdm_status code, const char *file, int line,
                                   const char *format, ...) TDM_PRINTF(5, 6);

/* Add the caller's view when status is not TDM_OK; return status. Use TDM_WRAP and TDM_TRY.
 * A full chain keeps its innermost frames and replaces the outermost. */
TDM_API tdm_status tdm_error_add(tdm_error *err, tdm_status status, const char *file, int line,
                                 const char *format, ...) TDM_PRINTF(5, 6);

/* The sentence of a frame, quoted as %s is by tdm_log; "" where there is no such frame. */
TDM_API const char *tdm_error_sentence(const tdm_error *err, int frame);

/* "bad input", "out of memory", …; static storage. */
TDM_API const char *tdm_status_text(tdm_status status);
/* "INPUT", "MEMORY", …; static storage. */
TDM_API const char *tdm_status_name(tdm_status status);
/* Advice on trying again; static storage. */
TDM_API const char *tdm_status_advice(tdm_status status);
/* 0 done, 1 failed, 2 wrong usage, 3 bad input, 4 environment, 5 lost peer. */
TDM_API int tdm_status_exit(tdm_status status);

/* The outermost sentence, then its causes indented below, into buffer; returns the length that
 * the whole text needs, like snprintf. */
TDM_API size_t tdm_error_format(const tdm_error *err, char *buffer, size_t buffer_bytes);
/* The same in one line, for a place that has one: outermost first, colons between. */
TDM_API size_t tdm_error_line(const tdm_error *err, char *buffer, size_t buffer_bytes);

#define TDM_FAIL(err, code, ...) tdm_error_start((err), (code), __FILE__, __LINE__, __VA_ARGS__)

/* An expression: the status of expr, with the caller's sentence added when it failed. */
#define TDM_WRAP(err, expr, ...) tdm_error_add((err), (expr), __FILE__, __LINE__, __VA_ARGS__)

/* Return from the calling function when expr fails; where something must be released first,
 * write: status = TDM_WRAP(err, expr, …); if (status != TDM_OK) goto out; */
#define TDM_TRY(expr, err, ...)                                                           \
    do {                                                                                  \
        tdm_status tdm_try_status = (expr);                                               \
        if (tdm_try_status != TDM_OK)                                                     \
            return tdm_error_add((err), tdm_try_status, __FILE__, __LINE__, __VA_ARGS__); \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
