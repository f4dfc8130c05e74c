/*
 * A sweep consists of tasks of a few neighbours each: neighbours lie together on disk, and a task
 * is soon over. Hashing is one sweep.
 */
#include "data/audit/contents.h"

#include "base/clock.h"
#include "base/hash/hash.h"
#include "base/text/quote.h"
#include "image/facts.h"
#include "tandem/log.h"
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { MOST_A_TASK = 16 };
static const int64_t report_every_ns = 50000000;

/* ---- sweep --------------------------------------------------------------------------------- */

struct run {
    const struct tdmi_sweep *sweep;
    int64_t n_items, items_a_task, reported_ns;
    _Atomic int64_t done;
};

static void report(const struct run *run, enum tdm_event_kind kind)
{
    const tdm_sink *sink = &run->sweep->sink;
    if (sink->event)
        sink->event(sink->self, &(tdm_event){.kind = kind,
                                             .done = atomic_load(&run->done),
                                             .total = run->n_items,
                                             .text = run->sweep->what});
}

static tdm_status sweep_task(void *self, int index, int worker, tdm_error *err)
{
    struct run *run = self;
    int64_t first = index * run->items_a_task, end = first + run->items_a_task;
    for (int64_t i = first; i < end && i < run->n_items; i++) {
        if (tdm_stop_is_requested())
            return TDM_FAIL(err, TDM_E_STOPPED, "stopped on request after %lld of %lld images",
                            (long long)atomic_load(&run->done), (long long)run->n_items);
        TDMI_TRY(run->sweep->item(run->sweep->self, i, worker, err));
        atomic_fetch_add(&run->done, 1);
        /* Worker 0 is the caller's thread. */
        if (worker == 0 && tdmi_clock_ns() - run->reported_ns >= report_every_ns) {
            run->reported_ns = tdmi_clock_ns();
            report(run, TDM_EVENT_PROGRESS);
        }
    }
    return TDM_OK;
}

tdm_status tdmi_sweep_run(const struct tdmi_sweep *sweep, tdmi_pool *pool, tdm_error *err)
{
    struct run run = {.sweep = sweep, .n_items = tdmi_source_items(sweep->source)};
    run.items_a_task = run.n_items / (4 * (int64_t)tdmi_pool_threads(pool));
    if (run.items_a_task > MOST_A_TASK)
        run.items_a_task = MOST_A_TASK;
    if (run.items_a_task < 1)
        run.items_a_task = 1;
    int64_t n_tasks = (run.n_items + run.items_a_task - 1) / run.items_a_task;
    if (n_tasks > INT_MAX)
        return TDM_FAIL(err, TDM_E_INPUT, "%s: %lld of them are more than can be taken at once",
                        sweep->what, (long long)run.n_items);
    report(&run, TDM_EVENT_PHASE_BEGIN);
    tdm_status status = tdmi_pool_run(pool, (int)n_tasks, sweep_task, &run, err);
    report(&run, TDM_EVENT_PROGRESS); /* how far it came */
    report(&run, TDM_EVENT_PHASE_END);
    return status;
}

/* ---- contents ------------------------------------------------------------------------------ */

enum { WARNINGS = 20 }; /* so many images are named; a wrong --raw-shape leaves out all */

struct reading {
    const tdmi_source *source;
    struct tdmi_contents_part part;
    uint64_t *hashes;
    tdmi_text *texts; /* one a worker */
};

/* 0 means unreadable. */
uint64_t tdmi_contents_hash(const void *bytes, size_t length_bytes)
{
    const uint64_t hash = tdmi_xxh64_of(bytes, length_bytes, 0);
    return hash != 0 ? hash : 1;
}

/* Is it an image of a format that this machine decodes? A damaged one may be. */
static tdm_status look_inside(const tdmi_text *text, const char *path, tdm_error *err)
{
    struct tdmi_image_facts facts;
    TDMI_TRY(tdmi_image_describe(tdmi_text_string(text), text->length_bytes, path, &facts, err));
    return tdmi_image_find_decoder(facts.format, err);
}

/* problem: why the image is unreadable; code TDM_OK where it is not. */
static tdm_status read_bytes(const struct reading *reading, int64_t index, tdmi_text *text,
                             tdm_error *problem, tdm_error *err)
{
    TDMI_TRY(tdmi_source_try(reading->source, index, text, problem, err));
    if (reading->part.is_strict && problem->code == TDM_OK)
        (void)look_inside(text, tdmi_source_item(reading->source, index).path, problem);
    return TDM_OK;
}

static tdm_status read_one(void *self, int64_t index, int worker, tdm_error *err)
{
    struct reading *reading = self;
    tdmi_text *text = &reading->texts[worker];
    uint64_t *hash = &reading->hashes[index];
    tdm_error problem = {0};
    if (index < reading->part.first || index >= reading->part.end)
        return TDM_OK;
    *hash = tdmi_source_hash(reading->source, index);
    if (*hash != 0)
        return TDM_OK;
    TDMI_TRY(read_bytes(reading, index, text, &problem, err));
    if (problem.code == TDM_OK)
        *hash = tdmi_contents_hash(tdmi_text_string(text), text->length_bytes);
    return TDM_OK;
}

