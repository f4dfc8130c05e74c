/*
 * Pages, read by hand so that one image costs one read of the file.
 *
 *     head, Thrift compact:  fields (delta of id, type), nested structs, ended by 0
 *     body, version 1:       definition levels (length, runs), values; compressed together
 *     body, version 2:       repetition levels, definition levels, values; only these compressed
 *
 * Levels and dictionary indices come in runs: a varint whose lowest bit says packed bits (groups of
 * eight) or one value repeated.
 */
#include "data/parquet/page.h"

#include "base/bytes.h"
#include "base/hash/crc32.h"
#include "base/scope.h"
#include "io/arrow/bridge.h"
#include <string.h>

enum { PLAIN = 0, PLAIN_DICTIONARY = 2, RLE = 3, RLE_DICTIONARY = 8 };

/* ---- the head ---------------------------------------------------------------------------- */

enum { DEPTH = 8, LARGEST_VARINT_BYTES = 10 };
/* Types of Thrift's compact protocol. */
enum { T_STOP, T_TRUE, T_FALSE, T_BYTE, T_I16, T_I32, T_I64, T_DOUBLE, T_BINARY, T_LIST, T_SET };
enum { T_MAP = 11, T_STRUCT = 12 };

/* SHORT: the bytes end first; that is no error, more of them may help. */
enum answer { READ, SHORT, BAD };

struct reader {
    const uint8_t *at, *end;
};

#define READ_OR_RETURN(call)         \
    do {                             \
        enum answer answer = (call); \
        if (answer != READ)          \
            return answer;           \
    } while (0)

static enum answer read_varint(struct reader *reader, uint64_t *value)
{
    *value = 0;
    for (int i = 0; i < LARGEST_VARINT_BYTES; i++) {
        if (reader->at == reader->end)
            return SHORT;
        uint8_t byte = *reader->at++;
        *value |= (uint64_t)(byte & 0x7f) << 7 * i;
        if (!(byte & 0x80))
            return READ;
    }
    return BAD;
}

static enum answer read_i32(struct reader *reader, int type, int32_t *value)
{
    uint64_t zigzag;
    if (type != T_I32)
        return BAD;
    READ_OR_RETURN(read_varint(reader, &zigzag));
    if (zigzag > UINT32_MAX)
        return BAD;
    *value = (int32_t)((uint32_t)(zigzag >> 1) ^ (0u - (uint32_t)(zigzag & 1)));
    return READ;
}

/* The next field of a struct: *type is T_STOP at its end. */
static enum answer read_field(struct reader *reader, int *id, int *type)
{
    if (reader->at == reader->end)
        return SHORT;
    uint8_t byte = *reader->at++;
    *type = byte & 0x0f;
    if (byte == T_STOP)
        return READ;
    if (*type == T_STOP || *type > T_STRUCT)
        return BAD;
    if (byte >> 4 != 0) {
        *id += byte >> 4;
    } else {
        uint64_t zigzag;
        READ_OR_RETURN(read_varint(reader, &zigzag));
        *id = (int)((int64_t)(zigzag >> 1) ^ -(int64_t)(zigzag & 1));
    }
    return *id > 0 && *id <= INT16_MAX ? READ : BAD;
}

static enum answer skip_bytes(struct reader *reader, uint64_t n)
{
    if (n > (uint64_t)(reader->end - reader->at))
        return n > INT32_MAX ? BAD : SHORT;
    reader->at += n;
    return READ;
}

/* Which fields of a struct are read, by their ids; the others are skipped. */
struct fields {
    int32_t *numbers[9];
    const struct fields *structs[9];
    bool *flag; /* field 7 */
};

static enum answer read_struct(struct reader *reader, const struct fields *fields, int depth,
                               unsigned *seen);

