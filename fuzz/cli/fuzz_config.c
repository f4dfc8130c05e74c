/*
 * Any bytes as a config file: the reader must refuse or hand out terminated texts inside its
 * buffer, never read or write beside it.
 */
#include "fuzz.h"
#include "cli/config.h"

struct bounds {
    const char *start, *end;
    size_t total; /* keeps the compiler from dropping the reads */
};

static void touch(struct bounds *bounds, const char *text)
{
    if (!text || !*text)
        return;
    if (text < bounds->start || text + strlen(text) > bounds->end)
        abort();
    bounds->total += strlen(text);
}

static tdm_status visit(void *self, const struct tdmi_config_entry *entry, tdm_error *err)
{
    struct bounds *bounds = self;
    touch(bounds, entry->section);
    touch(bounds, entry->key);
    touch(bounds, entry->value);
    if (bounds->total > 1u << 20)
        return TDM_FAIL(err, TDM_E_FAILED, "more text came out than went in");
    return TDM_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char *text = malloc(length + 1);
    if (!text)
        return 0;
    struct bounds bounds = {text, text + length, 0};
    tdm_error err = {0};
    if (length > 0)
        memcpy(text, bytes, length);
    if (tdmi_config_read(text, length, "fuzz", (struct tdmi_config_visitor){&bounds, visit},
                         &err) != TDM_OK &&
        err.n_frames == 0)
        abort(); /* a refusal without a sentence */
    free(text);
    return 0;
}
