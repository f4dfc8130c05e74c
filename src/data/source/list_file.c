/*
 * CSV after RFC 4180: fields between commas, quotes around a field that holds commas, line feeds or
 * (doubled) quotes, lines that end in CR LF or LF. A first line with a name for the column of paths
 * names the columns, in any order and beside others; without one they are path, label, part.
 */
#include "data/source/list_file.h"

#include "base/text/json.h"
#include "data/source/listing.h"
#include "tandem/log.h"
#include <strings.h>

enum tdmi_list_field tdmi_list_field_named(const char *name)
{
    static const struct {
        const char *name;
        enum tdmi_list_field field;
    } names[] = {
        {"path", TDMI_LIST_PATH},     {"file", TDMI_LIST_PATH},  {"file_name", TDMI_LIST_PATH},
        {"filename", TDMI_LIST_PATH}, {"image", TDMI_LIST_PATH}, {"label", TDMI_LIST_LABEL},
        {"class", TDMI_LIST_LABEL},   {"split", TDMI_LIST_PART}, {"part", TDMI_LIST_PART}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcasecmp(name, names[i].name) == 0)
            return names[i].field;
    return TDMI_LIST_FIELDS;
}

bool tdmi_list_part(const char *name, enum tdmi_part *part)
{
    *part = tdmi_part_named(name);
    return *part != TDMI_PART_NONE || name[0] == '\0';
}

/* ---- JSON lines ------------------------------------------------------------------------------ */

/* The first member that is called like the field; NULL: none, or null. */
static const tdm_json_value *field_of(const tdm_json_value *object, enum tdmi_list_field field)
{
    for (size_t i = 0; i < tdm_json_count(object); i++)
        if (tdmi_list_field_named(tdm_json_key_at(object, i)) == field &&
            tdm_json_kind_of(tdm_json_at(object, i)) != TDM_JSON_NULL)
            return tdm_json_at(object, i);
    return NULL;
}

struct rows {
    const char *name;
    tdmi_list_sink *sink;
    void *self;
    tdmi_text label;
};

static tdm_status take_object(void *self, int64_t line, const tdm_json_value *object,
                              tdm_error *err)
{
    struct rows *rows = self;
    const char *name = rows->name;
    tdmi_text *label = &rows->label;
    struct tdmi_list_row row = {.line = line};
    if (tdm_json_kind_of(object) != TDM_JSON_OBJECT)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "line %lld of '%s' is no JSON object; {\"path\": …, \"label\": …} is "
                        "expected",
                        (long long)line, name);
    row.path = tdm_json_as_string(field_of(object, TDMI_LIST_PATH), "");
    if (row.path[0] == '\0')
        return TDM_FAIL(err, TDM_E_INPUT, "line %lld of '%s' has no \"path\"", (long long)line,
                        name);
    const tdm_json_value *value = field_of(object, TDMI_LIST_LABEL);
    tdmi_text_clear(label);
    bool is_empty = value == NULL || (tdm_json_kind_of(value) == TDM_JSON_STRING &&
                                      tdm_json_as_string(value, "")[0] == '\0');
    if (!is_empty && !tdmi_labels_word(value, label))
        return TDM_FAIL(err, label->is_broken ? TDM_E_MEMORY : TDM_E_INPUT,
                        "the \"label\" in line %lld of '%s' is neither a string nor a whole number",
                        (long long)line, name);
    row.label = tdmi_text_string(label);
    const tdm_json_value *part = field_of(object, TDMI_LIST_PART);
    if (!tdmi_list_part(tdm_json_as_string(part, part == NULL ? "" : "?"), &row.part))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the \"split\" in line %lld of '%s' is '%.40s'; train, val or test is "
                        "expected",
                        (long long)line, name, tdm_json_as_string(part, "no string"));
    return rows->sink(rows->self, &row, err);
}

tdm_status tdmi_list_jsonl(const char *name, const char *bytes, size_t n_bytes,
                           tdmi_list_sink *sink, void *self, tdm_error *err)
{
    struct rows rows = {.name = name, .sink = sink, .self = self};
    tdm_status status = tdmi_json_lines(name, bytes, n_bytes, take_object, &rows, err);
    tdmi_text_release(&rows.label);
    return status;
}

