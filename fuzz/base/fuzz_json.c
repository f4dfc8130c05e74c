/*
 * The JSON reader on any bytes: it must answer or refuse, and what it took must survive being
 * written, read and written again without a change.
 */
#include "fuzz.h"
#include "tandem/json.h"

static void write_value(tdm_json_writer *writer, const char *key, const tdm_json_value *value)
{
    switch (tdm_json_kind_of(value)) {
    case TDM_JSON_NULL:
        tdm_json_null(writer, key);
        break;
    case TDM_JSON_BOOL:
        tdm_json_bool(writer, key, tdm_json_as_bool(value, false));
        break;
    case TDM_JSON_NUMBER: {
        /* Integers beyond 2^53 would lose bits as a double. */
        int64_t integer = tdm_json_as_integer(value, 0);
        if (integer != 0)
            tdm_json_integer(writer, key, integer);
        else
            tdm_json_number(writer, key, tdm_json_as_number(value, 0.0));
        break;
    }
    case TDM_JSON_STRING:
        tdm_json_string(writer, key, tdm_json_as_string(value, NULL));
        break;
    case TDM_JSON_ARRAY:
        tdm_json_array_begin(writer, key);
        for (size_t i = 0; i < tdm_json_count(value); i++)
            write_value(writer, NULL, tdm_json_at(value, i));
        tdm_json_array_end(writer);
        break;
    case TDM_JSON_OBJECT:
        tdm_json_object_begin(writer, key);
        for (size_t i = 0; i < tdm_json_count(value); i++) {
            const char *name = tdm_json_key_at(value, i);
            if (tdm_json_member(value, name) != tdm_json_at(value, i))
                abort();
            write_value(writer, name, tdm_json_at(value, i));
        }
        tdm_json_object_end(writer);
        break;
    }
}

/* The text is owned by the writer that comes back. */
static tdm_json_writer *written(const tdm_json_document *document, int indent, const char **text,
                                size_t *length)
{
    tdm_error err = {0};
    tdm_json_writer *writer = tdm_json_writer_new(indent);
    write_value(writer, NULL, tdm_json_root(document));
    if (tdm_json_finish(writer, text, length, &err) != TDM_OK)
        abort();
    return writer;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    tdm_json_document *document = NULL, *again = NULL;
    const char *first_text, *second_text;
    size_t first_length, second_length;
    tdm_error err = {0};
    int indent = length % 2 ? 2 : 0;
    if (tdm_json_read((const char *)bytes, length, "input", &document, &err) != TDM_OK) {
        if (err.code == TDM_OK || err.n_frames == 0 || document)
            abort();
        return 0;
    }
    tdm_json_writer *first = written(document, indent, &first_text, &first_length);
    if (tdm_json_read(first_text, first_length, "written", &again, &err) != TDM_OK)
        abort();
    tdm_json_writer *second = written(again, indent, &second_text, &second_length);
    if (first_length != second_length || memcmp(first_text, second_text, first_length) != 0)
        abort();
    tdm_json_writer_free(second);
    tdm_json_writer_free(first);
    tdm_json_document_free(again);
    tdm_json_document_free(document);
    return 0;
}
