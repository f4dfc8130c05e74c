/* Any bytes as a file of outcomes: refused, or counted without leaving an array, and counted to as
 * many pictures as it has. */
#include "fuzz.h"
#include "train/evaluate/metrics.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    tdmi_outcomes outcomes;
    struct tdm_metrics metrics;
    int64_t n = 0, pairs = 0;
    if (tdmi_outcomes_read(bytes, length_bytes, "fuzzed outcomes", &outcomes, NULL) != TDM_OK)
        return 0;
    if (tdmi_metrics_of(&outcomes, outcomes.classes, &metrics, NULL) != TDM_OK)
        abort();
    for (int c = 0; c < metrics.n_classes; c++)
        n += metrics.per_class[c].n;
    for (int64_t i = 0; i < metrics.n_confusion; i++)
        pairs += metrics.confusion[i].n;
    if (n != outcomes.n || pairs != outcomes.n || metrics.score.n != outcomes.n)
        abort();
    tdm_metrics_release(&metrics);
    tdmi_outcomes_release(&outcomes);
    return 0;
}
