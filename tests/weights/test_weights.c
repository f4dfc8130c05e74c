/*
 * The list of a weights file's tensors, whichever form it has: found by name, in order, with the
 * facts beside them; values as floats.
 */
#include "weights/weights.h"
#include "base/memory.h"
#include "weights/safetensors/safetensors.h"
#include "tensor/half.h"
#include "unit.h"
#include <math.h>
#include <time.h>
#include <unistd.h>

static const float floats[4] = {1, -2, 0.5F, 3};
static const double doubles[2] = {0.1, -1e300};
static const uint16_t halves[4] = {0x3c00, 0xc000, 0x0001, 0x7c00};
static const uint16_t wide_halves[2] = {0x3f80, 0xc000};
static const int64_t counts[1] = {7};
static const int64_t four[] = {4}, two[] = {2}, square[] = {2, 2};

static tdmi_weights *sample(void **bytes)
{
    size_t n_bytes = 0;
    tdm_error err = {0};
    tdmi_weights *weights = NULL;
    tdmi_safetensors_writer *writer = tdmi_safetensors_writer_new();
    tdmi_safetensors_note(writer, "license", "Apache-2.0");
    tdmi_safetensors_add(writer, "f64", TDMI_DTYPE_F64, 1, two, doubles);
    tdmi_safetensors_add(writer, "steps", TDMI_DTYPE_I64, 0, NULL, counts);
    tdmi_safetensors_add(writer, "f32", TDMI_DTYPE_F32, 2, square, floats);
    tdmi_safetensors_add(writer, "f16", TDMI_DTYPE_F16, 1, four, halves);
    tdmi_safetensors_add(writer, "bf16", TDMI_DTYPE_BF16, 1, two, wide_halves);
    assert_int_equal(tdmi_safetensors_finish_bytes(writer, bytes, &n_bytes, &err), TDM_OK);
    tdmi_safetensors_writer_free(writer);
    assert_int_equal(tdmi_weights_open_bytes(*bytes, n_bytes, "sample", &weights, &err), TDM_OK);
    return weights;
}

TEST(tensors_are_found_by_name_and_facts_by_key)
{
    void *bytes = NULL;
    tdmi_weights *weights = sample(&bytes);
    assert_string_equal(tdmi_weights_form_name(weights), "safetensors");
    assert_int_equal(tdmi_weights_count(weights), 5);
    const struct tdmi_weights_tensor *tensor = tdmi_weights_find(weights, "f32");
    assert_non_null(tensor);
    assert_int_equal(tensor->rank, 2);
    assert_int_equal(tensor->shape[1], 2);
    assert_int_equal(tensor->shape[2], 0);
    assert_int_equal(tensor->n_values, 4);
    assert_memory_equal(tensor->data, floats, sizeof floats);
    assert_null(tdmi_weights_find(weights, "f33"));
    assert_string_equal(tdmi_weights_at(weights, 0)->name, "f64");
    assert_string_equal(tdmi_weights_fact(weights, "license"), "Apache-2.0");
    assert_null(tdmi_weights_fact(weights, "licence"));
    tdmi_weights_close(weights);
    tdmi_free(bytes);
}

TEST(safetensors_are_used_where_they_lie_and_their_checksum_is_verified)
{
    void *bytes = NULL;
    size_t n_bytes = 0;
    tdm_error err = {0};
    tdmi_weights *weights = NULL;
    tdmi_safetensors_writer *writer = tdmi_safetensors_writer_new();
    tdmi_safetensors_add(writer, "f32", TDMI_DTYPE_F32, 2, square, floats);
    assert_int_equal(tdmi_safetensors_finish_bytes(writer, &bytes, &n_bytes, &err), TDM_OK);
    tdmi_safetensors_writer_free(writer);
    assert_int_equal(tdmi_weights_open_bytes(bytes, n_bytes, "ours", &weights, &err), TDM_OK);
    assert_ptr_equal(tdmi_weights_at(weights, 0)->data, (uint8_t *)bytes + n_bytes - sizeof floats);
    tdmi_weights_close(weights);
    weights = NULL;
    ((uint8_t *)bytes)[n_bytes - 1] ^= 1;
    assert_int_equal(tdmi_weights_open_bytes(bytes, n_bytes, "ours", &weights, &err), TDM_E_INPUT);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "checksum"));
    assert_null(weights);
    tdmi_free(bytes);
}

TEST(floats_of_any_width_are_read_and_whole_numbers_refused)
{
    void *bytes = NULL;
    float out[4];
    tdm_error err = {0};
    tdmi_weights *weights = sample(&bytes);
    assert_int_equal(tdmi_weights_floats(weights, tdmi_weights_find(weights, "f64"), out, &err),
                     TDM_OK);
    assert_true(out[0] == 0.1F && isinf(out[1]));
    assert_int_equal(tdmi_weights_floats(weights, tdmi_weights_find(weights, "f16"), out, &err),
                     TDM_OK);
    assert_true(out[0] == 1 && out[1] == -2 && out[2] == 0x1p-24F && isinf(out[3]));
    assert_int_equal(tdmi_weights_floats(weights, tdmi_weights_find(weights, "bf16"), out, &err),
                     TDM_OK);
    assert_true(out[0] == 1 && out[1] == -2);
    assert_int_equal(tdmi_weights_floats(weights, tdmi_weights_find(weights, "steps"), out, &err),
                     TDM_E_INPUT);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "'steps' is of type I64"));
    tdmi_weights_close(weights);
    tdmi_free(bytes);
}

