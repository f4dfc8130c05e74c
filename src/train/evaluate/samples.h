/*
 * A few of the pictures that judged a run, small, for people to look at: the surest mistakes, and
 * some that chance picked. They lie in the run folder, so that a report needs neither the source
 * nor the network; docs/reference/files.md has the form.
 */
#pragma once

#include "train/evaluate/outcomes.h"

#define TDMI_SAMPLES_FORMAT_VERSION 1
#define TDMI_SAMPLES_NAME "samples.safetensors"

enum { TDMI_SAMPLES_MISTAKES = 12, TDMI_SAMPLES_DRAWN = 12, TDMI_SAMPLES_MOST = 24 };

struct tdmi_sample {
    int64_t entry;       /* of the outcomes */
    bool is_mistake;     /* one of the surest mistakes; else drawn */
    const char *name;    /* of the picture, as its source says it */
    const uint8_t *jpeg; /* the file's bytes */
    int64_t jpeg_bytes;
};

typedef struct tdmi_samples { /* start from a zeroed object */
    int64_t step;             /* of the outcomes they belong to */
    int n;
    struct tdmi_sample samples[TDMI_SAMPLES_MOST];
    tdmi_arena arena; /* names and bytes after load */
} tdmi_samples;

/* Fills in which entries, mistakes first; names and pictures are the caller's. A function of the
 * outcomes alone: of mistakes the surest, of the rest those with the smallest hashes, which nobody
 * chose; no content twice. */
void tdmi_samples_choose(const tdmi_outcomes *outcomes, tdmi_samples *samples);

/* Atomically; equal samples are equal bytes. */
tdm_status tdmi_samples_save(const tdmi_samples *samples, const char *path,
                             tdm_error *err) TDM_MUST_USE;
/* Those of exactly these outcomes. TDM_E_INPUT says what is missing, damaged, or another's. */
tdm_status tdmi_samples_load(const char *path, const tdmi_outcomes *outcomes, tdmi_samples *samples,
                             tdm_error *err) TDM_MUST_USE;
/* The same of bytes; name is what messages call them. */
tdm_status tdmi_samples_read(const void *bytes, size_t length_bytes, const char *name,
                             const tdmi_outcomes *outcomes, tdmi_samples *samples,
                             tdm_error *err) TDM_MUST_USE;
void tdmi_samples_release(tdmi_samples *samples);
