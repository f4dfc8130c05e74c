/*
 * Contents of a weights file as our readers see it, for scripts that compare it with what other
 * programs see; and how long it takes.
 *
 *     bench_weights_list FILE            a line each: name, type, shape, SHA-256 of the values
 *     bench_weights_list FILE REPEATS    ms for opening the file and copying all floats, best of
 * all
 */
#include "base/clock.h"
#include "base/hash/hash.h"
#include "base/memory.h"
#include "weights/weights.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_hash(const void *bytes, size_t n_bytes)
{
    uint8_t digest[32];
    char hex[65];
    tdmi_sha256 hash;
    tdmi_sha256_init(&hash);
    tdmi_sha256_add(&hash, bytes, n_bytes);
    tdmi_sha256_result(&hash, digest);
    tdmi_sha256_hex(digest, hex);
    printf("\t%s\n", hex);
}

static void list(const tdmi_weights *weights)
{
    printf("form\t%s\n", tdmi_weights_form_name(weights));
    for (size_t i = 0; i < tdmi_weights_facts(weights); i++) {
        const char *key = tdmi_weights_fact_key(weights, i),
                   *fact = tdmi_weights_fact(weights, key);
        printf("fact\t%s", key);
        print_hash(fact, strlen(fact));
    }
    for (size_t i = 0; i < tdmi_weights_count(weights); i++) {
        const struct tdmi_weights_tensor *tensor = tdmi_weights_at(weights, i);
        printf("tensor\t%s\t%s\t", tensor->name, tdmi_dtype_name(tensor->dtype));
        for (int axis = 0; axis < tensor->rank; axis++)
            printf("%s%lld", axis ? "," : "", (long long)tensor->shape[axis]);
        print_hash(tensor->data, tensor->bytes);
    }
}

static tdm_status copy(const tdmi_weights *weights, tdm_error *err)
{
    tdm_status status = TDM_OK;
    for (size_t i = 0; i < tdmi_weights_count(weights) && status == TDM_OK; i++) {
        const struct tdmi_weights_tensor *tensor = tdmi_weights_at(weights, i);
        float *floats = tdmi_alloc((size_t)tensor->n_values, sizeof *floats);
        if (floats == NULL)
            return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the values of '%s'", tensor->name);
        status = tdmi_weights_floats(weights, tensor, floats, err);
        tdmi_free(floats);
    }
    return status;
}

int main(int count, char **arguments)
{
    tdm_error err = {0};
    tdmi_weights *weights = NULL;
    int repeats = count > 2 ? atoi(arguments[2]) : 0;
    double best_ms = 1e30;
    if (count < 2)
        return 2;
    for (int i = 0; i < repeats || i == 0; i++) {
        int64_t start_ns = tdmi_clock_ns();
        tdm_status status = tdmi_weights_open(arguments[1], &weights, &err);
        if (status == TDM_OK && repeats > 0)
            status = copy(weights, &err);
        if (status != TDM_OK) {
            for (int frame = err.n_frames - 1; frame >= 0; frame--)
                fprintf(stderr, "%s\n", tdm_error_sentence(&err, frame));
            tdmi_weights_close(weights);
            return tdm_status_exit(status);
        }
        if (repeats == 0)
            list(weights);
        tdmi_weights_close(weights);
        weights = NULL;
        double ms = (double)(tdmi_clock_ns() - start_ns) * 1e-6;
        best_ms = ms < best_ms ? ms : best_ms;
    }
    if (repeats > 0)
        printf("%.3f ms\n", best_ms);
    return 0;
}
