/* Whose weights a file has, by what its tensors are called. */
#include "weights/origin.h"

#include <string.h>

static bool ends_with(const char *name, size_t length, const char *end)
{
    size_t n = strlen(end);
    if (length < n || memcmp(name + length - n, end, n) != 0)
        return false;
    return length == n || name[length - n - 1] == '/' || name[length - n - 1] == '.';
}

enum tdmi_publisher tdmi_origin_of(const tdmi_weights *weights)
{
    static const char *const of_keras[] = {
        "kernel",      "gamma",           "beta",  "depthwise_kernel", "pointwise_kernel",
        "moving_mean", "moving_variance", "vars/0"};
    static const char *const of_torch[] = {"weight", "running_mean", "running_var"};
    size_t keras = 0, torch = 0;
    if (tdmi_weights_fact(weights, "tandem"))
        return TDMI_PUBLISHER_OURS;
    for (size_t i = 0; i < tdmi_weights_count(weights); i++) {
        const char *name = tdmi_weights_at(weights, i)->name;
        size_t length = strcspn(name, ":");
        for (size_t k = 0; k < sizeof of_keras / sizeof of_keras[0]; k++)
            keras += ends_with(name, length, of_keras[k]);
        for (size_t k = 0; k < sizeof of_torch / sizeof of_torch[0]; k++)
            torch += ends_with(name, length, of_torch[k]);
    }
    if (keras == 0 && torch == 0)
        return TDMI_PUBLISHER_OURS;
    return keras > torch ? TDMI_PUBLISHER_KERAS : TDMI_PUBLISHER_TORCH;
}

const char *tdmi_origin_name(enum tdmi_publisher publisher)
{
    static const char *const names[] = {[TDMI_PUBLISHER_OURS] = "tandem",
                                        [TDMI_PUBLISHER_KERAS] = "Keras",
                                        [TDMI_PUBLISHER_TORCH] = "PyTorch"};
    return names[publisher];
}

tdm_status tdmi_origin_bind(struct tdmi_bindings *bindings, tdm_error *err)
{
    return bindings->layout == TDMI_PUBLISHER_KERAS ? tdmi_origin_bind_keras(bindings, err)
                                                    : tdmi_origin_bind_torch(bindings, err);
}
