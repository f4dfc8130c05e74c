/* The list of files: from a run folder, to JSON and back. */
#include "train/copies/manifest.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "io/storage/storage.h"
#include "track/run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FORMAT_VERSION = 1, MOST_BYTES = 1 << 20, KEY_DIGITS = 16 };

/* In a run folder; TDMI_RUN_KERNELS has more. The first must be there. */
static const char *const names[] = {
    "last.safetensors", "best.safetensors",    "outcomes.safetensors",
    "metrics.jsonl",    "samples.safetensors", "report.html",
};
enum { N_NAMES = sizeof names / sizeof names[0] };
static const char kernels[] = TDMI_RUN_KERNELS "/";

void tdmi_manifest_release(tdmi_manifest *manifest)
{
    for (int64_t i = 0; i < manifest->n; i++)
        if (manifest->files[i].fd >= 0)
            close(manifest->files[i].fd);
    tdmi_free(manifest->files);
    tdmi_arena_release(&manifest->arena);
    *manifest = (tdmi_manifest){0};
}

tdm_status tdmi_manifest_add(tdmi_manifest *manifest, struct tdmi_manifest_file file,
                             tdm_error *err)
{
    file.name = tdmi_arena_copy(&manifest->arena, file.name);
    TDMI_CHECK_MEMORY(file.name, err);
    TDMI_TRY(TDMI_MAKE_ROOM(manifest->files, manifest->capacity, manifest->n, err));
    manifest->files[manifest->n++] = file;
    return TDM_OK;
}

/* ---- a run folder ---------------------------------------------------------------------------- */

static tdm_status open_file(tdmi_manifest *manifest, const char *run, const char *name,
                            tdm_error *err)
{
    struct stat facts;
    const char *path = tdmi_path_join(&manifest->arena, run, name);
    TDMI_CHECK_MEMORY(path, err);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return TDM_OK;
    if (fd < 0 || fstat(fd, &facts) != 0) {
        const int why = errno;
        tdmi_close_at(&fd);
        return TDM_FAIL(err, TDM_E_SYSTEM, "cannot open '%s': %s", path, strerror(why));
    }
    const tdm_status status = tdmi_manifest_add(
        manifest, (struct tdmi_manifest_file){.name = name, .n_bytes = facts.st_size, .fd = fd},
        err);
    if (status != TDM_OK)
        close(fd);
    return status;
}

static tdm_status open_kernels(tdmi_manifest *manifest, const char *run, tdm_error *err)
{
    struct tdmi_folder_entry *entries = NULL;
    size_t n = 0;
    const char *folder = tdmi_path_join(&manifest->arena, run, kernels);
    TDMI_CHECK_MEMORY(folder, err);
    if (tdmi_file_kind_of(folder) == TDMI_FILE_FOLDER)
        TDMI_TRY(tdmi_folder_list(folder, &manifest->arena, &entries, &n, err));
    for (size_t i = 0; i < n; i++) {
        const char *name = tdmi_arena_printf(&manifest->arena, "%s%s", kernels, entries[i].name);
        TDMI_CHECK_MEMORY(name, err);
        if (entries[i].kind == TDMI_FILE_REGULAR && tdmi_manifest_is_known(name))
            TDMI_TRY(open_file(manifest, run, name, err));
    }
    return TDM_OK;
}

tdm_status tdmi_manifest_open_run(tdmi_manifest *manifest, const char *run, tdm_error *err)
{
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *record = NULL;
    TDMI_TRY(tdmi_run_read(run, NULL, &record, err));
    if (record)
        TDMI_TRY(open_file(manifest, run, names[0], err));
    if (manifest->n == 0)
        return TDM_OK;
    for (int i = 1; i < N_NAMES; i++)
        TDMI_TRY(open_file(manifest, run, names[i], err));
    TDMI_TRY(open_kernels(manifest, run, err));
    TDMI_TRY(open_file(manifest, run, TDMI_MANIFEST_RECORD, err));
    const tdm_json_value *started = tdm_json_member(tdm_json_root(record), "started");
    manifest->started = tdmi_arena_copy(&manifest->arena, tdm_json_as_string(started, ""));
    TDMI_CHECK_MEMORY(manifest->started, err);
    return TDM_OK;
}

bool tdmi_manifest_is_known(const char *name)
{
    const size_t length = sizeof kernels - 1;
    if (strncmp(name, kernels, length) == 0)
        return name[length] != '\0' && name[length] != '.' && !strchr(name + length, '/');
    bool is_known = strcmp(name, TDMI_MANIFEST_RECORD) == 0;
    for (int i = 0; i < N_NAMES; i++)
        is_known = is_known || strcmp(name, names[i]) == 0;
    return is_known;
}

/* ---- keys ------------------------------------------------------------------------------------ */

const char *tdmi_manifest_key(const struct tdmi_manifest_file *file, tdmi_arena *arena)
{
    char *key = tdmi_arena_printf(arena, "%016" PRIx64 "-%s", file->hash, file->name);
    for (char *at = key; at && (at = strchr(at, '/')) != NULL;)
        *at = '-';
    return key;
}

const char *tdmi_manifest_place(const struct tdmi_manifest_file *file, const char *url,
                                tdmi_arena *arena)
{
    const char *key = tdmi_manifest_key(file, arena);
    return key ? tdmi_path_join(arena, url, key) : NULL;
}

