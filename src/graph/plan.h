/*
 * The plan of one network on one backend: which buffer lies where in one arena, and in which
 * segments its backward pass hands out finished gradients. Made once for a largest group; any
 * smaller one runs with it.
 *
 * Time is counted in node visits: node i runs forward at time i and backward at 2·nodes - 1 - i. A
 * buffer lives from its first write to its last read, and buffers that never live together share
 * bytes:
 *
 *     time      0      1      2      3  |  4      5      6      7
 *               input  conv   relu   softmax ...  relu'  conv'
 *     y0        [─────────────────────────────────────────────]     read by conv'
 *     y1               [──────]                                     relu' reads y2, not y1
 *     y2                      [───────────────────────]
 *     dy2                                     [────────]
 *     dy1                                             [───────]     may take y1's place
 *
 * Without training on the host, activations and workspace lie apart, activations by image: an
 * executor that never runs as many images as max_images has memory for those that it runs.
 *
 * Outer parts: `tdmi_executor` (graph/executor.h) binds a plan to memory and runs it.
 */
#pragma once

#include "backend/backend.h"
#include "base/scope.h"
#include "base/text/text.h"
#include "graph/graph.h"

struct tdmi_buffer {
    size_t bytes;     /* 0: not needed */
    size_t offset;    /* in the arena */
    int first, last;  /* times, both included */
    bool is_by_image; /* bytes and offset are those of one image (image_bytes) */
};

/* The source of an input: the y of an earlier node, perhaps through a read form. */
struct tdmi_node_source {
    int node;          /* its y is read */
    int norm;          /* the batch norm whose scale and shift apply, or -1 */
    enum tdmi_act act; /* applied after them */
};

struct tdmi_node_plan {
    struct tdmi_op_desc desc;
    const struct tdmi_kernel *kernel;
    bool has_backward;
    /* Its y is never computed: readers look through it at its source (graph/fuse.c). A virtual
     * batch norm in training still runs, but passes over no tensor. */
    bool is_virtual;
    struct tdmi_node_source in[TDMI_OP_INPUTS]; /* tdmi_plan_reads of them */
    int computed_by; /* virtual, in a group: the node that computes it; else -1 */
    int norm;        /* the batch norm folded in, or, training, that behind y; -1: none */
    int residual;    /* node whose y is added in; -1: none */
    int n_links;     /* of the chain that this node runs, itself the last; 1: it is alone */
    int chained_by;  /* the last node of the chain that it is a link of, but not the last; or -1 */
    /* Readers of y write its dy: the first to run backward, which is the highest, writes it, the
     * others add. -1: no gradient comes. */
    int first_writer, last_writer;
    int dy_of; /* the node whose dy this one's is, too; itself unless they are one (graph/share.c)
                */
    struct tdmi_buffer y, dy, saved;
    struct tdmi_buffer forward_workspace, backward_workspace;
    struct tdmi_buffer spill[TDMI_OP_INPUTS]; /* dx that must be added to others by hand */
    size_t packed_bytes, packed_offset;
};

/* Backward runs nodes first_node down to last_node; then the sums in
 * [first_value, first_value + n_values) are final for this group. The first segment's run reaches
 * to the end of the sums (states and tail are final after forward). What belongs to frozen nodes
 * is in no segment's run, or, of states, means nothing. */
struct tdmi_segment {
    int first_node, last_node;
    int64_t first_value, n_values;
};

typedef struct tdmi_plan {
    const tdmi_graph *graph; /* lent */
    const struct tdmi_backend *backend;
    int max_images;
    int team; /* threads that may run one group together, 1 or more */
    bool is_training;
    enum tdmi_dtype storage; /* type of stored activations */
    bool allows_tf32;        /* f32 products may round to TF32 */
    bool splits_products;
    bool may_vary;                /* see the options */
    size_t most_workspace;        /* that a kernel wants only to be faster; 0: any */
    tdmi_device *device;          /* lent; see the options */
    bool is_apart;                /* no node does another's work */
    int first_node;               /* nodes before it are not run: see the options */
    int first_trained;            /* nodes before it are planned as without training */
    bool keeps_statistics;        /* of batch norms that are trained */
    struct tdmi_node_plan *nodes; /* one per node of the graph */
    struct tdmi_segment *segments;
    int n_segments;             /* 0 when not training */
    struct tdmi_buffer staging; /* where memory is not the host's: graph/staging.h */
    size_t arena_bytes;         /* of an executor that runs max_images */
    size_t image_bytes;         /* what each image of it takes; 0: it is for max_images */
    size_t packed_bytes;        /* of weights as the kernels want them, shared by all executors */
    tdmi_arena arena;           /* holds the arrays */
} tdmi_plan;

