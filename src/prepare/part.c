/*
 * Images of a chunk are encoded side by side while the chunk before is written in order: two chunks
 * alternate, so memory does not grow with the set and the bytes do not depend on threads.
 *
 *     task 0        append chunk k - 1
 *     task 1 … n    make images of chunk k
 */
#include "prepare/part.h"

#include "base/hash/hash.h"
#include "data/parquet/write.h"
#include "io/storage/storage.h"
#include "tandem/log.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* A single thread waits for nobody at the end of a chunk, and the bytes of a small chunk stay in
 * its cache until they are written. */
enum { MOST_A_CHUNK = 128, MOST_ALONE = 8 };
enum { GROUP_BYTES = 32 << 20, PIECE_BYTES = 1 << 20, PATH_BYTES = 4096 };
#define CHUNK_BYTES ((int64_t)16 << 20)
#define LARGEST_RECORD_BYTES ((size_t)1 << 30)

/* ---- names -------------------------------------------------------------------------------- */

static tdm_status name_in(const char *folder, const char *below, int number, const char *ending,
                          char path[PATH_BYTES], tdm_error *err)
{
    const int n = snprintf(path, PATH_BYTES, "%s/%spart-%05d%s", folder, below, number, ending);
    if (n < 0 || n >= PATH_BYTES)
        return TDM_FAIL(err, TDM_E_USAGE, "the name '%.200s…' is too long", folder);
    return TDM_OK;
}

/* ---- the file ----------------------------------------------------------------------------- */

/* Pages of images come one by one, each behind a head of some bytes. A system that is given blocks
 * of this size at multiples of it keeps them in large pages, which cost it half as much. */
enum { BLOCK_BYTES = 256 << 10 };

struct file {
    tdmi_atomic_file *atomic;
    tdmi_xxh64 hash;
    int64_t n_bytes;
    uint8_t *block;
    size_t n_waiting; /* bytes of the block */
};

static tdm_status flush(struct file *file, tdm_error *err)
{
    const size_t n = file->n_waiting;
    file->n_waiting = 0;
    file->n_bytes += (int64_t)n;
    tdmi_xxh64_add(&file->hash, file->block, n);
    return tdmi_atomic_write(file->atomic, file->block, n, err);
}

static tdm_status add_bytes(void *self, const void *bytes, size_t n_bytes, tdm_error *err)
{
    struct file *file = self;
    for (const uint8_t *at = bytes; n_bytes > 0;) {
        const size_t room = BLOCK_BYTES - file->n_waiting, n = n_bytes < room ? n_bytes : room;
        memcpy(file->block + file->n_waiting, at, n);
        file->n_waiting += n;
        at += n;
        n_bytes -= n;
        if (file->n_waiting == BLOCK_BYTES)
            TDMI_TRY(flush(file, err));
    }
    return TDM_OK;
}

struct chunk {
    struct tdmi_prepare_picture *pictures;
    int64_t first; /* row of the part */
    int n;
};

struct making {
    struct tdmi_prepare_job *job;
    const struct tdmi_prepare_part *part;
    struct file file;
    tdmi_parquet_writer *writer;
    struct tdmi_prepare_scratch *scratches; /* by worker */
    struct chunk chunks[2];
    struct chunk *now, *before; /* being made, being appended */
    int n_a_chunk;
    struct tdmi_prepare_change change;
    tdm_json_writer *dropped; /* the record, begun */
};

static void note_dropped(struct making *making, const struct tdmi_prepare_row *row, int64_t number,
                         const struct tdmi_prepare_picture *picture)
{
    tdm_log(TDM_LOG_WARNING, "quarantined as %s: '%s': %s", tdm_verdict_word(picture->verdict),
            row->path, picture->reason);
    char hash[17];
    snprintf(hash, sizeof hash, "%016" PRIx64, row->hash);
    tdm_json_object_begin(making->dropped, NULL);
    tdm_json_integer(making->dropped, "row", number);
    tdm_json_string(making->dropped, "path", row->path);
    tdm_json_string(making->dropped, "hash", hash);
    tdm_json_string(making->dropped, "verdict", tdm_verdict_word(picture->verdict));
    tdm_json_string(making->dropped, "reason", picture->reason);
    tdm_json_object_end(making->dropped);
}

