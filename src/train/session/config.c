/* Options to enumerators and flags. */
#include "train/session/config.h"
#include "train/config/options.h"

#include <string.h>

tdm_status tdmi_train_config_read(const struct tdm_train_options *options,
                                  struct tdmi_train_config *config, tdm_error *err)
{
    static const struct {
        const char *word;
        enum tdmi_dtype storage;
    } precisions[] = {{"auto", TDMI_DTYPE_F32},
                      {"f32", TDMI_DTYPE_F32},
                      {"bf16", TDMI_DTYPE_BF16},
                      {"f16", TDMI_DTYPE_F16}};
    const tdm_status status = tdmi_options_check(options, err);
    *config = (struct tdmi_train_config){.options = *options};
    if (status != TDM_OK)
        return status;
    for (size_t i = 0; i < sizeof precisions / sizeof *precisions; i++)
        if (strcmp(precisions[i].word, options->precision) == 0)
            config->storage = precisions[i].storage;
    config->features = strcmp(options->features, "none") == 0  ? TDMI_FEATURES_NONE
                       : strcmp(options->features, "f16") == 0 ? TDMI_FEATURES_F16
                                                               : TDMI_FEATURES_F32;
    config->allows_tf32 = strcmp(options->precision, "auto") == 0;
    config->shares_statistics = strcmp(options->bn, "batch") == 0;
    config->keeps_statistics = strcmp(options->bn, "frozen") == 0;
    config->is_logistic = strcmp(options->loss, "binary") == 0;
    config->balances_loss = strcmp(options->class_weights, "balanced") == 0;
    config->is_freeze_auto = strcmp(options->freeze, "auto") == 0;
    config->decodes_on_gpu = strcmp(options->decode, "card") == 0;
    TDM_TRY(tdmi_cache_kind_find(options->cache, &config->cache, err), err, "option --cache");
    if (options->cache_dir && config->cache == TDMI_CACHE_AUTO)
        config->cache = TDMI_CACHE_DISK;
    if (options->cache_dir && config->cache != TDMI_CACHE_DISK)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "option --cache-dir keeps files on disk, and --cache %s does not; --cache "
                        "disk, or none of the two, is accepted",
                        options->cache);
    config->is_augment_auto = tdmi_options_augment_by_images(options);
    TDMI_TRY(tdmi_options_read_augment(options, &config->augment, err));
    return tdmi_rates_read(options, &config->rates, err);
}
