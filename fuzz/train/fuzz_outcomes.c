/* Any bytes as a file of outcomes: refused, or counted without leaving an array, and counted to as
 * many pictures as it has; copies once, also in a comparison with itself. */
#include "fuzz.h"
#include "train/evaluate/metrics.h"
#include "train/evaluate/pairs.h"

/* Outcomes of known contents are the same as themselves, and no image is right in one list only. */
static void compare_with_itself(const tdmi_outcomes *outcomes, const tdm_score *score)
{
    struct tdmi_pairs pairs;
    bool are_same;
    if (tdmi_outcomes_pair(outcomes, outcomes, &pairs, &are_same, NULL) != TDM_OK)
        abort();
    if (are_same && (pairs.only_a + pairs.only_b != 0 || pairs.both != score->correct_distinct ||
                     pairs.both + pairs.neither != score->n_distinct))
        abort();
}

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
    compare_with_itself(&outcomes, &metrics.score);
    tdm_metrics_release(&metrics);
    tdmi_outcomes_release(&outcomes);
    return 0;
}
