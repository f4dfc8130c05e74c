/*
 * Convolutions of backends ref and cpu by their formula (conv_probe.h): one list of random cases
 * that every backend runs, and shapes beside every vector, block, chunk and frame for our own
 * kernels in every instruction set that is here. oneDNN runs the list in cpu/onednn/test_conv.c.
 */
#include "backend/conv_probe.h"
#include "backend/cpu/conv/conv_chain.h"
#include "backend/cpu/conv/conv_winners.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/isa.h"
#include "unit.h"

/* In place of the library's: kernels are prepared for this set. */
static enum tdmi_isa chosen_isa;

enum tdmi_isa tdmi_isa_best(void)
{
    return chosen_isa;
}

static void check_list(const struct tdmi_kernel *kernel, int n)
{
    int n_run = 0;
    for (int i = 0; i < n; i++)
        n_run += check_conv_case(kernel, i, true) + check_conv_case(kernel, i, false);
    assert_true(n_run > 0);
}

TEST(every_backend_computes_the_list)
{
    chosen_isa = tdmi_isa_supported();
    check_list(tdmi_backend_ref.kernels[TDMI_OP_CONV], 240);
    check_list(tdmi_backend_cpu.kernels[TDMI_OP_CONV], 400);
}

TEST(own_kernels_compute_the_list_in_every_instruction_set)
{
    for (int isa = 0; isa <= (int)tdmi_isa_supported(); isa++) {
        chosen_isa = (enum tdmi_isa)isa;
        check_list(&tdmi_conv_by_gemm, 240);
        check_list(&tdmi_conv_by_depthwise, 600);
    }
}

struct shape {
    int n, h, w, in, out, kernel, stride, dilation, pad, more_pad, groups;
};

static struct tdmi_op_desc desc_of(const struct shape *s)
{
    struct tdmi_op_desc desc = {.kind = TDMI_OP_CONV, .max_images = s->n};
    desc.in[0] = (struct tdmi_shape){s->h, s->w, s->in};
    desc.attrs = (struct tdmi_op_attrs){.channels = s->out,
                                        .kernel = s->kernel,
                                        .stride = s->stride,
                                        .dilation = s->dilation,
                                        .groups = s->groups ? s->groups : 1,
                                        .pad_top = s->pad,
                                        .pad_left = s->pad,
                                        .pad_bottom = s->more_pad,
                                        .pad_right = s->more_pad};
    assert_true(conv_shape(&desc));
    return desc;
}

static const struct shape shapes[] = {
    /* 1 × 1: one pixel, ragged channels, several chunks */
    {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0},
    {2, 3, 5, 7, 5, 1, 1, 1, 0, 0, 0},
    {3, 7, 7, 24, 40, 1, 1, 1, 0, 0, 0},
    {2, 13, 11, 33, 17, 1, 1, 1, 0, 0, 0},
    {1, 40, 41, 16, 48, 1, 1, 1, 0, 0, 0},
    /* one and a half vectors, alone and behind others; one, past the caches */
    {2, 15, 17, 70, 24, 1, 1, 1, 0, 0, 0},
    {1, 10, 13, 5, 56, 1, 1, 1, 0, 0, 0},
    {2, 14, 15, 20, 24, 3, 1, 1, 1, 1, 0},
    {2, 24, 24, 3, 96, 1, 1, 1, 0, 0, 0},
    {1, 9, 7, 512, 16, 1, 1, 1, 0, 0, 0},
    {1, 182, 181, 33, 16, 1, 1, 1, 0, 0, 0},
    {1, 8, 8, 16, 512, 1, 1, 1, 0, 0, 0},
    {2, 32, 33, 65, 80, 1, 1, 1, 0, 0, 0},
    {2, 8, 8, 20, 24, 1, 2, 1, 0, 0, 0}, /* strided */
    {1, 7, 9, 64, 33, 1, 2, 1, 0, 0, 0},
    {1, 10, 10, 5, 6, 1, 3, 1, 0, 0, 0},
    /* windows */
    {1, 1, 1, 3, 4, 3, 1, 1, 1, 1, 0},
    {2, 5, 6, 8, 16, 3, 1, 1, 1, 1, 0},
    {2, 14, 14, 70, 32, 3, 1, 1, 1, 1, 0},
    {3, 7, 7, 20, 90, 3, 1, 1, 1, 1, 0},
    {2, 9, 8, 17, 19, 3, 2, 1, 1, 1, 0},
    {1, 9, 8, 65, 19, 3, 2, 1, 0, 1, 0},
    {1, 33, 31, 3, 32, 3, 2, 1, 0, 0, 0},
    {1, 40, 38, 3, 20, 7, 2, 1, 3, 3, 0},
    {1, 23, 23, 3, 9, 11, 4, 1, 2, 2, 0},
    {2, 12, 11, 6, 7, 5, 1, 1, 2, 2, 0},
    {1, 15, 15, 10, 12, 3, 1, 2, 2, 2, 0},
    {1, 16, 15, 66, 12, 3, 2, 2, 2, 2, 0},
    {1, 12, 12, 4, 5, 2, 3, 1, 0, 0, 0},
    {1, 6, 6, 4, 5, 2, 1, 1, 0, 1, 0},
    {1, 60, 60, 66, 16, 3, 1, 1, 1, 1, 0},
    {1, 64, 63, 16, 70, 3, 2, 1, 1, 1, 0},
    /* 3 × 3 by tiles: odd sides, padding on one side or none, too much of it, several chunks */
    {1, 4, 4, 32, 32, 3, 1, 1, 1, 1, 0},
    {2, 7, 5, 32, 64, 3, 1, 1, 1, 1, 0},
    {2, 6, 9, 32, 64, 3, 1, 1, 0, 0, 0},
    {1, 8, 7, 96, 32, 3, 1, 1, 0, 1, 0},
    {1, 5, 5, 32, 32, 3, 1, 1, 2, 2, 0},
    {1, 27, 22, 32, 32, 3, 1, 1, 1, 1, 0},
    /* depthwise: stores past the caches, several bands */
    {3, 56, 56, 96, 96, 3, 1, 1, 1, 1, 96},
    {3, 57, 60, 64, 64, 3, 2, 1, 0, 0, 64},
    {3, 31, 33, 200, 200, 3, 1, 1, 1, 1, 200},
    {3, 40, 40, 64, 64, 5, 1, 1, 2, 2, 64},
    {1, 7, 5, 512, 512, 3, 1, 1, 1, 1, 512},
};

