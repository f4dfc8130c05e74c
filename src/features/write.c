/*
 * Writing a file of rows: rows go out as they come, the index is kept until the end and the head is
 * written last. The name is the checksum of head and index, so two processes that computed the same
 * rows in the same order leave one file.
 */
#include "features/file.h"

#include "base/file/file.h"
#include "base/system/multiversion.h"
#include "tensor/half.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BUFFER_BYTES = 256 << 10 };

struct tdmi_store_writer {
    tdmi_atomic_file *file;
    tdmi_arena arena;
    const char *folder;
    struct tdmi_store_form form;
    enum tdmi_dtype precision;
    size_t row_bytes, buffer_bytes, n_buffered; /* bytes */
    char *buffer;
    struct tdmi_store_entry *entries;
    int64_t n_rows, capacity;
};

static tdm_status begin(tdmi_store_writer *writer, tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    const struct tdmi_store_head zeros = {.zero = 0};
    const char *path = tdmi_path_join(&arena, writer->folder, "new" TDMI_STORE_ENDING);
    TDMI_CHECK_MEMORY(path, err);
    TDMI_TRY(tdmi_atomic_open(path, &writer->file, err));
    return tdmi_atomic_write(writer->file, &zeros, sizeof zeros, err);
}

tdm_status tdmi_store_writer_new(const char *folder, const struct tdmi_store_form *form,
                                 enum tdmi_dtype precision, tdmi_store_writer **writer,
                                 tdm_error *err)
{
    TDMI_AT_END(tdmi_store_writer_abort_at) tdmi_store_writer *made = NULL;
    *writer = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    made->form = *form;
    made->precision = precision;
    made->row_bytes = tdmi_store_row_bytes(form->width, precision);
    made->buffer_bytes = made->row_bytes > BUFFER_BYTES ? made->row_bytes : BUFFER_BYTES;
    TDMI_TRY(TDMI_NEW(made->buffer, made->buffer_bytes, err));
    made->folder = tdmi_arena_copy(&made->arena, folder);
    TDMI_CHECK_MEMORY(made->folder, err);
    TDMI_TRY(begin(made, err));
    *writer = tdmi_take(&made);
    return TDM_OK;
}

static tdm_status flush(tdmi_store_writer *writer, tdm_error *err)
{
    const size_t n = writer->n_buffered;
    writer->n_buffered = 0;
    return n == 0 ? TDM_OK : tdmi_atomic_write(writer->file, writer->buffer, n, err);
}

/* *stored: where the bytes of the next row belong. */
static tdm_status next_row(tdmi_store_writer *writer, char **stored, tdm_error *err)
{
    TDMI_TRY(TDMI_MAKE_ROOM(writer->entries, writer->capacity, writer->n_rows, err));
    if (writer->n_rows == INT32_MAX)
        return TDM_FAIL(err, TDM_E_BUG, "a file of rows in %s would have more than %d of them",
                        writer->folder, INT32_MAX);
    if (writer->n_buffered + writer->row_bytes > writer->buffer_bytes)
        TDMI_TRY(flush(writer, err));
    *stored = writer->buffer + writer->n_buffered;
    return TDM_OK;
}

static void keep_row(tdmi_store_writer *writer, struct tdmi_store_entry entry)
{
    writer->entries[writer->n_rows++] = entry;
    writer->n_buffered += writer->row_bytes;
}

/* Any finite value that becomes an infinity? */
TDMI_MULTIVERSION
static bool narrow(const float *values, int width, char *stored)
{
    enum { block = 64 };
    int is_lost = 0;
    for (int first = 0; first < width; first += block) {
        uint16_t some[block];
        const int n = width - first < block ? width - first : block;
        for (int i = 0; i < n; i++) {
            some[i] = tdmi_f16_of_float(values[first + i]);
            is_lost |= (some[i] & 0x7fff) == 0x7c00 &&
                       (tdmi_bits_of_float(values[first + i]) & 0x7fffffffu) != 0x7f800000u;
        }
        memcpy(stored + (size_t)first * sizeof *some, some, (size_t)n * sizeof *some);
    }
    return is_lost != 0;
}

