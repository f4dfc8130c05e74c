/* How grids of threads cover tensors: every pixel and channel once, no block without work, and
 * nothing that no GPU can launch, for odd and for huge shapes; and which shapes kernels take. */
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/conv/depthwise.h"
#include "backend/cuda/kernels/conv/geometry.h"
#include "backend/cuda/shim/shim_backend.h"
#include "unit.h"

static void check_columns(int64_t pixels, int channels, int lanes, int64_t most)
{
    const struct tdmi_cuda_columns it = tdmi_cuda_columns_of(pixels, channels, lanes, 1, most);
    assert_true(it.lanes == 1 || it.lanes == lanes);
    assert_int_equal(channels % it.lanes, 0);
    assert_in_range(it.width * it.rows, 1, 256);
    assert_true((int64_t)it.parts * it.width * it.lanes >= channels);
    assert_true((int64_t)(it.parts - 1) * it.width * it.lanes < channels);
    assert_in_range(it.parts, 1, 65535); /* of a grid's y */
    assert_in_range(it.chunks, 1, INT32_MAX);
    assert_true(it.chunk % it.rows == 0 && it.chunks * it.chunk >= pixels);
    assert_true((it.chunks - 1) * it.chunk < pixels);
    if (most > 0) {
        assert_true(it.chunks <= most);
        assert_true(tdmi_cuda_columns_sum_bytes(pixels, channels) >=
                    (size_t)it.chunks * 2 * (size_t)channels * sizeof(double));
    }
}

TEST(columns_cover_all_pixels_and_channels)
{
    static const int64_t pixels[] = {1,     2,    7,      255,     256,     257,
                                     12544, 3137, 200704, 3211264, 1 << 24, (int64_t)5 << 30};
    static const int channels[] = {1,   2,   3,    8,    24,   32,     96,
                                   255, 728, 1000, 2048, 4103, 100003, 16000001};
    for (size_t p = 0; p < sizeof pixels / sizeof *pixels; p++)
        for (size_t c = 0; c < sizeof channels / sizeof *channels; c++)
            for (int lanes = 1; lanes <= 8; lanes *= 2) {
                check_columns(pixels[p], channels[c], lanes, 0);
                check_columns(pixels[p], channels[c], lanes, TDMI_CUDA_SUM_CHUNKS);
            }
    assert_int_equal(tdmi_cuda_columns_of(100, 64, 8, 0, 0).lanes, 1);
    assert_int_equal(tdmi_cuda_columns_of(100, 64, 8, 1, 0).lanes, 8);
    assert_int_equal(tdmi_cuda_columns_of(100, 63, 8, 1, 0).lanes, 1);
}

static void check_tiles(int64_t n, int h, int w, int vectors, int columns, int most_rows)
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

TEST(tiles_cover_all_pixels_and_channels)
{
    static const int64_t images[] = {1, 7, 256, 100000};
    static const int sizes[] = {1, 2, 7, 14, 17, 112, 147, 512, 40000};
    static const int vectors[] = {1, 8, 31, 33, 182, 514, 100003};
    for (int n = 0; n < 4; n++)
        for (int s = 0; s < 9; s++)
            for (int v = 0; v < 7; v++)
                for (int columns = 1; columns <= 4; columns *= 2)
                    for (int most = 1; most <= 16; most *= 16)
                        check_tiles(images[n], sizes[s], sizes[8 - s], vectors[v], columns, most);
    /* small batches get shorter parts, and sums have blocks for a whole GPU and no more */
    assert_int_equal(tdmi_cuda_tiles_of(256, 112, 112, 24, 4, 16).rows, 16);
    assert_int_equal(tdmi_cuda_tiles_of(1, 112, 112, 24, 4, 16).rows, 4);
    assert_int_equal(tdmi_cuda_tiles_of(1, 3, 3, 24, 4, 16).rows, 3);
    const struct tdmi_cuda_sum_tiles it = tdmi_cuda_sum_tiles_of(256, 112, 112, 8, 2, 16, 512);
    assert_in_range(it.chunks * it.beside, 256, 512);
    assert_true(it.depth > 1);
}

