/*
 * Data sets before training: what is in one (audit), one brought to a form that loads fast
 * (prepare), and one that is painted (synth).
 */
#ifndef TANDEM_PREPARE_H
#define TANDEM_PREPARE_H

#include "tandem/data.h"
#include "tandem/error.h"
#include "tandem/event.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- audit ----------------------------------------------------------------------------------- */

/* A verdict for every file of a data set, copies and near copies across classes and parts, sizes of
 * classes and images. It never writes to the source; bad files can be listed for training and
 * preparing to leave out. */

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

/* Strings are lent for the call. */
struct tdm_audit_options {
    size_t struct_bytes; /* see tandem/api.h */
    const char *source;
    struct tdm_source_options how; /* where the path does not say it */
    const char *quarantine;        /* list of bad files to write; NULL: none */
    bool strict;                   /* list damaged files, too */
    bool find_near;                /* look for near copies, too */
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
    const char *reason; /* a sentence for a bad or damaged file; else "" */
};

/* Two copies. */
struct tdm_audit_pair {
    int64_t first, second; /* of files, first < second */
    int distance;          /* -1: equal bytes; else differing bits of their fingerprints */
};

struct tdm_audit_class {
    const char *name;
    int64_t n, bad;
};

/* Short sides below 16, 32, 64, 128, 256, 512, 1024, and the rest. */
enum { TDM_AUDIT_SIZES = 8 };

struct tdm_audit {
    size_t struct_bytes; /* see tandem/api.h */
    int64_t images;      /* files with the extension or signature of an image */
    int64_t ok, bad;
    int64_t others; /* other files, counted only */
    int64_t bytes;
    int64_t counts[TDM_VERDICTS];  /* by verdict: sums to images */
    int64_t remarks[TDM_VERDICTS]; /* files that a verdict applies to */
    int64_t with_icc;              /* files with a colour profile, which is ignored */
    struct tdm_audit_file *files;  /* images of them, in the source's order */
    struct tdm_audit_pair *pairs;  /* every copy with the first like it; near ones pair by pair */
    int64_t n_pairs;
    bool is_near_cut; /* too many near copies to look for all */
    struct tdm_audit_class *classes;
    int n_classes;
    int64_t sizes[TDM_AUDIT_SIZES]; /* of images whose size is known */
    int min_width, min_height, max_width, max_height;
    const char *kind; /* of the source: "folder" */
    /* Why other commands refuse the source: more than half the rows of a Parquet file are bad.
     * NULL: they do not. */
    const char *refusal;
    double seconds;
    void *memory; /* of the strings; see tdm_audit_release */
    struct tdm_unread_list unread;
};

/* Write the defaults of this library into *options, a struct of that size. */
TDM_API void tdm_audit_options_init(struct tdm_audit_options *options, size_t struct_bytes);
static inline struct tdm_audit_options tdm_audit_options_default(void)
{
    struct tdm_audit_options options;
    tdm_audit_options_init(&options, sizeof options);
    return options;
}
/* TDM_E_INPUT: the source is missing, of no known kind or empty. The content of a file gives a
 * verdict, never an error. */
TDM_API tdm_status tdm_audit(const struct tdm_audit_options *options, tdm_sink sink,
                             struct tdm_audit *audit, tdm_error *err) TDM_MUST_USE;
TDM_API void tdm_audit_release(struct tdm_audit *audit);

/* ---- prepare --------------------------------------------------------------------------------- */

/* From labelled pictures to a folder that any reader of Parquet or Delta opens: every picture that
 * decodes, turned upright, brought to one size, split into train and val, in files that are pure
 * functions of content, seed and options. Killed at any point and run again, or cut into slices and
 * merged, it gives the same bytes as in one go. */

/* Start from tdm_prepare_options_default() and change fields. Strings are lent for the call. */
struct tdm_prepare_options {
    size_t struct_bytes; /* see tandem/api.h */
    const char *source;
    struct tdm_source_options how; /* where the path does not say it */
    const char *folder;            /* made with its parents; empty, absent or begun by us */

