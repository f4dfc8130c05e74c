/*
 * What is in a data set, before anything is made of it: a verdict for every file, copies and near
 * copies across classes and parts, how large the classes and the pictures are. Reads, never writes
 * to the source; what it found can be kept as a list that training and preparing honour.
 */
#ifndef TANDEM_AUDIT_H
#define TANDEM_AUDIT_H

#include "tandem/error.h"
#include "tandem/event.h"
#include "tandem/source.h"
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum tdm_verdict {
#define X(name, word, is_bad, meaning) TDM_VERDICT_##name,
#include "tandem/verdict.def"
#undef X
    TDM_VERDICT_OK, /* nothing to say */
    TDM_VERDICTS
};

TDM_API const char *tdm_verdict_word(enum tdm_verdict verdict);    /* "wrong-extension" */
TDM_API const char *tdm_verdict_meaning(enum tdm_verdict verdict); /* a phrase */
TDM_API bool tdm_verdict_is_bad(enum tdm_verdict verdict);

/* Start from tdm_audit_options_default() and change fields. Strings are lent for the call. */
struct tdm_audit_options {
    const char *source;
    struct tdm_source_options how; /* where the path does not say it */
    const char *quarantine;        /* list of bad files to write; NULL: none */
    bool strict;                   /* damaged files stand in that list too */
    bool find_near;                /* look for near copies too */
    int threads;                   /* 0: all usable CPUs */
};

struct tdm_audit_file {
    const char *path;  /* relative to the source */
    int label;         /* -1: unlabelled */
    int part;          /* enum tdm_part; TDM_PART_ALL: not given */
    int width, height; /* as shown, orientation applied; 0: unknown */
    enum tdm_verdict verdict;
    uint32_t remarks; /* bit v: verdict v applies (the file's own verdict too) */
    uint64_t hash;    /* XXH64 of its bytes; 0: unreadable */
    int64_t bytes;
    const char *reason; /* of a bad or damaged one, a sentence; else "" */
};

/* Two files that show the same. */
struct tdm_audit_pair {
    int64_t first, second; /* of files, first < second */
    int distance;          /* -1: the same bytes; else how many bits of their fingerprints differ */
};

struct tdm_audit_class {
    const char *name;
    int64_t n, bad;
};

/* Short sides below 16, 32, 64, 128, 256, 512, 1024, and the rest. */
enum { TDM_AUDIT_SIZES = 8 };

struct tdm_audit {
    int64_t images; /* files with a picture's ending or signature */
    int64_t ok, bad;
    int64_t others; /* files that are no pictures, counted only */
    int64_t bytes;
    int64_t counts[TDM_VERDICTS];  /* by verdict: sums to images */
    int64_t remarks[TDM_VERDICTS]; /* files a verdict applies to */
    int64_t with_icc;              /* files with a colour profile, which is ignored */
    struct tdm_audit_file *files;  /* images of them, in the source's order */
    struct tdm_audit_pair *pairs;  /* every copy with the first like it; near ones pair by pair */
    int64_t n_pairs;
    bool is_near_cut; /* so many near copies that not all were looked for */
    struct tdm_audit_class *classes;
    int n_classes;
    int64_t sizes[TDM_AUDIT_SIZES]; /* of pictures whose size is known */
    int min_width, min_height, max_width, max_height;
    const char *kind; /* of the source: "folder" */
    /* A sentence about a Parquet file more than half of whose rows are bad: other commands refuse
     * such a source. NULL: there is none. */
    const char *refusal;
    double seconds;
    void *memory; /* what the strings live in; see tdm_audit_release */
};

TDM_API struct tdm_audit_options tdm_audit_options_default(void);
/* TDM_E_INPUT: the source is missing, of no known kind or empty. Whatever stands inside the files
 * is a verdict, never an error. */
TDM_API tdm_status tdm_audit(const struct tdm_audit_options *options, tdm_sink sink,
                             struct tdm_audit *audit, tdm_error *err) TDM_MUST_USE;
TDM_API void tdm_audit_release(struct tdm_audit *audit);

#ifdef __cplusplus
}
#endif
#endif
