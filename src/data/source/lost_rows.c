/* Few files lose rows, so those that do are searched one by one. */
#include "data/source/lost_rows.h"

void tdmi_lost_rows_release(tdmi_lost_rows *lost)
{
    tdmi_free(lost->is_lost);
    tdmi_free(lost->files);
    *lost = (tdmi_lost_rows){0};
}

tdm_status tdmi_lost_rows_add(tdmi_lost_rows *lost, const tdmi_source *source, int64_t item,
                              const char *why, tdm_error *err)
{
    int64_t first, end;
    const char *path = tdmi_source_row_file(source, item, &first, &end);
    if (path == NULL)
        return TDM_OK;
    if (lost->is_lost == NULL)
        TDMI_TRY(TDMI_NEW(lost->is_lost, tdmi_source_items(source) / 8 + 1, err));
    int64_t f = 0;
    while (f < lost->n_files && lost->files[f].first != first)
        f++;
    if (f == lost->n_files) {
        TDMI_TRY(TDMI_MAKE_ROOM(lost->files, lost->capacity, f, err));
        lost->files[lost->n_files++] = (struct tdmi_lost_file){.first = first};
    }
    struct tdmi_lost_file *file = &lost->files[f];
    const uint8_t bit = (uint8_t)(1 << item % 8);
    file->n_lost += (lost->is_lost[item / 8] & bit) == 0;
    lost->is_lost[item / 8] |= bit;
    if (2 * file->n_lost <= end - first)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_INPUT,
                    "more than half of the %lld rows of '%s' cannot be used%s%s%s; check the "
                    "options that it is read with, replace it, or leave its bad rows out with the "
                    "list that audit --quarantine writes",
                    (long long)(end - first), path, why != NULL ? " (" : "", why != NULL ? why : "",
                    why != NULL ? ")" : "");
}
