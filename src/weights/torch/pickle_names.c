/* The names that pickles may use, and questions about the values they are read into. */
#include "weights/torch/pickle.h"

#include <string.h>
#include "base/banned.h"

static const struct tdmi_pickle_name names[] = {
#define X(module, name, makes) {module, name, TDMI_PICKLE_MAKES_##makes},
#include "weights/torch/pickle_names.def"
#undef X
};

static bool is_equal(const char *text, const uint8_t *bytes, size_t n_bytes)
{
    return strlen(text) == n_bytes && memcmp(text, bytes, n_bytes) == 0;
}

const struct tdmi_pickle_name *tdmi_pickle_find_name(const uint8_t *module, size_t module_bytes,
                                                     const uint8_t *name, size_t name_bytes)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (is_equal(names[i].name, name, name_bytes) &&
            is_equal(names[i].module, module, module_bytes))
            return &names[i];
    return NULL;
}

bool tdmi_pickle_is_text(const tdmi_pickle_value *value, const char *text)
{
    return value != NULL && value->kind == TDMI_PICKLE_TEXT &&
           is_equal(text, value->bytes, value->count);
}

const char *tdmi_pickle_name_of(const tdmi_pickle_value *value)
{
    bool has_name =
        value != NULL && (value->kind == TDMI_PICKLE_NAME || value->kind == TDMI_PICKLE_CALL);
    return has_name ? value->call.name->name : "";
}

const tdmi_pickle_value *tdmi_pickle_item(const tdmi_pickle_value *value, size_t i)
{
    if (value == NULL || (value->kind != TDMI_PICKLE_LIST && value->kind != TDMI_PICKLE_TUPLE))
        return NULL;
    return i < value->count ? value->items[i] : NULL;
}

tdmi_pickle_value *tdmi_pickle_member(const tdmi_pickle_value *dict, const char *key)
{
    if (dict == NULL || dict->kind != TDMI_PICKLE_DICT)
        return NULL;
    for (size_t i = dict->count; i > 0; i--)
        if (tdmi_pickle_is_text(dict->items[2 * i - 2], key))
            return dict->items[2 * i - 1];
    return NULL;
}
