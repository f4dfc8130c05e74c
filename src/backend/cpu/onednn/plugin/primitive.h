/*
 * One oneDNN primitive, made once and run by any number of threads. oneDNN's memory objects name
 * the arrays of one call, so each thread in a call needs a set of its own: a *seat*. Seats are made
 * with the primitive, one a CPU, so that running allocates nothing of ours.
 *
 * A call runs on the calling thread alone: oneDNN divides work by OpenMP, whose thread count is set
 * to one around each call and put back afterwards.
 *
 * The files of this folder are libtandem_onednn.so; table.c is what it hands out.
 */
#pragma once

#include "backend/cpu/onednn/library.h"
#include "base/scope.h"
#include "base/system/signals.h"

#include <oneapi/dnnl/dnnl.h>

enum { TDMI_ONEDNN_ARGUMENTS = 8 };

/* An argument of a primitive: DNNL_ARG_… and its layout. A NULL layout is left out. */
struct tdmi_onednn_argument {
    int name;
    const_dnnl_memory_desc_t layout;
};

typedef struct tdmi_onednn_primitive tdmi_onednn_primitive;

/* The plan is the caller's still. Run's arrays come in the order of arguments. */
tdm_status tdmi_onednn_primitive_open(const_dnnl_primitive_desc_t plan,
                                      const struct tdmi_onednn_argument *arguments, int n_arguments,
                                      tdmi_onednn_primitive **primitive,
                                      tdm_error *err) TDM_MUST_USE;
void tdmi_onednn_primitive_close(tdmi_onednn_primitive *primitive);
/* False when oneDNN refused, or has no room: the outputs are not written. */
bool tdmi_onednn_primitive_run(tdmi_onednn_primitive *primitive, const void *const *arrays);

/* Where oneDNN gets no memory it throws C++ exceptions out of its C functions, or follows NULL, and
 * its OpenMP ends the program, already where its thread count is set: so nothing of it that makes
 * something is called without more room than the largest of them took here, 11 MiB for the first
 * product of a size; nor what runs it without room for its small lists.
 */
enum { TDMI_ONEDNN_ROOM_TO_MAKE = 16 << 20, TDMI_ONEDNN_ROOM_TO_RUN = 32 << 10 };

/* TDM_E_MEMORY, about what: "a convolution". */
tdm_status tdmi_onednn_need_room(const char *what, tdm_error *err) TDM_MUST_USE;
/* A status of oneDNN's as one of ours; what is "an f32 convolution". */
tdm_status tdmi_onednn_explain(dnnl_status_t code, const char *what, tdm_error *err) TDM_MUST_USE;
/* Return from the calling function when a call of oneDNN fails. */
#define TDMI_ONEDNN_TRY(what, call) TDMI_TRY(tdmi_onednn_explain((call), (what), err))

/* Define destroy_at for TDMI_AT_END, where the object may never have been made. */
#define TDMI_ONEDNN_RELEASE(type, destroy)        \
    static inline void destroy##_at(type *object) \
    {                                             \
        if (*object)                              \
            destroy(*object);                     \
    }
TDMI_ONEDNN_RELEASE(dnnl_engine_t, dnnl_engine_destroy)
TDMI_ONEDNN_RELEASE(dnnl_stream_t, dnnl_stream_destroy)
TDMI_ONEDNN_RELEASE(dnnl_memory_t, dnnl_memory_destroy)
TDMI_ONEDNN_RELEASE(dnnl_memory_desc_t, dnnl_memory_desc_destroy)
TDMI_ONEDNN_RELEASE(dnnl_primitive_t, dnnl_primitive_destroy)
TDMI_ONEDNN_RELEASE(dnnl_primitive_desc_t, dnnl_primitive_desc_destroy)
TDMI_ONEDNN_RELEASE(dnnl_primitive_attr_t, dnnl_primitive_attr_destroy)
TDMI_ONEDNN_RELEASE(dnnl_post_ops_t, dnnl_post_ops_destroy)

size_t tdmi_onednn_scratch_bytes(const_dnnl_primitive_desc_t plan);

/* Between these two there is one thread, because primitives are for as many as there are when they
 * are made, and no signal reaches this thread: while oneDNN's product runs, the stack pointer is
 * inside an array of the heap, and a handler would write behind it. */
struct tdmi_onednn_before {
    int threads;
    sigset_t signals;
};
struct tdmi_onednn_before tdmi_onednn_enter(void);
void tdmi_onednn_leave(const struct tdmi_onednn_before *before);

/* Entries of the library's table. */
extern const struct tdmi_onednn_conv_table tdmi_onednn_convs;
extern const struct tdmi_matmul_method tdmi_onednn_matmul;
bool tdmi_onednn_multiply(const struct tdmi_onednn_product *product);
