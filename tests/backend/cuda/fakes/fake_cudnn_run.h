/* A graph by itself, so that a plan of the fake cuDNN's can be written down, and computing it. */
#pragma once

#include "backend/cuda/vendor/cudnn_api.h"

#include <stdbool.h>

enum { most_tensors = 12, most_operations = 4 };

struct flat_tensor {
    int64_t number, dims[4], strides[4];
    int type;
    bool is_virtual;
};
struct flat_operation {
    int kind, mode, a, b, to; /* tensors; b -1: none */
    int64_t before[2], stride[2], dilation[2];
    double lower, upper;
};
struct flat {
    int n_tensors, n_operations, engine;
    struct flat_tensor tensors[most_tensors];
    struct flat_operation operations[most_operations];
};

/* Memory of a graph's tensors; those between operations are double. */
struct fake_run {
    const struct flat *flat;
    void *at[most_tensors];
};

int64_t fake_values_of(const struct flat_tensor *it);
void fake_run_all(const struct fake_run *run);
