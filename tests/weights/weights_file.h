/*
 * For tests of the readers of weights: a fixture's bytes, opening bytes, what is refused with which
 * words, and tensors whose value k is k.
 */
#pragma once

#include "base/file/file.h"
#include "base/memory.h"
#include "weights/weights.h"
#include "unit.h"
#include <unistd.h>

struct bytes {
    uint8_t *at;
    size_t n;
};

static inline struct bytes fixture(const char *name)
{
    char path[600];
    void *at = NULL;
    struct bytes bytes = {0};
    tdm_error err = {0};
    snprintf(path, sizeof path, CHECKOUT "/tests/fixtures/weights/%s", name);
    if (tdmi_file_read(path, 1 << 20, &at, &bytes.n, &err) != TDM_OK)
        fail_msg("%s", tdm_error_sentence(&err, 0));
    bytes.at = at;
    return bytes;
}

static inline void fail_with(const tdm_error *err)
{
    char text[4000];
    tdm_error_format(err, text, sizeof text);
    fail_msg("%s", text);
}

static inline tdmi_weights *open_fixture(const char *name)
{
    char path[600];
    tdm_error err = {0};
    tdmi_weights *weights = NULL;
    snprintf(path, sizeof path, CHECKOUT "/tests/fixtures/weights/%s", name);
    if (tdmi_weights_open(path, &weights, &err) != TDM_OK)
        fail_with(&err);
    return weights;
}

/* Refused as bad input, and the sentences hold the words. */
static inline void assert_bytes_refused(const void *bytes, size_t n, const char *words)
{
    char text[4000];
    tdm_error err = {0};
    tdmi_weights *weights = NULL;
    assert_int_equal(tdmi_weights_open_bytes(bytes, n, "hostile.bin", &weights, &err), TDM_E_INPUT);
    assert_null(weights);
    tdm_error_format(&err, text, sizeof text);
    if (strstr(text, words) == NULL || strstr(text, "hostile.bin") == NULL)
        fail_msg("'%s' is not in: %s", words, text);
}

static inline void assert_fixture_refused(const char *name, const char *words)
{
    struct bytes bytes = fixture(name);
    assert_bytes_refused(bytes.at, bytes.n, words);
    tdmi_free(bytes.at);
}

/* Cut at every hundredth: refused with a sentence, never more. */
static inline void assert_refused_wherever_cut(const char *name)
{
    struct bytes bytes = fixture(name);
    for (size_t percent = 0; percent < 100; percent++) {
        size_t n = bytes.n * percent / 100;
        uint8_t *cut = tdmi_alloc(n + 1, 1); /* of this length, so that a sanitizer sees its end */
        assert_non_null(cut);
        memcpy(cut, bytes.at, n);
        assert_bytes_refused(cut, n, "");
        tdmi_free(cut);
    }
    tdmi_free(bytes.at);
}

/* No allocation that fails goes unseen: memory runs out at every call in turn. */
static inline void assert_lives_without_memory(const char *name)
{
    struct bytes bytes = fixture(name);
    for (int64_t n = 1;; n++) {
        tdm_error err = {0};
        tdmi_weights *weights = NULL;
        tdmi_memory_fail_from(n);
        tdm_status status = tdmi_weights_open_bytes(bytes.at, bytes.n, "full", &weights, &err);
        tdmi_memory_fail_from(0);
        tdmi_weights_close(weights);
        if (status == TDM_OK)
            break;
        if (status != TDM_E_MEMORY) /* the file is not to blame */
            fail_with(&err);
        if (n > 100000)
            fail_msg("after %d allocations it still fails", (int)n);
    }
    tdmi_free(bytes.at);
}

/* Shape as text, "3,2"; values 0, 1, 2, … in its order. */
static inline void assert_counted(const tdmi_weights *weights, const char *name, const char *shape)
{
    float values[64];
    char found[100] = "";
    tdm_error err = {0};
    const struct tdmi_weights_tensor *tensor = tdmi_weights_find(weights, name);
    if (tensor == NULL)
        fail_msg("there is no tensor '%s'", name);
    for (int i = 0, n = 0; i < tensor->rank; i++)
        n += snprintf(found + n, sizeof found - (size_t)n, "%s%lld", i ? "," : "",
                      (long long)tensor->shape[i]);
    assert_string_equal(found, shape);
    assert_true(tensor->n_values <= 64);
    if (tdmi_weights_floats(weights, tensor, values, &err) != TDM_OK)
        fail_with(&err);
    for (int64_t i = 0; i < tensor->n_values; i++)
        if (values[i] != (float)i)
            fail_msg("value %d of '%s' is %g", (int)i, name, (double)values[i]);
}

static inline void assert_fact(const tdmi_weights *weights, const char *key, const char *value)
{
    const char *found = tdmi_weights_fact(weights, key);
    if (found == NULL || value == NULL || strcmp(found, value) != 0) {
        if (found != value)
            fail_msg("%s is %s, and should be %s", key, found ? found : "not there",
                     value ? value : "not there");
    }
}
