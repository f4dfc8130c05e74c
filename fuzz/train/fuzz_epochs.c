/* Any bytes as metrics.jsonl: what is no line of an epoch is passed over, and scores that come out
 * can be drawn. */
#include "fuzz.h"
#include "train/report/review.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    struct tdmi_review_epoch *epochs;
    size_t n = 0;
    tdmi_arena arena;
    tdmi_arena_init(&arena, 0);
    if (tdmi_review_read_epochs((const char *)bytes, length_bytes, &arena, &epochs, &n, NULL) !=
        TDM_OK)
        abort();
    for (size_t i = 0; i < n; i++) {
        const tdm_score *val = &epochs[i].val;
        if (epochs[i].epoch < 1 || val->correct > val->n ||
            !(val->accuracy >= 0.0 && val->accuracy <= 1.0))
            abort();
    }
    tdmi_arena_release(&arena);
    return 0;
}
