/* The curve of a run, from metrics.jsonl: a line at a time, so the file may be as long as it is. */
#include "base/file/file.h"
#include "base/memory.h"
#include "train/report/review.h"

#include <string.h>

enum { most_bytes = 1 << 28 };

static bool read_line(const char *line, size_t length_bytes, struct tdmi_review_epoch *epoch)
{
    tdm_json_document *document = NULL;
    bool is_epoch = false;
    if (tdm_json_read(line, length_bytes, "a line of metrics.jsonl", &document, NULL) == TDM_OK) {
        const tdm_json_value *root = tdm_json_root(document);
        is_epoch = strcmp(tdm_json_as_string(tdm_json_member(root, "event"), ""), "epoch") == 0;
        *epoch = (struct tdmi_review_epoch){
            .epoch = (int)tdm_json_as_integer(tdm_json_member(root, "epoch"), 0),
            .is_best = tdm_json_as_bool(tdm_json_member(root, "best"), false),
            .learning_rate = tdm_json_as_number(tdm_json_member(root, "learning_rate"), 0.0),
            .train = tdmi_review_score(tdm_json_member(root, "train")),
            .val = tdmi_review_score(tdm_json_member(root, "val")),
        };
    }
    tdm_json_document_free(document);
    return is_epoch && epoch->epoch > 0;
}

tdm_status tdmi_review_read_epochs(const char *text, size_t length_bytes, tdmi_arena *arena,
                                   struct tdmi_review_epoch **epochs, size_t *n_epochs,
                                   tdm_error *err)
{
    size_t n_lines = 0;
    const char *end = text + length_bytes;
    *n_epochs = 0;
    for (const char *at = text; at < end; at++)
        n_lines += *at == '\n';
    *epochs = tdmi_arena_alloc(arena, n_lines + 1, sizeof **epochs);
    if (!*epochs)
        return TDM_FAIL(err, TDM_E_MEMORY, "reading %zu lines: out of memory", n_lines);
    /* A last line without its end is being written. */
    for (const char *at = text; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop)
            break;
        *n_epochs += read_line(at, (size_t)(stop - at), &(*epochs)[*n_epochs]);
        at = stop + 1;
    }
    return TDM_OK;
}

tdm_status tdmi_review_epochs(const char *run, tdmi_arena *arena, struct tdmi_review_epoch **epochs,
                              size_t *n_epochs, tdm_error *err)
{
    const char *path = tdmi_path_join(arena, run, "metrics.jsonl");
    void *bytes = NULL;
    size_t length_bytes = 0;
    *epochs = NULL;
    *n_epochs = 0;
    if (!path)
        return TDM_FAIL(err, TDM_E_MEMORY, "reading the curve of %s: out of memory", run);
    if (tdmi_file_kind_of(path) == TDMI_FILE_MISSING)
        return TDM_OK;
    TDM_TRY(tdmi_file_read(path, most_bytes, &bytes, &length_bytes, err), err,
            "reading the curve of %s", run);
    tdm_status status = tdmi_review_read_epochs(bytes, length_bytes, arena, epochs, n_epochs, err);
    tdmi_free(bytes);
    return TDM_WRAP(err, status, "reading the curve of %s", run);
}

tdm_status tdmi_review_last_epoch(const char *run, int *epoch, tdm_error *err)
{
    struct tdmi_review_epoch *epochs;
    size_t n;
    tdmi_arena arena;
    tdmi_arena_init(&arena, 0);
    const tdm_status status = tdmi_review_epochs(run, &arena, &epochs, &n, err);
    *epoch = status == TDM_OK && n > 0 ? epochs[n - 1].epoch : 0;
    tdmi_arena_release(&arena);
    return status;
}
