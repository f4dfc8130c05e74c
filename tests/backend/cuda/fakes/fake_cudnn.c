/*
 * cuDNN as a test wants it: takes descriptors and attributes as NVIDIA's reference describes them,
 * refuses what is documented as wrong, and computes graphs by loops in double, by the dimensions,
 * strides, numbers and pointers it was given and nothing else. What it knows of numbers is
 * cudnn_api.h, which another test compares with NVIDIA's headers.
 */
#include "backend/cuda/fakes/fake_cudnn.h"
#include "backend/cuda/fakes/fake_cudnn_run.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NVIDIA's headers, which declare these functions, are not needed here. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

struct fake_cudnn fake_cudnn = {.version = 91900, .right_bytes = 1000};

enum { bad_param = 2000, not_supported = 3000, failed = 5000, not_there = 1001 };
enum { most_attributes = 16 };

/* ---- descriptors ---------------------------------------------------------------------------- */

struct attribute {
    int name, type;
    int64_t n;
    void *values;
};

struct descriptor {
    int kind, n;
    bool is_finished;
    struct attribute attributes[most_attributes];
    struct flat flat; /* graph, plan */
    int engine;       /* config, engine */
};

static int complain(int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(fake_cudnn.complaint, sizeof fake_cudnn.complaint, format, args);
    va_end(args);
    return code;
}

size_t cudnnGetVersion(void)
{
    return fake_cudnn.version;
}

void cudnnGetLastErrorString(char *text, size_t bytes)
{
    snprintf(text, bytes, "%s", fake_cudnn.complaint);
}

int cudnnCreate(tdmi_cudnn_handle *handle)
{
    if (fake_cudnn.handle_code != 0)
        return complain(fake_cudnn.handle_code, "no GPU for you");
    fake_cudnn.handles++;
    *handle = calloc(1, sizeof(struct CUstream_st *));
    return 0;
}

int cudnnDestroy(tdmi_cudnn_handle handle)
{
    fake_cudnn.handles--;
    free(handle);
    return 0;
}

int cudnnSetStream(tdmi_cudnn_handle handle, struct CUstream_st *stream)
{
    if (!handle)
        return complain(bad_param, "a stream for no handle");
    *(struct CUstream_st **)handle = stream;
    return 0;
}

int cudnnBackendCreateDescriptor(int kind, tdmi_cudnn_descriptor *made)
{
    static const int kinds[] = {
#define X(ours, theirs, number) number,
        TDMI_CUDNN_KINDS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i] == kind) {
            struct descriptor *it = calloc(1, sizeof *it);
            it->kind = kind;
            *made = it;
            fake_cudnn.alive++;
            return 0;
        }
    return complain(bad_param, "no kind %d", kind);
}

int cudnnBackendDestroyDescriptor(tdmi_cudnn_descriptor descriptor)
{
    struct descriptor *it = descriptor;
    for (int i = 0; i < it->n; i++)
        free(it->attributes[i].values);
    free(it);
    fake_cudnn.alive--;
    return 0;
}

static const struct attribute *find(const struct descriptor *it, int name)
{
    for (int i = 0; i < it->n; i++)
        if (it->attributes[i].name == name)
            return &it->attributes[i];
    return NULL;
}

/* The first value as a number, or `without`. */
static int64_t number(const struct descriptor *it, int name, int64_t without)
{
    const struct attribute *found = find(it, name);
    int value;
    if (!found)
        return without;
    if (found->type == TDMI_CUDNN_T_INT64)
        return *(const int64_t *)found->values;
    memcpy(&value, found->values, sizeof value);
    return value;
}

static struct descriptor *child(const struct descriptor *it, int name, int kind)
{
    const struct attribute *found = find(it, name);
    struct descriptor *of = found ? *(struct descriptor **)found->values : NULL;
    return of && of->kind == kind && of->is_finished ? of : NULL;
}

static size_t bytes_of_type(int type)
{
    switch (type) {
    case TDMI_CUDNN_T_INT64:
    case TDMI_CUDNN_T_DOUBLE:
    case TDMI_CUDNN_T_POINTER:
    case TDMI_CUDNN_T_DESCRIPTOR:
    case TDMI_CUDNN_T_HANDLE:
        return 8;
    case TDMI_CUDNN_T_BOOLEAN:
    case TDMI_CUDNN_T_CHAR:
        return 1;
    default:
        return 4;
    }
}

