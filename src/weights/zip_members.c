/*
 * Members of zips. Deflate makes 1,032 bytes of one at most, and weights hardly shrink, so a file
 * that unpacks to far more than itself is refused before memory is allocated.
 */
#include "weights/zip_members.h"
#include "base/bytes.h"

#include <stdio.h>
#include <string.h>

enum { LOCAL_BYTES = 30, LONGEST_NAME = 1024, MOST_TIMES = 16 };
#define FREE_BYTES ((uint64_t)64 << 20)

bool tdmi_zip_members_have(const struct tdmi_weights_input *input,
                           bool (*is_mark)(const char *name))
{
    TDMI_AT_END(tdmi_archive_close_at) tdmi_archive *archive = NULL;
    bool is_found = false;
    if (input->n_bytes < 4 || memcmp(input->bytes, "PK\3\4", 4) != 0)
        return false;
    if (tdmi_archive_open_bytes(input->bytes, input->n_bytes, input->path, &archive, NULL) !=
        TDM_OK) {
        char name[LONGEST_NAME] = "";
        if (input->n_bytes >= LOCAL_BYTES) {
            const size_t length = tdmi_read_little(input->bytes + 26, 2);
            const size_t left = input->n_bytes - LOCAL_BYTES;
            snprintf(name, sizeof name, "%.*s", (int)(length < left ? length : left),
                     (const char *)input->bytes + LOCAL_BYTES);
        }
        return is_mark(name);
    }
    for (int64_t i = 0; !is_found && i < tdmi_archive_entries(archive); i++)
        is_found = is_mark(tdmi_archive_entry(archive, i)->name);
    return is_found;
}

static void close_archive(void *archive)
{
    tdmi_archive_close(archive);
}

tdm_status tdmi_zip_members_open(tdmi_weights *weights, const struct tdmi_weights_input *input,
                                 struct tdmi_zip_members *members, tdm_error *err)
{
    *members = (struct tdmi_zip_members){.weights = weights,
                                         .most_bytes = FREE_BYTES + MOST_TIMES * input->n_bytes};
    TDM_TRY(
        tdmi_archive_open_bytes(input->bytes, input->n_bytes, input->path, &members->archive, err),
        err, "cannot read the weights %s", input->path);
    return tdmi_weights_keep(weights, members->archive, close_archive, err);
}

tdm_status tdmi_zip_members_bytes(struct tdmi_zip_members *members, int64_t index,
                                  const uint8_t **bytes, tdm_error *err)
{
    const struct tdmi_archive_entry *entry = tdmi_archive_entry(members->archive, index);
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    const void *at = NULL;
    uint64_t size_bytes = (uint64_t)entry->size_bytes;
    bool is_packed = entry->size_bytes != entry->stored_bytes;
    if (is_packed && size_bytes > members->most_bytes - members->unpacked_bytes)
        return TDMI_WEIGHTS_BAD(
            err, members->weights,
            "'%s' would be unpacked to %zu bytes, and all is to stay below %zu (64 MiB and %d "
            "times the file): a bomb, or weights that are to be stored without compression",
            entry->name, (size_t)size_bytes, (size_t)members->most_bytes, MOST_TIMES);
    TDMI_TRY(tdmi_archive_view(members->archive, index, INT64_MAX, &text, &at, err));
    *bytes = at;
    if (text.length_bytes == 0)
        return TDM_OK;
    members->unpacked_bytes += size_bytes;
    return tdmi_weights_keep(members->weights, tdmi_take(&text.bytes), tdmi_free, err);
}
