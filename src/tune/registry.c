/*
 * The only file of this folder that depends on the build: its optional parts for tandem doctor, and
 * the best matrix product for the probes.
 */
#include "tandem_features.h"
#include "tune/probe.h"

static const struct tdm_machine_feature features[] = {
#define X(macro, label, what, how)     \
    {.name = label,                    \
     .gives = what,                    \
     .is_on = TDM_HAVE_##macro,        \
     .version = TDM_##macro##_VERSION, \
     .remedy = how},
#include "tune/features.def"
#undef X
};

_Static_assert(sizeof features / sizeof features[0] <= TDM_MACHINE_FEATURES_MAX,
               "struct tdm_machine has room for all");

const struct tdm_machine_feature *tdmi_features(int *n_features)
{
    *n_features = (int)(sizeof features / sizeof features[0]);
    return features;
}

const char *tdmi_build_type(void)
{
    return TDM_BUILD_TYPE;
}

const char *tdmi_build_compiler(void)
{
    return TDM_COMPILER;
}

const struct tdmi_matmul_method *tdmi_matmul_method_best(void)
{
#if TDM_HAVE_ONEDNN
    const struct tdmi_matmul_method *method;
    if (tdmi_matmul_onednn(&method, NULL) == TDM_OK)
        return method;
#endif
    return &tdmi_matmul_plain;
}