TEST(every_half_is_the_float_that_its_bits_say)
{
    for (unsigned bits = 0; bits < 65536; bits++) {
        float value = tdmi_float_of_f16((uint16_t)bits);
        int exponent = (int)(bits >> 10 & 31u), mantissa = (int)(bits & 1023u);
        double size = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
        double wanted = bits & 0x8000u ? -size : size;
        if (exponent < 31)
            assert_true((double)value == wanted && !signbit(value) == !(bits & 0x8000u));
        else
            assert_true(mantissa ? isnan(value) : isinf(value));
    }
}

/* A file may have as many facts as fit: to take them in is to sort them, which for so many takes a
 * blink; when each was compared with all before it, half a minute. */
TEST(as_many_facts_as_a_file_has_are_taken_in_quickly)
{
    enum { N_FACTS = 100000, MOST_SECONDS = 5 };
    void *bytes = NULL;
    size_t n_bytes = 0;
    char key[32], value[32];
    tdm_error err = {0};
    tdmi_weights *weights = NULL;
    tdmi_safetensors_writer *writer = tdmi_safetensors_writer_new();
    tdmi_safetensors_add(writer, "f32", TDMI_DTYPE_F32, 2, square, floats);
    for (int i = 0; i < N_FACTS; i++) {
        snprintf(key, sizeof key, "a fact of the file %d", i);
        snprintf(value, sizeof value, "%d", i);
        tdmi_safetensors_note(writer, key, value);
    }
    assert_int_equal(tdmi_safetensors_finish_bytes(writer, &bytes, &n_bytes, &err), TDM_OK);
    tdmi_safetensors_writer_free(writer);
    clock_t before = clock();
    assert_int_equal(tdmi_weights_open_bytes(bytes, n_bytes, "many", &weights, &err), TDM_OK);
    assert_true(tdmi_weights_facts(weights) > N_FACTS); /* the checksum too */
    for (int i = 0; i < N_FACTS; i++) {
        snprintf(key, sizeof key, "a fact of the file %d", i);
        snprintf(value, sizeof value, "%d", i);
        assert_string_equal(tdmi_weights_fact(weights, key), value);
    }
    double seconds = (double)(clock() - before) / CLOCKS_PER_SEC;
    if (seconds > MOST_SECONDS)
        fail_msg("%d facts took %.1f s", N_FACTS, seconds);
    tdmi_weights_close(weights);
    tdmi_free(bytes);
}

/* Beyond 64 KiB a tensor of a file is read, not copied from where it is mapped. */
TEST(large_tensors_are_read_from_the_file_and_a_file_cut_meanwhile_is_reported)
{
    enum { large = 100000 };
    static const int64_t shape[] = {large};
    static float values[large], got[large];
    const char *path = "large.safetensors";
    tdmi_weights *weights = NULL;
    tdm_error err = {0};
    for (int i = 0; i < large; i++)
        values[i] = (float)i;
    tdmi_safetensors_writer *writer = tdmi_safetensors_writer_new();
    tdmi_safetensors_add(writer, "a", TDMI_DTYPE_F32, 1, four, floats);
    tdmi_safetensors_add(writer, "b", TDMI_DTYPE_F32, 1, shape, values);
    assert_int_equal(tdmi_safetensors_finish(writer, path, &err), TDM_OK);
    tdmi_safetensors_writer_free(writer);
    assert_int_equal(tdmi_weights_open(path, &weights, &err), TDM_OK);
    const struct tdmi_weights_tensor *tensor = tdmi_weights_find(weights, "b");
    assert_int_equal(tdmi_weights_floats(weights, tensor, got, &err), TDM_OK);
    assert_memory_equal(got, values, sizeof values);
    assert_int_equal(tdmi_weights_floats(weights, tdmi_weights_find(weights, "a"), got, &err),
                     TDM_OK);
    assert_memory_equal(got, floats, sizeof floats);

    assert_int_equal(truncate(path, 5000), 0);
    assert_int_equal(tdmi_weights_floats(weights, tensor, got, &err), TDM_E_INPUT);
    assert_non_null(
        strstr(tdm_error_sentence(&err, 0), "large.safetensors: reading stopped at byte 5000"));
    assert_non_null(strstr(tdm_error_sentence(&err, 1), "tensor 'b'"));
    tdmi_weights_close(weights);
    assert_int_equal(unlink(path), 0);
}

TEST(content_of_no_known_form_is_refused_with_the_known_ones)
{
    tdm_error err = {0};
    tdmi_weights *weights = NULL;
    assert_int_equal(tdmi_weights_open_bytes("a list", 6, "list.txt", &weights, &err), TDM_E_INPUT);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "list.txt: "));
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "safetensors"));
    assert_int_equal(tdmi_weights_open_bytes("GIF89a", 6, "cat.gif", &weights, &err), TDM_E_INPUT);
    assert_string_equal(tdm_error_sentence(&err, 0), "cat.gif: it is an image (GIF), not weights");
    assert_int_equal(tdmi_weights_open("/dev/null/no.pth", &weights, &err), TDM_E_INPUT);
    assert_int_equal(tdmi_weights_open("/dev/null", &weights, &err), TDM_E_INPUT);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "device"));
    assert_null(weights);
}

TEST_MAIN(NULL, NULL)
