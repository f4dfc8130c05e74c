/* Options of prepare: words become enumerators here, once. */
#include "prepare/form.h"

#include "base/scope.h"
#include "base/text/choice.h"
#include "base/text/text.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LARGEST_SIZE = 8192, USUAL_QUALITY = 95, ROWS = 9 };

static const char *const fits[] = {"pad", "crop", "stretch"};
static const char *const resamples[] = {"lanczos", "bicubic", "bilinear"};
static const char *const codecs[] = {"jpeg", "png", "raw", "keep"};
static const char *const compressions[] = {"none", "snappy", "zstd"}; /* enum tdmi_arrow_codec */

#define COUNT(list) ((int)(sizeof(list) / sizeof(list)[0]))

static tdm_status check_numbers(const struct tdm_prepare_options *options, tdm_error *err)
{
    if (options->size < 1 || options->size > LARGEST_SIZE)
        return TDM_FAIL(err, TDM_E_USAGE, "a size of %d pixels is not possible: 1 to %d are",
                        options->size, LARGEST_SIZE);
    if (options->quality < 0 || options->quality > 100)
        return TDM_FAIL(err, TDM_E_USAGE, "a quality of %d is not possible: 1 to 100 are",
                        options->quality);
    if (!(options->crop_fraction >= 0.01 && options->crop_fraction <= 1))
        return TDM_FAIL(err, TDM_E_USAGE, "a crop fraction of %g is not possible: 0.01 to 1 are",
                        options->crop_fraction);
    if (options->slices < 0 || options->slice < 0 || options->slice > options->slices)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "slice %d of %d is not possible: slices are counted from 0 or from 1",
                        options->slice, options->slices);
    if (options->slices > 0 && options->merge)
        return TDM_FAIL(
            err, TDM_E_USAGE,
            "a slice and a merge are not possible at once: merge when all slices are made");
    return TDM_OK;
}

static tdm_status find_words(const struct tdm_prepare_options *options,
                             struct tdmi_prepare_form *form, tdm_error *err)
{
    const char *compression = options->compression != NULL ? options->compression : "zstd";
    int fit = 0, filter = 0, codec = 0, packing = 0;
    TDM_TRY(tdmi_choice_find("fit", options->fit, fits, COUNT(fits), &fit, err), err,
            "cannot resize images");
    TDM_TRY(
        tdmi_choice_find("resample", options->resample, resamples, COUNT(resamples), &filter, err),
        err, "cannot resize images");
    TDM_TRY(tdmi_choice_find("codec", options->codec, codecs, COUNT(codecs), &codec, err), err,
            "cannot store images");
    TDM_TRY(tdmi_choice_find("compression", compression, compressions, COUNT(compressions),
                             &packing, err),
            err, "cannot write Parquet");
    form->preprocess.fit = (enum tdmi_fit)fit;
    form->preprocess.filter = (enum tdmi_filter)filter;
    form->codec = (enum tdmi_prepare_codec)codec;
    form->column_codec = (enum tdmi_arrow_codec)packing;
    form->compression = options->compression != NULL ? compressions[packing] : "auto";
    if (form->codec == TDMI_PREPARE_RAW && options->compression != NULL)
        form->image_codec = form->column_codec;
    return TDM_OK;
}

/* Refuse options without effect: they show a misunderstanding. */
static tdm_status check_idle(const struct tdmi_prepare_form *form, tdm_error *err)
{
    const struct tdm_prepare_options *options = form->options;
    if (options->quality != 0 && form->codec != TDMI_PREPARE_JPEG)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "--quality %d with --codec %s has no effect: leave one of them out, or "
                        "use --codec jpeg",
                        options->quality, codecs[form->codec]);
    if (options->crop_fraction < 1 && form->preprocess.fit != TDMI_FIT_CROP)
        return TDM_FAIL(
            err, TDM_E_USAGE,
            "--crop-fraction %g with --fit %s has no effect: leave it out, or use --fit crop",
            options->crop_fraction, fits[form->preprocess.fit]);
    return TDM_OK;
}

/* Encoded images are also decoded: a sample at once, to measure how much encoding changed. */
static tdm_status check_encoder(const struct tdmi_prepare_form *form, tdm_error *err)
{
    static const enum tdmi_image_format formats[] = {TDMI_IMAGE_JPEG, TDMI_IMAGE_PNG};
    if (form->codec > TDMI_PREPARE_PNG || (tdmi_image_can_encode(formats[form->codec]) &&
                                           tdmi_image_can_decode(formats[form->codec])))
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_ABSENT,
                    "this build cannot write and read %s files, which --codec %s needs: --codec "
                    "raw and keep need no encoder",
                    tdmi_image_format_name(formats[form->codec]), codecs[form->codec]);
}

