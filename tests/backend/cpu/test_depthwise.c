/*
 * Depthwise convolution of backend cpu, in every instruction set that this processor runs, against
 * its formula in double, over random shapes: odd sizes, channels that fill no vector, uneven
 * padding, strides, dilation, all forms. TANDEM_TEST_SEED chooses other shapes.
 */
#include "backend/cpu/depthwise/depthwise.h"
#include "base/memory.h"
#include "base/hash/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Everything of one case, inputs random. Channel vectors have room for a weight's taps too. */
struct world {
    struct tdmi_depthwise shape;
    int n;
    enum tdmi_act act;
    bool has_form, has_gradient, has_add, has_bias;
    int64_t x_values, y_values, w_values;
    float *x, *y, *g, *add, *weights, *scale, *shift, *centre, *of_g, *of_y, *one, *bias;
    float *out, *dx, *dweights, *dbias;
    double *sums[2];
    void *workspace;
    char name[200];
};

static int between(tdmi_rng *rng, int low, int high)
{
    return low + (int)tdmi_rng_below(rng, (uint32_t)(high - low + 1));
}

static float *numbers(tdmi_rng *rng, int64_t count, float low, float high)
{
    float *to = tdmi_alloc_aligned(sizeof(float) * (size_t)count);
    assert_non_null(to);
    for (int64_t i = 0; i < count; i++)
        to[i] = tdmi_rng_uniform(rng, low, high);
    return to;
}

static void make(struct world *it, tdmi_rng *rng)
{
    const struct tdmi_depthwise *s = &it->shape;
    it->x_values = (int64_t)it->n * s->h * s->w * s->channels;
    it->y_values = (int64_t)it->n * s->out_h * s->out_w * s->channels;
    it->w_values = (int64_t)s->kernel * s->kernel * s->channels;
    it->x = numbers(rng, it->x_values, -2, 3);
    it->y = numbers(rng, it->y_values, -1, 1);
    it->g = numbers(rng, it->y_values, -1, 1);
    it->add = numbers(rng, it->x_values, -1, 1);
    it->weights = numbers(rng, it->w_values, -1, 1);
    it->scale = numbers(rng, s->channels, -1, 4);
    it->shift = numbers(rng, s->channels, -1, 2);
    it->centre = numbers(rng, s->channels, -1, 1);
    it->of_g = numbers(rng, s->channels, -1, 1);
    it->of_y = numbers(rng, s->channels, -1, 1);
    it->one = numbers(rng, s->channels, -1, 1);
    it->bias = numbers(rng, s->channels, -1, 1);
    it->out = numbers(rng, it->y_values, 7, 8);
    it->dx = numbers(rng, it->x_values, 7, 8);
    it->dweights = numbers(rng, it->w_values, 7, 8);
    it->dbias = numbers(rng, s->channels, 7, 8);
    for (int i = 0; i < 2; i++) {
        it->sums[i] = tdmi_alloc((size_t)s->channels, sizeof(double));
        assert_non_null(it->sums[i]);
    }
    /* Old contents of the workspace must not matter. */
    size_t bytes = tdmi_depthwise_workspace_bytes(s);
    it->workspace = tdmi_alloc_aligned(bytes);
    assert_non_null(it->workspace);
    memset(it->workspace, 0xff, bytes);
    snprintf(it->name, sizeof it->name,
             "%d of %dx%dx%d to %dx%d, kernel %d, stride %d, dilation %d, top %d, left %d, act %d, "
             "form %d, gradient %d, add %d",
             it->n, s->h, s->w, s->channels, s->out_h, s->out_w, s->kernel, s->stride, s->dilation,
             s->top, s->left, (int)it->act, it->has_form, it->has_gradient, it->has_add);
}

static void end(struct world *it)
{
    void *all[] = {it->x,     it->y,       it->g,       it->add,      it->weights,
                   it->scale, it->shift,   it->centre,  it->of_g,     it->of_y,
                   it->one,   it->bias,    it->out,     it->dx,       it->dweights,
                   it->dbias, it->sums[0], it->sums[1], it->workspace};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tdmi_free(all[i]);
}

