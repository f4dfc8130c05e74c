/*
 * Formats of the C data interface that hold labels and images: b c C s S i I l L f g, u z U Z
 * with offsets, vu vz with views, w:N fixed, +s structs, +l +L +w:N lists, and dictionaries of
 * them.
 */
#include "io/arrow/cell.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { VIEW_BYTES = 16, INLINE_BYTES = 12 };

/* ---- schemas ----------------------------------------------------------------------------- */

/* The index of the child of that name; -1: none. */
static int64_t find_child(const struct ArrowSchema *schema, const char *name)
{
    for (int64_t i = 0; i < schema->n_children; i++)
        if (strcmp(schema->children[i]->name, name) == 0)
            return i;
    return -1;
}

const struct ArrowSchema *tdmi_arrow_schema_field(const struct ArrowSchema *schema,
                                                  const char *name)
{
    int64_t i = find_child(schema, name);
    return i < 0 ? NULL : schema->children[i];
}

static const char *format_of(const struct ArrowSchema *schema)
{
    return schema->dictionary != NULL ? schema->dictionary->format : schema->format;
}

static bool is_one_of(const char *format, const char *letters)
{
    return format[0] != '\0' && format[1] == '\0' && strchr(letters, format[0]) != NULL;
}

bool tdmi_arrow_is_text(const struct ArrowSchema *schema)
{
    const char *format = format_of(schema);
    return is_one_of(format, "uU") || strcmp(format, "vu") == 0;
}

bool tdmi_arrow_is_binary(const struct ArrowSchema *schema)
{
    const char *format = format_of(schema);
    return is_one_of(format, "zZ") || strcmp(format, "vz") == 0 || strncmp(format, "w:", 2) == 0;
}

bool tdmi_arrow_is_byte_list(const struct ArrowSchema *schema)
{
    const char *format = schema->format;
    bool is_list =
        strcmp(format, "+l") == 0 || strcmp(format, "+L") == 0 || strncmp(format, "+w:", 3) == 0;
    return is_list && schema->n_children == 1 && strcmp(schema->children[0]->format, "C") == 0;
}

bool tdmi_arrow_is_integer(const struct ArrowSchema *schema)
{
    return is_one_of(format_of(schema), "bcCsSiIlL");
}

bool tdmi_arrow_is_number(const struct ArrowSchema *schema)
{
    return is_one_of(format_of(schema), "fg");
}

const char *tdmi_arrow_type_word(const struct ArrowSchema *schema)
{
    const char *format = format_of(schema);
    if (strncmp(format, "+v", 2) == 0 || strcmp(format, "+m") == 0)
        return "nested";
    return tdmi_arrow_is_text(schema)      ? "text"
           : tdmi_arrow_is_binary(schema)  ? "binary"
           : tdmi_arrow_is_integer(schema) ? "integer"
           : tdmi_arrow_is_number(schema)  ? "number"
           : strcmp(format, "+s") == 0     ? "struct"
           : format[0] == '+'              ? "list"
           : format[0] == 't'              ? "time"
           : format[0] == 'd'              ? "decimal"
                                           : "of another type";
}

/* ---- cells ------------------------------------------------------------------------------- */

struct tdmi_arrow_cell tdmi_arrow_cell_at(const struct ArrowSchema *schema,
                                          const struct ArrowArray *array, int64_t row)
{
    return (struct tdmi_arrow_cell){schema, array, row + array->offset};
}

struct tdmi_arrow_cell tdmi_arrow_cell_child(struct tdmi_arrow_cell cell, int64_t i)
{
    return tdmi_arrow_cell_at(cell.schema->children[i], cell.array->children[i], cell.row);
}

bool tdmi_arrow_cell_field(struct tdmi_arrow_cell cell, const char *name,
                           struct tdmi_arrow_cell *field)
{
    int64_t i = strcmp(cell.schema->format, "+s") == 0 ? find_child(cell.schema, name) : -1;
    if (i >= 0)
        *field = tdmi_arrow_cell_child(cell, i);
    return i >= 0;
}

