/* Names of columns, and JSON lines; list_csv.c has the other form. */
#include "data/source/list_file.h"

#include "base/text/json.h"
#include "data/source/labels.h"
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
