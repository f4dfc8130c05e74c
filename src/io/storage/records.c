/* Storage, or memory where the file was compressed; and the head of a bare image. */
#include "io/storage/records.h"

#include "io/compress/inflate.h"
#include <string.h>

static tdm_status open_records(struct tdmi_records *records, const char *path, int64_t limit_bytes,
                               bool is_beginning, tdm_error *err)
{
    TDMI_AT_END(tdmi_records_close) struct tdmi_records opened = {.path = path};
    uint8_t head[2] = {0, 0};
    TDMI_TRY(tdmi_storage_open(path, &opened.file, err));
    opened.size_bytes = tdmi_storage_size(opened.file);
    if (opened.size_bytes >= (int64_t)sizeof head)
        TDMI_TRY(tdmi_storage_read(opened.file, 0, head, sizeof head, err));
    if (head[0] == 0x1f && head[1] == 0x8b) {
        TDMI_TRY(tdmi_gunzip(opened.file, limit_bytes, is_beginning, &opened.memory, err));
        opened.is_in_memory = true;
        opened.size_bytes = (int64_t)opened.memory.length_bytes;
        opened.is_cut = is_beginning && opened.size_bytes >= limit_bytes;
        tdmi_storage_close(opened.file);
        opened.file = NULL;
    }
    *records = opened;
    opened = (struct tdmi_records){0};
    return TDM_OK;
}

tdm_status tdmi_records_open(struct tdmi_records *records, const char *path, tdm_error *err)
{
    return open_records(records, path, TDMI_RECORDS_GZIP_LIMIT, false, err);
}

tdm_status tdmi_records_open_beginning(struct tdmi_records *records, const char *path,
                                       int64_t limit_bytes, tdm_error *err)
{
    return open_records(records, path, limit_bytes, true, err);
}

void tdmi_records_lend(struct tdmi_records *records, const void *bytes, size_t length_bytes,
                       const char *path)
{
    *records = (struct tdmi_records){
        .lent = bytes, .is_in_memory = true, .path = path, .size_bytes = (int64_t)length_bytes};
}

void tdmi_records_close(struct tdmi_records *records)
{
    tdmi_storage_close(records->file);
    tdmi_text_release(&records->memory);
    *records = (struct tdmi_records){0};
}

tdm_status tdmi_records_read(const struct tdmi_records *records, int64_t offset, void *bytes,
                             size_t length_bytes, tdm_error *err)
{
    if (!records->is_in_memory)
        return tdmi_storage_read(records->file, offset, bytes, length_bytes, err);
    if (offset > records->size_bytes || (int64_t)length_bytes > records->size_bytes - offset)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' ends at byte %lld%s, before the %zu bytes that should stand at byte "
                        "%lld",
                        records->path, (long long)records->size_bytes,
                        records->lent ? "" : " of what it holds compressed", length_bytes,
                        (long long)offset);
    if (length_bytes > 0)
        memcpy(bytes,
               (records->lent ? (const char *)records->lent : records->memory.bytes) + offset,
               length_bytes);
    return TDM_OK;
}

void tdmi_records_picture_head(tdmi_text *text, int channels, int64_t width, int64_t height)
{
    tdmi_text_clear(text);
    tdmi_text_printf(text, "P%c\n%lld %lld\n255\n", channels == 1 ? '5' : '6', (long long)width,
                     (long long)height);
}
