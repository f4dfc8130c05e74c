/*
 * Arithmetic rate: matrix products that fit the caches, one private product a thread, so that the
 * number is about arithmetic and not about memory.
 */
#include "base/clock.h"
#include "base/scope.h"
#include "tandem/event.h"
#include "tune/probe.h"

#include <stdio.h>

/* Three matrices of 512 x 512 f32 are 3 MiB: second-level and last-level caches. oneDNN is within a
 * few percent of its best there, and the plain loop needs well under 0.1 s for one product. */
enum { side = 512 };

struct products {
    const struct tdmi_matmul_method *method;
    bool is_bf16;
    double seconds;
    int n_threads;
    void **of;     /* one a thread */
    double *rates; /* of each thread */
};

static tdm_status make_task(void *self, int index, int worker, tdm_error *err)
{
    struct products *products = self;
    (void)worker;
    TDM_TRY(products->method->make(side, products->is_bf16, &products->of[index], err), err,
            "thread %d got no product", index);
    /* The first run is slow: code is generated, pages are touched. */
    return products->method->run(products->of[index], err);
}

static tdm_status run_task(void *self, int index, int worker, tdm_error *err)
{
    struct products *products = self;
    int64_t start = tdmi_clock_ns();
    double passed, runs = 0;
    (void)worker;
    do {
        TDM_TRY(products->method->run(products->of[index], err), err,
                "the product of thread %d failed", index);
        runs++;
        passed = tdmi_clock_seconds_since(start);
    } while (passed < products->seconds && !tdm_stop_is_requested());
    products->rates[index] = runs * 2.0 * side * side * side / passed;
    return TDM_OK;
}

static void release(struct products *products)
{
    for (int i = 0; products->of && i < products->n_threads; i++)
        products->method->release(products->of[i]);
    tdmi_free(products->of);
    tdmi_free(products->rates);
}

static tdm_status measure(tdmi_pool *pool, const struct tdmi_matmul_method *method, bool is_bf16,
                          double seconds, struct tdm_machine_rate *rate, tdm_error *err)
{
    const int n = tdmi_pool_threads(pool);
    TDMI_AT_END(release)
    struct products products = {
        .method = method, .is_bf16 = is_bf16, .seconds = seconds / 4, .n_threads = n};
    TDMI_TRY(TDMI_NEW(products.of, n, err));
    TDMI_TRY(TDMI_NEW(products.rates, n, err));
    TDMI_TRY(tdmi_pool_run(pool, n, make_task, &products, err));
    TDMI_TRY(
        tdmi_probe_threads(pool, 1, run_task, &products, products.rates, &rate->one_thread, err));
    return tdmi_probe_threads(pool, n, run_task, &products, products.rates, &rate->all_threads,
                              err);
}

/* A difference below a tenth changes sign from day to day. */
static const char *faster(const struct tdm_machine_rates *rates)
{
    double f32 = rates->f32_flop_per_s.all_threads, bf16 = rates->bf16_flop_per_s.all_threads;
    if (f32 <= 0 || bf16 <= 0)
        return NULL;
    return bf16 >= 1.1 * f32 ? "bf16" : f32 >= 1.1 * bf16 ? "f32" : NULL;
}

tdm_status tdmi_probe_matmul(tdmi_pool *pool, const struct tdmi_matmul_method *method,
                             double seconds, struct tdm_machine_rates *rates, tdm_error *err)
{
    rates->matmul_method = method->name;
    TDM_TRY(measure(pool, method, false, seconds / 2, &rates->f32_flop_per_s, err), err,
            "the f32 rate could not be measured");
    if (!method->can_bf16) {
        snprintf(rates->bf16_problem, sizeof rates->bf16_problem,
                 "the %s knows no bf16, oneDNN does", method->name);
        return TDM_OK;
    }
    /* A CPU without bf16 is an answer, not a failure. */
    tdm_error why = {0};
    tdm_status status = measure(pool, method, true, seconds / 2, &rates->bf16_flop_per_s, &why);
    if (status != TDM_OK)
        snprintf(rates->bf16_problem, sizeof rates->bf16_problem, "%.239s",
                 tdm_error_sentence(&why, 0));
    rates->faster_precision = faster(rates);
    return TDM_OK;
}
