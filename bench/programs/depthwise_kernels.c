/*
 * Depthwise convolutions of MobileNetV2 and Xception on one thread, groups of eight pictures:
 *
 *     depthwise_kernels table|ours|onednn [ROUNDS]
 *
 * "table" prints a line of JSON for each layer: the processor time of a training call forward and
 * backward (minimum of the rounds, ms), of oneDNN's bare primitives, and of a copy of as many
 * bytes, the three interleaved, and that of a call without training; GB/s count every tensor once.
 * "ours" and "onednn" print the time of all layers, for bench/run. Ours reads its input through a
 * batch norm and ReLU6, takes the statistics of what it writes, makes dy from g and y and masks dx;
 * oneDNN does none of that.
 */
#include "backend/cpu/depthwise/depthwise.h"
#include "backend/cpu/onednn/library.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct layer {
    int side, channels, stride;
} layers[] = {{112, 32, 1}, {112, 96, 2}, {56, 144, 1}, {56, 144, 2},  {28, 192, 1},
              {14, 384, 1}, {14, 576, 2}, {7, 960, 1},  {147, 128, 1}, {74, 256, 1},
              {37, 728, 1}, {19, 728, 1}, {10, 1024, 1}};

enum { IMAGES = 8, TAPS = 9, n_layers = sizeof layers / sizeof layers[0] };
enum {
    FORWARD,
    BACKWARD,
    COPY_FORWARD,
    COPY_BACKWARD,
    PEER_FORWARD,
    PEER_BACKWARD,
    INFER,
    n_kinds
};

struct bench {
    struct tdmi_depthwise shape;
    int64_t x_values, y_values;
    float *x, *y, *g, *dx, *weights, *dweights, *scale;
    double *sums;
    void *workspace, *peer_workspace, *packed[TDMI_ONEDNN_PASSES];
    const struct tdmi_onednn_conv_table *onednn;
    tdmi_onednn_conv *peer;
};

static void fail(const char *what)
{
    fprintf(stderr, "depthwise_kernels: %s\n", what);
    exit(1);
}

static void *room(size_t bytes)
{
    void *memory = tdmi_alloc_aligned(bytes);
    if (!memory)
        fail("there is not enough memory");
    return memory;
}

/* Values between -1 and 1 without pattern. */
static float *made_up(int64_t count)
{
    static uint32_t state = 1;
    float *values = room((size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (float)(state >> 8) / 8388608.0f - 1.0f;
    }
    return values;
}

static void make_peer(struct bench *b)
{
    const struct tdmi_depthwise *s = &b->shape;
    const struct tdmi_onednn_conv_desc desc = {.max_images = IMAGES,
                                               .in = {s->h, s->w, s->channels},
                                               .out = {s->out_h, s->out_w, s->channels},
                                               .kernel_h = 3,
                                               .kernel_w = 3,
                                               .stride_h = s->stride,
                                               .stride_w = s->stride,
                                               .dilation_h = 1,
                                               .dilation_w = 1,
                                               .groups = s->channels,
                                               .pad_top = 1,
                                               .pad_left = 1,
                                               .has_backward = true,
                                               .wants_dx = true};
    tdm_error err = {0};
    const struct tdmi_onednn_table *onednn;
    if (tdmi_onednn_load(&onednn, &err) != TDM_OK ||
        onednn->conv->open(&desc, &b->peer, &err) != TDM_OK)
        fail(tdm_error_sentence(&err, 0));
    b->onednn = onednn->conv;
    b->peer_workspace = room(b->onednn->workspace_bytes(b->peer));
    for (int i = 0; i < TDMI_ONEDNN_PASSES; i++) {
        enum tdmi_onednn_pass pass = (enum tdmi_onednn_pass)i;
        b->packed[i] = room(b->onednn->packed_bytes(b->peer, pass));
        b->onednn->pack(b->peer, pass, b->weights, NULL, b->packed[i]);
    }
}

static void make(struct bench *b, struct layer layer)
{
    int out = (layer.side - 1) / layer.stride + 1, c = layer.channels;
    b->shape =
        (struct tdmi_depthwise){layer.side, layer.side, c, out, out, 3, layer.stride, 1, 1, 1};
    b->x_values = (int64_t)IMAGES * layer.side * layer.side * c;
    b->y_values = (int64_t)IMAGES * out * out * c;
    b->x = made_up(b->x_values);
    b->dx = made_up(b->x_values);
    b->y = made_up(b->y_values);
    b->g = made_up(b->y_values);
    b->weights = made_up(TAPS * c);
    b->dweights = made_up(TAPS * c);
    b->scale = made_up(c);
    b->sums = room(2 * sizeof(double) * (size_t)c);
    b->workspace = room(tdmi_depthwise_workspace_bytes(&b->shape));
    make_peer(b);
}

static void end(struct bench *b)
{
    void *all[] = {b->x,         b->dx,       b->y,    b->g,         b->weights,
                   b->dweights,  b->scale,    b->sums, b->workspace, b->peer_workspace,
                   b->packed[0], b->packed[1]};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tdmi_free(all[i]);
    b->onednn->close(b->peer);
}

/* Reads and writes half of the bytes each; forth and back through the two largest tensors. */
static void copy(struct bench *b, int64_t values)
{
    for (values /= 2; values > 0; values -= b->x_values)
        memcpy(b->dx, b->x, sizeof(float) * (size_t)(values < b->x_values ? values : b->x_values));
}

static void run(struct bench *b, int kind)
{
    const struct tdmi_depthwise_kernels *kernels = tdmi_depthwise_kernels(tdmi_isa_best());
    const struct tdmi_read_form form = {b->scale, b->scale, TDMI_ACT_RELU6};
    const struct tdmi_depthwise_forward forward = {
        .n = IMAGES,
        .x = b->x,
        .form = form,
        .weights = b->weights,
        .act = TDMI_ACT_NONE,
        .y = b->y,
        .sums = {b->scale, b->sums, b->sums + b->shape.channels},
        .workspace = b->workspace};
    const struct tdmi_depthwise_backward backward = {
        IMAGES,       b->x,        form,
        b->g,         b->y,        {b->scale, b->scale, b->scale},
        b->weights,   b->dweights, NULL,
        b->dx,        NULL,        {b->scale, b->sums, b->sums + b->shape.channels},
        b->workspace, NULL};
    const struct tdmi_depthwise_forward infer = {.n = IMAGES,
                                                 .x = b->x,
                                                 .weights = b->weights,
                                                 .bias = b->scale,
                                                 .act = TDMI_ACT_RELU6,
                                                 .y = b->y,
                                                 .workspace = b->workspace};
    struct tdmi_onednn_conv_call peer = {.n = IMAGES,
                                         .packed = b->packed[TDMI_ONEDNN_FORWARD],
                                         .workspace = b->peer_workspace,
                                         .x = b->x,
                                         .y = b->y,
                                         .dy = b->g,
                                         .dx = b->dx,
                                         .dw = b->dweights};
    if (kind == FORWARD)
        kernels->forward(&b->shape, &forward);
    else if (kind == INFER)
        kernels->forward(&b->shape, &infer);
    else if (kind == BACKWARD)
        kernels->backward(&b->shape, &backward);
    else if (kind == COPY_FORWARD)
        copy(b, b->x_values + b->y_values);
    else if (kind == COPY_BACKWARD)
        copy(b, 2 * (b->x_values + b->y_values));
    else if (kind == PEER_FORWARD)
        b->onednn->forward(b->peer, &peer);
    if (kind == PEER_BACKWARD) {
        b->onednn->backward_weights(b->peer, &peer);
        peer.packed = b->packed[TDMI_ONEDNN_BACKWARD_DATA];
        b->onednn->backward_data(b->peer, &peer);
    }
}

static double seconds_of(struct bench *b, int kind)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    run(b, kind);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}

