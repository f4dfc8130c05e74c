/*
 * A oneDNN matmul primitive with its matrices, prepared once and run many times.
 */
#include "backend/matmul_probe.h"
#include "backend/cpu/onednn/primitive.h"
#include "base/memory.h"

#include <stdint.h>
#include <string.h>

enum { SOURCE, WEIGHTS, RESULT, n_matrices };

struct product {
    dnnl_engine_t engine; /* outlives what was made with it */
    tdmi_onednn_primitive *multiply;
    void *matrices[n_matrices];
};

/* Values around 1 without pattern: denormals and zeros would time something else. */
static void fill(void *matrix, size_t count, bool is_bf16)
{
    uint32_t state = 1;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        float value = 0.5f + (float)(state >> 8) / 16777216.0f;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        if (is_bf16)
            ((uint16_t *)matrix)[i] = (uint16_t)(bits >> 16);
        else
            ((float *)matrix)[i] = value;
    }
}

static tdm_status make_matrices(struct product *product, int n, bool is_bf16, tdm_error *err)
{
    for (int i = 0; i < n_matrices; i++) {
        bool is_short = is_bf16 && i != RESULT;
        size_t count = (size_t)n * (size_t)n;
        product->matrices[i] = tdmi_alloc_aligned(count * (is_short ? 2 : 4));
        if (!product->matrices[i])
            return TDM_FAIL(err, TDM_E_MEMORY, "there is no memory for a %d x %d matrix", n, n);
        fill(product->matrices[i], count, is_short);
    }
    return TDM_OK;
}

static dnnl_status_t plan_product(dnnl_engine_t engine, int n, dnnl_data_type_t type,
                                  dnnl_memory_desc_t *layouts, dnnl_primitive_desc_t *plan)
{
    const dnnl_dims_t shape = {n, n};
    dnnl_status_t code = dnnl_success;
    for (int i = 0; i < n_matrices && code == dnnl_success; i++)
        code = dnnl_memory_desc_create_with_tag(&layouts[i], 2, shape,
                                                i == RESULT ? dnnl_f32 : type, dnnl_ab);
    if (code == dnnl_success)
        code = dnnl_matmul_primitive_desc_create(plan, engine, layouts[SOURCE], layouts[WEIGHTS],
                                                 NULL, layouts[RESULT], NULL);
    return code;
}

static tdm_status make_product(struct product *product, int n, bool is_bf16, tdm_error *err)
{
    dnnl_memory_desc_t layouts[n_matrices] = {NULL};
    dnnl_primitive_desc_t plan = NULL;
    dnnl_status_t code = dnnl_engine_create(&product->engine, dnnl_cpu, 0);
    if (code == dnnl_success)
        code = plan_product(product->engine, n, is_bf16 ? dnnl_bf16 : dnnl_f32, layouts, &plan);
    tdm_status status =
        tdmi_onednn_explain(code, is_bf16 ? "bf16 matrix product" : "f32 matrix product", err);
    if (status == TDM_OK) {
        const struct tdmi_onednn_argument arguments[n_matrices] = {
            {DNNL_ARG_SRC, layouts[SOURCE]},
            {DNNL_ARG_WEIGHTS, layouts[WEIGHTS]},
            {DNNL_ARG_DST, layouts[RESULT]},
        };
        status = tdmi_onednn_primitive_open(plan, arguments, n_matrices, &product->multiply, err);
    }
    if (plan)
        dnnl_primitive_desc_destroy(plan);
    for (int i = 0; i < n_matrices; i++) {
        if (layouts[i])
            dnnl_memory_desc_destroy(layouts[i]);
    }
    return status;
}

static void release(void *self)
{
    struct product *product = self;
    if (!product)
        return;
    tdmi_onednn_primitive_close(product->multiply);
    if (product->engine)
        dnnl_engine_destroy(product->engine);
    for (int i = 0; i < n_matrices; i++)
        tdmi_free(product->matrices[i]);
    tdmi_free(product);
}

static tdm_status make(int n, bool is_bf16, void **result, tdm_error *err)
{
    *result = NULL;
    tdm_status status = tdmi_onednn_need_room("matrix products", err);
    if (status != TDM_OK)
        return status;
    struct product *product = tdmi_alloc(1, sizeof *product);
    if (!product)
        return TDM_FAIL(err, TDM_E_MEMORY, "there is no memory to time matrix products");
    struct tdmi_onednn_threads threads = tdmi_onednn_threads_find();
    int before = tdmi_onednn_threads_enter(threads);
    status = make_product(product, n, is_bf16, err);
    tdmi_onednn_threads_leave(threads, before);
    if (status == TDM_OK)
        status = make_matrices(product, n, is_bf16, err);
    if (status != TDM_OK)
        release(product);
    else
        *result = product;
    return status;
}

static tdm_status run(void *self, tdm_error *err)
{
    struct product *product = self;
    const void *const *matrices = (const void *const *)product->matrices;
    if (!tdmi_onednn_primitive_run(product->multiply, matrices))
        return TDM_FAIL(err, TDM_E_ABSENT, "oneDNN refused the matrix product");
    return TDM_OK;
}

const struct tdmi_matmul_method tdmi_matmul_onednn = {
    .name = "oneDNN",
    .can_bf16 = true,
    .make = make,
    .run = run,
    .release = release,
};