enum { n_shapes = sizeof shapes / sizeof *shapes };

static const struct tdmi_kernel *own_kernel(const struct shape *shape)
{
    return shape->groups ? &tdmi_conv_by_depthwise : &tdmi_conv_by_gemm;
}

/* Fused work of a call in training. */
static const struct variant {
    enum tdmi_act act;
    bool has_norm, has_gradient_form, adds, has_bias;
} variants[] = {
    {TDMI_ACT_RELU6, true, true, true, false},  {TDMI_ACT_RELU, true, false, false, true},
    {TDMI_ACT_NONE, false, true, true, true},   {TDMI_ACT_NONE, false, false, false, false},
    {TDMI_ACT_RELU, false, true, false, false},
};

enum { n_variants = sizeof variants / sizeof *variants };

/* All variants of every shape, shared among the instruction sets that are here. */
TEST(own_kernels_train_by_the_formula)
{
    const int n_sets = 1 + (int)tdmi_isa_supported();
    for (int i = 0; i < n_shapes * n_variants; i++) {
        const struct shape *shape = &shapes[i / n_variants];
        const struct variant *v = &variants[i % n_variants];
        struct tdmi_op_desc desc = desc_of(shape);
        chosen_isa = (enum tdmi_isa)((i / n_variants + i % n_variants) % n_sets);
        desc.is_training = desc.wants_dx = desc.fusion.gives_sums = true;
        desc.attrs.has_bias = v->has_bias;
        desc.fusion.in[0].act = v->act;
        desc.fusion.in[0].has_norm = v->has_norm;
        desc.fusion.reads_gradient_form = v->has_gradient_form;
        check_conv(own_kernel(shape), &desc, shape->n, v->adds);
    }
}

/* By Strassen's way: chunks that lack lower pixels or upper ones, halves of 8 to 23 vectors, whole
 * or not, rows that have to be copied. */
TEST(products_in_seven_halves_train_by_the_formula)
{
    static const struct shape large[] = {
        {1, 10, 10, 256, 256, 1, 1, 1, 0, 0, 0},
        {2, 9, 11, 288, 376, 1, 1, 1, 0, 0, 0},
        {1, 8, 12, 512, 288, 1, 1, 1, 0, 0, 0},
        {3, 10, 10, 376, 728, 1, 1, 1, 0, 0, 0},
    };
    chosen_isa = tdmi_isa_supported();
    for (size_t i = 0; i < sizeof large / sizeof *large * n_variants; i++) {
        const struct shape *shape = &large[i / n_variants];
        const struct variant *v = &variants[i % n_variants];
        struct tdmi_op_desc desc = desc_of(shape);
        desc.is_training = desc.wants_dx = desc.splits_products = true;
        desc.fusion.gives_sums = true;
        desc.attrs.has_bias = v->has_bias;
        desc.fusion.in[0].act = v->act;
        desc.fusion.in[0].has_norm = v->has_norm;
        desc.fusion.reads_gradient_form = v->has_gradient_form;
        assert_int_equal(tdmi_conv_gemm_of(&desc).trains_split, chosen_isa == TDMI_ISA_AVX512);
        check_conv(&tdmi_conv_by_gemm, &desc, shape->n, v->adds);
    }
}

