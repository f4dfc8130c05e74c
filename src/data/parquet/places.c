/*
 * Writers of large values put hundreds of them on a page (pyarrow a thousand, 150 MB of pictures of
 * 224 px), the first of them into a dictionary, and pack all of it by Snappy. What is looked for is
 * little: the nulls, and the length before each value.
 */
#include "data/parquet/places.h"

#include "base/bytes.h"
#include "base/hash/crc32.h"
#include "base/memory.h"
#include "io/arrow/bridge.h"
#include <string.h>

enum { PLAIN = 0, PLAIN_DICTIONARY = 2, CHECK_BYTES = 256 * 1024 };

static tdm_status out_of_memory(const tdmi_storage_file *bytes, tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the pages of '%s'", tdmi_storage_path(bytes));
}

void tdmi_places_release(struct tdmi_page_places *places)
{
    tdmi_free(places->spans);
    tdmi_body_release(&places->body);
    *places = (struct tdmi_page_places){0};
}

int64_t tdmi_places_held_bytes(const struct tdmi_page_places *places)
{
    return places->n_spans * (int64_t)sizeof *places->spans + tdmi_body_held_bytes(&places->body);
}

/* ---- a page whose body lies in the file -------------------------------------------------- */

/* A page in [at, end): its head, and where its body begins. */
struct stored_page {
    const struct tdmi_page_form *form;
    const tdmi_storage_file *bytes;
    struct tdmi_page_head head;
    int64_t at;        /* of the body */
    int64_t at_values; /* in what is unpacked: behind the levels */
    bool *is_null;     /* (n_values) */
};

/* Compares the checksum, a piece at a time. */
static tdm_status check(const struct stored_page *page, tdm_error *err)
{
    uint32_t crc = 0;
    int64_t at = page->at;
    if (!page->head.has_crc)
        return TDM_OK;
    uint8_t *piece = tdmi_alloc(CHECK_BYTES, 1);
    tdm_status status = piece == NULL ? out_of_memory(page->bytes, err) : TDM_OK;
    for (int64_t left = page->head.n_bytes; left > 0 && status == TDM_OK;) {
        size_t n = left < CHECK_BYTES ? (size_t)left : CHECK_BYTES;
        status = tdmi_storage_read(page->bytes, at, piece, n, err);
        crc = tdmi_crc32(crc, piece, n);
        at += (int64_t)n;
        left -= (int64_t)n;
    }
    tdmi_free(piece);
    if (status == TDM_OK && crc != page->head.crc)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the page there is damaged: its checksum is %08x, its head says %08x", crc,
                        page->head.crc);
    return status;
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
        return TDM_FAIL(err, TDM_E_INPUT, "the page there is damaged: its values end early");
    TDM_TRY(tdmi_body_read(reader, at, four, sizeof four, err), err, "cannot read a length");
    *length = (int64_t)tdmi_read_little(four, sizeof four);
    return TDM_OK;
}

/* The nulls, and where the values begin behind the levels of version 1. */
static tdm_status read_nulls(struct stored_page *page, struct tdmi_body_reader *reader,
                             tdm_error *err)
{
    const struct tdmi_page_head *head = &page->head;
    const int max_definition = page->form->max_definition;
    int64_t n_bytes = head->definition_bytes;
    if (head->kind == TDMI_PAGE_DICTIONARY || max_definition == 0)
        return TDM_OK;
    TDM_TRY(tdmi_page_check_levels(head, err), err, "cannot read its levels");
    if (head->kind == TDMI_PAGE_DATA) {
        TDM_TRY(read_length(reader, 0, &n_bytes, err), err, "cannot read its levels");
        page->at_values = 4 + n_bytes;
        if (n_bytes > reader->body->n_bytes - 4)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "the page there is damaged: its levels are longer than it");
    }
    uint8_t *levels = tdmi_alloc((size_t)n_bytes, 1);
    if (levels == NULL)
        return out_of_memory(page->bytes, err);
    tdm_status status =
        head->kind == TDMI_PAGE_DATA
            ? tdmi_body_read(reader, 4, levels, (size_t)n_bytes, err)
            : tdmi_storage_read(page->bytes, page->at, levels, (size_t)n_bytes, err);
    if (status == TDM_OK)
        status = tdmi_page_nulls(levels, (size_t)n_bytes, max_definition, head->n_values,
                                 page->is_null, err);
    tdmi_free(levels);
    return status;
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
            TDM_TRY(read_length(reader, at, &n, err), err, "cannot find its values");
            at += 4;
        }
        if (n > reader->body->n_bytes - at || n > INT32_MAX)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "the page there is damaged: a value is longer than what is left of it");
        spans[i] = (struct tdmi_page_span){at, (int32_t)n};
        at += n;
    }
    return TDM_OK;
}

