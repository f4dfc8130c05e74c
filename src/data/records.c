/* pread with its short reads and interruptions put right, and the head of a bare picture. */
#include "data/records.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

tdm_status tdmi_records_open(struct tdmi_records *records, const char *path, tdm_error *err)
{
    struct stat found;
    /* Opening a pipe must not wait for its writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return TDM_FAIL(err, TDM_E_INPUT, "cannot open '%s': %s", path, strerror(errno));
    if (fstat(fd, &found) != 0 || !S_ISREG(found.st_mode)) {
        close(fd);
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' is not a regular file", path);
    }
    *records = (struct tdmi_records){.fd = fd + 1, .path = path, .size_bytes = found.st_size};
    return TDM_OK;
}

void tdmi_records_close(struct tdmi_records *records)
{
    if (records->fd > 0)
        close(records->fd - 1);
    *records = (struct tdmi_records){0};
}

tdm_status tdmi_records_read(const struct tdmi_records *records, int64_t offset, void *bytes,
                             size_t length_bytes, tdm_error *err)
{
    for (size_t done = 0; done < length_bytes;) {
        ssize_t got = pread(records->fd - 1, (char *)bytes + done, length_bytes - done,
                            (off_t)(offset + (int64_t)done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return TDM_FAIL(err, TDM_E_INPUT, "cannot read %zu bytes at byte %lld of '%s': %s",
                            length_bytes, (long long)offset, records->path, strerror(errno));
        if (got == 0)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "'%s' ends at byte %lld, before the %zu bytes that stand at byte %lld",
                            records->path, (long long)offset + (long long)done, length_bytes,
                            (long long)offset);
        done += (size_t)got;
    }
    return TDM_OK;
}

void tdmi_records_picture_head(tdmi_text *text, int channels, int64_t width, int64_t height)
{
    tdmi_text_clear(text);
    tdmi_text_printf(text, "P%c\n%lld %lld\n255\n", channels == 1 ? '5' : '6', (long long)width,
                     (long long)height);
}
