/*
 * Files of weights, whichever program wrote them.
 *
 *     weights load FILE [TIMES]    opens it and makes floats of all tensors that are floats, TIMES
 *                                  times; prints the best time, which includes both
 *     weights list FILE            a line for each tensor: type, shape, SHA-256 of its bytes, name;
 *                                  then a line "fact" for each key
 */
#include "base/clock.h"
#include "base/hash/hash.h"
#include "base/memory.h"
#include "weights/weights.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_float(const struct tdmi_weights_tensor *tensor)
{
    return tensor->dtype == TDMI_DTYPE_F32 || tensor->dtype == TDMI_DTYPE_F16 ||
           tensor->dtype == TDMI_DTYPE_BF16 || tensor->dtype == TDMI_DTYPE_F64;
}

/* The floats stand one tensor after the other in one block, as a network's values do. */
static tdm_status load_once(const char *path, int64_t *n_values, tdm_error *err)
{
    tdmi_weights *weights = NULL;
    float *values = NULL;
    *n_values = 0;
    tdm_status status = tdmi_weights_open(path, &weights, err);
    for (size_t i = 0; status == TDM_OK && i < tdmi_weights_count(weights); i++)
        if (is_float(tdmi_weights_at(weights, i)))
            *n_values += tdmi_weights_at(weights, i)->n_values;
    if (status == TDM_OK) {
        values = tdmi_alloc_large((size_t)*n_values * sizeof *values + 1);
        if (values == NULL)
            abort();
    }
    float *at = values;
    for (size_t i = 0; status == TDM_OK && i < tdmi_weights_count(weights); i++) {
        const struct tdmi_weights_tensor *tensor = tdmi_weights_at(weights, i);
        if (!is_float(tensor))
            continue;
        status = tdmi_weights_floats(weights, tensor, at, err);
        at += tensor->n_values;
    }
    tdmi_free_large(values);
    tdmi_weights_close(weights);
    return status;
}

static tdm_status load(const char *path, int times, tdm_error *err)
{
    int64_t best_ns = INT64_MAX, n_values = 0;
    for (int i = 0; i < times; i++) {
        int64_t start = tdmi_clock_ns();
        tdm_status status = load_once(path, &n_values, err);
        int64_t taken = tdmi_clock_ns() - start;
        if (status != TDM_OK)
            return status;
        best_ns = taken < best_ns ? taken : best_ns;
    }
    printf("%.4f ms (best of %d, %" PRId64 " floats)\n", (double)best_ns / 1e6, times, n_values);
    return TDM_OK;
}

static tdm_status list(const char *path, tdm_error *err)
{
    tdmi_weights *weights = NULL;
    tdm_status status = tdmi_weights_open(path, &weights, err);
    for (size_t i = 0; status == TDM_OK && i < tdmi_weights_count(weights); i++) {
        const struct tdmi_weights_tensor *tensor = tdmi_weights_at(weights, i);
        tdmi_sha256 hash;
        uint8_t digest[32];
        char hex[65];
        tdmi_sha256_init(&hash);
        if (tensor->bytes > 0)
            tdmi_sha256_add(&hash, tensor->data, tensor->bytes);
        tdmi_sha256_result(&hash, digest);
        tdmi_sha256_hex(digest, hex);
        printf("%s [", tdmi_dtype_name(tensor->dtype));
        for (int axis = 0; axis < tensor->rank; axis++)
            printf("%s%" PRId64, axis ? "," : "", tensor->shape[axis]);
        printf("] %s %s\n", hex, tensor->name);
    }
    for (size_t i = 0; status == TDM_OK && i < tdmi_weights_facts(weights); i++) {
        const char *key = tdmi_weights_fact_key(weights, i);
        printf("fact %s %s\n", key, tdmi_weights_fact(weights, key));
    }
    tdmi_weights_close(weights);
    return status;
}

int main(int argc, char **argv)
{
    tdm_error err = {0};
    char text[4000];
    tdm_status status = TDM_OK;
    if (argc >= 3 && strcmp(argv[1], "load") == 0)
        status = load(argv[2], argc > 3 ? (int)strtol(argv[3], NULL, 10) : 1, &err);
    else if (argc == 3 && strcmp(argv[1], "list") == 0)
        status = list(argv[2], &err);
    else
        status = TDM_FAIL(&err, TDM_E_USAGE, "usage: weights load FILE [TIMES] | list FILE");
    if (status != TDM_OK) {
        tdm_error_format(&err, text, sizeof text);
        fprintf(stderr, "%s\n", text);
    }
    return tdm_status_exit(status);
}
