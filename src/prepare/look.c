/* The findings of a worker are its own until the sweep has ended; then they are put in order. */
#include "prepare/look.h"

#include "base/bytes.h"
#include "base/hash/hash.h"
#include "base/text/json.h"
#include "data/audit/finding.h"
#include "io/storage/storage.h"
#include "image/facts.h"
#include "tandem/log.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARNINGS = 20 };

struct worker {
    struct tdmi_finding_scratch scratch;
    tdmi_arena arena; /* of the reasons */
    struct tdmi_prepare_bad *bad;
    int64_t n_bad, capacity, n_bytes;
};

struct looking {
    const tdmi_source *source;
    uint64_t *hashes;
    struct worker *workers;
    int n_workers;
};

void tdmi_prepare_look_release(tdmi_prepare_look *look)
{
    tdmi_arena_release(&look->arena);
    tdmi_contents_release(&look->contents);
    *look = (tdmi_prepare_look){0};
}

/* ---- the listing -------------------------------------------------------------------------- */

static void add_number(tdmi_xxh64 *state, int64_t number)
{
    uint8_t bytes[8];
    tdmi_write_little(bytes, (uint64_t)number, sizeof bytes);
    tdmi_xxh64_add(state, bytes, sizeof bytes);
}

/* Time of a source that is one file, or of the newest file in a folder of tables or shards. */
static int64_t newest_ms(const char *path, int depth)
{
    enum { DEEPEST = 8 };
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    struct tdmi_place place = {0};
    struct tdmi_place_entry *entries = NULL;
    size_t n = 0;
    int64_t newest = 0;
    if (tdmi_storage_look(path, &place, NULL) != TDM_OK || depth > DEEPEST + 1)
        return 0;
    if (place.kind != TDMI_FILE_FOLDER)
        return place.kind == TDMI_FILE_REGULAR ? place.modified_ns / 1000000 : 0;
    if (tdmi_storage_is_uri(path) ||
        tdmi_storage_list(path, false, &arena, &entries, &n, NULL) != TDM_OK)
        return 0;
    for (size_t i = 0; i < n; i++) {
        const char *below = tdmi_path_join(&arena, path, entries[i].name);
        const int64_t time = below == NULL ? 0 : newest_ms(below, depth + 1);
        newest = time > newest ? time : newest;
    }
    return newest;
}

void tdmi_prepare_look_list(const tdmi_source *source, tdmi_prepare_look *look)
{
    const int64_t n = tdmi_source_items(source);
    tdmi_xxh64 state;
    int64_t newest_ns = 0;
    bool is_whole = true;
    tdmi_xxh64_init(&state, 0);
    for (int64_t i = 0; i < n && is_whole; i++) {
        const struct tdmi_item item = tdmi_source_item(source, i);
        struct tdmi_stamp stamp = {0};
        is_whole = tdmi_source_stamp(source, i, &stamp);
        tdmi_xxh64_add(&state, item.path, strlen(item.path) + 1);
        add_number(&state, stamp.size_bytes);
        add_number(&state, stamp.modified_ns);
        newest_ns = stamp.modified_ns > newest_ns ? stamp.modified_ns : newest_ns;
    }
    look->listing = is_whole ? tdmi_xxh64_result(&state) : 0;
    look->time_ms = is_whole ? newest_ns / 1000000 : newest_ms(tdmi_source_path(source), 0);
}

/* ---- image by image ----------------------------------------------------------------------- */

static tdm_status add_bad(struct worker *worker, int64_t item, const struct tdmi_finding *finding,
                          tdm_error *err)
{
    TDMI_TRY(TDMI_MAKE_ROOM(worker->bad, worker->capacity, worker->n_bad, err));
    const char *reason = tdmi_arena_copy(&worker->arena, finding->reason);
    TDMI_CHECK_MEMORY(reason, err);
    worker->bad[worker->n_bad++] =
        (struct tdmi_prepare_bad){item, tdmi_verdict_among(finding->remarks), reason};
    return TDM_OK;
}