static struct tdmi_depthwise random_shape(tdmi_rng *rng)
{
    static const int channels[] = {1, 3, 8, 16, 17, 32, 45, 96};
    struct tdmi_depthwise s = {.h = between(rng, 1, 17),
                               .w = between(rng, 1, 23),
                               .channels = channels[between(rng, 0, 7)],
                               .kernel = between(rng, 0, 3) ? 3 : between(rng, 1, 7),
                               .stride = between(rng, 0, 3) ? between(rng, 1, 2) : 3,
                               .dilation = between(rng, 0, 4) ? 1 : between(rng, 2, 3)};
    int reach = (s.kernel - 1) * s.dilation;
    s.top = between(rng, 0, reach + 1);
    s.left = between(rng, 0, reach + 1);
    int bottom = between(rng, 0, reach + 1), right = between(rng, 0, reach + 1);
    while (s.h + s.top + bottom < reach + 1)
        bottom++;
    while (s.w + s.left + right < reach + 1)
        right++;
    s.out_h = (s.h + s.top + bottom - reach - 1) / s.stride + 1;
    s.out_w = (s.w + s.left + right - reach - 1) / s.stride + 1;
    return s;
}

static void make_random(struct world *it, tdmi_rng *rng)
{
    memset(it, 0, sizeof *it);
    it->shape = random_shape(rng);
    it->n = between(rng, 1, 3);
    it->act = (enum tdmi_act)between(rng, TDMI_ACT_NONE, TDMI_ACT_RELU6);
    it->has_form = between(rng, 0, 1);
    it->has_gradient = between(rng, 0, 1);
    it->has_add = between(rng, 0, 1);
    it->has_bias = between(rng, 0, 1);
    make(it, rng);
}

/* ---- the formulas ---------------------------------------------------------------------------- */

static double clamped(double z, enum tdmi_act act)
{
    if (act != TDMI_ACT_NONE && z < 0)
        z = 0;
    return act == TDMI_ACT_RELU6 && z > 6 ? 6 : z;
}

/* z as the kernels see it: in f32, where the edge of the mask would be in doubt otherwise. */
static double z_at(const struct world *it, int64_t at)
{
    int c = (int)(at % it->shape.channels);
    return it->has_form ? (double)it->x[at] * (double)it->scale[c] + (double)it->shift[c]
                        : (double)it->x[at];
}

static double dy_at(const struct world *it, int64_t at)
{
    int c = (int)(at % it->shape.channels);
    return it->has_gradient ? (double)it->of_g[c] * (double)it->g[at] +
                                  (double)it->of_y[c] * (double)it->y[at] + (double)it->one[c]
                            : (double)it->g[at];
}

/* Where tap (ky, kx) of an output pixel lies in x, or -1. */
static int64_t pixel_of(const struct tdmi_depthwise *s, int n, int row, int column, int tap)
{
    int y = row * s->stride - s->top + tap / s->kernel * s->dilation;
    int x = column * s->stride - s->left + tap % s->kernel * s->dilation;
    if (y < 0 || y >= s->h || x < 0 || x >= s->w)
        return -1;
    return ((int64_t)n * s->h + y) * s->w + x;
}

static void near(const struct world *it, const char *what, int64_t at, double got, double wanted,
                 double size)
{
    if (!(fabs(got - wanted) <= 3e-6 * (1 + size)))
        fail_msg("%s: %s[%lld] is %.9g, wanted %.9g", it->name, what, (long long)at, got, wanted);
}

static void check_forward(const struct world *it, enum tdmi_act act_of_y, bool has_sums)
{
    const struct tdmi_depthwise *s = &it->shape;
    double *sums = tdmi_alloc((size_t)s->channels, 2 * sizeof(double));
    for (int64_t p = 0; p < it->y_values / s->channels; p++) {
        int n = (int)(p / s->out_w / s->out_h);
        for (int c = 0; c < s->channels; c++) {
            double y = it->has_bias ? (double)it->bias[c] : 0, size = 0;
            for (int tap = 0; tap < s->kernel * s->kernel; tap++) {
                int64_t from =
                    pixel_of(s, n, (int)(p / s->out_w % s->out_h), (int)(p % s->out_w), tap);
                double product = from < 0 ? 0
                                          : clamped(z_at(it, from * s->channels + c), it->act) *
                                                (double)it->weights[tap * s->channels + c];
                y += product;
                size += fabs(product);
            }
            near(it, "y", p * s->channels + c, (double)it->out[p * s->channels + c],
                 clamped(y, act_of_y), size);
            double off = (double)it->out[p * s->channels + c] - (double)it->centre[c];
            sums[2 * c] += off;
            sums[2 * c + 1] += off * off;
        }
    }
    for (int c = 0; c < s->channels && has_sums; c++) {
        double size = sums[2 * c + 1] + (double)(it->y_values / s->channels);
        near(it, "sum", c, it->sums[0][c], sums[2 * c], size);
        near(it, "square", c, it->sums[1][c], sums[2 * c + 1], size);
    }
    tdmi_free(sums);
}

