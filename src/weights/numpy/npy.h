/*
 * NumPy's .npy: "\x93NUMPY", a version, the length of a head, the head (a Python dict as text),
 * then the values. The head is read by a parser that knows this one dict.
 */
#ifndef TANDEM_WEIGHTS_NUMPY_NPY_H
#define TANDEM_WEIGHTS_NUMPY_NPY_H

#include "weights/form.h"

struct tdmi_npy {
    char type[16];    /* as the file has it: "<f4" */
    bool has_numbers; /* of a type of ours; then dtype, else text, dates, … */
    enum tdmi_dtype dtype;
    bool is_big_endian, is_fortran; /* the first axis runs fastest */
    int rank;
    int64_t shape[TDMI_WEIGHTS_RANK];
    size_t values_at;
};

bool tdmi_npy_is(const uint8_t *bytes, size_t n_bytes);
/* TDM_E_INPUT: damaged, of a version above 3, or of Python objects, which are pickles. what: the
 * array or file, for sentences. */
tdm_status tdmi_npy_read(const tdmi_weights *weights, const char *what, const uint8_t *bytes,
                         size_t n_bytes, struct tdmi_npy *npy, tdm_error *err) TDM_MUST_USE;
/* Adds it to the list: in place, or turned into our byte and axis order. Only where has_numbers. */
tdm_status tdmi_npy_add(tdmi_weights *weights, const char *name, const struct tdmi_npy *npy,
                        const uint8_t *bytes, size_t n_bytes, tdm_error *err) TDM_MUST_USE;

#endif
