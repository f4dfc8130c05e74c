/* oneDNN's convolutions and dense layers without training: teams share the images, and give the
 * bits of one thread. */
#include "tandem_features.h"

#include "backend/cpu/onednn/twice.h"

#if TDM_HAVE_ONEDNN

#include "backend/conv_probe.h"
#include "backend/cpu/cpu.h"
#include "base/team.h"
#include "base/thread.h"

enum { images = 5, largest = 7 };
static const int sizes[] = {2, 3, largest};

struct shared {
    const struct tdmi_kernel *kernel;
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
    tdmi_kernel_run_shared(shared->kernel->forward, shared->kernel->shares_forward, NULL,
                           shared->desc, &call);
    tdmi_member_wait(&member);
    tdmi_team_leave(&member);
    return TDM_OK;
}

static void run_team(const struct tdmi_kernel *kernel, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call, int size)
{
    struct shared shared = {kernel, desc, call, NULL};
    tdmi_pool *pool;
    assert_int_equal(tdmi_pool_new(size, NULL, &pool, NULL), TDM_OK);
    assert_int_equal(tdmi_team_new(&shared.team, NULL), TDM_OK);
    tdmi_team_form(shared.team, size, false, NULL);
    assert_int_equal(tdmi_pool_run_all(pool, size, run_member, &shared, NULL), TDM_OK);
    tdmi_team_free(shared.team);
    tdmi_pool_free(pool);
}

static void check_conv_team(struct tdmi_op_desc desc, int size)
{
    struct conv_probe alone, team;
    conv_begin(&alone, &tdmi_conv_by_onednn, &desc, images, false);
    desc.team = size;
    conv_begin(&team, &tdmi_conv_by_onednn, &desc, images, false);
    conv_run(&alone, images);
    conv_pack(&team, NULL);
    const struct tdmi_op_call call = conv_call(&team);
    run_team(team.kernel, &team.desc, &call, size);
    conv_same(&team, "y", alone.y, team.y, sizeof(float) * (size_t)alone.n_y);
    const size_t room = tdmi_kernel_needs_of(team.kernel, &team.desc).workspace_bytes;
    assert_true(isnan(team.workspace[room / sizeof(float)])); /* nothing is written behind it */
    conv_end(&alone);
    conv_end(&team);
}

TEST(convolutions_share_images)
{
    for (int i = 0; i < 12; i++) {
        struct tdmi_op_desc desc = {.kind = TDMI_OP_CONV, .max_images = images};
        desc.in[0] = (struct tdmi_shape){13, 12, i % 4 == 3 ? 3 : 32};
        desc.attrs = (struct tdmi_op_attrs){.channels = 24,
                                            .kernel = i % 2 ? 3 : 5,
                                            .stride = 2,
                                            .dilation = 1,
                                            .groups = 1,
                                            .has_bias = i % 3 == 0,
                                            .pad_top = 1,
                                            .pad_left = 1,
                                            .pad_bottom = 1,
                                            .pad_right = 1};
        desc.fusion.folds_norm = i % 2;
        desc.fusion.adds_residual = i % 3 == 1;
        desc.fusion.act = i % 2 ? TDMI_ACT_RELU : TDMI_ACT_NONE;
        assert_true(conv_shape(&desc));
        check_conv_team(desc, sizes[i % 3]);
    }
}

TEST(dense_layers_share_rows)
{
    enum { in = 70, out = 33 };
    struct tdmi_op_desc desc = {.kind = TDMI_OP_DENSE,
                                .max_images = images,
                                .attrs = {.channels = out, .has_bias = true},
                                .in = {{1, 1, in}},
                                .out = {1, 1, out}};
    float *x = conv_filled(images * in, 1, -1.0f, 1.0f), *w = conv_filled(in * out, 2, -1.0f, 1.0f);
    float *bias = conv_filled(out, 3, -1.0f, 1.0f);
    float *wanted = conv_unwritten(images * out), *got = conv_unwritten(images * out);
    struct tdmi_op_call call = {.n = images, .x = {x}, .y = wanted, .params = {w, bias}};
    assert_int_equal(tdmi_dense_by_onednn.prepare(&desc, &desc.prepared, NULL), TDM_OK);
    tdmi_dense_by_onednn.forward(NULL, &desc, &call);
    call.y = got;
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < images * out; i++)
            got[i] = NAN;
        run_team(&tdmi_dense_by_onednn, &desc, &call, sizes[k]);
        assert_memory_equal(got, wanted, sizeof(float) * images * out);
        assert_true(got[images * out] == 1234.5f); /* nothing is written behind it */
    }
    tdmi_dense_by_onednn.release(desc.prepared);
    float *const all[] = {x, w, bias, wanted, got};
    for (int i = 0; i < 5; i++)
        tdmi_free(all[i]);
}

ONEDNN_TEST_MAIN

#else

int main(void)
{
    return 0;
}

#endif
