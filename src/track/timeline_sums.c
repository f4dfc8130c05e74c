/*
 * Adding up a trace. Its file is JSON like any other, perhaps edited by hand: whatever is no event
 * that a training writes is passed over.
 */
#include "base/file/file.h"
#include "base/text/json.h"
#include "base/trace.h"
#include "tandem/trace.h"

#include <stdlib.h>
#include <string.h>

/* Microseconds, as in the file. */
struct span {
    double begin, end;
    int kind, rank;
    int64_t number;
};

/* The events of one rank, by begin, and the time of the steps that are added up. */
struct part {
    const struct span *spans;
    size_t n;
    struct span window;
};

struct tdm_trace {
    struct tdm_trace_sums sums;
    struct tdm_trace_rank *ranks;
    struct part *parts; /* of the ranks */
    double *waited;     /* [rank who waits][rank it waits for]: seconds, by index in ranks */
    struct span *all;   /* by rank, then by begin */
    size_t n_all;
};

enum { most_ranks = 1024 };
static const double us_per_second = 1e6;

/* ---- reading --------------------------------------------------------------------------------- */

static const char *const categories[TDMI_TRACE_KINDS] = {
#define X(kind, category, name, number, first, second) category,
#include "base/trace.def"
#undef X
};
static const char *const numbers[TDMI_TRACE_KINDS] = {
#define X(kind, category, name, number, first, second) number,
#include "base/trace.def"
#undef X
};

/* Kinds that are added up; -1: another. */
static int kind_of(const char *category)
{
    static const int kinds[] = {TDMI_TRACE_STEP,      TDMI_TRACE_WAIT_IMAGES,
                                TDMI_TRACE_WAIT_SUMS, TDMI_TRACE_WAIT_MESSAGES,
                                TDMI_TRACE_SUM,       TDMI_TRACE_WAIT_RANK};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(category, categories[kinds[i]]) == 0)
            return kinds[i];
    return -1;
}

static bool take_span(const tdm_json_value *event, struct span *span)
{
    const int64_t rank = tdm_json_as_integer(tdm_json_member(event, "pid"), -1);
    const double begin = tdm_json_as_number(tdm_json_member(event, "ts"), -1.0);
    const double lasts = tdm_json_as_number(tdm_json_member(event, "dur"), -1.0);
    const int kind = kind_of(tdm_json_as_string(tdm_json_member(event, "cat"), ""));
    static const double longest = 1e15; /* 30 years: differences keep their microseconds */
    if (strcmp(tdm_json_as_string(tdm_json_member(event, "ph"), ""), "X") != 0 || kind < 0 ||
        rank < 0 || rank >= most_ranks || begin < 0.0 || begin > longest || lasts < 0.0 ||
        lasts > longest)
        return false;
    *span = (struct span){.begin = begin, .end = begin + lasts, .kind = kind, .rank = (int)rank};
    if (numbers[kind])
        span->number =
            tdm_json_as_integer(tdm_json_member(tdm_json_member(event, "args"), numbers[kind]), -1);
    return !numbers[kind] || span->number >= 0;
}

static int compare_spans(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static tdm_status take_spans(tdm_trace *trace, const tdm_json_value *root, tdm_error *err)
{
    const tdm_json_value *events =
        tdm_json_kind_of(root) == TDM_JSON_ARRAY ? root : tdm_json_member(root, "traceEvents");
    const size_t n = tdm_json_count(events);
    if (tdm_json_kind_of(events) != TDM_JSON_ARRAY)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it has no array \"traceEvents\"; the file of 'tandem train --trace' is "
                        "accepted");
    TDMI_TRY(TDMI_NEW(trace->all, n + 1, err));
    for (size_t i = 0; i < n; i++)
        if (take_span(tdm_json_at(events, i), &trace->all[trace->n_all]))
            trace->n_all++;
    trace->sums.n_events = (int64_t)n;
    trace->sums.n_dropped =
        tdm_json_as_integer(tdm_json_member(tdm_json_member(root, "otherData"), "dropped"), 0);
    if (trace->n_all > 0)
        qsort(trace->all, trace->n_all, sizeof *trace->all, compare_spans);
    return TDM_OK;
}

