/* Recordings of queued work, found by their keys. */
#include "train/step/recorder.h"
#include "base/scope.h"
#include "tandem/log.h"

struct entry {
    struct tdmi_recorder_key key;
    tdmi_recording *recording; /* replayed at least once; NULL: seen once, or refused */
    bool is_refused;           /* the device cannot record it: it is queued each time */
};

struct tdmi_recorder {
    const struct tdmi_backend *backend;
    tdmi_device *device;
    tdmi_stream *stream;
    struct entry *entries;
    int n, most;
    int64_t replays, bytes;
    bool has_warned;
};

TDMI_POINTER_RELEASE(tdmi_recorder, tdmi_recorder_close)

tdm_status tdmi_recorder_open(const struct tdmi_backend *backend, tdmi_device *device,
                              tdmi_stream *stream, int most, tdmi_recorder **recorder,
                              tdm_error *err)
{
    TDMI_AT_END(tdmi_recorder_close_at) tdmi_recorder *made = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    TDMI_TRY(TDMI_NEW(made->entries, most, err));
    made->backend = backend;
    made->device = device;
    made->stream = stream;
    made->most = most;
    *recorder = tdmi_take(&made);
    return TDM_OK;
}

void tdmi_recorder_close(tdmi_recorder *recorder)
{
    if (!recorder)
        return;
    for (int i = 0; i < recorder->n; i++)
        if (recorder->entries[i].recording)
            recorder->backend->stream.recording_close(recorder->entries[i].recording);
    tdmi_free(recorder->entries);
    tdmi_free(recorder);
}

static bool is_same(const struct tdmi_recorder_key *a, const struct tdmi_recorder_key *b)
{
    return a->n == b->n && a->is_mixed == b->is_mixed && a->is_changed == b->is_changed &&
           a->is_kept == b->is_kept && a->params == b->params && a->sums == b->sums &&
           a->part == b->part && a->next == b->next;
}

static struct entry *find(tdmi_recorder *recorder, const struct tdmi_recorder_key *key)
{
    for (int i = 0; i < recorder->n; i++)
        if (is_same(&recorder->entries[i].key, key))
            return &recorder->entries[i];
    return NULL;
}

/* Free memory of the device; 0: unknown. */
static int64_t free_bytes(const tdmi_recorder *recorder)
{
    const struct tdmi_device_table *table = &recorder->backend->device;
    int64_t free_now = 0, total = 0;
    return table->memory && table->memory(recorder->device, &free_now, &total) ? free_now : 0;
}

/* Records the work without running any of it. */
static tdm_status record(tdmi_recorder *recorder, tdmi_recording **recording,
                         void (*queue)(void *self), void *self, tdm_error *err)
{
    const struct tdmi_stream_table *table = &recorder->backend->stream;
    const int64_t before = free_bytes(recorder);
    TDM_TRY(table->capture_begin(recorder->stream, err), err, "recording");
    queue(self);
    TDM_TRY(table->capture_end(recorder->stream, recording, err), err, "recording");
    const int64_t after = free_bytes(recorder);
    if (after > 0 && after < before) /* else other programs freed some */
        recorder->bytes += before - after;
    return TDM_OK;
}

/* Recording saves time and does not change results, so training continues without. */
static void refuse(tdmi_recorder *recorder, struct entry *entry, const tdm_error *why)
{
    char text[TDM_ERROR_TEXT_BYTES];
    entry->is_refused = true;
    if (recorder->has_warned)
        return;
    recorder->has_warned = true;
    tdm_error_line(why, text, sizeof text);
    tdm_log(TDM_LOG_WARNING, "steps that cannot be recorded are queued one by one: %s", text);
}

/* Work that was queued once before. A device that fails to begin a replay has begun none of it. */
static void record_and_replay(tdmi_recorder *recorder, struct entry *entry,
                              void (*queue)(void *self), void *self)
{
    const struct tdmi_stream_table *table = &recorder->backend->stream;
    tdmi_recording *recording = NULL;
    tdm_error why;
    tdm_error_clear(&why);
    tdm_status status = record(recorder, &recording, queue, self, &why);
    if (status == TDM_OK)
        status = TDM_WRAP(&why, table->replay(recorder->stream, recording, &why), "replaying");
    if (status == TDM_OK) {
        entry->recording = recording;
        recorder->replays++;
        return;
    }
    if (recording)
        table->recording_close(recording);
    refuse(recorder, entry, &why);
    queue(self);
}

tdm_status tdmi_recorder_run(tdmi_recorder *recorder, struct tdmi_recorder_key key,
                             void (*queue)(void *self), void *self, tdm_error *err)
{
    const struct tdmi_stream_table *table = &recorder->backend->stream;
    struct entry *entry = find(recorder, &key);
    if (!entry || entry->is_refused || !table->capture_begin) {
        if (!entry && recorder->n < recorder->most)
            recorder->entries[recorder->n++].key = key;
        queue(self); /* libraries that allocate on first use do it now, outside a recording */
        return TDM_OK;
    }
    if (!entry->recording) {
        record_and_replay(recorder, entry, queue, self);
        return TDM_OK;
    }
    recorder->replays++;
    return TDM_WRAP(err, table->replay(recorder->stream, entry->recording, err), "replaying");
}

int64_t tdmi_recorder_replays(const tdmi_recorder *recorder)
{
    return recorder->replays;
}

int64_t tdmi_recorder_bytes(const tdmi_recorder *recorder)
{
    return recorder->bytes;
}
