/*
 * Pages of a column chunk lie one after another, a dictionary page first where there is one. An
 * offset index that says otherwise is not used: the heads themselves are walked instead.
 */
#include "data/parquet/pages.h"

#include "base/bytes.h"
#include "base/hash/crc32.h"
#include <string.h>

/* Heads carry the least and the greatest value, which may be images. */
static const size_t head_sizes[] = {256, 64 * 1024, 16 * 1024 * 1024};
/* FORGOTTEN_BYTES: early writers left the head of the dictionary page out of a column's length. */
enum { HEAD_SIZES = 3, PLAIN = 0, LARGEST_PAGE_BYTES = INT32_MAX, FORGOTTEN_BYTES = 100 };

void tdmi_pages_release(struct tdmi_pages *pages)
{
    tdmi_free(pages->offsets);
    tdmi_free(pages->first_rows);
    *pages = (struct tdmi_pages){0};
}

/* ---- heads ------------------------------------------------------------------------------- */

tdm_status tdmi_pages_read_head(const tdmi_storage_file *bytes, int64_t at, int64_t end,
                                struct tdmi_page_head *head, size_t *head_bytes, tdm_error *err)
{
    tdm_status status = TDM_OK;
    *head_bytes = 0;
    for (int i = 0; i < HEAD_SIZES && status == TDM_OK && *head_bytes == 0; i++) {
        TDMI_AT_END(tdmi_free_at) uint8_t *buffer = NULL;
        size_t n = head_sizes[i] < (size_t)(end - at) ? head_sizes[i] : (size_t)(end - at);
        TDMI_TRY(TDMI_NEW(buffer, n, err));
        status = tdmi_storage_read(bytes, at, buffer, n, err);
        if (status == TDM_OK)
            status = tdmi_page_head_read(buffer, n, head, head_bytes, err);
    }
    if (status == TDM_OK && *head_bytes == 0)
        status = TDM_FAIL(err, TDM_E_INPUT, "the head of a page does not end");
    return TDM_WRAP(err, status, "cannot read the page at byte %lld of '%s'", (long long)at,
                    tdmi_storage_path(bytes));
}

/* ---- where they lie ---------------------------------------------------------------------- */

static tdm_status make_room(struct tdmi_pages *pages, int64_t *capacity, tdm_error *err)
{
    int64_t of_rows = *capacity;
    TDMI_TRY(TDMI_MAKE_ROOM(pages->offsets, *capacity, pages->n_pages + 1, err));
    return TDMI_MAKE_ROOM(pages->first_rows, of_rows, pages->n_pages + 1, err);
}

static tdm_status walk(const tdmi_storage_file *bytes, int64_t end, struct tdmi_pages *pages,
                       bool *can_read, tdm_error *err)
{
    int64_t at = pages->first_byte, row = 0, capacity = 0;
    while (row < pages->n_rows) {
        struct tdmi_page_head head;
        size_t head_bytes;
        TDMI_TRY(tdmi_pages_read_head(bytes, at, end, &head, &head_bytes, err));
        if (head.n_bytes > end - at - (int64_t)head_bytes)
            return TDM_FAIL(
                err, TDM_E_INPUT,
                "the page at byte %lld of '%s' has %d bytes and leaves its column, which "
                "ends at byte %lld",
                (long long)at, tdmi_storage_path(bytes), head.n_bytes, (long long)end);
        bool is_data = head.kind == TDMI_PAGE_DATA || head.kind == TDMI_PAGE_DATA_V2;
        if (!is_data && (head.kind != TDMI_PAGE_DICTIONARY || pages->n_pages > 0)) {
            *can_read = false; /* an order that nobody writes */
            return TDM_OK;
        }
        if (is_data) {
            TDMI_TRY(make_room(pages, &capacity, err));
            pages->offsets[pages->n_pages] = at;
            pages->first_rows[pages->n_pages++] = (int32_t)row;
            row += head.n_values;
        }
        at += (int64_t)head_bytes + head.n_bytes;
        if (row > pages->n_rows || (row < pages->n_rows && at >= end))
            return TDM_FAIL(
                err, TDM_E_INPUT,
                "the pages before byte %lld of '%s' hold %lld rows; the row group has %lld",
                (long long)at, tdmi_storage_path(bytes), (long long)row, (long long)pages->n_rows);
    }
    TDMI_TRY(make_room(pages, &capacity, err));
    pages->offsets[pages->n_pages] = at;
    return TDM_OK;
}

