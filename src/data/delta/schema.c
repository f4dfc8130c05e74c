/* Names and types only: what is within structs, arrays and maps is told by the Parquet files. */
#include "data/delta/state.h"

#include "base/text/text.h"
#include "tandem/json.h"
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
    if (field->name == NULL || field->type == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the schema of '%s'", table->path);
    return TDM_OK;
}

static int by_name(const void *left, const void *right)
{
    const struct tdmi_delta_field *const *a = left, *const *b = right;
    return strcmp((*a)->name, (*b)->name);
}

static tdm_status check_names(struct tdmi_delta_table *table, tdm_error *err)
{
    const struct tdmi_delta_field **sorted = tdmi_arena_alloc(
        &table->arena, (size_t)table->n_fields, sizeof(const struct tdmi_delta_field *));
    if (sorted == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the schema of '%s'", table->path);
    for (int i = 0; i < table->n_fields; i++)
        sorted[i] = &table->fields[i];
    qsort(sorted, (size_t)table->n_fields, sizeof *sorted, by_name);
    for (int i = 1; i < table->n_fields; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            return TDM_FAIL(err, TDM_E_INPUT, "the schema of '%s' has two columns '%.100s'",
                            table->path, sorted[i]->name);
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
    if (table->fields == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the schema of '%s'", table->path);
    table->n_fields = (int)n;
    tdm_status status = TDM_OK;
    for (int i = 0; i < table->n_fields && status == TDM_OK; i++)
        status = read_field(table, tdm_json_at(fields, (size_t)i), i, err);
    return status == TDM_OK ? check_names(table, err) : status;
}

tdm_status tdmi_delta_schema_read(struct tdmi_delta_table *table, const char *text, tdm_error *err)
{
    tdm_json_document *document = NULL;
    TDM_TRY(tdm_json_read(text, strlen(text), "the schemaString", &document, err), err,
            "cannot read the schema of '%s'", table->path);
    tdm_status status = read_fields(table, tdm_json_member(tdm_json_root(document), "fields"), err);
    tdm_json_document_free(document);
    return status;
}

int tdmi_delta_schema_find(const struct tdmi_delta_table *table, const char *name)
{
    for (int i = 0; i < table->n_fields; i++)
        if (strcmp(table->fields[i].name, name) == 0)
            return i;
    return -1;
}

/* ---- values -------------------------------------------------------------------------------- */

static bool is_integer(const char *text, long long lowest, long long highest)
{
    char *end;
    if ((text[0] < '0' || text[0] > '9') && text[0] != '-' && text[0] != '+')
        return false;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    return errno == 0 && *end == '\0' && end != text && value >= lowest && value <= highest;
}

static bool is_number(const char *text)
{
    double value;
    return (strchr(" \t\n\v\f\r", text[0]) == NULL && tdmi_number_read(text, &value)) ||
           strcmp(text, "NaN") == 0 || strcmp(text, "Infinity") == 0 ||
           strcmp(text, "-Infinity") == 0;
}

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
    const char *rest;
    if (!begins_with_digits(text, "0000-00-00 00:00:00", &rest) &&
        !begins_with_digits(text, "0000-00-00T00:00:00", &rest))
        return is_date(text);
    if (*rest == '.') {
        rest++;
        if (*rest < '0' || *rest > '9')
            return false;
        while (*rest >= '0' && *rest <= '9')
            rest++;
    }
    const char *end;
    return *rest == '\0' || strcmp(rest, "Z") == 0 ||
           ((*rest == '+' || *rest == '-') && begins_with_digits(rest + 1, "00:00", &end) &&
            *end == '\0');
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

static bool is_byte(const char *text)
{
    return is_integer(text, -128, 127);
}

static bool is_short(const char *text)
{
    return is_integer(text, -32768, 32767);
}

static bool is_int(const char *text)
{
    return is_integer(text, INT32_MIN, INT32_MAX);
}

static bool is_long(const char *text)
{
    return is_integer(text, INT64_MIN, INT64_MAX);
}

static const struct {
    const char *name; /* ends in "(": more may follow */
    bool (*fits)(const char *text);
} types[] = {
    {"string", is_any},     {"long", is_long},          {"integer", is_int},
    {"short", is_short},    {"byte", is_byte},          {"float", is_number},
    {"double", is_number},  {"decimal", is_number},     {"decimal(", is_number},
    {"boolean", is_truth},  {"binary", is_any},         {"date", is_date},
    {"timestamp", is_time}, {"timestamp_ntz", is_time},
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
    int index = find_type(type);
    return index >= 0 && types[index].fits(text);
}
