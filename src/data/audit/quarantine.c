/* Paths in an arena, sorted by bytes. */
#include "data/audit/quarantine.h"

#include "base/arena.h"
#include "base/file/file.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "data/source/list_file.h"
#include "io/storage/storage.h"
#include "tandem/json.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 30 };

struct tdmi_quarantine {
    tdmi_arena arena;
    const char **paths;
    int64_t n, capacity;
    bool is_of_audit; /* every line is one that audit writes */
};

/* ---- writing -----------------------------------------------------------------------------------
 */

/* Is it one file, however it is named? */
static bool is_one_file(const char *a, const char *b)
{
    struct tdmi_place first, second;
    return tdmi_storage_look(a, &first, NULL) == TDM_OK &&
           tdmi_storage_look(b, &second, NULL) == TDM_OK &&
           (first.identity[0] != 0 || first.identity[1] != 0) &&
           memcmp(first.identity, second.identity, sizeof first.identity) == 0;
}

/* prepare and train read the option of this name, so a list of another kind may well be named: one
 * that a person made, or a source, whose lines have a "path" too. */
tdm_status tdmi_quarantine_check_target(const char *path, const char *source, tdm_error *err)
{
    const enum tdmi_file_kind kind = tdmi_file_kind_of(path);
    tdmi_quarantine *list = NULL;
    if (kind == TDMI_FILE_FOLDER)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "cannot write the quarantine list %s: it is a folder; a file is wanted",
                        path);
    if (kind != TDMI_FILE_REGULAR)
        return TDM_OK; /* writing says what is wrong, if anything is */
    if (is_one_file(path, source))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "cannot write the quarantine list %s: it is the source that is looked at; "
                        "another file is wanted",
                        path);
    const tdm_status status = tdmi_quarantine_read(path, &list, NULL);
    const bool is_older = status == TDM_OK && list->is_of_audit;
    tdmi_quarantine_free(list);
    if (status == TDM_E_INPUT || (status == TDM_OK && !is_older))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "cannot write the quarantine list %s: it is there and audit did not write "
                        "it; a new file, or an older list of audit's to replace, is wanted",
                        path);
    return TDM_OK;
}

static tdm_status write_line(const struct tdm_audit_file *file, tdmi_text *text, tdm_error *err)
{
    const char *line;
    tdm_json_writer *json = tdm_json_writer_new(0);
    tdm_json_object_begin(json, NULL);
    tdm_json_string(json, "path", file->path);
    tdm_json_string(json, "verdict", tdm_verdict_word(file->verdict));
    tdm_json_string(json, "reason", file->reason);
    tdm_json_object_end(json);
    tdm_status status = tdm_json_finish(json, &line, NULL, err);
    if (status == TDM_OK)
        tdmi_text_printf(text, "%s\n", line);
    tdm_json_writer_free(json);
    return status;
}

tdm_status tdmi_quarantine_write(const char *path, const struct tdm_audit *audit, bool is_strict,
                                 tdm_error *err)
{
    tdmi_text text = {0};
    tdm_status status = TDM_OK;
    for (int64_t i = 0; i < audit->images && status == TDM_OK; i++)
        if (tdm_verdict_is_bad(audit->files[i].verdict) ||
            (is_strict && audit->files[i].verdict == TDM_VERDICT_DAMAGED))
            status = write_line(&audit->files[i], &text, err);
    if (status == TDM_OK && text.is_broken)
        status = TDM_FAIL(err, TDM_E_MEMORY, "no memory for a list of %lld files",
                          (long long)audit->bad);
    if (status == TDM_OK)
        status = tdmi_file_write(path, tdmi_text_string(&text), text.length_bytes, err);
    tdmi_text_release(&text);
    return TDM_WRAP(err, status, "cannot write the quarantine list %s", path);
}

/* ---- reading -----------------------------------------------------------------------------------
 */

static tdm_status add_path(struct tdmi_quarantine *quarantine, const char *path, tdm_error *err)
{
    if (!TDMI_GROW(quarantine->paths, quarantine->capacity, quarantine->n))
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for more than %lld paths",
                        (long long)quarantine->n);
    const char *copy = tdmi_arena_copy(&quarantine->arena, path);
    if (!copy)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the path %s", path);
    quarantine->paths[quarantine->n++] = copy;
    return TDM_OK;
}

