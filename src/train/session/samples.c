/*
 * Sample images of the best epoch and the report page of a finished run. A failure here is reported
 * and does not fail the training.
 */
#include "base/file/file.h"
#include "base/scope.h"
#include "base/text/text.h"
#include "data/loader/loader.h"
#include "train/evaluate/samples.h"
#include "train/report/review.h"
#include "train/session/session.h"

#include <string.h>

enum { longest_side = 96, jpeg_quality = 85 };

/* The validation item of that content; -1: the source no longer has it. */
static int64_t find_item(const struct tdmi_train_data *data, uint64_t content)
{
    for (int64_t i = 0; i < data->split.n_val; i++)
        if (data->contents.hashes[data->split.val[i]] == content)
            return data->split.val[i];
    return -1;
}

/* The network's preprocessing, at most as large as the report shows. */
static struct tdmi_preprocess small(const struct tdmi_train_network *network)
{
    struct tdmi_preprocess preprocess = *tdmi_graph_preprocess(network->graph);
    const int side = preprocess.width > preprocess.height ? preprocess.width : preprocess.height;
    preprocess.channels = 3;
    if (side > longest_side) {
        preprocess.width = (preprocess.width * longest_side + side - 1) / side;
        preprocess.height = (preprocess.height * longest_side + side - 1) / side;
    }
    return preprocess;
}

static tdm_status write_jpeg(const struct tdmi_preprocess *preprocess, const uint8_t *pixels,
                             tdmi_samples *samples, struct tdmi_sample *sample, tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    TDMI_TRY(tdmi_image_reshape(&image, preprocess->width, preprocess->height, err));
    memcpy(image.pixels, pixels, (size_t)preprocess->width * (size_t)preprocess->height * 3);
    TDMI_TRY(tdmi_image_encode(&image, TDMI_IMAGE_JPEG, jpeg_quality, &bytes, err));
    uint8_t *copy = tdmi_arena_alloc(&samples->arena, bytes.length_bytes, 1);
    TDMI_CHECK_MEMORY(copy, err);
    memcpy(copy, bytes.bytes, bytes.length_bytes);
    sample->jpeg = copy;
    sample->jpeg_bytes = (int64_t)bytes.length_bytes;
    return TDM_OK;
}

/* Reads the samples' images; an unreadable one leaves its sample without. */
static tdm_status read_pictures(const struct tdmi_session *session, const int64_t *items,
                                tdmi_samples *samples, tdm_error *err)
{
    const struct tdmi_batch *batch;
    TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *loader = NULL;
    const struct tdmi_loader_options options = {
        .source = session->data.source,
        .preprocess = small(&session->network),
        .items = items,
        .n_items = samples->n,
        .batch = samples->n,
        .threads = session->compute.placement.loader_threads,
        .placement = &session->compute.placement,
        .depth = 1,
        /* A cache on disk saves reading a remote source again. */
        .cache = tdmi_data_cache(session),
    };
    const size_t picture_bytes =
        (size_t)options.preprocess.width * (size_t)options.preprocess.height * 3;
    TDMI_TRY(tdmi_loader_open(&options, &loader, err));
    TDMI_TRY(tdmi_loader_seek(loader, 0, 0, err));
    TDMI_TRY(tdmi_loader_next(loader, &batch, err));
    for (int p = 0; p < batch->n; p++)
        if (!*batch->problems[p])
            TDMI_TRY(write_jpeg(&options.preprocess, batch->pixels + (size_t)p * picture_bytes,
                                samples, &samples->samples[p], err));
    return TDM_OK;
}

static void drop_unread(tdmi_samples *samples)
{
    int n = 0;
    for (int i = 0; i < samples->n; i++)
        if (samples->samples[i].jpeg)
            samples->samples[n++] = samples->samples[i];
    samples->n = n;
}

static tdm_status gather(const struct tdmi_session *session, const tdmi_outcomes *outcomes,
                         tdmi_samples *samples, tdm_error *err)
{
    int64_t items[TDMI_SAMPLES_MOST];
    int n = 0;
    tdmi_samples_choose(outcomes, samples);
    for (int i = 0; i < samples->n; i++) {
        items[n] = find_item(&session->data, outcomes->contents[samples->samples[i].entry]);
        if (items[n] < 0)
            continue;
        samples->samples[n] = samples->samples[i];
        samples->samples[n].name = tdmi_source_item(session->data.source, items[n]).path;
        n++;
    }
    samples->n = n;
    if (n == 0)
        return TDM_OK;
    TDM_TRY(read_pictures(session, items, samples, err), err, "reading %d images again", n);
    drop_unread(samples);
    return TDM_OK;
}

static tdm_status keep(struct tdmi_session *session, tdmi_arena *scratch, tdm_error *err)
{
    const char *run = tdmi_run_path(session->record.run);
    const char *outcomes_path = tdmi_path_join(scratch, run, TDMI_OUTCOMES_NAME);
    const char *path = tdmi_path_join(scratch, run, TDMI_SAMPLES_NAME);
    TDMI_AT_END(tdmi_outcomes_release) tdmi_outcomes outcomes = {0};
    TDMI_AT_END(tdmi_samples_release) tdmi_samples samples = {0};
    TDMI_CHECK_MEMORY(outcomes_path && path, err);
    TDM_TRY(tdmi_outcomes_load(outcomes_path, &outcomes, err), err, "choosing sample images");
    TDMI_TRY(gather(session, &outcomes, &samples, err));
    TDMI_TRY(tdmi_run_check(session->record.run, err));
    return tdmi_samples_save(&samples, path, err);
}

static tdm_status write_page(struct tdmi_session *session, tdmi_arena *scratch, tdm_error *err)
{
    const char *run = tdmi_run_path(session->record.run);
    const char *path = tdmi_path_join(scratch, run, TDM_REPORT_NAME);
    TDMI_AT_END(tdmi_text_release) tdmi_text page = {0};
    tdm_runs *runs = NULL;
    TDMI_CHECK_MEMORY(path, err);
    TDM_TRY(tdm_runs_read(&run, 1, &runs, err), err, "writing a report");
    const tdm_status status = tdmi_report_write(runs, &page, err);
    tdm_runs_close(runs);
    TDM_TRY(status, err, "writing a report");
    return TDM_WRAP(err, tdmi_file_write_in_folder(path, page.bytes, page.length_bytes, err),
                    "writing a report");
}

static void try_to(struct tdmi_session *session,
                   tdm_status (*make)(struct tdmi_session *session, tdmi_arena *scratch,
                                      tdm_error *err),
                   const char *what_is_missing)
{
    tdm_error why = {0};
    char text[TDM_ERROR_TEXT_BYTES];
    TDMI_AT_END(tdmi_arena_release) tdmi_arena scratch = {0};
    if (make(session, &scratch, &why) != TDM_OK) {
        tdm_error_line(&why, text, sizeof text);
        tdmi_record_note(&session->record, "%s: %s", what_is_missing, text);
    }
}

void tdmi_session_keep_samples(struct tdmi_session *session)
{
    try_to(session, keep, "no sample images are kept for the report");
}

void tdmi_session_report(struct tdmi_session *session)
{
    try_to(session, write_page, "the run has no report");
}
