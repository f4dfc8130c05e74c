/*
 * Chains of convolutions of backend cpu: the same bits as its links one by one, whatever the
 * shapes, paddings, strides, residuals and activations, however many strips an image takes, and
 * however many members a team has.
 * The links alone are tested by ../test_conv.c. TANDEM_TEST_SEED chooses other
 * shapes.
 */
#include "backend/cpu/cpu.h"
#include "backend/cpu/isa.h"
#include "base/memory.h"
#include "base/hash/rng.h"
#include "base/team.h"
#include "base/thread.h"
#include "graph/op.h"
#include "unit.h"

#include <math.h>

enum { n_cases = 120, most_params = 6, largest_team = 7 };

static uint64_t seed(void)
{
    const char *text = getenv("TANDEM_TEST_SEED");
    return text ? strtoull(text, NULL, 10) : 1;
}

static int between(tdmi_rng *rng, int low, int high)
{
    return low + (int)tdmi_rng_below(rng, (uint32_t)(high - low + 1));
}

static float *filled(tdmi_rng *rng, int64_t n, float low, float high)
{
    float *values = tdmi_alloc_large(sizeof(float) * (size_t)n);
    assert_non_null(values);
    for (int64_t i = 0; i < n; i++)
        values[i] = tdmi_rng_uniform(rng, low, high);
    return values;
}

/* Numbers that spoil whatever reads them. */
static float *unwritten(int64_t n)
{
    float *values = tdmi_alloc_large(sizeof(float) * (size_t)(n + 16));
    assert_non_null(values);
    for (int64_t i = 0; i < n + 16; i++)
        values[i] = NAN;
    return values;
}

struct link {
    struct tdmi_op_desc desc;
    struct tdmi_op_call call;
    float *params[most_params], *packed, *y, *workspace;
};

static const struct tdmi_kernel *conv(void)
{
    return tdmi_backend_cpu.kernels[TDMI_OP_CONV];
}

static bool has_shape(struct tdmi_op_desc *d)
{
    return tdmi_op_of(TDMI_OP_CONV)->shape(&d->attrs, d->in, &d->out, NULL) == TDM_OK;
}

static struct tdmi_op_desc product(tdmi_rng *rng, struct tdmi_shape in, int channels, int images)
{
    static const enum tdmi_act acts[] = {TDMI_ACT_NONE, TDMI_ACT_RELU, TDMI_ACT_RELU6,
                                         TDMI_ACT_HSWISH};
    struct tdmi_op_desc d = {.kind = TDMI_OP_CONV, .max_images = images};
    d.in[0] = in;
    d.attrs = (struct tdmi_op_attrs){
        .channels = channels, .kernel = 1, .stride = 1, .dilation = 1, .groups = 1};
    d.attrs.has_bias = between(rng, 0, 1);
    d.fusion.folds_norm = between(rng, 0, 1);
    d.fusion.act = acts[between(rng, 0, 3)];
    assert_true(has_shape(&d));
    return d;
}

/* The first one of a network: 3 × 3 of a picture, whose channels become those of the chain. */
static struct tdmi_op_desc window(tdmi_rng *rng, struct tdmi_shape in, int channels, int images)
{
    in.c = between(rng, 1, 3);
    struct tdmi_op_desc d = product(rng, in, channels, images);
    do {
        d.attrs.kernel = 3;
        d.attrs.stride = between(rng, 1, 2);
        d.attrs.dilation = between(rng, 0, 3) ? 1 : 2;
        d.attrs.pad_top = between(rng, 0, 2);
        d.attrs.pad_left = between(rng, 0, 2);
        d.attrs.pad_bottom = between(rng, 0, 2);
        d.attrs.pad_right = between(rng, 0, 2);
    } while (!has_shape(&d));
    return d;
}