/* Type, size and descriptor of each attribute, from the reference. */
static bool is_right(int kind, int name, int type)
{
    static const struct {
        int kind, first, last, type;
    } rules[] = {
        {TDMI_CUDNN_TENSOR, TDMI_CUDNN_A_TENSOR_TYPE, TDMI_CUDNN_A_TENSOR_TYPE,
         TDMI_CUDNN_T_DATA_TYPE},
        {TDMI_CUDNN_TENSOR, TDMI_CUDNN_A_TENSOR_DIMS, TDMI_CUDNN_A_TENSOR_STRIDES,
         TDMI_CUDNN_T_INT64},
        {TDMI_CUDNN_TENSOR, TDMI_CUDNN_A_TENSOR_ALIGNMENT, TDMI_CUDNN_A_TENSOR_ALIGNMENT,
         TDMI_CUDNN_T_INT64},
        {TDMI_CUDNN_TENSOR, TDMI_CUDNN_A_TENSOR_NUMBER, TDMI_CUDNN_A_TENSOR_NUMBER,
         TDMI_CUDNN_T_INT64},
        {TDMI_CUDNN_TENSOR, TDMI_CUDNN_A_TENSOR_VIRTUAL, TDMI_CUDNN_A_TENSOR_VIRTUAL,
         TDMI_CUDNN_T_BOOLEAN},
        {TDMI_CUDNN_CONVOLUTION, TDMI_CUDNN_A_CONV_TYPE, TDMI_CUDNN_A_CONV_TYPE,
         TDMI_CUDNN_T_DATA_TYPE},
        {TDMI_CUDNN_CONVOLUTION, TDMI_CUDNN_A_CONV_MODE, TDMI_CUDNN_A_CONV_MODE,
         TDMI_CUDNN_T_CONV_MODE},
        {TDMI_CUDNN_CONVOLUTION, TDMI_CUDNN_A_CONV_DILATIONS, TDMI_CUDNN_A_CONV_DIMS,
         TDMI_CUDNN_T_INT64},
        {TDMI_CUDNN_POINTWISE, TDMI_CUDNN_A_POINTWISE_MODE, TDMI_CUDNN_A_POINTWISE_MODE,
         TDMI_CUDNN_T_POINTWISE_MODE},
        {TDMI_CUDNN_POINTWISE, TDMI_CUDNN_A_POINTWISE_TYPE, TDMI_CUDNN_A_POINTWISE_TYPE,
         TDMI_CUDNN_T_DATA_TYPE},
        {TDMI_CUDNN_POINTWISE, TDMI_CUDNN_A_RELU_LOWER, TDMI_CUDNN_A_RELU_UPPER,
         TDMI_CUDNN_T_DOUBLE},
        {TDMI_CUDNN_OF_FORWARD, TDMI_CUDNN_A_FORWARD_ALPHA, TDMI_CUDNN_A_FORWARD_BETA,
         TDMI_CUDNN_T_FLOAT},
        {TDMI_CUDNN_OF_FORWARD, TDMI_CUDNN_A_FORWARD_CONV, TDMI_CUDNN_A_FORWARD_Y,
         TDMI_CUDNN_T_DESCRIPTOR},
        {TDMI_CUDNN_OF_DATA, TDMI_CUDNN_A_DATA_ALPHA, TDMI_CUDNN_A_DATA_BETA, TDMI_CUDNN_T_FLOAT},
        {TDMI_CUDNN_OF_DATA, TDMI_CUDNN_A_DATA_CONV, TDMI_CUDNN_A_DATA_DY, TDMI_CUDNN_T_DESCRIPTOR},
        {TDMI_CUDNN_OF_FILTER, TDMI_CUDNN_A_WEIGHTS_ALPHA, TDMI_CUDNN_A_WEIGHTS_BETA,
         TDMI_CUDNN_T_FLOAT},
        {TDMI_CUDNN_OF_FILTER, TDMI_CUDNN_A_WEIGHTS_CONV, TDMI_CUDNN_A_WEIGHTS_DY,
         TDMI_CUDNN_T_DESCRIPTOR},
        {TDMI_CUDNN_OF_POINTWISE, TDMI_CUDNN_A_POINTWISE_OP, TDMI_CUDNN_A_POINTWISE_Y,
         TDMI_CUDNN_T_DESCRIPTOR},
        {TDMI_CUDNN_GRAPH, TDMI_CUDNN_A_GRAPH_OPS, TDMI_CUDNN_A_GRAPH_OPS, TDMI_CUDNN_T_DESCRIPTOR},
        {TDMI_CUDNN_HEURISTICS, TDMI_CUDNN_A_HEUR_MODE, TDMI_CUDNN_A_HEUR_MODE,
         TDMI_CUDNN_T_HEUR_MODE},
        {TDMI_CUDNN_HEURISTICS, TDMI_CUDNN_A_HEUR_GRAPH, TDMI_CUDNN_A_HEUR_GRAPH,
         TDMI_CUDNN_T_DESCRIPTOR},
        {TDMI_CUDNN_HEURISTICS, TDMI_CUDNN_A_HEUR_DEVICE, TDMI_CUDNN_A_HEUR_DEVICE,
         TDMI_CUDNN_T_DESCRIPTOR},
        {TDMI_CUDNN_PLAN, TDMI_CUDNN_A_PLAN_CONFIG, TDMI_CUDNN_A_PLAN_CONFIG,
         TDMI_CUDNN_T_DESCRIPTOR},
        {TDMI_CUDNN_PLAN, TDMI_CUDNN_A_PLAN_DEVICE, TDMI_CUDNN_A_PLAN_DEVICE,
         TDMI_CUDNN_T_DESCRIPTOR},
        {TDMI_CUDNN_PLAN, TDMI_CUDNN_A_PLAN_JSON, TDMI_CUDNN_A_PLAN_JSON, TDMI_CUDNN_T_CHAR},
        {TDMI_CUDNN_PACK, TDMI_CUDNN_A_PACK_NUMBERS, TDMI_CUDNN_A_PACK_NUMBERS, TDMI_CUDNN_T_INT64},
        {TDMI_CUDNN_PACK, TDMI_CUDNN_A_PACK_POINTERS, TDMI_CUDNN_A_PACK_WORKSPACE,
         TDMI_CUDNN_T_POINTER},
        {TDMI_CUDNN_DEVICE, TDMI_CUDNN_A_DEVICE_HANDLE, TDMI_CUDNN_A_DEVICE_HANDLE,
         TDMI_CUDNN_T_HANDLE},
        {TDMI_CUDNN_DEVICE, TDMI_CUDNN_A_DEVICE_JSON, TDMI_CUDNN_A_DEVICE_JSON, TDMI_CUDNN_T_CHAR},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].kind == kind && name >= rules[i].first && name <= rules[i].last)
            return rules[i].type == type;
    return false;
}

