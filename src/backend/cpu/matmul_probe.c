/*
 * A oneDNN matmul primitive with its memory, prepared once and run many times. Its matrices live in
 * memory of ours: oneDNN's own would be first touched, and so timed, inside the first run.
 */
#include "backend/matmul_probe.h"
#include "base/memory.h"

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <string.h>

enum { SOURCE, WEIGHTS, RESULT, n_matrices };

struct product {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t multiply;
    dnnl_memory_t memories[n_matrices];
    void *matrices[n_matrices];
};

/* oneDNN divides work by OpenMP, whose thread count is a property of the calling thread. It is
 * asked for by name because oneDNN may as well have been built without OpenMP. */
static void use_one_thread(void)
{
    void (*set_num_threads)(int);
    void *found = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    if (!found)
        return;
    memcpy(&set_num_threads, &found, sizeof found);
    set_num_threads(1);
}

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

static tdm_status explain(dnnl_status_t code, const char *what, tdm_error *err)
{
    if (code == dnnl_success)
        return TDM_OK;
    return TDM_FAIL(err, code == dnnl_out_of_memory ? TDM_E_MEMORY : TDM_E_ABSENT,
                    code == dnnl_unimplemented ? "oneDNN has no %s for this CPU (status %d)"
                                               : "oneDNN refused %s (status %d)",
                    what, (int)code);
}

static tdm_status make_memories(struct product *product, const dnnl_memory_desc_t *layouts, int n,
                                bool is_bf16, tdm_error *err)
{
    for (int i = 0; i < n_matrices; i++) {
        bool is_short = is_bf16 && i != RESULT;
        size_t count = (size_t)n * (size_t)n;
        product->matrices[i] = tdmi_alloc_aligned(count * (is_short ? 2 : 4));
        if (!product->matrices[i])
            return TDM_FAIL(err, TDM_E_MEMORY, "there is no memory for a %d x %d matrix", n, n);
        fill(product->matrices[i], count, is_short);
        TDM_TRY(explain(dnnl_memory_create(&product->memories[i], layouts[i], product->engine,
                                           product->matrices[i]),
                        "the memory of a matrix", err),
                err, "matrix %d of the product was not accepted", i);
    }
    return TDM_OK;
}

static tdm_status make_product(struct product *product, int n, bool is_bf16, tdm_error *err)
{
    dnnl_memory_desc_t layouts[n_matrices] = {NULL};
    dnnl_primitive_desc_t plan = NULL;
    dnnl_dims_t shape = {n, n};
    dnnl_data_type_t type = is_bf16 ? dnnl_bf16 : dnnl_f32;
    const char *what = is_bf16 ? "bf16 matrix product" : "f32 matrix product";
    tdm_status status = TDM_OK;
    for (int i = 0; i < n_matrices && status == TDM_OK; i++)
        status = explain(dnnl_memory_desc_create_with_tag(&layouts[i], 2, shape,
                                                          i == RESULT ? dnnl_f32 : type, dnnl_ab),
                         "a matrix", err);
    if (status == TDM_OK)
        status = explain(dnnl_matmul_primitive_desc_create(&plan, product->engine, layouts[SOURCE],
                                                           layouts[WEIGHTS], NULL, layouts[RESULT],
                                                           NULL),
                         what, err);
    if (status == TDM_OK)
        status = explain(dnnl_primitive_create(&product->multiply, plan), what, err);
    if (status == TDM_OK)
        status = make_memories(product, (const dnnl_memory_desc_t *)layouts, n, is_bf16, err);
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
    if (product->multiply)
        dnnl_primitive_destroy(product->multiply);
    for (int i = 0; i < n_matrices; i++) {
        if (product->memories[i])
            dnnl_memory_destroy(product->memories[i]);
        tdmi_free(product->matrices[i]);
    }
    if (product->stream)
        dnnl_stream_destroy(product->stream);
    if (product->engine)
        dnnl_engine_destroy(product->engine);
    tdmi_free(product);
}

static tdm_status make(int n, bool is_bf16, void **result, tdm_error *err)
{
    tdm_status status;
    struct product *product = tdmi_alloc(1, sizeof *product);
    *result = NULL;
    if (!product)
        return TDM_FAIL(err, TDM_E_MEMORY, "there is no memory to time matrix products");
    use_one_thread();
    status = explain(dnnl_engine_create(&product->engine, dnnl_cpu, 0), "an engine", err);
    if (status == TDM_OK)
        status = explain(
            dnnl_stream_create(&product->stream, product->engine, dnnl_stream_default_flags),
            "a stream", err);
    if (status == TDM_OK)
        status = make_product(product, n, is_bf16, err);
    if (status != TDM_OK)
        release(product);
    else
        *result = product;
    return status;
}

static tdm_status run(void *self, tdm_error *err)
{
    struct product *product = self;
    dnnl_exec_arg_t arguments[n_matrices] = {
        {DNNL_ARG_SRC, product->memories[SOURCE]},
        {DNNL_ARG_WEIGHTS, product->memories[WEIGHTS]},
        {DNNL_ARG_DST, product->memories[RESULT]},
    };
    use_one_thread();
    dnnl_status_t code =
        dnnl_primitive_execute(product->multiply, product->stream, n_matrices, arguments);
    if (code == dnnl_success)
        code = dnnl_stream_wait(product->stream);
    return explain(code, "the matrix product", err);
}

const struct tdmi_matmul_method tdmi_matmul_onednn = {
    .name = "oneDNN",
    .can_bf16 = true,
    .make = make,
    .run = run,
    .release = release,
};
