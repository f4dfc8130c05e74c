/*
 * A model or checkpoint as one .safetensors file (docs/reference/files.md). It always holds the
 * network, classes, preprocessing, weights, the hashes of training and validation images, and a
 * self-test. A checkpoint adds the state of training.
 */
#pragma once

#include "base/arena.h"
#include "graph/graph.h"
#include "weights/lineage.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "tandem/event.h"

#define TDMI_MODEL_FORMAT_VERSION 1

/* The state of training: enough to resume with bit-identical results, in constant time. It has no
 * times, so an interrupted run ends with the same file as an uninterrupted one. */
struct tdmi_progress {
    int64_t step;                   /* optimizer steps taken */
    int epoch;                      /* epochs completed */
    int64_t position;               /* samples of the running epoch already used */
    int64_t epoch_n, epoch_correct; /* counted in the running epoch */
    double epoch_loss;              /* sum over them */
    int64_t epoch_skipped;          /* its images that could not be read */
    int64_t images;                 /* trained on, repeats counted */
    int best_epoch;                 /* 0: none evaluated yet */
    int64_t best_step;
    int epochs_since_best; /* validations since the last improvement, see stopping.h */
    int64_t mark_correct;  /* counts of the last improvement */
    double mark_loss;
    int64_t evaluated_step;             /* at the last validation */
    int64_t train_skipped, val_skipped; /* most of one epoch; at the last validation */
    tdm_score best_train, best_val;
    struct tdmi_plateau plateau;       /* of the schedule plateau; zeroed otherwise */
    struct tdmi_loss_scale loss_scale; /* of --precision f16; zeroed otherwise */
};

/* Strings and arrays: lent by the caller of save; in the arena after load. */
struct tdmi_model_file {
    const char *network; /* "convnet7" */
    tdmi_graph *graph;   /* after load: owned, see release */
    int shard;
    bool shares_statistics; /* --bn batch */
    bool keeps_statistics;  /* --bn frozen */
    int n_classes;
    const char **classes;
    bool is_unnamed; /* weights of another program without class names: "class 0", … */
    struct tdmi_lineage lineage; /* of the weights that it started from; file NULL: from scratch */
    float *params, *states;      /* laid out like the graph; averages where they are kept */
    uint64_t *train_hashes, *val_hashes; /* content of the images, ascending */
    uint64_t *test_hashes;               /* likewise */
    int64_t n_train_hashes, n_val_hashes, n_test_hashes;
    struct tdmi_progress progress;
    /* The self-test: one preprocessed image and its logits. */
    uint8_t *test_pixels;
    float *test_logits; /* n_classes */
    /* In a checkpoint; 0 slots otherwise. */
    const char *optimizer;
    int n_slots;
    const char *slot_names[TDMI_OPTIMIZER_SLOTS];
    float *slots[TDMI_OPTIMIZER_SLOTS]; /* laid out like the parameters */
    /* In a checkpoint with averages: the trained values; else NULL. */
    float *raw_params, *raw_states;
    bool is_averaged; /* after load */
    tdmi_arena arena;
};

/* In a folder that must be there. */
tdm_status tdmi_model_file_save(const struct tdmi_model_file *model, const char *path,
                                tdm_error *err) TDM_MUST_USE;
/* TDM_E_INPUT says what is missing or damaged. */
tdm_status tdmi_model_file_load(const char *path, struct tdmi_model_file *model,
                                tdm_error *err) TDM_MUST_USE;
/* The same of bytes that were read from path, perhaps by another rank. */
tdm_status tdmi_model_file_load_bytes(const char *path, const void *bytes, size_t n,
                                      struct tdmi_model_file *model, tdm_error *err) TDM_MUST_USE;
void tdmi_model_file_release(struct tdmi_model_file *model);
