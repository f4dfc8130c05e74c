/*
 * Convolutions of real networks on one thread, ours and oneDNN's interleaved:
 *
 *     compute_kernels GROUP table|ours|onednn [ROUNDS]
 *
 * GROUP is a group of the list below, or all. "table" prints a line of JSON for each layer and
 * direction (GF/s, median, minimum and maximum of the rounds); "ours" and "onednn" print the time
 * of the whole group, forward and backward, for bench/run. Ours is the training call: it reads its
 * input through a batch norm and ReLU, takes the statistics of what it writes, makes dy from g and
 * y and masks dx. oneDNN's primitives have none of that to do. "infer" adds a bias and ReLU6.
 */
#include "backend/cpu/conv/conv_gemm.h"
#include "base/memory.h"

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct layer {
    const char *group;
    int side, in, out, kernel, stride, pad, images;
} layers[] = {
    {"pointwise", 112, 32, 16, 1, 1, 0, 4},   {"pointwise", 112, 16, 96, 1, 1, 0, 4},
    {"pointwise", 56, 24, 144, 1, 1, 0, 8},   {"pointwise", 56, 144, 24, 1, 1, 0, 8},
    {"pointwise", 28, 32, 192, 1, 1, 0, 8},   {"pointwise", 28, 192, 32, 1, 1, 0, 8},
    {"pointwise", 14, 96, 576, 1, 1, 0, 8},   {"pointwise", 14, 576, 96, 1, 1, 0, 8},
    {"pointwise", 7, 320, 1280, 1, 1, 0, 8},  {"pointwise", 19, 728, 728, 1, 1, 0, 4},
    {"pointwise", 56, 64, 256, 1, 1, 0, 4},   {"pointwise", 56, 256, 64, 1, 1, 0, 4},
    {"pointwise", 14, 1024, 256, 1, 1, 0, 4}, {"pointwise", 7, 512, 2048, 1, 1, 0, 8},
    {"window", 56, 64, 64, 3, 1, 1, 4},       {"window", 28, 128, 128, 3, 1, 1, 4},
    {"window", 14, 256, 256, 3, 1, 1, 4},     {"window", 7, 512, 512, 3, 1, 1, 8},
    {"window", 56, 128, 128, 3, 2, 1, 2},     {"window", 56, 256, 512, 1, 2, 0, 4},
    {"window", 224, 3, 64, 7, 2, 3, 2},       {"window", 224, 3, 32, 3, 2, 1, 4},
    {"window", 299, 3, 32, 3, 2, 0, 2},       {"window", 149, 32, 64, 3, 1, 0, 1},
};

enum { FORWARD, BACKWARD, WEIGHTS, INPUT, INFER, n_kinds };
enum { X, W, Y, G, DX, DW, n_tensors };
static const char *const kinds[] = {"forward", "backward", "dweights", "dx", "infer"};

struct bench {
    struct tdmi_conv_gemm conv;
    float *tensors[n_tensors], *forward, *backward, *vectors;
    double *sums;
    void *workspace;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitives[n_kinds];
    dnnl_exec_arg_t arguments[n_kinds][4];
    int n_arguments[n_kinds];
};

static void fail(const char *what)
{
    fprintf(stderr, "compute_kernels: %s\n", what);
    exit(1);
}

static void must(dnnl_status_t status)
{
    if (status != dnnl_success)
        fail("oneDNN refused");
}

/* Values between -1 and 1 without pattern. */
static float *made_up(size_t count)
{
    static uint32_t state = 1;
    float *values = tdmi_alloc_aligned(count * sizeof *values);
    if (!values)
        fail("there is not enough memory");
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (float)(state >> 8) / 8388608.0f - 1.0f;
    }
    return values;
}

static void use_one_thread(void)
{
    void (*set_num_threads)(int);
    void *found = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    if (!found)
        return;
    memcpy(&set_num_threads, &found, sizeof found);
    set_num_threads(1);
}

/* ---- oneDNN ------------------------------------------------------------------------------------
 */

static dnnl_memory_desc_t layout(int n_dims, const dnnl_dim_t *dims, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t made;
    must(dnnl_memory_desc_create_with_tag(&made, n_dims, dims, dnnl_f32, tag));
    return made;
}

static dnnl_memory_t memory_of(struct bench *bench, const_dnnl_primitive_desc_t plan,
                               dnnl_query_t what, void *at)
{
    dnnl_memory_t memory;
    must(dnnl_memory_create(&memory, dnnl_primitive_desc_query_md(plan, what, 0), bench->engine,
                            at));
    return memory;
}

