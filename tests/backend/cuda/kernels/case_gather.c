/*
 * image.cu: rows of any width in any order, some of them twice, and nothing but them; from places
 * where vectors may begin and from others; and from a table of more than 2^31 vectors.
 */
#include "backend/cuda/values.h"
#include "backend/cuda/kernels/image/image.h"

#include <sys/mman.h>

enum { n_rows = 41, most = 70 };

/* Byte b of a row of the table, which no other row has in most places. */
static unsigned char byte_of(int64_t row, size_t b)
{
    return (unsigned char)(row * 31 + (int64_t)b * 7 + ((int64_t)b >> 8));
}

/* Both begin `off` bytes after 64; behind and before what is written lies what must stay. */
static void run(size_t row_bytes, int n, size_t off)
{
    const size_t table_bytes = n_rows * row_bytes, bytes = (size_t)n * row_bytes;
    char *table = tdmi_alloc_aligned(table_bytes + 64), *to = tdmi_alloc_aligned(bytes + 128);
    int64_t numbers[most];
    assert_true(table && to && n <= most);
    memset(to, 0x5c, bytes + 128);
    for (int64_t r = 0; r < n_rows; r++)
        for (size_t b = 0; b < row_bytes; b++)
            table[off + (size_t)r * row_bytes + b] = (char)byte_of(r, b);
    for (int i = 0; i < n; i++)
        numbers[i] = i == 1 ? n_rows - 1 : (i * 17 + 3) % n_rows;
    assert_int_equal(tdmi_cuda_gather(NULL, table + off, row_bytes, numbers, n, to + 64 + off), 0);
    for (int i = 0; i < n; i++)
        for (size_t b = 0; b < row_bytes; b++)
            if ((unsigned char)to[64 + off + (size_t)i * row_bytes + b] != byte_of(numbers[i], b))
                fail_msg("row %d of %d, byte %zu of %zu, is not that of row %lld", i, n, b,
                         row_bytes, (long long)numbers[i]);
    for (size_t i = 0; i < 64 + off; i++)
        assert_int_equal(to[i], 0x5c);
    for (size_t i = 64 + off + bytes; i < bytes + 128; i++)
        assert_int_equal(to[i], 0x5c);
    tdmi_free(table);
    tdmi_free(to);
}

/* 2^31 vectors of 16 bytes and some, from there and from where vectors cannot begin: of the table
 * only what is gathered is there. */
static void run_huge(size_t off)
{
    const size_t row_bytes = 1024 * sizeof(float);
    const int64_t rows = ((int64_t)1 << 23) + 3;
    const size_t bytes = (size_t)rows * row_bytes + off;
    const int64_t numbers[] = {rows - 1, 0, rows - 2};
    _Alignas(16) char to[3 * 1024 * sizeof(float)];
    char *table = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(table != MAP_FAILED);
    for (int i = 0; i < 3; i++)
        memset(table + off + (size_t)numbers[i] * row_bytes, 0x21 + i, row_bytes);
    assert_int_equal(tdmi_cuda_gather(NULL, table + off, row_bytes, numbers, 3, to), 0);
    for (size_t i = 0; i < sizeof to; i++)
        assert_int_equal(to[i], 0x21 + (int)(i / row_bytes));
    munmap(table, bytes);
}

void case_gather(void **state)
{
    static const size_t widths[] = {1,  2,  3,        6,         14,       16,
                                    20, 84, 1280 * 2, 4096 + 16, 16 * 257, 9002};
    static const size_t offsets[] = {0, 16, 4, 2, 1};
    (void)state;
    for (int backwards = 0; backwards < 2; backwards++) {
        tdmi_shim_use((struct tdmi_shim_order){.is_reversed = backwards == 1});
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
            for (size_t k = 0; k < sizeof offsets / sizeof *offsets; k++) {
                run(widths[w], 1, offsets[k]);
                run(widths[w], most, offsets[k]);
            }
    }
    assert_int_equal(tdmi_cuda_gather(NULL, NULL, 16, NULL, 0, NULL), 0);
    run_huge(0);
    run_huge(4);
}
