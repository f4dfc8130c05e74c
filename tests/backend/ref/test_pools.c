/* Pooling and padding of the reference backend against their formulas, over random shapes. */
#include "backend/probe.h"

static void check_max_pool(const struct probe *p, bool is_training)
{
    const struct tdmi_op_attrs *a = &p->it.attrs;
    struct tdmi_shape in = p->it.in;
    int64_t n_x = p->it.n * tdmi_shape_values(in);
    double *dx = calloc((size_t)n_x, sizeof *dx);
    assert_non_null(dx);
    for (int n = 0; n < p->it.n; n++)
        for (int y = 0; y < p->out.h; y++)
            for (int x = 0; x < p->out.w; x++)
                for (int c = 0; c < in.c; c++) {
                    double best = -INFINITY;
                    int64_t winner = -1;
                    for (int ky = 0; ky < a->kernel; ky++)
                        for (int kx = 0; kx < a->kernel; kx++) {
                            int row = y * a->stride + ky - a->pad_top;
                            int column = x * a->stride + kx - a->pad_left;
                            if (row < 0 || row >= in.h || column < 0 || column >= in.w ||
                                x_at(p, n, row, column, c) <= best)
                                continue;
                            best = x_at(p, n, row, column, c);
                            winner = at(in, n, row, column, c);
                        }
                    assert_true(winner >= 0);
                    same(p, TDMI_T_Y, at(p->out, n, y, x, c), best, 1.0);
                    dx[winner] += dy_at(p, n, y, x, c);
                }
    for (int64_t i = 0; is_training && i < n_x; i++)
        same(p, TDMI_T_DX, i, dx[i], a->kernel * a->kernel);
    free(dx);
}

/* Padding is narrower than the window, so that every window sees a pixel. */
TEST(max_pooling_takes_the_largest_and_returns_the_gradient_to_it)
{
    for (int i = 0; i < 150; i++) {
        tdmi_rng rng = tdmi_rng_at(seed(), TDMI_RNG_TEST, 4, (uint64_t)i);
        struct tdmi_case it = {.kind = TDMI_OP_MAX_POOL, .n = between(&rng, 1, 3)};
        it.attrs = random_window(&rng, &it.in, 5, 1);
        it.max_images = it.n + between(&rng, 0, 2);
        struct probe probe;
        for (int training = 0; training < 2; training++) {
            run(&probe, it, training);
            check_max_pool(&probe, training);
            end(&probe);
        }
    }
}

TEST(global_pooling_is_the_mean_of_every_channel)
{
    for (int i = 0; i < 60; i++) {
        tdmi_rng rng = tdmi_rng_at(seed(), TDMI_RNG_TEST, 5, (uint64_t)i);
        struct tdmi_case it = {.kind = TDMI_OP_GLOBAL_POOL, .n = between(&rng, 1, 4)};
        it.in = (struct tdmi_shape){between(&rng, 1, 9), between(&rng, 1, 9), between(&rng, 1, 20)};
        it.max_images = it.n + between(&rng, 0, 2);
        struct probe p;
        run(&p, it, true);
        double pixels = (double)tdmi_shape_pixels(it.in);
        for (int n = 0; n < it.n; n++)
            for (int c = 0; c < it.in.c; c++) {
                double sum = 0.0;
                for (int y = 0; y < it.in.h; y++)
                    for (int x = 0; x < it.in.w; x++) {
                        sum += x_at(&p, n, y, x, c);
                        same(&p, TDMI_T_DX, at(it.in, n, y, x, c), dy_at(&p, n, 0, 0, c) / pixels,
                             1.0);
                    }
                same(&p, TDMI_T_Y, (int64_t)n * it.in.c + c, sum / pixels, 1.0);
            }
        end(&p);
    }
}

/* Its own count of pixels; the gradient goes back by the same weights. */
static void check_avg_pool(const struct probe *p, bool is_training)
{
    const struct tdmi_op_attrs *a = &p->it.attrs;
    struct tdmi_shape in = p->it.in;
    int64_t n_x = p->it.n * tdmi_shape_values(in);
    double *dx = calloc((size_t)n_x, sizeof *dx);
    assert_non_null(dx);
    for (int n = 0; n < p->it.n; n++)
        for (int y = 0; y < p->out.h; y++)
            for (int x = 0; x < p->out.w; x++)
                for (int c = 0; c < in.c; c++) {
                    double sum = 0.0, count = 0.0;
                    for (int pass = 0; pass < 2; pass++)
                        for (int ky = 0; ky < a->kernel; ky++)
                            for (int kx = 0; kx < a->kernel; kx++) {
                                int row = y * a->stride + ky - a->pad_top;
                                int column = x * a->stride + kx - a->pad_left;
                                bool is_in = row >= 0 && row < in.h && column >= 0 && column < in.w;
                                if (pass == 0) {
                                    sum += x_at(p, n, row, column, c);
                                    count += is_in || a->counts_padding;
                                } else if (is_in) {
                                    dx[at(in, n, row, column, c)] += dy_at(p, n, y, x, c) / count;
                                }
                            }
                    same(p, TDMI_T_Y, at(p->out, n, y, x, c), sum / count, 1.0);
                }
    for (int64_t i = 0; is_training && i < n_x; i++)
        same(p, TDMI_T_DX, i, dx[i], a->kernel * a->kernel);
    free(dx);
}