static bool is_blank(const char *bytes, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++)
        if (strchr(" \t\r", bytes[i]) == NULL || bytes[i] == '\0')
            return false;
    return true;
}

tdm_status tdmi_json_lines(const char *name, const char *bytes, size_t n_bytes,
                           tdmi_json_line *take, void *self, tdm_error *err)
{
    size_t at = n_bytes >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    for (int64_t line = 1; at < n_bytes; line++) {
        TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
        const char *end = memchr(bytes + at, '\n', n_bytes - at);
        size_t length = end == NULL ? n_bytes - at : (size_t)(end - (bytes + at));
        if (!is_blank(bytes + at, length)) {
            TDM_TRY(tdm_json_read(bytes + at, length, name, &document, err), err,
                    "line %lld of '%s' cannot be read as JSON", (long long)line, name);
            TDMI_TRY(take(self, line, tdm_json_root(document), err));
        }
        at += length + 1;
    }
    return TDM_OK;
}

/* ---- CSV ------------------------------------------------------------------------------------- */

enum { MOST_FIELDS = 256 };

struct csv {
    const char *name, *at, *end;
    int64_t line;   /* of what comes next */
    tdmi_text text; /* the fields of the current row, each with a zero byte after it */
    size_t fields[MOST_FIELDS];
    int n_fields, n_columns;       /* of the header; 0: there is none */
    int columns[TDMI_LIST_FIELDS]; /* index of the column; -1: there is none */
    int64_t row_line;
};

/* The inside of quotes; at stands after the first one, and ends after the last one. */
static tdm_status take_quoted(struct csv *csv, tdm_error *err)
{
    for (;;) {
        const char *quote = memchr(csv->at, '"', (size_t)(csv->end - csv->at));
        if (quote == NULL)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "a quote in the row at line %lld of '%s' is never closed",
                            (long long)csv->row_line, csv->name);
        for (const char *at = csv->at; at < quote; at++)
            csv->line += *at == '\n';
        tdmi_text_add(&csv->text, csv->at, (size_t)(quote - csv->at));
        csv->at = quote + 1;
        if (csv->at == csv->end || *csv->at != '"')
            break;
        tdmi_text_add(&csv->text, "\"", 1);
        csv->at++;
    }
    bool is_end = csv->at == csv->end || strchr(",\r\n", *csv->at) != NULL;
    if (!is_end || (csv->at < csv->end && *csv->at == '\0'))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "line %lld of '%s' goes on after a closing quote; quotes inside a field "
                        "are doubled",
                        (long long)csv->line, csv->name);
    return TDM_OK;
}

static tdm_status take_plain(struct csv *csv, tdm_error *err)
{
    const char *first = csv->at;
    while (csv->at < csv->end && *csv->at != ',' && *csv->at != '\n' && *csv->at != '\r')
        csv->at++;
    if (memchr(first, '"', (size_t)(csv->at - first)) != NULL)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "line %lld of '%s' has a quote inside a field that is not quoted",
                        (long long)csv->line, csv->name);
    tdmi_text_add(&csv->text, first, (size_t)(csv->at - first));
    return TDM_OK;
}

/* The fields of one row; at ends at the next one. */
static tdm_status take_row(struct csv *csv, tdm_error *err)
{
    tdmi_text_clear(&csv->text);
    csv->n_fields = 0;
    csv->row_line = csv->line;
    for (bool is_last = false; !is_last;) {
        if (csv->n_fields == MOST_FIELDS)
            return TDM_FAIL(err, TDM_E_INPUT, "line %lld of '%s' has more than %d fields",
                            (long long)csv->row_line, csv->name, MOST_FIELDS);
        csv->fields[csv->n_fields++] = csv->text.length_bytes;
        const bool is_quoted = csv->at < csv->end && *csv->at == '"';
        csv->at += is_quoted;
        TDMI_TRY(is_quoted ? take_quoted(csv, err) : take_plain(csv, err));
        tdmi_text_add(&csv->text, "", 1);
        is_last = csv->at == csv->end || *csv->at != ',';
        csv->at += csv->at < csv->end && *csv->at == ',';
    }
    if (csv->at < csv->end && *csv->at == '\r')
        csv->at++;
    if (csv->at < csv->end && *csv->at == '\n')
        csv->at++;
    csv->line++;
    return tdmi_text_status(&csv->text, err);
}

