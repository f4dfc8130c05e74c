/* The lineage of a model as JSON. */
#include "weights/lineage.h"

#include <stddef.h>
#include <string.h>

static const struct member {
    const char *key;
    size_t offset;
} members[] = {
    {"file", offsetof(struct tdmi_lineage, file)},
    {"sha256", offsetof(struct tdmi_lineage, sha256)},
    {"form", offsetof(struct tdmi_lineage, form)},
    {"origin", offsetof(struct tdmi_lineage, origin)},
    {"network", offsetof(struct tdmi_lineage, network)},
    {"licence", offsetof(struct tdmi_lineage, licence)},
    {"norms", offsetof(struct tdmi_lineage, norms)},
};

enum { N_MEMBERS = sizeof members / sizeof members[0] };

tdm_status tdmi_lineage_copy(const struct tdmi_lineage *from, tdmi_arena *arena,
                             struct tdmi_lineage *lineage, tdm_error *err)
{
    *lineage = (struct tdmi_lineage){0};
    for (int i = 0; i < N_MEMBERS; i++) {
        const char *text;
        memcpy(&text, (const char *)from + members[i].offset, sizeof text);
        const char *copy = text ? tdmi_arena_copy(arena, text) : NULL;
        if (text && !copy)
            return TDM_FAIL(err, TDM_E_MEMORY,
                            "remembering where the weights came from: out of memory");
        memcpy((char *)lineage + members[i].offset, &copy, sizeof copy);
    }
    return TDM_OK;
}

void tdmi_lineage_to_json(const struct tdmi_lineage *lineage, tdm_json_writer *writer,
                          const char *key)
{
    if (!lineage->file)
        return;
    tdm_json_object_begin(writer, key);
    for (int i = 0; i < N_MEMBERS; i++) {
        const char *text;
        memcpy(&text, (const char *)lineage + members[i].offset, sizeof text);
        if (text)
            tdm_json_string(writer, members[i].key, text);
    }
    tdm_json_object_end(writer);
}

tdm_status tdmi_lineage_from_json(const tdm_json_value *value, tdmi_arena *arena,
                                  struct tdmi_lineage *lineage, tdm_error *err)
{
    *lineage = (struct tdmi_lineage){0};
    for (int i = 0; i < N_MEMBERS; i++) {
        const char *text = tdm_json_as_string(tdm_json_member(value, members[i].key), NULL);
        if (!text)
            continue;
        const char *copy = tdmi_arena_copy(arena, text);
        if (!copy)
            return TDM_FAIL(err, TDM_E_MEMORY,
                            "reading where the weights came from: out of memory");
        memcpy((char *)lineage + members[i].offset, &copy, sizeof copy);
    }
    return TDM_OK;
}
