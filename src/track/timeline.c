/*
 * Merging and writing traces. An event that was overwritten ended before all that its lane still
 * holds, so from the end of the oldest one on a lane is complete. The file begins with the first
 * step that begins after that moment in all lanes of all ranks.
 */
#include "track/timeline.h"
#include "base/file/file.h"
#include "base/text/json.h"
#include "base/text/text.h"

#include <string.h>

static const struct kind {
    const char *category, *name, *number, *values[2];
} kinds[TDMI_TRACE_KINDS] = {
#define X(kind, category, name, number, first, second) {category, name, number, {first, second}},
#include "base/trace.def"
#undef X
};

/* ---- what is kept ---------------------------------------------------------------------------- */

/* A lane of a rank while all are walked. */
struct walk {
    const struct tdmi_timeline *timeline;
    int rank;
    size_t at;
    int lane; /* of the rank, from 0 */
    struct tdmi_lane_head head;
    const struct tdmi_trace_event *events;
};

/* The next lane of any rank; walks begin with lane -1. */
static bool next_lane(struct walk *walk)
{
    for (; walk->rank < walk->timeline->n_ranks; walk->rank++, walk->at = 0, walk->lane = -1) {
        const struct tdmi_timeline_rank *rank = &walk->timeline->ranks[walk->rank];
        walk->lane++;
        if (tdmi_trace_next(rank->bytes, rank->n_bytes, &walk->at, &walk->head, &walk->events))
            return true;
    }
    return false;
}

static struct walk begin_walk(const struct tdmi_timeline *timeline)
{
    return (struct walk){.timeline = timeline, .lane = -1};
}

/* A moment of the rank on rank 0's clock. */
static int64_t common_ns(const struct walk *walk, int64_t ns)
{
    return ns - walk->timeline->ranks[walk->rank].ahead_ns;
}

/* From this moment on all lanes are complete; INT64_MIN: they always are. */
static int64_t complete_from(const struct tdmi_timeline *timeline, int64_t *n_dropped)
{
    int64_t from_ns = INT64_MIN;
    *n_dropped = 0;
    for (struct walk walk = begin_walk(timeline); next_lane(&walk);) {
        *n_dropped += walk.head.n_dropped;
        if (walk.head.n_dropped == 0 || walk.head.n_events == 0)
            continue;
        const int64_t end_ns = common_ns(&walk, walk.events[0].end_ns);
        from_ns = end_ns > from_ns ? end_ns : from_ns;
    }
    return from_ns;
}

/* Where the file begins, on rank 0's clock, at each rank's own begin of the same step. */
struct cut {
    int64_t from_ns;     /* where a rank has no such step */
    int64_t *begins_ns;  /* by rank */
    int64_t first, last; /* steps; 0: none */
};

static bool is_step_from(const struct walk *walk, const struct tdmi_trace_event *event,
                         int64_t from_ns)
{
    return event->kind == TDMI_TRACE_STEP && common_ns(walk, event->begin_ns) >= from_ns;
}

/* The first step that is whole on every rank that has steps. */
static void find_steps(const struct tdmi_timeline *timeline, struct cut *cut)
{
    cut->first = cut->last = 0;
    for (struct walk walk = begin_walk(timeline); next_lane(&walk);) {
        int64_t first = 0;
        for (int64_t i = 0; i < walk.head.n_events; i++) {
            const struct tdmi_trace_event *event = &walk.events[i];
            if (!is_step_from(&walk, event, cut->from_ns))
                continue;
            first = first == 0 || event->number < first ? event->number : first;
            cut->last = event->number > cut->last ? event->number : cut->last;
        }
        cut->first = first > cut->first ? first : cut->first;
    }
}

static void find_begins(const struct tdmi_timeline *timeline, struct cut *cut)
{
    for (int r = 0; r < timeline->n_ranks; r++)
        cut->begins_ns[r] = cut->from_ns;
    if (cut->from_ns == INT64_MIN) /* all that was before the first step stays too */
        return;
    for (struct walk walk = begin_walk(timeline); next_lane(&walk);)
        for (int64_t i = 0; i < walk.head.n_events; i++)
            if (is_step_from(&walk, &walk.events[i], cut->from_ns) &&
                walk.events[i].number == cut->first)
                cut->begins_ns[walk.rank] = common_ns(&walk, walk.events[i].begin_ns);
}

static bool is_kept(const struct cut *cut, const struct walk *walk,
                    const struct tdmi_trace_event *event)
{
    return common_ns(walk, event->begin_ns) >= cut->begins_ns[walk->rank];
}

/* ---- the text -------------------------------------------------------------------------------- */

