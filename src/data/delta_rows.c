/* Only the types that actions are made of: text, whole numbers, truth values, structs, lists, maps.
 */
#include "data/delta_rows.h"

#include "base/text.h"
#include <string.h>

static tdm_status write_value(tdm_json_writer *writer, const char *key,
                              const struct ArrowSchema *schema, const struct ArrowArray *array,
                              int64_t index, tdm_error *err);

static bool is_null(const struct ArrowArray *array, int64_t at)
{
    const uint8_t *bits = array->n_buffers > 0 ? array->buffers[0] : NULL;
    return bits != NULL && array->null_count != 0 && (bits[at / 8] >> at % 8 & 1) == 0;
}

static tdm_status refuse(const struct ArrowSchema *schema, const char *what, tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_INPUT, "the column '%.60s' of Arrow type '%.20s' %s",
                    schema->name == NULL ? "" : schema->name, schema->format, what);
}

/* ---- plain values -------------------------------------------------------------------------- */

/* The bytes of a text; NULL for what is none. at counts from the start of the buffers. */
static const char *text_at(const char *format, const struct ArrowArray *array, int64_t at,
                           int64_t *length)
{
    const int32_t *narrow = array->buffers[1];
    const int64_t *wide = array->buffers[1];
    if (strcmp(format, "u") == 0) {
        *length = narrow[at + 1] - narrow[at];
        return (const char *)array->buffers[2] + narrow[at];
    }
    if (strcmp(format, "U") == 0) {
        *length = wide[at + 1] - wide[at];
        return (const char *)array->buffers[2] + wide[at];
    }
    if (strcmp(format, "vu") != 0)
        return NULL;
    /* A view: length, then up to 12 bytes, or 4 bytes, which buffer, and where in it. */
    const int32_t *view = narrow + 4 * at;
    *length = view[0];
    return view[0] <= 12 ? (const char *)(view + 1)
                         : (const char *)array->buffers[2 + view[2]] + view[3];
}

static bool integer_at(const char *format, const struct ArrowArray *array, int64_t at,
                       int64_t *value)
{
    const void *values = array->n_buffers > 1 ? array->buffers[1] : NULL;
    if (values == NULL || format[0] == '\0' || format[1] != '\0')
        return false;
    switch (format[0]) {
    case 'c':
        *value = ((const int8_t *)values)[at];
        return true;
    case 's':
        *value = ((const int16_t *)values)[at];
        return true;
    case 'i':
        *value = ((const int32_t *)values)[at];
        return true;
    case 'l':
        *value = ((const int64_t *)values)[at];
        return true;
    default:
        return false;
    }
}

/* The text at a place, terminated, into copy. */
static tdm_status take_text(const struct ArrowSchema *schema, const struct ArrowArray *array,
                            int64_t at, tdmi_text *copy, tdm_error *err)
{
    int64_t length = 0;
    const char *bytes = array->n_buffers > 2 ? text_at(schema->format, array, at, &length) : NULL;
    tdmi_text_clear(copy);
    if (array->n_buffers <= 2 || (bytes == NULL && length > 0))
        return refuse(schema, "is no text", err);
    if (length > 0 && memchr(bytes, '\0', (size_t)length) != NULL)
        return refuse(schema, "holds a zero byte, which no text of a log has", err);
    tdmi_text_add(copy, length > 0 ? bytes : "", (size_t)length);
    return copy->is_broken ? TDM_FAIL(err, TDM_E_MEMORY, "no memory for a text of a checkpoint")
                           : TDM_OK;
}

/* ---- nested values ------------------------------------------------------------------------- */

static tdm_status write_members(tdm_json_writer *writer, const struct ArrowSchema *schema,
                                const struct ArrowArray *array, int64_t at, tdm_error *err)
{
    tdm_status status = TDM_OK;
    for (int64_t i = 0; i < schema->n_children && status == TDM_OK; i++)
        if (!is_null(array->children[i], array->children[i]->offset + at))
            status = write_value(writer, schema->children[i]->name, schema->children[i],
                                 array->children[i], at, err);
    return status;
}

static bool is_list(const char *format)
{
    return strcmp(format, "+l") == 0 || strcmp(format, "+L") == 0 || strcmp(format, "+m") == 0;
}

