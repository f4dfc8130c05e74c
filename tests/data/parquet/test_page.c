/* Pages of Parquet byte by byte: forms that pyarrow, which wrote the other fixtures, never writes.
 */

#include "unit.h"
#include "data/tree.h"
#include "base/memory.h"
#include "data/parquet/page.h"
#include "tandem/error.h"

/* The body: two plain binary values, "ab" and "c". */
static const uint8_t two_values[] = {2, 0, 0, 0, 'a', 'b', 1, 0, 0, 0, 'c'};

/* The head of a data page of version 1 that holds them, with levels said to be so encoded. */
static size_t put_head(uint8_t head[32], int level_encoding)
{
    const uint8_t bytes[] = {0x15, 0,                             /* 1: a data page */
                             0x15, 2 * sizeof two_values,         /* 2: uncompressed */
                             0x15, 2 * sizeof two_values,         /* 3: as they lie */
                             0x2c,                                /* 5: a struct */
                             0x15, 2 * 2,                         /* 1: values */
                             0x15, 0,                             /* 2: plain */
                             0x15, (uint8_t)(2 * level_encoding), /* 3: definition levels */
                             0x15, (uint8_t)(2 * level_encoding), /* 4: repetition levels */
                             0,    0};
    memcpy(head, bytes, sizeof bytes);
    return sizeof bytes;
}

static tdm_status decode(int level_encoding, int max_definition, struct tdmi_page *page,
                         tdm_error *err)
{
    uint8_t bytes[32];
    struct tdmi_page_head head;
    size_t head_bytes = 0, n = put_head(bytes, level_encoding);
    const struct tdmi_page_form form = {.max_definition = max_definition};
    *page = (struct tdmi_page){0};
    assert_int_equal(tdmi_page_head_read(bytes, n, &head, &head_bytes, err), TDM_OK);
    assert_int_equal(head_bytes, n);
    uint8_t *owned = tdmi_alloc(sizeof two_values, 1);
    assert_non_null(owned);
    memcpy(owned, two_values, sizeof two_values);
    return tdmi_page_decode(&head, &form, owned, sizeof two_values, owned, NULL, page, err);
}

/* parquet-mr, and so Spark, writes BIT_PACKED (4) into the heads of columns that have no levels. */
TEST(what_a_head_says_of_levels_that_are_not_there_does_not_matter)
{
    static const int encodings[] = {3, 4};
    for (size_t i = 0; i < sizeof encodings / sizeof encodings[0]; i++) {
        tdm_error err = {0};
        struct tdmi_page page;
        assert_ok(decode(encodings[i], 0, &page, &err), &err);
        assert_int_equal(page.n_values, 2);
        assert_int_equal(page.values[0].n_bytes, 2);
        assert_memory_equal(page.values[0].bytes, "ab", 2);
        assert_int_equal(page.values[1].n_bytes, 1);
        assert_memory_equal(page.values[1].bytes, "c", 1);
        tdmi_page_release(&page);
    }
}

TEST(levels_of_another_encoding_are_refused_by_name)
{
    tdm_error err = {0};
    struct tdmi_page page;
    assert_failure(decode(4, 1, &page, &err), TDM_E_INPUT, &err, "levels");
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "encoding 4"));
    tdmi_page_release(&page);
}

TEST_MAIN(NULL, NULL)
