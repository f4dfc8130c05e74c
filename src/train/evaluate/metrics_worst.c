/*
 * What goes wrong first: a few of many, kept in order while all are walked through once. No memory
 * is asked for, since the caller says how many it has room for.
 */
#include "tandem/metrics.h"

#include <string.h>

/* Less often right first; among equals more pictures first, then the order of the classes. */
static bool class_is_worse(const struct tdm_class_score *a, const struct tdm_class_score *b)
{
    const double left = (double)a->correct * (double)b->n,
                 right = (double)b->correct * (double)a->n;
    return left != right ? left < right : a->n > b->n;
}

int tdm_metrics_worst_classes(const struct tdm_metrics *metrics, int most, int *classes)
{
    int kept = 0;
    for (int c = 0; c < metrics->n_classes; c++) {
        const struct tdm_class_score *class = &metrics->per_class[c];
        int at = kept;
        if (class->n == 0)
            continue;
        while (at > 0 && class_is_worse(class, &metrics->per_class[classes[at - 1]]))
            at--;
        if (at == most)
            continue;
        kept += kept < most;
        memmove(classes + at + 1, classes + at, sizeof *classes * (size_t)(kept - 1 - at));
        classes[at] = c;
    }
    return kept;
}

int tdm_metrics_worst_confusions(const struct tdm_metrics *metrics, int most,
                                 struct tdm_confusion *confusions)
{
    int kept = 0;
    for (int64_t i = 0; i < metrics->n_confusion; i++) {
        const struct tdm_confusion pair = metrics->confusion[i];
        int at = kept;
        if (pair.label == pair.predicted)
            continue;
        while (at > 0 && pair.n > confusions[at - 1].n)
            at--;
        if (at == most)
            continue;
        kept += kept < most;
        memmove(confusions + at + 1, confusions + at, sizeof pair * (size_t)(kept - 1 - at));
        confusions[at] = pair;
    }
    return kept;
}