/* Lists and maps do not occur in a head, so that they are refused costs nothing. */
static enum answer skip_value(struct reader *reader, int type, int depth)
{
    static const struct fields none;
    unsigned seen;
    uint64_t n;
    switch (type) {
    case T_TRUE:
    case T_FALSE:
        return READ;
    case T_BYTE:
        return skip_bytes(reader, 1);
    case T_I16:
    case T_I32:
    case T_I64:
        return read_varint(reader, &n);
    case T_DOUBLE:
        return skip_bytes(reader, 8);
    case T_BINARY:
        READ_OR_RETURN(read_varint(reader, &n));
        return skip_bytes(reader, n);
    case T_STRUCT:
        return read_struct(reader, &none, depth + 1, &seen);
    default:
        return BAD;
    }
}

/* Bits of *seen are set for the ids of fields that were there. */
static enum answer read_struct(struct reader *reader, const struct fields *fields, int depth,
                               unsigned *seen)
{
    int id = 0, type;
    unsigned seen_below;
    *seen = 0;
    if (depth > DEPTH)
        return BAD;
    for (;;) {
        READ_OR_RETURN(read_field(reader, &id, &type));
        if (type == T_STOP)
            return READ;
        const int known = id <= 8 ? id : 0; /* 0 is no id */
        *seen |= 1u << known;
        if (fields->numbers[known] != NULL)
            READ_OR_RETURN(read_i32(reader, type, fields->numbers[known]));
        else if (fields->structs[known] != NULL && type == T_STRUCT)
            READ_OR_RETURN(read_struct(reader, fields->structs[known], depth + 1, &seen_below));
        else if (fields->flag != NULL && id == 7 && (type == T_TRUE || type == T_FALSE))
            *fields->flag = type == T_TRUE;
        else
            READ_OR_RETURN(skip_value(reader, type, depth));
    }
}

static enum answer read_head(struct reader *reader, struct tdmi_page_head *head, unsigned *seen)
{
    int32_t kind = -1, crc = 0;
    const struct fields data = {
        .numbers = {NULL, &head->n_values, &head->encoding, &head->level_encoding}};
    const struct fields dictionary = {.numbers = {NULL, &head->n_values, &head->encoding}};
    const struct fields second = {.numbers = {NULL, &head->n_values, NULL, NULL, &head->encoding,
                                              &head->definition_bytes, &head->repetition_bytes},
                                  .flag = &head->is_compressed};
    const struct fields all = {
        .numbers = {NULL, &kind, &head->n_bytes_uncompressed, &head->n_bytes, &crc},
        .structs = {[5] = &data, [7] = &dictionary, [8] = &second}};
    READ_OR_RETURN(read_struct(reader, &all, 0, seen));
    head->has_crc = *seen & 1u << 4;
    head->crc = (uint32_t)crc;
    if (kind < TDMI_PAGE_DATA || kind > TDMI_PAGE_DATA_V2)
        return BAD;
    head->kind = (enum tdmi_page_kind)kind;
    return READ;
}

tdm_status tdmi_page_head_read(const void *bytes, size_t n_bytes, struct tdmi_page_head *head,
                               size_t *head_bytes, tdm_error *err)
{
    static const unsigned own_struct[] = {1u << 5, 0, 1u << 7, 1u << 8};
    struct reader reader = {bytes, (const uint8_t *)bytes + n_bytes};
    unsigned seen = 0;
    *head = (struct tdmi_page_head){.n_values = -1, .level_encoding = RLE, .is_compressed = true};
    *head_bytes = 0;
    enum answer answer = read_head(&reader, head, &seen);
    if (answer == SHORT)
        return TDM_OK;
    if (answer == BAD)
        return TDM_FAIL(err, TDM_E_INPUT, "what stands there is no head of a page");
    unsigned required = 1u << 1 | 1u << 2 | 1u << 3 | own_struct[head->kind];
    bool has_values = head->kind != TDMI_PAGE_INDEX;
    if ((seen & required) != required || head->n_bytes < 0 || head->n_bytes_uncompressed < 0 ||
        (has_values && head->n_values < 0) || head->definition_bytes < 0 ||
        head->repetition_bytes < 0 ||
        (int64_t)head->definition_bytes + head->repetition_bytes > head->n_bytes ||
        (int64_t)head->definition_bytes + head->repetition_bytes > head->n_bytes_uncompressed)
        return TDM_FAIL(
            err, TDM_E_INPUT,
            "the head of the page there contradicts itself: %d bytes (%d uncompressed), "
            "%d values",
            head->n_bytes, head->n_bytes_uncompressed, head->n_values);
    *head_bytes = (size_t)(reader.at - (const uint8_t *)bytes);
    return TDM_OK;
}