static tdm_status read_file(tdm_trace *trace, const char *path, tdm_error *err)
{
    static const size_t limit_bytes = (size_t)2 << 30;
    TDMI_AT_END(tdmi_free_at) void *bytes = NULL;
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    size_t n_bytes = 0;
    TDMI_TRY(tdmi_file_read(path, limit_bytes, &bytes, &n_bytes, err));
    if (n_bytes == 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it is empty; the file of 'tandem train --trace' is accepted");
    TDMI_TRY(tdm_json_read(bytes, n_bytes, path, &document, err));
    return take_spans(trace, tdm_json_root(document), err);
}

/* ---- adding up ------------------------------------------------------------------------------- */

/* The time of steps first to last: from the end of the step before, or from the first event. False:
 * there is none of them. */
static bool find_window(struct part *part, int64_t first, int64_t last, int64_t *n_steps)
{
    struct span *window = &part->window;
    double before = -1.0;
    *n_steps = 0;
    for (size_t i = 0; i < part->n; i++) {
        const struct span *span = &part->spans[i];
        if (span->kind == TDMI_TRACE_STEP && span->number < first && span->end > before)
            before = span->end;
        if (span->kind != TDMI_TRACE_STEP || span->number < first || span->number > last)
            continue;
        if (*n_steps == 0 || span->end > window->end)
            window->end = span->end;
        if (*n_steps == 0)
            window->begin = span->begin;
        (*n_steps)++;
    }
    if (before >= 0.0)
        window->begin = before < window->end ? before : window->begin;
    else /* the images of the very first step */
        for (size_t i = 0; i < part->n; i++)
            if (part->spans[i].kind == TDMI_TRACE_WAIT_IMAGES &&
                part->spans[i].begin < window->begin)
                window->begin = part->spans[i].begin;
    return *n_steps > 0;
}

static double seconds_of(const struct span *span)
{
    return (span->end - span->begin) / us_per_second;
}

static bool is_inside(const struct span *window, const struct span *span)
{
    return span->begin >= window->begin && span->begin < window->end;
}

static int index_of(const tdm_trace *trace, int64_t rank)
{
    for (size_t r = 0; r < trace->sums.n_ranks; r++)
        if (trace->ranks[r].rank == rank)
            return (int)r;
    return -1;
}

/* The part of a wait for a rank that the caller spent waiting too. wait: the current wait for sums,
 * none of which overlap. */
static double overlap(const struct part *events, const struct span *late, size_t *wait)
{
    double seconds = 0.0;
    while (*wait < events->n && (events->spans[*wait].kind != TDMI_TRACE_WAIT_SUMS ||
                                 events->spans[*wait].end <= late->begin))
        (*wait)++;
    for (size_t i = *wait; i < events->n && events->spans[i].begin < late->end; i++) {
        const struct span *span = &events->spans[i];
        const double begin = span->begin > late->begin ? span->begin : late->begin;
        const double end = span->end < late->end ? span->end : late->end;
        if (span->kind == TDMI_TRACE_WAIT_SUMS && begin < end)
            seconds += (end - begin) / us_per_second;
    }
    return seconds;
}

/* Waits inside of steps are no computing; inside is the end of the step that was seen last. */
static void add_span(struct tdm_trace_rank *rank, const struct span *span, double *step_end)
{
    const double seconds = seconds_of(span);
    if (span->kind == TDMI_TRACE_STEP) {
        rank->computing += seconds;
        *step_end = span->end;
    } else if (span->kind == TDMI_TRACE_SUM) {
        rank->communication += seconds;
    } else if (span->kind == TDMI_TRACE_WAIT_IMAGES) {
        rank->images += seconds;
    } else if (span->kind == TDMI_TRACE_WAIT_SUMS) {
        rank->sums += seconds;
    } else if (span->kind == TDMI_TRACE_WAIT_MESSAGES) {
        rank->messages += seconds;
    }
    if (span->kind != TDMI_TRACE_STEP && span->kind != TDMI_TRACE_SUM &&
        span->kind != TDMI_TRACE_WAIT_RANK && span->begin < *step_end)
        rank->computing -= seconds;
}

static void add_rank(tdm_trace *trace, size_t index)
{
    const struct part *part = &trace->parts[index];
    struct tdm_trace_rank *rank = &trace->ranks[index];
    double *waited = trace->waited + index * trace->sums.n_ranks, step_end = -1.0;
    size_t wait = 0;
    rank->seconds = seconds_of(&part->window);
    for (size_t i = 0; i < part->n; i++) {
        const struct span *span = &part->spans[i];
        if (!is_inside(&part->window, span))
            continue;
        add_span(rank, span, &step_end);
        const int late = span->kind == TDMI_TRACE_WAIT_RANK ? index_of(trace, span->number) : -1;
        if (late >= 0)
            waited[late] += overlap(part, span, &wait);
    }
    rank->other = rank->seconds - rank->computing - rank->images - rank->sums - rank->messages;
    if (rank->other < 0.0) { /* roundings */
        rank->computing += rank->other;
        rank->other = 0.0;
    }
    rank->waited_for = -1;
    for (size_t r = 0; r < trace->sums.n_ranks; r++)
        if (waited[r] > rank->waited) {
            rank->waited = waited[r];
            rank->waited_for = trace->ranks[r].rank;
        }
}

static void add_all(tdm_trace *trace)
{
    struct tdm_trace_sums *sums = &trace->sums;
    sums->straggler = -1;
    for (size_t r = 0; r < sums->n_ranks; r++) {
        double seconds = 0.0;
        for (size_t by = 0; by < sums->n_ranks; by++)
            seconds += trace->waited[by * sums->n_ranks + r];
        if (seconds > sums->straggler_seconds) {
            sums->straggler_seconds = seconds;
            sums->straggler = trace->ranks[r].rank;
        }
        sums->communication += trace->ranks[r].communication;
        sums->exposed += trace->ranks[r].sums;
    }
    if (sums->communication > 0.0)
        sums->hidden = 1.0 - sums->exposed / sums->communication;
    if (sums->hidden < 0.0) /* the caller wakes a little after the end of a sum */
        sums->hidden = 0.0;
}

/* The rank whose events begin at `at`, if it has steps; returns how many events it has. */
static size_t take_part(tdm_trace *trace, size_t at)
{
    struct tdm_trace_sums *sums = &trace->sums;
    struct part *part = &trace->parts[sums->n_ranks];
    int64_t n_steps;
    *part = (struct part){.spans = trace->all + at};
    while (at + part->n < trace->n_all && part->spans[part->n].rank == part->spans[0].rank)
        part->n++;
    const size_t n = part->n;
    if (find_window(part, sums->first_step, sums->last_step, &n_steps))
        trace->ranks[sums->n_ranks++] =
            (struct tdm_trace_rank){.rank = part->spans[0].rank, .steps = n_steps};
    return n;
}

/* The steps in the file, and its ranks that have some within first to last. */
static tdm_status find_ranks(tdm_trace *trace, int64_t first, int64_t last, tdm_error *err)
{
    struct tdm_trace_sums *sums = &trace->sums;
    int64_t lowest = INT64_MAX, highest = -1;
    for (size_t i = 0; i < trace->n_all; i++) {
        const struct span *span = &trace->all[i];
        if (span->kind != TDMI_TRACE_STEP)
            continue;
        lowest = span->number < lowest ? span->number : lowest;
        highest = span->number > highest ? span->number : highest;
    }
    if (highest < 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "none of its %lld events is a step of a training; the file of 'tandem "
                        "train --trace' is accepted",
                        (long long)sums->n_events);
    sums->first_step = first > lowest ? first : lowest;
    sums->last_step = last > 0 && last < highest ? last : highest;
    if (sums->first_step > sums->last_step)
        return TDM_FAIL(err, TDM_E_INPUT, "steps %lld to %lld are not in it; it holds %lld to %lld",
                        (long long)first, (long long)last, (long long)lowest, (long long)highest);
    for (size_t at = 0; at < trace->n_all;)
        at += take_part(trace, at);
    sums->ranks = trace->ranks;
    return TDM_OK;
}

static tdm_status add_up(tdm_trace *trace, int64_t first, int64_t last, tdm_error *err)
{
    TDMI_TRY(TDMI_NEW(trace->ranks, most_ranks, err));
    TDMI_TRY(TDMI_NEW(trace->parts, most_ranks, err));
    TDMI_TRY(find_ranks(trace, first, last, err));
    TDMI_TRY(TDMI_NEW(trace->waited, trace->sums.n_ranks * trace->sums.n_ranks, err));
    for (size_t r = 0; r < trace->sums.n_ranks; r++)
        add_rank(trace, r);
    add_all(trace);
    return TDM_OK;
}

/* ---- use ------------------------------------------------------------------------------------- */

TDMI_POINTER_RELEASE(tdm_trace, tdm_trace_close)

tdm_status tdm_trace_read(const char *path, int64_t first, int64_t last, tdm_trace **trace,
                          tdm_error *err)
{
    TDMI_AT_END(tdm_trace_close_at) tdm_trace *made = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    TDM_TRY(read_file(made, path, err), err, "reading the trace %s", path);
    TDM_TRY(add_up(made, first, last, err), err, "reading the trace %s", path);
    *trace = tdmi_take(&made);
    return TDM_OK;
}

void tdm_trace_close(tdm_trace *trace)
{
    if (!trace)
        return;
    tdmi_free(trace->all);
    tdmi_free(trace->ranks);
    tdmi_free(trace->parts);
    tdmi_free(trace->waited);
    tdmi_free(trace);
}

const struct tdm_trace_sums *tdm_trace_sums_of(const tdm_trace *trace)
{
    return &trace->sums;
}
