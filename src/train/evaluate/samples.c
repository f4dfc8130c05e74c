/*
 * Choosing samples, and their file. Every value of a file is checked, because the report shows its
 * bytes in a browser.
 */
#include "train/evaluate/samples.h"
#include "weights/safetensors/safetensors.h"
#include "base/text/json.h"

#include <string.h>

/* ---- choosing ---------------------------------------------------------------------------- */

/* Does entry a come before b among those of its kind? */
static bool is_before(const tdmi_outcomes *outcomes, bool is_mistake, int64_t a, int64_t b)
{
    if (is_mistake && outcomes->confidences[a] != outcomes->confidences[b])
        return outcomes->confidences[a] > outcomes->confidences[b];
    return outcomes->contents[a] < outcomes->contents[b];
}

static bool is_shown(const tdmi_outcomes *outcomes, const tdmi_samples *samples, int64_t entry)
{
    for (int i = 0; i < samples->n; i++)
        if (outcomes->contents[samples->samples[i].entry] == outcomes->contents[entry])
            return true;
    return false;
}

/* Chooses the first `most` of a kind, in order, by insertion. */
static void choose_kind(const tdmi_outcomes *outcomes, bool is_mistake, int most,
                        tdmi_samples *samples)
{
    const int first = samples->n;
    for (int64_t e = 0; e < outcomes->n; e++) {
        if (outcomes->contents[e] == 0 ||
            (is_mistake && outcomes->predicted[e] == outcomes->labels[e]))
            continue;
        const bool is_full = samples->n == first + most;
        if (is_full && !is_before(outcomes, is_mistake, e, samples->samples[samples->n - 1].entry))
            continue;
        if (is_shown(outcomes, samples, e))
            continue;
        int at = is_full ? samples->n - 1 : samples->n++;
        while (at > first && is_before(outcomes, is_mistake, e, samples->samples[at - 1].entry)) {
            samples->samples[at] = samples->samples[at - 1];
            at--;
        }
        samples->samples[at] = (struct tdmi_sample){.entry = e, .is_mistake = is_mistake};
    }
}

void tdmi_samples_choose(const tdmi_outcomes *outcomes, tdmi_samples *samples)
{
    samples->step = outcomes->step;
    samples->n = 0;
    choose_kind(outcomes, true, TDMI_SAMPLES_MISTAKES, samples);
    choose_kind(outcomes, false, TDMI_SAMPLES_DRAWN, samples);
}

void tdmi_samples_release(tdmi_samples *samples)
{
    tdmi_arena_release(&samples->arena);
    *samples = (tdmi_samples){0};
}

/* ---- the file ---------------------------------------------------------------------------- */

static void describe(const tdmi_samples *samples, tdm_json_writer *writer)
{
    tdm_json_object_begin(writer, NULL);
    tdm_json_integer(writer, "format_version", TDMI_SAMPLES_FORMAT_VERSION);
    tdm_json_string(writer, "tandem", tdm_version());
    tdm_json_integer(writer, "step", samples->step);
    tdm_json_array_begin(writer, "samples");
    for (int i = 0; i < samples->n; i++) {
        const struct tdmi_sample *sample = &samples->samples[i];
        tdm_json_object_begin(writer, NULL);
        tdm_json_integer(writer, "entry", sample->entry);
        tdm_json_string(writer, "why", sample->is_mistake ? "mistake" : "drawn");
        tdm_json_string(writer, "name", sample->name);
        tdm_json_integer(writer, "bytes", sample->jpeg_bytes);
        tdm_json_object_end(writer);
    }
    tdm_json_array_end(writer);
    tdm_json_object_end(writer);
}

static tdm_status save(const tdmi_samples *samples, const char *path, tdm_error *err)
{
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *description = tdm_json_writer_new(0);
    TDMI_AT_END(tdmi_safetensors_writer_free_at)
    tdmi_safetensors_writer *writer = tdmi_safetensors_writer_new();
    TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
    const char *text;
    for (int i = 0; i < samples->n; i++)
        tdmi_text_add(&bytes, samples->samples[i].jpeg, (size_t)samples->samples[i].jpeg_bytes);
    const int64_t n = (int64_t)bytes.length_bytes;
    TDMI_TRY(tdmi_text_status(&bytes, err));
    describe(samples, description);
    TDMI_TRY(tdm_json_finish(description, &text, NULL, err));
    tdmi_safetensors_note(writer, "format", "tandem.samples");
    tdmi_safetensors_note(writer, "tandem", text);
    tdmi_safetensors_add(writer, "jpeg", TDMI_DTYPE_U8, 1, &n, bytes.bytes);
    return tdmi_safetensors_finish_in_folder(writer, path, err);
}

tdm_status tdmi_samples_save(const tdmi_samples *samples, const char *path, tdm_error *err)
{
    return TDM_WRAP(err, save(samples, path, err), "writing sample images to %s", path);
}