TEST(own_kernels_infer_by_the_formula)
{
    static const enum tdmi_act acts[] = {TDMI_ACT_NONE, TDMI_ACT_RELU, TDMI_ACT_RELU6,
                                         TDMI_ACT_HSWISH};
    for (int isa = 0; isa <= (int)tdmi_isa_supported(); isa++)
        for (int i = 0; i < n_shapes; i++) {
            struct tdmi_op_desc desc = desc_of(&shapes[i]);
            chosen_isa = (enum tdmi_isa)isa;
            desc.fusion.act = acts[(i + isa) % (shapes[i].groups ? 3 : 4)];
            desc.fusion.adds_residual = i % 3 == 0 && !shapes[i].groups;
            desc.fusion.folds_norm = i % 2;
            desc.attrs.has_bias = i % 3 == 1;
            check_conv(own_kernel(&shapes[i]), &desc, shapes[i].n, false);
        }
}

/* ---- thin convolutions, alone and with a max pool ----------------------------------------------
 */

static const struct thin_shape {
    struct shape shape;
    int pool;
    enum tdmi_act act;
} thin_shapes[] = {
    {{16, 12, 12, 1, 6, 5, 1, 1, 2, 2, 0}, 0, TDMI_ACT_NONE},
    {{17, 9, 8, 6, 16, 5, 1, 1, 0, 0, 0}, 0, TDMI_ACT_NONE},
    {{1, 1, 1, 1, 1, 3, 1, 1, 1, 1, 0}, 0, TDMI_ACT_NONE},
    {{3, 2, 5, 3, 5, 2, 1, 1, 0, 1, 0}, 0, TDMI_ACT_NONE},
    {{16, 3, 17, 2, 2, 3, 1, 1, 2, 0, 0}, 0, TDMI_ACT_NONE},
    {{33, 5, 5, 4, 9, 3, 1, 1, 1, 1, 0}, 0, TDMI_ACT_NONE},
    {{7, 6, 1, 5, 7, 4, 1, 1, 3, 3, 0}, 0, TDMI_ACT_NONE},
    {{16, 1, 13, 15, 4, 2, 1, 1, 1, 1, 0}, 0, TDMI_ACT_NONE},
    {{5, 20, 3, 7, 12, 5, 1, 1, 4, 4, 0}, 0, TDMI_ACT_NONE},
    {{2, 4, 60, 1, 8, 7, 1, 1, 3, 3, 0}, 0, TDMI_ACT_NONE},
    {{17, 12, 12, 1, 6, 5, 1, 1, 2, 2, 0}, 2, TDMI_ACT_RELU},
    {{16, 9, 8, 6, 16, 5, 1, 1, 0, 0, 0}, 2, TDMI_ACT_RELU},
    {{1, 2, 2, 1, 1, 3, 1, 1, 1, 1, 0}, 2, TDMI_ACT_NONE},
    {{3, 7, 5, 3, 5, 3, 1, 1, 0, 1, 0}, 3, TDMI_ACT_RELU},
    {{33, 5, 9, 2, 2, 3, 1, 1, 2, 0, 0}, 2, TDMI_ACT_NONE},
    {{5, 6, 1, 5, 7, 3, 1, 1, 1, 2, 0}, 2, TDMI_ACT_RELU},
    {{2, 4, 11, 8, 9, 5, 1, 1, 2, 2, 0}, 4, TDMI_ACT_RELU},
    {{16, 8, 3, 4, 4, 5, 1, 1, 4, 4, 0}, 3, TDMI_ACT_NONE},
    {{9, 6, 7, 7, 3, 5, 1, 1, 2, 1, 0}, 2, TDMI_ACT_RELU},
    {{4, 5, 5, 2, 1, 5, 1, 1, 2, 2, 0}, 2, TDMI_ACT_NONE},
    {{7, 9, 6, 8, 2, 3, 1, 1, 1, 1, 0}, 2, TDMI_ACT_RELU},
};

TEST(thin_convolutions_train_by_the_formula)
{
    for (int isa = 0; isa <= (int)tdmi_isa_supported(); isa++)
        for (size_t i = 0; i < 2 * sizeof thin_shapes / sizeof *thin_shapes; i++) {
            const struct thin_shape *thin = &thin_shapes[i / 2];
            struct tdmi_op_desc desc = desc_of(&thin->shape);
            chosen_isa = (enum tdmi_isa)isa;
            desc.is_training = true;
            desc.wants_dx = i % 2;
            desc.attrs.has_bias = thin->pool || i / 2 % 2;
            desc.fusion.pool = thin->pool;
            desc.fusion.act = thin->act;
            check_conv(&tdmi_conv_by_thin, &desc, thin->shape.n, false);
        }
}

