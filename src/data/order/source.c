/* Counts the items of a subset in each group of its source. */
#include "data/order/source.h"

#include "base/memory.h"

bool tdmi_order_has_groups(const tdmi_source *source)
{
    return tdmi_source_groups(source) > 1;
}

tdm_status tdmi_order_init_source(tdmi_order *order, const tdmi_source *source,
                                  const int64_t *items, int64_t n, uint64_t seed, tdm_error *err)
{
    int64_t n_groups = tdmi_source_groups(source), at = 0;
    int64_t *samples = tdmi_alloc((size_t)n_groups, sizeof *samples);
    if (samples == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to order %lld groups of pictures",
                        (long long)n_groups);
    for (int64_t g = 0; g < n_groups; g++) {
        int64_t end = tdmi_source_group_first(source, g + 1);
        for (; at < n && (items != NULL ? items[at] : at) < end; at++)
            samples[g]++;
    }
    tdm_status status = tdmi_order_init_grouped(
        order,
        &(struct tdmi_order_grouped){
            .seed = seed, .is_shuffled = true, .group_samples = samples, .n_groups = n_groups},
        err);
    tdmi_free(samples);
    return status;
}
