/* Names and types only: what is within structs, arrays and maps stands in the Parquet files. */
#include "data/delta/state.h"

#include "base/text/json.h"
#include "base/text/text.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- columns ------------------------------------------------------------------------------- */

/* "long", or the kind of a nested type; NULL for neither. */
static const char *type_of(const tdm_json_value *type)
{
    if (tdm_json_kind_of(type) == TDM_JSON_OBJECT)
        type = tdm_json_member(type, "type");
    return tdm_json_as_string(type, NULL);
}

static tdm_status read_field(struct tdmi_delta_table *table, const tdm_json_value *value, int index,
                             tdm_error *err)
{
    struct tdmi_delta_field *field = &table->fields[index];
    const char *name = tdm_json_as_string(tdm_json_member(value, "name"), NULL);
    const char *type = type_of(tdm_json_member(value, "type"));
    if (name == NULL || name[0] == '\0' || type == NULL)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the schema of '%s' has no %s for its column number %d; every column has a "
                        "name and a type",
                        table->path, name == NULL || name[0] == '\0' ? "name" : "type", index + 1);
    field->name = tdmi_arena_copy(&table->arena, name);
    field->type = tdmi_arena_copy(&table->arena, type);
    field->is_nullable = tdm_json_as_bool(tdm_json_member(value, "nullable"), true);
    TDMI_CHECK_MEMORY(field->name != NULL && field->type != NULL, err);
    return TDM_OK;
}

static tdm_status check_names(struct tdmi_delta_table *table, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) const char **sorted = NULL;
    TDMI_TRY(TDMI_NEW(sorted, table->n_fields, err));
    for (int i = 0; i < table->n_fields; i++)
        sorted[i] = table->fields[i].name;
    qsort(sorted, (size_t)table->n_fields, sizeof *sorted, tdmi_compare_names);
    for (int i = 1; i < table->n_fields; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            return TDM_FAIL(err, TDM_E_INPUT, "the schema of '%s' has two columns '%.100s'",
                            table->path, sorted[i]);
    return TDM_OK;
}

static tdm_status read_fields(struct tdmi_delta_table *table, const tdm_json_value *fields,
                              tdm_error *err)
{
    size_t n = tdm_json_count(fields);
    if (tdm_json_kind_of(fields) != TDM_JSON_ARRAY || n == 0 || n > INT_MAX)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the schema of '%s' has no columns: \"fields\" is an array of at least one",
                        table->path);
    table->fields = tdmi_arena_alloc(&table->arena, n, sizeof *table->fields);
    TDMI_CHECK_MEMORY(table->fields, err);
    table->n_fields = (int)n;
    for (int i = 0; i < table->n_fields; i++)
        TDMI_TRY(read_field(table, tdm_json_at(fields, (size_t)i), i, err));
    return check_names(table, err);
}

tdm_status tdmi_delta_schema_read(struct tdmi_delta_table *table, const char *text, tdm_error *err)
{
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    TDM_TRY(tdm_json_read(text, strlen(text), "the schemaString", &document, err), err,
            "cannot read the schema of '%s'", table->path);
    return read_fields(table, tdm_json_member(tdm_json_root(document), "fields"), err);
}

int tdmi_delta_schema_find(const struct tdmi_delta_table *table, const char *name)
{
    for (int i = 0; i < table->n_fields; i++)
        if (strcmp(table->fields[i].name, name) == 0)
            return i;
    return -1;
}

/* ---- values -------------------------------------------------------------------------------- */

/* Match as many digits as the pattern has 0s and every other character literally. *rest: the
 * remaining text. */
static bool begins_with_digits(const char *text, const char *pattern, const char **rest)
{
    for (; *pattern != '\0'; pattern++, text++)
        if (*pattern == '0' ? *text < '0' || *text > '9' : *text != *pattern)
            return false;
    *rest = text;
    return true;
}

/* "2021-09-08"; years of more digits and before Christ exist in the format and are no labels. */
static bool is_date(const char *text)
{
    const char *rest;
    return begins_with_digits(text, "0000-00-00", &rest) && *rest == '\0';
}

/* "2021-09-08 11:11:11", with a fraction, and with T and a zone in what newer writers write. */
static bool is_time(const char *text)
{
    const char *rest, *end;
    if (!begins_with_digits(text, "0000-00-00 00:00:00", &rest) &&
        !begins_with_digits(text, "0000-00-00T00:00:00", &rest))
        return is_date(text);
    if (*rest == '.') {
        size_t n_digits = strspn(rest + 1, "0123456789");
        if (n_digits == 0)
            return false;
        rest += 1 + n_digits;
    }
    return *rest == '\0' || strcmp(rest, "Z") == 0 ||
           ((*rest == '+' || *rest == '-') && begins_with_digits(rest + 1, "00:00", &end) &&
            *end == '\0');
}

static bool is_number(const char *text)
{
    double value;
    return (strchr(" \t\n\v\f\r", text[0]) == NULL && tdmi_number_read(text, &value)) ||
           strcmp(text, "NaN") == 0 || strcmp(text, "Infinity") == 0 ||
           strcmp(text, "-Infinity") == 0;
}

static bool is_truth(const char *text)
{
    return strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
}

static bool is_any(const char *text)
{
    (void)text;
    return true;
}

static bool is_integer(const char *text, int n_bits)
{
    char *end;
    if (strchr("0123456789-+", text[0]) == NULL)
        return false;
    errno = 0;
    long long value = strtoll(text, &end, 10), largest = INT64_MAX >> (64 - n_bits);
    return errno == 0 && *end == '\0' && end != text && value >= -largest - 1 && value <= largest;
}

static const struct {
    const char *name; /* ends in "(": more may follow */
    bool (*fits)(const char *text);
    int n_bits; /* of an integer; else 0 */
} types[] = {
    {"string", is_any, 0},      {"long", NULL, 64},
    {"integer", NULL, 32},      {"short", NULL, 16},
    {"byte", NULL, 8},          {"float", is_number, 0},
    {"double", is_number, 0},   {"decimal", is_number, 0},
    {"decimal(", is_number, 0}, {"boolean", is_truth, 0},
    {"binary", is_any, 0},      {"date", is_date, 0},
    {"timestamp", is_time, 0},  {"timestamp_ntz", is_time, 0},
};
enum { N_TYPES = sizeof types / sizeof types[0] };

static int find_type(const char *name)
{
    for (int i = 0; i < N_TYPES; i++) {
        size_t length = strlen(types[i].name);
        if (types[i].name[length - 1] == '(' ? strncmp(name, types[i].name, length) == 0
                                             : strcmp(name, types[i].name) == 0)
            return i;
    }
    return -1;
}

bool tdmi_delta_type_divides(const char *type)
{
    return find_type(type) >= 0;
}

bool tdmi_delta_value_fits(const char *type, const char *text)
{
    int i = find_type(type);
    return i >= 0 &&
           (types[i].n_bits > 0 ? is_integer(text, types[i].n_bits) : types[i].fits(text));
}
