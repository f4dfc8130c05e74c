/*
 * The form of prepared images: all options that their bytes depend on, checked, recorded, and
 * compared with those that a folder was begun with.
 */
#pragma once

#include "io/arrow/write.h"
#include "image/preprocess.h"
#include "tandem/prepare.h"

enum tdmi_prepare_codec {
    TDMI_PREPARE_JPEG,
    TDMI_PREPARE_PNG,
    TDMI_PREPARE_RAW,
    TDMI_PREPARE_KEEP
};

struct tdmi_prepare_form {
    struct tdmi_preprocess preprocess;
    enum tdmi_prepare_codec codec;
    int quality;
    enum tdmi_arrow_codec image_codec, column_codec;
    const char *compression; /* its word, as recorded */
    const struct tdm_prepare_options *options;
};

/* TDM_E_USAGE names the option. options must outlive the form. */
tdm_status tdmi_prepare_form_of(const struct tdm_prepare_options *options,
                                struct tdmi_prepare_form *form, tdm_error *err) TDM_MUST_USE;
/* Write an object of options under the command's names. */
void tdmi_prepare_form_to_json(const struct tdmi_prepare_form *form, tdm_json_writer *writer,
                               const char *key);
/* TDM_E_USAGE names an option that differs from those recorded in folder. */
tdm_status tdmi_prepare_form_compare(const struct tdmi_prepare_form *form,
                                     const tdm_json_value *recorded, const char *folder,
                                     tdm_error *err) TDM_MUST_USE;
/* Estimated bytes an image, by a fixed rule; mean_bytes: mean size of the source's files. */
int64_t tdmi_prepare_form_picture_bytes(const struct tdmi_prepare_form *form, int64_t mean_bytes);