/* Is the index what a walk would find? */
static bool is_in_order(const struct tdmi_arrow_page *index, int64_t n, int64_t first_byte,
                        int64_t end, int64_t n_rows)
{
    if (n == 0 || index[0].offset_bytes < first_byte || index[0].first_row != 0 ||
        index[n - 1].first_row >= n_rows || n > n_rows)
        return false;
    for (int64_t i = 0; i < n; i++)
        if ((i > 0 && (index[i].offset_bytes != index[i - 1].offset_bytes + index[i - 1].n_bytes ||
                       index[i].first_row <= index[i - 1].first_row)) ||
            index[i].n_bytes <= 0 || index[i].offset_bytes >= end ||
            index[i].n_bytes > end - index[i].offset_bytes)
            return false;
    return true;
}

static tdm_status take_index(const tdmi_arrow_file *file, const char *column, int group,
                             int64_t end, struct tdmi_pages *pages, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) struct tdmi_arrow_page *index = NULL;
    int64_t n = 0;
    TDMI_TRY(tdmi_arrow_chunk_pages(file, column, group, &index, &n, err));
    if (!is_in_order(index, n, pages->first_byte, end, pages->n_rows))
        return TDM_OK;
    TDMI_TRY(TDMI_NEW(pages->offsets, n + 1, err));
    if (n < pages->n_rows)
        TDMI_TRY(TDMI_NEW(pages->first_rows, n, err));
    pages->n_pages = n;
    for (int64_t i = 0; i < n; i++) {
        pages->offsets[i] = index[i].offset_bytes;
        if (pages->first_rows != NULL)
            pages->first_rows[i] = (int32_t)index[i].first_row;
    }
    pages->offsets[n] = index[n - 1].offset_bytes + index[n - 1].n_bytes;
    return TDM_OK;
}

tdm_status tdmi_pages_open(const tdmi_arrow_file *file, const tdmi_storage_file *bytes,
                           const char *column, int group, struct tdmi_pages *pages, bool *can_read,
                           tdm_error *err)
{
    TDMI_AT_END(tdmi_pages_release) struct tdmi_pages found = {0};
    struct tdmi_arrow_chunk chunk;
    *pages = found;
    TDMI_TRY(tdmi_arrow_chunk_facts(file, column, group, &chunk, err));
    *can_read = chunk.is_simple && chunk.max_repetition == 0 && chunk.fixed_bytes >= 0 &&
                chunk.n_rows <= INT32_MAX;
    if (!*can_read)
        return TDM_OK;
    int64_t size = tdmi_storage_size(bytes);
    if (chunk.n_values != chunk.n_rows || chunk.first_byte < 4 || chunk.n_bytes < 0 ||
        chunk.first_byte > size || chunk.n_bytes > size - chunk.first_byte)
        return TDM_FAIL(
            err, TDM_E_INPUT,
            "column '%s' in row group %d of '%s' is said to have %lld values in %lld bytes "
            "from byte %lld on; the group has %lld rows, the file %lld bytes",
            column, group, tdmi_storage_path(bytes), (long long)chunk.n_values,
            (long long)chunk.n_bytes, (long long)chunk.first_byte, (long long)chunk.n_rows,
            (long long)size);
    found = (struct tdmi_pages){.n_rows = chunk.n_rows,
                                .first_byte = chunk.first_byte,
                                .form = {chunk.max_definition, chunk.fixed_bytes, chunk.codec}};
    int64_t end = chunk.first_byte + chunk.n_bytes;
    end = end < size - FORGOTTEN_BYTES ? end + FORGOTTEN_BYTES : size;
    if (chunk.has_offset_index)
        TDMI_TRY(take_index(file, column, group, end, &found, err));
    if (found.n_pages == 0)
        TDMI_TRY(walk(bytes, end, &found, can_read, err));
    if (!*can_read)
        return TDM_OK;
    found.have_places = (chunk.codec == TDMI_CODEC_NONE || chunk.codec == TDMI_CODEC_SNAPPY) &&
                        chunk.n_unpacked_bytes / chunk.n_rows >= TDMI_LARGE_VALUE_BYTES;
    *pages = found;
    found = (struct tdmi_pages){0};
    return TDM_OK;
}

int64_t tdmi_pages_first_row(const struct tdmi_pages *pages, int64_t page)
{
    return page == pages->n_pages      ? pages->n_rows
           : pages->first_rows == NULL ? page
                                       : pages->first_rows[page];
}

