/* The list of optimizers, and how the learning rate depends on the batch. */
#include "optim/optimizer.h"
#include "base/scope.h"
#include "base/text/choice.h"

#include <math.h>
#include <stdio.h>

#define X(name) extern const struct tdmi_optimizer tdmi_optimizer_##name;
#include "optim/optimizers.def"
#undef X

static const struct tdmi_optimizer *const optimizers[] = {
#define X(name) &tdmi_optimizer_##name,
#include "optim/optimizers.def"
#undef X
};

static const char *const names[] = {
#define X(name) #name,
#include "optim/optimizers.def"
#undef X
};

enum { n_optimizers = sizeof optimizers / sizeof optimizers[0] };

const struct tdmi_optimizer *tdmi_optimizer_at(int index)
{
    return index >= 0 && index < n_optimizers ? optimizers[index] : NULL;
}

tdm_status tdmi_optimizer_find(const char *name, const struct tdmi_optimizer **optimizer,
                               tdm_error *err)
{
    int index;
    TDMI_TRY(tdmi_choice_find("optimizer", name, names, n_optimizers, &index, err));
    *optimizer = optimizers[index];
    return TDM_OK;
}

tdm_status tdmi_optimizer_read(const char *text, struct tdmi_optimizer_choice *choice,
                               tdm_error *err)
{
    char name[64];
    const struct tdmi_optimizer *optimizer = NULL;
    snprintf(name, sizeof name, "%.*s", (int)tdmi_parameters_name_length(text), text);
    TDMI_TRY(tdmi_optimizer_find(name, &optimizer, err));
    TDMI_TRY(tdmi_parameters_read("optimizer", text, optimizer->parameters, choice->values, err));
    choice->optimizer = optimizer;
    return TDM_OK;
}

void tdmi_moments_prepare(const double *values, int64_t step, struct tdmi_momenta *momenta,
                          struct tdmi_update_call *call)
{
    (void)momenta;
    const double beta1 = values[0], beta2 = values[1], t = (double)step;
    call->moments = (struct tdmi_moments){
        .first = (float)(1.0 - beta1),
        .second = (float)(1.0 - beta2),
        .of_first = (float)(1.0 / (1.0 - pow(beta1, t))),
        .of_root = (float)(1.0 / sqrt(1.0 - pow(beta2, t))),
        .epsilon = (float)values[2],
        .keep = 1.0f,
    };
}

/* ---- the batch ------------------------------------------------------------------------------- */

static const char *const scalings[] = {"none", "linear", "sqrt"};

enum { n_scalings = sizeof scalings / sizeof scalings[0] };

const char *tdmi_scaling_word(int scaling)
{
    return scaling >= 0 && scaling < n_scalings ? scalings[scaling] : NULL;
}

tdm_status tdmi_scaling_find(const char *word, enum tdmi_scaling *scaling, tdm_error *err)
{
    int index;
    TDMI_TRY(tdmi_choice_find("scaling rule", word, scalings, n_scalings, &index, err));
    *scaling = (enum tdmi_scaling)index;
    return TDM_OK;
}

double tdmi_scaling_factor(enum tdmi_scaling scaling, double batch, double reference_batch)
{
    const double ratio = batch / reference_batch;
    return scaling == TDMI_SCALING_LINEAR ? ratio
           : scaling == TDMI_SCALING_SQRT ? sqrt(ratio)
                                          : 1.0;
}

void tdmi_moments_step(const struct tdmi_backend *backend, tdmi_stream *stream,
                       const struct tdmi_update_call *call)
{
    backend->update->adam(stream, call);
}

void tdmi_momentum_step(const struct tdmi_backend *backend, tdmi_stream *stream,
                        const struct tdmi_update_call *call)
{
    backend->update->sgd(stream, call);
}
