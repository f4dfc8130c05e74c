/*
 * A small JSON reader and writer: what run records, model files and --json need.
 *
 * The writer appends to a growing buffer and keeps the first failure (out of memory, misuse) until
 * tdm_json_finish, so a caller checks once. Numbers are written so that they read back to the same
 * double; NaN and infinities become null. Strings must be UTF-8; invalid bytes become U+FFFD.
 *
 * The reader builds an immutable tree in time linear in the text, refuses anything outside RFC
 * 8259, and says at which byte. It also refuses what could be read in two ways: duplicate keys,
 * \u0000 (strings here end at a zero), numbers too large for a double. Depth is limited to 128 both
 * ways.
 */
#ifndef TANDEM_JSON_H
#define TANDEM_JSON_H

#include "tandem/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- writing ---------------------------------------------------------------------------- */

typedef struct tdm_json_writer tdm_json_writer;

/* indent 0 writes one line; otherwise that many spaces a level. NULL when out of memory. */
TDM_API tdm_json_writer *tdm_json_writer_new(int indent);
TDM_API void tdm_json_writer_free(tdm_json_writer *writer);

/* key is NULL inside arrays and for the outermost value. Every call accepts a NULL writer (the
 * failed tdm_json_writer_new is then reported by tdm_json_finish). */
TDM_API void tdm_json_object_begin(tdm_json_writer *writer, const char *key);
TDM_API void tdm_json_object_end(tdm_json_writer *writer);
TDM_API void tdm_json_array_begin(tdm_json_writer *writer, const char *key);
TDM_API void tdm_json_array_end(tdm_json_writer *writer);
/* value NULL becomes null. */
TDM_API void tdm_json_string(tdm_json_writer *writer, const char *key, const char *value);
TDM_API void tdm_json_integer(tdm_json_writer *writer, const char *key, int64_t value);
TDM_API void tdm_json_number(tdm_json_writer *writer, const char *key, double value);
TDM_API void tdm_json_bool(tdm_json_writer *writer, const char *key, bool value);
TDM_API void tdm_json_null(tdm_json_writer *writer, const char *key);

/* The text, owned by the writer, terminated, without a line end; *length_bytes may be NULL. Fails
 * when memory ran out, when calls did not fit together (TDM_E_BUG), when the value is incomplete.
 */
TDM_API tdm_status tdm_json_finish(tdm_json_writer *writer, const char **text, size_t *length_bytes,
                                   tdm_error *err) TDM_MUST_USE;

/* ---- reading ---------------------------------------------------------------------------- */

typedef enum tdm_json_kind {
    TDM_JSON_NULL,
    TDM_JSON_BOOL,
    TDM_JSON_NUMBER,
    TDM_JSON_STRING,
    TDM_JSON_ARRAY,
    TDM_JSON_OBJECT
} tdm_json_kind;

typedef struct tdm_json_document tdm_json_document;
typedef struct tdm_json_value tdm_json_value; /* lives as long as its document */

/* name is what messages call the text (a path, "header of x.safetensors"). */
TDM_API tdm_status tdm_json_read(const char *text, size_t length_bytes, const char *name,
                                 tdm_json_document **document, tdm_error *err) TDM_MUST_USE;
TDM_API void tdm_json_document_free(tdm_json_document *document);
TDM_API const tdm_json_value *tdm_json_root(const tdm_json_document *document);

/* Every query accepts NULL and the wrong kind, and then answers the fallback: lookups chain. */
TDM_API tdm_json_kind tdm_json_kind_of(const tdm_json_value *value);
/* Binary search: cheap in large objects. */
TDM_API const tdm_json_value *tdm_json_member(const tdm_json_value *object, const char *key);
/* Elements of an array or members of an object, 0 for the rest; at and key_at in the order read. */
TDM_API size_t tdm_json_count(const tdm_json_value *container);
TDM_API const tdm_json_value *tdm_json_at(const tdm_json_value *container, size_t index);
TDM_API const char *tdm_json_key_at(const tdm_json_value *object, size_t index);
TDM_API const char *tdm_json_as_string(const tdm_json_value *value, const char *fallback);
TDM_API double tdm_json_as_number(const tdm_json_value *value, double fallback);
/* The fallback also when the number is no integer or does not fit. */
TDM_API int64_t tdm_json_as_integer(const tdm_json_value *value, int64_t fallback);
TDM_API bool tdm_json_as_bool(const tdm_json_value *value, bool fallback);

#ifdef __cplusplus
}
#endif
#endif
