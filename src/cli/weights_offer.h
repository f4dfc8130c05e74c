/*
 * Pretrained weights before a training: the command fetches them where that is allowed, and asks on
 * a terminal once. The library does neither.
 */
#pragma once

#include "cli/command.h"
#include "tandem/train.h"

struct tdmi_weights_offer {
    const struct tdm_train_options *options;
    const char *mirror; /* NULL: the publisher */
    bool is_decided;    /* by an option, the environment or a config file: */
    bool is_allowed;
};

/* In words, how it is known that the file is the right one. */
const char *tdmi_weights_proof(const struct tdm_weights_fetched *fetched);

/* Fetch the weights that training would begin with, if they are not on this machine; sink gets the
 * events of it. A server that cannot be reached is a warning, and training goes without weights,
 * unless --weights names them; another file than the published one is TDM_E_INPUT. TDM_E_STOPPED: a
 * stop was requested. */
tdm_status tdmi_weights_offer(const struct tdmi_call *call, const struct tdmi_weights_offer *offer,
                              tdm_sink sink, tdm_error *err) TDM_MUST_USE;
