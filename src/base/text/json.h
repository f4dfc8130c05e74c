/* The document of the JSON reader, as the queries see it. */
#pragma once

#include "base/arena.h"
#include "base/scope.h"
#include "tandem/json.h"

/* Children of a container lie side by side. An object's sorted holds the same members by key. */
struct tdm_json_value {
    tdm_json_kind kind;
    bool is_true;    /* BOOL */
    bool is_integer; /* NUMBER: integer is exactly the number read */
    const char *key; /* NULL but in objects */
    size_t count;    /* children */
    union {
        struct {
            double number;
            int64_t integer;
        };
        const char *string;
        struct {
            const tdm_json_value *children;
            const tdm_json_value **sorted;
        };
    };
};

struct tdm_json_document {
    tdmi_arena arena;
    tdm_json_value root;
};

/* Write a value that was read, and all below it. */
void tdmi_json_copy(tdm_json_writer *writer, const char *key, const tdm_json_value *value);

TDMI_POINTER_RELEASE(tdm_json_writer, tdm_json_writer_free)
TDMI_POINTER_RELEASE(tdm_json_document, tdm_json_document_free)