static struct tdmi_op_desc depthwise(tdmi_rng *rng, struct tdmi_shape in, int images)
{
    struct tdmi_op_desc d = {.kind = TDMI_OP_CONV, .max_images = images};
    d.in[0] = in;
    do {
        d.attrs = (struct tdmi_op_attrs){.channels = in.c,
                                         .kernel = between(rng, 0, 3) ? 3 : 5,
                                         .stride = between(rng, 1, 2),
                                         .dilation = between(rng, 0, 7) ? 1 : 2,
                                         .groups = in.c,
                                         .has_bias = between(rng, 0, 1)};
        d.attrs.pad_top = between(rng, 0, d.attrs.kernel / 2);
        d.attrs.pad_left = between(rng, 0, d.attrs.kernel / 2);
        d.attrs.pad_bottom = between(rng, 0, d.attrs.kernel / 2);
        d.attrs.pad_right = between(rng, 0, d.attrs.kernel / 2);
    } while (!has_shape(&d));
    d.fusion.folds_norm = between(rng, 0, 1);
    d.fusion.act = (enum tdmi_act)between(rng, 0, TDMI_ACT_RELU6);
    return d;
}

/* Two or three links; the first of two may read through an activation. */
static int draw(tdmi_rng *rng, struct tdmi_op_desc descs[TDMI_CHAIN_LINKS])
{
    bool is_wide = between(rng, 0, 3) == 0; /* enough for several strips */
    int images = between(rng, 1, 3), wide = is_wide ? between(rng, 150, 300) : between(rng, 2, 70);
    struct tdmi_shape in = {between(rng, 1, is_wide ? 33 : 9), between(rng, 1, is_wide ? 40 : 9),
                            wide};
    int n = 0;
    if (between(rng, 0, 1)) {
        in.c = between(rng, 1, 40);
        descs[n++] =
            between(rng, 0, 2) ? product(rng, in, wide, images) : window(rng, in, wide, images);
        in = descs[0].out;
    }
    descs[n++] = depthwise(rng, in, images);
    if (n == 1)
        descs[0].fusion.in[0].act = (enum tdmi_act)between(rng, 0, TDMI_ACT_RELU6);
    descs[n] = product(rng, descs[n - 1].out, between(rng, 1, 70), images);
    descs[n].fusion.adds_residual = between(rng, 0, 1);
    return n + 1;
}

static void open_link(struct link *link, const struct tdmi_op_desc *desc, tdmi_rng *rng)
{
    struct tdmi_kernel_needs needs = {0};
    int out = desc->out.c;
    int64_t y_values = desc->max_images * tdmi_shape_values(desc->out);
    memset(link, 0, sizeof *link);
    link->desc = *desc;
    link->desc.team = largest_team;
    assert_int_equal(conv()->prepare(&link->desc, &link->desc.prepared, NULL), TDM_OK);
    conv()->needs(&link->desc, &needs);
    link->params[0] = filled(rng,
                             (int64_t)desc->attrs.kernel * desc->attrs.kernel *
                                 (desc->in[0].c / desc->attrs.groups) * out,
                             -1.0f, 1.0f);
    for (int i = 1; i < most_params; i++)
        link->params[i] = filled(rng, out, i == 5 ? 0.5f : -1.0f, 1.0f);
    link->packed = unwritten((int64_t)(needs.packed_bytes / sizeof(float)));
    link->workspace = unwritten((int64_t)(needs.workspace_bytes / sizeof(float)));
    link->y = unwritten(y_values);
    if (needs.packed_bytes)
        conv()->pack(NULL, &link->desc,
                     &(struct tdmi_pack_call){.params = {link->params[0], link->params[1]},
                                              .norm_params = {link->params[2], link->params[3]},
                                              .norm_states = {link->params[4], link->params[5]},
                                              .norm_epsilon = 1e-3,
                                              .packed = link->packed});
    link->call =
        (struct tdmi_op_call){.params = {link->params[0], link->params[1]}, .packed = link->packed};
}

static void close_link(struct link *link)
{
    conv()->release(link->desc.prepared);
    for (int i = 0; i < most_params; i++)
        tdmi_free_large(link->params[i]);
    tdmi_free_large(link->packed);
    tdmi_free_large(link->workspace);
    tdmi_free_large(link->y);
}

static void run_alone(struct link *links, int n, const float *x)
{
    for (int i = 0; i < n; i++) {
        struct tdmi_op_call call = links[i].call;
        call.x[0] = x;
        call.y = links[i].y;
        call.workspace = links[i].workspace;
        conv()->forward(NULL, &links[i].desc, &call);
        x = links[i].y;
    }
}

