/* One sweep; a thread reads into a text of its own. */
#include "data/contents.h"

#include "base/hash.h"
#include "base/memory.h"
#include "data/sweep.h"
#include "tandem/log.h"
#include <stdatomic.h>

enum { WARNINGS = 20 }; /* so many pictures are named; a wrong --raw-shape leaves out all */

struct reading {
    const tdmi_source *source;
    uint64_t *hashes;
    tdmi_text *texts; /* one a worker */
    _Atomic int64_t n_left_out;
};

static tdm_status read_one(void *self, int64_t index, int worker, tdm_error *err)
{
    struct reading *reading = self;
    tdmi_text *text = &reading->texts[worker];
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
        if (atomic_fetch_add(&reading->n_left_out, 1) < WARNINGS)
            tdm_log(TDM_LOG_WARNING, "left out: '%s': %s",
                    tdmi_source_item(reading->source, index).path, problem.frames[0].text);
        return TDM_OK;
    }
    if (hash == 0)
        hash = tdmi_xxh64_of(tdmi_text_string(text), text->length_bytes, 0);
    reading->hashes[index] = hash != 0 ? hash : 1; /* 0 means unreadable */
    return TDM_OK;
}

tdm_status tdmi_contents_read(const tdmi_source *source, tdmi_pool *pool, const char *what,
                              tdm_sink sink, tdmi_contents *contents, tdm_error *err)
{
    const int threads = tdmi_pool_threads(pool);
    tdmi_contents_release(contents);
    contents->n_items = tdmi_source_items(source);
    contents->hashes = tdmi_alloc((size_t)contents->n_items, sizeof *contents->hashes);
    tdmi_text *texts = tdmi_alloc((size_t)threads, sizeof *texts);
    tdm_status status = TDM_OK;
    if (contents->hashes == NULL || texts == NULL)
        status = TDM_FAIL(err, TDM_E_MEMORY, "no memory for the contents of %lld pictures",
                          (long long)contents->n_items);
    struct reading reading = {.source = source, .hashes = contents->hashes, .texts = texts};
    if (status == TDM_OK)
        status = tdmi_sweep_run(&(struct tdmi_sweep){.n_items = contents->n_items,
                                                     .what = what,
                                                     .item = read_one,
                                                     .self = &reading,
                                                     .sink = sink},
                                pool, err);
    for (int i = 0; texts != NULL && i < threads; i++)
        tdmi_text_release(&texts[i]);
    tdmi_free(texts);
    if (status != TDM_OK) {
        tdmi_contents_release(contents);
        return TDM_WRAP(err, status, "cannot read the pictures of '%s'", tdmi_source_path(source));
    }
    for (int64_t i = 0; i < contents->n_items; i++)
        contents->n_unreadable += contents->hashes[i] == 0;
    if (contents->n_unreadable > WARNINGS)
        tdm_log(TDM_LOG_WARNING, "and %lld more are left out",
                (long long)(contents->n_unreadable - WARNINGS));
    return TDM_OK;
}

void tdmi_contents_release(tdmi_contents *contents)
{
    tdmi_free(contents->hashes);
    *contents = (tdmi_contents){0};
}
