/*
 * Opening a path probes it with every kind of sources.def in turn. Queries about items are answered
 * from the listing; everything else is a call of the kind's table.
 */
#include "data/audit/quarantine.h"
#include "data/source/listing.h"
#include "io/storage/storage.h"
#include "image/image.h"
#include "tandem/log.h"
#include <assert.h>

#define X(table) extern const struct tdmi_source_table table;
#include "data/source/sources.def"
#undef X

static const struct tdmi_source_table *const kinds[] = {
#define X(table) &table,
#include "data/source/sources.def"
#undef X
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

/* The index of an item in the listing. */
static int64_t in_listing(const tdmi_source *source, int64_t index)
{
    assert(index >= 0 && index < tdmi_source_items(source));
    return source->listing->kept == NULL ? index : source->listing->kept[index];
}

static tdm_status fail_unknown(const char *path, tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text known = {0};
    if (tdmi_image_format_of_name(path) != TDMI_IMAGE_UNKNOWN)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' is a single image; name a data set, such as the folder that holds "
                        "its class folder",
                        path);
    const struct tdmi_source_table *last = kinds[N_KINDS - 1]; /* the one most people have */
    for (int i = 0; i < N_KINDS - 1; i++)
        tdmi_text_printf(&known, "%s%s", i == 0 ? "" : ", ", kinds[i]->name);
    return TDM_FAIL(err, TDM_E_INPUT, "'%s' is no data set of a known kind: %s (%s), or one of: %s",
                    path, last->summary, last->name, tdmi_text_string(&known));
}

/* ---- opening --------------------------------------------------------------------------------- */

static tdm_status leave_out(tdmi_source *source, const char *list, tdm_error *err)
{
    TDMI_AT_END(tdmi_quarantine_free_at) tdmi_quarantine *quarantine = NULL;
    const int64_t n_all = tdmi_source_items(source);
    int64_t n = 0, *kept;
    TDMI_TRY(tdmi_quarantine_read(list, &quarantine, err));
    TDMI_TRY(TDMI_NEW(kept, n_all, err));
    for (int64_t i = 0; i < n_all; i++)
        if (!tdmi_quarantine_has(quarantine, tdmi_source_item(source, i).path))
            kept[n++] = in_listing(source, i);
    tdmi_free(source->listing->kept);
    source->listing->kept = kept;
    source->listing->n_kept = n;
    source->n_quarantined = n_all - n;
    if (n == 0)
        return TDM_FAIL(err, TDM_E_INPUT, "all %lld images of '%s' are listed in %s",
                        (long long)n_all, source->path, list);
    return TDM_OK;
}

tdm_status tdmi_source_new(const struct tdmi_source_table *table, const char *path,
                           tdmi_source **source, tdm_error *err)
{
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *made = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    made->listing = tdmi_alloc(1, table->state_bytes);
    TDMI_CHECK_MEMORY(made->listing, err);
    made->path = tdmi_arena_copy(&made->listing->arena, path);
    TDMI_CHECK_MEMORY(made->path, err);
    made->table = table;
    *source = tdmi_take(&made);
    return TDM_OK;
}

void tdmi_source_formats(const tdmi_source *source, bool formats[TDMI_IMAGE_FORMATS])
{
    const bool is_table = tdmi_source_is_table(source);
    const int64_t n = is_table ? 0 : tdmi_source_items(source);
    for (int format = 0; format < TDMI_IMAGE_FORMATS; format++)
        formats[format] = is_table;
    for (int64_t i = 0; i < n; i++)
        formats[tdmi_image_format_of_name(tdmi_source_item(source, i).path)] = true;
}

/* Count the images, by name, of formats for which this build or this machine has no decoder. They
 * stay items: each is skipped and counted like any bad image. */
static void warn_of_missing_decoders(const tdmi_source *source)
{
    int64_t counts[TDMI_IMAGE_FORMATS] = {0};
    const int64_t n = tdmi_source_is_table(source) ? 0 : tdmi_source_items(source);
    for (int64_t i = 0; i < n; i++)
        counts[tdmi_image_format_of_name(tdmi_source_item(source, i).path)]++;
    for (int format = TDMI_IMAGE_UNKNOWN + 1; format < TDMI_IMAGE_FORMATS; format++) {
        tdm_error why = {0};
        if (counts[format] > 0 &&
            tdmi_image_find_decoder((enum tdmi_image_format)format, &why) != TDM_OK)
            tdm_log(TDM_LOG_WARNING, "%lld %s image%s of '%s' cannot be read: %s",
                    (long long)counts[format],
                    tdmi_image_format_name((enum tdmi_image_format)format),
                    counts[format] == 1 ? "" : "s", source->path, tdm_error_sentence(&why, 0));
    }
}

