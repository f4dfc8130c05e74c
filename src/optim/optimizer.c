/* The list of optimisers. */
#include "optim/optimizer.h"
#include "base/choice.h"

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
    tdm_status status = tdmi_choice_find("optimizer", name, names, n_optimizers, &index, err);
    if (status == TDM_OK)
        *optimizer = optimizers[index];
    return status;
}
