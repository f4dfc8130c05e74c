/*
 * A oneDNN matmul primitive with its matrices, prepared once and run many times.
 */
#include "backend/cpu/onednn/plugin/primitive.h"
#include "tensor/half.h"

enum { RESULT = 2, n_matrices };

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
        if (is_bf16)
            ((uint16_t *)matrix)[i] = (uint16_t)(tdmi_bits_of_float(value) >> 16);
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
            return TDM_FAIL(err, TDM_E_MEMORY, "no memory for a %d x %d matrix", n, n);
        fill(product->matrices[i], count, is_short);
    }
    return TDM_OK;
}

static tdm_status make_product(struct product *product, int n, bool is_bf16, tdm_error *err)
{
    const char *what = is_bf16 ? "bf16 matrix product" : "f32 matrix product";
    const dnnl_data_type_t type = is_bf16 ? dnnl_bf16 : dnnl_f32;
    const dnnl_dims_t shape = {n, n};
    TDMI_AT_END(dnnl_memory_desc_destroy_at) dnnl_memory_desc_t factor = NULL;
    TDMI_AT_END(dnnl_memory_desc_destroy_at) dnnl_memory_desc_t result = NULL;
    TDMI_AT_END(dnnl_primitive_desc_destroy_at) dnnl_primitive_desc_t plan = NULL;
    TDMI_ONEDNN_TRY(what, dnnl_engine_create(&product->engine, dnnl_cpu, 0));
    TDMI_ONEDNN_TRY(what, dnnl_memory_desc_create_with_tag(&factor, 2, shape, type, dnnl_ab));
    TDMI_ONEDNN_TRY(what, dnnl_memory_desc_create_with_tag(&result, 2, shape, dnnl_f32, dnnl_ab));
    TDMI_ONEDNN_TRY(what, dnnl_matmul_primitive_desc_create(&plan, product->engine, factor, factor,
                                                            NULL, result, NULL));
    const struct tdmi_onednn_argument arguments[n_matrices] = {
        {DNNL_ARG_SRC, factor}, {DNNL_ARG_WEIGHTS, factor}, {DNNL_ARG_DST, result}};
    return tdmi_onednn_primitive_open(plan, arguments, n_matrices, &product->multiply, err);
}

static void release(void *self)
{
    struct product *product = self;
    if (!product)
        return;
    tdmi_onednn_primitive_close(product->multiply);
    dnnl_engine_destroy_at(&product->engine);
    for (int i = 0; i < n_matrices; i++)
        tdmi_free(product->matrices[i]);
    tdmi_free(product);
}

TDMI_POINTER_RELEASE(struct product, release)

static tdm_status make(int n, bool is_bf16, void **result, tdm_error *err)
{
    TDMI_AT_END(release_at) struct product *product = NULL;
    *result = NULL;
    TDMI_TRY(tdmi_onednn_need_room("matrix products", err));
    TDMI_TRY(TDMI_NEW(product, 1, err));
    const struct tdmi_onednn_before before = tdmi_onednn_enter();
    tdm_status status = make_product(product, n, is_bf16, err);
    tdmi_onednn_leave(&before);
    TDMI_TRY(status);
    TDMI_TRY(make_matrices(product, n, is_bf16, err));
    *result = tdmi_take(&product);
    return TDM_OK;
}

static tdm_status run(void *self, tdm_error *err)
{
    struct product *product = self;
    const void *const *matrices = (const void *const *)product->matrices;
    if (!tdmi_onednn_primitive_run(product->multiply, matrices))
        return TDM_FAIL(err, TDM_E_ABSENT, "oneDNN refused the matrix product");
    return TDM_OK;
}

const struct tdmi_matmul_method tdmi_onednn_matmul = {
    .name = "oneDNN",
    .can_bf16 = true,
    .make = make,
    .run = run,
    .release = release,
};