int cudnnBackendSetAttribute(tdmi_cudnn_descriptor descriptor, int name, int type, int64_t n,
                             const void *values)
{
    struct descriptor *it = descriptor;
    if (it->is_finished || !is_right(it->kind, name, type) || n < 1 || !values || find(it, name) ||
        it->n == most_attributes)
        return complain(bad_param, "attribute %d of type %d for kind %d", name, type, it->kind);
    struct attribute *to = &it->attributes[it->n++];
    *to = (struct attribute){name, type, n, malloc((size_t)n * bytes_of_type(type) + 8)};
    memset(to->values, 0, (size_t)n * bytes_of_type(type) + 8);
    memcpy(to->values, values, (size_t)n * bytes_of_type(type));
    return 0;
}

/* ---- finishing ------------------------------------------------------------------------------ */

static int finish_tensor(const struct descriptor *it)
{
    const struct attribute *dims = find(it, TDMI_CUDNN_A_TENSOR_DIMS);
    const struct attribute *strides = find(it, TDMI_CUDNN_A_TENSOR_STRIDES);
    if (!dims || !strides || dims->n != 4 || strides->n != 4 ||
        !find(it, TDMI_CUDNN_A_TENSOR_TYPE) || !find(it, TDMI_CUDNN_A_TENSOR_NUMBER) ||
        number(it, TDMI_CUDNN_A_TENSOR_ALIGNMENT, 0) != 16)
        return complain(bad_param, "a tensor that lacks something");
    for (int i = 0; i < 4; i++)
        if (((const int64_t *)dims->values)[i] < 1 || ((const int64_t *)strides->values)[i] < 1)
            return complain(bad_param, "a tensor of nothing");
    return 0;
}