/* Values that are plain, wherever they are. */
static tdm_status find_plain(struct stored_page *page, struct tdmi_page_places *places,
                             tdm_error *err)
{
    const size_t n_values = (size_t)page->head.n_values;
    struct tdmi_body_reader reader = {0};
    bool can_read = true;
    page->is_null = tdmi_alloc(n_values, sizeof *page->is_null);
    struct tdmi_page_span *spans = tdmi_alloc(n_values, sizeof *spans);
    tdm_status status =
        page->is_null == NULL || spans == NULL ? out_of_memory(page->bytes, err) : check(page, err);
    if (status == TDM_OK)
        status = find_body(page, &places->body, &can_read, err);
    if (status == TDM_OK && can_read) {
        tdmi_body_reader_init(&reader, &places->body, page->bytes);
        reader.goes_onward = true;
        status = read_nulls(page, &reader, err);
        if (status == TDM_OK)
            status = find_spans(page, &reader, spans, err);
        tdmi_body_reader_release(&reader);
    }
    if (status == TDM_OK && can_read) {
        places->spans = spans;
        places->n_spans = page->head.n_values;
    } else {
        tdmi_free(spans);
        tdmi_body_release(&places->body);
    }
    tdmi_free(page->is_null);
    return status;
}

/* ---- pages of the column ----------------------------------------------------------------- */

/* *can_read false: loading the page says what is wrong, or that nothing is. */
static tdm_status open_page(const struct tdmi_pages *pages, const tdmi_storage_file *bytes,
                            int64_t at, int64_t end, struct stored_page *page, bool *can_read,
                            tdm_error *err)
{
    size_t head_bytes;
    *page = (struct stored_page){.form = &pages->form, .bytes = bytes};
    TDM_TRY(tdmi_pages_read_head(bytes, at, end, &page->head, &head_bytes, err), err,
            "cannot find its values");
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
    struct tdmi_page stand_in = {.n_values = places->n_spans}, values = {0};
    struct tdmi_page_span *spans = NULL;
    stand_in.values = tdmi_alloc((size_t)places->n_spans, sizeof *stand_in.values);
    tdm_status status = stand_in.values == NULL ? out_of_memory(bytes, err) : TDM_OK;
    for (int32_t i = 0; i < places->n_spans && status == TDM_OK; i++) {
        stand_in.values[i].bytes = (const uint8_t *)&places->spans[i];
        stand_in.values[i].n_bytes = (int32_t)sizeof places->spans[i];
    }
    if (status == TDM_OK)
        status = tdmi_pages_load_by(pages, bytes, page, &stand_in, &values, err);
    if (status == TDM_OK) {
        spans = tdmi_alloc((size_t)values.n_values, sizeof *spans);
        status = spans == NULL ? out_of_memory(bytes, err) : TDM_OK;
    }
    for (int32_t i = 0; status == TDM_OK && i < values.n_values; i++) {
        spans[i].n_bytes = -1;
        if (values.values[i].bytes != NULL)
            memcpy(&spans[i], values.values[i].bytes, sizeof spans[i]);
    }
    if (status == TDM_OK) {
        tdmi_free(places->spans);
        places->spans = spans;
        places->n_spans = values.n_values;
    }
    tdmi_page_release(&values);
    tdmi_page_release(&stand_in);
    return status;
}

static tdm_status find_by_dictionary(const struct tdmi_pages *pages, const tdmi_storage_file *bytes,
                                     int64_t page, struct tdmi_page_places *places, tdm_error *err)
{
    struct stored_page dictionary;
    bool can_read = false;
    if (pages->first_byte >= pages->offsets[0])
        return TDM_OK; /* loading the page says that there is none */
    TDM_TRY(
        open_page(pages, bytes, pages->first_byte, pages->offsets[0], &dictionary, &can_read, err),
        err, "cannot find the values of the dictionary");
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
    TDM_TRY(open_page(pages, bytes, pages->offsets[page], pages->offsets[page + 1], &opened,
                      &can_read, err),
            err, "cannot find its values");
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
