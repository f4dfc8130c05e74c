/*
 * A table of rows on memory that is not the host's: what was put is gathered by its number, however
 * many rows were brought at once, and never more than there is room for.
 */
#include "backend/away.h"
#include "graph/feature_table.h"
#include "base/memory.h"
#include "tensor/floats.h"
#include "unit.h"

static float value_of(int64_t row, int i)
{
    return (float)((row * 37 + i * 5) % 211) / 16.0f - 3.0f;
}

static tdmi_feature_table *open_rows(struct tdmi_feature_table_options options)
{
    tdmi_feature_table *kept;
    options.backend = away();
    assert_int_equal(tdmi_feature_table_open(&options, &kept, NULL), TDM_OK);
    return kept;
}

static void put(tdmi_feature_table *kept, int width, int64_t row, float *values)
{
    int64_t number;
    for (int i = 0; i < width; i++)
        values[i] = value_of(row, i);
    assert_int_equal(tdmi_feature_table_put(kept, values, &number, NULL), TDM_OK);
    assert_int_equal(number, row); /* as they come */
    memset(values, 0x7f, sizeof *values * (size_t)width);
}

/* Rows from the last to the first, and the first once more, as they are stored. */
static void same_rows(const tdmi_feature_table *kept, struct tdmi_feature_table_options how,
                      int64_t n)
{
    const size_t row_bytes = (size_t)how.width * tdmi_dtype_bytes(how.storage);
    const size_t bytes = (size_t)(n + 1) * row_bytes;
    const struct tdmi_memory_table *memory = &away()->memory;
    int64_t *here = calloc((size_t)n + 1, sizeof *here);
    int64_t *numbers = memory->alloc(NULL, sizeof *here * (size_t)(n + 1));
    char *there = memory->alloc(NULL, bytes), *got = calloc(bytes, 1);
    char *wanted = calloc(row_bytes, 1);
    float *values = calloc((size_t)how.width, sizeof *values);
    assert_true(here && numbers && there && got && wanted && values);
    for (int64_t i = 0; i < n; i++)
        here[i] = n - 1 - i;
    assert_int_equal(memory->upload(NULL, numbers, here, sizeof *here * (size_t)(n + 1), NULL),
                     TDM_OK);
    tdmi_feature_table_await(kept, NULL);
    tdmi_feature_table_gather(kept, NULL, numbers, (int)n + 1, there);
    assert_int_equal(memory->download(NULL, got, there, bytes, NULL), TDM_OK);
    for (int64_t i = 0; i <= n; i++) {
        for (int k = 0; k < how.width; k++)
            values[k] = value_of(here[i], k);
        tdmi_floats_store(how.storage, wanted, values, how.width);
        assert_memory_equal(got + (size_t)i * row_bytes, wanted, row_bytes);
    }
    memory->free(NULL, numbers);
    memory->free(NULL, there);
    free(here);
    free(got);
    free(wanted);
    free(values);
}

TEST(rows_are_found_by_their_numbers)
{
    static const enum tdmi_dtype types[] = {TDMI_DTYPE_F32, TDMI_DTYPE_BF16, TDMI_DTYPE_F16};
    static const struct {
        int width, at_once;
        int64_t n;
    } sizes[] = {{1, 1, 3}, {7, 4, 30}, {84, 1000, 50}, {300000, 64, 9}}; /* the last: 1.2 MB */
    for (int t = 0; t < 3; t++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            const struct tdmi_feature_table_options how = {.storage = types[t],
                                                           .width = sizes[s].width,
                                                           .at_once = sizes[s].at_once,
                                                           .n_rows = sizes[s].n};
            tdmi_feature_table *kept = open_rows(how);
            float *values = calloc((size_t)how.width, sizeof *values);
            assert_non_null(values);
            for (int64_t row = 0; row < how.n_rows; row++) {
                put(kept, how.width, row, values);
                if (row % 3 != 1)
                    continue;
                assert_int_equal(tdmi_feature_table_flush(kept, NULL), TDM_OK);
                same_rows(kept, how, row + 1);
            }
            assert_int_equal(tdmi_feature_table_flush(kept, NULL), TDM_OK);
            assert_int_equal(tdmi_feature_table_flush(kept, NULL), TDM_OK); /* of nothing */
            same_rows(kept, how, how.n_rows);
            tdmi_feature_table_close(kept);
            free(values);
        }
}

TEST(there_is_room_for_so_many)
{
    const struct tdmi_feature_table_options how = {.width = 5, .at_once = 2, .n_rows = 5};
    tdmi_feature_table *kept = open_rows(how);
    float values[5];
    int64_t number = 77;
    tdm_error err = {0};
    assert_int_equal(tdmi_feature_table_bytes(&how), 5 * 5 * 4);
    for (int64_t row = 0; row < 5; row++)
        put(kept, 5, row, values);
    assert_int_equal(tdmi_feature_table_put(kept, values, &number, &err), TDM_E_FAILED);
    assert_int_equal(number, 77);
    assert_true(err.n_frames > 0 &&
                strstr(tdm_error_sentence(&err, 0), "there is room for 5") != NULL);
    assert_int_equal(tdmi_feature_table_flush(kept, NULL), TDM_OK);
    same_rows(kept, how, 5);
    tdmi_feature_table_close(kept);
}

static void *none(tdmi_device *device, size_t bytes)
{
    (void)device;
    (void)bytes;
    return NULL;
}

TEST(a_device_without_so_much_memory_is_told)
{
    struct tdmi_backend full = *away(), unpinned = *away();
    tdmi_feature_table *kept = NULL;
    tdm_error err = {0};
    char text[TDM_ERROR_TEXT_BYTES];
    full.memory.alloc = none;
    unpinned.memory.alloc_pinned = none;
    const struct tdmi_feature_table_options how = {
        .backend = &full, .width = 1 << 10, .at_once = 2, .n_rows = 1 << 11};
    struct tdmi_feature_table_options likewise = how;
    likewise.backend = &unpinned;
    assert_int_equal(tdmi_feature_table_open(&how, &kept, &err), TDM_E_MEMORY);
    tdm_error_format(&err, text, sizeof text);
    assert_true(strstr(text, "reserving 8 MiB for 2048 rows on the device") != NULL);
    assert_int_equal(tdmi_feature_table_open(&likewise, &kept, NULL), TDM_E_MEMORY);
    assert_null(kept);
    tdmi_feature_table_close(NULL);
}

TEST_MAIN(NULL, NULL)