static const char *field(const struct csv *csv, int index)
{
    return index < 0 || index >= csv->n_fields ? "" : csv->text.bytes + csv->fields[index];
}

/* Does the first line name the columns? One that seems to, but has no known name for the paths, is
 * read as a row with a warning. */
static bool take_header(struct csv *csv)
{
    int columns[TDMI_LIST_FIELDS + 1] = {-1, -1, -1};
    for (int i = csv->n_fields - 1; i >= 0; i--)
        columns[tdmi_list_field_named(field(csv, i))] = i;
    if (columns[TDMI_LIST_PATH] >= 0) {
        memcpy(csv->columns, columns, sizeof csv->columns);
        csv->n_columns = csv->n_fields;
    } else if (columns[TDMI_LIST_LABEL] >= 0 || columns[TDMI_LIST_PART] >= 0 ||
               strpbrk(field(csv, 0), "./") == NULL) {
        tdm_log(TDM_LOG_WARNING,
                "line %lld of '%s' is read as an image called '%.100s': a line that names the "
                "columns has path, file, file_name, filename or image in it",
                (long long)csv->row_line, csv->name, field(csv, 0));
    }
    return csv->n_columns > 0;
}

static tdm_status add_row(const struct csv *csv, tdmi_list_sink *sink, void *self, tdm_error *err)
{
    struct tdmi_list_row row = {.line = csv->row_line,
                                .path = field(csv, csv->columns[TDMI_LIST_PATH]),
                                .label = field(csv, csv->columns[TDMI_LIST_LABEL])};
    const char *part = field(csv, csv->columns[TDMI_LIST_PART]);
    size_t length = csv->text.length_bytes - (size_t)csv->n_fields;
    for (int i = 0; i < csv->n_fields; i++)
        length -= strlen(field(csv, i));
    if (length != 0)
        return TDM_FAIL(err, TDM_E_INPUT, "line %lld of '%s' holds a zero byte: it is no text",
                        (long long)row.line, csv->name);
    const int n_expected = csv->n_columns > 0 ? csv->n_columns : (int)TDMI_LIST_FIELDS;
    if (csv->n_columns > 0 ? csv->n_fields != n_expected : csv->n_fields > n_expected)
        return TDM_FAIL(err, TDM_E_INPUT, "line %lld of '%s' has %d fields; %d are expected (%s)",
                        (long long)row.line, csv->name, csv->n_fields, n_expected,
                        csv->n_columns > 0 ? "as the first line names"
                                           : "path, label, part, as no line names the columns");
    if (row.path[0] == '\0')
        return TDM_FAIL(err, TDM_E_INPUT, "line %lld of '%s' has no path", (long long)row.line,
                        csv->name);
    if (!tdmi_list_part(part, &row.part))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "line %lld of '%s' has '%.40s' for the part; train, val or test is "
                        "expected",
                        (long long)row.line, csv->name, part);
    return sink(self, &row, err);
}

static tdm_status read_rows(struct csv *csv, tdmi_list_sink *sink, void *self, tdm_error *err)
{
    for (bool is_first = true; csv->at < csv->end;) {
        TDM_TRY(take_row(csv, err), err, "cannot read '%s'", csv->name);
        if (csv->n_fields == 1 && csv->text.length_bytes == 1)
            continue; /* an empty line */
        if (!is_first || !take_header(csv))
            TDMI_TRY(add_row(csv, sink, self, err));
        is_first = false;
    }
    return TDM_OK;
}

tdm_status tdmi_list_csv(const char *name, const char *bytes, size_t n_bytes, tdmi_list_sink *sink,
                         void *self, tdm_error *err)
{
    struct csv csv = {.name = name,
                      .at = bytes,
                      .end = bytes + n_bytes,
                      .line = 1,
                      .columns = {TDMI_LIST_PATH, TDMI_LIST_LABEL, TDMI_LIST_PART}};
    if (n_bytes >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
        csv.at += 3;
    tdm_status status = read_rows(&csv, sink, self, err);
    tdmi_text_release(&csv.text);
    return status;
}
