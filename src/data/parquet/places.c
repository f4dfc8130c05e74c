/*
 * Writers of large values put hundreds of them on a page (pyarrow a thousand, 150 MB of images of
 * 224 px), the first of them into a dictionary, and pack all of it by Snappy. Only little of a page
 * is needed: the nulls, and the length before each value.
 */
#include "data/parquet/places.h"

#include "base/bytes.h"
#include "base/hash/crc32.h"
#include <string.h>

enum { PLAIN = 0, PLAIN_DICTIONARY = 2, CHECK_BYTES = 256 * 1024 };

void tdmi_places_release(struct tdmi_page_places *places)
{
    tdmi_free(places->spans);
    tdmi_body_release(&places->body);
    *places = (struct tdmi_page_places){0};
}

int64_t tdmi_places_held_bytes(const struct tdmi_page_places *places)
{
    const struct tdmi_body *body = &places->body;
    return places->n_spans * (int64_t)sizeof *places->spans +
           (body->blocks == NULL ? 0 : (body->n_blocks + 1) * (int64_t)sizeof *body->blocks);
}

/* ---- a page whose body lies in the file -------------------------------------------------- */

/* A page in [at, end): its head, and where its body begins. */
struct stored_page {
    const struct tdmi_page_form *form;
    const tdmi_storage_file *bytes;
    struct tdmi_page_head head;
    int64_t at;          /* of the body */
    int64_t at_values;   /* in what is unpacked: behind the levels */
    const bool *is_null; /* (n_values) */
};

/* Compare the checksum, a piece at a time. */
static tdm_status check(const struct stored_page *page, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) uint8_t *piece = NULL;
    uint32_t crc = 0;
    if (!page->head.has_crc)
        return TDM_OK;
    TDMI_TRY(TDMI_NEW(piece, CHECK_BYTES, err));
    for (int64_t done = 0; done < page->head.n_bytes; done += CHECK_BYTES) {
        int64_t left = page->head.n_bytes - done;
        size_t n = left < CHECK_BYTES ? (size_t)left : CHECK_BYTES;
        TDMI_TRY(tdmi_storage_read(page->bytes, page->at + done, piece, n, err));
        crc = tdmi_crc32(crc, piece, n);
    }
    return tdmi_page_compare(&page->head, crc, err);
}

/* The compressed part of the body: in version 2 the levels precede it uncompressed. */
static tdm_status find_body(struct stored_page *page, struct tdmi_body *body, bool *can_read,
                            tdm_error *err)
{
    const struct tdmi_page_head *head = &page->head;
    /* Version 1 packs its levels with the values, whatever a hostile head says beside. */
    const bool is_v2 = head->kind == TDMI_PAGE_DATA_V2;
    const int64_t level_bytes = is_v2 ? head->definition_bytes : 0;
    const bool is_packed = page->form->codec != TDMI_CODEC_NONE && (!is_v2 || head->is_compressed);
    *can_read = true;
    if (is_packed)
        return tdmi_body_index(page->bytes, page->at + level_bytes, head->n_bytes - level_bytes,
                               head->n_bytes_uncompressed - level_bytes, body, can_read, err);
    *body =
        (struct tdmi_body){.at = page->at + level_bytes, .n_bytes = head->n_bytes - level_bytes};
    return TDM_OK;
}

static tdm_status read_length(struct tdmi_body_reader *reader, int64_t at, int64_t *length,
                              tdm_error *err)
{
    uint8_t four[4];
    if (reader->body->n_bytes - at < 4)
        return tdmi_page_damaged("its values end early", err);
    TDMI_TRY(tdmi_body_read(reader, at, four, sizeof four, err));
    *length = (int64_t)tdmi_read_little(four, sizeof four);
    return TDM_OK;
}

