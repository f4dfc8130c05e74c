/*
 * Recognising a network by its tensors: each network that is known here is tried, and of families
 * the members that are published. Names and shapes must fit, so at most one does; a deeper member
 * of a family holds the tensors of every shallower one, and leaves fewer of the file over.
 */
#include "weights/import/internal.h"

/* Members of families; a family's own name comes from the list of networks. */
static const char *const members[] = {
    "mobilenetv2-0.35", "mobilenetv2-0.5", "mobilenetv2-0.75", "mobilenetv2-1.3",
    "mobilenetv2-1.4",  "resnet8-cifar",   "resnet14-cifar",   "resnet32-cifar",
    "resnet44-cifar",   "resnet56-cifar",  "resnet110-cifar",
};

enum { N_MEMBERS = sizeof members / sizeof members[0], MOST_EXTRA = 8 };

/* NULL past the last. */
static const char *candidate_at(int index)
{
    if (index < N_MEMBERS)
        return members[index];
    const struct tdmi_network *network = tdmi_network_at(index - N_MEMBERS);
    return network ? network->name : NULL;
}

tdm_status tdmi_import_recognise(struct tdmi_importing *it, const char **network, tdm_error *err)
{
    const char *name;
    int least = MOST_EXTRA + 1;
    *network = NULL;
    for (int i = 0; (name = candidate_at(i)) != NULL; i++) {
        struct tdmi_import_fit fit;
        TDMI_TRY(tdmi_import_try(it, name, &fit, err));
        if (fit.nodes == 0 || fit.fitting < fit.nodes || fit.extra >= least)
            continue;
        least = fit.extra;
        *network = name;
    }
    return TDM_OK;
}
