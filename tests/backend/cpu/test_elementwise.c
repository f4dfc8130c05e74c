/*
 * Passes over whole tensors of backend cpu, in every instruction set that this processor runs,
 * against their formulas in double.
 */
#include "backend/cpu/pointwise/elementwise.h"
#include "backend/ref/ref.h"
#include "base/memory.h"
#include "base/hash/rng.h"
#include "unit.h"

#include <math.h>

static const int all_channels[] = {1, 3, 16, 17, 45, 96, 1030};
static const int64_t all_pixels[] = {1, 2, 49, 130, 300};

/* Tensors and vectors of a case, inputs random. */
struct world {
    int64_t pixels;
    int channels, n; /* n: pictures, where there are some */
    float *x[2], *dy, *y, *dx, *add, *scale[2], *shift[2], *centre;
    double *sums[2];
    tdmi_rng rng;
};

static float *numbers(tdmi_rng *rng, int64_t count, float low, float high)
{
    float *to = tdmi_alloc_aligned(sizeof(float) * (size_t)count);
    assert_non_null(to);
    for (int64_t i = 0; i < count; i++)
        to[i] = tdmi_rng_uniform(rng, low, high);
    return to;
}

static void make(struct world *it, int n, int64_t pixels, int channels)
{
    const char *seed = getenv("TANDEM_TEST_SEED");
    int64_t values = n * pixels * channels;
    memset(it, 0, sizeof *it);
    it->rng = tdmi_rng_at(seed ? strtoull(seed, NULL, 10) : 1, TDMI_RNG_TEST, (uint32_t)channels,
                          (uint64_t)pixels);
    it->n = n;
    it->pixels = pixels;
    it->channels = channels;
    for (int k = 0; k < 2; k++) {
        it->x[k] = numbers(&it->rng, values, -2, 4);
        it->scale[k] = numbers(&it->rng, channels, -1, 3);
        it->shift[k] = numbers(&it->rng, channels, -1, 1);
        it->sums[k] = tdmi_alloc((size_t)channels, sizeof(double));
    }
    it->dy = numbers(&it->rng, values, -1, 1);
    it->y = numbers(&it->rng, values, 7, 8);
    it->dx = numbers(&it->rng, values, 7, 8);
    it->add = numbers(&it->rng, values, -1, 1);
    it->centre = numbers(&it->rng, channels, -1, 1);
}

static void end(struct world *it)
{
    void *all[] = {it->x[0],    it->x[1],     it->dy,       it->y,        it->dx,
                   it->add,     it->scale[0], it->scale[1], it->shift[0], it->shift[1],
                   it->sums[0], it->sums[1],  it->centre};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tdmi_free(all[i]);
}

/* Call check for every instruction set and shape; n pictures. */
static void each(int n, void (*check)(struct world *it, const struct tdmi_elementwise_kernels *k))
{
    for (int isa = 0; isa <= (int)tdmi_isa_best(); isa++)
        for (size_t c = 0; c < sizeof all_channels / sizeof all_channels[0]; c++)
            for (size_t p = 0; p < sizeof all_pixels / sizeof all_pixels[0]; p++) {
                struct world it;
                make(&it, n, all_pixels[p], all_channels[c]);
                check(&it, tdmi_elementwise_kernels((enum tdmi_isa)isa));
                end(&it);
            }
}

static double clamped(double z, enum tdmi_act act)
{
    if (act != TDMI_ACT_NONE && z < 0)
        z = 0;
    return act == TDMI_ACT_RELU6 && z > 6 ? 6 : z;
}

static bool is_open(double z, enum tdmi_act act)
{
    return act == TDMI_ACT_NONE || (z > 0 && (act == TDMI_ACT_RELU || z < 6));
}

/* Near an edge f32 and double may see different sides. */
static bool is_edge(double z, enum tdmi_act act)
{
    return act != TDMI_ACT_NONE && (fabs(z) < 1e-5 || fabs(z - 6) < 1e-5);
}

static double z_of(const struct tdmi_read_form *form, const float *x, int64_t at, int channels)
{
    int c = (int)(at % channels);
    return form->scale ? (double)x[at] * (double)form->scale[c] + (double)form->shift[c]
                       : (double)x[at];
}

static void near(const char *what, const struct world *it, int64_t at, double got, double wanted,
                 double size)
{
    if (!(fabs(got - wanted) <= 2e-6 * (1 + size)))
        fail_msg("%s[%lld] of %lld pixels, %d channels is %.9g, wanted %.9g", what, (long long)at,
                 (long long)it->pixels, it->channels, got, wanted);
}

static struct tdmi_read_form form(const struct world *it, int k, bool has_scale, int act)
{
    return (struct tdmi_read_form){has_scale ? it->scale[k] : NULL, has_scale ? it->shift[k] : NULL,
                                   (enum tdmi_act)act};
}

static void check_sums(const struct world *it)
{
    double *of = tdmi_alloc((size_t)it->channels * 3, sizeof(double));
    for (int64_t i = 0; i < it->n * it->pixels * it->channels; i++) {
        double *sum = of + i % it->channels * 3;
        double g = (double)it->dx[i],
               off = (double)it->x[0][i] - (double)it->centre[i % it->channels];
        sum[0] += g;
        sum[1] += g * off;
        sum[2] += fabs(g) + fabs(g * off);
    }
    for (int c = 0; c < it->channels; c++) {
        near("sum", it, c, it->sums[0][c], of[3 * c], of[3 * c + 2]);
        near("product", it, c, it->sums[1][c], of[3 * c + 1], of[3 * c + 2]);
    }
    tdmi_free(of);
}

