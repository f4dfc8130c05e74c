/*
 * The preprocessing as a JSON object, the form in which a model file carries it:
 *
 *     {"width": 224, "height": 224, "channels": 3, "fit": "crop", "crop_fraction": 0.875,
 *      "filter": "bilinear", "scale": "torch", "draft": false}
 *
 * Every member but draft (false in files from before it) is required and unknown ones are refused:
 * a model whose input is prepared by a guess would give wrong answers without a word.
 */
#include "image/preprocess.h"
#include "base/scope.h"
#include <string.h>

#define MAX_SIDE 65535

static const char *const fit_names[] = {
    [TDMI_FIT_PAD] = "pad", [TDMI_FIT_CROP] = "crop", [TDMI_FIT_STRETCH] = "stretch", NULL};
static const char *const filter_names[] = {[TDMI_FILTER_LANCZOS] = "lanczos",
                                           [TDMI_FILTER_BICUBIC] = "bicubic",
                                           [TDMI_FILTER_BILINEAR] = "bilinear",
                                           NULL};
static const char *const scale_names[] = {
    [TDMI_SCALE_TF] = "tf",   [TDMI_SCALE_TORCH] = "torch", [TDMI_SCALE_UNIT] = "unit",
    [TDMI_SCALE_RAW] = "raw", [TDMI_SCALE_CAFFE] = "caffe", NULL};
static const char *const members[] = {"width",  "height", "channels", "fit", "crop_fraction",
                                      "filter", "scale",  "draft",    NULL};

const char *tdmi_fit_word(enum tdmi_fit fit)
{
    return fit_names[fit];
}

const char *tdmi_scale_word(enum tdmi_scale scale)
{
    return scale_names[scale];
}

void tdmi_preprocess_to_json(const struct tdmi_preprocess *preprocess, tdm_json_writer *writer,
                             const char *key)
{
    tdm_json_object_begin(writer, key);
    tdm_json_integer(writer, "width", preprocess->width);
    tdm_json_integer(writer, "height", preprocess->height);
    tdm_json_integer(writer, "channels", preprocess->channels);
    tdm_json_string(writer, "fit", fit_names[preprocess->fit]);
    tdm_json_number(writer, "crop_fraction", preprocess->crop_fraction);
    tdm_json_string(writer, "filter", filter_names[preprocess->filter]);
    tdm_json_string(writer, "scale", scale_names[preprocess->scale]);
    tdm_json_bool(writer, "draft", preprocess->uses_draft);
    tdm_json_object_end(writer);
}

static int find(const char *const *words, const char *word)
{
    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    return -1;
}

/* "pad, crop, stretch" */
static const char *list(const char *const *words, char *buffer, size_t buffer_bytes)
{
    size_t used = 0;
    buffer[0] = '\0';
    for (int i = 0; words[i] != NULL && used < buffer_bytes; i++) {
        const char *parts[] = {i > 0 ? ", " : "", words[i]};
        for (int p = 0; p < 2; p++)
            for (const char *c = parts[p]; *c != '\0' && used + 1 < buffer_bytes; c++)
                buffer[used++] = *c;
        buffer[used] = '\0';
    }
    return buffer;
}

static tdm_status find_word(const char *word, const char *const *words, int *value, tdm_error *err)
{
    char possible[100];
    *value = find(words, word);
    if (*value < 0)
        return TDM_FAIL(err, TDM_E_USAGE, "\"%s\"; possible are: %s", word,
                        list(words, possible, sizeof possible));
    return TDM_OK;
}

tdm_status tdmi_fit_find(const char *word, enum tdmi_fit *fit, tdm_error *err)
{
    int value = 0;
    tdm_status status = find_word(word, fit_names, &value, err);
    *fit = status == TDM_OK ? (enum tdmi_fit)value : *fit;
    return status;
}

tdm_status tdmi_filter_find(const char *word, enum tdmi_filter *filter, tdm_error *err)
{
    int value = 0;
    tdm_status status = find_word(word, filter_names, &value, err);
    *filter = status == TDM_OK ? (enum tdmi_filter)value : *filter;
    return status;
}

