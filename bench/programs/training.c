/*
 * Initial state and losses of a training, for comparison with peers:
 *
 *     training pictures OPTIONS.json FOLDER [EPOCHS]
 *     training losses OPTIONS.json
 *
 * OPTIONS.json has members called as the options of `tandem train`, and source, run and resume.
 *
 * pictures writes into FOLDER, which is there: pixels (pictures as the network reads them, bytes of
 * height, width, channels: training images, then validation images; a pipe of that name is written
 * to), labels.i32 and contents.u64 of the same pictures, order.i64 (EPOCHS rows: which of those
 * that train comes when), and head.json with the numbers of each and the classes. RUN gets
 * first.safetensors, the weights before the first step.
 *
 * losses trains, and prints a line for each step: its number, its rate, and the mean loss of its
 * batch before its update.
 */
#include "base/file/file.h"
#include "base/memory.h"
#include "train/config/options.h"
#include "train/session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- losses ------------------------------------------------------------------------------- */

struct losses {
    int epoch;
    int64_t done;
    double sum;
    bool is_training;
};

/* Progress tells the mean of an epoch so far; a step's loss is what it added. */
static void hear(void *self, const tdm_event *event)
{
    struct losses *it = self;
    if (event->kind == TDM_EVENT_PHASE_BEGIN) {
        it->is_training = event->epoch > 0;
        it->done = 0;
        it->sum = 0.0;
    }
    if (event->kind != TDM_EVENT_PROGRESS || !it->is_training)
        return;
    const double sum = event->loss * (double)event->done;
    printf("%lld %.17g %.9g\n", (long long)event->step, event->learning_rate,
           (sum - it->sum) / (double)(event->done - it->done));
    it->done = event->done;
    it->sum = sum;
}

static tdm_status report_losses(const struct tdm_train_options *options, tdm_error *err)
{
    struct losses losses = {0};
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    return tdm_train(options, (tdm_sink){.self = &losses, .event = hear}, &result, err);
}

/* ---- pictures ----------------------------------------------------------------------------- */

static FILE *make(const char *folder, const char *name, tdm_error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file)
        (void)TDM_FAIL(err, TDM_E_SYSTEM, "writing %s: it cannot be made", path);
    return file;
}

static tdm_status end(FILE *file, const char *name, tdm_error *err)
{
    const bool is_written = !ferror(file);
    if (fclose(file) != 0 || !is_written)
        return TDM_FAIL(err, TDM_E_SYSTEM, "writing %s: it takes no more", name);
    return TDM_OK;
}

static tdm_status put_pixels(const struct tdmi_session *session, const int64_t *items, int64_t n,
                             FILE *file, tdm_error *err)
{
    const size_t bytes = (size_t)tdmi_shape_values(session->network.graph->nodes[0].out);
    const struct tdmi_loader_options options = {
        .source = session->data.source,
        .preprocess = *tdmi_graph_preprocess(session->network.graph),
        .items = items,
        .n_items = n,
        .batch = 64,
        .threads = tdmi_pool_threads(session->compute.pool),
    };
    tdmi_loader *loader;
    const struct tdmi_batch *batch = NULL;
    TDM_TRY(tdmi_loader_open(&options, &loader, err), err, "reading pictures");
    tdm_status status = tdmi_loader_seek(loader, 0, 0, err);
    while (status == TDM_OK) {
        status = tdmi_loader_next(loader, &batch, err);
        if (status != TDM_OK || !batch)
            break;
        for (int i = 0; i < batch->n && status == TDM_OK; i++)
            if (batch->problems[i][0])
                status =
                    TDM_FAIL(err, TDM_E_INPUT, "a picture cannot be used: %s", batch->problems[i]);
        if (fwrite(batch->pixels, bytes, (size_t)batch->n, file) != (size_t)batch->n)
            status = TDM_FAIL(err, TDM_E_SYSTEM, "pixels take no more");
    }
    tdmi_loader_close(loader);
    return status;
}

static void put_facts(const struct tdmi_session *session, const int64_t *items, int64_t n,
                      FILE *labels, FILE *contents)
{
    for (int64_t i = 0; i < n; i++) {
        const int32_t label = tdmi_source_item(session->data.source, items[i]).label;
        fwrite(&label, sizeof label, 1, labels);
        fwrite(&session->data.contents.hashes[items[i]], sizeof(uint64_t), 1, contents);
    }
}

static tdm_status put_arrays(const struct tdmi_session *session, const char *folder,
                             uint32_t epochs, tdm_error *err)
{
    const tdmi_split *split = &session->data.split;
    enum { LABELS, CONTENTS, ORDER, N_FILES };
    static const char *const names[N_FILES] = {"labels.i32", "contents.u64", "order.i64"};
    FILE *files[N_FILES] = {NULL};
    tdm_status status = TDM_OK;
    for (int i = 0; i < N_FILES && status == TDM_OK; i++) {
        files[i] = make(folder, names[i], err);
        status = files[i] ? TDM_OK : TDM_E_SYSTEM;
    }
    if (status == TDM_OK) {
        put_facts(session, split->train, split->n_train, files[LABELS], files[CONTENTS]);
        put_facts(session, split->val, split->n_val, files[LABELS], files[CONTENTS]);
    }
    for (uint32_t epoch = 0; epoch < epochs && status == TDM_OK; epoch++)
        for (int64_t i = 0; i < split->n_train; i++) {
            const int64_t place = tdmi_order_at(&session->data.order, epoch, i);
            fwrite(&place, sizeof place, 1, files[ORDER]);
        }
    /* All are closed; the first failure is the one to report. */
    for (int i = 0; i < N_FILES; i++) {
        const tdm_status ended =
            files[i] ? end(files[i], names[i], status == TDM_OK ? err : NULL) : TDM_OK;
        status = status == TDM_OK ? ended : status;
    }
    return status;
}

