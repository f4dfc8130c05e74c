/* Paths in an arena, sorted by bytes. */
#include "data/audit/quarantine.h"

#include "base/arena.h"
#include "base/file/file.h"
#include "base/text/json.h"
#include "data/source/list_file.h"
#include "io/storage/storage.h"
#include <stdlib.h>

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
    TDMI_AT_END(tdmi_quarantine_free_at) tdmi_quarantine *list = NULL;
    const enum tdmi_file_kind kind = tdmi_file_kind_of(path);
    if (kind == TDMI_FILE_FOLDER)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "cannot write the quarantine list %s: it is a folder; name a file", path);
    if (kind != TDMI_FILE_REGULAR)
        return TDM_OK; /* writing reports what is wrong, if anything is */
    if (is_one_file(path, source))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "cannot write the quarantine list %s: it is the source that is checked; "
                        "name another file",
                        path);
    const tdm_status status = tdmi_quarantine_read(path, &list, NULL);
    if (status == TDM_E_INPUT || (status == TDM_OK && !list->is_of_audit))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "cannot write the quarantine list %s: it exists and audit did not write "
                        "it; name a new file, or an older list of audit's to replace",
                        path);
    return TDM_OK;
}

static tdm_status write_line(const struct tdm_audit_file *file, tdmi_text *text, tdm_error *err)
{
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *json = tdm_json_writer_new(0);
    const char *line;
    tdm_json_object_begin(json, NULL);
    tdm_json_string(json, "path", file->path);
    tdm_json_string(json, "verdict", tdm_verdict_word(file->verdict));
    tdm_json_string(json, "reason", file->reason);
    tdm_json_object_end(json);
    TDMI_TRY(tdm_json_finish(json, &line, NULL, err));
    tdmi_text_printf(text, "%s\n", line);
    return tdmi_text_status(text, err);
}

tdm_status tdmi_quarantine_write(const char *path, const struct tdm_audit *audit, bool is_strict,
                                 tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    for (int64_t i = 0; i < audit->images; i++)
        if (tdm_verdict_is_bad(audit->files[i].verdict) ||
            (is_strict && audit->files[i].verdict == TDM_VERDICT_DAMAGED))
            TDM_TRY(write_line(&audit->files[i], &text, err), err,
                    "cannot write the quarantine list %s", path);
    return TDM_WRAP(err, tdmi_file_write(path, tdmi_text_string(&text), text.length_bytes, err),
                    "cannot write the quarantine list %s", path);
}

/* ---- reading -----------------------------------------------------------------------------------
 */

/* The object has a verdict, and nothing that makes it a row of a source's list. */
static bool is_of_audit(const tdm_json_value *object)
{
    for (size_t i = 0; i < tdm_json_count(object); i++) {
        const enum tdmi_list_field field = tdmi_list_field_named(tdm_json_key_at(object, i));
        if (field == TDMI_LIST_LABEL || field == TDMI_LIST_PART)
            return false;
    }
    return *tdm_json_as_string(tdm_json_member(object, "verdict"), "") != '\0';
}

static tdm_status add_line(void *self, int64_t line, const tdm_json_value *object, tdm_error *err)
{
    struct tdmi_quarantine *quarantine = self;
    const char *path = tdm_json_as_string(tdm_json_member(object, "path"), "");
    if (*path == '\0')
        return TDM_FAIL(err, TDM_E_INPUT,
                        "line %lld has no \"path\"; an object such as {\"path\":\"cat/17.jpg\"} is "
                        "expected",
                        (long long)line);
    TDMI_TRY(TDMI_MAKE_ROOM(quarantine->paths, quarantine->capacity, quarantine->n, err));
    const char *copy = tdmi_arena_copy(&quarantine->arena, path);
    TDMI_CHECK_MEMORY(copy, err);
    quarantine->paths[quarantine->n++] = copy;
    quarantine->is_of_audit &= is_of_audit(object);
    return TDM_OK;
}

tdm_status tdmi_quarantine_read(const char *path, tdmi_quarantine **quarantine, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) void *bytes = NULL;
    TDMI_AT_END(tdmi_quarantine_free_at) tdmi_quarantine *made = NULL;
    size_t length_bytes = 0;
    *quarantine = NULL;
    TDM_TRY(tdmi_file_read(path, MOST_BYTES, &bytes, &length_bytes, err), err,
            "cannot read the quarantine list %s", path);
    TDMI_TRY(TDMI_NEW(made, 1, err));
    made->is_of_audit = true;
    TDM_TRY(tdmi_json_lines(path, bytes, length_bytes, add_line, made, err), err,
            "cannot use the quarantine list %s", path);
    if (made->n > 1)
        qsort(made->paths, (size_t)made->n, sizeof *made->paths, tdmi_compare_names);
    *quarantine = tdmi_take(&made);
    return TDM_OK;
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
                                        sizeof *quarantine->paths, tdmi_compare_names) != NULL;
}

/* A name that is not UTF-8 stands in the list as JSON spells it, with U+FFFD for what is none. */
static bool is_listed_as_json(const tdmi_quarantine *quarantine, const char *path)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text spelled = {0};
    bool is_utf8 = true;
    for (size_t rest = strlen(path); rest > 0;) {
        size_t length = tdmi_utf8_length(path, rest);
        tdmi_text_add(&spelled, length > 0 ? path : "\xef\xbf\xbd", length > 0 ? length : 3);
        is_utf8 = is_utf8 && length > 0;
        path += length > 0 ? length : 1;
        rest -= length > 0 ? length : 1;
    }
    return !is_utf8 && !spelled.is_broken && is_listed(quarantine, tdmi_text_string(&spelled));
}

bool tdmi_quarantine_has(const tdmi_quarantine *quarantine, const char *path)
{
    return is_listed(quarantine, path) || is_listed_as_json(quarantine, path);
}
