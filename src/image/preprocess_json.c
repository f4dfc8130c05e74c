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
#include "base/text/choice.h"

#define MAX_SIDE 65535

static const char *const fit_names[] = {
    [TDMI_FIT_PAD] = "pad", [TDMI_FIT_CROP] = "crop", [TDMI_FIT_STRETCH] = "stretch"};
static const char *const filter_names[] = {[TDMI_FILTER_LANCZOS] = "lanczos",
                                           [TDMI_FILTER_BICUBIC] = "bicubic",
                                           [TDMI_FILTER_BILINEAR] = "bilinear"};
static const char *const scale_names[] = {[TDMI_SCALE_TF] = "tf",
                                          [TDMI_SCALE_TORCH] = "torch",
                                          [TDMI_SCALE_UNIT] = "unit",
                                          [TDMI_SCALE_RAW] = "raw",
                                          [TDMI_SCALE_CAFFE] = "caffe"};
static const char *const members[] = {"width",         "height", "channels", "fit",
                                      "crop_fraction", "filter", "scale",    "draft"};
enum {
    N_FITS = sizeof fit_names / sizeof fit_names[0],
    N_FILTERS = sizeof filter_names / sizeof filter_names[0],
    N_SCALES = sizeof scale_names / sizeof scale_names[0],
    N_MEMBERS = sizeof members / sizeof members[0],
};

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

tdm_status tdmi_fit_find(const char *word, enum tdmi_fit *fit, tdm_error *err)
{
    int value = (int)*fit;
    tdm_status status = tdmi_choice_find("fit", word, fit_names, N_FITS, &value, err);
    *fit = (enum tdmi_fit)value;
    return status;
}

tdm_status tdmi_filter_find(const char *word, enum tdmi_filter *filter, tdm_error *err)
{
    int value = (int)*filter;
    tdm_status status = tdmi_choice_find("filter", word, filter_names, N_FILTERS, &value, err);
    *filter = (enum tdmi_filter)value;
    return status;
}

tdm_status tdmi_scale_find(const char *word, enum tdmi_scale *scale, tdm_error *err)
{
    int value = (int)*scale;
    tdm_status status = tdmi_choice_find("scale", word, scale_names, N_SCALES, &value, err);
    *scale = (enum tdmi_scale)value;
    return status;
}

static tdm_status read_word(const tdm_json_value *object, const char *key, const char *const *words,
                            int n_words, int *value, tdm_error *err)
{
    char possible[100];
    const char *word = tdm_json_as_string(tdm_json_member(object, key), NULL);
    if (word == NULL)
        return TDM_FAIL(err, TDM_E_INPUT, "\"%s\" is missing or no string; possible are: %s", key,
                        tdmi_choice_list(words, n_words, possible, sizeof possible));
    *value = tdmi_choice_index(word, words, n_words);
    if (*value < 0)
        return TDM_FAIL(err, TDM_E_INPUT, "\"%s\" is \"%s\"; possible are: %s", key, word,
                        tdmi_choice_list(words, n_words, possible, sizeof possible));
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
        if (tdmi_choice_index(key, members, N_MEMBERS) < 0)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "\"%s\" is not known, perhaps of a newer version; known are: %s", key,
                            tdmi_choice_list(members, N_MEMBERS, possible, sizeof possible));
    }
    int channels = 0, fit = 0, filter = 0, scale = 0;
    TDMI_TRY(read_side(object, "width", &preprocess->width, err));
    TDMI_TRY(read_side(object, "height", &preprocess->height, err));
    TDMI_TRY(read_side(object, "channels", &channels, err));
    if (channels != 1 && channels != 3)
        return TDM_FAIL(err, TDM_E_INPUT, "\"channels\" is %d; 1 (grey) and 3 (RGB) are possible",
                        channels);
    TDMI_TRY(read_word(object, "fit", fit_names, N_FITS, &fit, err));
    TDMI_TRY(read_word(object, "filter", filter_names, N_FILTERS, &filter, err));
    TDMI_TRY(read_word(object, "scale", scale_names, N_SCALES, &scale, err));
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