tdm_status tdmi_prepare_form_of(const struct tdm_prepare_options *options,
                                struct tdmi_prepare_form *form, tdm_error *err)
{
    *form = (struct tdmi_prepare_form){.options = options,
                                       .preprocess = {.width = options->size,
                                                      .height = options->size,
                                                      .channels = 3,
                                                      .crop_fraction = options->crop_fraction,
                                                      .scale = TDMI_SCALE_RAW},
                                       .quality =
                                           options->quality > 0 ? options->quality : USUAL_QUALITY};
    TDMI_TRY(check_numbers(options, err));
    TDMI_TRY(find_words(options, form, err));
    TDMI_TRY(check_idle(form, err));
    return check_encoder(form, err);
}

/* ---- as JSON ------------------------------------------------------------------------- */

struct row {
    const char *name;
    char text[80];
    double number;
    bool is_number;
};

static struct row word(const char *name, const char *text)
{
    struct row row = {.name = name};
    snprintf(row.text, sizeof row.text, "%s", text);
    return row;
}

static struct row number(const char *name, double value)
{
    struct row row = {.name = name, .number = value, .is_number = true};
    tdmi_number_write(value, row.text);
    return row;
}

static void list_rows(const struct tdmi_prepare_form *form, struct row rows[ROWS])
{
    const struct tdm_prepare_options *options = form->options;
    char train[32], val[32], split[72], seed[24];
    tdmi_number_write(options->train_fraction, train);
    tdmi_number_write(options->val_fraction, val);
    snprintf(split, sizeof split, "%s,%s", train, val);
    snprintf(seed, sizeof seed, "%" PRIu64, options->seed);
    rows[0] = number("size", options->size);
    rows[1] = word("fit", fits[form->preprocess.fit]);
    rows[2] = number("crop-fraction", options->crop_fraction);
    rows[3] = word("resample", resamples[form->preprocess.filter]);
    rows[4] = word("split", split);
    /* A seed that a double cannot hold is written as text. */
    rows[5] =
        options->seed <= 1ull << 53 ? number("seed", (double)options->seed) : word("seed", seed);
    rows[6] = word("codec", codecs[form->codec]);
    rows[7] = number("quality", form->codec == TDMI_PREPARE_JPEG ? form->quality : 0);
    rows[8] = word("compression", form->compression);
}

void tdmi_prepare_form_to_json(const struct tdmi_prepare_form *form, tdm_json_writer *writer,
                               const char *key)
{
    struct row rows[ROWS];
    list_rows(form, rows);
    tdm_json_object_begin(writer, key);
    for (int i = 0; i < ROWS; i++)
        if (rows[i].is_number)
            tdm_json_number(writer, rows[i].name, rows[i].number);
        else
            tdm_json_string(writer, rows[i].name, rows[i].text);
    tdm_json_object_end(writer);
}

tdm_status tdmi_prepare_form_compare(const struct tdmi_prepare_form *form,
                                     const tdm_json_value *recorded, const char *folder,
                                     tdm_error *err)
{
    struct row rows[ROWS];
    list_rows(form, rows);
    for (int i = 0; i < ROWS; i++) {
        const tdm_json_value *value = tdm_json_member(recorded, rows[i].name);
        char text[80] = "nothing";
        if (tdm_json_kind_of(value) == TDM_JSON_NUMBER)
            tdmi_number_write(tdm_json_as_number(value, 0), text);
        else
            snprintf(text, sizeof text, "%s", tdm_json_as_string(value, text));
        if (strcmp(text, rows[i].text) != 0)
            return TDM_FAIL(err, TDM_E_USAGE,
                            "'%s' was begun with --%s %s, but %s is given now: use the same, or "
                            "name another folder",
                            folder, rows[i].name, text, rows[i].text);
    }
    return TDM_OK;
}

/* JPEG of quality 95 without subsampling takes about half a byte a pixel for photos, PNG about two.
 * A rule that depended on the result would make parts depend on each other. */
int64_t tdmi_prepare_form_picture_bytes(const struct tdmi_prepare_form *form, int64_t mean_bytes)
{
    const int64_t pixels = (int64_t)form->preprocess.width * form->preprocess.height;
    const int64_t bytes[] = {[TDMI_PREPARE_JPEG] = pixels / 2,
                             [TDMI_PREPARE_PNG] = 2 * pixels,
                             [TDMI_PREPARE_RAW] = 3 * pixels,
                             [TDMI_PREPARE_KEEP] = mean_bytes};
    return bytes[form->codec] < 1024 ? 1024 : bytes[form->codec];
}
