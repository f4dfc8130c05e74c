/* The rule, and the probe where it is unsure. */
#include "train/choice/choice.h"
#include "train/choice/probe.h"

#include <stdio.h>

/* Digits and letters of this size are what LeNet-5 is made for. */
enum { LENET_SIDE = 40, LEAST_PER_CLASS = 10 };

static const char *small_network(const struct tdmi_look *look)
{
    return look->n_seen > 0 && look->is_grey && look->side <= LENET_SIDE ? "lenet5" : "convnet7";
}

static tdm_status probe(const struct tdm_train_options *options, const tdmi_source *source,
                        const char *at_hand, struct tdmi_choice *choice, tdm_error *err)
{
    struct tdmi_probe found;
    tdm_error why = {0};
    const tdm_status status =
        tdmi_probe_run(options, tdmi_source_items(source), choice->model, at_hand, &found, &why);
    if (status == TDM_E_STOPPED)
        return TDM_FAIL(err, status, "stopped on request");
    choice->weights = at_hand;
    if (status != TDM_OK) { /* it only advises */
        snprintf(choice->reason, sizeof choice->reason,
                 "a probe failed (%s), so pretrained weights are used: %s",
                 tdm_error_sentence(&why, 0), at_hand);
        return TDM_OK;
    }
    snprintf(choice->reason, sizeof choice->reason,
             "of %lld images of a probe, %s from scratch has %lld right, with few images to learn "
             "from, and %s %lld",
             (long long)found.n, choice->model, (long long)found.scratch, at_hand,
             (long long)found.pretrained);
    if (found.pretrained < found.scratch)
        choice->weights = NULL;
    return TDM_OK;
}

tdm_status tdmi_choice_make(const struct tdm_train_options *options, const tdmi_source *source,
                            const struct tdmi_look *look, const char *at_hand,
                            struct tdmi_choice *choice, tdm_error *err)
{
    const enum tdmi_suits suits = tdmi_look_suits(look);
    const bool has_enough =
        (int64_t)LEAST_PER_CLASS * tdmi_source_classes(source) <= TDMI_PROBE_IMAGES;
    *choice = (struct tdmi_choice){.model = small_network(look)};
    if (suits == TDMI_SUITS_SMALL) {
        snprintf(choice->reason, sizeof choice->reason,
                 "the images are grey and small (%d pixels), which suits %s from scratch",
                 look->side, choice->model);
        return TDM_OK;
    }
    choice->misses_weights = !at_hand;
    if (!at_hand)
        return TDM_OK;
    if (suits == TDMI_SUITS_UNSURE && has_enough) {
        TDMI_TRY(probe(options, source, at_hand, choice, err));
    } else {
        choice->weights = at_hand;
        snprintf(choice->reason, sizeof choice->reason,
                 "images of about %d pixels suit pretrained weights: %s", look->side, at_hand);
    }
    if (choice->weights)
        choice->model = NULL;
    return TDM_OK;
}
