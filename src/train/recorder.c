/* A few recordings, found by their keys. */
#include "train/recorder.h"
#include "base/memory.h"
#include "tandem/log.h"

enum { most_recordings = 8 }; /* other work is queued as it is */

struct entry {
    struct tdmi_recorder_key key;
    tdmi_recording *recording; /* NULL: met once, or refused */
    bool is_refused;           /* by the device: queued as it is each time */
};

struct tdmi_recorder {
    const struct tdmi_backend *backend;
    tdmi_stream *stream;
    struct entry entries[most_recordings];
    int n;
    int64_t replays;
    bool has_told;
};

tdm_status tdmi_recorder_open(const struct tdmi_backend *backend, tdmi_stream *stream,
                              tdmi_recorder **recorder, tdm_error *err)
{
    *recorder = tdmi_alloc(1, sizeof **recorder);
    if (!*recorder)
        return TDM_FAIL(err, TDM_E_MEMORY, "preparing to record steps: out of memory");
    (*recorder)->backend = backend;
    (*recorder)->stream = stream;
    return TDM_OK;
}

void tdmi_recorder_close(tdmi_recorder *recorder)
{
    for (int i = 0; recorder && i < recorder->n; i++)
        if (recorder->entries[i].recording)
            recorder->backend->stream.recording_close(recorder->entries[i].recording);
    tdmi_free(recorder);
}

static bool is_same(const struct tdmi_recorder_key *a, const struct tdmi_recorder_key *b)
{
    return a->n == b->n && a->is_mixed == b->is_mixed && a->params == b->params &&
           a->next == b->next;
}

/* Nothing of what was to be recorded has run. */
static tdm_status record(const tdmi_recorder *recorder, struct entry *entry,
                         void (*queue)(void *self), void *self, tdm_error *err)
{
    const struct tdmi_stream_table *table = &recorder->backend->stream;
    TDM_TRY(table->capture_begin(recorder->stream, err), err, "a step of %d images", entry->key.n);
    queue(self);
    return TDM_WRAP(err, table->capture_end(recorder->stream, &entry->recording, err),
                    "a step of %d images", entry->key.n);
}

/* Recording saves time and changes no bits, so training goes on without. */
static void refuse(tdmi_recorder *recorder, struct entry *entry, const tdm_error *why)
{
    char text[TDM_ERROR_TEXT_BYTES];
    entry->is_refused = true;
    if (recorder->has_told)
        return;
    recorder->has_told = true;
    tdm_error_line(why, text, sizeof text);
    tdm_log(TDM_LOG_WARNING, "steps that cannot be recorded are queued one by one: %s", text);
}

tdm_status tdmi_recorder_run(tdmi_recorder *recorder, struct tdmi_recorder_key key,
                             void (*queue)(void *self), void *self, tdm_error *err)
{
    const struct tdmi_stream_table *table = &recorder->backend->stream;
    struct entry *entry = NULL;
    for (int i = 0; i < recorder->n && !entry; i++)
        if (is_same(&recorder->entries[i].key, &key))
            entry = &recorder->entries[i];
    if (!entry || entry->is_refused || !table->capture_begin) {
        if (!entry && recorder->n < most_recordings)
            recorder->entries[recorder->n++].key = key;
        queue(self); /* what is made when it is first used is made now, outside a recording */
        return TDM_OK;
    }
    if (!entry->recording) {
        tdm_error why;
        tdm_error_clear(&why);
        if (record(recorder, entry, queue, self, &why) != TDM_OK) {
            refuse(recorder, entry, &why);
            queue(self); /* what failed in it before fails again when the stream is waited for */
            return TDM_OK;
        }
    }
    recorder->replays++;
    return TDM_WRAP(err, table->replay(recorder->stream, entry->recording, err),
                    "a step of %d images", key.n);
}

int64_t tdmi_recorder_replays(const tdmi_recorder *recorder)
{
    return recorder->replays;
}