/* The tensor's index in the graph, entered if new. */
static int enter(struct flat *flat, const struct descriptor *tensor)
{
    struct flat_tensor to = {.number = number(tensor, TDMI_CUDNN_A_TENSOR_NUMBER, 0),
                             .type = (int)number(tensor, TDMI_CUDNN_A_TENSOR_TYPE, 0)};
    const struct attribute *is_virtual = find(tensor, TDMI_CUDNN_A_TENSOR_VIRTUAL);
    to.is_virtual = is_virtual && *(const bool *)is_virtual->values;
    memcpy(to.dims, find(tensor, TDMI_CUDNN_A_TENSOR_DIMS)->values, sizeof to.dims);
    memcpy(to.strides, find(tensor, TDMI_CUDNN_A_TENSOR_STRIDES)->values, sizeof to.strides);
    for (int i = 0; i < flat->n_tensors; i++)
        if (flat->tensors[i].number == to.number)
            return i;
    flat->tensors[flat->n_tensors] = to;
    return flat->n_tensors++;
}

static void take_pair(const struct descriptor *it, int name, int64_t pair[2])
{
    memcpy(pair, find(it, name)->values, 2 * sizeof *pair);
}

static int enter_product(struct flat *flat, const struct descriptor *it,
                         struct flat_operation *operation, int of_x, int of_w, int of_y, int conv)
{
    const struct descriptor *x = child(it, of_x, TDMI_CUDNN_TENSOR);
    const struct descriptor *w = child(it, of_w, TDMI_CUDNN_TENSOR);
    const struct descriptor *y = child(it, of_y, TDMI_CUDNN_TENSOR);
    const struct descriptor *window = child(it, conv, TDMI_CUDNN_CONVOLUTION);
    int64_t after[2];
    if (!x || !w || !y || !window || number(window, TDMI_CUDNN_A_CONV_DIMS, 0) != 2 ||
        number(window, TDMI_CUDNN_A_CONV_MODE, 0) != TDMI_CUDNN_V_CROSS_CORRELATION ||
        number(window, TDMI_CUDNN_A_CONV_TYPE, -1) != TDMI_CUDNN_V_F32)
        return complain(bad_param, "a product that lacks something");
    take_pair(window, TDMI_CUDNN_A_CONV_BEFORE, operation->before);
    take_pair(window, TDMI_CUDNN_A_CONV_AFTER, after);
    take_pair(window, TDMI_CUDNN_A_CONV_STRIDES, operation->stride);
    take_pair(window, TDMI_CUDNN_A_CONV_DILATIONS, operation->dilation);
    const int ix = enter(flat, x), iw = enter(flat, w), iy = enter(flat, y);
    const struct flat_tensor *fx = &flat->tensors[ix], *fw = &flat->tensors[iw],
                             *fy = &flat->tensors[iy];
    for (int d = 0; d < 2; d++) {
        const int64_t reach = operation->dilation[d] * (fw->dims[2 + d] - 1) + 1;
        const int64_t room = fx->dims[2 + d] + operation->before[d] + after[d] - reach;
        if (operation->before[d] < 0 || after[d] < 0 || room < 0 ||
            room / operation->stride[d] + 1 != fy->dims[2 + d])
            return complain(bad_param, "a window that does not fit");
    }
    if (fx->dims[0] != fy->dims[0] || fw->dims[0] != fy->dims[1] ||
        fx->dims[1] % fw->dims[1] != 0 || fw->dims[0] % (fx->dims[1] / fw->dims[1]) != 0)
        return complain(bad_param, "channels or pictures that do not fit");
    if ((!fx->is_virtual && fx->type != fw->type) || (!fy->is_virtual && fy->type != fw->type))
        return complain(not_supported, "tensors of several types"); /* as 9.19 does, for a GPU */
    if (it->kind == TDMI_CUDNN_OF_FORWARD)
        operation->a = ix, operation->b = iw, operation->to = iy;
    else if (it->kind == TDMI_CUDNN_OF_DATA)
        operation->a = iy, operation->b = iw, operation->to = ix;
    else
        operation->a = ix, operation->b = iy, operation->to = iw;
    return 0;
}