static tdm_status append(struct making *making, const struct chunk *chunk, tdm_error *err)
{
    const tdmi_prepare_plan *plan = making->job->plan;
    for (int i = 0; i < chunk->n; i++) {
        const struct tdmi_prepare_picture *picture = &chunk->pictures[i];
        const struct tdmi_prepare_row *row = &plan->rows[making->part->first + chunk->first + i];
        if (picture->verdict != TDM_VERDICT_OK) {
            note_dropped(making, row, chunk->first + i, picture);
            continue;
        }
        const char *class_name = row->label < 0 ? "" : plan->classes[row->label];
        const struct tdmi_parquet_row stored = {.image = tdmi_text_string(&picture->bytes),
                                                .image_bytes = picture->bytes.length_bytes,
                                                .label = row->label,
                                                .class_name = class_name,
                                                .path = row->path,
                                                .split = tdmi_prepare_split_name(row->split),
                                                .width = picture->width,
                                                .height = picture->height,
                                                .hash = row->hash};
        tdmi_prepare_change_add(&making->change, &picture->change);
        TDM_TRY(tdmi_parquet_writer_add(making->writer, &stored, err), err, "cannot write row %lld",
                (long long)(chunk->first + i));
    }
    return TDM_OK;
}

static tdm_status do_task(void *self, int index, int worker, tdm_error *err)
{
    struct making *making = self;
    if (index == 0)
        return append(making, making->before, err);
    const struct chunk *chunk = making->now;
    const int64_t row = making->part->first + chunk->first + index - 1;
    return tdmi_prepare_picture_make(making->job->source, making->job->form,
                                     &making->job->plan->rows[row], &making->scratches[worker],
                                     &chunk->pictures[index - 1], err);
}

void tdmi_prepare_job_report(const struct tdmi_prepare_job *job, enum tdm_event_kind kind)
{
    if (job->sink.event)
        job->sink.event(job->sink.self, &(tdm_event){.kind = kind,
                                                     .done = job->n_done,
                                                     .total = job->n_todo,
                                                     .text = "preparing"});
}

static tdm_status make_rows(struct making *making, tdm_error *err)
{
    struct tdmi_prepare_job *job = making->job;
    making->now = &making->chunks[0];
    making->before = &making->chunks[1];
    for (int64_t first = 0; first < making->part->n || making->before->n > 0;) {
        const int64_t left = making->part->n - first;
        making->now->first = first;
        making->now->n = left < making->n_a_chunk ? (int)left : making->n_a_chunk;
        if (tdm_stop_is_requested())
            return TDM_FAIL(err, TDM_E_STOPPED,
                            "stopped on request after %lld of %lld images; the parts that are "
                            "finished stay: run it again to resume",
                            (long long)job->n_done, (long long)job->n_todo);
        TDM_TRY(tdmi_pool_run(job->pool, 1 + making->now->n, do_task, making, err), err,
                "cannot make rows %lld and following", (long long)first);
        first += making->now->n;
        job->n_done += making->now->n;
        tdmi_prepare_job_report(job, TDM_EVENT_PROGRESS);
        struct chunk *made = making->now;
        making->now = making->before;
        making->before = made;
    }
    return TDM_OK;
}

/* ---- one part ----------------------------------------------------------------------------- */

static tdm_status reserve(struct making *making, tdm_error *err)
{
    const struct tdmi_prepare_job *job = making->job;
    const int threads = tdmi_pool_threads(job->pool);
    int64_t n = CHUNK_BYTES / job->picture_bytes;
    const int most = threads > 1 ? MOST_A_CHUNK : MOST_ALONE;
    n = n > most ? most : n;
    making->n_a_chunk = n < threads ? threads : (int)n;
    TDMI_TRY(TDMI_NEW(making->scratches, threads, err));
    TDMI_TRY(TDMI_NEW(making->file.block, BLOCK_BYTES, err));
    for (int c = 0; c < 2; c++)
        TDMI_TRY(TDMI_NEW(making->chunks[c].pictures, making->n_a_chunk, err));
    return TDM_OK;
}

static void release(struct making *making)
{
    tdmi_parquet_writer_free(making->writer);
    tdmi_atomic_abort(making->file.atomic);
    tdmi_free(making->file.block);
    tdm_json_writer_free(making->dropped);
    for (int c = 0; c < 2; c++) {
        for (int i = 0; making->chunks[c].pictures != NULL && i < making->n_a_chunk; i++)
            tdmi_text_release(&making->chunks[c].pictures[i].bytes);
        tdmi_free(making->chunks[c].pictures);
    }
    for (int w = 0; making->scratches != NULL && w < tdmi_pool_threads(making->job->pool); w++)
        tdmi_prepare_scratch_release(&making->scratches[w]);
    tdmi_free(making->scratches);
}

static tdm_status open_writer(struct making *making, tdm_error *err)
{
    const struct tdmi_prepare_form *form = making->job->form;
    const struct tdmi_byte_sink sink = {&making->file, add_bytes};
    struct tdmi_parquet_write_options options = {.image_codec = form->image_codec,
                                                 .column_codec = form->column_codec,
                                                 .group_bytes = GROUP_BYTES};
    if (form->codec == TDMI_PREPARE_RAW)
        options.raw_shape =
            (struct tdmi_raw_shape){form->preprocess.height, form->preprocess.width, 3};
    if (form->codec == TDMI_PREPARE_KEEP)
        options.geometry = &form->preprocess;
    return tdmi_parquet_writer_open(&sink, &options, &making->writer, err);
}

