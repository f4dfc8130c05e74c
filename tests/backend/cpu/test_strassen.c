/*
 * Products of seven halves without training, through the kernel table, compared with sums in double
 * within the limit of all convolutions. Images have any number of pixels, so that blocks are full
 * or lack a pixel or a few, and jobs are one or several; some channels do not fill the halves.
 */
#include "backend/cpu/cpu.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/gemm/strassen.h"
#include "base/memory.h"
#include "base/hash/rng.h"
#include "base/team.h"
#include "base/thread.h"
#include "graph/op.h"
#include "unit.h"

#include <math.h>

static float *filled(int64_t n, uint64_t stream, float low, float high)
{
    tdmi_rng rng = tdmi_rng_at(1, TDMI_RNG_TEST, 10, stream);
    float *values = tdmi_alloc_large(sizeof(float) * (size_t)n);
    assert_non_null(values);
    for (int64_t i = 0; i < n; i++)
        values[i] = tdmi_rng_uniform(&rng, low, high);
    return values;
}

struct product {
    struct tdmi_op_desc desc;
    int n;
    float *x, *weights, *gamma, *beta, *mean, *variance, *residual, *y;
};

static int64_t pixels_of(const struct product *p)
{
    return p->n * tdmi_shape_pixels(p->desc.in[0]);
}

/* Everything that a call reads, and a value behind what it writes. */
static void begin(struct product *p, struct tdmi_shape in, int out, int n, enum tdmi_act act,
                  bool adds_residual)
{
    memset(p, 0, sizeof *p);
    p->n = n;
    p->desc = (struct tdmi_op_desc){.kind = TDMI_OP_CONV, .max_images = n};
    p->desc.in[0] = in;
    p->desc.attrs = (struct tdmi_op_attrs){
        .channels = out, .kernel = 1, .stride = 1, .dilation = 1, .groups = 1};
    p->desc.fusion.folds_norm = true;
    p->desc.fusion.act = act;
    p->desc.fusion.adds_residual = adds_residual;
    assert_int_equal(
        tdmi_op_of(TDMI_OP_CONV)->shape(&p->desc.attrs, p->desc.in, &p->desc.out, NULL), TDM_OK);
    p->x = filled(pixels_of(p) * in.c, 1, -1.0f, 3.0f);
    p->weights = filled((int64_t)in.c * out, 2, -1.0f, 1.0f);
    p->gamma = filled(out, 3, 0.5f, 1.5f);
    p->beta = filled(out, 4, -1.0f, 1.0f);
    p->mean = filled(out, 5, -1.0f, 1.0f);
    p->variance = filled(out, 6, 0.5f, 2.0f);
    p->residual = filled(pixels_of(p) * out, 7, -1.0f, 1.0f);
    p->y = filled(pixels_of(p) * out + 1, 8, 777.0f, 778.0f);
}

static void end(struct product *p)
{
    float *all[] = {p->x, p->weights, p->gamma, p->beta, p->mean, p->variance, p->residual, p->y};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tdmi_free_large(all[i]);
}

/* A call, by the members of a team. */
struct shared {
    const struct tdmi_op_desc *desc;
    const struct tdmi_op_call *call;
    tdmi_team *team;
};

static tdm_status run_member(void *self, int index, int worker, tdm_error *err)
{
    const struct shared *shared = self;
    const struct tdmi_member member = tdmi_team_join(shared->team, index);
    struct tdmi_op_call call = *shared->call;
    (void)worker;
    (void)err;
    call.member = &member;
    tdmi_backend_cpu.kernels[TDMI_OP_CONV]->forward(NULL, shared->desc, &call);
    tdmi_member_wait(&member);
    tdmi_team_leave(&member);
    return TDM_OK;
}

static void run_team(const struct product *p, const struct tdmi_op_call *call)
{
    struct shared shared = {.desc = &p->desc, .call = call};
    tdmi_pool *pool;
    assert_int_equal(tdmi_pool_new(p->desc.team, NULL, &pool, NULL), TDM_OK);
    assert_int_equal(tdmi_team_new(&shared.team, NULL), TDM_OK);
    tdmi_team_form(shared.team, p->desc.team, false, NULL);
    assert_int_equal(tdmi_pool_run_all(pool, p->desc.team, run_member, &shared, NULL), TDM_OK);
    tdmi_team_free(shared.team);
    tdmi_pool_free(pool);
}

/* By a team, if desc.team is set. */
static void run(struct product *p)
{
    const struct tdmi_kernel *kernel = tdmi_backend_cpu.kernels[TDMI_OP_CONV];
    struct tdmi_kernel_needs needs = {0};
    assert_int_equal(kernel->prepare(&p->desc, &p->desc.prepared, NULL), TDM_OK);
    kernel->needs(&p->desc, &needs);
    float *packed = filled((int64_t)(needs.packed_bytes / sizeof(float)) + 1, 9, 1e6f, 2e6f);
    float *workspace = filled((int64_t)(needs.workspace_bytes / sizeof(float)) + 1, 9, 1e6f, 2e6f);
    kernel->pack(NULL, &p->desc,
                 &(struct tdmi_pack_call){.params = {p->weights},
                                          .norm_params = {p->gamma, p->beta},
                                          .norm_states = {p->mean, p->variance},
                                          .norm_epsilon = 1e-3,
                                          .packed = packed});
    struct tdmi_op_call call = {.n = p->n,
                                .x = {p->x},
                                .y = p->y,
                                .params = {p->weights},
                                .packed = packed,
                                .workspace = workspace,
                                .residual = p->desc.fusion.adds_residual ? p->residual : NULL};
    if (p->desc.team > 1)
        run_team(p, &call);
    else
        kernel->forward(NULL, &p->desc, &call);
    kernel->release(p->desc.prepared);
    tdmi_free_large(packed);
    tdmi_free_large(workspace);
}

