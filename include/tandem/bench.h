/*
 * Is this build correct on this machine, and how fast is it? Speeds come with their ceiling,
 * measured interleaved in the same run.
 */
#ifndef TANDEM_BENCH_H
#define TANDEM_BENCH_H

#include "tandem/data.h"
#include "tandem/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- loader: from a source to batches ------------------------------------------------------- */

/* Strings are lent for the call. */
struct tdm_bench_loader_options {
    size_t struct_bytes; /* see tandem/api.h */
    const char *source;
    struct tdm_source_options how; /* where the path does not say it */
    int size;                      /* side of the images, 1 to 4096 */
    int threads;                   /* 0: all usable CPUs */
    int batch;                     /* pictures, 1 to 65536 */
    double seconds;                /* of measuring, 0.5 to 3600 */
    const char *augment;           /* random changes: "flip,crop:4"; NULL: none */
    uint64_t seed;
};

struct tdm_bench_stage {
    int64_t images, bytes; /* through this stage; bytes after it */
    double seconds;        /* that threads spent in it, added up */
};

struct tdm_bench_rate {
    double median, low, high; /* over the rounds */
};

struct tdm_bench_loader {
    size_t struct_bytes;          /* see tandem/api.h */
    struct tdm_bench_rate loader; /* images per second, as below */
    /* Decoding and scaling alone: the same images, their files in memory, the same number of
     * threads. For raw pixels of that size: reading them alone. */
    struct tdm_bench_rate ceiling;
    struct tdm_bench_rate fraction; /* loader / ceiling of the same round */
    /* The same three per second of CPU time, which other programs on the machine change least. */
    struct tdm_bench_rate loader_processor, ceiling_processor, fraction_processor;
    double milliseconds; /* a batch, at the loader's median */
    int rounds, threads;
    int64_t images;  /* handed out while measured */
    int64_t skipped; /* different images that could not be read or decoded */
    int64_t others;  /* files of the source that are no images */
    int64_t source_images;
    bool is_raw;     /* pixels as they are stored, no decoding */
    bool uses_draft; /* large JPEG files are decoded at a fraction of their size */
    struct tdm_bench_stage read, decode, augment;
    double consumer_wait_seconds; /* the caller waited for a batch */
    double ring_wait_seconds;     /* threads waited for a slot, added up */
    char kind[32];                /* of the source: "folder" */
};

/* Write the defaults of this library into *options, a struct of that size. */
TDM_API void tdm_bench_loader_options_init(struct tdm_bench_loader_options *options,
                                           size_t struct_bytes);
static inline struct tdm_bench_loader_options tdm_bench_loader_options_default(void)
{
    struct tdm_bench_loader_options options;
    tdm_bench_loader_options_init(&options, sizeof options);
    return options;
}
/* Shuffled batches, without a cache but the system's. TDM_E_INPUT: no source. Images that cannot be
 * used are counted. */
TDM_API tdm_status tdm_bench_loader(const struct tdm_bench_loader_options *options,
                                    struct tdm_bench_loader *result, tdm_error *err) TDM_MUST_USE;

/* ---- compute: a network without a loader ------------------------------------------------------
 */

enum tdm_bench_mode {
    TDM_BENCH_TRAIN,   /* the step of `train`, every layer: groups, sums, update */
    TDM_BENCH_FEATURES /* without training, up to the pooled features */
};

/* Strings are lent for the call. */
struct tdm_bench_compute_options {
    size_t struct_bytes; /* see tandem/api.h */
    const char *model;   /* a network's name */
    enum tdm_bench_mode mode;
    int batch;             /* images, 1 to 65536 */
    int image;             /* side in pixels; 0: the model's own */
    int classes;           /* of the last layer, 2 to 100000; without meaning for features */
    int shard;             /* images per batch-norm group; 0: as `train` */
    int threads;           /* 0: one per core */
    const char *precision; /* "f32"; "bf16" on a GPU; "auto" is f32 so far */
    const char *device;
    double seconds;   /* of measuring, 0.5 to 3600: a third for the ceiling */
    bool has_profile; /* measure node by node too, in further time */
    bool is_unfused;  /* every node alone, to see what fusion saves */
    /* Training: all but the head runs as without training, and only the head learns. */
    bool has_frozen_base;
};

/* With what one direction of a node is computed. */
struct tdm_bench_way {
    char by[56]; /* "cuDNN engine 12"; "": the device has one way for it, or it is not computed */
    int64_t workspace_bytes;
};

/* One node of the network, for one batch: seconds that threads spend in it, the best of some runs,
 * divided by their number. What a neighbour computes for it counts there. */
struct tdm_bench_node {
    char name[64], op[16];
    double forward_seconds, backward_seconds;
    double share;            /* of a batch's time */
    double operations_per_s; /* of all threads, as below */
    double bytes_per_s; /* each tensor once a direction; of a batch norm as often as it has to */
    struct tdm_bench_way forward_way, input_gradient_way, weight_gradient_way;
};

struct tdm_bench_compute {
    size_t struct_bytes;        /* see tandem/api.h */
    struct tdm_bench_rate rate; /* images per second, over the steps */
    double processor_rate;      /* of all steps, images per second of processor time */
    /* If nothing but convolutions and dense layers cost time, and each ran as fast as it does
     * alone: on this backend, all threads at it, its best of many runs. */
    double ceiling;
    double milliseconds;       /* a batch, at the rate's median */
    double operations_per_s;   /* by the network's own count, at that rate */
    double start_milliseconds; /* building, planning, memory, first weights */
    int steps, shard, image, threads;
    int64_t parameters;
    int64_t planned_bytes; /* activations, gradients, weights and the optimiser's state */
    int64_t peak_bytes;    /* resident, of the whole process, before the ceiling was measured */
    char model[64], backend[32];
    struct tdm_bench_node *nodes; /* with a profile: those that cost time */
    int n_nodes;
    double other_seconds; /* of a batch: adding sums, the update, waiting */
    /* With a profile of training: of that, the optimiser's step, the best of some; and what it
     * reads and writes of weights, gradients and its own state. */
    double update_seconds, update_bytes_per_s;
};