/* The number in the names of a part's files. */
static int named(const tdmi_prepare_plan *plan, int number)
{
    return plan->first_number + number;
}

static tdm_status write_file(struct making *making, int number, tdm_error *err)
{
    char path[PATH_BYTES];
    tdmi_xxh64_init(&making->file.hash, 0);
    TDM_TRY(name_in(making->job->folder, "_prepare/", number, ".parquet", path, err), err,
            "cannot name a part");
    TDM_TRY(tdmi_atomic_open(path, &making->file.atomic, err), err, "cannot begin a part");
    TDM_TRY(open_writer(making, err), err, "cannot begin '%s'", path);
    TDM_TRY(make_rows(making, err), err, "cannot fill '%s'", path);
    TDM_TRY(tdmi_parquet_writer_finish(making->writer, err), err, "cannot finish '%s'", path);
    return flush(&making->file, err);
}

/* Under the name that its bytes decide. */
static tdm_status commit(struct making *making, int number, struct tdmi_prepare_record *record,
                         tdm_error *err)
{
    char path[PATH_BYTES], ending[32];
    record->hash = tdmi_xxh64_result(&making->file.hash);
    record->n_bytes = making->file.n_bytes;
    record->n_rows = tdmi_parquet_writer_rows(making->writer);
    record->change = making->change;
    snprintf(ending, sizeof ending, "-%016" PRIx64 ".parquet", record->hash);
    snprintf(record->name, sizeof record->name, "part-%05d%s", number, ending);
    TDM_TRY(name_in(making->job->folder, "", number, ending, path, err), err, "cannot name a part");
    TDM_TRY(tdmi_atomic_rename(making->file.atomic, path, err), err, "cannot name '%s'", path);
    tdmi_atomic_file *atomic = making->file.atomic;
    making->file.atomic = NULL;
    return tdmi_atomic_commit(atomic, err);
}

static tdm_json_writer *begin_record(const tdmi_prepare_plan *plan)
{
    tdm_json_writer *json = tdm_json_writer_new(0);
    char id[17];
    snprintf(id, sizeof id, "%016" PRIx64, plan->id);
    tdm_json_object_begin(json, NULL);
    tdm_json_string(json, "plan", id);
    tdm_json_array_begin(json, "dropped");
    return json;
}

static tdm_status write_record(struct making *making, int number,
                               const struct tdmi_prepare_record *record, tdm_error *err)
{
    tdm_json_writer *json = making->dropped;
    char path[PATH_BYTES], hash[17];
    const char *text = NULL;
    size_t n_bytes = 0;
    snprintf(hash, sizeof hash, "%016" PRIx64, record->hash);
    tdm_json_array_end(json);
    tdm_json_string(json, "name", record->name);
    tdm_json_integer(json, "rows", record->n_rows);
    tdm_json_integer(json, "bytes", record->n_bytes);
    tdm_json_string(json, "hash", hash);
    tdm_json_object_begin(json, "change");
    tdm_json_integer(json, "pictures", record->change.n_pictures);
    tdm_json_integer(json, "values", record->change.n_values);
    tdm_json_integer(json, "sum", record->change.sum);
    tdm_json_integer(json, "max", record->change.max);
    tdm_json_object_end(json);
    tdm_json_object_end(json);
    TDM_TRY(tdm_json_finish(json, &text, &n_bytes, err), err, "cannot describe part %d", number);
    TDM_TRY(name_in(making->job->folder, "_prepare/", number, ".json", path, err), err,
            "cannot name a record");
    return tdmi_file_write(path, text, n_bytes, err);
}

tdm_status tdmi_prepare_part_make(struct tdmi_prepare_job *job, int number, tdm_error *err)
{
    TDMI_AT_END(release)
    struct making making = {.job = job, .part = &job->plan->parts[number]};
    struct tdmi_prepare_record record = {0};
    making.dropped = begin_record(job->plan);
    tdm_status status = reserve(&making, err);
    if (status == TDM_OK)
        status = write_file(&making, named(job->plan, number), err);
    if (status == TDM_OK)
        status = commit(&making, named(job->plan, number), &record, err);
    if (status == TDM_OK)
        status = write_record(&making, named(job->plan, number), &record, err);
    return TDM_WRAP(err, status, "cannot make part %d of %d in '%s'", number, job->plan->n_parts,
                    job->folder);
}

/* ---- finding finished parts --------------------------------------------------------------- */

void tdmi_prepare_record_release(struct tdmi_prepare_record *record)
{
    tdm_json_document_free(record->document);
    *record = (struct tdmi_prepare_record){0};
}