static void check(const struct product *p)
{
    const int in = p->desc.in[0].c, out = p->desc.out.c;
    for (int64_t pixel = 0; pixel < pixels_of(p); pixel++)
        for (int c = 0; c < out; c++) {
            const int64_t at = pixel * out + c;
            double sum = 0.0, size = 0.0;
            for (int i = 0; i < in; i++) {
                double term =
                    (double)p->x[pixel * in + i] * (double)p->weights[(int64_t)i * out + c];
                sum += term;
                size += fabs(term);
            }
            double factor = (double)p->gamma[c] / sqrt((double)p->variance[c] + 1e-3);
            sum = (sum - (double)p->mean[c]) * factor + (double)p->beta[c];
            size *= 1.0 + fabs(factor);
            if (p->desc.fusion.adds_residual)
                sum += (double)p->residual[at];
            if (p->desc.fusion.act != TDMI_ACT_NONE)
                sum = fmax(sum, 0.0);
            if (p->desc.fusion.act == TDMI_ACT_RELU6)
                sum = fmin(sum, 6.0);
            if (!(fabs((double)p->y[at] - sum) <= 3e-6 * (1.0 + size)))
                fail_msg("%d -> %d channels, %lld pixels: value %d of pixel %lld is %.9g, wanted "
                         "%.9g",
                         in, out, (long long)pixels_of(p), c, (long long)pixel, (double)p->y[at],
                         sum);
        }
    assert_true(p->y[pixels_of(p) * out] >= 777.0f); /* nothing is written behind it */
}

TEST(halves_give_the_products_of_the_definition)
{
    static const struct {
        struct tdmi_shape in;
        int out, n;
        enum tdmi_act act;
        bool adds_residual;
    } cases[] = {
        {{8, 14, 256}, 256, 1, TDMI_ACT_NONE, false},
        {{10, 11, 258}, 280, 1, TDMI_ACT_RELU, true}, /* a block that is not full, 9 vectors */
        {{3, 37, 256}, 274, 1, TDMI_ACT_RELU6, false},
        {{10, 14, 300}, 288, 2, TDMI_ACT_NONE, true},
        {{11, 15, 260}, 344, 1, TDMI_ACT_RELU6, true},
        {{5, 22, 512}, 256, 2, TDMI_ACT_RELU, false}, /* pixels that are copied */
        {{1, 167, 728}, 728, 1, TDMI_ACT_NONE, false},
        {{8, 14, 257}, 256, 1, TDMI_ACT_NONE, true},  /* an odd depth: one chain */
        {{8, 14, 256}, 264, 1, TDMI_ACT_NONE, true},  /* unequal halves: one chain */
        {{4, 21, 256}, 256, 1, TDMI_ACT_NONE, true},  /* too few pixels: one chain */
        {{10, 10, 256}, 256, 1, TDMI_ACT_NONE, true}, /* blocks that are too empty: one chain */
    };
    int n_split = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct product p;
        n_split += tdmi_strassen_is_for(tdmi_isa_best(), tdmi_shape_pixels(cases[i].in),
                                        cases[i].in.c, cases[i].out);
        begin(&p, cases[i].in, cases[i].out, cases[i].n, cases[i].act, cases[i].adds_residual);
        run(&p);
        check(&p);
        end(&p);
    }
    if (tdmi_isa_best() == TDMI_ISA_AVX512)
        assert_int_equal(n_split, sizeof cases / sizeof cases[0] - 4);
}

/* The result of an image does not depend on its neighbours. */
TEST(images_have_the_same_bits_alone)
{
    struct product all, alone;
    begin(&all, (struct tdmi_shape){10, 11, 256}, 256, 3, TDMI_ACT_RELU, true);
    begin(&alone, (struct tdmi_shape){10, 11, 256}, 256, 1, TDMI_ACT_RELU, true);
    const int64_t x = tdmi_shape_values(all.desc.in[0]), y = tdmi_shape_values(all.desc.out);
    run(&all);
    for (int i = 0; i < all.n; i++) {
        memcpy(alone.x, all.x + i * x, sizeof(float) * (size_t)x);
        memcpy(alone.residual, all.residual + i * y, sizeof(float) * (size_t)y);
        run(&alone);
        assert_memory_equal(alone.y, all.y + i * y, sizeof(float) * (size_t)y);
    }
    end(&all);
    end(&alone);
}

TEST(teams_give_the_bits_of_one_thread)
{
    static const struct tdmi_shape ins[] = {{14, 14, 256}, {19, 19, 260}, {10, 11, 258}};
    static const int teams[] = {2, 3, 7};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            struct product alone, team;
            begin(&alone, ins[i], 288, 1 + k, TDMI_ACT_RELU, true);
            begin(&team, ins[i], 288, 1 + k, TDMI_ACT_RELU, true);
            team.desc.team = teams[k];
            run(&alone);
            run(&team);
            assert_memory_equal(team.y, alone.y,
                                sizeof(float) * (size_t)(pixels_of(&alone) * 288 + 1));
            end(&alone);
            end(&team);
        }
}

TEST_MAIN(NULL, NULL)
