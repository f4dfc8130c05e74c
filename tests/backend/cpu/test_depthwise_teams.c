/*
 * Depthwise convolutions of a team have the bits of one thread: random shapes, and shapes of
 * several bands and blocks, in every instruction set that is here. Networks: train/step/test_teams.
 */
#include "backend/conv_probe.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/isa.h"
#include "base/team.h"
#include "base/thread.h"
#include "unit.h"

enum { largest = 7 };
static const int sizes[] = {2, 3, largest};
enum { n_sizes = sizeof sizes / sizeof *sizes };

/* In place of the library's: kernels are prepared for this set. */
static enum tdmi_isa chosen_isa;

enum tdmi_isa tdmi_isa_best(void)
{
    return chosen_isa;
}

struct members {
    struct conv_probe *probe;
    tdmi_team *team;
};

/* As conv_run, by a member. */
static tdm_status run_member(void *self, int index, int worker, tdm_error *err)
{
    const struct members *members = self;
    struct conv_probe *p = members->probe;
    const struct tdmi_member member = tdmi_team_join(members->team, index);
    struct tdmi_op_call call = conv_call(p);
    (void)worker;
    (void)err;
    call.member = &member;
    p->kernel->forward(NULL, &p->desc, &call);
    tdmi_member_wait(&member);
    if (p->desc.is_training)
        p->kernel->backward(NULL, &p->desc, &call);
    tdmi_member_wait(&member);
    return TDM_OK;
}

static void run_team(tdmi_pool *pool, struct conv_probe *p, int size)
{
    struct members members = {.probe = p};
    assert_int_equal(tdmi_team_new(&members.team, NULL), TDM_OK);
    tdmi_team_form(members.team, size, tdmi_pool_may_spin(pool), NULL);
    conv_pack(p, NULL);
    if (conv_call(p).dx_add[0])
        memcpy(p->dx, p->add, sizeof(float) * (size_t)p->n_x);
    assert_int_equal(tdmi_pool_run_all(pool, size, run_member, &members, NULL), TDM_OK);
    tdmi_team_free(members.team);
}

static void check_team(tdmi_pool *pool, const struct tdmi_op_desc *desc, int n, bool adds, int size)
{
    struct tdmi_op_desc of_team = *desc;
    struct conv_probe alone, team;
    of_team.team = size;
    conv_begin(&alone, &tdmi_conv_by_depthwise, desc, n, adds);
    conv_begin(&team, &tdmi_conv_by_depthwise, &of_team, n, adds);
    conv_run(&alone, n);
    run_team(pool, &team, size);
    conv_same(&team, "y", alone.y, team.y, sizeof(float) * (size_t)alone.n_y);
    conv_same(&team, "sums of y", alone.out_sums, team.out_sums,
              2 * sizeof(double) * (size_t)desc->out.c);
    conv_same(&team, "dx", alone.dx, team.dx, sizeof(float) * (size_t)alone.n_x);
    conv_same(&team, "sums of dx", alone.in_sums, team.in_sums,
              2 * sizeof(double) * (size_t)desc->in[0].c);
    conv_same(&team, "dw", alone.dw, team.dw, sizeof(float) * (size_t)alone.n_weights);
    conv_same(&team, "db", alone.db, team.db, sizeof(float) * (size_t)desc->out.c);
    const float *behind =
        team.workspace +
        tdmi_kernel_needs_of(team.kernel, &team.desc).workspace_bytes / sizeof(float);
    for (int i = 0; i < 16; i++)
        if (!isnan(behind[i]))
            fail_msg("%s: writes behind the workspace", team.name);
    conv_end(&alone);
    conv_end(&team);
}