tdm_status tdmi_page_compare(const struct tdmi_page_head *head, uint32_t crc, tdm_error *err)
{
    if (head->has_crc && crc != head->crc)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the page there is damaged: its checksum is %08x, its head says %08x", crc,
                        head->crc);
    return TDM_OK;
}

tdm_status tdmi_page_check(const struct tdmi_page_head *head, const void *body, tdm_error *err)
{
    uint32_t crc = head->has_crc ? tdmi_crc32(0, body, (size_t)head->n_bytes) : 0;
    return tdmi_page_compare(head, crc, err);
}

tdm_status tdmi_page_damaged(const char *what, tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_INPUT, "the page there is damaged: %s", what);
}

/* ---- runs -------------------------------------------------------------------------------- */

/* n numbers of `bits` bits each; a consumer that keeps one run at a time. */
struct runs {
    struct reader reader;
    int bits;
    uint64_t n_left; /* of the run */
    bool is_packed;
    uint32_t repeated; /* of a run of one value */
    unsigned bit;      /* within *reader.at, of packed ones */
};

static bool next_run(struct runs *runs)
{
    uint64_t head;
    if (runs->bit > 0) { /* padding of the run before; whole groups of eight end on a byte */
        runs->reader.at++;
        runs->bit = 0;
    }
    if (read_varint(&runs->reader, &head) != READ || head >> 1 == 0 || head >> 1 > INT32_MAX)
        return false;
    runs->is_packed = head & 1;
    runs->n_left = (head >> 1) * (runs->is_packed ? 8 : 1);
    if (runs->is_packed)
        return true;
    runs->repeated = 0;
    for (int byte = 0; byte < (runs->bits + 7) / 8; byte++) {
        if (runs->reader.at == runs->reader.end)
            return false;
        runs->repeated |= (uint32_t)*runs->reader.at++ << 8 * byte;
    }
    return true;
}

static bool next_number(struct runs *runs, uint32_t *number)
{
    if (runs->n_left == 0 && !next_run(runs))
        return false;
    runs->n_left--;
    if (!runs->is_packed) {
        *number = runs->repeated;
        return true;
    }
    *number = 0;
    for (int b = 0; b < runs->bits; b++) {
        if (runs->reader.at == runs->reader.end)
            return false;
        *number |= (uint32_t)(*runs->reader.at >> runs->bit & 1) << b;
        if (++runs->bit == 8) {
            runs->bit = 0;
            runs->reader.at++;
        }
    }
    return true;
}

static int bits_for(int largest)
{
    int bits = 0;
    while (largest >> bits != 0)
        bits++;
    return bits;
}

/* ---- values ------------------------------------------------------------------------------ */

/* Writers without nulls put there what they like: parquet-mr, and so Spark, says BIT_PACKED. */
tdm_status tdmi_page_check_levels(const struct tdmi_page_head *head, tdm_error *err)
{
    if (head->kind == TDMI_PAGE_DATA && head->level_encoding != RLE)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the levels of the page there have encoding %d; %d (RLE) is read here",
                        head->level_encoding, RLE);
    return TDM_OK;
}

tdm_status tdmi_page_nulls(const uint8_t *levels, size_t n_bytes, int max_definition,
                           int32_t n_values, bool *is_null, tdm_error *err)
{
    struct runs runs = {.reader = {levels, levels + n_bytes}, .bits = bits_for(max_definition)};
    for (int32_t i = 0; i < n_values; i++) {
        uint32_t level;
        if (!next_number(&runs, &level) || level > (uint32_t)max_definition)
            return tdmi_page_damaged("its levels end early or are too high", err);
        is_null[i] = level < (uint32_t)max_definition;
    }
    return TDM_OK;
}

