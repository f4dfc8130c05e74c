/*
 * The parts of an exported file, and the writers of its forms.
 */
#pragma once

#include "base/arena.h"
#include "weights/layouts.h"
#include "tandem/model.h"
#include "train/model/model_file.h"

struct tdmi_export {
    const struct tdmi_model_file *model;
    const tdmi_graph *graph; /* the model's */
    const char *path;
    bool has_preprocess;
    tdmi_arena arena;                 /* until the file is written */
    struct tdm_export_result *result; /* the form sets only the note */
};

#define X(name, ...) \
    tdm_status tdmi_export_##name(struct tdmi_export *export, tdm_error *err) TDM_MUST_USE;
#include "train/export/exports.def"
#undef X

/* The values of a tensor. */
const float *tdmi_export_values(const struct tdmi_export *export, const struct tdmi_tensor *tensor,
                                bool is_state);
/* The values in PyTorch's layout: a copy in the arena, or the values themselves where the layouts
 * agree. NULL when out of memory. */
const float *tdmi_export_torch_values(struct tdmi_export *export, const struct tdmi_node *node,
                                      const struct tdmi_tensor *tensor, bool is_state);

bool tdmi_export_pads_alike(const struct tdmi_op_attrs *a, const struct tdmi_op_attrs *b);

/* The finished JSON text in the arena; frees the writer. NULL when out of memory. */
const char *tdmi_export_finished(struct tdmi_export *export, tdm_json_writer *writer);
/* Text that a file records beside the weights: network, classes, preprocess, padding, lineage.
 * Texts live in the arena; "" where there is nothing to record. */
struct tdmi_export_note {
    const char *key, *text;
};
enum { TDMI_EXPORT_PADDING = 3, TDMI_EXPORT_NOTES = 5 };
tdm_status tdmi_export_notes(struct tdmi_export *export,
                             struct tdmi_export_note notes[TDMI_EXPORT_NOTES],
                             tdm_error *err) TDM_MUST_USE;
