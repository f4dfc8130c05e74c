/*
 * A backend: four small tables (device, memory, stream, kernels) in one const struct, listed in
 * backends.def. Everything above works through it, so where a network runs shows up nowhere else.
 *
 *     plan  kernel->prepare and ->needs: saved and workspace memory of each desc
 *     bind  the graph's memory plan places it in memory of this backend; kernel->pack: new weights
 *     run   kernel->forward / backward, queued on a stream; nothing is allocated any more
 */
#pragma once

#include "backend/op.h"
#include "backend/peers.h"
#include "backend/update.h"
#include "tandem/error.h"

typedef struct tdmi_device tdmi_device; /* an opened GPU, or the CPU */
typedef struct tdmi_stream tdmi_stream; /* work in order; a CPU stream runs at once */
typedef struct tdmi_event tdmi_event;
typedef struct tdmi_recording tdmi_recording; /* queued work that can be replayed */

/* A library that a backend computes with where it is installed. */
struct tdmi_backend_library {
    const char *name; /* "cuDNN" */
    bool is_found;
    char version[40];
    char file[512];      /* path of the library; "": part of the backend itself */
    char problem[240];   /* why it is not found, else "" */
    const char *without; /* "convolutions are computed by …" */
};

enum { TDMI_DEVICE_NAME_BYTES = 40 };

struct tdmi_device_table {
    int (*count)(void);
    /* TDM_E_ABSENT when there is no such device. */
    tdm_status (*open)(int index, tdmi_device **device, tdm_error *err);
    void (*close)(tdmi_device *device);
    /* Name of the device and versions of the libraries that compute: bits of results may differ
     * between two descriptions. */
    void (*describe)(const tdmi_device *device, char *text, size_t text_bytes);
    bool is_host; /* its memory is ordinary memory: pointers may be followed */
    /* Bytes of its own memory: free now and in total; false: unknown. NULL: it has none of its
     * own. */
    bool (*memory)(const tdmi_device *device, int64_t *free_bytes, int64_t *total_bytes);
    /* Optional; NULL: nothing that changes bits is chosen by timing. From now on kernels read the
     * algorithms that they choose from this folder, and store new choices there. */
    void (*keep)(tdmi_device *device, const char *folder);
    /* Optional; NULL: it computes with none. Describe the library of this number, counted from 0;
     * works without a device too. False past the last. */
    bool (*library)(int index, struct tdmi_backend_library *library);
    /* All three NULL where memory is the host's.
     * identify: a name that no other device has; the names of all devices have the same length.
     * write_choices: the algorithms that this device's kernels have chosen, as text (tdmi_free;
     * NULL: no memory). read_choices: kernels of this device choose those of the text, which comes
     * from a device of the same kind and is lent until the next text or until the device is closed.
     */
    const char *(*identify)(const tdmi_device *device);
    char *(*write_choices)(tdmi_device *device);
    void (*read_choices)(tdmi_device *device, const char *text);
};

struct tdmi_memory_table {
    /* Zeroed, aligned to 64 bytes; NULL when there is not so much. */
    void *(*alloc)(tdmi_device *device, size_t bytes);
    void (*free)(tdmi_device *device, void *memory);
    tdm_status (*upload)(tdmi_stream *stream, void *to, const void *from, size_t bytes,
                         tdm_error *err);
    tdm_status (*download)(tdmi_stream *stream, void *to, const void *from, size_t bytes,
                           tdm_error *err);
    /* All bytes become 0. */
    void (*clear)(tdmi_stream *stream, void *memory, size_t bytes);
    /* Optional, a pair; NULL: any ordinary memory does. Host memory that is copied to the device
     * without an intermediate copy, while the caller continues. Several ranks need it. */
    void *(*alloc_pinned)(tdmi_device *device, size_t bytes);
    void (*free_pinned)(tdmi_device *device, void *memory);
    /* Optional; NULL: no rows are kept on the device. Queued as a kernel is, and may be recorded:
     * row i of `to` becomes row numbers[i] of the table, i from 0 to n - 1. All arrays are on the
     * device. */
    void (*gather)(tdmi_stream *stream, const void *table, size_t row_bytes, const int64_t *numbers,
                   int n, void *to);
};

