/* SGD with momentum (Nesterov's form), as PyTorch defines it. */
#include "optim/optimizer.h"

static void step(const struct tdmi_backend *backend, tdmi_stream *stream,
                 const struct tdmi_update_call *call)
{
    backend->update.sgd(stream, call);
}

const struct tdmi_optimizer tdmi_optimizer_sgd = {
    .name = "sgd",
    .summary = "stochastic gradient descent with Nesterov momentum",
    .n_slots = 1,
    .slot_names = {"momentum"},
    .step = step,
};