struct writer {
    tdmi_atomic_file *file;
    tdmi_text text;
    tdmi_text *layers; /* quoted */
    int64_t zero_ns;   /* of the file's clock */
    bool has_events;
};

static void put(struct writer *writer, const char *text)
{
    tdmi_text_add(&writer->text, text, strlen(text));
}

/* Events are many, so numbers are not left to printf. */
static void put_integer(struct writer *writer, int64_t value, int least_digits)
{
    char digits[24], *at = digits + sizeof digits;
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    for (int n = 0; left > 0 || n < least_digits; n++, left /= 10)
        *--at = (char)('0' + left % 10);
    if (value < 0)
        *--at = '-';
    tdmi_text_add(&writer->text, at, (size_t)(digits + sizeof digits - at));
}

/* Microseconds with three digits after the point; ns is not negative. */
static void put_time(struct writer *writer, int64_t ns)
{
    put_integer(writer, ns / 1000, 1);
    put(writer, ".");
    put_integer(writer, ns % 1000, 3);
}

static void put_place(struct writer *writer, const char *phase, int rank, int lane)
{
    put(writer, writer->has_events ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
    put(writer, phase);
    put(writer, "\",\"pid\":");
    put_integer(writer, rank, 1);
    put(writer, ",\"tid\":");
    put_integer(writer, lane, 1);
    writer->has_events = true;
}

static void put_arguments(struct writer *writer, const struct kind *kind,
                          const struct tdmi_trace_event *event)
{
    const char *names[] = {kind->number, kind->values[0], kind->values[1]};
    const int64_t values[] = {event->number, event->values[0], event->values[1]};
    bool has_any = false;
    for (int i = 0; i < 3; i++) {
        if (!names[i])
            continue;
        put(writer, has_any ? ",\"" : ",\"args\":{\"");
        put(writer, names[i]);
        put(writer, "\":");
        put_integer(writer, values[i], 1);
        has_any = true;
    }
    if (has_any)
        put(writer, "}");
}

static void put_event(struct writer *writer, const struct tdmi_timeline *timeline,
                      const struct walk *walk, const struct tdmi_trace_event *event)
{
    const struct kind *kind = &kinds[event->kind];
    const bool is_layer = kind->number && strcmp(kind->number, "layer") == 0;
    put_place(writer, "X", walk->rank, walk->lane);
    put(writer, ",\"ts\":");
    put_time(writer, common_ns(walk, event->begin_ns) - writer->zero_ns);
    put(writer, ",\"dur\":");
    put_time(writer, event->end_ns - event->begin_ns);
    put(writer, ",\"cat\":\"");
    put(writer, kind->category);
    put(writer, "\",\"name\":\"");
    put(writer, kind->name);
    if (is_layer && event->number >= 0 && event->number < timeline->n_layers) {
        put(writer, " ");
        put(writer, tdmi_text_string(&writer->layers[event->number]));
    }
    put(writer, "\"");
    if (!is_layer)
        put_arguments(writer, kind, event);
    put(writer, "}");
}

static void put_name(struct writer *writer, int rank, int lane, const char *what, const char *name,
                     int number)
{
    put_place(writer, "M", rank, lane);
    put(writer, ",\"name\":\"");
    put(writer, what);
    put(writer, "\",\"args\":{\"name\":\"");
    put(writer, name);
    if (number >= 0) {
        put(writer, " ");
        put_integer(writer, number, 1);
    }
    put(writer, "\"}}");
}

static tdm_status flush(struct writer *writer, tdm_error *err)
{
    TDMI_TRY(tdmi_text_status(&writer->text, err));
    TDMI_TRY(tdmi_atomic_write(writer->file, tdmi_text_string(&writer->text),
                               writer->text.length_bytes, err));
    tdmi_text_clear(&writer->text);
    return TDM_OK;
}

static tdm_status put_lane(struct writer *writer, const struct cut *cut, const struct walk *walk,
                           struct tdmi_timeline_facts *facts, tdm_error *err)
{
    enum { flush_bytes = 256 * 1024 };
    if (walk->lane == 0)
        put_name(writer, walk->rank, 0, "process_name", "rank", walk->rank);
    put_name(writer, walk->rank, walk->lane, "thread_name", walk->head.name, -1);
    for (int64_t i = 0; i < walk->head.n_events; i++) {
        const struct tdmi_trace_event *event = &walk->events[i];
        if (!is_kept(cut, walk, event)) {
            facts->n_dropped++;
            continue;
        }
        put_event(writer, walk->timeline, walk, event);
        facts->n_events++;
        if (writer->text.length_bytes >= flush_bytes)
            TDMI_TRY(flush(writer, err));
    }
    return TDM_OK;
}

/* The begin of the earliest event. */
static int64_t find_zero(const struct tdmi_timeline *timeline, const struct cut *cut)
{
    int64_t zero_ns = INT64_MAX;
    for (struct walk walk = begin_walk(timeline); next_lane(&walk);)
        for (int64_t i = 0; i < walk.head.n_events; i++) {
            const int64_t begin_ns = common_ns(&walk, walk.events[i].begin_ns);
            if (begin_ns < zero_ns && is_kept(cut, &walk, &walk.events[i]))
                zero_ns = begin_ns;
        }
    return zero_ns;
}

/* Layer names as they stand inside a JSON string. */
static tdm_status quote_layers(const struct tdmi_timeline *timeline, struct writer *writer,
                               tdm_error *err)
{
    TDMI_TRY(TDMI_NEW(writer->layers, timeline->n_layers, err));
    for (int i = 0; i < timeline->n_layers; i++) {
        TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *json = tdm_json_writer_new(0);
        const char *text;
        size_t n_bytes;
        tdm_json_string(json, NULL, timeline->layers[i]);
        TDMI_TRY(tdm_json_finish(json, &text, &n_bytes, err));
        tdmi_text_add(&writer->layers[i], text + 1, n_bytes - 2); /* without its quotes */
        TDMI_TRY(tdmi_text_status(&writer->layers[i], err));
    }
    return TDM_OK;
}

static tdm_status write_all(const struct tdmi_timeline *timeline, const char *path,
                            const struct cut *cut, struct writer *writer,
                            struct tdmi_timeline_facts *facts, tdm_error *err)
{
    TDMI_TRY(quote_layers(timeline, writer, err));
    TDMI_TRY(tdmi_atomic_open(path, &writer->file, err));
    writer->zero_ns = find_zero(timeline, cut);
    put(writer, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    for (struct walk walk = begin_walk(timeline); next_lane(&walk);)
        TDMI_TRY(put_lane(writer, cut, &walk, facts, err));
    put(writer, "\n],\"otherData\":{\"ranks\":");
    put_integer(writer, timeline->n_ranks, 1);
    put(writer, ",\"dropped\":");
    put_integer(writer, facts->n_dropped, 1);
    put(writer, "}}\n");
    TDMI_TRY(flush(writer, err));
    return tdmi_atomic_commit(tdmi_take(&writer->file), err);
}

static bool is_sound(const struct tdmi_trace_event *event)
{
    return event->kind >= 0 && event->kind < TDMI_TRACE_KINDS && event->end_ns >= event->begin_ns;
}

static tdm_status check_ranks(const struct tdmi_timeline *timeline, tdm_error *err)
{
    for (int r = 0; r < timeline->n_ranks; r++) {
        const struct tdmi_timeline_rank *rank = &timeline->ranks[r];
        const struct tdmi_trace_event *events;
        struct tdmi_lane_head head;
        size_t at = 0;
        while (tdmi_trace_next(rank->bytes, rank->n_bytes, &at, &head, &events))
            for (int64_t i = 0; i < head.n_events; i++)
                if (!is_sound(&events[i]))
                    return TDM_FAIL(err, TDM_E_BUG, "event %lld of lane %s of rank %d is none",
                                    (long long)i, head.name, r);
        if (at != rank->n_bytes)
            return TDM_FAIL(err, TDM_E_BUG, "the trace of rank %d ends within a lane", r);
    }
    return TDM_OK;
}

tdm_status tdmi_timeline_write(const struct tdmi_timeline *timeline, const char *path,
                               struct tdmi_timeline_facts *facts, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) int64_t *begins_ns = NULL;
    struct cut cut = {0};
    struct writer writer = {0};
    TDM_TRY(check_ranks(timeline, err), err, "writing the trace %s", path);
    TDMI_TRY(TDMI_NEW(begins_ns, timeline->n_ranks, err));
    *facts = (struct tdmi_timeline_facts){0};
    cut.begins_ns = begins_ns;
    cut.from_ns = complete_from(timeline, &facts->n_dropped);
    find_steps(timeline, &cut);
    find_begins(timeline, &cut);
    facts->first_step = cut.first;
    facts->last_step = cut.last;
    const tdm_status status = write_all(timeline, path, &cut, &writer, facts, err);
    tdmi_atomic_abort(writer.file);
    for (int i = 0; writer.layers && i < timeline->n_layers; i++)
        tdmi_text_release(&writer.layers[i]);
    tdmi_free(writer.layers);
    tdmi_text_release(&writer.text);
    return TDM_WRAP(err, status, "writing the trace %s", path);
}