struct tdmi_stream_table {
    tdm_status (*open)(tdmi_device *device, tdmi_stream **stream, tdm_error *err);
    void (*close)(tdmi_stream *stream);
    tdm_status (*wait)(tdmi_stream *stream, tdm_error *err); /* until all queued work is done */
    /* Optional: NULL where streams run at once. */
    tdm_status (*event_open)(tdmi_device *device, tdmi_event **event, tdm_error *err);
    void (*event_close)(tdmi_event *event);
    tdm_status (*event_record)(tdmi_stream *stream, tdmi_event *event, tdm_error *err);
    tdm_status (*event_wait)(tdmi_stream *stream, tdmi_event *event, tdm_error *err);
    /* Optional, all of them or none. Kernels that the calling thread queues between begin and end
     * are recorded and do not run; nothing may be reserved, waited for or copied from or to the
     * host meanwhile. A replay queues them all with the arguments that they were recorded with:
     * values that change from step to step lie in memory. After a failure there is no recording,
     * and a replay that failed has queued nothing. Streams that the thread makes wait for an event
     * of the recorded one are recorded with it, until it has waited for them. A recording is closed
     * before the streams that recorded and replayed it, and waits for the last of them. */
    tdm_status (*capture_begin)(tdmi_stream *stream, tdm_error *err);
    tdm_status (*capture_end)(tdmi_stream *stream, tdmi_recording **recording, tdm_error *err);
    tdm_status (*replay)(tdmi_stream *stream, tdmi_recording *recording, tdm_error *err);
    void (*recording_close)(tdmi_recording *recording);
};

struct tdmi_kernel_needs {
    size_t saved_bytes;     /* from forward to backward; 0 when not training */
    size_t workspace_bytes; /* the larger of both directions */
    size_t packed_bytes;    /* size of packed weights; 0: it reads the weights unpacked */
};

typedef void tdmi_kernel_run(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                             const struct tdmi_op_call *call);

/* Begin the definition of a kernel's function: TDMI_KERNEL_RUN(forward) { … } is a tdmi_kernel_run,
 * TDMI_KERNEL_PACK(pack) { … } is kernel->pack. Many need only some of the parameters. */
#define TDMI_UNUSED __attribute__((unused))
#define TDMI_KERNEL_RUN(name)                                                                      \
    static void name(tdmi_stream *stream TDMI_UNUSED, const struct tdmi_op_desc *desc TDMI_UNUSED, \
                     const struct tdmi_op_call *call)
#define TDMI_KERNEL_PACK(name)                                                                     \
    static void name(tdmi_stream *stream TDMI_UNUSED, const struct tdmi_op_desc *desc TDMI_UNUSED, \
                     const struct tdmi_pack_call *call)

struct tdmi_chain_table;

/* How the threads of a team divide a call among them. */
enum tdmi_sharing {
    TDMI_SHARING_NONE,   /* one of them computes it */
    TDMI_SHARING_IMAGES, /* each computes some of the images, which do not meet in this op */
    TDMI_SHARING_OWN     /* all run the kernel, which divides its work by call->member */
};

/* The algorithm that computes a desc, for reports. */
struct tdmi_kernel_algorithm {
    char by[56];            /* "cuDNN engine 12"; "": nothing to report, or not computed */
    size_t workspace_bytes; /* workspace of this algorithm */
};
struct tdmi_kernel_algorithms {
    struct tdmi_kernel_algorithm forward, of_input, of_weights; /* gradients, in training */
};

struct tdmi_kernel {
    /* Optional: NULL means every desc that passed the op's own shape rule. It ignores fusion. */
    bool (*can_run)(const struct tdmi_op_desc *desc);
    /* Optional: NULL means the op alone. Can it do everything in desc->fusion? */
    bool (*can_fuse)(const struct tdmi_op_desc *desc);
    /* Does it add dx_add? Kernels that can fuse a read form must. */
    bool adds_dx;
    /* Optional, a pair: make the state that all calls of a desc share, on any thread; calls only
     * read it. */
    tdm_status (*prepare)(const struct tdmi_op_desc *desc, void **prepared, tdm_error *err);
    void (*release)(void *prepared);
    /* Optional: NULL means nothing. Call it through tdmi_kernel_needs_of. */
    void (*needs)(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs);
    /* Optional; NULL where there is nothing to choose from. The desc is prepared, and algorithms is
     * all 0. */
    void (*describe)(const struct tdmi_op_desc *desc, struct tdmi_kernel_algorithms *algorithms);
    /* Optional: the name of the algorithm of a kernel that another one chooses from a list. */
    const char *algorithm;
    /* Required when needs asks for packed bytes. */
    void (*pack)(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                 const struct tdmi_pack_call *call);
    tdmi_kernel_run *forward;
    tdmi_kernel_run *backward; /* NULL for ops that never see a gradient (input) */
    enum tdmi_sharing shares_forward, shares_backward;
    /* batch_norm, training: fill call->norm.sums from x, or from x and dy, where no neighbour did.
     */
    tdmi_kernel_run *reduce_forward, *reduce_backward;
    /* Optional: NULL means one op a call. */
    const struct tdmi_chain_table *chain;
};