static tdm_status open_plain(const char *path, const struct tdmi_place *place,
                             const struct tdm_source_options *options, tdmi_source **source,
                             tdm_error *err)
{
    static const struct tdm_source_options by_itself = {0};
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *opened = NULL;
    const struct tdmi_source_table *table = NULL;
    for (int i = 0; i < N_KINDS && table == NULL; i++)
        table = kinds[i]->can_open(path) ? kinds[i] : NULL;
    if (table == NULL && (place->kind == TDMI_FILE_MISSING || place->kind == TDMI_FILE_FORBIDDEN))
        return tdmi_storage_refuse(path, place->kind, "a data set", err);
    if (table == NULL)
        return fail_unknown(path, err);

    if (options == NULL)
        options = &by_itself;
    if (!table->takes_columns && (options->image_column != NULL || options->label_column != NULL ||
                                  options->raw_shape != NULL))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "'%s' is %s and has no columns; columns and a raw shape are named for "
                        "tables only",
                        path, table->summary);

    TDMI_TRY(tdmi_source_new(table, path, &opened, err));
    TDM_TRY(table->open(opened->path, options, opened->listing, err), err, "cannot open '%s' as %s",
            path, table->summary);
    if (tdmi_source_items(opened) == 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "there is no image in '%s' (%lld other files seen); expected %s", path,
                        (long long)tdmi_source_ignored(opened), table->summary);
    if (options->quarantine != NULL)
        TDMI_TRY(leave_out(opened, options->quarantine, err));
    warn_of_missing_decoders(opened);
    *source = tdmi_take(&opened);
    return TDM_OK;
}

tdm_status tdmi_source_open(const char *path, const struct tdm_source_options *options,
                            tdmi_source **source, tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {.block_bytes = 256};
    struct tdmi_place place;
    *source = NULL;
    TDM_TRY(tdmi_storage_look(path, &place, err), err, "cannot open the data set '%s'", path);
    const char *plain = tdmi_storage_plain(path, &arena);
    TDMI_CHECK_MEMORY(plain, err);
    return open_plain(plain, &place, options, source, err);
}

void tdmi_source_close(tdmi_source *source)
{
    if (source == NULL)
        return;
    if (source->table != NULL && source->table->release != NULL)
        source->table->release(source->listing);
    if (source->listing != NULL)
        tdmi_listing_release(source->listing);
    tdmi_free(source->listing);
    tdmi_free(source);
}

/* ---- queries --------------------------------------------------------------------------------- */

const char *tdmi_source_path(const tdmi_source *source)
{
    return source->path;
}

bool tdmi_source_is_prepared(const tdmi_source *source)
{
    return source->table->is_prepared;
}

const char *tdmi_source_kind(const tdmi_source *source)
{
    return source->table->name;
}

bool tdmi_source_is_table(const tdmi_source *source)
{
    return source->table->takes_columns;
}

int tdmi_source_classes(const tdmi_source *source)
{
    return source->listing->n_classes;
}

const char *tdmi_source_class(const tdmi_source *source, int index)
{
    assert(index >= 0 && index < source->listing->n_classes);
    return source->listing->classes[index];
}

int64_t tdmi_source_items(const tdmi_source *source)
{
    return source->listing->kept != NULL ? source->listing->n_kept : source->listing->n_items;
}

struct tdmi_item tdmi_source_item(const tdmi_source *source, int64_t index)
{
    return source->listing->items[in_listing(source, index)];
}

tdm_status tdmi_source_read(const tdmi_source *source, int64_t index, tdmi_text *bytes,
                            tdm_error *err)
{
    return source->table->read(source->listing, in_listing(source, index), bytes, err);
}

int64_t tdmi_source_ignored(const tdmi_source *source)
{
    return source->listing->n_ignored;
}

bool tdmi_source_is_lost(tdm_status status)
{
    return status == TDM_E_MEMORY || status == TDM_E_SYSTEM || status == TDM_E_STOPPED;
}

tdm_status tdmi_source_try(const tdmi_source *source, int64_t index, tdmi_text *bytes,
                           tdm_error *problem, tdm_error *err)
{
    const tdm_status status = tdmi_source_read(source, index, bytes, problem);
    if (status == TDM_OK)
        tdm_error_clear(problem);
    if (!tdmi_source_is_lost(status))
        return TDM_OK;
    if (err != NULL)
        *err = *problem;
    return TDM_WRAP(err, status, "cannot read '%s'", tdmi_source_item(source, index).path);
}