int64_t tdmi_pages_find(const struct tdmi_pages *pages, int64_t row)
{
    int64_t low = 0, high = pages->n_pages;
    if (pages->first_rows == NULL)
        return row;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (pages->first_rows[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* ---- values ---------------------------------------------------------------------- */

/* Head and checked body of the page in [at, end), which is read into `to`. */
static tdm_status read_page(const tdmi_storage_file *bytes, int64_t at, int64_t end, uint8_t *to,
                            struct tdmi_page_head *head, size_t *head_bytes, tdm_error *err)
{
    size_t n = (size_t)(end - at);
    TDMI_TRY(tdmi_storage_read(bytes, at, to, n, err));
    TDMI_TRY(tdmi_page_head_read(to, n, head, head_bytes, err));
    if (*head_bytes == 0 || (size_t)head->n_bytes > n - *head_bytes)
        return TDM_FAIL(err, TDM_E_INPUT, "the page there is longer than its %zu bytes", n);
    return tdmi_page_check(head, to + *head_bytes, err);
}

static tdm_status load_page(const tdmi_storage_file *bytes, int64_t at, int64_t end,
                            struct tdmi_page_head *head, uint8_t **owned, const uint8_t **body,
                            tdm_error *err)
{
    size_t head_bytes;
    if (end - at > LARGEST_PAGE_BYTES)
        return TDM_FAIL(err, TDM_E_INPUT, "the page there has %lld bytes", (long long)(end - at));
    TDMI_TRY(TDMI_NEW(*owned, end - at, err));
    TDMI_TRY(read_page(bytes, at, end, *owned, head, &head_bytes, err));
    *body = *owned + head_bytes;
    return TDM_OK;
}

static tdm_status load_dictionary(const struct tdmi_pages *pages, const tdmi_storage_file *bytes,
                                  struct tdmi_page *dictionary, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) uint8_t *owned = NULL;
    struct tdmi_page_head head;
    const uint8_t *body = NULL;
    int64_t at = pages->first_byte, end = pages->offsets[0];
    if (at >= end)
        return TDM_FAIL(err, TDM_E_INPUT, "it needs a dictionary, and none stands before it");
    TDM_TRY(load_page(bytes, at, end, &head, &owned, &body, err), err,
            "cannot read the dictionary at byte %lld", (long long)at);
    if (head.kind != TDMI_PAGE_DICTIONARY)
        return TDM_FAIL(err, TDM_E_INPUT, "there is no dictionary at byte %lld", (long long)at);
    return tdmi_page_decode(&head, &pages->form, tdmi_take(&owned), (size_t)(end - at), body, NULL,
                            dictionary, err);
}

tdm_status tdmi_pages_load(const struct tdmi_pages *pages, const tdmi_storage_file *bytes,
                           int64_t page, struct tdmi_page *values, struct tdmi_page *dictionary,
                           tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) uint8_t *owned = NULL;
    struct tdmi_page_head head;
    const uint8_t *body = NULL;
    int64_t at = pages->offsets[page], end = pages->offsets[page + 1];
    int64_t n_rows = tdmi_pages_first_row(pages, page + 1) - tdmi_pages_first_row(pages, page);
    TDMI_TRY(load_page(bytes, at, end, &head, &owned, &body, err));
    if ((head.kind != TDMI_PAGE_DATA && head.kind != TDMI_PAGE_DATA_V2) || head.n_values != n_rows)
        return TDM_FAIL(err, TDM_E_INPUT, "the page there holds %d values; expected %lld",
                        head.n_values, (long long)n_rows);
    if (head.encoding != PLAIN && dictionary->values == NULL)
        TDMI_TRY(load_dictionary(pages, bytes, dictionary, err));
    return tdmi_page_decode(&head, &pages->form, tdmi_take(&owned), (size_t)(end - at), body,
                            dictionary, values, err);
}

tdm_status tdmi_pages_blame(const struct tdmi_pages *pages, const tdmi_storage_file *bytes,
                            int64_t page, tdm_status status, tdm_error *err)
{
    return TDM_WRAP(err, status, "cannot read the page at byte %lld of '%s'",
                    (long long)pages->offsets[page], tdmi_storage_path(bytes));
}

/* ---- single ones ------------------------------------------------------------------------- */

tdm_status tdmi_pages_fail_null(tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_INPUT, "there is no image: the value is null");
}