/* Names an image as 'path' or '…/path', like messages about files that cannot be opened. */
static bool is_named(const char *why, const char *path)
{
    const size_t length = strlen(path);
    for (const char *at = why; length > 0 && (at = strstr(at, path)) != NULL; at++)
        if (at > why && (at[-1] == '\'' || at[-1] == '/') && at[length] == '\'')
            return true;
    return false;
}

/* The first unreadable images are read once more for the reason. */
static tdm_status list_unreadable(const struct reading *reading, const tdmi_contents *contents,
                                  tdmi_text *lines, tdm_error *err)
{
    int64_t n = 0;
    for (int64_t i = reading->part.first; i < reading->part.end && n < WARNINGS; i++) {
        const char *path = tdmi_source_item(reading->source, i).path;
        tdm_error problem = {0};
        if (contents->hashes[i] != 0)
            continue;
        n++;
        TDMI_TRY(read_bytes(reading, i, &reading->texts[0], &problem, err));
        const char *why =
            problem.code == TDM_OK ? "it could not be read" : tdm_error_sentence(&problem, 0);
        char line[TDM_ERROR_TEXT_BYTES];
        if (is_named(why, path))
            tdmi_quote_text(line, sizeof line, "%s", why);
        else
            tdmi_quote_text(line, sizeof line, "'%s': %s", path, why);
        tdmi_text_printf(lines, "%s\n", line);
    }
    return tdmi_text_status(lines, err);
}

void tdmi_contents_log(const tdmi_text *unreadable, int64_t n_unreadable, bool is_strict)
{
    const char *words = is_strict ? "unreadable" : "left out";
    int64_t n = 0;
    const char *line = tdmi_text_string(unreadable);
    for (; *line && n < WARNINGS; n++) {
        const int length = (int)strcspn(line, "\n");
        tdm_log(TDM_LOG_WARNING, "%s: %.*s", words, length, line);
        line += length + 1;
    }
    if (n_unreadable > n)
        tdm_log(TDM_LOG_WARNING, "and %lld more are %s", (long long)(n_unreadable - n), words);
}

tdm_status tdmi_contents_check(const tdmi_contents *contents, const tdmi_source *source,
                               tdm_error *err)
{
    TDMI_AT_END(tdmi_lost_rows_release) tdmi_lost_rows lost = {0};
    for (int64_t i = 0; i < contents->n_items; i++)
        if (contents->hashes[i] == 0)
            TDMI_TRY(tdmi_lost_rows_add(&lost, source, i, NULL, err));
    return TDM_OK;
}

static tdm_status read_all(struct reading *reading, tdmi_pool *pool, const char *what,
                           tdm_sink sink, tdmi_contents *contents, tdmi_text *unreadable,
                           tdm_error *err)
{
    TDMI_TRY(tdmi_sweep_run(&(struct tdmi_sweep){reading->source, what, read_one, reading, sink},
                            pool, err));
    for (int64_t i = reading->part.first; i < reading->part.end; i++)
        contents->n_unreadable += contents->hashes[i] == 0;
    return list_unreadable(reading, contents, unreadable, err);
}

tdm_status tdmi_contents_read(const tdmi_source *source, tdmi_pool *pool, const char *what,
                              tdm_sink sink, tdmi_contents *contents, tdm_error *err)
{
    const struct tdmi_contents_part all = {.end = tdmi_source_items(source)};
    TDMI_AT_END(tdmi_text_release) tdmi_text unreadable = {0};
    TDMI_TRY(tdmi_contents_read_part(source, all, pool, what, sink, contents, &unreadable, err));
    tdmi_contents_log(&unreadable, contents->n_unreadable, false);
    const tdm_status status = TDM_WRAP(err, tdmi_contents_check(contents, source, err),
                                       "cannot read the images of '%s'", tdmi_source_path(source));
    if (status != TDM_OK)
        tdmi_contents_release(contents);
    return status;
}

tdm_status tdmi_contents_read_part(const tdmi_source *source, struct tdmi_contents_part part,
                                   tdmi_pool *pool, const char *what, tdm_sink sink,
                                   tdmi_contents *contents, tdmi_text *unreadable, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) tdmi_text *texts = NULL;
    const int threads = tdmi_pool_threads(pool);
    tdmi_contents_release(contents);
    contents->n_items = tdmi_source_items(source);
    TDMI_TRY(TDMI_NEW(texts, threads, err));
    TDMI_TRY(TDMI_NEW(contents->hashes, contents->n_items, err));
    struct reading reading = {source, part, contents->hashes, texts};
    tdm_status status =
        TDM_WRAP(err, read_all(&reading, pool, what, sink, contents, unreadable, err),
                 "cannot read the images of '%s'", tdmi_source_path(source));
    for (int i = 0; i < threads; i++)
        tdmi_text_release(&texts[i]);
    if (status != TDM_OK)
        tdmi_contents_release(contents);
    return status;
}

void tdmi_contents_release(tdmi_contents *contents)
{
    tdmi_free(contents->hashes);
    *contents = (tdmi_contents){0};
}