/* Marks the nulls: their values get bytes NULL and n_bytes -1. */
static tdm_status read_levels(const uint8_t *bytes, size_t n_bytes,
                              const struct tdmi_page_form *form, struct tdmi_page *page,
                              tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) bool *is_null = NULL;
    TDMI_TRY(TDMI_NEW(is_null, page->n_values, err));
    TDMI_TRY(tdmi_page_nulls(bytes, n_bytes, form->max_definition, page->n_values, is_null, err));
    for (int32_t i = 0; i < page->n_values; i++)
        page->values[i].n_bytes = is_null[i] ? -1 : 0;
    return TDM_OK;
}

static tdm_status read_plain(struct reader reader, const struct tdmi_page_form *form,
                             struct tdmi_page *page, tdm_error *err)
{
    for (int32_t i = 0; i < page->n_values; i++) {
        if (page->values[i].n_bytes < 0)
            continue;
        uint64_t n = (uint64_t)form->fixed_bytes, left = (uint64_t)(reader.end - reader.at);
        if (form->fixed_bytes == 0) {
            if (left < 4)
                return tdmi_page_damaged("its values end early", err);
            n = tdmi_read_little(reader.at, 4);
            reader.at += 4;
            left -= 4;
        }
        if (n > left || n > INT32_MAX)
            return tdmi_page_damaged("a value is longer than what is left of it", err);
        page->values[i] = (struct tdmi_page_value){reader.at, (int32_t)n};
        reader.at += n;
    }
    return TDM_OK;
}

static tdm_status read_indices(struct reader reader, const struct tdmi_page *dictionary,
                               struct tdmi_page *page, tdm_error *err)
{
    if (dictionary == NULL)
        return tdmi_page_damaged("it names values of a dictionary, and there is none", err);
    if (reader.at == reader.end) { /* every value is null */
        for (int32_t i = 0; i < page->n_values; i++)
            if (page->values[i].n_bytes >= 0)
                return tdmi_page_damaged("its values end early", err);
        return TDM_OK;
    }
    struct runs runs = {.bits = *reader.at++};
    runs.reader = reader;
    if (runs.bits > 32)
        return tdmi_page_damaged("its indices are too wide", err);
    for (int32_t i = 0; i < page->n_values; i++) {
        uint32_t index;
        if (page->values[i].n_bytes < 0)
            continue;
        if (!next_number(&runs, &index) || index >= (uint32_t)dictionary->n_values)
            return tdmi_page_damaged("its indices end early or leave the dictionary", err);
        page->values[i] = dictionary->values[index];
    }
    return TDM_OK;
}

static tdm_status read_values(const struct tdmi_page_head *head, const struct tdmi_page_form *form,
                              struct reader reader, const struct tdmi_page *dictionary,
                              struct tdmi_page *page, tdm_error *err)
{
    bool is_dictionary_page = head->kind == TDMI_PAGE_DICTIONARY;
    if (head->encoding == PLAIN || (is_dictionary_page && head->encoding == PLAIN_DICTIONARY))
        TDMI_TRY(read_plain(reader, form, page, err));
    else if (head->encoding == PLAIN_DICTIONARY || head->encoding == RLE_DICTIONARY)
        TDMI_TRY(read_indices(reader, dictionary, page, err));
    else
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the page there has encoding %d, which is not read singly", head->encoding);
    for (int32_t i = 0; i < page->n_values; i++)
        if (page->values[i].n_bytes < 0)
            page->values[i] = (struct tdmi_page_value){NULL, 0};
    return TDM_OK;
}

/* ---- the body ---------------------------------------------------------------------------- */

/* Replaces the compressed bytes of reader by uncompressed ones that page owns. */
static tdm_status decompress(int codec, int64_t uncompressed_bytes, struct reader *reader,
                             struct tdmi_page *page, tdm_error *err)
{
    size_t n = (size_t)uncompressed_bytes;
    if (n == 0) {
        reader->end = reader->at;
        return TDM_OK;
    }
    TDMI_TRY(TDMI_NEW(page->uncompressed, n, err));
    page->held_bytes += uncompressed_bytes;
    TDM_TRY(tdmi_arrow_decompress(codec, reader->at, (size_t)(reader->end - reader->at),
                                  page->uncompressed, n, err),
            err, "the page there is damaged");
    *reader = (struct reader){page->uncompressed, page->uncompressed + n};
    return TDM_OK;
}