/* ---- sum and activation ---------------------------------------------------------------------- */

static void check_combine(struct world *it, const struct tdmi_elementwise_kernels *kernels)
{
    for (int which = 0; which < 24; which++) {
        struct tdmi_combine call = {
            it->pixels,
            it->channels,
            {it->x[0], which % 2 ? it->x[1] : NULL},
            {form(it, 0, which / 2 % 2, which % 3), form(it, 1, which / 4 % 2, which / 3 % 3)},
            (enum tdmi_act)(which / 8),
            it->y};
        kernels->combine(&call);
        for (int64_t i = 0; i < it->pixels * it->channels; i++) {
            double y = clamped(z_of(&call.form[0], it->x[0], i, it->channels), call.form[0].act);
            if (call.x[1])
                y += clamped(z_of(&call.form[1], it->x[1], i, it->channels), call.form[1].act);
            near("y", it, i, (double)it->y[i], clamped(y, call.act), 12);
        }
    }
}

TEST(tensors_are_added_and_activated_as_they_are_read)
{
    each(1, check_combine);
}

static void check_combine_gradient(struct world *it, const struct tdmi_elementwise_kernels *kernels)
{
    for (int which = 0; which < 24; which++) {
        struct tdmi_combine_gradient call = {.n = 1,
                                             .pixels = it->pixels,
                                             .channels = it->channels,
                                             .dy = it->dy,
                                             .y = it->x[1],
                                             .act = (enum tdmi_act)(which % 3),
                                             .x = it->x[0],
                                             .form = form(it, 0, which / 3 % 2, which / 8),
                                             .dx = it->dx,
                                             .add = which / 6 % 2 ? it->add : NULL,
                                             .sums = {it->centre, it->sums[0], it->sums[1]}};
        if (which % 5 == 0)
            call.sums.sum = call.sums.product = NULL;
        kernels->combine_backward(&call);
        for (int64_t i = 0; i < it->pixels * it->channels; i++) {
            double z = z_of(&call.form, it->x[0], i, it->channels);
            double g = is_open((double)it->x[1][i], call.act) && is_open(z, call.form.act)
                           ? (double)it->dy[i]
                           : 0;
            if (!is_edge(z, call.form.act))
                near("dx", it, i, (double)it->dx[i], g + (call.add ? (double)it->add[i] : 0), 2);
        }
        if (call.sums.sum)
            check_sums(it);
        if (call.add) {
            int64_t bytes = (int64_t)sizeof(float) * it->pixels * it->channels;
            float *copy = numbers(&it->rng, it->pixels * it->channels, 0, 1);
            memcpy(copy, it->add, (size_t)bytes);
            call.add = call.dx = copy;
            kernels->combine_backward(&call);
            assert_memory_equal(copy, it->dx, (size_t)bytes);
            tdmi_free(copy);
        }
    }
}

TEST(their_gradients_are_masked_added_and_summed)
{
    each(1, check_combine_gradient);
}

/* ---- global pooling ---------------------------------------------------------------------------
 */

static void check_global_pool(struct world *it, const struct tdmi_elementwise_kernels *kernels)
{
    for (int which = 0; which < 6; which++) {
        const struct tdmi_global_pool forward = {
            it->n, it->pixels, it->channels, it->x[0], form(it, 0, which % 2, which / 2), it->y};
        const struct tdmi_combine_gradient call = {.is_pool = true,
                                                   .n = it->n,
                                                   .pixels = it->pixels,
                                                   .channels = it->channels,
                                                   .dy = it->dy,
                                                   .x = it->x[0],
                                                   .form = forward.form,
                                                   .dx = it->dx,
                                                   .add = which % 2 ? it->add : NULL,
                                                   .sums = {it->centre, it->sums[0], it->sums[1]}};
        kernels->global_pool(&forward);
        kernels->combine_backward(&call);
        for (int64_t o = 0; o < (int64_t)it->n * it->channels; o++) {
            double mean = 0;
            for (int64_t p = 0; p < it->pixels; p++) {
                int64_t i = (o / it->channels * it->pixels + p) * it->channels + o % it->channels;
                double z = z_of(&call.form, it->x[0], i, it->channels);
                mean += clamped(z, call.form.act) / (double)it->pixels;
                double dx = is_open(z, call.form.act) ? (double)it->dy[o] / (double)it->pixels : 0;
                if (!is_edge(z, call.form.act))
                    near("dx", it, i, (double)it->dx[i], dx + (call.add ? (double)it->add[i] : 0),
                         2);
            }
            near("mean", it, o, (double)it->y[o], mean, 12);
        }
        check_sums(it);
    }
}

TEST(global_pooling_reads_and_returns_through_the_form)
{
    each(2, check_global_pool);
}

/* ---- large tensors ----------------------------------------------------------------------------
 */

TEST(large_tensors_that_pass_the_caches_by_are_right_too)
{
    for (int isa = 0; isa <= (int)tdmi_isa_best(); isa++) {
        struct world it;
        make(&it, 1, 6000, 48);
        check_combine(&it, tdmi_elementwise_kernels((enum tdmi_isa)isa));
        check_combine_gradient(&it, tdmi_elementwise_kernels((enum tdmi_isa)isa));
        check_global_pool(&it, tdmi_elementwise_kernels((enum tdmi_isa)isa));
        end(&it);
    }
}

TEST_MAIN(NULL, NULL)