tdm_status tdmi_scale_find(const char *word, enum tdmi_scale *scale, tdm_error *err)
{
    int value = 0;
    tdm_status status = find_word(word, scale_names, &value, err);
    *scale = status == TDM_OK ? (enum tdmi_scale)value : *scale;
    return status;
}

static tdm_status read_word(const tdm_json_value *object, const char *key, const char *const *words,
                            int *value, tdm_error *err)
{
    char possible[100];
    const char *word = tdm_json_as_string(tdm_json_member(object, key), NULL);
    if (word == NULL)
        return TDM_FAIL(err, TDM_E_INPUT, "\"%s\" is missing or no string; possible are: %s", key,
                        list(words, possible, sizeof possible));
    *value = find(words, word);
    if (*value < 0)
        return TDM_FAIL(err, TDM_E_INPUT, "\"%s\" is \"%s\"; possible are: %s", key, word,
                        list(words, possible, sizeof possible));
    return TDM_OK;
}

static tdm_status read_side(const tdm_json_value *object, const char *key, int *value,
                            tdm_error *err)
{
    int64_t side = tdm_json_as_integer(tdm_json_member(object, key), 0);
    if (side < 1 || side > MAX_SIDE)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "\"%s\" is missing or out of range; an integer from 1 to %d is needed", key,
                        MAX_SIDE);
    *value = (int)side;
    return TDM_OK;
}

static tdm_status read_draft(const tdm_json_value *object, bool *uses_draft, tdm_error *err)
{
    const tdm_json_value *draft = tdm_json_member(object, "draft");
    if (draft != NULL && tdm_json_kind_of(draft) != TDM_JSON_BOOL)
        return TDM_FAIL(err, TDM_E_INPUT, "\"draft\" is neither true nor false");
    *uses_draft = tdm_json_as_bool(draft, false);
    return TDM_OK;
}

static tdm_status read_members(const tdm_json_value *object, struct tdmi_preprocess *preprocess,
                               tdm_error *err)
{
    if (tdm_json_kind_of(object) != TDM_JSON_OBJECT)
        return TDM_FAIL(err, TDM_E_INPUT, "it is missing or no object");
    for (size_t i = 0; i < tdm_json_count(object); i++) {
        char possible[100];
        const char *key = tdm_json_key_at(object, i);
        if (find(members, key) < 0)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "\"%s\" is not known, perhaps of a newer version; known are: %s", key,
                            list(members, possible, sizeof possible));
    }
    int channels = 0, fit = 0, filter = 0, scale = 0;
    TDMI_TRY(read_side(object, "width", &preprocess->width, err));
    TDMI_TRY(read_side(object, "height", &preprocess->height, err));
    TDMI_TRY(read_side(object, "channels", &channels, err));
    if (channels != 1 && channels != 3)
        return TDM_FAIL(err, TDM_E_INPUT, "\"channels\" is %d; 1 (grey) and 3 (RGB) are possible",
                        channels);
    TDMI_TRY(read_word(object, "fit", fit_names, &fit, err));
    TDMI_TRY(read_word(object, "filter", filter_names, &filter, err));
    TDMI_TRY(read_word(object, "scale", scale_names, &scale, err));
    TDMI_TRY(read_draft(object, &preprocess->uses_draft, err));
    preprocess->channels = channels;
    preprocess->fit = (enum tdmi_fit)fit;
    preprocess->filter = (enum tdmi_filter)filter;
    preprocess->scale = (enum tdmi_scale)scale;
    preprocess->crop_fraction = tdm_json_as_number(tdm_json_member(object, "crop_fraction"), 0);
    if (!(preprocess->crop_fraction >= 0.01 && preprocess->crop_fraction <= 1))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "\"crop_fraction\" is missing or out of range; a number from 0.01 to 1 is "
                        "needed");
    return TDM_OK;
}

tdm_status tdmi_preprocess_from_json(const tdm_json_value *object, const char *name,
                                     struct tdmi_preprocess *preprocess, tdm_error *err)
{
    struct tdmi_preprocess read = {0};
    TDM_TRY(read_members(object, &read, err), err, "cannot use the preprocessing of \"%s\"", name);
    *preprocess = read;
    return TDM_OK;
}
