/* Questions to a JSON tree: each accepts NULL and the wrong kind, so that they chain. */
#include "base/text/json.h"

#include <string.h>

const tdm_json_value *tdm_json_root(const tdm_json_document *document)
{
    return document ? &document->root : NULL;
}

static bool is_kind(const tdm_json_value *value, tdm_json_kind kind)
{
    return value && value->kind == kind;
}

tdm_json_kind tdm_json_kind_of(const tdm_json_value *value)
{
    return value ? value->kind : TDM_JSON_NULL;
}

const tdm_json_value *tdm_json_member(const tdm_json_value *object, const char *key)
{
    if (!is_kind(object, TDM_JSON_OBJECT))
        return NULL;
    size_t low = 0, high = object->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(key, object->sorted[middle]->key);
        if (order == 0)
            return object->sorted[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

size_t tdm_json_count(const tdm_json_value *container)
{
    return container ? container->count : 0;
}

const tdm_json_value *tdm_json_at(const tdm_json_value *container, size_t index)
{
    return container && index < container->count ? &container->children[index] : NULL;
}

const char *tdm_json_key_at(const tdm_json_value *object, size_t index)
{
    const tdm_json_value *member = tdm_json_at(object, index);
    return member ? member->key : NULL;
}

const char *tdm_json_as_string(const tdm_json_value *value, const char *fallback)
{
    return is_kind(value, TDM_JSON_STRING) ? value->string : fallback;
}

double tdm_json_as_number(const tdm_json_value *value, double fallback)
{
    return is_kind(value, TDM_JSON_NUMBER) ? value->number : fallback;
}

int64_t tdm_json_as_integer(const tdm_json_value *value, int64_t fallback)
{
    return is_kind(value, TDM_JSON_NUMBER) && value->is_integer ? value->integer : fallback;
}

bool tdm_json_as_bool(const tdm_json_value *value, bool fallback)
{
    return is_kind(value, TDM_JSON_BOOL) ? value->is_true : fallback;
}

static void copy_children(tdm_json_writer *writer, const tdm_json_value *value)
{
    for (size_t i = 0; i < value->count; i++)
        tdmi_json_copy(writer, value->children[i].key, &value->children[i]);
}

/* The reader limits the depth. */
void tdmi_json_copy(tdm_json_writer *writer, const char *key, const tdm_json_value *value)
{
    switch (tdm_json_kind_of(value)) {
    case TDM_JSON_NULL:
        tdm_json_null(writer, key);
        break;
    case TDM_JSON_BOOL:
        tdm_json_bool(writer, key, value->is_true);
        break;
    case TDM_JSON_NUMBER:
        if (value->is_integer)
            tdm_json_integer(writer, key, value->integer);
        else
            tdm_json_number(writer, key, value->number);
        break;
    case TDM_JSON_STRING:
        tdm_json_string(writer, key, value->string);
        break;
    case TDM_JSON_ARRAY:
        tdm_json_array_begin(writer, key);
        copy_children(writer, value);
        tdm_json_array_end(writer);
        break;
    case TDM_JSON_OBJECT:
        tdm_json_object_begin(writer, key);
        copy_children(writer, value);
        tdm_json_object_end(writer);
        break;
    }
}