static void add_argument(struct bench *bench, int kind, int name, dnnl_memory_t memory)
{
    bench->arguments[kind][bench->n_arguments[kind]++] = (dnnl_exec_arg_t){name, memory};
}

static void peer_make(struct bench *bench, const struct layer *layer)
{
    const struct tdmi_conv_gemm *c = &bench->conv;
    dnnl_dims_t x = {c->max_images, c->in_c, c->in_h, c->in_w};
    dnnl_dims_t y = {c->max_images, c->out_c, c->out_h, c->out_w};
    dnnl_dims_t w = {c->out_c, c->in_c, c->kernel_h, c->kernel_w};
    dnnl_dims_t strides = {layer->stride, layer->stride}, dilates = {0, 0};
    dnnl_dims_t pads = {layer->pad, layer->pad}, pads_after;
    for (int i = 0; i < 2; i++)
        pads_after[i] = (y[2 + i] - 1) * layer->stride + layer->kernel - x[2 + i] - layer->pad;
    dnnl_memory_desc_t mx = layout(4, x, dnnl_nhwc), my = layout(4, y, dnnl_nhwc);
    dnnl_memory_desc_t mw = layout(4, w, dnnl_format_tag_any);
    dnnl_primitive_desc_t plans[n_kinds] = {NULL};
    must(dnnl_engine_create(&bench->engine, dnnl_cpu, 0));
    must(dnnl_stream_create(&bench->stream, bench->engine, dnnl_stream_default_flags));
    must(dnnl_convolution_forward_primitive_desc_create(
        &plans[FORWARD], bench->engine, dnnl_forward_training, dnnl_convolution_direct, mx, mw,
        NULL, my, strides, dilates, pads, pads_after, NULL));
    must(dnnl_convolution_backward_data_primitive_desc_create(
        &plans[INPUT], bench->engine, dnnl_convolution_direct, mx, mw, my, strides, dilates, pads,
        pads_after, plans[FORWARD], NULL));
    must(dnnl_convolution_backward_weights_primitive_desc_create(
        &plans[WEIGHTS], bench->engine, dnnl_convolution_direct, mx, mw, NULL, my, strides, dilates,
        pads, pads_after, plans[FORWARD], NULL));
    for (int kind = 0; kind < n_kinds; kind++)
        if (plans[kind])
            must(dnnl_primitive_create(&bench->primitives[kind], plans[kind]));
    /* Blocked weights may need more than ours; their values do not matter. */
    size_t bytes = 0;
    for (int kind = 0; kind < n_kinds; kind++)
        for (int what = 0; plans[kind] && what < 2; what++) {
            size_t needs = dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(
                plans[kind], what ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0));
            bytes = needs > bytes ? needs : bytes;
        }
    float *blocked = made_up(bytes / sizeof(float) + 1), *dblocked = made_up(bytes / 4 + 1);
    add_argument(bench, FORWARD, DNNL_ARG_SRC,
                 memory_of(bench, plans[FORWARD], dnnl_query_src_md, bench->tensors[X]));
    add_argument(bench, FORWARD, DNNL_ARG_WEIGHTS,
                 memory_of(bench, plans[FORWARD], dnnl_query_weights_md, blocked));
    add_argument(bench, FORWARD, DNNL_ARG_DST,
                 memory_of(bench, plans[FORWARD], dnnl_query_dst_md, bench->tensors[Y]));
    add_argument(bench, INPUT, DNNL_ARG_DIFF_DST,
                 memory_of(bench, plans[INPUT], dnnl_query_diff_dst_md, bench->tensors[G]));
    add_argument(bench, INPUT, DNNL_ARG_WEIGHTS,
                 memory_of(bench, plans[INPUT], dnnl_query_weights_md, blocked));
    add_argument(bench, INPUT, DNNL_ARG_DIFF_SRC,
                 memory_of(bench, plans[INPUT], dnnl_query_diff_src_md, bench->tensors[DX]));
    add_argument(bench, WEIGHTS, DNNL_ARG_SRC,
                 memory_of(bench, plans[WEIGHTS], dnnl_query_src_md, bench->tensors[X]));
    add_argument(bench, WEIGHTS, DNNL_ARG_DIFF_DST,
                 memory_of(bench, plans[WEIGHTS], dnnl_query_diff_dst_md, bench->tensors[G]));
    add_argument(bench, WEIGHTS, DNNL_ARG_DIFF_WEIGHTS,
                 memory_of(bench, plans[WEIGHTS], dnnl_query_diff_weights_md, dblocked));
}

