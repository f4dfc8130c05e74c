/* Checks of single ops. */
#include "base/scope.h"
#include "graph/op.h"
#include "train/selftest/checks.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool fail(struct tdmi_check *check, const char *tensor, int64_t at, double got,
                 double expected, double limit)
{
    check->has_passed = false;
    snprintf(check->detail, sizeof check->detail, "%s[%lld] is %.9g, expected %.9g (within %.2g)",
             tensor, (long long)at, got, expected, limit);
    return false;
}

/* How far a value may be off, of the largest of its tensor; and how far each term of a sum. */
struct tolerance {
    double of_largest, of_terms;
};

static struct tolerance tolerance_of(enum tdmi_dtype storage)
{
    if (storage == TDMI_DTYPE_BF16)
        return (struct tolerance){TDMI_TOLERANCE_BF16, 0x1p-8};
    if (storage == TDMI_DTYPE_F16)
        return (struct tolerance){TDMI_TOLERANCE_F16, 0x1p-11};
    return (struct tolerance){TDMI_TOLERANCE_F32, (double)FLT_EPSILON};
}

/* sizes: of sums of products, how large the terms are that each value adds up; else NULL. A sum
 * that cancels to almost nothing keeps the rounding of its terms, whatever the order of adding. */
static bool compare(const struct tdmi_op_values *got, const struct tdmi_op_values *expected,
                    const struct tdmi_op_values *sizes, struct tdmi_check *check)
{
    const struct tolerance tolerance = tolerance_of(got->storage);
    for (int t = TDMI_T_Y; t < TDMI_T_TENSORS; t++) {
        double largest = 0.0;
        for (int64_t i = 0; expected->of[t] && i < expected->n[t]; i++)
            largest = fmax(largest, fabs((double)expected->of[t][i]));
        double usual = tolerance.of_largest * (largest > 0.0 ? largest : 1.0);
        for (int64_t i = 0; expected->of[t] && i < expected->n[t]; i++) {
            double a = (double)got->of[t][i], b = (double)expected->of[t][i];
            double rounding = sizes ? tolerance.of_terms * (double)sizes->of[t][i] : 0.0;
            double limit = fmax(usual, rounding);
            if (!(fabs(a - b) <= limit))
                return fail(check, tdmi_op_tensor_name((enum tdmi_op_tensor)t), i, a, b, limit);
        }
    }
    return true;
}

static bool is_sum_of_products(const struct tdmi_case *it)
{
    return it->kind == TDMI_OP_CONV || it->kind == TDMI_OP_DENSE;
}

/* Make every input positive: the output is then the sum of the sizes of all terms. */
static void drop_signs(struct tdmi_op_values *values)
{
    static const enum tdmi_op_tensor inputs[] = {TDMI_T_X, TDMI_T_PARAM0, TDMI_T_PARAM1};
    for (size_t k = 0; k < sizeof inputs / sizeof *inputs; k++)
        for (int64_t i = 0; values->of[inputs[k]] && i < values->n[inputs[k]]; i++)
            values->of[inputs[k]][i] = fabsf(values->of[inputs[k]][i]);
    for (int64_t i = 0; i < values->n_dy; i++)
        values->dy[i] = fabsf(values->dy[i]);
}

static tdm_status match_once(const struct tdmi_backend *backend, tdmi_device *device,
                             const struct tdmi_case *it, bool is_training, enum tdmi_dtype storage,
                             struct tdmi_check *check, tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    struct tdmi_op_values got, expected, sizes;
    struct tdmi_op_values *const all[] = {&got, &expected, &sizes};
    for (int k = 0; k < 3; k++) {
        TDMI_TRY(tdmi_op_values_make(it, is_training, &arena, all[k], err));
        if (storage != TDMI_DTYPE_F32)
            TDMI_TRY(tdmi_op_values_round(all[k], storage, &arena, err));
    }
    got.storage = storage;
    drop_signs(&sizes);
    TDMI_TRY(tdmi_op_run(backend, device, it, is_training, &got, err));
    /* The reference computes on the host and needs no device. */
    TDMI_TRY(tdmi_op_run(&tdmi_backend_ref, NULL, it, is_training, &expected, err));
    TDMI_TRY(tdmi_op_run(&tdmi_backend_ref, NULL, it, is_training, &sizes, err));
    if (!compare(&got, &expected, is_sum_of_products(it) ? &sizes : NULL, check))
        return TDM_OK;
    for (int i = 0; tdmi_op_of(it->kind)->is_output && i < it->n; i++)
        if (got.predicted[i] != expected.predicted[i])
            fail(check, "guess", i, got.predicted[i], expected.predicted[i], 0.0);
    return TDM_OK;
}

tdm_status tdmi_check_match_stored(const struct tdmi_backend *backend, tdmi_device *device,
                                   const struct tdmi_case *it, enum tdmi_dtype storage,
                                   struct tdmi_check *check, tdm_error *err)
{
    *check = (struct tdmi_check){.has_passed = true};
    for (int training = 0; training < 2 && check->has_passed; training++)
        TDM_TRY(match_once(backend, device, it, training, storage, check, err), err,
                "check 'match'");
    return TDM_OK;
}