/* It has a verdict, and nothing that makes it a row of a source's list. */
static bool is_of_audit(const tdm_json_value *object)
{
    for (size_t i = 0; i < tdm_json_count(object); i++) {
        const enum tdmi_list_field field = tdmi_list_field_named(tdm_json_key_at(object, i));
        if (field == TDMI_LIST_LABEL || field == TDMI_LIST_PART)
            return false;
    }
    return *tdm_json_as_string(tdm_json_member(object, "verdict"), "") != '\0';
}

static tdm_status read_line(struct tdmi_quarantine *quarantine, const char *line, size_t bytes,
                            tdm_error *err)
{
    tdm_json_document *document = NULL;
    tdm_status status = tdm_json_read(line, bytes, "it", &document, err);
    if (status != TDM_OK)
        return status;
    const tdm_json_value *path = tdm_json_member(tdm_json_root(document), "path");
    const char *text = tdm_json_as_string(path, "");
    status = *text ? add_path(quarantine, text, err)
                   : TDM_FAIL(err, TDM_E_INPUT,
                              "it has no \"path\"; an object such as "
                              "{\"path\":\"cat/17.jpg\"} is expected");
    if (status == TDM_OK && !is_of_audit(tdm_json_root(document)))
        quarantine->is_of_audit = false;
    tdm_json_document_free(document);
    return status;
}

static bool is_blank(const char *line, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
            return false;
    return true;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

tdm_status tdmi_quarantine_read(const char *path, tdmi_quarantine **quarantine, tdm_error *err)
{
    void *bytes = NULL;
    size_t length_bytes = 0;
    int64_t number = 0;
    tdm_status status = TDM_OK;
    *quarantine = NULL;
    TDM_TRY(tdmi_file_read(path, MOST_BYTES, &bytes, &length_bytes, err), err,
            "cannot read the quarantine list %s", path);
    struct tdmi_quarantine *made = tdmi_alloc(1, sizeof *made);
    if (!made) {
        status = TDM_FAIL(err, TDM_E_MEMORY, "no memory for the quarantine list %s", path);
        goto out;
    }
    tdmi_arena_init(&made->arena, 0);
    made->is_of_audit = true;
    const char *at = bytes, *end = at + length_bytes;
    while (at < end && status == TDM_OK) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        number++;
        if (!is_blank(at, (size_t)(stop - at)))
            status =
                TDM_WRAP(err, read_line(made, at, (size_t)(stop - at), err),
                         "cannot use the quarantine list %s: line %lld", path, (long long)number);
        at = stop + 1;
    }
    if (status == TDM_OK) {
        if (made->n > 1)
            qsort(made->paths, (size_t)made->n, sizeof *made->paths, compare_paths);
        *quarantine = made;
        made = NULL;
    }
out:
    tdmi_quarantine_free(made);
    tdmi_free(bytes);
    return status;
}

void tdmi_quarantine_free(tdmi_quarantine *quarantine)
{
    if (!quarantine)
        return;
    tdmi_free(quarantine->paths);
    tdmi_arena_release(&quarantine->arena);
    tdmi_free(quarantine);
}

static bool is_listed(const tdmi_quarantine *quarantine, const char *path)
{
    return quarantine->n > 0 && bsearch(&path, quarantine->paths, (size_t)quarantine->n,
                                        sizeof *quarantine->paths, compare_paths) != NULL;
}

/* A name that is not UTF-8 stands in the list as JSON spells it, with U+FFFD for what is none. */
static bool is_listed_as_json(const tdmi_quarantine *quarantine, const char *path)
{
    tdmi_text spelled = {0};
    size_t rest = strlen(path);
    bool is_utf8 = true;
    while (rest > 0) {
        size_t length = tdmi_utf8_length(path, rest);
        if (length > 0)
            tdmi_text_add(&spelled, path, length);
        else
            tdmi_text_add(&spelled, "\xef\xbf\xbd", 3);
        is_utf8 = is_utf8 && length > 0;
        path += length > 0 ? length : 1;
        rest -= length > 0 ? length : 1;
    }
    bool answer =
        !is_utf8 && !spelled.is_broken && is_listed(quarantine, tdmi_text_string(&spelled));
    tdmi_text_release(&spelled);
    return answer;
}

bool tdmi_quarantine_has(const tdmi_quarantine *quarantine, const char *path)
{
    return is_listed(quarantine, path) || is_listed_as_json(quarantine, path);
}