/* A chain, by the members of a team. */
struct chain_run {
    const struct tdmi_op_desc *const *descs;
    const struct tdmi_op_call *calls;
    int n;
    tdmi_team *team;
};

static tdm_status run_member(void *self, int index, int worker, tdm_error *err)
{
    const struct chain_run *run = self;
    const struct tdmi_member member = tdmi_team_join(run->team, index);
    struct tdmi_op_call calls[TDMI_CHAIN_LINKS];
    (void)worker;
    (void)err;
    memcpy(calls, run->calls, sizeof *calls * (size_t)run->n);
    calls[run->n - 1].member = &member;
    conv()->chain->forward(NULL, run->descs, calls, run->n);
    tdmi_member_wait(&member);
    tdmi_team_leave(&member);
    return TDM_OK;
}

static void run_team(struct chain_run *run, int size)
{
    tdmi_pool *pool;
    assert_int_equal(tdmi_pool_new(size, NULL, &pool, NULL), TDM_OK);
    assert_int_equal(tdmi_team_new(&run->team, NULL), TDM_OK);
    tdmi_team_form(run->team, size, false, NULL);
    assert_int_equal(tdmi_pool_run_all(pool, size, run_member, run, NULL), TDM_OK);
    tdmi_team_free(run->team);
    tdmi_pool_free(pool);
}

static void compare(const struct link *links, int n_links, int n, const float *got, int64_t values)
{
    const struct tdmi_op_desc *between = &links[n_links - 2].desc;
    const float *wanted = links[n_links - 1].y;
    for (int64_t i = 0; i < values; i++)
        if (memcmp(&got[i], &wanted[i], sizeof *got) != 0)
            fail_msg("%d links, %d images, %dx%dx%d -> %dx%d, kernel %d, stride %d, pads %d %d: "
                     "value %lld is %.9g, by the links alone %.9g",
                     n_links, n, between->in[0].h, between->in[0].w, between->in[0].c,
                     between->out.h, between->out.w, between->attrs.kernel, between->attrs.stride,
                     between->attrs.pad_top, between->attrs.pad_left, (long long)i, (double)got[i],
                     (double)wanted[i]);
}

static void check(struct link *links, const struct tdmi_op_desc *const *descs, int n_links, int n,
                  tdmi_rng *rng)
{
    struct link *last = &links[n_links - 1];
    int64_t values = n * tdmi_shape_values(last->desc.out);
    float *x = filled(rng, n * tdmi_shape_values(links[0].desc.in[0]), -3.0f, 3.0f);
    float *residual = filled(rng, values, -1.0f, 1.0f), *y = unwritten(values);
    const int64_t room = (int64_t)(conv()->chain->workspace_bytes(descs, n_links) / sizeof(float));
    float *workspace = unwritten(room);
    struct tdmi_op_call calls[TDMI_CHAIN_LINKS];
    for (int i = 0; i < n_links; i++)
        links[i].call.n = n;
    last->call.residual = last->desc.fusion.adds_residual ? residual : NULL;
    run_alone(links, n_links, x);
    for (int i = 0; i < n_links; i++)
        calls[i] = links[i].call;
    calls[0].x[0] = x;
    calls[n_links - 1].y = y;
    calls[n_links - 1].workspace = workspace;
    conv()->chain->forward(NULL, descs, calls, n_links);
    compare(links, n_links, n, y, values);
    assert_true(isnan(y[values])); /* nothing is written behind the images of the call */
    static const int sizes[] = {2, 3, largest_team};
    for (int k = 0; k < 3; k++) {
        for (int64_t i = 0; i < values; i++)
            y[i] = NAN;
        run_team(&(struct chain_run){.descs = descs, .calls = calls, .n = n_links}, sizes[k]);
        compare(links, n_links, n, y, values);
        assert_true(isnan(y[values]) && isnan(workspace[room]));
    }
    tdmi_free_large(x);
    tdmi_free_large(residual);
    tdmi_free_large(y);
    tdmi_free_large(workspace);
}