static void list_range(const struct ArrowSchema *schema, const struct ArrowArray *array, int64_t at,
                       int64_t *first, int64_t *end)
{
    const int32_t *narrow = array->buffers[1];
    const int64_t *wide = array->buffers[1];
    bool is_wide = schema->format[1] == 'L';
    *first = is_wide ? wide[at] : narrow[at];
    *end = is_wide ? wide[at + 1] : narrow[at + 1];
}

static tdm_status write_list(tdm_json_writer *writer, const char *key,
                             const struct ArrowSchema *schema, const struct ArrowArray *array,
                             int64_t at, tdm_error *err)
{
    int64_t first, end;
    tdm_status status = TDM_OK;
    list_range(schema, array, at, &first, &end);
    tdm_json_array_begin(writer, key);
    for (int64_t i = first; i < end && status == TDM_OK; i++)
        status = write_value(writer, NULL, schema->children[0], array->children[0], i, err);
    tdm_json_array_end(writer);
    return status;
}

static tdm_status write_map(tdm_json_writer *writer, const char *key,
                            const struct ArrowSchema *schema, const struct ArrowArray *array,
                            int64_t at, tdm_error *err)
{
    const struct ArrowSchema *entry = schema->children[0];
    const struct ArrowArray *entries = array->children[0];
    if (entry->n_children != 2)
        return refuse(schema, "is no map", err);
    int64_t first, end;
    tdm_status status = TDM_OK;
    tdmi_text name = {0};
    list_range(schema, array, at, &first, &end);
    tdm_json_object_begin(writer, key);
    for (int64_t i = first; i < end && status == TDM_OK; i++) {
        int64_t within = entries->offset + i;
        status = take_text(entry->children[0], entries->children[0],
                           entries->children[0]->offset + within, &name, err);
        if (status == TDM_OK)
            status = write_value(writer, tdmi_text_string(&name), entry->children[1],
                                 entries->children[1], within, err);
    }
    tdm_json_object_end(writer);
    tdmi_text_release(&name);
    return status;
}

/* index counts from the array's own beginning. */
static tdm_status write_value(tdm_json_writer *writer, const char *key,
                              const struct ArrowSchema *schema, const struct ArrowArray *array,
                              int64_t index, tdm_error *err)
{
    const char *format = schema->format;
    int64_t at = array->offset + index, integer;
    if (schema->dictionary != NULL)
        return refuse(schema, "is stored by dictionary, which is not read here", err);
    if (is_null(array, at)) {
        tdm_json_null(writer, key);
        return TDM_OK;
    }
    if (strcmp(format, "+s") == 0) {
        tdm_json_object_begin(writer, key);
        tdm_status status = write_members(writer, schema, array, at, err);
        tdm_json_object_end(writer);
        return status;
    }
    if (is_list(format))
        return (format[1] == 'm' ? write_map : write_list)(writer, key, schema, array, at, err);
    if (strcmp(format, "b") == 0) {
        tdm_json_bool(writer, key, (((const uint8_t *)array->buffers[1])[at / 8] >> at % 8 & 1));
        return TDM_OK;
    }
    if (integer_at(format, array, at, &integer)) {
        tdm_json_integer(writer, key, integer);
        return TDM_OK;
    }
    tdmi_text text = {0};
    tdm_status status = take_text(schema, array, at, &text, err);
    if (status == TDM_OK)
        tdm_json_string(writer, key, tdmi_text_string(&text));
    tdmi_text_release(&text);
    return status;
}

/* ---- for the reader of checkpoints --------------------------------------------------------- */

tdm_status tdmi_delta_row_write(tdm_json_writer *writer, const struct ArrowSchema *schema,
                                const struct ArrowArray *rows, int64_t row, tdm_error *err)
{
    return write_value(writer, NULL, schema, rows, row, err);
}

bool tdmi_delta_rows_have(const struct ArrowSchema *schema, const char *name)
{
    size_t n = strcspn(name, ".");
    for (int64_t i = 0; i < schema->n_children; i++) {
        const struct ArrowSchema *child = schema->children[i];
        if (child->name != NULL && strncmp(child->name, name, n) == 0 && child->name[n] == '\0')
            return name[n] == '\0' || tdmi_delta_rows_have(child, name + n + 1);
    }
    return false;
}