static void peer_run(struct bench *bench, int kind)
{
    if (kind == INFER)
        kind = FORWARD;
    if (kind == BACKWARD) {
        peer_run(bench, WEIGHTS);
        if (bench->conv.in_c > 3)
            peer_run(bench, INPUT);
        return;
    }
    must(dnnl_primitive_execute(bench->primitives[kind], bench->stream, bench->n_arguments[kind],
                                bench->arguments[kind]));
    must(dnnl_stream_wait(bench->stream));
}

/* ---- ours --------------------------------------------------------------------------------------
 */

static void make(struct bench *bench, const struct layer *layer)
{
    int out = (layer->side + 2 * layer->pad - layer->kernel) / layer->stride + 1;
    int most = layer->in > layer->out ? layer->in : layer->out;
    bench->conv = (struct tdmi_conv_gemm){.max_images = layer->images,
                                          .in_h = layer->side,
                                          .in_w = layer->side,
                                          .in_c = layer->in,
                                          .out_h = out,
                                          .out_w = out,
                                          .out_c = layer->out,
                                          .kernel_h = layer->kernel,
                                          .kernel_w = layer->kernel,
                                          .stride = layer->stride,
                                          .dilation = 1,
                                          .pad_top = layer->pad,
                                          .pad_left = layer->pad,
                                          .isa = tdmi_isa_best()};
    size_t in = (size_t)layer->images * (size_t)(layer->side * layer->side * layer->in);
    size_t outs = (size_t)layer->images * (size_t)(out * out * layer->out);
    size_t weights = (size_t)(layer->kernel * layer->kernel * layer->in * layer->out);
    const size_t counts[n_tensors] = {in, weights, outs, outs, in, weights};
    for (int i = 0; i < n_tensors; i++)
        bench->tensors[i] = made_up(counts[i]);
    bench->vectors = made_up((size_t)most);
    bench->sums = tdmi_alloc((size_t)most, 2 * sizeof *bench->sums);
    bench->forward = made_up(
        tdmi_conv_gemm_algorithm(&bench->conv)->packed_bytes(&bench->conv, TDMI_CONV_FORWARD) /
        sizeof(float));
    bench->backward = made_up(
        tdmi_conv_gemm_algorithm(&bench->conv)->packed_bytes(&bench->conv, TDMI_CONV_BACKWARD) /
        sizeof(float));
    bench->workspace =
        tdmi_alloc_aligned(tdmi_conv_gemm_algorithm(&bench->conv)->workspace_bytes(&bench->conv));
    tdmi_conv_gemm_algorithm(&bench->conv)
        ->pack(&bench->conv, TDMI_CONV_FORWARD, bench->tensors[W], NULL, bench->forward);
    tdmi_conv_gemm_algorithm(&bench->conv)
        ->pack(&bench->conv, TDMI_CONV_BACKWARD, bench->tensors[W], NULL, bench->backward);
}

static void ours_run(struct bench *bench, int kind)
{
    const int most = bench->conv.in_c > bench->conv.out_c ? bench->conv.in_c : bench->conv.out_c;
    const struct tdmi_read_form read =
        bench->conv.in_c > 3
            ? (struct tdmi_read_form){bench->vectors, bench->vectors, TDMI_ACT_RELU6}
            : (struct tdmi_read_form){NULL, NULL, TDMI_ACT_NONE};
    if (kind == FORWARD) {
        tdmi_conv_gemm_algorithm(&bench->conv)
            ->forward(
                &bench->conv, &(struct tdmi_conv_forward) {
                    .n = bench->conv.max_images, .x = bench->tensors[X], .read = read,
                    .packed = bench->forward, .y = bench->tensors[Y],
                    .sums = {bench->vectors, bench->sums, bench->sums + most},
                    .workspace = bench->workspace,
                });
        return;
    }
    if (kind == INFER) {
        tdmi_conv_gemm_algorithm(&bench->conv)
            ->infer(
                &bench->conv, &(struct tdmi_conv_infer) {
                    .n = bench->conv.max_images, .x = bench->tensors[X], .packed = bench->forward,
                    .bias = bench->vectors, .act = TDMI_ACT_RELU6, .y = bench->tensors[Y],
                    .workspace = bench->workspace
                });
        return;
    }
    bool wants_dx = kind != WEIGHTS && (kind == INPUT || bench->conv.in_c > 3);
    tdmi_conv_gemm_algorithm(&bench->conv)
        ->backward(
            &bench->conv, &(struct tdmi_conv_backward) {
                .n = bench->conv.max_images, .x = bench->tensors[X], .read = read,
                .g = bench->tensors[G], .y = bench->tensors[Y],
                .gradient = {bench->vectors, bench->vectors, bench->vectors},
                .packed = bench->backward, .dweights = kind == INPUT ? NULL : bench->tensors[DW],
                .dx = wants_dx ? bench->tensors[DX] : NULL,
                .sums = {bench->vectors, wants_dx ? bench->sums : NULL, bench->sums + most},
                .workspace = bench->workspace,
            });
}