TEST(average_pooling_counts_the_padding_only_when_told)
{
    for (int i = 0; i < 150; i++) {
        tdmi_rng rng = tdmi_rng_at(seed(), TDMI_RNG_TEST, 8, (uint64_t)i);
        struct tdmi_case it = {.kind = TDMI_OP_AVG_POOL, .n = between(&rng, 1, 3)};
        it.attrs = random_window(&rng, &it.in, 5, 1);
        it.attrs.counts_padding = i % 2;
        it.max_images = it.n + between(&rng, 0, 2);
        struct probe probe;
        for (int training = 0; training < 2; training++) {
            run(&probe, it, training);
            check_avg_pool(&probe, training);
            end(&probe);
        }
    }
}

TEST(padding_adds_zeros_and_cuts_them_off_the_gradient)
{
    for (int i = 0; i < 60; i++) {
        tdmi_rng rng = tdmi_rng_at(seed(), TDMI_RNG_TEST, 9, (uint64_t)i);
        struct tdmi_case it = {.kind = TDMI_OP_PAD, .n = between(&rng, 1, 3)};
        struct tdmi_op_attrs *a = &it.attrs;
        int *pads[] = {&a->pad_top,   &a->pad_bottom, &a->pad_left,
                       &a->pad_right, &a->pad_front,  &a->pad_back};
        for (int k = 0; k < 6; k++)
            *pads[k] = between(&rng, 0, 3);
        it.in = (struct tdmi_shape){between(&rng, 1, 5), between(&rng, 1, 5), between(&rng, 1, 9)};
        it.max_images = it.n;
        struct probe p;
        run(&p, it, true);
        assert_int_equal(p.out.h, it.in.h + a->pad_top + a->pad_bottom);
        assert_int_equal(p.out.w, it.in.w + a->pad_left + a->pad_right);
        assert_int_equal(p.out.c, it.in.c + a->pad_front + a->pad_back);
        for (int n = 0; n < it.n; n++)
            for (int y = 0; y < p.out.h; y++)
                for (int x = 0; x < p.out.w; x++)
                    for (int c = 0; c < p.out.c; c++) {
                        int row = y - a->pad_top, column = x - a->pad_left, k = c - a->pad_front;
                        bool is_in = k >= 0 && k < it.in.c && row >= 0 && row < it.in.h &&
                                     column >= 0 && column < it.in.w;
                        same(&p, TDMI_T_Y, at(p.out, n, y, x, c),
                             is_in ? x_at(&p, n, row, column, k) : 0.0, 1.0);
                        if (is_in)
                            same(&p, TDMI_T_DX, at(it.in, n, row, column, k), dy_at(&p, n, y, x, c),
                                 1.0);
                    }
        end(&p);
    }
}

TEST(equal_values_of_a_window_give_the_gradient_to_the_first)
{
    const float x[4] = {3.0f, 3.0f, 3.0f, 3.0f}, dy[1] = {5.0f};
    float y[1], dx[4];
    uint8_t saved[1];
    struct tdmi_op_desc desc = {.kind = TDMI_OP_MAX_POOL,
                                .attrs = {.kernel = 2, .stride = 2},
                                .in = {{2, 2, 1}},
                                .out = {1, 1, 1},
                                .max_images = 1,
                                .is_training = true,
                                .wants_dx = true};
    struct tdmi_op_call call = {.n = 1, .x = {x}, .y = y, .dy = dy, .dx = {dx}, .saved = saved};
    const struct tdmi_kernel *kernel = tdmi_backend_ref.kernels[TDMI_OP_MAX_POOL];
    kernel->forward(NULL, &desc, &call);
    kernel->backward(NULL, &desc, &call);
    assert_true(y[0] == 3.0f);
    assert_true(dx[0] == 5.0f && dx[1] == 0.0f && dx[2] == 0.0f && dx[3] == 0.0f);
}

/* Two shapes that differ in channels; one of the two gradients is not wanted. */
TEST(joining_puts_the_channels_behind_each_other)
{
    enum { pixels = 2 * 3, first = 2, second = 3, both = first + second, images = 2 };
    float a[images * pixels * first], b[images * pixels * second], y[images * pixels * both];
    float da[images * pixels * first], db[images * pixels * second];
    struct tdmi_op_desc desc = {.kind = TDMI_OP_CONCAT,
                                .in = {{2, 3, first}, {2, 3, second}},
                                .max_images = images,
                                .is_training = true,
                                .wants_dx = true};
    const struct tdmi_kernel *kernel = tdmi_backend_ref.kernels[TDMI_OP_CONCAT];
    assert_int_equal(tdmi_op_of(TDMI_OP_CONCAT)->shape(&desc.attrs, desc.in, &desc.out, NULL),
                     TDM_OK);
    assert_int_equal(desc.out.c, both);
    for (int i = 0; i < images * pixels; i++)
        for (int c = 0; c < both; c++)
            *(c < first ? &a[i * first + c] : &b[i * second + c - first]) = (float)(10 * i + c);
    struct tdmi_op_call call = {.n = images, .x = {a, b}, .y = y, .dy = y, .dx = {da, db}};
    kernel->forward(NULL, &desc, &call);
    for (int i = 0; i < images * pixels * both; i++)
        assert_true(y[i] == (float)(i / both * 10 + i % both));
    kernel->backward(NULL, &desc, &call);
    assert_memory_equal(a, da, sizeof a);
    assert_memory_equal(b, db, sizeof b);
    memset(db, 0, sizeof db);
    call.dx[0] = NULL;
    kernel->backward(NULL, &desc, &call);
    assert_memory_equal(b, db, sizeof b);
    desc.in[1].w = 4;
    assert_int_equal(tdmi_op_of(TDMI_OP_CONCAT)->shape(&desc.attrs, desc.in, &desc.out, NULL),
                     TDM_E_INPUT);
}

TEST_MAIN(print_seed, NULL)