/* Write the defaults of this library into *options, a struct of that size. */
TDM_API void tdm_bench_compute_options_init(struct tdm_bench_compute_options *options,
                                            size_t struct_bytes);
static inline struct tdm_bench_compute_options tdm_bench_compute_options_default(void)
{
    struct tdm_bench_compute_options options;
    tdm_bench_compute_options_init(&options, sizeof options);
    return options;
}
/* Batches of noise in memory. result is to be released, also after a failure. */
TDM_API tdm_status tdm_bench_compute(const struct tdm_bench_compute_options *options,
                                     struct tdm_bench_compute *result, tdm_error *err) TDM_MUST_USE;
TDM_API void tdm_bench_compute_release(struct tdm_bench_compute *result);

/* ---- scaling: what a step would take on more CPUs ---------------------------------------------
 */

enum { TDM_BENCH_SCALING_ROWS = 12 };

/* Predicted for a number of threads, each with a CPU of its own. */
struct tdm_bench_scaling_row {
    int threads;
    int teams, members; /* teams that compute the last groups, and members of the smallest */
    int64_t regions;    /* stretches between two waits of a team, in one group */
    /* Time of a step: that of one thread in each region, times the largest share of a member and
     * busy_slowdown. */
    double seconds;
    double speedup; /* against one thread */
    /* The same with the time of all members instead of one thread's: what they do more than one
     * thread counts, and so do caches that each finds cold, as they run one after the other. */
    double members_speedup;
    double bandwidth_speedup; /* where memory moves so many bytes; 0: no bandwidth was given */
    double measured_seconds;  /* by the clock; 0: this machine has too few CPUs */
};

struct tdm_bench_scaling {
    size_t struct_bytes; /* see tandem/api.h */
    char model[64];
    int image, shard, batch; /* shard: images of a group; features: 1 */
    /* Medians of CPU time on one thread: a step, one group of it (features: one image alone), the
     * optimizer's step. */
    double step_seconds, group_seconds, update_seconds;
    double barrier_seconds; /* a wait of two threads for each other */
    double step_bytes;      /* that a step moves, every tensor once a pass */
    /* CPUs at work slow each other down. Two copies of the step that share nothing, one thread
     * each, run at once: their time ÷ that of one copy alone, and ÷ that of one step of two
     * threads. 0: one CPU, or the process has CPUs of its own. */
    double busy_slowdown, busy_speedup;
    struct tdm_bench_scaling_row rows[TDM_BENCH_SCALING_ROWS];
    int n_rows;
};

/* Measured on one thread at a time: the members of each team run one after the other. bandwidth:
 * bytes per second that the memory of the predicted machine moves; 0: no limit. threads of the
 * options is not used; device must be the CPU. */
TDM_API tdm_status tdm_bench_scaling(const struct tdm_bench_compute_options *options,
                                     double bandwidth, struct tdm_bench_scaling *result,
                                     tdm_error *err) TDM_MUST_USE;

/* ---- allreduce: sums over ranks -------------------------------------------------------------- */

enum { TDM_BENCH_ALLREDUCE_ROWS = 4 };

/* Seconds of a sum, of the slowest rank. */
struct tdm_bench_allreduce_row {
    int64_t bytes;
    int rounds;
    double low, median, high;
};

struct tdm_bench_allreduce {
    size_t struct_bytes; /* see tandem/api.h */
    int world, rank;
    const char *transport; /* static storage */
    struct tdm_bench_allreduce_row rows[TDM_BENCH_ALLREDUCE_ROWS];
    int n_rows;
};

/* The exact sum of an array over all ranks of this job, as a training step adds gradients, with
 * nothing computed beside it. bytes 0: 1 to 64 MiB. TDM_E_USAGE: this process is alone. */
TDM_API tdm_status tdm_bench_allreduce(int64_t bytes, double seconds,
                                       struct tdm_bench_allreduce *result,
                                       tdm_error *err) TDM_MUST_USE;

/* ---- selftest -------------------------------------------------------------------------------- */

/* Is this build correct on this machine? Every op against the plain C reference and central
 * differences, determinism, and a small golden training run. */

/* detail is NULL when it passed; otherwise what differed by how much. */
typedef struct tdm_selftest_sink {
    void *self;
    void (*result)(void *self, const char *group, const char *name, bool has_passed,
                   const char *detail);
    /* Optional: what computes an op's cases where there is something to choose from, once a case,
     * type and direction: "conv", "weight gradient", "cuDNN engine 12". */
    void (*computed)(void *self, const char *op, const char *direction, const char *by);
} tdm_selftest_sink;

struct tdm_selftest_result {
    size_t struct_bytes; /* see tandem/api.h */
    int passed, failed;
};

/* device as in tdm_train_options; TDM_E_ABSENT when it is not there. part: "all", or "ops", the
 * cases of the operations alone, for whoever watches their kernels. Failed cases are counted in the
 * result and are no error. */
TDM_API tdm_status tdm_selftest(const char *device, const char *part, tdm_selftest_sink sink,
                                struct tdm_selftest_result *result, tdm_error *err) TDM_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