    int size;             /* of a side, in pixels: 299 */
    const char *fit;      /* "pad", "crop" or "stretch" */
    double crop_fraction; /* crop: the short side becomes size / crop_fraction; else 1 */
    const char *resample; /* "lanczos", "bicubic" or "bilinear" */

    double train_fraction, val_fraction; /* 0.9 and 0.1; what both leave over becomes test */
    uint64_t seed;                       /* of split and order: 42 */

    const char *codec;       /* "jpeg", "png", "raw" (plain pixels) or "keep" (the file's bytes) */
    int quality;             /* of jpeg; 0 means 95, and is the only value other codecs take */
    const char *compression; /* "zstd", "snappy" or "none"; NULL: zstd for the columns beside the
                                pictures. Pictures are compressed with raw only, and if asked for */

    int slice, slices; /* make only the parts whose number % slices == slice % slices; 0: all */
    bool merge;        /* join what slices made */
    int threads;       /* 0: all usable CPUs */
};

struct tdm_prepare_result {
    size_t struct_bytes;              /* see tandem/api.h */
    int64_t images, train, val, test; /* rows; images counts unlabelled pictures, too */
    int classes;
    int64_t quarantined; /* do not decode, or named by the quarantine list */
    int64_t left_out;    /* copies of pictures that were given as test */
    int64_t bytes;       /* of the parts: of all, or of those made by this slice */
    int parts, made;     /* how many there are, how many this call made */
    bool is_complete;    /* the table is finished: false after a slice */
    /* Changes by the update of a finished table; a table that was made now has version 0. */
    int64_t version, added, removed;
    /* Changes by jpeg in the pixels of one image in 16, in steps of 255: */
    int64_t sampled;
    double change_mean;
    int change_max;
    double seconds;
    struct tdm_unread_list unread;
};

/* Write the defaults of this library into *options, a struct of that size. */
TDM_API void tdm_prepare_options_init(struct tdm_prepare_options *options, size_t struct_bytes);
static inline struct tdm_prepare_options tdm_prepare_options_default(void)
{
    struct tdm_prepare_options options;
    tdm_prepare_options_init(&options, sizeof options);
    return options;
}
/* TDM_E_USAGE: options that contradict each other, or a folder that holds something else or was
 * made with other options. TDM_E_INPUT: no source, or nothing in it decodes.
 * TDM_E_ABSENT: a build without Arrow. TDM_E_STOPPED: finished parts stay; run it again. */
TDM_API tdm_status tdm_prepare(const struct tdm_prepare_options *options, tdm_sink sink,
                               struct tdm_prepare_result *result, tdm_error *err) TDM_MUST_USE;

/* ---- synth ----------------------------------------------------------------------------------- */

/* A learnable synthetic photo-like data set: class folders of pictures, the same bytes for the same
 * options on any machine and thread count. */

struct tdm_synth_options {
    size_t struct_bytes; /* see tandem/api.h */
    const char *folder;  /* made if missing; must be empty or absent */
    int classes;         /* 2 to 1000 */
    int per_class;       /* 1 to 1000000 */
    int size;            /* typical side in pixels, 16 to 2048; pictures vary around it */
    uint64_t seed;
    const char *format; /* "jpeg", "png", "bmp" or "ppm", where this build can write it */
    int threads;        /* 0: all usable CPUs */
};

struct tdm_synth_result {
    size_t struct_bytes; /* see tandem/api.h */
    int64_t images;
    int classes;
    int64_t bytes;
    double seconds;
};

/* Write the defaults of this library into *options, a struct of that size. */
TDM_API void tdm_synth_options_init(struct tdm_synth_options *options, size_t struct_bytes);
static inline struct tdm_synth_options tdm_synth_options_default(void)
{
    struct tdm_synth_options options;
    tdm_synth_options_init(&options, sizeof options);
    return options;
}
TDM_API tdm_status tdm_synth(const struct tdm_synth_options *options, tdm_sink sink,
                             struct tdm_synth_result *result, tdm_error *err) TDM_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