const tdm_json_value *tdmi_prepare_record_dropped(const struct tdmi_prepare_record *record)
{
    return tdm_json_member(tdm_json_root(record->document), "dropped");
}

static tdm_status has_equal_bytes(const char *path, const struct tdmi_prepare_record *record,
                                  bool *is_equal, tdm_error *err)
{
    TDMI_AT_END(tdmi_storage_close_at) tdmi_storage_file *file = NULL;
    TDMI_AT_END(tdmi_free_at) uint8_t *piece = NULL;
    tdmi_xxh64 hash;
    tdmi_xxh64_init(&hash, 0);
    *is_equal = false;
    TDMI_TRY(TDMI_NEW(piece, PIECE_BYTES, err));
    TDMI_TRY(tdmi_storage_open(path, &file, err));
    if (tdmi_storage_size(file) != record->n_bytes)
        return TDM_OK;
    for (int64_t at = 0; at < record->n_bytes; at += PIECE_BYTES) {
        const int64_t left = record->n_bytes - at;
        const size_t n = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        TDMI_TRY(tdmi_storage_read(file, at, piece, n, err));
        tdmi_xxh64_add(&hash, piece, n);
    }
    *is_equal = tdmi_xxh64_result(&hash) == record->hash;
    return TDM_OK;
}

/* false: of another plan, or no such record. */
static bool take_record(const tdmi_prepare_plan *plan, int number,
                        struct tdmi_prepare_record *record)
{
    const struct tdmi_prepare_part *part = &plan->parts[number];
    const tdm_json_value *root = tdm_json_root(record->document);
    const tdm_json_value *change = tdm_json_member(root, "change");
    const char *name = tdm_json_as_string(tdm_json_member(root, "name"), "");
    char id[17], start[24];
    snprintf(id, sizeof id, "%016" PRIx64, plan->id);
    snprintf(start, sizeof start, "part-%05d-", named(plan, number));
    snprintf(record->name, sizeof record->name, "%s", name);
    record->n_rows = tdm_json_as_integer(tdm_json_member(root, "rows"), -1);
    record->n_bytes = tdm_json_as_integer(tdm_json_member(root, "bytes"), -1);
    record->hash = strtoull(tdm_json_as_string(tdm_json_member(root, "hash"), "0"), NULL, 16);
    record->change.n_pictures = tdm_json_as_integer(tdm_json_member(change, "pictures"), 0);
    record->change.n_values = tdm_json_as_integer(tdm_json_member(change, "values"), 0);
    record->change.sum = tdm_json_as_integer(tdm_json_member(change, "sum"), 0);
    record->change.max = (int)tdm_json_as_integer(tdm_json_member(change, "max"), 0);
    return strcmp(tdm_json_as_string(tdm_json_member(root, "plan"), ""), id) == 0 &&
           tdmi_parquet_is_part_name(name) && strncmp(name, start, strlen(start)) == 0 &&
           record->n_rows >= 0 && record->n_bytes >= 0 &&
           record->n_rows + (int64_t)tdm_json_count(tdmi_prepare_record_dropped(record)) == part->n;
}

tdm_status tdmi_prepare_part_find(const struct tdmi_prepare_job *job, int number, bool is_thorough,
                                  struct tdmi_prepare_record *record, bool *is_there,
                                  tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) void *text = NULL;
    char path[PATH_BYTES], file[PATH_BYTES];
    struct tdmi_place place = {0};
    size_t n_bytes = 0;
    *record = (struct tdmi_prepare_record){0};
    *is_there = false;
    TDM_TRY(name_in(job->folder, "_prepare/", named(job->plan, number), ".json", path, err), err,
            "cannot look for part %d", number);
    if (tdmi_file_kind_of(path) != TDMI_FILE_REGULAR)
        return TDM_OK;
    TDM_TRY(tdmi_file_read(path, LARGEST_RECORD_BYTES, &text, &n_bytes, err), err,
            "cannot see whether part %d is done", number);
    /* Ignore a record that cannot be parsed. */
    tdm_status status = tdm_json_read(text, n_bytes, path, &record->document, err);
    if (status == TDM_OK && take_record(job->plan, number, record)) {
        const int n = snprintf(file, sizeof file, "%s/%s", job->folder, record->name);
        if (n > 0 && n < (int)sizeof file)
            status = tdmi_storage_look(file, &place, err);
        *is_there = status == TDM_OK && place.kind == TDMI_FILE_REGULAR &&
                    place.size_bytes == record->n_bytes;
        if (*is_there && is_thorough)
            status = has_equal_bytes(file, record, is_there, err);
    }
    if (!*is_there)
        tdmi_prepare_record_release(record);
    /* An unreadable file counts as missing, but running out of memory is an error. */
    if (status == TDM_E_MEMORY)
        return TDM_WRAP(err, status, "cannot see whether part %d is done", number);
    tdm_error_clear(err);
    return TDM_OK;
}