/* Everything that a call may fuse, chosen by the number of the case. */
static void check(tdmi_pool *pool, struct tdmi_op_desc desc, int n, int number)
{
    const bool bits[] = {number & 1, number & 2, number & 4, number & 8, number & 16};
    const int size = sizes[number % n_sizes];
    desc.attrs.has_bias = bits[0];
    desc.fusion.folds_norm = bits[1];
    desc.fusion.act = (enum tdmi_act)(number % (TDMI_ACT_RELU6 + 1));
    check_team(pool, &desc, n, false, size);
    desc.fusion = (struct tdmi_op_fusion){.gives_sums = bits[1] || bits[2],
                                          .reads_gradient_form = bits[1],
                                          .in[0] = {bits[2], desc.fusion.act}};
    desc.is_training = true;
    desc.wants_dx = bits[3] || bits[2];
    check_team(pool, &desc, n, bits[4], size);
}

TEST(random_shapes_have_the_bits_of_one_thread)
{
    tdmi_pool *pool = NULL;
    assert_int_equal(tdmi_pool_new(largest, false, &pool, NULL), TDM_OK);
    for (int i = 0; i < 120 * (1 + (int)tdmi_isa_supported()); i++) {
        tdmi_rng rng = tdmi_rng_at(conv_seed(), TDMI_RNG_TEST, 9, (uint64_t)i);
        struct tdmi_op_desc desc;
        chosen_isa = (enum tdmi_isa)(i / 120);
        do
            desc = conv_drawn(&rng);
        while (!tdmi_conv_by_depthwise.can_run(&desc));
        check(pool, desc, desc.max_images, i);
    }
    tdmi_pool_free(pool);
}

/* Several bands of several rows; one row a band; a part of a block; bands of a part of the members;
 * fewer units than members; kernel 5; a stride; dilation; stores past the caches; a picture that is
 * read where it is. */
static const struct shape {
    int n, h, w, channels, kernel, stride, dilation, pad;
} shapes[] = {
    {3, 31, 33, 200, 3, 1, 1, 1}, {1, 37, 37, 728, 3, 1, 1, 1}, {2, 40, 41, 24, 5, 1, 1, 2},
    {2, 19, 20, 72, 5, 2, 1, 2},  {1, 1, 1, 16, 3, 1, 1, 1},    {1, 2, 3, 9, 3, 2, 1, 1},
    {2, 23, 21, 40, 3, 1, 2, 2},  {2, 30, 28, 56, 3, 2, 2, 2},  {3, 57, 60, 64, 3, 2, 1, 0},
    {3, 56, 56, 48, 3, 1, 1, 1},  {1, 7, 7, 512, 3, 1, 1, 1},   {4, 7, 7, 120, 3, 1, 1, 1},
    {1, 12, 12, 33, 2, 3, 1, 0},
};

TEST(several_bands_and_blocks_have_the_bits_of_one_thread)
{
    enum { n_shapes = sizeof shapes / sizeof *shapes };
    tdmi_pool *pool = NULL;
    assert_int_equal(tdmi_pool_new(largest, false, &pool, NULL), TDM_OK);
    for (int i = 0; i < 3 * n_shapes * (1 + (int)tdmi_isa_supported()); i++) {
        const struct shape *s = &shapes[i / 3 % n_shapes];
        struct tdmi_op_desc desc = {.kind = TDMI_OP_CONV, .max_images = s->n};
        chosen_isa = (enum tdmi_isa)(i / (3 * n_shapes));
        desc.in[0] = (struct tdmi_shape){s->h, s->w, s->channels};
        desc.attrs = (struct tdmi_op_attrs){.channels = s->channels,
                                            .kernel = s->kernel,
                                            .stride = s->stride,
                                            .dilation = s->dilation,
                                            .groups = s->channels,
                                            .pad_top = s->pad,
                                            .pad_left = s->pad,
                                            .pad_bottom = s->pad,
                                            .pad_right = s->pad};
        assert_true(conv_shape(&desc));
        check(pool, desc, s->n, i);
    }
    tdmi_pool_free(pool);
}

TEST_MAIN(NULL, NULL)
