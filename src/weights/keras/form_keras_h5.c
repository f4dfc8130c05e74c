/* Keras's .h5 files as a form of weights: any HDF5 file is taken for one. */
#include "weights/hdf5/hdf5.h"
#include "weights/keras/h5.h"

#include "base/banned.h"

static bool is_form(const struct tdmi_weights_input *input)
{
    return !input->is_folder && tdmi_hdf5_is(input->bytes, input->n_bytes);
}

static tdm_status read(tdmi_weights *weights, const struct tdmi_weights_input *input,
                       tdm_error *err)
{
    return tdmi_keras_h5_read(weights, input->bytes, input->n_bytes, input->path, err);
}

const struct tdmi_weights_form tdmi_weights_form_keras_h5 = {
    .name = "keras-h5",
    .what = "Keras .h5",
    .is_form = is_form,
    .read = read,
};