/* A header that can be read and a file that is not cut: damage in the middle shows when the image
 * is written, where it is decoded anyway. */
static bool looks_sound(const tdmi_text *bytes, const char *path)
{
    struct tdmi_image_facts facts = {0};
    return tdmi_image_describe(tdmi_text_string(bytes), bytes->length_bytes, path, &facts, NULL) ==
               TDM_OK &&
           !facts.is_cut && tdmi_image_can_decode(facts.format);
}

static tdm_status look_at(void *self, int64_t index, int worker_index, tdm_error *err)
{
    struct looking *looking = self;
    struct worker *worker = &looking->workers[worker_index];
    tdmi_text *bytes = &worker->scratch.bytes;
    const char *path = tdmi_source_item(looking->source, index).path;
    tdm_status status = tdmi_source_read(looking->source, index, bytes, NULL);
    if (status == TDM_E_MEMORY)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to read '%s'", path);
    if (status != TDM_OK || !looks_sound(bytes, path)) {
        struct tdmi_finding finding;
        TDM_TRY(tdmi_finding_of(looking->source, index, false, &worker->scratch, &finding, err),
                err, "cannot look at '%s'", path);
        if (tdm_verdict_is_bad(tdmi_verdict_among(finding.remarks)))
            return add_bad(worker, index, &finding, err);
    }
    worker->n_bytes += (int64_t)bytes->length_bytes;
    looking->hashes[index] = tdmi_source_hash(looking->source, index);
    if (looking->hashes[index] == 0)
        looking->hashes[index] = tdmi_contents_hash(tdmi_text_string(bytes), bytes->length_bytes);
    return TDM_OK;
}

static int compare_bad(const void *a_, const void *b_)
{
    const struct tdmi_prepare_bad *a = a_, *b = b_;
    return (a->item > b->item) - (a->item < b->item);
}

static void warn(const tdmi_source *source, const tdmi_prepare_look *look)
{
    for (int64_t i = 0; i < look->n_bad && i < WARNINGS; i++)
        tdm_log(TDM_LOG_WARNING, "quarantined as %s: '%s': %s",
                tdm_verdict_word(look->bad[i].verdict),
                tdmi_source_item(source, look->bad[i].item).path, look->bad[i].reason);
    if (look->n_bad > WARNINGS)
        tdm_log(TDM_LOG_WARNING, "and %lld more are quarantined",
                (long long)(look->n_bad - WARNINGS));
}

/* Copies the lists of the workers. */
static tdm_status collect(struct looking *looking, tdmi_prepare_look *look, tdm_error *err)
{
    int64_t n_bad = 0;
    look->n_bytes = 0;
    for (int w = 0; w < looking->n_workers; w++) {
        n_bad += looking->workers[w].n_bad;
        look->n_bytes += looking->workers[w].n_bytes;
    }
    look->bad = tdmi_arena_alloc(&look->arena, (size_t)n_bad + 1, sizeof *look->bad);
    TDMI_CHECK_MEMORY(look->bad, err);
    for (int w = 0; w < looking->n_workers; w++)
        for (int64_t i = 0; i < looking->workers[w].n_bad; i++) {
            struct tdmi_prepare_bad *bad = &look->bad[look->n_bad];
            *bad = looking->workers[w].bad[i];
            bad->reason = tdmi_arena_copy(&look->arena, bad->reason);
            TDMI_CHECK_MEMORY(bad->reason, err);
            look->n_bad++;
        }
    if (n_bad > 0)
        qsort(look->bad, (size_t)n_bad, sizeof *look->bad, compare_bad);
    warn(looking->source, look);
    if (n_bad == look->contents.n_items)
        return TDM_FAIL(
            err, TDM_E_INPUT, "none of the %lld images can be decoded; the first is '%s': %s",
            (long long)n_bad, tdmi_source_item(looking->source, 0).path, look->bad[0].reason);
    return tdmi_contents_check(&look->contents, looking->source, err);
}

