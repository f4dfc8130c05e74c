/*
 * Names that options accept, for --help.
 */
#include "image/augment/augment.h"
#include "models/network.h"
#include "tandem/train.h"
#include "train/config/rates.h"

const char *tdm_network_name(int index)
{
    int n = 0; /* names, and after each the forms of its family */
    const struct tdmi_network *network;
    for (int i = 0; (network = tdmi_network_at(i)) != NULL; i++) {
        if (n++ == index)
            return network->name;
        if (network->forms && n++ == index)
            return network->forms;
    }
    return NULL;
}

const char *tdm_optimizer_name(int index)
{
    const struct tdmi_optimizer *optimizer = tdmi_optimizer_at(index);
    return optimizer ? optimizer->name : NULL;
}

const char *tdm_schedule_name(int index)
{
    const struct tdmi_schedule *schedule = tdmi_schedule_at(index);
    return schedule ? schedule->name : NULL;
}

const char *tdm_lr_scaling_name(int index)
{
    return tdmi_scaling_word(index);
}

const char *tdm_augment_name(int index)
{
    return index >= 0 && index < TDMI_AUGMENTS ? tdmi_augment_name((enum tdmi_augment_kind)index)
                                               : NULL;
}
