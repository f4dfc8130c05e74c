/*
 * One op on one backend with memory of its own. Host arrays go in and come out; everything a kernel
 * must write is filled with NaN first, so that a value it forgot, or added to instead of writing,
 * is noticed.
 */
#pragma once

#include "backend/backend.h"
#include "base/arena.h"

/* Listed in cases.def: run on every backend against the reference, against central differences, and
 * twice for equal bits. */
struct tdmi_case {
    const char *name; /* "3×3 stride 2, odd image" */
    enum tdmi_op_kind kind;
    struct tdmi_op_attrs attrs;
    struct tdmi_shape in;
    int n;          /* images in the call */
    int max_images; /* of the plan: more than n where a ragged group is meant */
};

/* NULL past the end. */
const struct tdmi_case *tdmi_case_at(int index);

/* Tensors of an op, as one list that a check loops over: second inputs have the shape of the first,
 * states are the running statistics when not training, loss is one a sample of loss ops. */
#define TDMI_T_LIST(ITEM)                    \
    ITEM(X, "input")                         \
    ITEM(SECOND_X, "second input")           \
    ITEM(PARAM0, "parameter 0")              \
    ITEM(PARAM1, "parameter 1")              \
    ITEM(STATE0, "state 0")                  \
    ITEM(STATE1, "state 1")                  \
    ITEM(Y, "output")                        \
    ITEM(DX, "input gradient")               \
    ITEM(SECOND_DX, "second input gradient") \
    ITEM(DPARAM0, "parameter 0 gradient")    \
    ITEM(DPARAM1, "parameter 1 gradient")    \
    ITEM(STATE_SUM0, "state sum 0")          \
    ITEM(STATE_SUM1, "state sum 1")          \
    ITEM(LOSS, "loss")

enum tdmi_op_tensor {
#define ITEM(tensor, name) TDMI_T_##tensor,
    TDMI_T_LIST(ITEM)
#undef ITEM
        TDMI_T_TENSORS
};

struct tdmi_op_values {
    enum tdmi_dtype storage;   /* of the tensors that the op may store so; here all are floats */
    float *of[TDMI_T_TENSORS]; /* NULL: this op lacks it */
    int64_t n[TDMI_T_TENSORS];
    float *dy;
    int64_t n_dy;
    uint8_t *pixels;                /* of input */
    int32_t *labels;                /* of loss ops */
    struct tdmi_mixed_label *mixed; /* of loss ops */
    int32_t *predicted;
    float *class_weights; /* of loss ops, where the number of images is odd */
    int64_t *samples;     /* keys of dropout's draws */
};

/* Room for all tensors of the case in the arena, inputs filled from the counter generator: away
 * from kinks by much more than a central difference steps. */
tdm_status tdmi_op_values_make(const struct tdmi_case *it, bool is_training, tdmi_arena *arena,
                               struct tdmi_op_values *values, tdm_error *err) TDM_MUST_USE;

/* Run forward and, when training and the op has one, backward, with the inputs of values; its
 * outputs are replaced. TDM_E_ABSENT: this backend lacks the op. */
tdm_status tdmi_op_run(const struct tdmi_backend *backend, tdmi_device *device,
                       const struct tdmi_case *it, bool is_training, struct tdmi_op_values *values,
                       tdm_error *err) TDM_MUST_USE;

/* Round every input to the values of the type. */
tdm_status tdmi_op_values_round(struct tdmi_op_values *values, enum tdmi_dtype storage,
                                tdmi_arena *arena, tdm_error *err) TDM_MUST_USE;

/* The algorithms that compute the case in training, its activations stored as the type. */
tdm_status tdmi_op_describe(const struct tdmi_backend *backend, tdmi_device *device,
                            const struct tdmi_case *it, enum tdmi_dtype storage,
                            struct tdmi_kernel_algorithms *algorithms, tdm_error *err) TDM_MUST_USE;

const char *tdmi_op_tensor_name(enum tdmi_op_tensor tensor);