static void release_workers(struct looking *looking)
{
    for (int w = 0; looking->workers != NULL && w < looking->n_workers; w++) {
        tdmi_arena_release(&looking->workers[w].arena);
        tdmi_free(looking->workers[w].bad);
        tdmi_finding_scratch_release(&looking->workers[w].scratch);
    }
    tdmi_free(looking->workers);
}

tdm_status tdmi_prepare_look_read(const tdmi_source *source, tdmi_pool *pool, tdm_sink sink,
                                  tdmi_prepare_look *look, tdm_error *err)
{
    TDMI_AT_END(release_workers)
    struct looking looking = {.source = source, .n_workers = tdmi_pool_threads(pool)};
    look->contents.n_items = tdmi_source_items(source);
    TDMI_TRY(TDMI_NEW(look->contents.hashes, look->contents.n_items, err));
    TDMI_TRY(TDMI_NEW(looking.workers, looking.n_workers, err));
    looking.hashes = look->contents.hashes;
    const struct tdmi_sweep sweep = {source, "checking every image", look_at, &looking, sink};
    tdm_status status = tdmi_sweep_run(&sweep, pool, err);
    if (status == TDM_OK)
        status = collect(&looking, look, err);
    return TDM_WRAP(err, status, "cannot check the images of '%s'", tdmi_source_path(source));
}

/* ---- kept --------------------------------------------------------------------------------- */

static const char magic[] = "TDMLOOK1";
enum { MAGIC_BYTES = 8, HEAD_BYTES = 16, HASH_BYTES = 8 };

static tdm_json_writer *describe(const tdmi_prepare_look *look)
{
    tdm_json_writer *json = tdm_json_writer_new(0);
    char listing[17];
    snprintf(listing, sizeof listing, "%016" PRIx64, look->listing);
    tdm_json_object_begin(json, NULL);
    tdm_json_integer(json, "items", look->contents.n_items);
    tdm_json_integer(json, "bytes", look->n_bytes);
    tdm_json_integer(json, "time_ms", look->time_ms);
    tdm_json_string(json, "listing", listing);
    tdm_json_array_begin(json, "bad");
    for (int64_t i = 0; i < look->n_bad; i++) {
        tdm_json_object_begin(json, NULL);
        tdm_json_integer(json, "item", look->bad[i].item);
        tdm_json_string(json, "verdict", tdm_verdict_word(look->bad[i].verdict));
        tdm_json_string(json, "reason", look->bad[i].reason);
        tdm_json_object_end(json);
    }
    tdm_json_array_end(json);
    tdm_json_object_end(json);
    return json;
}

static void write_number(tdmi_text *text, uint64_t number)
{
    uint8_t bytes[8];
    tdmi_write_little(bytes, number, sizeof bytes);
    tdmi_text_add(text, bytes, sizeof bytes);
}

tdm_status tdmi_prepare_look_write(const tdmi_prepare_look *look, tdmi_text *text, tdm_error *err)
{
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *json = describe(look);
    const char *words = NULL;
    size_t n_words = 0;
    TDMI_TRY(tdm_json_finish(json, &words, &n_words, err));
    tdmi_text_clear(text);
    tdmi_text_add(text, magic, MAGIC_BYTES);
    write_number(text, n_words);
    tdmi_text_add(text, words, n_words);
    for (int64_t i = 0; i < look->contents.n_items; i++)
        write_number(text, look->contents.hashes[i]);
    TDMI_TRY(tdmi_text_status(text, err));
    write_number(text, tdmi_xxh64_of(text->bytes, text->length_bytes, 0));
    return tdmi_text_status(text, err);
}

/* The bad verdict of this word; TDM_VERDICT_OK for other words. */
static enum tdm_verdict verdict_of(const char *word)
{
    for (enum tdm_verdict v = 0; v < TDM_VERDICT_OK; v++)
        if (tdm_verdict_is_bad(v) && strcmp(tdm_verdict_word(v), word) == 0)
            return v;
    return TDM_VERDICT_OK;
}

