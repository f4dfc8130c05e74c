/*
 * Does this build compute rightly on this machine? Every op against the plain C law and against
 * central differences, determinism, and a small golden training run.
 */
#ifndef TANDEM_SELFTEST_H
#define TANDEM_SELFTEST_H

#include "tandem/error.h"
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* detail is NULL when it passed; otherwise what differed by how much. */
typedef struct tdm_selftest_sink {
    void *self;
    void (*result)(void *self, const char *group, const char *name, bool has_passed,
                   const char *detail);
    /* Optional: what computes an op's cases where there is something to choose from, once a case,
     * type and direction: "conv", "weight gradient", "cuDNN engine 12". */
    void (*computed)(void *self, const char *op, const char *direction, const char *by);
} tdm_selftest_sink;

struct tdm_selftest_result {
    int passed, failed;
};

/* device as in tdm_train_options; TDM_E_ABSENT when it is not there. part: "all", or "ops", the
 * cases of the operations alone, for whoever watches their kernels. Failed cases are counted in the
 * result and are no error. */
TDM_API tdm_status tdm_selftest(const char *device, const char *part, tdm_selftest_sink sink,
                                struct tdm_selftest_result *result, tdm_error *err) TDM_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