static void print(const struct bench *b, const double *best)
{
    double bytes = (double)(b->x_values + b->y_values) * sizeof(float);
    printf("{\"side\": %d, \"channels\": %d, \"stride\": %d", b->shape.h, b->shape.channels,
           b->shape.stride);
    for (int i = 0; i < 2; i++)
        printf(", \"%s\": {\"ms\": %.3f, \"copy_ms\": %.3f, \"onednn_ms\": %.3f, "
               "\"gb_per_s\": %.1f, \"copy_gb_per_s\": %.1f}",
               i ? "backward" : "forward", 1e3 * best[i], 1e3 * best[COPY_FORWARD + i],
               1e3 * best[PEER_FORWARD + i], 1e-9 * (i + 1) * bytes / best[i],
               1e-9 * (i + 1) * bytes / best[COPY_FORWARD + i]);
    printf(", \"infer_ms\": %.3f}\n", 1e3 * best[INFER]);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    const int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 5;
    const bool is_table = strcmp(what, "table") == 0, is_peer = strcmp(what, "onednn") == 0;
    double total = 0.0;
    if ((!is_table && !is_peer && strcmp(what, "ours") != 0) || rounds < 1)
        fail("usage: depthwise_kernels table|ours|onednn [ROUNDS]");
    for (int i = 0; i < n_layers; i++) {
        struct bench b;
        double best[n_kinds];
        make(&b, layers[i]);
        for (int kind = 0; kind < n_kinds; kind++)
            best[kind] = 1e9;
        for (int round = -1; round < rounds; round++)
            for (int kind = 0; kind < n_kinds; kind++) {
                bool is_wanted =
                    is_table ||
                    (is_peer ? kind == PEER_FORWARD || kind == PEER_BACKWARD : kind <= BACKWARD);
                double seconds = is_wanted ? seconds_of(&b, kind) : 0.0;
                if (round >= 0 && seconds < best[kind])
                    best[kind] = seconds;
            }
        if (is_table)
            print(&b, best);
        total +=
            is_peer ? best[PEER_FORWARD] + best[PEER_BACKWARD] : best[FORWARD] + best[BACKWARD];
        end(&b);
    }
    if (!is_table)
        printf("%.3f ms\n", 1e3 * total);
    return 0;
}