struct tdmi_plan_options {
    int max_images;
    int team; /* most threads that run one group together (base/team.h); 0: 1 */
    bool is_training;
    enum tdmi_dtype storage; /* of activations; 0: f32. Others as the backend's storages say */
    bool allows_tf32;        /* of f32: products may round what they multiply */
    bool splits_products;    /* in training (backend/op.h): other bits, which a run keeps */
    bool may_vary;           /* bits may be others on every run, where that is faster */
    size_t most_workspace;   /* see desc->most_workspace */
    tdmi_device *device;     /* on which it will run; NULL: not known, see desc->device */
    bool is_apart;           /* without fusion: to measure how much fusion saves */
    /* Training: nodes before this one are frozen. They run as without training, batch norms folded,
     * no gradient goes there, and of theirs lives for backward only what trained nodes read. 0:
     * none. */
    int first_trained;
    /* Training: batch norms run with their running statistics, which stay; scale and shift are
     * trained. */
    bool keeps_statistics;
    /* Only this node and those behind it are run: what the node before it would give is given from
     * outside, a row of floats a sample in place of pixels. Nothing behind it may read anything
     * else from before it. 0: the whole network. */
    int first_node;
};

/* TDM_E_ABSENT names the op or the storage that this backend lacks. */
tdm_status tdmi_plan_make(const tdmi_graph *graph, const struct tdmi_backend *backend,
                          const struct tdmi_plan_options *request, tdmi_plan **plan,
                          tdm_error *err) TDM_MUST_USE;
/* The usual one: everything fused, nothing frozen. */
tdm_status tdmi_plan_new(const tdmi_graph *graph, const struct tdmi_backend *backend,
                         int max_images, bool is_training, tdmi_plan **plan,
                         tdm_error *err) TDM_MUST_USE;
void tdmi_plan_free(tdmi_plan *plan);
TDMI_POINTER_RELEASE(tdmi_plan, tdmi_plan_free)

/* Bytes of an executor that runs n images at most, up to max_images. */
size_t tdmi_plan_bytes(const tdmi_plan *plan, int n);

/* Bytes of one sample of a group: its pixels, or its feature row. */
size_t tdmi_plan_sample_bytes(const tdmi_plan *plan);

/* Does nothing run for the node? Readers look through an activation; the first node of a fused
 * group computes the rest of it. */
bool tdmi_plan_is_silent(const tdmi_plan *plan, int index);

/* How many of `in` there are: the node's inputs, and the residual of a group that is trained. */
int tdmi_plan_reads(const tdmi_plan *plan, int index);
struct tdmi_shape tdmi_plan_shape_read(const tdmi_plan *plan, int index, int k);

/* Arithmetic of one image at this node: its op forward, and as much again for the gradient of its
 * weights and for that of its input, each where it is computed. Products count by the op's shape:
 * a kernel that skips some of them, or has a cleverer way, gets them all the same. */
double tdmi_plan_node_operations(const tdmi_plan *plan, int index);

/* Decide which nodes are virtual and which kernels fuse their work: fills is_virtual, in,
 * computed_by, norm, residual and desc.fusion of nodes whose desc, kernel and has_backward are set.
 */
void tdmi_fuse(tdmi_plan *plan);

/* Decide which nodes run as links of a chain (graph/chain.c): fills n_links and chained_by. */
void tdmi_chain(tdmi_plan *plan);
/* The links of the chain that ends at this node, which may be alone; returns n_links. */
int tdmi_chain_links(const tdmi_plan *plan, int last, int links[TDMI_CHAIN_LINKS]);

/* Let sums pass their gradient on without a copy: sets dy_of where that is safe, and lifetimes. */
void tdmi_share_gradients(tdmi_plan *plan);
/* The node whose dy takes the gradient that a reader of this source writes. */
int tdmi_gradient_of(struct tdmi_node_source source);

/* Place n buffers (those of 0 bytes are skipped) so that no two that live at one time overlap;
 * returns the bytes needed. Offsets are multiples of 64. buffers is reordered. */
size_t tdmi_place_buffers(struct tdmi_buffer **buffers, int n);