/* A group may have fewer images than the workspace was planned for, and then more chunks. */
TEST(fewer_images_need_no_more_workspace)
{
    static const struct tdmi_cuda_window shapes[] = {
        {.n = 64, .out_h = 19, .out_w = 19, .channels = 128, .kernel = 3, .stride = 1},
        {.n = 64, .out_h = 5, .out_w = 5, .channels = 1344, .kernel = 3, .stride = 1},
        {.n = 32, .out_h = 7, .out_w = 7, .channels = 1152, .kernel = 5, .stride = 1},
        {.n = 40, .out_h = 21, .out_w = 21, .channels = 30, .kernel = 7, .stride = 3},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct tdmi_cuda_window some = shapes[i];
        some.dilation = 1;
        const size_t bytes = tdmi_cuda_depthwise_workspace_bytes(&some);
        while (--some.n > 0)
            assert_true(tdmi_cuda_depthwise_workspace_bytes(&some) <= bytes);
    }
}

/* ---- what kernels of convolutions take ------------------------------------------------------ */

static const struct tdmi_op_desc depthwise = {
    .kind = TDMI_OP_CONV,
    .attrs = {.channels = 8, .kernel = 3, .stride = 2, .dilation = 1, .groups = 8},
    .in = {{7, 6, 8}},
    .out = {3, 2, 8},
    .max_images = 3,
};

TEST(a_convolution_promises_only_the_fusion_that_it_has)
{
    const struct tdmi_kernel *kernel = tdmi_backend_shim.kernels[TDMI_OP_CONV];
    static const struct tdmi_op_fusion refused[] = {
        {.adds_residual = true},
        {.act = TDMI_ACT_HSWISH},
        {.gives_sums = true},
        {.reads_gradient_form = true},
        {.in = {{.has_norm = true}}},
        {.pool = 2},
        {.in = {{.act = TDMI_ACT_SIGMOID}}},
    };
    struct tdmi_op_desc desc = depthwise;
    for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
        desc.fusion = refused[k];
        assert_false(kernel->can_fuse(&desc));
    }
    desc.fusion = (struct tdmi_op_fusion){.act = TDMI_ACT_RELU, .in = {{.act = TDMI_ACT_RELU6}}};
    assert_true(kernel->can_fuse(&desc) && tdmi_cuda_depthwise.can_run(&desc));
    desc.attrs.groups = 4; /* another kernel: only what follows, and only without training */
    assert_false(tdmi_cuda_depthwise.can_run(&desc));
    assert_false(kernel->can_fuse(&desc));
    desc.fusion = (struct tdmi_op_fusion){.act = TDMI_ACT_RELU, .adds_residual = true};
    assert_true(kernel->can_fuse(&desc));
    desc.is_training = true;
    assert_false(kernel->can_fuse(&desc));
}

TEST(a_dense_layer_promises_only_a_relu_without_training)
{
    static const struct tdmi_op_fusion refused[] = {
        {.act = TDMI_ACT_RELU6},
        {.act = TDMI_ACT_RELU, .adds_residual = true},
        {.act = TDMI_ACT_RELU, .folds_norm = true},
        {.act = TDMI_ACT_RELU, .in = {{.act = TDMI_ACT_RELU}}},
        {.act = TDMI_ACT_RELU, .gives_sums = true},
    };
    struct tdmi_op_desc desc = {.kind = TDMI_OP_DENSE, .fusion = {.act = TDMI_ACT_RELU}};
    assert_true(tdmi_cuda_dense.can_fuse(&desc));
    desc.is_training = true;
    assert_false(tdmi_cuda_dense.can_fuse(&desc));
    desc.is_training = false;
    for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
        desc.fusion = refused[k];
        assert_false(tdmi_cuda_dense.can_fuse(&desc));
    }
}

TEST_MAIN(NULL, NULL)