static bool is_bit(const void *bits, int64_t index)
{
    return ((const uint8_t *)bits)[index / 8] >> (index % 8) & 1;
}

/* The value that the index of a dictionary names; other cells as they are. */
static bool resolve(struct tdmi_arrow_cell *cell)
{
    if (cell->schema->dictionary == NULL)
        return true;
    struct ArrowSchema indices = *cell->schema;
    struct tdmi_arrow_cell index = {&indices, cell->array, cell->row};
    int64_t row;
    indices.dictionary = NULL;
    if (!tdmi_arrow_cell_integer(index, &row) || row < 0 || row >= cell->array->dictionary->length)
        return false;
    *cell = tdmi_arrow_cell_at(cell->schema->dictionary, cell->array->dictionary, row);
    return true;
}

bool tdmi_arrow_cell_is_null(struct tdmi_arrow_cell cell)
{
    if (strcmp(cell.schema->format, "n") == 0)
        return true;
    const void *valid = cell.array->n_buffers > 0 ? cell.array->buffers[0] : NULL;
    if (valid != NULL && !is_bit(valid, cell.row))
        return true;
    if (cell.schema->dictionary == NULL)
        return false;
    return resolve(&cell) && tdmi_arrow_cell_is_null(cell);
}

static bool view_bytes(struct tdmi_arrow_cell cell, const uint8_t **bytes, int64_t *n_bytes)
{
    const uint8_t *view = (const uint8_t *)cell.array->buffers[1] + cell.row * VIEW_BYTES;
    int32_t n, buffer, offset;
    memcpy(&n, view, sizeof n);
    memcpy(&buffer, view + 8, sizeof buffer);
    memcpy(&offset, view + 12, sizeof offset);
    *n_bytes = n;
    *bytes =
        n <= INLINE_BYTES ? view + 4 : (const uint8_t *)cell.array->buffers[2 + buffer] + offset;
    return true;
}

/* The number of values in a format of fixed length: "w:12", "+w:3". */
static int64_t fixed_length(const char *format)
{
    return strtoll(strchr(format, ':') + 1, NULL, 10);
}

/* Two neighbouring offsets of a text, binary or list column. */
static void offsets(struct tdmi_arrow_cell cell, bool are_wide, int64_t *first, int64_t *n)
{
    const int64_t *wide = cell.array->buffers[1];
    const int32_t *narrow = cell.array->buffers[1];
    *first = are_wide ? wide[cell.row] : narrow[cell.row];
    *n = (are_wide ? wide[cell.row + 1] : narrow[cell.row + 1]) - *first;
}

void tdmi_arrow_cell_list(struct tdmi_arrow_cell cell, int64_t *first, int64_t *n)
{
    const char *format = cell.schema->format;
    if (format[1] == 'w') {
        *n = fixed_length(format);
        *first = cell.row * *n;
    } else {
        offsets(cell, format[1] == 'L', first, n);
    }
}

static bool list_bytes(struct tdmi_arrow_cell cell, const uint8_t **bytes, int64_t *n_bytes)
{
    const struct ArrowArray *numbers = cell.array->children[0];
    int64_t first;
    tdmi_arrow_cell_list(cell, &first, n_bytes);
    first += numbers->offset;
    if (numbers->null_count != 0 && numbers->buffers[0] != NULL)
        for (int64_t i = 0; i < *n_bytes; i++)
            if (!is_bit(numbers->buffers[0], first + i))
                return false;
    *bytes = (const uint8_t *)numbers->buffers[1] + first;
    return true;
}

