/*
 * The config.json that timm puts beside its weights: the network's name in timm, how images become
 * its input, and names of classes. What has no equal here is left to the usual guess, with a note.
 */
#include "base/file/file.h"
#include "base/scope.h"
#include "base/text/json.h"
#include "weights/import/internal.h"

#include <math.h>
#include <string.h>

enum { MOST_BYTES = 1 << 22 };

tdm_status tdmi_import_find_beside(const tdmi_weights *weights, char **text, tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    tdm_error problem = {0};
    void *bytes = NULL;
    size_t n = 0;
    *text = NULL;
    if (tdmi_origin_of(weights) != TDMI_PUBLISHER_TORCH || tdmi_weights_is_folder(weights))
        return TDM_OK;
    const char *path = tdmi_weights_path(weights), *name = tdmi_path_name(path);
    const char *folder = tdmi_arena_printf(&arena, "%.*s", (int)(name - path), path);
    const char *beside = folder ? tdmi_path_join(&arena, folder, "config.json") : NULL;
    TDMI_CHECK_MEMORY(beside, err);
    if (tdmi_file_kind_of(beside) != TDMI_FILE_REGULAR || tdmi_file_bytes(beside) > MOST_BYTES)
        return TDM_OK;
    const tdm_status status = tdmi_file_read(beside, MOST_BYTES, &bytes, &n, &problem);
    if (status == TDM_E_MEMORY)
        return TDM_FAIL(err, status, "reading %s: out of memory", beside);
    *text = bytes;
    return TDM_OK;
}

/* Three numbers that are these. */
static bool are(const tdm_json_value *values, double red, double green, double blue)
{
    const double expected[] = {red, green, blue};
    bool are_same = tdm_json_count(values) == 3;
    for (size_t i = 0; are_same && i < 3; i++)
        are_same = fabs(tdm_json_as_number(tdm_json_at(values, i), NAN) - expected[i]) < 1e-3;
    return are_same;
}

/* By the mean and deviation of values from 0 to 1. */
static bool find_scale(const tdm_json_value *config, enum tdmi_scale *scale)
{
    const tdm_json_value *mean = tdm_json_member(config, "mean"),
                         *deviation = tdm_json_member(config, "std");
    if (are(mean, 0.485, 0.456, 0.406) && are(deviation, 0.229, 0.224, 0.225))
        *scale = TDMI_SCALE_TORCH;
    else if (are(mean, 0.5, 0.5, 0.5) && are(deviation, 0.5, 0.5, 0.5))
        *scale = TDMI_SCALE_TF;
    else if (are(mean, 0.0, 0.0, 0.0) && are(deviation, 1.0, 1.0, 1.0))
        *scale = TDMI_SCALE_UNIT;
    else
        return false;
    return true;
}

/* input_size is channels, height, width. */
static bool find_preprocess(const tdm_json_value *config, struct tdmi_preprocess *preprocess)
{
    const tdm_json_value *size = tdm_json_member(config, "input_size");
    const double crop = tdm_json_as_number(tdm_json_member(config, "crop_pct"), 0.875);
    const char *mode = tdm_json_as_string(tdm_json_member(config, "crop_mode"), "center");
    int64_t sides[3];
    *preprocess = (struct tdmi_preprocess){.fit = TDMI_FIT_CROP, .crop_fraction = crop};
    for (size_t i = 0; i < 3; i++) {
        sides[i] = tdm_json_as_integer(tdm_json_at(size, i), 0);
        if (sides[i] < 1 || sides[i] > 4096)
            return false;
    }
    preprocess->channels = (int)sides[0];
    preprocess->height = (int)sides[1];
    preprocess->width = (int)sides[2];
    return (sides[0] == 1 || sides[0] == 3) && crop >= 0.01 && crop <= 1.0 &&
           strcmp(mode, "center") == 0 && find_scale(config, &preprocess->scale) &&
           tdmi_filter_find(tdm_json_as_string(tdm_json_member(config, "interpolation"), "bicubic"),
                            &preprocess->filter, NULL) == TDM_OK;
}

static tdm_status take(struct tdmi_importing *it, const tdm_json_value *root, tdm_error *err)
{
    const tdm_json_value *config = tdm_json_member(root, "pretrained_cfg");
    const char *name = tdm_json_as_string(tdm_json_member(root, "architecture"), NULL);
    struct tdmi_network network;
    struct tdmi_preprocess preprocess;
    if (tdm_json_kind_of(config) != TDM_JSON_OBJECT)
        return TDM_OK;
    if (!it->facts.network && name && tdmi_network_find(name, &network, NULL) == TDM_OK)
        TDMI_ARENA_COPY(&it->import->arena, it->facts.network, name, err);
    if (!it->facts.classes)
        TDMI_TRY(tdmi_import_take_classes(it, tdm_json_member(root, "label_names"), err));
    if (!find_preprocess(config, &preprocess))
        return tdmi_import_note(it, err,
                                "the config.json beside the file has a preprocessing of timm that "
                                "has no equal here");
    it->facts.has_preprocess = true;
    it->facts.preprocess = preprocess;
    return tdmi_import_note(it, err,
                            "images become numbers as the config.json beside the file says: scale "
                            "%s, fit crop to %.4g",
                            tdmi_scale_word(preprocess.scale), preprocess.crop_fraction);
}

tdm_status tdmi_import_read_beside(struct tdmi_importing *it, tdm_error *err)
{
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    TDMI_AT_END(tdmi_free_at) char *found = NULL;
    const char *text = it->request->beside;
    tdm_error problem = {0};
    if (it->facts.has_preprocess)
        return TDM_OK;
    if (!text) {
        TDMI_TRY(tdmi_import_find_beside(it->weights, &found, err));
        text = found ? found : "";
    }
    if (!*text)
        return TDM_OK;
    const tdm_status status = tdm_json_read(text, strlen(text), "config.json", &document, &problem);
    if (status == TDM_E_MEMORY)
        return TDM_FAIL(err, status, "reading the config.json beside the file: out of memory");
    return document ? take(it, tdm_json_root(document), err) : TDM_OK;
}