/* dx before the mask, dweights and dbias, spread from the outputs, in double, and their sizes. */
struct gradients {
    double *dx, *dx_size, *dweights, *dweights_size, *dbias;
};

static double *doubles(int64_t count)
{
    double *to = tdmi_alloc((size_t)count, sizeof *to);
    assert_non_null(to);
    return to;
}

static struct gradients spread(const struct world *it)
{
    const struct tdmi_depthwise *s = &it->shape;
    struct gradients to = {doubles(it->x_values), doubles(it->x_values), doubles(it->w_values),
                           doubles(it->w_values), doubles(s->channels)};
    for (int64_t p = 0; p < it->y_values / s->channels; p++)
        for (int tap = 0; tap < s->kernel * s->kernel; tap++) {
            int64_t from = pixel_of(s, (int)(p / s->out_w / s->out_h),
                                    (int)(p / s->out_w % s->out_h), (int)(p % s->out_w), tap);
            for (int c = 0; c < s->channels; c++) {
                double dy = dy_at(it, p * s->channels + c);
                if (tap == 0)
                    to.dbias[c] += dy;
                if (from < 0)
                    continue;
                int64_t x = from * s->channels + c, w = tap * s->channels + c;
                double v = clamped(z_at(it, x), it->act);
                to.dx[x] += dy * (double)it->weights[w];
                to.dx_size[x] += fabs(dy * (double)it->weights[w]);
                to.dweights[w] += dy * v;
                to.dweights_size[w] += fabs(dy * v);
            }
        }
    return to;
}