/* The nulls, and where the values begin behind the levels of version 1. */
static tdm_status read_nulls(struct stored_page *page, struct tdmi_body_reader *reader,
                             bool *is_null, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) uint8_t *levels = NULL;
    const struct tdmi_page_head *head = &page->head;
    const bool is_v1 = head->kind == TDMI_PAGE_DATA;
    int64_t n_bytes = head->definition_bytes;
    if (head->kind == TDMI_PAGE_DICTIONARY || page->form->max_definition == 0)
        return TDM_OK;
    TDMI_TRY(tdmi_page_check_levels(head, err));
    if (is_v1) {
        TDMI_TRY(read_length(reader, 0, &n_bytes, err));
        page->at_values = 4 + n_bytes;
        if (n_bytes > reader->body->n_bytes - 4)
            return tdmi_page_damaged("its levels are longer than it", err);
    }
    TDMI_TRY(TDMI_NEW(levels, n_bytes, err));
    TDMI_TRY(is_v1 ? tdmi_body_read(reader, 4, levels, (size_t)n_bytes, err)
                   : tdmi_storage_read(page->bytes, page->at, levels, (size_t)n_bytes, err));
    return tdmi_page_nulls(levels, (size_t)n_bytes, page->form->max_definition, head->n_values,
                           is_null, err);
}

static tdm_status find_spans(const struct stored_page *page, struct tdmi_body_reader *reader,
                             struct tdmi_page_span *spans, tdm_error *err)
{
    int64_t at = page->at_values, n;
    for (int32_t i = 0; i < page->head.n_values; i++) {
        spans[i] = (struct tdmi_page_span){at, -1};
        if (page->is_null[i])
            continue;
        n = page->form->fixed_bytes;
        if (n == 0) {
            TDMI_TRY(read_length(reader, at, &n, err));
            at += 4;
        }
        if (n > reader->body->n_bytes - at || n > INT32_MAX)
            return tdmi_page_damaged("a value is longer than what is left of it", err);
        spans[i] = (struct tdmi_page_span){at, (int32_t)n};
        at += n;
    }
    return TDM_OK;
}

/* Values that are plain, wherever they are. On failure the caller releases places. */
static tdm_status find_plain(struct stored_page *page, struct tdmi_page_places *places,
                             tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) bool *is_null = NULL;
    TDMI_AT_END(tdmi_free_at) struct tdmi_page_span *spans = NULL;
    TDMI_AT_END(tdmi_body_reader_release)
    struct tdmi_body_reader reader = {
        .body = &places->body, .file = page->bytes, .goes_onward = true};
    bool can_read = true;
    TDMI_TRY(TDMI_NEW(is_null, page->head.n_values, err));
    TDMI_TRY(TDMI_NEW(spans, page->head.n_values, err));
    TDMI_TRY(check(page, err));
    TDMI_TRY(find_body(page, &places->body, &can_read, err));
    if (!can_read)
        return TDM_OK;
    TDMI_TRY(read_nulls(page, &reader, is_null, err));
    page->is_null = is_null;
    TDMI_TRY(find_spans(page, &reader, spans, err));
    places->spans = tdmi_take(&spans);
    places->n_spans = page->head.n_values;
    return TDM_OK;
}

/* ---- pages of the column ----------------------------------------------------------------- */

/* *can_read false: loading the page says what is wrong, or that nothing is. */
static tdm_status open_page(const struct tdmi_pages *pages, const tdmi_storage_file *bytes,
                            int64_t at, int64_t end, struct stored_page *page, bool *can_read,
                            tdm_error *err)
{
    size_t head_bytes;
    *page = (struct stored_page){.form = &pages->form, .bytes = bytes};
    TDMI_TRY(tdmi_pages_read_head(bytes, at, end, &page->head, &head_bytes, err));
    const struct tdmi_page_head *head = &page->head;
    page->at = at + (int64_t)head_bytes;
    *can_read = head->kind != TDMI_PAGE_INDEX && head->repetition_bytes == 0 &&
                head->n_bytes <= end - page->at && head->n_values > 0;
    return TDM_OK;
}