static void release(struct bench *bench)
{
    for (int i = 0; i < n_tensors; i++)
        tdmi_free(bench->tensors[i]);
    tdmi_free(bench->vectors);
    tdmi_free(bench->sums);
    tdmi_free(bench->forward);
    tdmi_free(bench->backward);
    tdmi_free(bench->workspace);
}

/* ---- timing ------------------------------------------------------------------------------------
 */

/* The processor's time of this thread, so that what else runs costs the caches only. */
static double thread_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double seconds_of(void (*run)(struct bench *, int), struct bench *bench, int kind, int times)
{
    double start = thread_seconds();
    for (int i = 0; i < times; i++)
        run(bench, kind);
    return (thread_seconds() - start) / times;
}

static int in_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double operations(const struct layer *layer, int kind)
{
    int out = (layer->side + 2 * layer->pad - layer->kernel) / layer->stride + 1;
    double once =
        2.0 * layer->images * out * out * layer->out * layer->kernel * layer->kernel * layer->in;
    return kind == BACKWARD && layer->in > 3 ? 2 * once : once;
}

static void print_spread(const char *name, double *seconds, int n, double work)
{
    qsort(seconds, (size_t)n, sizeof *seconds, in_order);
    printf(", \"%s\": {\"median\": %.1f, \"min\": %.1f, \"max\": %.1f}", name,
           work / seconds[n / 2] * 1e-9, work / seconds[n - 1] * 1e-9, work / seconds[0] * 1e-9);
}

static double compare(const struct layer *layer, const char *mode, int rounds)
{
    struct bench bench = {.workspace = NULL};
    double ours[99], peer[99], total = 0;
    const bool is_table = strcmp(mode, "table") == 0;
    make(&bench, layer);
    peer_make(&bench, layer);
    for (int kind = 0; kind < (is_table ? n_kinds : WEIGHTS); kind++) {
        double work = operations(layer, kind);
        int times = 1 + (int)(0.03 * 80e9 / work);
        if (kind == INPUT && layer->in <= 3)
            continue;
        seconds_of(ours_run, &bench, kind, 1);
        seconds_of(peer_run, &bench, kind, 1);
        for (int i = 0; i < rounds; i++) {
            ours[i] = peer[i] = 0;
            if (strcmp(mode, "onednn") != 0)
                ours[i] = seconds_of(ours_run, &bench, kind, times);
            if (strcmp(mode, "ours") != 0)
                peer[i] = seconds_of(peer_run, &bench, kind, times);
        }
        if (is_table) {
            printf("{\"layer\": \"%dx%d %d->%d at %d stride %d, %d images\", \"what\": \"%s\"",
                   layer->kernel, layer->kernel, layer->in, layer->out, layer->side, layer->stride,
                   layer->images, kinds[kind]);
            print_spread("ours", ours, rounds, work);
            print_spread("onednn", peer, rounds, work);
            printf(", \"ratio\": %.3f}\n", peer[rounds / 2] / ours[rounds / 2]);
            fflush(stdout);
        } else {
            double *seconds = strcmp(mode, "ours") == 0 ? ours : peer;
            qsort(seconds, (size_t)rounds, sizeof *seconds, in_order);
            total += seconds[rounds / 2];
        }
    }
    release(&bench);
    return total;
}

int main(int argc, char **argv)
{
    double total = 0;
    int rounds = argc > 3 ? atoi(argv[3]) : 5;
    if (argc < 3 || rounds < 1 || rounds > 99)
        fail("usage: compute_kernels GROUP|all table|ours|onednn [ROUNDS, 1 to 99]");
    use_one_thread();
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        if (strcmp(argv[1], "all") == 0 || strcmp(argv[1], layers[i].group) == 0)
            total += compare(&layers[i], argv[2], rounds);
    if (strcmp(argv[2], "table") != 0)
        printf("%.3f ms\n", total * 1e3);
    return 0;
}
