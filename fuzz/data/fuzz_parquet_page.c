/*
 * Pages of Parquet: any bytes as a head, a dictionary page and a data page of a column. Input: a
 * byte with the highest definition level (two bits) and whether values are fixed (one), then two
 * pages, each as two bytes of length (little endian), head and body together.
 */
#include "fuzz.h"
#include "base/memory.h"
#include "data/parquet/page.h"

/* Touches every byte that a page says its values have. */
static unsigned sum_of(const struct tdmi_page *page)
{
    unsigned sum = 0;
    for (int32_t i = 0; i < page->n_values; i++)
        for (int32_t b = 0; page->values[i].bytes != NULL && b < page->values[i].n_bytes; b++)
            sum += page->values[i].bytes[b];
    return sum;
}

/* The page at the start of bytes; how many of them it takes. */
static size_t decode(const uint8_t *bytes, size_t n_bytes, const struct tdmi_page_form *form,
                     const struct tdmi_page *dictionary, struct tdmi_page *page)
{
    struct tdmi_page_head head;
    size_t head_bytes, n;
    tdm_error err = {0};
    if (n_bytes < 2)
        return n_bytes;
    n = (size_t)bytes[0] | (size_t)bytes[1] << 8;
    n = n < n_bytes - 2 ? n : n_bytes - 2;
    if (tdmi_page_head_read(bytes + 2, n, &head, &head_bytes, &err) != TDM_OK) {
        if (err.n_frames == 0)
            abort();
        return n + 2;
    }
    if (head_bytes == 0 || (size_t)head.n_bytes > n - head_bytes || head.n_values > 100000)
        return n + 2;
    (void)!tdmi_page_check(&head, bytes + 2 + head_bytes, &err); /* inputs are hardly ever right */
    uint8_t *owned = tdmi_alloc((size_t)head.n_bytes, 1);
    if (owned == NULL)
        abort();
    memcpy(owned, bytes + 2 + head_bytes, (size_t)head.n_bytes);
    if (tdmi_page_decode(&head, form, owned, (size_t)head.n_bytes, owned, dictionary, page, &err) !=
        TDM_OK) {
        if (err.n_frames == 0)
            abort();
        tdmi_page_release(page);
    }
    return n + 2;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    if (length_bytes < 1)
        return 0;
    struct tdmi_page_form form = {.max_definition = bytes[0] & 3,
                                  .fixed_bytes = bytes[0] & 4 ? 1 + (bytes[0] >> 3) % 16 : 0};
    struct tdmi_page dictionary = {0}, page = {0};
    size_t at = 1 + decode(bytes + 1, length_bytes - 1, &form, NULL, &dictionary);
    decode(bytes + at, length_bytes - at, &form, &dictionary, &page);
    volatile unsigned sum = sum_of(&page) + sum_of(&dictionary);
    (void)sum;
    tdmi_page_release(&page);
    tdmi_page_release(&dictionary);
    return 0;
}