bool tdmi_arrow_cell_bytes(struct tdmi_arrow_cell cell, const uint8_t **bytes, int64_t *n_bytes)
{
    static const uint8_t none[1];
    if (!resolve(&cell))
        return false;
    const char *format = cell.schema->format;
    if (tdmi_arrow_is_byte_list(cell.schema))
        return list_bytes(cell, bytes, n_bytes);
    if (strcmp(format, "vu") == 0 || strcmp(format, "vz") == 0)
        return view_bytes(cell, bytes, n_bytes);
    if (is_one_of(format, "uzUZ")) {
        int64_t first;
        offsets(cell, is_one_of(format, "UZ"), &first, n_bytes);
        *bytes = (const uint8_t *)cell.array->buffers[2] + first;
    } else if (strncmp(format, "w:", 2) == 0) {
        *n_bytes = fixed_length(format);
        *bytes = (const uint8_t *)cell.array->buffers[1] + cell.row * *n_bytes;
    } else {
        return false;
    }
    if (*n_bytes == 0)
        *bytes = none;
    return true;
}

#define VALUE(type) (((const type *)cell.array->buffers[1])[cell.row])

bool tdmi_arrow_cell_integer(struct tdmi_arrow_cell cell, int64_t *value)
{
    if (!resolve(&cell) || !is_one_of(cell.schema->format, "bcCsSiIlL"))
        return false;
    switch (cell.schema->format[0]) {
#define X(letter, number)  \
    case letter:           \
        *value = (number); \
        break;
        X('b', is_bit(cell.array->buffers[1], cell.row))
        X('c', VALUE(int8_t))
        X('C', VALUE(uint8_t))
        X('s', VALUE(int16_t))
        X('S', VALUE(uint16_t))
        X('i', VALUE(int32_t))
        X('I', VALUE(uint32_t))
        X('l', VALUE(int64_t))
#undef X
    default:
        *value = VALUE(int64_t);
        return *value >= 0;
    }
    return true;
}

bool tdmi_arrow_cell_number(struct tdmi_arrow_cell cell, double *value)
{
    if (!resolve(&cell) || !is_one_of(cell.schema->format, "fg"))
        return false;
    *value = cell.schema->format[0] == 'f' ? (double)VALUE(float) : VALUE(double);
    return true;
}

/* ---- rows -------------------------------------------------------------------------------- */

tdm_status tdmi_arrow_stream_next(struct ArrowArrayStream *stream, const char *path,
                                  struct ArrowArray *array, tdm_error *err)
{
    *array = (struct ArrowArray){0};
    int code = stream->get_next(stream, array);
    if (code == 0)
        return TDM_OK;
    const char *why = stream->get_last_error(stream);
    return TDM_FAIL(err, code == ENOMEM ? TDM_E_MEMORY : TDM_E_INPUT,
                    "cannot read the rows of '%s': %s", path, why != NULL ? why : strerror(code));
}

tdm_status tdmi_arrow_each_row(const tdmi_arrow_file *file, const char *path,
                               const char *const *columns, int n_columns,
                               tdmi_arrow_visit_row visit, void *self, tdm_error *err)
{
    TDMI_AT_END(tdmi_arrow_stream_release) struct ArrowArrayStream stream = {0};
    TDMI_AT_END(tdmi_arrow_schema_release) struct ArrowSchema schema = {0};
    TDMI_TRY(tdmi_arrow_file_stream(file, columns, n_columns, 0, -1, &stream, err));
    if (stream.get_schema(&stream, &schema) != 0)
        return TDM_FAIL(err, TDM_E_INPUT, "cannot read the columns of '%s'", path);
    for (;;) {
        TDMI_AT_END(tdmi_arrow_array_release) struct ArrowArray batch = {0};
        TDMI_TRY(tdmi_arrow_stream_next(&stream, path, &batch, err));
        if (batch.release == NULL)
            return TDM_OK;
        for (int64_t r = 0; r < batch.length; r++)
            TDMI_TRY(visit(self, tdmi_arrow_cell_at(&schema, &batch, r), err));
    }
}
