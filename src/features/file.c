/*
 * Reading a file of rows. Sizes are checked against the size of the file before anything is
 * allocated, so the promises of a damaged head cost nothing.
 */
#include "features/file.h"

#include "base/system/multiversion.h"
#include "base/text/text.h"
#include "tensor/half.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REMEDY "; remove that file, and its rows are computed again"

void tdmi_store_drop_remedy(char *text)
{
    char *remedy = strstr(text, REMEDY);
    if (remedy)
        memmove(remedy, remedy + strlen(REMEDY), strlen(remedy + strlen(REMEDY)) + 1);
}

size_t tdmi_store_row_bytes(int width, enum tdmi_dtype precision)
{
    return (size_t)width * tdmi_dtype_bytes(precision);
}

int64_t tdmi_store_file_bytes(int width, enum tdmi_dtype precision, int64_t n_rows)
{
    const size_t each = tdmi_store_row_bytes(width, precision) + sizeof(struct tdmi_store_entry);
    return TDMI_STORE_HEAD_BYTES + n_rows * (int64_t)each;
}

bool tdmi_store_is_rows_name(const char *name)
{
    return name[0] != '.' && tdmi_ends_with(name, TDMI_STORE_ENDING);
}

/* False with errno 0: the file ends before. */
static bool read_at(int descriptor, void *bytes, size_t length_bytes, int64_t offset)
{
    for (size_t at = 0; at < length_bytes;) {
        ssize_t n =
            pread(descriptor, (char *)bytes + at, length_bytes - at, (off_t)offset + (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            errno = 0;
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

static const char *why_not(void)
{
    return errno == 0 ? "it was cut short" : strerror(errno);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Check the head, before its checksum can be verified. */
static tdm_status check_head(const char *path, const struct tdmi_store_head *head,
                             int64_t size_bytes, tdm_error *err)
{
    if (memcmp(head->magic, tdmi_store_magic, sizeof head->magic) != 0)
        return TDM_FAIL(err, TDM_E_INPUT, "%s is no file of rows" REMEDY, path);
    if (head->format_version != TDMI_STORE_FORMAT_VERSION)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "%s has format_version %u, and this program reads %d" REMEDY
                        ", or use the program that wrote it",
                        path, (unsigned)head->format_version, TDMI_STORE_FORMAT_VERSION);
    const bool is_known =
        head->precision == TDMI_STORE_CODE_F32 || head->precision == TDMI_STORE_CODE_F16;
    if (!is_known || head->width < 1 || head->width > TDMI_STORE_MAX_WIDTH || head->n_rows < 1 ||
        head->n_rows > INT32_MAX)
        return TDM_FAIL(err, TDM_E_INPUT, "the head of %s is damaged" REMEDY, path);
    const int64_t expected = tdmi_store_file_bytes(
        (int)head->width, head->precision == TDMI_STORE_CODE_F16 ? TDMI_DTYPE_F16 : TDMI_DTYPE_F32,
        (int64_t)head->n_rows);
    if (expected != size_bytes)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "%s is damaged: its head promises %llu rows, which take %lld bytes, and "
                        "there are %lld" REMEDY,
                        path, (unsigned long long)head->n_rows, (long long)expected,
                        (long long)size_bytes);
    return TDM_OK;
}

static tdm_status read_index(struct tdmi_store_file *file, const struct tdmi_store_head *head,
                             tdm_error *err)
{
    const size_t n = (size_t)head->n_rows, index_bytes = n * sizeof *file->entries;
    TDMI_TRY(TDMI_NEW(file->entries, n, err));
    if (!read_at(file->descriptor, file->entries, index_bytes,
                 file->size_bytes - (int64_t)index_bytes))
        return TDM_FAIL(err, TDM_E_SYSTEM, "cannot read %s: %s", file->path, why_not());
    if (tdmi_store_checksum(*head, file->entries) != head->checksum)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "%s is damaged: its head and index do not have the checksum that was "
                        "written" REMEDY,
                        file->path);
    return TDM_OK;
}

/* Intact, but is it ours? */
static tdm_status check_form(const char *path, const struct tdmi_store_head *head,
                             const struct tdmi_store_form *form, tdm_error *err)
{
    if (memcmp(head->key, form->key, sizeof head->key) != 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "%s has rows of another key than the folder it lies in" REMEDY, path);
    if ((int)head->width != form->width)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "%s has rows of %u floats; expected %d under the same key", path,
                        (unsigned)head->width, form->width);
    return TDM_OK;
}

static tdm_status open_file(struct tdmi_store_file *file, const struct tdmi_store_form *form,
                            tdm_error *err)
{
    struct stat facts;
    struct tdmi_store_head head;
    file->descriptor = open(file->path, O_RDONLY | O_CLOEXEC);
    if (file->descriptor < 0 || fstat(file->descriptor, &facts) != 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "cannot open %s: %s", file->path, strerror(errno));
    if (!S_ISREG(facts.st_mode) || facts.st_size < (off_t)sizeof head)
        return TDM_FAIL(err, TDM_E_INPUT, "%s is no file of rows: it has no head" REMEDY,
                        file->path);
    file->size_bytes = facts.st_size;
    if (!read_at(file->descriptor, &head, sizeof head, 0))
        return TDM_FAIL(err, TDM_E_SYSTEM, "cannot read %s: %s", file->path, why_not());
    TDMI_TRY(check_head(file->path, &head, file->size_bytes, err));
    TDMI_TRY(read_index(file, &head, err));
    TDMI_TRY(check_form(file->path, &head, form, err));
    file->n_rows = (int64_t)head.n_rows;
    file->width = (int)head.width;
    file->precision = head.precision == TDMI_STORE_CODE_F16 ? TDMI_DTYPE_F16 : TDMI_DTYPE_F32;
    return TDM_OK;
}

tdm_status tdmi_store_file_open(const char *path, const struct tdmi_store_form *form,
                                struct tdmi_store_file **file, tdm_error *err)
{
    TDMI_AT_END(tdmi_store_file_close_at) struct tdmi_store_file *opened = NULL;
    const size_t path_bytes = strlen(path) + 1;
    *file = NULL;
    TDMI_TRY(TDMI_NEW(opened, 1, err));
    opened->descriptor = -1;
    TDMI_TRY(TDMI_NEW(opened->path, path_bytes, err));
    memcpy(opened->path, path, path_bytes);
    TDMI_TRY(open_file(opened, form, err));
    *file = tdmi_take(&opened);
    return TDM_OK;
}

void tdmi_store_file_close(struct tdmi_store_file *file)
{
    if (file == NULL)
        return;
    if (file->descriptor >= 0)
        close(file->descriptor);
    tdmi_free(file->entries);
    tdmi_free(file->path);
    tdmi_free(file);
}

/* ---- rows ------------------------------------------------------------------------------------ */

tdm_status tdmi_store_file_read_stored(const struct tdmi_store_file *file, int64_t row,
                                       void *stored, tdm_error *err)
{
    const size_t row_bytes = tdmi_store_row_bytes(file->width, file->precision);
    const struct tdmi_store_entry *entry = &file->entries[row];
    const int64_t offset = TDMI_STORE_HEAD_BYTES + row * (int64_t)row_bytes;
    if (!read_at(file->descriptor, stored, row_bytes, offset))
        return TDM_FAIL(err, errno == 0 ? TDM_E_INPUT : TDM_E_SYSTEM,
                        "cannot read row %lld of %s: %s%s", (long long)row, file->path, why_not(),
                        errno == 0 ? REMEDY : "");
    if (tdmi_store_check(entry->content, entry->view, stored, row_bytes) != entry->check)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "row %lld of %s (content %016llx, view %u) is damaged: it does not have "
                        "the checksum that was written" REMEDY,
                        (long long)row, file->path, (unsigned long long)entry->content,
                        (unsigned)entry->view);
    return TDM_OK;
}

/* The halves lie in the second half of the same memory: float i ends where half i of what is still
 * to be widened begins, or before. */
TDMI_MULTIVERSION
static void widen(float *values, int width)
{
    enum { block = 64 };
    const char *halves = (const char *)(values + width) - (size_t)width * sizeof(uint16_t);
    for (int first = 0; first < width; first += block) {
        uint16_t some[block];
        const int n = width - first < block ? width - first : block;
        memcpy(some, halves + (size_t)first * sizeof *some, (size_t)n * sizeof *some);
        for (int i = 0; i < n; i++)
            values[first + i] = tdmi_float_of_f16(some[i]);
    }
}

tdm_status tdmi_store_file_read(const struct tdmi_store_file *file, int64_t row, float *values,
                                tdm_error *err)
{
    if (file->precision == TDMI_DTYPE_F32)
        return tdmi_store_file_read_stored(file, row, values, err);
    char *halves = (char *)(values + file->width) - (size_t)file->width * sizeof(uint16_t);
    TDMI_TRY(tdmi_store_file_read_stored(file, row, halves, err));
    widen(values, file->width);
    return TDM_OK;
}
