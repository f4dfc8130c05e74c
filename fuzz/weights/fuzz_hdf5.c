/*
 * Any bytes as Keras's HDF5: refused with a sentence, or a list whose values can all be read; and
 * the same structure once more with checksums passed over, so that what lies behind them is met.
 */
#include "fuzz.h"
#include "weights/hdf5/hdf5.h"
#include "weights/weights.h"

static unsigned sum_of(const void *data, size_t n_bytes)
{
    const uint8_t *bytes = data;
    unsigned sum = 0;
    for (size_t i = 0; i < n_bytes; i++)
        sum += bytes[i];
    return sum;
}

static unsigned as_weights(const uint8_t *bytes, size_t length_bytes)
{
    unsigned sum = 0;
    tdm_error err = {0};
    tdmi_weights *weights = NULL;
    if (tdmi_weights_open_bytes(bytes, length_bytes, "fuzz", &weights, &err) != TDM_OK) {
        require(err.n_frames > 0);
        return 0;
    }
    for (size_t i = 0; i < tdmi_weights_count(weights); i++) {
        const struct tdmi_weights_tensor *tensor = tdmi_weights_at(weights, i);
        require(tdmi_weights_find(weights, tensor->name) == tensor);
        sum += sum_of(tensor->data, tensor->bytes);
    }
    tdmi_weights_close(weights);
    return sum;
}

static unsigned attribute(tdmi_hdf5 *file, const tdmi_hdf5_object *object, const char *name)
{
    unsigned sum = 0;
    bool is_there;
    struct tdmi_hdf5_values values;
    struct tdmi_hdf5_text text;
    tdm_error err = {0};
    if (tdmi_hdf5_attribute(file, object, name, &values, &is_there, &err) != TDM_OK || !is_there)
        return 0;
    for (uint64_t i = 0; i < values.n_values && i < 100; i++)
        if (tdmi_hdf5_text_at(file, &values, i, &text, &err) == TDM_OK)
            sum += sum_of(text.bytes, text.length_bytes);
    return sum;
}

static unsigned walk(tdmi_hdf5 *file, tdmi_hdf5_object *object, int depth)
{
    static const char *const names[] = {"layer_names", "weight_names", "dtype", "name"};
    unsigned sum = 0;
    size_t n_links = 0;
    const struct tdmi_hdf5_link *links;
    struct tdmi_hdf5_values values;
    tdm_error err = {0};
    if (depth > 20 || tdmi_hdf5_mark(object))
        return 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        sum += attribute(file, object, names[i]);
    if (tdmi_hdf5_is_dataset(object) && tdmi_hdf5_dataset(file, object, &values, &err) == TDM_OK)
        sum += sum_of(values.data, (size_t)values.n_values * values.item_bytes);
    if (tdmi_hdf5_is_group(object) &&
        tdmi_hdf5_links(file, object, &links, &n_links, &err) == TDM_OK)
        for (size_t i = 0; i < n_links; i++) {
            tdmi_hdf5_object *member;
            if (tdmi_hdf5_follow(file, &links[i], &member, &err) == TDM_OK)
                sum += walk(file, member, depth + 1);
        }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    tdmi_hdf5 *file = NULL;
    tdm_error err = {0};
    volatile unsigned sum = as_weights(bytes, length_bytes); /* so that the bytes are really read */
    if (tdmi_hdf5_open(bytes, length_bytes, "fuzz", false, &file, &err) == TDM_OK)
        sum += walk(file, tdmi_hdf5_root(file), 0);
    else
        require(err.n_frames > 0);
    tdmi_hdf5_close(file);
    (void)sum;
    return 0;
}