/* Ops of one kind in a row, each the only reader of the one before, in one call without training:
 * the tensors between them are never written as a whole, and have no memory in the plan. */
enum { TDMI_CHAIN_LINKS = 3 };

struct tdmi_chain_table {
    /* May these n descs, as they are fused, run so, and is it faster? */
    bool (*can_run)(const struct tdmi_op_desc *const *links, int n);
    size_t (*workspace_bytes)(const struct tdmi_op_desc *const *links, int n);
    /* The first of the calls has x, the last y and workspace; each has its own weights; only the
     * last may have a residual. */
    void (*forward)(tdmi_stream *stream, const struct tdmi_op_desc *const *links,
                    const struct tdmi_op_call *calls, int n);
};

/* One optimiser step over one run of values that share all hyper-parameters. */
struct tdmi_update_call {
    float *params;
    const float *gradient_sums;
    float *slots[TDMI_UPDATE_SLOTS]; /* the optimiser's own, as many as it keeps */
    int64_t n;
    float gradient_scale; /* 1 / samples: sums become means here, after every reduction */
    float learning_rate, momentum, weight_decay;
    bool is_nesterov;
    struct tdmi_moments moments;
};

/* Formulas: backend/ref/update.c. Every backend on ordinary memory gives ref's bits. */
struct tdmi_update_table {
    void (*sgd)(tdmi_stream *stream, const struct tdmi_update_call *call);
    /* Slots: mean of squares, momentum. */
    void (*rmsprop)(tdmi_stream *stream, const struct tdmi_update_call *call);
    /* Slots of these three: mean, mean of squares. */
    void (*adam)(tdmi_stream *stream, const struct tdmi_update_call *call);
    /* LAMB in halves: moves the slots and adds up the squares of the weights and of the step that
     * is due; then takes that step. */
    void (*lamb_measure)(tdmi_stream *stream, const struct tdmi_update_call *call,
                         double squares[2]);
    void (*lamb_step)(tdmi_stream *stream, const struct tdmi_update_call *call);
    /* *sum = the sum of squares, on the host once the stream has reached this call */
    void (*squares)(tdmi_stream *stream, const float *values, int64_t n, double *sum);
    /* states = (1 - momentum) · states + momentum · sums · scale */
    void (*blend)(tdmi_stream *stream, float *states, const float *sums, int64_t n, float scale,
                  float momentum);
    /* to += from: sums of two groups, or gradients of a tensor that several nodes read. Of a type
     * that the backend stores activations as (tdmi_backend.storages), or f32. */
    void (*accumulate)(tdmi_stream *stream, enum tdmi_dtype type, void *to, const void *from,
                       int64_t n);
    /* Totals of a group of n samples: tail gets TDMI_TAIL_VALUES. A mixed sample counts as the
     * class with the larger weight. mixed NULL: none is mixed. */
    void (*tail)(tdmi_stream *stream, const struct tdmi_judgement *judgements,
                 const int32_t *labels, const struct tdmi_mixed_label *mixed, int n, float *tail);

    /* Optional, all three or none: a step of all tensors in one launch, for backends that queue
     * (backend/update.h). Without them each piece is one call of the functions above, which must
     * then be set. The pieces are copied. */
    tdm_status (*open)(tdmi_stream *stream, const struct tdmi_update_arrays *arrays,
                       const struct tdmi_update_piece *pieces, int n, tdmi_update_list **list,
                       tdm_error *err);
    void (*close)(tdmi_update_list *list);
    /* sums and facts lie on the device. */
    void (*run)(tdmi_stream *stream, tdmi_update_list *list, struct tdmi_update_method way,
                const float *sums, const struct tdmi_step_facts *facts);
};

struct tdmi_augment_change;
struct tdmi_mix;

/* Changes that the op input makes to images as it converts their bytes to numbers: the rest that
 * tdmi_augment_divide leaves, and mixing (image/augment/augment.h). */
