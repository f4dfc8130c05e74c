/* The geometry of strips: every pixel and channel once, no thread without work beyond the last
 * block, and nothing that no card can launch without saying so. */
#include "backend/cuda/kernels/conv/tiles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void look_at(int64_t n, int h, int w, int vectors, int columns, int most_rows)
{
    const struct tdmi_cuda_tiles it = tdmi_cuda_tiles_of(n, h, w, vectors, columns, most_rows);
    assert_in_range(it.rows, 1, most_rows);
    assert_true((int64_t)it.strips * columns >= w && (int64_t)(it.strips - 1) * columns < w);
    assert_true((int64_t)it.parts * it.rows >= h && (int64_t)(it.parts - 1) * it.rows < h);
    assert_true(it.threads == (int64_t)it.strips * it.parts * vectors);
    assert_true(it.blocks * TDMI_CUDA_TILE_THREADS >= it.threads);
    assert_true((it.blocks - 1) * TDMI_CUDA_TILE_THREADS < it.threads);
    assert_true(it.all_blocks == n * it.blocks);
    assert_true(!it.is_for_one_launch == (it.threads > INT32_MAX || it.all_blocks > INT32_MAX));

    const struct tdmi_cuda_sum_tiles sums =
        tdmi_cuda_sum_tiles_of(n, h, w, vectors, columns, most_rows, 512);
    assert_in_range(sums.width * sums.lines, 1, 256);
    assert_in_range(sums.width, 1, 32);
    assert_true((int64_t)sums.beside * sums.width >= vectors);
    assert_true((int64_t)(sums.beside - 1) * sums.width < vectors);
    assert_in_range(sums.depth, 1, 512);
    assert_true(sums.depth == 1 || sums.depth * sums.cells.rows * columns <= 512);
    const int64_t block = (int64_t)sums.lines * sums.depth;
    assert_true(sums.chunks * block >= sums.n_cells && (sums.chunks - 1) * block < sums.n_cells);
}

static void all_is_covered(void **state)
{
    static const int64_t pictures[] = {1, 7, 256, 100000};
    static const int sizes[] = {1, 2, 7, 14, 17, 112, 147, 512, 40000};
    static const int vectors[] = {1, 8, 31, 33, 182, 514, 100003};
    (void)state;
    for (int n = 0; n < 4; n++)
        for (int s = 0; s < 9; s++)
            for (int v = 0; v < 7; v++)
                for (int columns = 1; columns <= 4; columns *= 2)
                    for (int most = 1; most <= 16; most *= 16)
                        look_at(pictures[n], sizes[s], sizes[8 - s], vectors[v], columns, most);
}

static void small_batches_get_shorter_parts(void **state)
{
    (void)state;
    assert_int_equal(tdmi_cuda_tiles_of(256, 112, 112, 24, 4, 16).rows, 16);
    assert_int_equal(tdmi_cuda_tiles_of(1, 112, 112, 24, 4, 16).rows, 4);
    assert_int_equal(tdmi_cuda_tiles_of(1, 3, 3, 24, 4, 16).rows, 3);
}

static void sums_have_blocks_for_a_card_and_no_more(void **state)
{
    (void)state;
    const struct tdmi_cuda_sum_tiles it = tdmi_cuda_sum_tiles_of(256, 112, 112, 8, 2, 16, 512);
    assert_in_range(it.chunks * it.beside, 256, 512);
    assert_true(it.depth > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_covered),
        cmocka_unit_test(small_batches_get_shorter_parts),
        cmocka_unit_test(sums_have_blocks_for_a_card_and_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
