/*
 * Lists: the first byte says whether the rest is CSV or JSONL. Either the rows come out, each with
 * a path, or a sentence that names the line.
 */
#include "data/source/list_file.h"
#include "fuzz_files.h"

static tdm_status take_row(void *self, const struct tdmi_list_row *row, tdm_error *err)
{
    (void)err;
    int64_t *line = self;
    if (row->path[0] == '\0' || row->label == NULL || row->line <= *line)
        abort();
    *line = row->line;
    return TDM_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    if (length_bytes == 0)
        return 0;
    tdm_error err = {0};
    int64_t line = 0;
    const char *text = (const char *)bytes + 1;
    tdm_status status = (bytes[0] == 'c' ? tdmi_list_csv : tdmi_list_jsonl)(
        "list", text, length_bytes - 1, take_row, &line, &err);
    char sentences[4000];
    tdm_error_format(&err, sentences, sizeof sentences);
    if (status != TDM_OK && strstr(sentences, "line ") == NULL)
        abort();
    return 0;
}