static tdm_status put_head(const struct tdmi_session *session, const char *folder, uint32_t epochs,
                           tdm_error *err)
{
    const struct tdmi_shape shape = session->network.graph->nodes[0].out;
    const char *text;
    tdm_json_writer *json = tdm_json_writer_new(1);
    tdm_json_object_begin(json, NULL);
    tdm_json_string(json, "network", session->network.definition.name);
    tdm_json_integer(json, "n_train", session->data.split.n_train);
    tdm_json_integer(json, "n_val", session->data.split.n_val);
    tdm_json_integer(json, "height", shape.h);
    tdm_json_integer(json, "width", shape.w);
    tdm_json_integer(json, "channels", shape.c);
    tdm_json_integer(json, "batch", session->data.max_batch);
    tdm_json_integer(json, "epochs", epochs);
    tdm_json_array_begin(json, "classes");
    for (int c = 0; c < tdmi_source_classes(session->data.source); c++)
        tdm_json_string(json, NULL, tdmi_source_class(session->data.source, c));
    tdm_json_array_end(json);
    tdm_json_object_end(json);
    tdm_status status = tdm_json_finish(json, &text, NULL, err);
    FILE *file = status == TDM_OK ? make(folder, "head.json", err) : NULL;
    if (file) {
        fprintf(file, "%s\n", text);
        status = end(file, "head.json", err);
    } else if (status == TDM_OK) {
        status = TDM_E_SYSTEM;
    }
    tdm_json_writer_free(json);
    return status;
}

static tdm_status put_pictures(struct tdmi_session *session, const char *folder, tdm_error *err)
{
    FILE *file = make(folder, "pixels", err);
    if (!file)
        return TDM_E_SYSTEM;
    tdm_status status =
        put_pixels(session, session->data.split.train, session->data.split.n_train, file, err);
    if (status == TDM_OK)
        status = put_pixels(session, session->data.split.val, session->data.split.n_val, file, err);
    const tdm_status ended = end(file, "pixels", status == TDM_OK ? err : NULL);
    return status == TDM_OK ? ended : status;
}

/* The checkpoint of a training that has not begun. */
static tdm_status put_weights(struct tdmi_session *session, tdm_error *err)
{
    char last[4096], first[4096];
    snprintf(last, sizeof last, "%s/last.safetensors", tdmi_run_path(session->record.run));
    snprintf(first, sizeof first, "%s/first.safetensors", tdmi_run_path(session->record.run));
    TDM_TRY(tdmi_session_checkpoint(session, err), err, "keeping the first weights");
    if (rename(last, first) != 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "renaming %s to %s: it cannot be done", last, first);
    return TDM_OK;
}

static tdm_status report_pictures(const struct tdm_train_options *options, const char *folder,
                                  uint32_t epochs, tdm_error *err)
{
    struct tdmi_session session;
    TDM_TRY(tdmi_session_open(options, (tdm_sink){0}, &session, err), err, "opening the training");
    tdm_status status = put_weights(&session, err);
    if (status == TDM_OK)
        status = put_arrays(&session, folder, epochs, err);
    if (status == TDM_OK)
        status = put_head(&session, folder, epochs, err);
    if (status == TDM_OK)
        status = put_pictures(&session, folder, err);
    tdmi_session_release(&session);
    return status;
}

/* ---- the command -------------------------------------------------------------------------- */

static tdm_status run(int n, char **words, tdm_error *err)
{
    struct tdm_train_options options = tdm_train_options_default();
    tdm_json_document *document = NULL;
    void *text;
    size_t length;
    TDM_TRY(tdmi_file_read(words[1], 1 << 20, &text, &length, err), err, "reading %s", words[1]);
    tdm_status status = tdm_json_read(text, length, words[1], &document, err);
    if (status == TDM_OK)
        status = tdmi_options_from_json(tdm_json_root(document), &options, err);
    if (status == TDM_OK && strcmp(words[0], "losses") == 0)
        status = report_losses(&options, err);
    else if (status == TDM_OK)
        status = report_pictures(&options, words[2],
                                 n > 3 ? (uint32_t)strtoul(words[3], NULL, 10) : 1, err);
    tdm_json_document_free(document);
    tdmi_free(text);
    return TDM_WRAP(err, status, "with the options of %s", words[1]);
}

int main(int n_arguments, char **arguments)
{
    tdm_error err = {0};
    char text[3000];
    const bool is_losses = n_arguments == 3 && strcmp(arguments[1], "losses") == 0;
    const bool is_pictures =
        (n_arguments == 4 || n_arguments == 5) && strcmp(arguments[1], "pictures") == 0;
    if (!is_losses && !is_pictures) {
        fprintf(stderr, "usage: training pictures OPTIONS.json FOLDER [EPOCHS]\n"
                        "       training losses OPTIONS.json\n");
        return 2;
    }
    tdm_status status = run(n_arguments - 1, arguments + 1, &err);
    if (status != TDM_OK) {
        tdm_error_format(&err, text, sizeof text);
        fprintf(stderr, "%s\n", text);
    }
    return tdm_status_exit(status);
}