static int enter_pointwise(struct flat *flat, const struct descriptor *it,
                           struct flat_operation *operation)
{
    const struct descriptor *how = child(it, TDMI_CUDNN_A_POINTWISE_OP, TDMI_CUDNN_POINTWISE);
    const struct descriptor *x = child(it, TDMI_CUDNN_A_POINTWISE_X, TDMI_CUDNN_TENSOR);
    const struct descriptor *b = child(it, TDMI_CUDNN_A_POINTWISE_B, TDMI_CUDNN_TENSOR);
    const struct descriptor *y = child(it, TDMI_CUDNN_A_POINTWISE_Y, TDMI_CUDNN_TENSOR);
    if (!how || !x || !y)
        return complain(bad_param, "an operation that lacks something");
    operation->mode = (int)number(how, TDMI_CUDNN_A_POINTWISE_MODE, -1);
    const struct attribute *lower = find(how, TDMI_CUDNN_A_RELU_LOWER);
    const struct attribute *upper = find(how, TDMI_CUDNN_A_RELU_UPPER);
    operation->lower = lower ? *(const double *)lower->values : 0.0;
    operation->upper = upper ? *(const double *)upper->values : 1e300;
    if ((operation->mode == TDMI_CUDNN_V_ADD) != (b != NULL))
        return complain(bad_param, "an addition of one, or an activation of two");
    operation->a = enter(flat, x);
    operation->b = b ? enter(flat, b) : -1;
    operation->to = enter(flat, y);
    return 0;
}

static int finish_graph(struct descriptor *it)
{
    const struct attribute *given = find(it, TDMI_CUDNN_A_GRAPH_OPS);
    struct flat *flat = &it->flat;
    if (!given || given->n > most_operations)
        return complain(bad_param, "a graph without operations");
    if (given->n > 1 && fake_cudnn.takes_no_pointwise)
        return complain(not_supported, "a graph of %d operations", (int)given->n);
    for (int64_t i = 0; i < given->n; i++) {
        const struct descriptor *of = ((struct descriptor **)given->values)[i];
        struct flat_operation *to = &flat->operations[flat->n_operations++];
        to->kind = of->kind;
        int code = of->is_finished ? 0 : complain(bad_param, "an operation that is not finished");
        if (code == 0 && of->kind == TDMI_CUDNN_OF_FORWARD)
            code = enter_product(flat, of, to, TDMI_CUDNN_A_FORWARD_X, TDMI_CUDNN_A_FORWARD_W,
                                 TDMI_CUDNN_A_FORWARD_Y, TDMI_CUDNN_A_FORWARD_CONV);
        else if (code == 0 && of->kind == TDMI_CUDNN_OF_DATA)
            code = enter_product(flat, of, to, TDMI_CUDNN_A_DATA_DX, TDMI_CUDNN_A_DATA_W,
                                 TDMI_CUDNN_A_DATA_DY, TDMI_CUDNN_A_DATA_CONV);
        else if (code == 0 && of->kind == TDMI_CUDNN_OF_FILTER)
            code = enter_product(flat, of, to, TDMI_CUDNN_A_WEIGHTS_X, TDMI_CUDNN_A_WEIGHTS_DW,
                                 TDMI_CUDNN_A_WEIGHTS_DY, TDMI_CUDNN_A_WEIGHTS_CONV);
        else if (code == 0)
            code = enter_pointwise(flat, of, to);
        if (code != 0)
            return code;
        const bool is_last = i + 1 == given->n;
        if (flat->tensors[to->to].is_virtual == is_last ||
            (i > 0 && to->a != flat->operations[i - 1].to))
            return complain(bad_param, "operations that are not in a row");
    }
    return 0;
}

/* ---- engines and plans ---------------------------------------------------------------------- */

static int64_t workspace_of(int engine)
{
    if (engine == FAKE_RIGHT || engine == FAKE_CORE)
        return fake_cudnn.right_bytes;
    return engine == FAKE_HUNGRY ? 1 << 30 : engine == FAKE_SLOW ? 4096 : 1000;
}

/* {"fake":"hex of the graph"} */
static const char json_begin[] = "{\"fake\":\"", json_end[] = "\"}";

static void write_plan(const struct flat *flat, char *to)
{
    const unsigned char *bytes = (const unsigned char *)flat;
    to += sprintf(to, "%s", json_begin);
    for (size_t i = 0; i < sizeof *flat; i++)
        to += sprintf(to, "%02x", bytes[i]);
    sprintf(to, "%s", json_end);
}

static size_t plan_bytes(void)
{
    return strlen(json_begin) + 2 * sizeof(struct flat) + strlen(json_end);
}

