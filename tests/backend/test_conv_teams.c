/*
 * Convolutions of backend cpu computed by a team: the bits of one thread, for every algorithm,
 * instruction set and fused work, and for shapes of which some members have nothing.
 */
#include "backend/conv_probe.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/isa.h"
#include "base/team.h"
#include "unit.h"

#include <pthread.h>

enum { most_members = TDMI_TEAM_MOST };

/* In place of the library's: kernels are prepared for this set. */
static enum tdmi_isa chosen_isa;

enum tdmi_isa tdmi_isa_best(void)
{
    return chosen_isa;
}

/* ---- a call by a team ---- */

struct team_run {
    struct conv_probe *probe;
    tdmi_team *team;
    pthread_t threads[most_members];
    struct team_seat {
        struct team_run *run;
        int index;
    } seats[most_members];
};

static void *run_member(void *at)
{
    const struct team_seat *seat = at;
    struct conv_probe *p = seat->run->probe;
    const struct tdmi_member member = tdmi_team_join(seat->run->team, seat->index);
    struct tdmi_op_call call = conv_call(p);
    call.member = &member;
    p->kernel->forward(NULL, &p->desc, &call);
    tdmi_member_wait(&member);
    if (p->desc.is_training)
        p->kernel->backward(NULL, &p->desc, &call);
    tdmi_member_wait(&member);
    return NULL;
}

static void run_team(struct conv_probe *p, int size)
{
    struct team_run run = {.probe = p};
    assert_int_equal(tdmi_team_new(&run.team, NULL), TDM_OK);
    tdmi_team_form(run.team, size, false, NULL);
    conv_pack(p, NULL);
    if (p->adds)
        memcpy(p->dx, p->add, sizeof(float) * (size_t)p->n_x);
    for (int i = 0; i < size; i++) {
        run.seats[i] = (struct team_seat){&run, i};
        assert_int_equal(pthread_create(&run.threads[i], NULL, run_member, &run.seats[i]), 0);
    }
    for (int i = 0; i < size; i++)
        pthread_join(run.threads[i], NULL);
    tdmi_team_free(run.team);
}

/* A plan that has room for a larger team computes with one thread what the plan for one does. */
static void check_team(const struct tdmi_op_desc *desc, int n, bool adds, int size)
{
    struct conv_probe alone, spare, shared;
    struct tdmi_op_desc roomy = *desc;
    roomy.team = size;
    conv_begin(&alone, &tdmi_conv_by_gemm, desc, n, adds);
    conv_begin(&spare, &tdmi_conv_by_gemm, &roomy, n, adds);
    conv_begin(&shared, &tdmi_conv_by_gemm, &roomy, n, adds);
    conv_run(&alone, n);
    conv_run(&spare, n);
    run_team(&shared, size);
    const struct conv_probe *others[] = {&spare, &shared};
    for (int i = 0; i < 2; i++) {
        const struct conv_probe *p = others[i];
        conv_same(p, "y", p->y, alone.y, sizeof(float) * (size_t)p->n_y);
        if (desc->fusion.gives_sums)
            conv_same(p, "sums of y", p->out_sums, alone.out_sums,
                      2 * sizeof(double) * (size_t)desc->out.c);
        if (!desc->is_training)
            continue;
        conv_same(p, "dw", p->dw, alone.dw, sizeof(float) * (size_t)p->n_weights);
        if (desc->attrs.has_bias)
            conv_same(p, "db", p->db, alone.db, sizeof(float) * (size_t)desc->out.c);
        if (desc->wants_dx)
            conv_same(p, "dx", p->dx, alone.dx, sizeof(float) * (size_t)p->n_x);
        if (desc->wants_dx && desc->fusion.in[0].has_norm)
            conv_same(p, "sums of dx", p->in_sums, alone.in_sums,
                      2 * sizeof(double) * (size_t)desc->in[0].c);
    }
    conv_end(&alone);
    conv_end(&spare);
    conv_end(&shared);
}

/* ---- shapes ---- */

