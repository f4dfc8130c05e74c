/*
 * The functions of cuDNN 9's graph API that are used, found in the library by name, and the numbers
 * of NVIDIA's reference for descriptors, attributes, types and notes. They are written down so that
 * the code that calls cuDNN compiles, and is tested, without its headers; where these are
 * installed, a test compares them (tests/backend/cuda/test_library_numbers.c).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct CUstream_st;
typedef struct cudnnContext *tdmi_cudnn_handle;
typedef void *tdmi_cudnn_descriptor;

/* X(field, symbol, result, parameters) */
#define TDMI_CUDNN_CALLS(X)                                                       \
    X(version, cudnnGetVersion, size_t, (void))                                   \
    X(last_error, cudnnGetLastErrorString, void, (char *, size_t))                \
    X(create_handle, cudnnCreate, int, (tdmi_cudnn_handle *))                     \
    X(destroy_handle, cudnnDestroy, int, (tdmi_cudnn_handle))                     \
    X(set_stream, cudnnSetStream, int, (tdmi_cudnn_handle, struct CUstream_st *)) \
    X(create, cudnnBackendCreateDescriptor, int, (int, tdmi_cudnn_descriptor *))  \
    X(destroy, cudnnBackendDestroyDescriptor, int, (tdmi_cudnn_descriptor))       \
    X(finalize, cudnnBackendFinalize, int, (tdmi_cudnn_descriptor))               \
    X(set, cudnnBackendSetAttribute, int,                                         \
      (tdmi_cudnn_descriptor, int, int, int64_t, const void *))                   \
    X(get, cudnnBackendGetAttribute, int,                                         \
      (tdmi_cudnn_descriptor, int, int, int64_t, int64_t *, void *))              \
    X(execute, cudnnBackendExecute, int,                                          \
      (tdmi_cudnn_handle, tdmi_cudnn_descriptor, tdmi_cudnn_descriptor))

struct tdmi_cudnn_calls {
#define X(field, symbol, result, parameters) result(*field) parameters;
    TDMI_CUDNN_CALLS(X)
#undef X
};

/* X(ours, theirs, number): kinds of descriptors */
#define TDMI_CUDNN_KINDS(X)                                                          \
    X(POINTWISE, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, 0)                              \
    X(CONVOLUTION, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, 1)                          \
    X(ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 2)                                    \
    X(CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, 3)                                 \
    X(HEURISTICS, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, 4)                            \
    X(PLAN, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, 5)                              \
    X(OF_FORWARD, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, 10)        \
    X(OF_FILTER, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, 11) \
    X(OF_DATA, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, 12)     \
    X(OF_POINTWISE, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, 13)                \
    X(GRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, 15)                            \
    X(PACK, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, 16)                               \
    X(TENSOR, CUDNN_BACKEND_TENSOR_DESCRIPTOR, 17)                                   \
    X(DEVICE, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, 38)