/* Whether they are a chain; if so, it is checked. */
static bool check_drawn(const struct tdmi_op_desc *drawn, int n, tdmi_rng *rng)
{
    const struct tdmi_op_desc *descs[TDMI_CHAIN_LINKS];
    struct link links[TDMI_CHAIN_LINKS];
    for (int k = 0; k < n; k++)
        descs[k] = &drawn[k];
    if (!conv()->chain->can_run(descs, n))
        return false;
    for (int k = 0; k < n; k++) {
        open_link(&links[k], &drawn[k], rng);
        descs[k] = &links[k].desc;
    }
    check(links, descs, n, between(rng, 1, drawn[0].max_images), rng);
    for (int k = 0; k < n; k++)
        close_link(&links[k]);
    return true;
}

TEST(chains_give_the_bits_of_their_links)
{
    int n_chained = 0;
    for (uint64_t i = 0; i < n_cases; i++) {
        tdmi_rng rng = tdmi_rng_at(seed(), TDMI_RNG_TEST, 8, i);
        struct tdmi_op_desc drawn[TDMI_CHAIN_LINKS];
        int n = draw(&rng, drawn);
        n_chained += check_drawn(drawn, n, &rng);
    }
    print_message("%d of %d were chains\n", n_chained, n_cases);
    if (tdmi_isa_best() >= TDMI_ISA_AVX2)
        assert_true(n_chained > n_cases / 2);
}

/* Halves that end with a row and inside of one, whole and with pixels that lack a partner, windows
 * of many rows and of few. */
TEST(seven_halves_behind_a_depthwise_convolution_give_the_bits_of_both)
{
    static const struct tdmi_shape outs[] = {{14, 14, 256}, {19, 19, 272}, {13, 15, 288},
                                             {10, 11, 256}, {39, 5, 320},  {10, 19, 256}};
    int n_chained = 0;
    for (uint64_t i = 0; i < 12; i++) {
        tdmi_rng rng = tdmi_rng_at(seed(), TDMI_RNG_TEST, 10, i);
        struct tdmi_op_desc drawn[2] = {{.kind = TDMI_OP_CONV, .max_images = between(&rng, 1, 3)}};
        struct tdmi_op_attrs *a = &drawn[0].attrs;
        const int kernel = i < 8 ? 3 : 5, top = between(&rng, 0, kernel / 2);
        const int left = between(&rng, 0, kernel / 2);
        drawn[0].in[0] = outs[i % 6];
        *a = (struct tdmi_op_attrs){.channels = drawn[0].in[0].c,
                                    .kernel = kernel,
                                    .stride = 1,
                                    .dilation = 1,
                                    .groups = drawn[0].in[0].c,
                                    .has_bias = between(&rng, 0, 1),
                                    .pad_top = top,
                                    .pad_left = left,
                                    .pad_bottom = kernel - 1 - top,
                                    .pad_right = kernel - 1 - left};
        assert_true(has_shape(&drawn[0]));
        drawn[0].fusion.folds_norm = between(&rng, 0, 1);
        drawn[0].fusion.in[0].act = (enum tdmi_act)between(&rng, 0, TDMI_ACT_RELU6);
        drawn[1] = product(&rng, drawn[0].out, between(&rng, 8, 10) * 32, drawn[0].max_images);
        drawn[1].fusion.act = (enum tdmi_act)between(&rng, 0, TDMI_ACT_RELU6);
        drawn[1].fusion.adds_residual = between(&rng, 0, 1);
        n_chained += check_drawn(drawn, 2, &rng);
    }
    if (tdmi_isa_best() == TDMI_ISA_AVX512)
        assert_int_equal(n_chained, 12);
}

TEST(other_rows_of_convolutions_are_no_chains)
{
    tdmi_rng rng = tdmi_rng_at(seed(), TDMI_RNG_TEST, 9, 0);
    struct tdmi_op_desc wide = product(&rng, (struct tdmi_shape){8, 8, 16}, 64, 2);
    struct tdmi_op_desc narrow = product(&rng, wide.out, 16, 2);
    struct tdmi_op_desc deep = depthwise(&rng, wide.out, 2);
    const struct tdmi_op_desc *products[] = {&wide, &narrow}, *ends[] = {&wide, &deep};
    assert_false(conv()->chain->can_run(products, 2));
    assert_false(conv()->chain->can_run(ends, 2));
}

TEST_MAIN(NULL, NULL)