static const struct shape {
    int n, h, w, in, out, kernel, stride, dilation, pad;
} shapes[] = {
    /* 1 × 1: shared chunks, also of members' own, more of those than have room at once */
    {3, 7, 9, 24, 40, 1, 1, 1, 0},
    {2, 40, 41, 16, 48, 1, 1, 1, 0},
    {1, 130, 130, 64, 64, 1, 1, 1, 0},
    /* tiles: fewer than members, odd sides, several chunks and stretches, many channels */
    {1, 4, 4, 32, 32, 3, 1, 1, 1},
    {2, 7, 5, 32, 64, 3, 1, 1, 1},
    {3, 9, 11, 96, 32, 3, 1, 1, 0},
    {8, 14, 14, 64, 64, 3, 1, 1, 1},
    {2, 57, 60, 32, 32, 3, 1, 1, 1},
    {3, 7, 7, 160, 320, 3, 1, 1, 1},
    /* windows: a pixel, lines of one block and of several, strides, dilation, few channels */
    {1, 1, 1, 3, 4, 3, 1, 1, 1},
    {2, 5, 6, 8, 16, 3, 1, 1, 1},
    {3, 7, 7, 20, 90, 3, 1, 1, 1},
    {2, 14, 14, 70, 32, 3, 1, 1, 1},
    {3, 9, 8, 17, 19, 3, 2, 1, 1},
    {2, 33, 31, 3, 32, 3, 2, 1, 0},
    {2, 40, 38, 3, 20, 7, 2, 1, 3},
    {1, 23, 23, 3, 9, 11, 4, 1, 2},
    {2, 12, 11, 6, 7, 5, 1, 1, 2},
    {1, 15, 15, 10, 12, 3, 1, 2, 2},
    {1, 16, 15, 66, 12, 3, 2, 2, 2},
    {2, 12, 12, 4, 5, 2, 3, 1, 0},
    {3, 14, 14, 48, 65, 1, 2, 1, 0},
    {2, 60, 60, 66, 16, 3, 1, 1, 1},
    {2, 64, 63, 16, 70, 3, 2, 1, 1},
    {3, 14, 14, 130, 128, 3, 2, 1, 1},
    /* 1 × 1 in seven products; without training, fewer pixels than columns */
    {2, 14, 14, 256, 544, 1, 1, 1, 0},
    {5, 10, 10, 288, 376, 1, 1, 1, 0},
    {2, 7, 7, 160, 544, 1, 1, 1, 0},
    {3, 7, 7, 64, 1080, 1, 1, 1, 0},
};

enum { n_shapes = sizeof shapes / sizeof *shapes };

static struct tdmi_op_desc desc_of(const struct shape *s)
{
    struct tdmi_op_desc desc = {.kind = TDMI_OP_CONV, .max_images = s->n};
    desc.in[0] = (struct tdmi_shape){s->h, s->w, s->in};
    desc.attrs = (struct tdmi_op_attrs){.channels = s->out,
                                        .kernel = s->kernel,
                                        .stride = s->stride,
                                        .dilation = s->dilation,
                                        .groups = 1,
                                        .pad_top = s->pad,
                                        .pad_left = s->pad,
                                        .pad_bottom = s->pad,
                                        .pad_right = s->pad};
    assert_true(conv_shape(&desc));
    return desc;
}

static const int sizes[] = {2, 3, 7, 16};

/* Fused work of a call in training. */
static const struct variant {
    enum tdmi_act act;
    bool has_norm, has_gradient_form, adds, has_bias, gives_sums, wants_dx;
} variants[] = {
    {TDMI_ACT_RELU6, true, true, true, false, true, true},
    {TDMI_ACT_RELU, true, false, false, true, false, true},
    {TDMI_ACT_NONE, false, true, true, true, true, true},
    {TDMI_ACT_RELU, false, true, false, false, false, true},
    {TDMI_ACT_NONE, true, false, false, true, true, false},
};

enum { n_variants = sizeof variants / sizeof *variants };

/* All variants of every shape, shared among sizes of teams and instruction sets. */
TEST(a_team_trains_with_the_bits_of_one_thread)
{
    const int n_sets = 1 + (int)tdmi_isa_supported();
    for (int i = 0; i < n_shapes * n_variants; i++) {
        const struct shape *shape = &shapes[i / n_variants];
        const struct variant *v = &variants[i % n_variants];
        struct tdmi_op_desc desc = desc_of(shape);
        chosen_isa = (enum tdmi_isa)((i / n_variants + i % n_variants) % n_sets);
        if (shape->in > 255)
            chosen_isa = tdmi_isa_supported();
        desc.is_training = desc.splits_products = true;
        desc.wants_dx = v->wants_dx;
        desc.attrs.has_bias = v->has_bias;
        desc.fusion.gives_sums = v->gives_sums;
        desc.fusion.in[0].act = v->act;
        desc.fusion.in[0].has_norm = v->has_norm;
        desc.fusion.reads_gradient_form = v->has_gradient_form;
        for (int k = 0; k < 2; k++)
            check_team(&desc, shape->n, v->adds, sizes[(i + 2 * k) % 4]);
    }
}

TEST(a_team_infers_with_the_bits_of_one_thread)
{
    for (int isa = 0; isa <= (int)tdmi_isa_supported(); isa++)
        for (int i = 0; i < n_shapes; i++) {
            struct tdmi_op_desc desc = desc_of(&shapes[i]);
            chosen_isa = (enum tdmi_isa)isa;
            desc.fusion.act = i % 2 ? TDMI_ACT_RELU : TDMI_ACT_HSWISH;
            desc.fusion.adds_residual = i % 3 == 0;
            desc.fusion.folds_norm = i % 2;
            desc.attrs.has_bias = i % 3 == 1;
            check_team(&desc, i % 2 ? 1 : shapes[i].n, false, sizes[(i + isa) % 4]);
        }
}

TEST_MAIN(NULL, NULL)
