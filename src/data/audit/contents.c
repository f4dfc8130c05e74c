/*
 * One sweep; a thread reads into a text of its own and keeps the first pictures that it leaves out.
 * Threads take pictures in ascending order, so the first of all are among those.
 */
#include "data/audit/contents.h"

#include "base/hash/hash.h"
#include "base/memory.h"
#include "data/audit/sweep.h"
#include "data/source/lost_rows.h"
#include "tandem/log.h"
#include <stdio.h>
#include <string.h>

enum { WARNINGS = 20 }; /* so many pictures are named; a wrong --raw-shape leaves out all */

struct left_out {
    int64_t index;
    char why[TDM_ERROR_TEXT_BYTES];
};

struct reader {
    tdmi_text text;
    struct left_out first[WARNINGS];
    int n_first, n_reported;
};

struct reading {
    const tdmi_source *source;
    uint64_t *hashes;
    struct reader *readers; /* one a worker */
};

static void keep(struct reader *reader, int64_t index, const tdm_error *problem)
{
    if (reader->n_first == WARNINGS)
        return;
    struct left_out *left_out = &reader->first[reader->n_first++];
    left_out->index = index;
    snprintf(left_out->why, sizeof left_out->why, "%s", tdm_error_sentence(problem, 0));
}

/* 0 means unreadable. */
uint64_t tdmi_contents_hash(const void *bytes, size_t length_bytes)
{
    const uint64_t hash = tdmi_xxh64_of(bytes, length_bytes, 0);
    return hash != 0 ? hash : 1;
}

static tdm_status read_one(void *self, int64_t index, int worker, tdm_error *err)
{
    struct reading *reading = self;
    tdmi_text *text = &reading->readers[worker].text;
    uint64_t hash = tdmi_source_hash(reading->source, index);
    tdm_error problem = {0};
    tdm_status status =
        hash != 0 ? TDM_OK : tdmi_source_read(reading->source, index, text, &problem);
    if (tdmi_source_is_lost(status)) {
        if (err != NULL)
            *err = problem;
        return TDM_WRAP(err, status, "cannot read '%s'",
                        tdmi_source_item(reading->source, index).path);
    }
    if (status != TDM_OK) {
        keep(&reading->readers[worker], index, &problem);
        return TDM_OK;
    }
    reading->hashes[index] =
        hash != 0 ? hash : tdmi_contents_hash(tdmi_text_string(text), text->length_bytes);
    return TDM_OK;
}

/* The next in the source's order of what the readers keep; NULL: there is no more. */
static const struct left_out *next_left_out(struct reader *readers, int n)
{
    struct reader *first = NULL;
    for (int i = 0; i < n; i++)
        if (readers[i].n_reported < readers[i].n_first &&
            (!first ||
             readers[i].first[readers[i].n_reported].index < first->first[first->n_reported].index))
            first = &readers[i];
    return first ? &first->first[first->n_reported++] : NULL;
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

static void report_left_out(const tdmi_source *source, struct reader *readers, int n,
                            int64_t n_left_out)
{
    const struct left_out *left_out;
    for (int reported = 0; reported < WARNINGS && (left_out = next_left_out(readers, n)) != NULL;
         reported++) {
        const char *path = tdmi_source_item(source, left_out->index).path;
        if (is_named(left_out->why, path))
            tdm_log(TDM_LOG_WARNING, "left out: %s", left_out->why);
        else
            tdm_log(TDM_LOG_WARNING, "left out: '%s': %s", path, left_out->why);
    }
    if (n_left_out > WARNINGS)
        tdm_log(TDM_LOG_WARNING, "and %lld more are left out", (long long)(n_left_out - WARNINGS));
}

static tdm_status check_files(const tdmi_source *source, const tdmi_contents *contents,
                              tdm_error *err)
{
    tdmi_lost_rows lost = {0};
    tdm_status status = TDM_OK;
    for (int64_t i = 0; status == TDM_OK && i < contents->n_items; i++)
        if (contents->hashes[i] == 0)
            status = tdmi_lost_rows_add(&lost, source, i, NULL, err);
    tdmi_lost_rows_release(&lost);
    return status;
}

tdm_status tdmi_contents_read(const tdmi_source *source, tdmi_pool *pool, const char *what,
                              tdm_sink sink, tdmi_contents *contents, tdm_error *err)
{
    const int threads = tdmi_pool_threads(pool);
    tdmi_contents_release(contents);
    contents->n_items = tdmi_source_items(source);
    contents->hashes = tdmi_alloc((size_t)contents->n_items, sizeof *contents->hashes);
    struct reader *readers = tdmi_alloc((size_t)threads, sizeof *readers);
    tdm_status status = TDM_OK;
    if (contents->hashes == NULL || readers == NULL)
        status = TDM_FAIL(err, TDM_E_MEMORY, "no memory for the contents of %lld pictures",
                          (long long)contents->n_items);
    struct reading reading = {.source = source, .hashes = contents->hashes, .readers = readers};
    if (status == TDM_OK)
        status = tdmi_sweep_run(&(struct tdmi_sweep){.n_items = contents->n_items,
                                                     .what = what,
                                                     .item = read_one,
                                                     .self = &reading,
                                                     .sink = sink},
                                pool, err);
    for (int64_t i = 0; status == TDM_OK && i < contents->n_items; i++)
        contents->n_unreadable += contents->hashes[i] == 0;
    if (status == TDM_OK)
        report_left_out(source, readers, threads, contents->n_unreadable);
    if (status == TDM_OK)
        status = check_files(source, contents, err);
    for (int i = 0; readers != NULL && i < threads; i++)
        tdmi_text_release(&readers[i].text);
    tdmi_free(readers);
    if (status != TDM_OK) {
        tdmi_contents_release(contents);
        return TDM_WRAP(err, status, "cannot read the pictures of '%s'", tdmi_source_path(source));
    }
    return TDM_OK;
}

void tdmi_contents_release(tdmi_contents *contents)
{
    tdmi_free(contents->hashes);
    *contents = (tdmi_contents){0};
}