int64_t tdmi_source_quarantined(const tdmi_source *source)
{
    return source->n_quarantined;
}

bool tdmi_source_stamp(const tdmi_source *source, int64_t index, struct tdmi_stamp *stamp)
{
    return source->table->stamp != NULL &&
           source->table->stamp(source->listing, in_listing(source, index), stamp);
}

uint64_t tdmi_source_hash(const tdmi_source *source, int64_t index)
{
    return source->table->hash == NULL
               ? 0
               : source->table->hash(source->listing, in_listing(source, index));
}

struct tdmi_bytes_key tdmi_source_bytes_key(const tdmi_source *source, int64_t index,
                                            const uint64_t *hashes)
{
    uint64_t name = 0;
    if (source->table->row_name != NULL &&
        source->table->row_name(source->listing, in_listing(source, index), &name))
        return (struct tdmi_bytes_key){.number = name};
    return (struct tdmi_bytes_key){hashes != NULL ? hashes[index] : tdmi_source_hash(source, index),
                                   true};
}

bool tdmi_source_raw_shape(const tdmi_source *source, struct tdmi_raw_shape *shape)
{
    return source->table->raw_shape != NULL && source->table->raw_shape(source->listing, shape);
}

bool tdmi_source_geometry(const tdmi_source *source, struct tdmi_preprocess *geometry)
{
    return source->table->geometry != NULL && source->table->geometry(source->listing, geometry);
}

tdm_status tdmi_source_read_raw(const tdmi_source *source, int64_t index, uint8_t *pixels,
                                tdm_error *err)
{
    return source->table->read_raw(source->listing, in_listing(source, index), pixels, err);
}

static const char *row_file(const tdmi_source *source, int64_t index)
{
    return source->table->row_file(source->listing, in_listing(source, index));
}

/* The first item in [low, high) that is, or is not, a row of the file; high: none. */
static int64_t find_row(const tdmi_source *source, const char *file, bool is_row, int64_t low,
                        int64_t high)
{
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if ((row_file(source, middle) == file) == is_row)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

const char *tdmi_source_row_file(const tdmi_source *source, int64_t index, int64_t *first,
                                 int64_t *end)
{
    if (source->table->row_file == NULL)
        return NULL;
    const char *file = row_file(source, index);
    *first = find_row(source, file, true, 0, index);
    *end = find_row(source, file, false, index + 1, tdmi_source_items(source));
    return file;
}

int64_t tdmi_source_groups(const tdmi_source *source)
{
    return source->table->n_groups == NULL ? 0 : source->table->n_groups(source->listing);
}

int64_t tdmi_source_group_first(const tdmi_source *source, int64_t group)
{
    const int64_t first = source->table->group_first(source->listing, group);
    int64_t low = 0, high = source->listing->n_kept;
    if (source->listing->kept == NULL)
        return first;
    /* The first kept item of this group or a later one. */
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (source->listing->kept[middle] < first)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- lost rows: few files lose any, so those that do are searched one by one ---------------- */

void tdmi_lost_rows_release(tdmi_lost_rows *lost)
{
    tdmi_free(lost->is_lost);
    tdmi_free(lost->files);
    *lost = (tdmi_lost_rows){0};
}

tdm_status tdmi_lost_rows_add(tdmi_lost_rows *lost, const tdmi_source *source, int64_t item,
                              const char *why, tdm_error *err)
{
    int64_t first, end;
    const char *path = tdmi_source_row_file(source, item, &first, &end);
    if (path == NULL)
        return TDM_OK;
    if (lost->is_lost == NULL)
        TDMI_TRY(TDMI_NEW(lost->is_lost, tdmi_source_items(source) / 8 + 1, err));
    int64_t f = 0;
    while (f < lost->n_files && lost->files[f].first != first)
        f++;
    if (f == lost->n_files) {
        TDMI_TRY(TDMI_MAKE_ROOM(lost->files, lost->capacity, f, err));
        lost->files[lost->n_files++] = (struct tdmi_lost_file){.first = first};
    }
    struct tdmi_lost_file *file = &lost->files[f];
    const uint8_t bit = (uint8_t)(1 << item % 8);
    file->n_lost += (lost->is_lost[item / 8] & bit) == 0;
    lost->is_lost[item / 8] |= bit;
    if (2 * file->n_lost <= end - first)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_INPUT,
                    "more than half of the %lld rows of '%s' cannot be used%s%s%s; check the "
                    "options that it is read with, replace it, or leave its bad rows out with the "
                    "list that audit --quarantine writes",
                    (long long)(end - first), path, why != NULL ? " (" : "", why != NULL ? why : "",
                    why != NULL ? ")" : "");
}