static tdm_status parse_bad(const tdm_json_value *list, tdmi_prepare_look *look, tdm_error *err)
{
    const size_t n = tdm_json_count(list);
    look->bad = tdmi_arena_alloc(&look->arena, n + 1, sizeof *look->bad);
    TDMI_CHECK_MEMORY(look->bad, err);
    for (size_t i = 0; i < n; i++) {
        const tdm_json_value *entry = tdm_json_at(list, i);
        struct tdmi_prepare_bad bad = {
            .item = tdm_json_as_integer(tdm_json_member(entry, "item"), -1),
            .verdict = verdict_of(tdm_json_as_string(tdm_json_member(entry, "verdict"), ""))};
        const int64_t before = look->n_bad > 0 ? look->bad[look->n_bad - 1].item : -1;
        if (bad.item <= before || bad.item >= look->contents.n_items ||
            bad.verdict == TDM_VERDICT_OK || look->contents.hashes[bad.item] != 0)
            return TDM_FAIL(err, TDM_E_INPUT, "entry %zu of its bad images makes no sense", i);
        bad.reason =
            tdmi_arena_copy(&look->arena, tdm_json_as_string(tdm_json_member(entry, "reason"), ""));
        TDMI_CHECK_MEMORY(bad.reason, err);
        look->bad[look->n_bad++] = bad;
    }
    return TDM_OK;
}

static tdm_status parse_text(const tdm_json_value *root, const uint8_t *hashes, int64_t n_items,
                             tdmi_prepare_look *look, tdm_error *err)
{
    const char *listing = tdm_json_as_string(tdm_json_member(root, "listing"), "");
    int64_t n_unreadable = 0;
    look->n_bytes = tdm_json_as_integer(tdm_json_member(root, "bytes"), -1);
    look->time_ms = tdm_json_as_integer(tdm_json_member(root, "time_ms"), -1);
    look->listing = strtoull(listing, NULL, 16);
    if (look->n_bytes < 0 || look->time_ms < 0 || strlen(listing) != 16)
        return TDM_FAIL(err, TDM_E_INPUT, "its numbers make no sense");
    look->contents.n_items = n_items;
    TDMI_TRY(TDMI_NEW(look->contents.hashes, n_items, err));
    for (int64_t i = 0; i < n_items; i++) {
        look->contents.hashes[i] = tdmi_read_little(hashes + HASH_BYTES * i, 8);
        n_unreadable += look->contents.hashes[i] == 0;
    }
    TDM_TRY(parse_bad(tdm_json_member(root, "bad"), look, err), err, "its list cannot be read");
    if (n_unreadable != look->n_bad)
        return TDM_FAIL(err, TDM_E_INPUT, "%lld images have no content and %lld are listed",
                        (long long)n_unreadable, (long long)look->n_bad);
    return TDM_OK;
}

tdm_status tdmi_prepare_look_parse(const void *bytes, size_t length_bytes, const char *name,
                                   int64_t n_items, tdmi_prepare_look *look, tdm_error *err)
{
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    const uint8_t *at = bytes;
    tdmi_prepare_look_release(look);
    if (length_bytes < HEAD_BYTES + HASH_BYTES || memcmp(at, magic, MAGIC_BYTES) != 0)
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' is not what prepare keeps of its first look", name);
    const uint64_t n_words = tdmi_read_little(at + MAGIC_BYTES, 8);
    const size_t rest = length_bytes - HEAD_BYTES - HASH_BYTES;
    if (n_words > rest || rest - n_words != HASH_BYTES * (uint64_t)n_items ||
        tdmi_read_little(at + length_bytes - HASH_BYTES, 8) !=
            tdmi_xxh64_of(at, length_bytes - HASH_BYTES, 0))
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' is damaged, or of other than %lld images", name,
                        (long long)n_items);
    tdm_status status =
        tdm_json_read((const char *)at + HEAD_BYTES, (size_t)n_words, name, &document, err);
    if (status == TDM_OK)
        status = parse_text(tdm_json_root(document), at + HEAD_BYTES + n_words, n_items, look, err);
    if (status != TDM_OK)
        tdmi_prepare_look_release(look);
    return TDM_WRAP(err, status, "cannot use '%s'", name);
}