TEST(pools_without_a_loop_of_their_own_are_refused)
{
    static const struct tdmi_conv_thin cases[] = {
        {.in = 6, .out_h = 8, .out_w = 8, .out = 4, .kernel = 5, .pool = 2},
        {.in = 6, .out_h = 8, .out_w = 8, .out = 4, .kernel = 4, .pool = 2},
        {.in = 9, .out_h = 8, .out_w = 8, .out = 4, .kernel = 5, .pool = 2},
        {.in = 6, .out_h = 8, .out_w = 8, .out = 4, .kernel = 5, .pool = 5},
        {.in = 6, .out_h = 8, .out_w = 1, .out = 4, .kernel = 5, .pool = 2},
    };
    for (int i = 0; i < 5; i++)
        assert_int_equal(tdmi_conv_winners_can(&cases[i]), i == 0);
}

/* ---- numbers that must be better, or the same --------------------------------------------------
 */

static void assert_sum(const char *what, double found, const float *a, const float *b, int channel,
                       int channels, int64_t n)
{
    double sum = 0.0;
    for (int64_t i = channel; i < n; i += channels)
        sum += (double)a[i] * (b ? (double)b[i] : 1.0);
    if (!(fabs(found / sum - 1.0) <= 0x1p-24))
        fail_msg("%s[%d]: %.12g, expected %.12g", what, channel, found, sum);
}

/* All values have one sign and sums are long, so f32 sums would be off by several roundings. */
TEST(sums_over_pixels_are_as_good_as_doubles)
{
    static const struct shape sides[] = {{2, 41, 41, 16, 48, 1, 1, 1, 0, 0, 0},  /* pointwise */
                                         {2, 41, 41, 5, 24, 3, 1, 1, 1, 1, 0},   /* a window */
                                         {2, 41, 41, 32, 32, 3, 1, 1, 1, 1, 0}}; /* tiles */
    for (int i = 0; i < 3 * (1 + (int)tdmi_isa_supported()); i++) {
        struct tdmi_op_desc desc = desc_of(&sides[i % 3]);
        const int in = desc.in[0].c, out = desc.out.c;
        struct conv_probe p;
        chosen_isa = (enum tdmi_isa)(i / 3);
        desc.is_training = desc.wants_dx = desc.fusion.gives_sums = desc.attrs.has_bias = true;
        conv_begin_with(&p, &tdmi_conv_by_gemm, &desc, 2, false, 0.75f, 1.25f);
        struct tdmi_op_call call = conv_call(&p);
        call.norm.centre = call.in_norm[0].mean = NULL;
        call.dx_sums[0] = p.in_sums;
        conv_pack(&p, NULL);
        p.kernel->forward(NULL, &p.desc, &call);
        p.kernel->backward(NULL, &p.desc, &call);
        for (int c = 0; c < out; c++) {
            assert_sum("sum of y", p.out_sums[c], p.y, NULL, c, out, p.n_y);
            assert_sum("square of y", p.out_sums[out + c], p.y, p.y, c, out, p.n_y);
            assert_sum("db", (double)p.db[c], p.g, NULL, c, out, p.n_y);
        }
        for (int c = 0; c < in; c++) {
            assert_sum("sum of dx", p.in_sums[c], p.dx, NULL, c, in, p.n_x);
            assert_sum("product of dx", p.in_sums[in + c], p.dx, p.x, c, in, p.n_x);
        }
        conv_end(&p);
    }
}

/* Inputs without a form have loops of their own. */
TEST(a_depthwise_form_that_changes_nothing_changes_no_bit)
{
    for (int i = 0; i < n_shapes * (1 + (int)tdmi_isa_supported()); i++) {
        struct tdmi_op_desc desc = desc_of(&shapes[i % n_shapes]);
        struct conv_probe plain, formed;
        if (!shapes[i % n_shapes].groups)
            continue;
        chosen_isa = (enum tdmi_isa)(i / n_shapes);
        desc.is_training = true;
        desc.fusion.in[0].act = TDMI_ACT_RELU;
        conv_begin(&plain, &tdmi_conv_by_depthwise, &desc, 1, false);
        desc.fusion.in[0].has_norm = true;
        conv_begin(&formed, &tdmi_conv_by_depthwise, &desc, 1, false);
        for (int c = 0; c < desc.in[0].c; c++) {
            formed.in_vectors[c] = 1.0f;
            formed.in_vectors[desc.in[0].c + c] = 0.0f;
        }
        conv_run(&plain, 1);
        conv_run(&formed, 1);
        conv_same(&formed, "y", plain.y, formed.y, sizeof(float) * (size_t)plain.n_y);
        conv_end(&plain);
        conv_end(&formed);
    }
}

TEST_MAIN(NULL, NULL)