struct tdmi_change_table {
    size_t bytes; /* size of the change of one image, as the op input reads it */
    /* Write one on the host. mix NULL: no mixing; otherwise it names positions in the group, and so
     * does `own`. */
    void (*put)(void *to, const struct tdmi_augment_change *change, const struct tdmi_mix *mix,
                int own);
};

struct tdmi_decoder;
struct tdmi_backend;

/* Decoding image files for the host (image/decoder.h). */
struct tdmi_picture_table {
    /* Closed before the device is. TDM_E_ABSENT: a library that it needs is missing. */
    tdm_status (*open)(const struct tdmi_backend *backend, tdmi_device *device,
                       const struct tdmi_decoder **decoder, tdm_error *err);
    void (*close)(const struct tdmi_decoder *decoder); /* NULL is accepted */
};

struct tdmi_backend {
    const char *name;    /* "ref" */
    const char *summary; /* "plain C, the reference for the other backends" */
    struct tdmi_device_table device;
    struct tdmi_memory_table memory;
    struct tdmi_stream_table stream;
    const struct tdmi_kernel *const *kernels; /* TDMI_OP_KINDS; NULL where it lacks the op */
    unsigned storages; /* of activations beside f32: 1 << TDMI_DTYPE_BF16 | … */
    const struct tdmi_update_table *update;
    const struct tdmi_change_table *changes;   /* NULL: it changes no images */
    const struct tdmi_picture_table *pictures; /* NULL: it decodes none */
    const struct tdmi_peer_table *peers;       /* NULL: memory is the host's */
};

#define X(backend) extern const struct tdmi_backend backend;
#include "backend/backends.def"
#undef X

/* Can its kernels store activations as this type? */
bool tdmi_backend_stores(const struct tdmi_backend *backend, enum tdmi_dtype type);

/* Find a backend by its name in backends.def, or "cpu": the best one that runs on the host. A name
 * may end in a device number ("cuda:1"), returned in *index. TDM_E_USAGE lists the names;
 * TDM_E_ABSENT: no such device. */
tdm_status tdmi_backend_find(const char *name, const struct tdmi_backend **backend, int *index,
                             tdm_error *err) TDM_MUST_USE;
/* Would tdmi_backend_find accept the name? Whether the device exists is found by opening it. */
bool tdmi_backend_knows(const char *name);
/* The same for names that list GPUs for ranks: "cuda:0,2", "cuda:all". */
bool tdmi_backend_is_list(const char *name);
/* Processes that a name asks for: one for each GPU of a list; 1 for any other name. */
tdm_status tdmi_backend_ranks_for(const char *name, int *n, tdm_error *err) TDM_MUST_USE;
/* The name of the device of a rank, counted among those of its machine: rank i takes GPU i of the
 * list, or of all, and counts from the first again where there are fewer. Names that say nothing
 * about ranks stay. TDM_E_USAGE: a list, in a world of one. */
tdm_status tdmi_backend_of_rank(const char *name, int world, int local_rank,
                                char device[TDMI_DEVICE_NAME_BYTES], tdm_error *err) TDM_MUST_USE;
/* The backends that are part of libtandem, NULL past the end. */
const struct tdmi_backend *tdmi_backend_at(int index);
/* In a kernel that needs neither workspace nor saved memory: */
#define TDMI_SHARES_IMAGES \
    .shares_forward = TDMI_SHARING_IMAGES, .shares_backward = TDMI_SHARING_IMAGES

/* Run one call as a member of its team (call->member), and alone where there is none. Members must
 * wait for each other before they read its results. */
void tdmi_kernel_run_shared(tdmi_kernel_run *run, enum tdmi_sharing sharing, tdmi_stream *stream,
                            const struct tdmi_op_desc *desc, const struct tdmi_op_call *call);
/* Memory that this kernel needs for a prepared desc; all 0 where it has no needs. */
struct tdmi_kernel_needs tdmi_kernel_needs_of(const struct tdmi_kernel *kernel,
                                              const struct tdmi_op_desc *desc);
/* Backend cuda, which is libtandem_cuda.so (base/system/plugin.h): opened with the first call.
 * TDM_E_ABSENT: this build has none, or it cannot be opened here. */
tdm_status tdmi_cuda_backend(const struct tdmi_backend **backend, tdm_error *err) TDM_MUST_USE;
