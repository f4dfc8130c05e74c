/*
 * The outcome of every evaluated image, one entry each, in the order of evaluation.
 * Every metric is a function of these (train/evaluate/metrics.h), and two runs are compared by
 * them. Kept as a .safetensors file; docs/reference/files.md has its form.
 */
#pragma once

#include "base/arena.h"
#include "data/loader/loader.h"
#include "graph/executor.h"

#define TDMI_OUTCOMES_FORMAT_VERSION 1
#define TDMI_OUTCOMES_NAME "outcomes.safetensors"

typedef struct tdmi_outcomes { /* start from a zeroed object */
    int n_classes;
    const char *const *classes; /* lent; after load the arena's */
    const char *network;        /* likewise */
    int epoch;                  /* of the weights that were evaluated */
    int64_t step;
    int64_t n, capacity;
    uint64_t *contents; /* hash of the image; 0: unknown */
    int32_t *labels;
    int32_t *predicted;
    int32_t *ranks;       /* number of classes more probable than the label: 0 is right */
    float *probabilities; /* of the label */
    float *confidences;   /* of the prediction */
    float *losses;
    tdmi_arena arena;
} tdmi_outcomes;

/* Reserves memory for `capacity` images. */
tdm_status tdmi_outcomes_open(tdmi_outcomes *outcomes, int n_classes, int64_t capacity,
                              tdm_error *err) TDM_MUST_USE;
void tdmi_outcomes_release(tdmi_outcomes *outcomes);
/* Copies to `to`, which is opened with the same capacity where it is too small. */
tdm_status tdmi_outcomes_copy(const tdmi_outcomes *from, tdmi_outcomes *to,
                              tdm_error *err) TDM_MUST_USE;

/* Adds an image with its n_classes probabilities. There must be room. */
void tdmi_outcomes_add(tdmi_outcomes *outcomes, uint64_t content, int label,
                       struct tdmi_judgement judgement, const float *probabilities);
/* Adds the images of a batch that have a label; hashes are by item of the source. */
void tdmi_outcomes_add_batch(tdmi_outcomes *outcomes, const struct tdmi_batch *batch,
                             const struct tdmi_judgement *judgements, const float *probabilities,
                             const uint64_t *hashes);

/* Set counts[i] where entry i counts as a distinct image: one entry of each content, a wrong one
 * where they differ. Entries of unknown content all count. */
tdm_status tdmi_outcomes_distinct(const tdmi_outcomes *outcomes, bool *counts,
                                  tdm_error *err) TDM_MUST_USE;
/* The entries that `keep` marks, in their order, into a zeroed object. */
tdm_status tdmi_outcomes_filter(const tdmi_outcomes *from, const bool *keep, tdmi_outcomes *to,
                                tdm_error *err) TDM_MUST_USE;

/* Atomically, in a folder that must be there; equal outcomes are equal bytes. */
tdm_status tdmi_outcomes_save(const tdmi_outcomes *outcomes, const char *path,
                              tdm_error *err) TDM_MUST_USE;
/* TDM_E_INPUT says what is missing or damaged. */
tdm_status tdmi_outcomes_load(const char *path, tdmi_outcomes *outcomes,
                              tdm_error *err) TDM_MUST_USE;
/* The same from bytes, which messages call `name`; bytes NULL: from the file of that name. */
tdm_status tdmi_outcomes_read(const void *bytes, size_t length_bytes, const char *name,
                              tdmi_outcomes *outcomes, tdm_error *err) TDM_MUST_USE;
