/*
 * The shim in the place of libtandem_cuda.so (base/plugin.h): `tandem train --device cuda` computes
 * with the kernels of cards on a machine that has none, in memory that only they may touch. For
 * tests/cli/test_train_card.sh.
 */
#include "shim_backend.h"
#include "base/plugin.h"
#include "tandem/api.h"

TDM_API const void *tdmi_plugin(const struct tdmi_plugin_host *host, const char **made_by,
                                size_t *table_bytes);

const void *tdmi_plugin(const struct tdmi_plugin_host *host, const char **made_by,
                        size_t *table_bytes)
{
    static struct tdmi_backend card; /* written with the same value each time */
    (void)host;                      /* all of libtandem is linked again */
    card = tdmi_backend_shim;
    card.name = "cuda";
    tdmi_shim_guard(true);
    *made_by = tdm_version();
    *table_bytes = sizeof card;
    return &card;
}