/* Version 1: levels, with a length before them, lie in the compressed part. */
static tdm_status decode_first(const struct tdmi_page_head *head, const struct tdmi_page_form *form,
                               struct reader reader, const struct tdmi_page *dictionary,
                               struct tdmi_page *page, tdm_error *err)
{
    if (form->codec != 0)
        TDMI_TRY(decompress(form->codec, head->n_bytes_uncompressed, &reader, page, err));
    if (form->max_definition > 0 && head->kind == TDMI_PAGE_DATA) {
        TDMI_TRY(tdmi_page_check_levels(head, err));
        size_t left = (size_t)(reader.end - reader.at);
        if (left < 4)
            return tdmi_page_damaged("its levels end early", err);
        const size_t n = tdmi_read_little(reader.at, 4);
        if (n > left - 4)
            return tdmi_page_damaged("its levels are longer than it", err);
        TDMI_TRY(read_levels(reader.at + 4, n, form, page, err));
        reader.at += 4 + n;
    }
    return read_values(head, form, reader, dictionary, page, err);
}

static tdm_status decode_second(const struct tdmi_page_head *head,
                                const struct tdmi_page_form *form, struct reader reader,
                                const struct tdmi_page *dictionary, struct tdmi_page *page,
                                tdm_error *err)
{
    if (head->repetition_bytes > 0)
        return tdmi_page_damaged("it has repeated values, its column has none", err);
    size_t level_bytes = (size_t)head->definition_bytes;
    if (form->max_definition > 0)
        TDMI_TRY(read_levels(reader.at, level_bytes, form, page, err));
    reader.at += level_bytes;
    if (form->codec != 0 && head->is_compressed)
        TDMI_TRY(decompress(form->codec, head->n_bytes_uncompressed - head->definition_bytes,
                            &reader, page, err));
    return read_values(head, form, reader, dictionary, page, err);
}

/* Memory that n values need. Nulls and dictionary indices may take almost no bytes in the file, so
 * the number of values that a page claims is bounded by this. */
enum { LARGEST_PAGE_VALUES = 1 << 24 };

tdm_status tdmi_page_decode(const struct tdmi_page_head *head, const struct tdmi_page_form *form,
                            uint8_t *owned, size_t owned_bytes, const uint8_t *body,
                            const struct tdmi_page *dictionary, struct tdmi_page *page,
                            tdm_error *err)
{
    *page = (struct tdmi_page){.owned = owned, .held_bytes = (int64_t)owned_bytes};
    if (head->kind == TDMI_PAGE_INDEX || head->n_values < 0)
        return tdmi_page_damaged("it holds no values", err);
    if (head->n_values > LARGEST_PAGE_VALUES)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the page there is said to hold %d values; at most %d are read",
                        head->n_values, LARGEST_PAGE_VALUES);
    TDMI_TRY(TDMI_NEW(page->values, head->n_values, err));
    page->n_values = head->n_values;
    page->held_bytes += (int64_t)head->n_values * (int64_t)sizeof *page->values;
    struct reader reader = {body, body + head->n_bytes};
    TDMI_TRY((head->kind == TDMI_PAGE_DATA_V2 ? decode_second : decode_first)(
        head, form, reader, dictionary, page, err));
    if (page->uncompressed != NULL) { /* no value lies in what was compressed */
        tdmi_free(page->owned);
        page->owned = NULL;
        page->held_bytes -= (int64_t)owned_bytes;
    }
    return TDM_OK;
}

void tdmi_page_release(struct tdmi_page *page)
{
    tdmi_free(page->values);
    tdmi_free(page->uncompressed);
    tdmi_free(page->owned);
    *page = (struct tdmi_page){0};
}
