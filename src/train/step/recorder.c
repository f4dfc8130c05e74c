/* Recordings of queued work, found by their keys. */
#include "train/step/recorder.h"
#include "base/memory.h"
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

tdm_status tdmi_recorder_open(const struct tdmi_backend *backend, tdmi_device *device,
                              tdmi_stream *stream, int most, tdmi_recorder **recorder,
                              tdm_error *err)
{
    tdmi_recorder *made = tdmi_alloc(1, sizeof *made);
    if (made)
        made->entries = tdmi_alloc((size_t)most, sizeof *made->entries);
    if (!made || !made->entries) {
        tdmi_free(made);
        return TDM_FAIL(err, TDM_E_MEMORY, "preparing to record steps: out of memory");
    }
    made->backend = backend;
    made->device = device;
    made->stream = stream;
    made->most = most;
    *recorder = made;
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
                         tdm_status (*queue)(void *self, tdm_error *err), void *self,
                         tdm_error *err)
{
    const struct tdmi_stream_table *table = &recorder->backend->stream;
    const int64_t before = free_bytes(recorder);
    TDM_TRY(table->capture_begin(recorder->stream, err), err, "recording");
    const tdm_status queued = queue(self, err);
    const tdm_status ended = table->capture_end(recorder->stream, recording, queued ? NULL : err);
    const int64_t after = free_bytes(recorder);
    if (!queued && !ended && after > 0 && after < before) /* else other programs freed some */
        recorder->bytes += before - after;
    return TDM_WRAP(err, queued ? queued : ended, "recording");
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
static tdm_status record_and_replay(tdmi_recorder *recorder, struct entry *entry,
                                    tdm_status (*queue)(void *self, tdm_error *err), void *self,
                                    tdm_error *err)
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
        return TDM_OK;
    }
    if (recording)
        table->recording_close(recording);
    refuse(recorder, entry, &why);
    return queue(self, err); /* a failure of the work itself repeats here */
}

tdm_status tdmi_recorder_run(tdmi_recorder *recorder, struct tdmi_recorder_key key,
                             tdm_status (*queue)(void *self, tdm_error *err), void *self,
                             tdm_error *err)
{
    const struct tdmi_stream_table *table = &recorder->backend->stream;
    struct entry *entry = find(recorder, &key);
    if (!entry || entry->is_refused || !table->capture_begin) {
        if (!entry && recorder->n < recorder->most)
            recorder->entries[recorder->n++].key = key;
        /* libraries that allocate on first use do it now, outside a recording */
        return queue(self, err);
    }
    if (!entry->recording)
        return record_and_replay(recorder, entry, queue, self, err);
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