bool tdmi_manifest_is_key(const char *name)
{
    return strspn(name, "0123456789abcdef") == KEY_DIGITS && name[KEY_DIGITS] == '-';
}

bool tdmi_manifest_has(const tdmi_manifest *manifest, const struct tdmi_manifest_file *file)
{
    for (int64_t i = 0; i < manifest->n; i++)
        if (manifest->files[i].hash == file->hash &&
            strcmp(manifest->files[i].name, file->name) == 0)
            return true;
    return false;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

struct memory {
    const char *bytes;
};

static tdm_status read_memory(void *self, int64_t offset, void *bytes, size_t length_bytes,
                              tdm_error *err)
{
    (void)err;
    memcpy(bytes, ((const struct memory *)self)->bytes + offset, length_bytes);
    return TDM_OK;
}

tdm_status tdmi_manifest_write(const tdmi_manifest *manifest, const char *url, tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena scratch = {0};
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *writer = tdm_json_writer_new(2);
    struct memory memory = {NULL};
    size_t n_bytes = 0;
    const char *path = tdmi_path_join(&scratch, url, TDMI_MANIFEST_NAME);
    TDMI_CHECK_MEMORY(path, err);
    tdm_json_object_begin(writer, NULL);
    tdm_json_integer(writer, "format_version", FORMAT_VERSION);
    tdm_json_string(writer, "started", manifest->started);
    tdm_json_integer(writer, "step", manifest->step);
    tdm_json_array_begin(writer, "files");
    for (int64_t i = 0; i < manifest->n; i++) {
        const struct tdmi_manifest_file *file = &manifest->files[i];
        char digits[KEY_DIGITS + 1];
        snprintf(digits, sizeof digits, "%016" PRIx64, file->hash);
        tdm_json_object_begin(writer, NULL);
        tdm_json_string(writer, "name", file->name);
        tdm_json_integer(writer, "bytes", file->n_bytes);
        tdm_json_string(writer, "xxh64", digits);
        tdm_json_object_end(writer);
    }
    tdm_json_array_end(writer);
    tdm_json_object_end(writer);
    TDMI_TRY(tdm_json_finish(writer, &memory.bytes, &n_bytes, err));
    return tdmi_storage_put(path, &(struct tdmi_byte_source){&memory, read_memory},
                            (int64_t)n_bytes, err);
}

static tdm_status read_file(const tdm_json_value *value, tdmi_manifest *manifest, tdm_error *err)
{
    const char *name = tdm_json_as_string(tdm_json_member(value, "name"), "");
    const char *digits = tdm_json_as_string(tdm_json_member(value, "xxh64"), "");
    const int64_t n_bytes = tdm_json_as_integer(tdm_json_member(value, "bytes"), -1);
    if (!tdmi_manifest_is_known(name) || n_bytes < 0 || strlen(digits) != KEY_DIGITS ||
        strspn(digits, "0123456789abcdef") != KEY_DIGITS)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "its file '%s' is no file of a run, or lacks its size or hash", name);
    return tdmi_manifest_add(
        manifest,
        (struct tdmi_manifest_file){
            .name = name, .hash = strtoull(digits, NULL, 16), .n_bytes = n_bytes, .fd = -1},
        err);
}

static tdm_status parse(const tdmi_text *text, const char *path, tdmi_manifest *manifest,
                        tdm_error *err)
{
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    TDMI_TRY(tdm_json_read(tdmi_text_string(text), text->length_bytes, path, &document, err));
    const tdm_json_value *root = tdm_json_root(document), *files = tdm_json_member(root, "files");
    const int64_t version = tdm_json_as_integer(tdm_json_member(root, "format_version"), 0);
    if (version != FORMAT_VERSION)
        return TDM_FAIL(err, TDM_E_INPUT, "its format_version is %lld; %d is accepted",
                        (long long)version, FORMAT_VERSION);
    for (size_t i = 0; i < tdm_json_count(files); i++)
        TDMI_TRY(read_file(tdm_json_at(files, i), manifest, err));
    manifest->step = tdm_json_as_integer(tdm_json_member(root, "step"), 0);
    manifest->started =
        tdmi_arena_copy(&manifest->arena, tdm_json_as_string(tdm_json_member(root, "started"), ""));
    manifest->text_hash = tdmi_xxh64_of(tdmi_text_string(text), text->length_bytes, 0) | 1;
    TDMI_CHECK_MEMORY(manifest->started, err);
    return TDM_OK;
}

tdm_status tdmi_manifest_read(const char *url, tdmi_manifest *manifest, tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena scratch = {0};
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    struct tdmi_place place;
    const char *path = tdmi_path_join(&scratch, url, TDMI_MANIFEST_NAME);
    TDMI_CHECK_MEMORY(path, err);
    tdmi_manifest_release(manifest);
    TDMI_TRY(tdmi_storage_look(path, &place, err));
    if (place.kind == TDMI_FILE_MISSING)
        return TDM_OK;
    TDMI_TRY(tdmi_storage_read_file(path, MOST_BYTES, &text, err));
    return TDM_WRAP(err, parse(&text, path, manifest, err), "reading %s", path);
}