static void check_backward(const struct world *it, bool has_dx)
{
    const struct tdmi_depthwise *s = &it->shape;
    struct gradients wanted = spread(it);
    double *sums = doubles(2 * s->channels), *sizes = doubles(2 * s->channels);
    for (int64_t i = 0; i < it->w_values; i++)
        near(it, "dweights", i, (double)it->dweights[i], wanted.dweights[i],
             wanted.dweights_size[i]);
    for (int c = 0; c < s->channels; c++)
        near(it, "dbias", c, (double)it->dbias[c], wanted.dbias[c],
             3 * (double)(it->y_values / s->channels));
    for (int64_t i = 0; i < it->x_values && has_dx; i++) {
        int c = (int)(i % s->channels);
        double z = z_at(it, i), dx = wanted.dx[i];
        if (it->act != TDMI_ACT_NONE && (z <= 0 || (it->act == TDMI_ACT_RELU6 && z >= 6)))
            dx = 0;
        dx += it->has_add ? (double)it->add[i] : 0;
        /* f32 may see the other side of an edge */
        bool is_edge = it->act != TDMI_ACT_NONE && (fabs(z) < 1e-5 || fabs(z - 6) < 1e-5);
        if (!is_edge)
            near(it, "dx", i, (double)it->dx[i], dx, wanted.dx_size[i] + 1);
        double off = (double)it->x[i] - (double)it->centre[c];
        sums[2 * c] += (double)it->dx[i];
        sums[2 * c + 1] += (double)it->dx[i] * off;
        sizes[2 * c] += fabs((double)it->dx[i]);
        sizes[2 * c + 1] += fabs((double)it->dx[i] * off);
    }
    for (int c = 0; c < s->channels && has_dx; c++) {
        near(it, "sum of g", c, it->sums[0][c], sums[2 * c], sizes[2 * c]);
        near(it, "product", c, it->sums[1][c], sums[2 * c + 1], sizes[2 * c + 1]);
    }
    double *all[] = {wanted.dx, wanted.dx_size, wanted.dweights, wanted.dweights_size, wanted.dbias,
                     sums,      sizes};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tdmi_free(all[i]);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void run_forward(struct world *it, enum tdmi_isa isa, enum tdmi_act act, bool has_sums)
{
    struct tdmi_depthwise_forward call = {.n = it->n,
                                          .x = it->x,
                                          .form = {.act = it->act},
                                          .weights = it->weights,
                                          .bias = it->has_bias ? it->bias : NULL,
                                          .act = act,
                                          .y = it->out,
                                          .workspace = it->workspace};
    if (it->has_form) {
        call.form.scale = it->scale;
        call.form.shift = it->shift;
    }
    if (has_sums)
        call.sums = (struct tdmi_forward_sums){it->centre, it->sums[0], it->sums[1]};
    tdmi_depthwise_kernels(isa)->forward(&it->shape, &call);
}

static void run_backward(struct world *it, enum tdmi_isa isa, const float *add, float *dx)
{
    struct tdmi_depthwise_backward call = {.n = it->n,
                                           .x = it->x,
                                           .form = {.act = it->act},
                                           .g = it->g,
                                           .weights = it->weights,
                                           .dweights = it->dweights,
                                           .dbias = it->dbias,
                                           .dx = dx,
                                           .add = add,
                                           .workspace = it->workspace};
    if (it->has_form) {
        call.form.scale = it->scale;
        call.form.shift = it->shift;
    }
    if (it->has_gradient) {
        call.y = it->y;
        call.gradient = (struct tdmi_gradient_form){it->of_g, it->of_y, it->one};
    }
    if (dx)
        call.sums = (struct tdmi_backward_sums){it->centre, it->sums[0], it->sums[1]};
    tdmi_depthwise_kernels(isa)->backward(&it->shape, &call);
}

static void each_isa(void (*check)(tdmi_rng *rng, enum tdmi_isa isa))
{
    const char *seed = getenv("TANDEM_TEST_SEED");
    for (int isa = 0; isa <= (int)tdmi_isa_best(); isa++) {
        tdmi_rng rng = tdmi_rng_at(seed ? strtoull(seed, NULL, 10) : 1, TDMI_RNG_TEST, 0, 0);
        check(&rng, (enum tdmi_isa)isa);
    }
}

static void forward_cases(tdmi_rng *rng, enum tdmi_isa isa)
{
    for (int i = 0; i < 300; i++) {
        struct world it;
        make_random(&it, rng);
        bool has_sums = i % 2;
        enum tdmi_act act = has_sums ? TDMI_ACT_NONE : (enum tdmi_act)between(rng, 0, 2);
        run_forward(&it, isa, act, has_sums);
        check_forward(&it, act, has_sums);
        end(&it);
    }
}

static void y_is_the_convolution_of_what_the_form_reads(void **state)
{
    (void)state;
    each_isa(forward_cases);
}

/* Inputs without a form are read where they are, by loops of their own. */
static void identity_case(struct world *it, enum tdmi_isa isa)
{
    float *first = tdmi_alloc((size_t)it->y_values, sizeof *first);
    assert_non_null(first);
    it->has_form = false;
    run_forward(it, isa, TDMI_ACT_RELU6, false);
    memcpy(first, it->out, sizeof(float) * (size_t)it->y_values);
    for (int c = 0; c < it->shape.channels; c++) {
        it->scale[c] = 1.0f;
        it->shift[c] = 0.0f;
    }
    it->has_form = true;
    run_forward(it, isa, TDMI_ACT_RELU6, false);
    if (memcmp(first, it->out, sizeof(float) * (size_t)it->y_values) != 0)
        fail_msg("%s: other bits without a form", it->name);
    tdmi_free(first);
    end(it);
}

static void identity_cases(tdmi_rng *rng, enum tdmi_isa isa)
{
    static const struct tdmi_depthwise shapes[] = {{56, 56, 96, 56, 56, 3, 1, 1, 1, 1},
                                                   {57, 60, 64, 28, 30, 3, 2, 1, 0, 0},
                                                   {31, 33, 200, 31, 33, 3, 1, 1, 1, 1},
                                                   {7, 5, 512, 7, 5, 3, 1, 1, 1, 1},
                                                   {40, 40, 256, 40, 40, 3, 1, 1, 1, 1}};
    for (int i = 0; i < 60; i++) {
        struct world it;
        make_random(&it, rng);
        identity_case(&it, isa);
    }
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct world it = {.shape = shapes[i], .n = 1, .act = TDMI_ACT_RELU, .has_bias = true};
        make(&it, rng);
        identity_case(&it, isa);
    }
}

static void a_form_that_changes_nothing_changes_no_bit(void **state)
{
    (void)state;
    each_isa(identity_cases);
}

static void backward_cases(tdmi_rng *rng, enum tdmi_isa isa)
{
    for (int i = 0; i < 300; i++) {
        struct world it;
        make_random(&it, rng);
        bool has_dx = i % 4;
        it.has_add = it.has_add && has_dx;
        run_backward(&it, isa, it.has_add ? it.add : NULL, has_dx ? it.dx : NULL);
        check_backward(&it, has_dx);
        end(&it);
    }
}

