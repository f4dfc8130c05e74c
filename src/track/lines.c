/* JSON lines: see lines.h. After a failed write the file is cut back to its last whole line. */
#include "track/lines.h"
#include "base/file/file.h"
#include "base/text/json.h"
#include "tandem/log.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const size_t limit_bytes = (size_t)1 << 30;

void tdmi_lines_init(tdmi_lines *lines, const char *path)
{
    *lines = (tdmi_lines){.path = path, .file = -1};
}

void tdmi_lines_release(tdmi_lines *lines)
{
    if (lines->path != NULL)
        tdmi_close_at(&lines->file);
    tdmi_text_release(&lines->line);
    *lines = (tdmi_lines){.file = -1};
}

static tdm_status refused(const tdmi_lines *lines, const char *what, tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_SYSTEM, "cannot %s %s: %s", what, lines->path, strerror(errno));
}

/* Find the end of the last whole line, searching backwards. */
static bool find_end(int file, uint64_t *end_bytes)
{
    char block[4096];
    uint64_t at = *end_bytes;
    while (at > 0) {
        size_t n = at < sizeof block ? (size_t)at : sizeof block;
        if (pread(file, block, n, (off_t)(at - n)) != (ssize_t)n)
            return false;
        const char *newline = memrchr(block, '\n', n);
        if (newline != NULL) {
            *end_bytes = at - n + (size_t)(newline - block) + 1;
            return true;
        }
        at -= n;
    }
    *end_bytes = 0;
    return true;
}

static tdm_status open_lines(tdmi_lines *lines, tdm_error *err)
{
    struct stat facts;
    if (lines->file >= 0)
        return TDM_OK;
    TDMI_AT_END(tdmi_close_at)
    int file = open(lines->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0)
        return refused(lines, "open", err);
    bool is_right = fstat(file, &facts) == 0;
    uint64_t size = is_right ? (uint64_t)facts.st_size : 0;
    lines->end_bytes = size;
    is_right = is_right && find_end(file, &lines->end_bytes) &&
               (size == lines->end_bytes || ftruncate(file, (off_t)lines->end_bytes) == 0);
    if (!is_right)
        return refused(lines, "find the last line of", err);
    lines->file = file;
    file = -1;
    return TDM_OK;
}

tdm_status tdmi_lines_add(tdmi_lines *lines, const char *json, size_t length_bytes, tdm_error *err)
{
    if (length_bytes == 0 || memchr(json, '\n', length_bytes) != NULL)
        return TDM_FAIL(err, TDM_E_BUG, "a line for %s is empty or has a newline in it",
                        lines->path);
    TDMI_TRY(open_lines(lines, err));
    tdmi_text_clear(&lines->line);
    tdmi_text_add(&lines->line, json, length_bytes);
    tdmi_text_add(&lines->line, "\n", 1);
    if (lines->line.is_broken) {
        tdmi_text_release(&lines->line); /* so that a later line has another chance */
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for a line of %s", lines->path);
    }
    ssize_t n;
    do
        n = pwrite(lines->file, lines->line.bytes, lines->line.length_bytes,
                   (off_t)lines->end_bytes);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)lines->line.length_bytes) {
        int reason = n < 0 ? errno : ENOSPC; /* a short write is what a filling disk gives first */
        /* If this fails too, the next line still overwrites the torn one. */
        (void)!ftruncate(lines->file, (off_t)lines->end_bytes);
        errno = reason;
        return refused(lines, "add a line to", err);
    }
    lines->end_bytes += (uint64_t)n;
    return TDM_OK;
}

tdm_status tdmi_lines_sync(tdmi_lines *lines, tdm_error *err)
{
    if (lines->file < 0)
        return TDM_OK;
    return fdatasync(lines->file) == 0 ? TDM_OK : refused(lines, "sync", err);
}

enum verdict { KEEP, LATER, DAMAGED, UNKNOWN };

/* end: of the lines to keep; it moves before the step at the first line that will be written again.
 */
static enum verdict classify(const char *line, size_t length_bytes, struct tdmi_lines_end *end)
{
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    tdm_status status = tdm_json_read(line, length_bytes, "line", &document, NULL);
    if (status != TDM_OK)
        return status == TDM_E_MEMORY ? UNKNOWN : DAMAGED;
    const tdm_json_value *root = tdm_json_root(document);
    int64_t found = tdm_json_as_integer(tdm_json_member(root, "step"), INT64_MIN);
    const char *event = tdm_json_as_string(tdm_json_member(root, "event"), "");
    if (end->is_inside_epoch && found == end->step && strcmp(event, "epoch") == 0) {
        end->is_inside_epoch = false;
        end->step--;
    }
    return tdm_json_kind_of(root) != TDM_JSON_OBJECT ? DAMAGED : found <= end->step ? KEEP : LATER;
}

tdm_status tdmi_lines_cut(tdmi_lines *lines, struct tdmi_lines_end end, tdm_error *err)
{
    if (tdmi_file_kind_of(lines->path) == TDMI_FILE_MISSING)
        return TDM_OK;
    TDMI_AT_END(tdmi_free_at) void *bytes = NULL;
    TDMI_AT_END(tdmi_text_release) tdmi_text kept = {0};
    size_t n_bytes = 0, n_damaged = 0;
    TDMI_TRY(tdmi_file_read(lines->path, limit_bytes, &bytes, &n_bytes, err));
    const char *after = (const char *)bytes + n_bytes;
    for (const char *line = bytes, *stop; line < after; line = stop + 1) {
        stop = memchr(line, '\n', (size_t)(after - line));
        if (stop == NULL) /* torn: the writer was killed, as every writer may be */
            break;
        enum verdict verdict = classify(line, (size_t)(stop - line), &end);
        if (verdict == KEEP)
            tdmi_text_add(&kept, line, (size_t)(stop - line) + 1);
        n_damaged += verdict == DAMAGED;
        kept.is_broken |= verdict == UNKNOWN;
    }
    if (n_damaged > 0)
        tdm_log(TDM_LOG_WARNING, "%s: %zu damaged lines are left out", lines->path, n_damaged);
    TDMI_TRY(tdmi_text_status(&kept, err));
    if (kept.length_bytes != n_bytes)
        TDMI_TRY(tdmi_file_write_in_folder(lines->path, tdmi_text_string(&kept), kept.length_bytes,
                                           err));
    tdmi_close_at(&lines->file); /* it may be another file now */
    lines->file = -1;
    return TDM_OK;
}
