/* Opening weights of another program, and the names of their classes. */
#include "train/model/model_import.h"
#include "base/file/file.h"
#include "base/scope.h"
#include "base/text/text.h"
#include "weights/import/import.h"
#include "tandem/log.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool tdmi_model_is_ours(const char *file)
{
    /* Eight bytes of length, then metadata; ours begin with a checksum and this. */
    static const char mark[] = "\"format\":\"tandem\"";
    char head[256] = "";
    FILE *opened = fopen(file, "rb");
    if (!opened)
        return true; /* the reader of models says why */
    size_t n = fread(head, 1, sizeof head - 1, opened);
    (void)fclose(opened);
    for (size_t i = 8; i + sizeof mark <= n; i++)
        if (memcmp(head + i, mark, sizeof mark - 1) == 0)
            return true;
    return false;
}

bool tdmi_model_is_foreign_folder(const char *folder)
{
    char file[PATH_MAX];
    const int n = snprintf(file, sizeof file, "%s/model.json", folder);
    return n < (int)sizeof file && tdmi_file_kind_of(file) == TDMI_FILE_REGULAR;
}

tdm_status tdmi_model_check_ours(const struct tdm_model_options *options, tdm_error *err)
{
    const struct {
        const char *name;
        bool is_given;
    } rows[] = {{"model", options->network},
                {"fit", options->fit},
                {"crop-fraction", options->crop_fraction != 0.0},
                {"resample", options->resample},
                {"size", options->size != 0},
                {"scale", options->scale},
                {"padding", options->padding},
                {"classes", options->classes}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].is_given)
            return TDM_FAIL(err, TDM_E_USAGE,
                            "--%s is for weights of other programs; this is a model of tandem's, "
                            "which is used as it was trained",
                            rows[i].name);
    return TDM_OK;
}

/* ---- names of classes ------------------------------------------------------------------------ */

enum { most_classes = 1 << 20, most_names_bytes = 1 << 26 };

/* Cut into lines; empty ones at the end are none. */
static tdm_status cut(char *text, const char *path, tdmi_arena *arena, const char ***names, int *n,
                      tdm_error *err)
{
    int lines = 0;
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    if (lines >= most_classes)
        return TDM_FAIL(err, TDM_E_INPUT, "%s has %d lines; one a class, at most %d, is accepted",
                        path, lines, most_classes);
    const char **made = tdmi_arena_alloc(arena, (size_t)lines + 1, sizeof *made);
    if (!made)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the %d lines of %s", lines, path);
    *n = 0;
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        line[strcspn(line, "\r")] = '\0';
        made[(*n)++] = line;
    }
    while (*n > 0 && made[*n - 1][0] == '\0')
        --*n;
    for (int i = 0; i < *n; i++)
        if (made[i][0] == '\0')
            return TDM_FAIL(err, TDM_E_INPUT, "%s, line %d is empty; write a class name there",
                            path, i + 1);
    *names = made;
    return TDM_OK;
}

/* "7 seven" as line 7, counted from 0: what follows the number. */
static const char *after_number(const char *line, int number)
{
    char *end;
    if (line[0] < '0' || line[0] > '9')
        return NULL;
    long found = strtol(line, &end, 10);
    return found == number && *end == ' ' && end[1] != '\0' ? end + 1 : NULL;
}

/* One name a line; where every line begins with its own number, "0 cardboard", without it. The
 * names lie in the arena. */
static tdm_status read_class_names(const char *path, tdmi_arena *arena, const char ***names, int *n,
                                   tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) void *bytes = NULL;
    size_t length = 0;
    TDMI_TRY(tdmi_file_read(path, most_names_bytes, &bytes, &length, err));
    char *text = tdmi_arena_copy(arena, bytes);
    if (!text)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the %zu bytes of %s", length, path);
    bool is_text = strlen(text) == length;
    for (size_t i = 0, step = 1; is_text && i < length; i += step)
        is_text = (step = tdmi_utf8_length(text + i, length - i)) > 0;
    if (!is_text)
        return TDM_FAIL(err, TDM_E_INPUT, "%s is no UTF-8 text; write one class name a line", path);
    TDMI_TRY(cut(text, path, arena, names, n, err));
    bool is_numbered = true;
    for (int i = 0; i < *n && is_numbered; i++)
        is_numbered = after_number((*names)[i], i) != NULL;
    for (int i = 0; i < *n && is_numbered; i++)
        (*names)[i] = after_number((*names)[i], i);
    return TDM_OK;
}

/* ---- import ---------------------------------------------------------------------------------- */

static void log_note(const char *note)
{
    const size_t length = sizeof TDMI_IMPORT_WARNING - 1;
    if (strncmp(note, TDMI_IMPORT_WARNING, length) == 0)
        tdm_log(TDM_LOG_WARNING, "%s", note + length);
    else
        tdm_log(TDM_LOG_INFO, "%s", note);
}

/* All but the graph lies in the importer's arena, which the model takes over. */
tdm_status tdmi_model_import(const char *file, const struct tdm_model_options *options,
                             struct tdmi_model_file *model, tdm_error *err)
{
    TDMI_AT_END(tdmi_weights_close_at) tdmi_weights *weights = NULL;
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    struct tdmi_import_request request = {.network = options->network,
                                          .input = {.fit = options->fit,
                                                    .filter = options->resample,
                                                    .scale = options->scale,
                                                    .padding = options->padding,
                                                    .crop_fraction = options->crop_fraction,
                                                    .size = options->size}};
    struct tdmi_import import;
    const char **names = NULL;
    TDMI_TRY(tdmi_weights_open(file, &weights, err));
    if (options->classes)
        TDM_TRY(read_class_names(options->classes, &arena, &names, &request.n_classes, err), err,
                "reading the names of the classes");
    request.classes = names;
    TDMI_TRY(tdmi_import(weights, &request, &import, err));
    for (int i = 0; i < import.n_notes; i++)
        log_note(import.notes[i]);
    *model = (struct tdmi_model_file){
        .network = import.network,
        .graph = import.graph,
        .shard = import.shard,
        .n_classes = import.n_classes,
        .classes = import.classes,
        .is_unnamed = import.is_unnamed,
        .params = import.params,
        .states = import.states,
        .optimizer = "",
        .lineage = import.lineage,
        .arena = import.arena,
    };
    return TDM_OK;
}
