/*
 * Where the weights of a model came from: kept with it when it is saved, trained further and
 * exported.
 */
#pragma once

#include "base/arena.h"
#include "tandem/error.h"
#include "tandem/json.h"

struct tdmi_lineage {    /* NULL: not known; file NULL: there is none */
    const char *file;    /* its name without folders: "resnet20-cifar10-12fca82f.th" */
    const char *sha256;  /* 64 hex digits, of a file; a folder has none */
    const char *form;    /* "pytorch", "keras-h5", "safetensors", … */
    const char *origin;  /* whose names and layout: "Keras", "PyTorch", "tandem" */
    const char *network; /* what it was imported as */
    const char *licence;
    const char *norms; /* what gave its batch norms statistics that the file did not have */
};

/* Strings are copied. */
tdm_status tdmi_lineage_copy(const struct tdmi_lineage *from, tdmi_arena *arena,
                             struct tdmi_lineage *lineage, tdm_error *err) TDM_MUST_USE;

/* An object under key; nothing when there is none. */
void tdmi_lineage_to_json(const struct tdmi_lineage *lineage, tdm_json_writer *writer,
                          const char *key);
/* Unknown members are passed over; value may be NULL. Strings are copied. */
tdm_status tdmi_lineage_from_json(const tdm_json_value *value, tdmi_arena *arena,
                                  struct tdmi_lineage *lineage, tdm_error *err) TDM_MUST_USE;
