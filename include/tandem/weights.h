/*
 * Weights of other programs: those published under a name, and files on disk whatever wrote them.
 */
#ifndef TANDEM_WEIGHTS_H
#define TANDEM_WEIGHTS_H

#include "tandem/error.h"
#include "tandem/event.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- published ones ----------------------------------------------------------------------- */

/* "…-notop" files end before the last layer: what a new data set starts from. */
struct tdm_weights_known {
    const char *name;    /* "xception-notop" */
    const char *network; /* as train --model takes it */
    const char *origin, *licence;
    double megabytes; /* about, 10^6 bytes */
    const char *hash; /* "sha256:7ebf99e0" (first digits), "md5:…": the publisher's; "": none */
    int resize; /* shorter side of pictures before 224 are cut out; 0: the publisher says none */
    const char *folder, *file; /* the URL is folder/file */
};

/* NULL past the end. */
TDM_API const struct tdm_weights_known *tdm_weights_known_at(int index);
/* Local path of the file, cut to fit, and whether it exists. */
TDM_API tdm_status tdm_weights_place(const struct tdm_weights_known *known, char *path,
                                     size_t path_bytes, bool *is_here, tdm_error *err) TDM_MUST_USE;

struct tdm_weights_fetched {
    size_t struct_bytes; /* see tandem/api.h */
    char path[1024];
    char sha256[65];
    int64_t bytes;
    bool was_here;     /* nothing was transferred */
    bool is_published; /* the publisher's hash was compared and equal */
    bool is_new;       /* there was none, and no earlier fetch: sha256 is remembered from now on */
};

/* Fetch a file to TANDEM_HOME/weights, whole or not at all, resuming an earlier try. mirror: NULL,
 * or the URL of another folder that has the file. A file that is there already is compared with its
 * known hash. TDM_E_SYSTEM when it cannot be had, with the URL and where
 * to put the file; TDM_E_INPUT when it is not the published one. */
TDM_API tdm_status tdm_weights_fetch(const char *name, const char *mirror, tdm_sink sink,
                                     struct tdm_weights_fetched *fetched,
                                     tdm_error *err) TDM_MUST_USE;

/* ---- files on disk ------------------------------------------------------------------------ */

typedef struct tdm_weights_file tdm_weights_file;

enum { TDM_WEIGHTS_RANK = 8 };

struct tdm_weights_tensor {
    const char *name, *type; /* "F32" */
    int rank;
    int64_t shape[TDM_WEIGHTS_RANK], values;
    /* Statistics of float tensors; 0 for other types. */
    double low, high, mean;
    int64_t not_finite;
};

struct tdm_weights_facts {
    const char *form; /* "pytorch" */
    int64_t tensors, values, bytes;
    char sha256[65];
};

TDM_API tdm_status tdm_weights_open(const char *path, tdm_weights_file **file,
                                    tdm_error *err) TDM_MUST_USE;
TDM_API void tdm_weights_close(tdm_weights_file *file);
TDM_API const struct tdm_weights_facts *tdm_weights_facts(const tdm_weights_file *file);
/* NULL past the end; the values are looked through by this call. */
TDM_API const struct tdm_weights_tensor *tdm_weights_tensor_at(tdm_weights_file *file,
                                                               int64_t index);
/* A note of the file, as text; false past the end. */
TDM_API bool tdm_weights_note_at(const tdm_weights_file *file, int64_t index, const char **key,
                                 const char **value);

/* The file as a network, as train, evaluate and predict read it. Strings live as long as the file.
 */
struct tdm_weights_reading {
    size_t struct_bytes; /* see tandem/api.h */
    const char *network; /* NULL: none; problem says why */
    const char *problem;
    int width, height, channels;
    const char *fit, *scale; /* words of the options */
    double crop_fraction;    /* where fit is "crop" */
    int classes;             /* outputs; 0: the file has no last layer */
    bool has_class_names;
};

/* model: a name of tdm_network_name; NULL: as the file says. */
TDM_API tdm_status tdm_weights_read(tdm_weights_file *file, const char *model,
                                    struct tdm_weights_reading *reading,
                                    tdm_error *err) TDM_MUST_USE;
/* A sentence about how the file was read; what was guessed begins with "warning: ". NULL past the
 * last. */
TDM_API const char *tdm_weights_remark_at(const tdm_weights_file *file, int index);

/* The same tensors under the same names, and the notes, as a .safetensors file. */
TDM_API tdm_status tdm_weights_convert(const char *from, const char *to,
                                       struct tdm_weights_facts *facts,
                                       tdm_error *err) TDM_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
