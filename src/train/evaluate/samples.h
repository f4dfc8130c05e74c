/*
 * A few small validation images of a run for its report: the most confident mistakes, and some
 * random ones. They are kept in the run folder, so a report needs neither the source nor the
 * network; docs/reference/files.md has the format.
 */
#pragma once

#include "train/evaluate/outcomes.h"

#define TDMI_SAMPLES_FORMAT_VERSION 1
#define TDMI_SAMPLES_NAME "samples.safetensors"

enum { TDMI_SAMPLES_MISTAKES = 12, TDMI_SAMPLES_DRAWN = 12, TDMI_SAMPLES_MOST = 24 };

struct tdmi_sample {
    int64_t entry;       /* of the outcomes */
    bool is_mistake;     /* a confident mistake; else drawn */
    const char *name;    /* of the image in its source */
    const uint8_t *jpeg; /* the file's bytes */
    int64_t jpeg_bytes;
};

typedef struct tdmi_samples { /* start from a zeroed object */
    int64_t step;             /* of the outcomes they belong to */
    int n;
    struct tdmi_sample samples[TDMI_SAMPLES_MOST];
    tdmi_arena arena; /* names and bytes after load */
} tdmi_samples;

/* Chooses the entries, mistakes first; the caller adds names and images. Depends on the outcomes
 * alone: the most confident mistakes, then the images with the smallest hashes; no content twice.
 */
void tdmi_samples_choose(const tdmi_outcomes *outcomes, tdmi_samples *samples);

/* Atomically, in a folder that must be there; equal samples are equal bytes. */
tdm_status tdmi_samples_save(const tdmi_samples *samples, const char *path,
                             tdm_error *err) TDM_MUST_USE;
/* TDM_E_INPUT says what is missing or damaged, or that the samples belong to other outcomes. */
tdm_status tdmi_samples_load(const char *path, const tdmi_outcomes *outcomes, tdmi_samples *samples,
                             tdm_error *err) TDM_MUST_USE;
/* The same from bytes, which messages call `name`; bytes NULL: from the file of that name. */
tdm_status tdmi_samples_read(const void *bytes, size_t length_bytes, const char *name,
                             const tdmi_outcomes *outcomes, tdmi_samples *samples,
                             tdm_error *err) TDM_MUST_USE;
void tdmi_samples_release(tdmi_samples *samples);