static void gradients_and_their_sums_are_those_of_the_formula(void **state)
{
    (void)state;
    each_isa(backward_cases);
}

static void add_cases(tdmi_rng *rng, enum tdmi_isa isa)
{
    for (int i = 0; i < 40; i++) {
        struct world it;
        make_random(&it, rng);
        run_backward(&it, isa, it.add, it.dx);
        run_backward(&it, isa, it.add, it.add);
        assert_memory_equal(it.add, it.dx, sizeof(float) * (size_t)it.x_values);
        end(&it);
    }
}

static void the_gradient_may_be_added_in_place(void **state)
{
    (void)state;
    each_isa(add_cases);
}

/* Large enough for stores past the caches and for several bands; the second run finds another
 * workspace. */
static void large_cases(tdmi_rng *rng, enum tdmi_isa isa)
{
    static const struct tdmi_depthwise shapes[] = {{56, 56, 96, 56, 56, 3, 1, 1, 1, 1},
                                                   {57, 60, 64, 28, 30, 3, 2, 1, 0, 0},
                                                   {31, 33, 200, 31, 33, 3, 1, 1, 1, 1},
                                                   {40, 40, 64, 40, 40, 5, 1, 1, 2, 2}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct world it = {.shape = shapes[i], .n = 3, .act = TDMI_ACT_RELU6};
        it.has_form = it.has_gradient = it.has_add = true;
        make(&it, rng);
        run_forward(&it, isa, TDMI_ACT_NONE, true);
        check_forward(&it, TDMI_ACT_NONE, true);
        float *first = numbers(rng, it.y_values, 0, 1);
        memcpy(first, it.out, sizeof(float) * (size_t)it.y_values);
        memset(it.workspace, 0x7f, tdmi_depthwise_workspace_bytes(&it.shape));
        run_forward(&it, isa, TDMI_ACT_NONE, true);
        assert_memory_equal(first, it.out, sizeof(float) * (size_t)it.y_values);
        run_backward(&it, isa, it.add, it.dx);
        check_backward(&it, true);
        double sum = it.sums[1][shapes[i].channels - 1];
        float *weights = numbers(rng, it.w_values, 0, 1);
        memcpy(weights, it.dweights, sizeof(float) * (size_t)it.w_values);
        run_backward(&it, isa, it.add, it.add);
        assert_memory_equal(it.add, it.dx, sizeof(float) * (size_t)it.x_values);
        assert_memory_equal(weights, it.dweights, sizeof(float) * (size_t)it.w_values);
        assert_true(sum == it.sums[1][shapes[i].channels - 1]);
        tdmi_free(first);
        tdmi_free(weights);
        end(&it);
    }
}

static void two_runs_over_large_pictures_give_the_same_bits(void **state)
{
    (void)state;
    each_isa(large_cases);
}

/* The same result whatever stands beside a picture in its shard. */
static void shard_cases(tdmi_rng *rng, enum tdmi_isa isa)
{
    for (int i = 0; i < 20; i++) {
        struct world it;
        make_random(&it, rng);
        run_forward(&it, isa, TDMI_ACT_NONE, false);
        int64_t values = it.y_values / it.n;
        float *all = numbers(rng, it.y_values, 0, 1);
        memcpy(all, it.out, sizeof(float) * (size_t)it.y_values);
        int n = it.n;
        it.n = 1;
        run_forward(&it, isa, TDMI_ACT_NONE, false);
        assert_memory_equal(all, it.out, sizeof(float) * (size_t)values);
        it.n = n;
        tdmi_free(all);
        end(&it);
    }
}

static void a_picture_does_not_see_its_neighbours(void **state)
{
    (void)state;
    each_isa(shard_cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(y_is_the_convolution_of_what_the_form_reads),
        cmocka_unit_test(a_form_that_changes_nothing_changes_no_bit),
        cmocka_unit_test(gradients_and_their_sums_are_those_of_the_formula),
        cmocka_unit_test(the_gradient_may_be_added_in_place),
        cmocka_unit_test(two_runs_over_large_pictures_give_the_same_bits),
        cmocka_unit_test(a_picture_does_not_see_its_neighbours),
    };
    return cmocka_run_group_tests_name(TEST_NAME, tests, NULL, NULL);
}