static int read_plan(struct descriptor *it, const char *json, int64_t n)
{
    unsigned char *bytes = (unsigned char *)&it->flat;
    if ((size_t)n != plan_bytes() || strncmp(json, json_begin, strlen(json_begin)) != 0)
        return complain(bad_param, "a plan that is none");
    json += strlen(json_begin);
    for (size_t i = 0; i < sizeof it->flat; i++) {
        unsigned byte;
        if (sscanf(json + 2 * i, "%2x", &byte) != 1)
            return complain(bad_param, "a plan that is damaged");
        bytes[i] = (unsigned char)byte;
    }
    return strncmp(json + 2 * sizeof it->flat, json_end, strlen(json_end)) == 0
               ? 0
               : complain(bad_param, "a plan that is damaged");
}

static int finish_plan(struct descriptor *it)
{
    const struct attribute *json = find(it, TDMI_CUDNN_A_PLAN_JSON);
    const struct descriptor *config = child(it, TDMI_CUDNN_A_PLAN_CONFIG, TDMI_CUDNN_CONFIG);
    if (!child(it, TDMI_CUDNN_A_PLAN_DEVICE, TDMI_CUDNN_DEVICE))
        return complain(bad_param, "a plan for no GPU");
    if (json)
        return read_plan(it, json->values, json->n);
    if (!config)
        return complain(bad_param, "a plan of nothing");
    it->flat = config->flat;
    it->flat.engine = config->engine;
    return config->engine == FAKE_REFUSES ? complain(not_supported, "engine %d", FAKE_REFUSES) : 0;
}

int cudnnBackendFinalize(tdmi_cudnn_descriptor descriptor)
{
    struct descriptor *it = descriptor;
    int code = 0;
    if (it->is_finished)
        return complain(bad_param, "finished twice");
    if (it->kind == TDMI_CUDNN_TENSOR)
        code = finish_tensor(it);
    else if (it->kind == TDMI_CUDNN_GRAPH)
        code = finish_graph(it);
    else if (it->kind == TDMI_CUDNN_PLAN)
        code = finish_plan(it);
    else if (it->kind == TDMI_CUDNN_HEURISTICS &&
             (!child(it, TDMI_CUDNN_A_HEUR_GRAPH, TDMI_CUDNN_GRAPH) ||
              !child(it, TDMI_CUDNN_A_HEUR_DEVICE, TDMI_CUDNN_DEVICE)))
        code = complain(bad_param, "a guess about nothing");
    it->is_finished = code == 0;
    return code;
}

static int guess(const struct descriptor *it, int64_t asked, int64_t *n, void *to)
{
    const bool is_best = number(it, TDMI_CUDNN_A_HEUR_MODE, -1) == TDMI_CUDNN_V_BEST_GUESS;
    const int first = is_best ? FAKE_UNORDERED : FAKE_FALLS_BACK;
    const int end = is_best ? FAKE_FALLS_BACK : FAKE_ENGINES;
    fake_cudnn.guesses++;
    *n = 0;
    for (int engine = first; engine < end && *n < asked; engine++) {
        if (is_best && fake_cudnn.guesses_nothing)
            break;
        struct descriptor *config = ((struct descriptor **)to)[(*n)++];
        config->engine = engine;
        config->flat = child(it, TDMI_CUDNN_A_HEUR_GRAPH, TDMI_CUDNN_GRAPH)->flat;
        config->is_finished = true;
    }
    return 0;
}

int cudnnBackendGetAttribute(tdmi_cudnn_descriptor descriptor, int name, int type, int64_t asked,
                             int64_t *n, void *to)
{
    struct descriptor *it = descriptor;
    if (!it->is_finished)
        return complain(bad_param, "read before it was finished");
    *n = 1;
    if (it->kind == TDMI_CUDNN_HEURISTICS && name == TDMI_CUDNN_A_HEUR_RESULTS)
        return guess(it, asked, n, to);
    if (it->kind == TDMI_CUDNN_CONFIG && name == TDMI_CUDNN_A_CONFIG_ENGINE) {
        struct descriptor *engine = *(struct descriptor **)to;
        engine->engine = it->engine;
        engine->is_finished = true;
        return 0;
    }
    if (it->kind == TDMI_CUDNN_PLAN && name == TDMI_CUDNN_A_PLAN_CONFIG) {
        struct descriptor *config = *(struct descriptor **)to;
        config->engine = it->flat.engine;
        config->flat = it->flat;
        config->is_finished = true;
        return 0;
    }
    if (it->kind == TDMI_CUDNN_ENGINE && name == TDMI_CUDNN_A_ENGINE_NUMBER) {
        *(int64_t *)to = it->engine;
        return 0;
    }
    if (it->kind == TDMI_CUDNN_ENGINE && name == TDMI_CUDNN_A_ENGINE_NOTES) {
        *n = it->engine == FAKE_UNORDERED || it->engine == FAKE_CORE;
        *(int *)to =
            it->engine == FAKE_CORE ? TDMI_CUDNN_V_TENSOR_CORE : TDMI_CUDNN_V_NOT_DETERMINISTIC;
        return 0;
    }
    if (it->kind == TDMI_CUDNN_PLAN && name == TDMI_CUDNN_A_PLAN_WORKSPACE) {
        *(int64_t *)to = workspace_of(it->flat.engine);
        return 0;
    }
    if (it->kind == TDMI_CUDNN_PLAN && name == TDMI_CUDNN_A_PLAN_JSON) {
        char *json = malloc(plan_bytes() + 1);
        *n = (int64_t)plan_bytes();
        write_plan(&it->flat, json);
        if (asked >= *n)
            memcpy(to, json, plan_bytes());
        free(json);
        return 0;
    }
    return complain(bad_param, "attribute %d of type %d of kind %d is asked for", name, type,
                    it->kind);
}

