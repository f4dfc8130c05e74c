/* The lineage of a model as JSON. */
#include "weights/lineage.h"
#include "weights/errors.h"

#include <stddef.h>
#include <string.h>

static const struct {
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

static const char *get(const struct tdmi_lineage *lineage, int i)
{
    const char *text;
    memcpy(&text, (const char *)lineage + members[i].offset, sizeof text);
    return text;
}

static tdm_status set(struct tdmi_lineage *lineage, int i, const char *text, tdmi_arena *arena,
                      tdm_error *err)
{
    const char *copy = text ? tdmi_arena_copy(arena, text) : NULL;
    TDMI_CHECK_MEMORY(copy || !text, err);
    memcpy((char *)lineage + members[i].offset, &copy, sizeof copy);
    return TDM_OK;
}

tdm_status tdmi_lineage_copy(const struct tdmi_lineage *from, tdmi_arena *arena,
                             struct tdmi_lineage *lineage, tdm_error *err)
{
    for (int i = 0; i < N_MEMBERS; i++)
        TDMI_TRY(set(lineage, i, get(from, i), arena, err));
    return TDM_OK;
}

void tdmi_lineage_to_json(const struct tdmi_lineage *lineage, tdm_json_writer *writer,
                          const char *key)
{
    if (!lineage->file)
        return;
    tdm_json_object_begin(writer, key);
    for (int i = 0; i < N_MEMBERS; i++)
        if (get(lineage, i))
            tdm_json_string(writer, members[i].key, get(lineage, i));
    tdm_json_object_end(writer);
}

tdm_status tdmi_lineage_from_json(const tdm_json_value *value, tdmi_arena *arena,
                                  struct tdmi_lineage *lineage, tdm_error *err)
{
    for (int i = 0; i < N_MEMBERS; i++) {
        const char *text = tdm_json_as_string(tdm_json_member(value, members[i].key), NULL);
        TDMI_TRY(set(lineage, i, text, arena, err));
    }
    return TDM_OK;
}