tdm_status tdmi_check_match(const struct tdmi_backend *backend, tdmi_device *device,
                            const struct tdmi_case *it, struct tdmi_check *check, tdm_error *err)
{
    return tdmi_check_match_stored(backend, device, it, TDMI_DTYPE_F32, check, err);
}

/* ---- gradients -------------------------------------------------------------------------- */

/* The number whose gradient backward returns: the loss of output ops, else y weighted with dy. */
static double objective(const struct tdmi_case *it, const struct tdmi_op_values *values)
{
    double sum = 0.0;
    if (tdmi_op_of(it->kind)->is_output) {
        for (int i = 0; i < it->n; i++)
            sum += (double)values->of[TDMI_T_LOSS][i];
    } else {
        for (int64_t i = 0; i < values->n_dy; i++)
            sum += (double)values->of[TDMI_T_Y][i] * (double)values->dy[i];
    }
    return sum;
}

/* A step small enough for curvature, large enough for f32: the values are about 0.1 to 1. */
static float step_of(enum tdmi_op_kind kind)
{
    return kind == TDMI_OP_BATCH_NORM ? 1.0f / 256 : 1.0f / 64;
}

static tdm_status numeric(const struct tdmi_backend *backend, tdmi_device *device,
                          const struct tdmi_case *it, struct tdmi_op_values *values, float *value,
                          double *slope, tdm_error *err)
{
    const float kept = *value, step = step_of(it->kind);
    *value = kept + step;
    TDMI_TRY(tdmi_op_run(backend, device, it, true, values, err));
    const double above = objective(it, values);
    *value = kept - step;
    TDMI_TRY(tdmi_op_run(backend, device, it, true, values, err));
    *value = kept;
    *slope = (above - objective(it, values)) / (2.0 * (double)step);
    return TDM_OK;
}

/* At most this many values of a tensor are moved, spread evenly. */
enum { most_probes = 40 };

static tdm_status check_tensor(const struct tdmi_backend *backend, tdmi_device *device,
                               const struct tdmi_case *it, struct tdmi_op_values *values,
                               enum tdmi_op_tensor of, const float *gradient,
                               struct tdmi_check *check, tdm_error *err)
{
    int64_t n = values->n[of], stride = n > most_probes ? n / most_probes : 1;
    double largest = 0.0;
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, fabs((double)gradient[i]));
    double limit = TDMI_TOLERANCE_GRADIENT * (largest > 0.1 ? largest : 0.1);
    for (int64_t i = 0; i < n && check->has_passed; i += stride) {
        double slope;
        TDM_TRY(numeric(backend, device, it, values, &values->of[of][i], &slope, err), err,
                "check 'gradient'");
        if (!(fabs(slope - (double)gradient[i]) <= limit))
            fail(check, tdmi_op_tensor_name(of), i, (double)gradient[i], slope, limit);
    }
    return TDM_OK;
}

tdm_status tdmi_check_gradient(const struct tdmi_backend *backend, tdmi_device *device,
                               const struct tdmi_case *it, struct tdmi_check *check, tdm_error *err)
{
    static const struct {
        enum tdmi_op_tensor of, gradient;
    } pairs[] = {{TDMI_T_X, TDMI_T_DX},
                 {TDMI_T_SECOND_X, TDMI_T_SECOND_DX},
                 {TDMI_T_PARAM0, TDMI_T_DPARAM0},
                 {TDMI_T_PARAM1, TDMI_T_DPARAM1}};
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    struct tdmi_op_values values, analytic;
    *check = (struct tdmi_check){.has_passed = true};
    TDM_TRY(tdmi_op_values_make(it, true, &arena, &values, err), err, "check 'gradient'");
    TDM_TRY(tdmi_op_values_make(it, true, &arena, &analytic, err), err, "check 'gradient'");
    TDM_TRY(tdmi_op_run(backend, device, it, true, &analytic, err), err, "check 'gradient'");
    for (int p = 0; p < 4 && check->has_passed; p++)
        if (analytic.of[pairs[p].gradient])
            TDMI_TRY(check_tensor(backend, device, it, &values, pairs[p].of,
                                  analytic.of[pairs[p].gradient], check, err));
    return TDM_OK;
}

/* ---- determinism ------------------------------------------------------------------------ */

tdm_status tdmi_check_determinism(const struct tdmi_backend *backend, tdmi_device *device,
                                  const struct tdmi_case *it, struct tdmi_check *check,
                                  tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    struct tdmi_op_values runs[2];
    *check = (struct tdmi_check){.has_passed = true};
    for (int k = 0; k < 2; k++) {
        TDM_TRY(tdmi_op_values_make(it, true, &arena, &runs[k], err), err, "check 'determinism'");
        TDM_TRY(tdmi_op_run(backend, device, it, true, &runs[k], err), err, "check 'determinism'");
    }
    for (int t = TDMI_T_Y; t < TDMI_T_TENSORS; t++) {
        const float *first = runs[0].of[t], *second = runs[1].of[t];
        for (int64_t i = 0; first && i < runs[0].n[t] && check->has_passed; i++)
            if (memcmp(&first[i], &second[i], sizeof *first) != 0)
                fail(check, tdmi_op_tensor_name((enum tdmi_op_tensor)t), i, (double)second[i],
                     (double)first[i], 0.0);
    }
    return TDM_OK;
}