/* ---- running --------------------------------------------------------------------------------- */

/* Arguments of a queued graph, by value. */
struct queued {
    struct flat flat;
    void *at[most_tensors], *workspace;
    size_t workspace_bytes;
};

static void run_queued(void *self)
{
    const struct queued *it = self;
    struct fake_run run = {.flat = &it->flat};
    for (int t = 0; t < it->flat.n_tensors; t++) {
        const struct flat_tensor *tensor = &it->flat.tensors[t];
        run.at[t] = tensor->is_virtual ? malloc((size_t)fake_values_of(tensor) * sizeof(double))
                                       : it->at[t];
    }
    /* it is ours: what another keeps there is gone */
    memset(it->workspace, 0xff, it->workspace_bytes);
    fake_run_all(&run);
    for (int t = 0; t < it->flat.n_tensors; t++)
        if (it->flat.tensors[t].is_virtual)
            free(run.at[t]);
}

/* All tensors found, on 16 bytes. */
static int find_tensors(struct queued *run, const struct descriptor *pack)
{
    const struct attribute *numbers = find(pack, TDMI_CUDNN_A_PACK_NUMBERS);
    const struct attribute *pointers = find(pack, TDMI_CUDNN_A_PACK_POINTERS);
    if (!numbers || !pointers || numbers->n != pointers->n)
        return complain(bad_param, "a pack that lacks something");
    for (int t = 0; t < run->flat.n_tensors; t++) {
        const struct flat_tensor *it = &run->flat.tensors[t];
        for (int64_t i = 0; i < numbers->n && !it->is_virtual; i++)
            if (((const int64_t *)numbers->values)[i] == it->number)
                run->at[t] = ((void **)pointers->values)[i];
        if (!it->is_virtual && (!run->at[t] || (uintptr_t)run->at[t] % 16 != 0))
            return complain(bad_param, "tensor %d is not there", (int)it->number);
        if (!it->is_virtual && it->number < 4)
            fake_cudnn.last[it->number] = run->at[t];
    }
    return 0;
}

int cudnnBackendExecute(tdmi_cudnn_handle handle, tdmi_cudnn_descriptor plan,
                        tdmi_cudnn_descriptor pack)
{
    const struct descriptor *it = plan, *given = pack;
    struct queued queued = {.flat = it->flat};
    const struct attribute *workspace = find(given, TDMI_CUDNN_A_PACK_WORKSPACE);
    const int engine = it->flat.engine;
    if (!handle || !it->is_finished || !given->is_finished || !workspace)
        return complain(bad_param, "nothing to run");
    fake_cudnn.runs[engine]++;
    if (engine == FAKE_FAILS)
        return complain(failed, "engine %d", FAKE_FAILS);
    const long ns =
        fake_cudnn.every_ns + (engine == FAKE_SLOW ? fake_slow_ns : engine != FAKE_CORE);
    const int code = find_tensors(&queued, given);
    if (code != 0)
        return code;
    queued.workspace = *(void **)workspace->values;
    queued.workspace_bytes = (size_t)workspace_of(engine);
    if (fake_cudnn.launch)
        return fake_cudnn.launch(*(struct CUstream_st **)handle, run_queued, &queued, sizeof queued,
                                 ns);
    run_queued(&queued);
    return 0;
}