/* Reads the description of one image, whose bytes begin at `first` of n. */
static tdm_status read_sample(const tdm_json_value *object, const tdmi_outcomes *outcomes,
                              const uint8_t *bytes, int64_t first, int64_t n, tdmi_samples *samples,
                              tdm_error *err)
{
    struct tdmi_sample *sample = &samples->samples[samples->n];
    const char *why = tdm_json_as_string(tdm_json_member(object, "why"), "");
    sample->entry = tdm_json_as_integer(tdm_json_member(object, "entry"), -1);
    sample->jpeg_bytes = tdm_json_as_integer(tdm_json_member(object, "bytes"), -1);
    sample->is_mistake = strcmp(why, "mistake") == 0;
    if (sample->entry < 0 || sample->entry >= outcomes->n || sample->jpeg_bytes < 1 ||
        sample->jpeg_bytes > n - first || (!sample->is_mistake && strcmp(why, "drawn") != 0))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "sample %d is entry %lld of %lld outcomes, %lld of %lld bytes left, '%s', "
                        "which does not fit together",
                        samples->n, (long long)sample->entry, (long long)outcomes->n,
                        (long long)sample->jpeg_bytes, (long long)(n - first), why);
    uint8_t *copy = tdmi_arena_alloc(&samples->arena, (size_t)sample->jpeg_bytes, 1);
    sample->name =
        tdmi_arena_copy(&samples->arena, tdm_json_as_string(tdm_json_member(object, "name"), ""));
    if (!copy || !sample->name)
        return TDM_FAIL(err, TDM_E_MEMORY, "sample %d: out of memory", samples->n);
    memcpy(copy, bytes + first, (size_t)sample->jpeg_bytes);
    sample->jpeg = copy;
    samples->n++;
    return TDM_OK;
}

static tdm_status read_samples(const tdm_json_value *root, const tdmi_outcomes *outcomes,
                               const uint8_t *bytes, int64_t n, tdmi_samples *samples,
                               tdm_error *err)
{
    const int64_t version = tdm_json_as_integer(tdm_json_member(root, "format_version"), 0);
    const tdm_json_value *list = tdm_json_member(root, "samples");
    samples->step = tdm_json_as_integer(tdm_json_member(root, "step"), -1);
    if (version < 1 || version > TDMI_SAMPLES_FORMAT_VERSION)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "format %lld of sample images; this version of tandem reads 1 to %d",
                        (long long)version, TDMI_SAMPLES_FORMAT_VERSION);
    if (tdm_json_count(list) > TDMI_SAMPLES_MOST)
        return TDM_FAIL(err, TDM_E_INPUT, "%zu sample images; at most %d are accepted",
                        tdm_json_count(list), TDMI_SAMPLES_MOST);
    if (samples->step != outcomes->step)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the images are of step %lld, and the outcomes beside them of step %lld",
                        (long long)samples->step, (long long)outcomes->step);
    int64_t first = 0;
    for (size_t i = 0; i < tdm_json_count(list); i++) {
        TDM_TRY(read_sample(tdm_json_at(list, i), outcomes, bytes, first, n, samples, err), err,
                "reading sample images");
        first += samples->samples[i].jpeg_bytes;
    }
    return TDM_OK;
}

static tdm_status fill(const tdmi_safetensors *file, const tdmi_outcomes *outcomes,
                       tdmi_samples *samples, tdm_error *err)
{
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    const char *text = tdmi_safetensors_metadata(file, "tandem");
    const char *format = tdmi_safetensors_metadata(file, "format");
    const struct tdmi_safetensors_tensor *jpeg = tdmi_safetensors_find(file, "jpeg");
    const void *bytes = NULL;
    if (!text || !format || strcmp(format, "tandem.samples") != 0 || !jpeg)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it holds no sample images; a file that tandem train wrote is needed");
    const int64_t n = jpeg->n_values;
    TDMI_TRY(tdmi_safetensors_need(file, "jpeg", TDMI_DTYPE_U8, 1, &n, &bytes, err));
    TDMI_TRY(tdm_json_read(text, strlen(text), "metadata entry 'tandem'", &document, err));
    return read_samples(tdm_json_root(document), outcomes, bytes, n, samples, err);
}

tdm_status tdmi_samples_read(const void *bytes, size_t length_bytes, const char *name,
                             const tdmi_outcomes *outcomes, tdmi_samples *samples, tdm_error *err)
{
    TDMI_AT_END(tdmi_safetensors_close_at) tdmi_safetensors *file = NULL;
    *samples = (tdmi_samples){0};
    TDM_TRY(bytes ? tdmi_safetensors_open_bytes(bytes, length_bytes, name, &file, err)
                  : tdmi_safetensors_open(name, &file, err),
            err, "reading sample images");
    const tdm_status status = fill(file, outcomes, samples, err);
    if (status != TDM_OK)
        tdmi_samples_release(samples);
    return TDM_WRAP(err, status, "reading %s", name);
}

tdm_status tdmi_samples_load(const char *path, const tdmi_outcomes *outcomes, tdmi_samples *samples,
                             tdm_error *err)
{
    return tdmi_samples_read(NULL, 0, path, outcomes, samples, err);
}