static tdm_status read_single(const struct tdmi_pages *pages, const tdmi_storage_file *bytes,
                              int64_t page, tdmi_text *text, tdm_error *err)
{
    TDMI_AT_END(tdmi_page_release) struct tdmi_page dictionary = {0};
    TDMI_AT_END(tdmi_page_release) struct tdmi_page values = {0};
    TDMI_TRY(tdmi_pages_load(pages, bytes, page, &values, &dictionary, err));
    const struct tdmi_page_value *value = &values.values[0];
    if (value->bytes == NULL)
        return tdmi_pages_fail_null(err);
    tdmi_text_clear(text);
    tdmi_text_add(text, value->bytes, (size_t)value->n_bytes);
    return tdmi_text_status(text, err);
}

tdm_status tdmi_pages_read_single(const struct tdmi_pages *pages, const tdmi_storage_file *bytes,
                                  int64_t page, tdmi_text *text, tdm_error *err)
{
    return tdmi_pages_blame(pages, bytes, page, read_single(pages, bytes, page, text, err), err);
}

/* A page whose body is one value: plain, without levels. */
static bool is_bare_page(const struct tdmi_page_head *head)
{
    return head->encoding == PLAIN && head->n_values == 1 &&
           (head->kind == TDMI_PAGE_DATA ||
            (head->kind == TDMI_PAGE_DATA_V2 && head->definition_bytes == 0 &&
             head->repetition_bytes == 0));
}

enum { LARGEST_BARE_HEAD_BYTES = 64 };

/* Read the head, whose size follows from that of the page and of the value, then the value straight
 * to its target. *is_done false: the page has another form. */
static tdm_status read_bare(const struct tdmi_pages *pages, const tdmi_storage_file *bytes,
                            int64_t page, void *target, size_t n_bytes, bool *is_done,
                            tdm_error *err)
{
    int64_t at = pages->offsets[page], prefix_bytes = pages->form.fixed_bytes > 0 ? 0 : 4;
    int64_t before = pages->offsets[page + 1] - at - (int64_t)n_bytes;
    uint8_t start[LARGEST_BARE_HEAD_BYTES + 4];
    struct tdmi_page_head head;
    size_t head_bytes;
    *is_done = false;
    if (pages->form.codec != TDMI_CODEC_NONE || pages->form.max_definition > 0 ||
        before <= prefix_bytes || before > LARGEST_BARE_HEAD_BYTES + prefix_bytes)
        return TDM_OK;
    TDMI_TRY(tdmi_storage_read(bytes, at, start, (size_t)before, err));
    TDMI_TRY(tdmi_page_head_read(start, (size_t)before, &head, &head_bytes, err));
    if ((int64_t)head_bytes + prefix_bytes != before || !is_bare_page(&head) ||
        head.n_bytes != prefix_bytes + (int64_t)n_bytes ||
        (pages->form.fixed_bytes > 0
             ? pages->form.fixed_bytes != (int64_t)n_bytes
             : tdmi_read_little(start + head_bytes, (size_t)prefix_bytes) != n_bytes))
        return TDM_OK;
    TDMI_TRY(tdmi_storage_read(bytes, at + before, target, n_bytes, err));
    *is_done = true;
    if (!head.has_crc)
        return TDM_OK;
    uint32_t crc = tdmi_crc32(0, start + head_bytes, (size_t)prefix_bytes);
    return tdmi_page_compare(&head, tdmi_crc32(crc, target, n_bytes), err);
}

static tdm_status read_single_raw(const struct tdmi_pages *pages, const tdmi_storage_file *bytes,
                                  int64_t page, void *target, size_t n_bytes, tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    bool is_done = false;
    TDMI_TRY(read_bare(pages, bytes, page, target, n_bytes, &is_done, err));
    if (is_done)
        return TDM_OK;
    TDMI_TRY(read_single(pages, bytes, page, &text, err));
    if (text.length_bytes != n_bytes)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the image there has %zu bytes; expected %zu of raw pixels",
                        text.length_bytes, n_bytes);
    memcpy(target, text.bytes, n_bytes);
    return TDM_OK;
}

tdm_status tdmi_pages_read_single_raw(const struct tdmi_pages *pages,
                                      const tdmi_storage_file *bytes, int64_t page, void *target,
                                      size_t n_bytes, tdm_error *err)
{
    return tdmi_pages_blame(pages, bytes, page,
                            read_single_raw(pages, bytes, page, target, n_bytes, err), err);
}