/* Attributes, with the type of what is set or read. */
#define TDMI_CUDNN_ATTRIBUTES(X)                                                \
    X(POINTWISE_MODE, CUDNN_ATTR_POINTWISE_MODE, 0)                             \
    X(POINTWISE_TYPE, CUDNN_ATTR_POINTWISE_MATH_PREC, 1)                        \
    X(RELU_LOWER, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, 3)                      \
    X(RELU_UPPER, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, 4)                      \
    X(CONV_TYPE, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, 100)                         \
    X(CONV_MODE, CUDNN_ATTR_CONVOLUTION_CONV_MODE, 101)                         \
    X(CONV_DILATIONS, CUDNN_ATTR_CONVOLUTION_DILATIONS, 102)                    \
    X(CONV_STRIDES, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 103)                 \
    X(CONV_AFTER, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 104)                    \
    X(CONV_BEFORE, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 105)                    \
    X(CONV_DIMS, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 106)                      \
    X(HEUR_MODE, CUDNN_ATTR_ENGINEHEUR_MODE, 200)                               \
    X(HEUR_GRAPH, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 201)                   \
    X(HEUR_RESULTS, CUDNN_ATTR_ENGINEHEUR_RESULTS, 202)                         \
    X(HEUR_DEVICE, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, 204)                       \
    X(CONFIG_ENGINE, CUDNN_ATTR_ENGINECFG_ENGINE, 300)                          \
    X(PLAN_CONFIG, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 401)                \
    X(PLAN_WORKSPACE, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 402)            \
    X(PLAN_JSON, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, 405)            \
    X(PLAN_DEVICE, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, 407)                   \
    X(FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 700)       \
    X(FORWARD_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 701)         \
    X(FORWARD_CONV, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, 702)    \
    X(FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, 703)               \
    X(FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, 704)               \
    X(FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, 705)               \
    X(DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 706)         \
    X(DATA_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, 707)           \
    X(DATA_CONV, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, 708)      \
    X(DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, 709)                 \
    X(DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, 710)               \
    X(DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, 711)               \
    X(WEIGHTS_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, 712)    \
    X(WEIGHTS_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, 713)      \
    X(WEIGHTS_CONV, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, 714) \
    X(WEIGHTS_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, 715)          \
    X(WEIGHTS_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, 716)            \
    X(WEIGHTS_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, 717)          \
    X(POINTWISE_OP, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 750)          \
    X(POINTWISE_X, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, 751)                   \
    X(POINTWISE_B, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, 752)                   \
    X(POINTWISE_Y, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, 753)                   \
    X(GRAPH_OPS, CUDNN_ATTR_OPERATIONGRAPH_OPS, 801)                            \
    X(TENSOR_ALIGNMENT, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 900)                  \
    X(TENSOR_TYPE, CUDNN_ATTR_TENSOR_DATA_TYPE, 901)                            \
    X(TENSOR_DIMS, CUDNN_ATTR_TENSOR_DIMENSIONS, 902)                           \
    X(TENSOR_STRIDES, CUDNN_ATTR_TENSOR_STRIDES, 903)                           \
    X(TENSOR_NUMBER, CUDNN_ATTR_TENSOR_UNIQUE_ID, 906)                          \
    X(TENSOR_VIRTUAL, CUDNN_ATTR_TENSOR_IS_VIRTUAL, 907)                        \
    X(PACK_NUMBERS, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, 1000)                   \
    X(PACK_POINTERS, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, 1001)               \
    X(PACK_WORKSPACE, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 1003)                  \
    X(ENGINE_NUMBER, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 1301)                      \
    X(ENGINE_NOTES, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, 1303)                     \
    X(DEVICE_HANDLE, CUDNN_ATTR_DEVICEPROP_HANDLE, 2701)                        \
    X(DEVICE_JSON, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, 2702)

/* Types of attributes. */
#define TDMI_CUDNN_TYPES(X)                          \
    X(HANDLE, CUDNN_TYPE_HANDLE, 0)                  \
    X(DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1)            \
    X(BOOLEAN, CUDNN_TYPE_BOOLEAN, 2)                \
    X(INT64, CUDNN_TYPE_INT64, 3)                    \
    X(FLOAT, CUDNN_TYPE_FLOAT, 4)                    \
    X(DOUBLE, CUDNN_TYPE_DOUBLE, 5)                  \
    X(POINTER, CUDNN_TYPE_VOID_PTR, 6)               \
    X(CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 7)     \
    X(HEUR_MODE, CUDNN_TYPE_HEUR_MODE, 8)            \
    X(NOTE, CUDNN_TYPE_NUMERICAL_NOTE, 11)           \
    X(POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 14) \
    X(DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 15) \
    X(CHAR, CUDNN_TYPE_CHAR, 24)

/* Values of attributes. */
#define TDMI_CUDNN_VALUES(X)                                       \
    X(F32, CUDNN_DATA_FLOAT, 0)                                    \
    X(F16, CUDNN_DATA_HALF, 2)                                     \
    X(BF16, CUDNN_DATA_BFLOAT16, 9)                                \
    X(CROSS_CORRELATION, CUDNN_CROSS_CORRELATION, 1)               \
    X(ADD, CUDNN_POINTWISE_ADD, 0)                                 \
    X(RELU, CUDNN_POINTWISE_RELU_FWD, 100)                         \
    X(BEST_GUESS, CUDNN_HEUR_MODE_A, 3)                            \
    X(FALLBACK, CUDNN_HEUR_MODE_FALLBACK, 2)                       \
    X(TENSOR_CORE, CUDNN_NUMERICAL_NOTE_TENSOR_CORE, 0)            \
    X(DOWN_CONVERTS, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, 1)  \
    X(NOT_DETERMINISTIC, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, 4) \
    X(STRICT_NAN, CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP, 9)         \
    X(NOTES, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, 10)

#define X(ours, theirs, number) TDMI_CUDNN_##ours = (number),
enum tdmi_cudnn_kind { TDMI_CUDNN_KINDS(X) };
#undef X
#define X(ours, theirs, number) TDMI_CUDNN_A_##ours = (number),
enum tdmi_cudnn_attribute { TDMI_CUDNN_ATTRIBUTES(X) };
#undef X
#define X(ours, theirs, number) TDMI_CUDNN_T_##ours = (number),
enum tdmi_cudnn_type { TDMI_CUDNN_TYPES(X) };
#undef X
#define X(ours, theirs, number) TDMI_CUDNN_V_##ours = (number),
enum tdmi_cudnn_value { TDMI_CUDNN_VALUES(X) };
#undef X