static bool are_large(const struct tdmi_page_head *head)
{
    return head->n_bytes_uncompressed / head->n_values >= TDMI_LARGE_VALUE_BYTES;
}

/* For the rows of a page the places of the dictionary's values that they are. */
static tdm_status look_up(const struct tdmi_pages *pages, const tdmi_storage_file *bytes,
                          int64_t page, struct tdmi_page_places *places, tdm_error *err)
{
    TDMI_AT_END(tdmi_page_release) struct tdmi_page stand_in = {.n_values = places->n_spans};
    TDMI_AT_END(tdmi_page_release) struct tdmi_page values = {0};
    struct tdmi_page_span *spans = NULL;
    TDMI_TRY(TDMI_NEW(stand_in.values, places->n_spans, err));
    for (int32_t i = 0; i < places->n_spans; i++)
        stand_in.values[i] = (struct tdmi_page_value){(const uint8_t *)&places->spans[i],
                                                      (int32_t)sizeof places->spans[i]};
    TDMI_TRY(tdmi_pages_load(pages, bytes, page, &values, &stand_in, err));
    TDMI_TRY(TDMI_NEW(spans, values.n_values, err));
    for (int32_t i = 0; i < values.n_values; i++) {
        spans[i].n_bytes = -1;
        if (values.values[i].bytes != NULL)
            memcpy(&spans[i], values.values[i].bytes, sizeof spans[i]);
    }
    tdmi_free(places->spans);
    places->spans = spans;
    places->n_spans = values.n_values;
    return TDM_OK;
}

static tdm_status find_by_dictionary(const struct tdmi_pages *pages, const tdmi_storage_file *bytes,
                                     int64_t page, struct tdmi_page_places *places, tdm_error *err)
{
    struct stored_page dictionary;
    bool can_read = false;
    if (pages->first_byte >= pages->offsets[0])
        return TDM_OK; /* loading the page says that there is none */
    TDMI_TRY(
        open_page(pages, bytes, pages->first_byte, pages->offsets[0], &dictionary, &can_read, err));
    const struct tdmi_page_head *head = &dictionary.head;
    if (!can_read || head->kind != TDMI_PAGE_DICTIONARY || !are_large(head) ||
        (head->encoding != PLAIN && head->encoding != PLAIN_DICTIONARY))
        return TDM_OK;
    TDM_TRY(find_plain(&dictionary, places, err), err, "cannot find the values of the dictionary");
    return places->spans == NULL ? TDM_OK : look_up(pages, bytes, page, places, err);
}

static tdm_status find(const struct tdmi_pages *pages, const tdmi_storage_file *bytes, int64_t page,
                       struct tdmi_page_places *places, tdm_error *err)
{
    struct stored_page opened;
    bool can_read = false;
    const int64_t n_rows =
        tdmi_pages_first_row(pages, page + 1) - tdmi_pages_first_row(pages, page);
    if (!pages->have_places)
        return TDM_OK;
    TDMI_TRY(open_page(pages, bytes, pages->offsets[page], pages->offsets[page + 1], &opened,
                       &can_read, err));
    if (!can_read || opened.head.kind == TDMI_PAGE_DICTIONARY || opened.head.n_values != n_rows)
        return TDM_OK;
    if (opened.head.encoding != PLAIN)
        return find_by_dictionary(pages, bytes, page, places, err);
    return are_large(&opened.head) ? find_plain(&opened, places, err) : TDM_OK;
}

tdm_status tdmi_places_find(const struct tdmi_pages *pages, const tdmi_storage_file *bytes,
                            int64_t page, struct tdmi_page_places *places, tdm_error *err)
{
    *places = (struct tdmi_page_places){0};
    tdm_status status = find(pages, bytes, page, places, err);
    if (status != TDM_OK)
        tdmi_places_release(places);
    return tdmi_pages_blame(pages, bytes, page, status, err);
}