/* It would be a wrong row. */
static tdm_status lost(struct tdmi_store_row row, const float *values, int width, tdm_error *err)
{
    int i = 0;
    while (i < width - 1 && !(isfinite(values[i]) && fabsf(values[i]) >= 65520))
        i++;
    return TDM_FAIL(err, TDM_E_INPUT,
                    "cannot store row %016llx, view %u, in f16: float %d of it is %g, and the "
                    "largest f16 is 65504; train with --features f32",
                    (unsigned long long)row.content, (unsigned)row.view, i, (double)values[i]);
}

tdm_status tdmi_store_writer_add(tdmi_store_writer *writer, struct tdmi_store_row row,
                                 const float *values, tdm_error *err)
{
    char *stored = NULL;
    TDMI_TRY(next_row(writer, &stored, err));
    if (writer->precision == TDMI_DTYPE_F32)
        memcpy(stored, values, writer->row_bytes);
    else if (narrow(values, writer->form.width, stored))
        return lost(row, values, writer->form.width, err);
    keep_row(writer, (struct tdmi_store_entry){
                         row.content, row.view,
                         tdmi_store_check(row.content, row.view, stored, writer->row_bytes)});
    return TDM_OK;
}

tdm_status tdmi_store_writer_add_stored(tdmi_store_writer *writer, struct tdmi_store_entry entry,
                                        const void *stored, tdm_error *err)
{
    char *place = NULL;
    TDMI_TRY(next_row(writer, &place, err));
    memcpy(place, stored, writer->row_bytes);
    keep_row(writer, entry);
    return TDM_OK;
}

int64_t tdmi_store_writer_rows(const tdmi_store_writer *writer)
{
    return writer->n_rows;
}

/* Everything but the commit itself; *path is of tdmi_alloc. */
static tdm_status finish(tdmi_store_writer *writer, char **path, tdm_error *err)
{
    struct tdmi_store_head head = {
        .format_version = TDMI_STORE_FORMAT_VERSION,
        .width = (uint32_t)writer->form.width,
        .precision =
            writer->precision == TDMI_DTYPE_F16 ? TDMI_STORE_CODE_F16 : TDMI_STORE_CODE_F32,
        .n_rows = (uint64_t)writer->n_rows,
    };
    memcpy(head.magic, tdmi_store_magic, sizeof head.magic);
    memcpy(head.key, writer->form.key, sizeof head.key);
    head.checksum = tdmi_store_checksum(head, writer->entries);
    const size_t path_bytes = strlen(writer->folder) + 32;
    TDMI_TRY(TDMI_NEW(*path, path_bytes, err));
    snprintf(*path, path_bytes, "%s/%016llx" TDMI_STORE_ENDING, writer->folder,
             (unsigned long long)head.checksum);
    TDMI_TRY(flush(writer, err));
    TDMI_TRY(tdmi_atomic_write(writer->file, writer->entries,
                               (size_t)writer->n_rows * sizeof *writer->entries, err));
    TDMI_TRY(tdmi_atomic_write_at(writer->file, 0, &head, sizeof head, err));
    return tdmi_atomic_rename(writer->file, *path, err);
}

tdm_status tdmi_store_writer_commit(tdmi_store_writer *writer, char **path, tdm_error *err)
{
    TDMI_AT_END(tdmi_store_writer_abort_at) tdmi_store_writer *ended = writer;
    TDMI_AT_END(tdmi_free_at) char *made = NULL;
    *path = NULL;
    TDMI_TRY(finish(ended, &made, err));
    TDMI_TRY(tdmi_atomic_commit(tdmi_take(&ended->file), err));
    *path = tdmi_take(&made);
    return TDM_OK;
}

void tdmi_store_writer_abort(tdmi_store_writer *writer)
{
    if (writer == NULL)
        return;
    tdmi_atomic_abort(writer->file);
    tdmi_free(writer->buffer);
    tdmi_free(writer->entries);
    tdmi_arena_release(&writer->arena);
    tdmi_free(writer);
}
