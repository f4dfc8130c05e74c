/* update.cu: the same bits in any order of blocks and wherever tensors begin, loss scales, and
 * tensors of more values than 32 bits count. Against the reference: test_update.c. */
#include "backend/cuda/values.h"
#include "backend/cuda/kernels/update.h"
#include "backend/cuda/shim/shim_backend.h"

#include <stdio.h>
#include <sys/mman.h>

enum { n_tensors = 6, n_states = 2, n_pieces = n_tensors + n_states + 1, momentum_steps = 2 };

/* The second is spared decay, the fourth is 0 everywhere, the last comes in two pieces. Statistics'
 * sums do not begin on 16 bytes, even where all else does. */
static const int64_t lengths[n_tensors] = {4096, 7, 1, 300, 4099, 12294};
static const int64_t state_lengths[n_states] = {5, 4200};

struct world {
    int64_t n_params, n_states,
        gap;          /* gap: values before the first, so that none lie on 16 bytes */
    float *arrays[7]; /* params, two slots, sums, averages; states, theirs */
    struct tdmi_update_piece pieces[n_pieces];
    struct tdmi_loss_scale loss;
};

enum array { W, FIRST, SECOND, SUMS, MEANS, STATES, STATE_MEANS };

static float number_at(uint32_t stream, int64_t i)
{
    tdmi_rng rng = tdmi_rng_at(11, TDMI_RNG_TEST, stream, (uint64_t)i);
    return tdmi_rng_uniform(&rng, -1.0f, 1.0f);
}

static void make_pieces(struct world *it)
{
    int at = 0;
    it->n_params = it->gap;
    for (int t = 0; t < n_tensors; t++) {
        const int64_t cut = t == n_tensors - 1 ? 8192 : lengths[t];
        for (int64_t begin = 0; begin < lengths[t]; begin += cut)
            it->pieces[at++] =
                (struct tdmi_update_piece){.offset = it->n_params + begin,
                                           .n = lengths[t] - begin < cut ? lengths[t] - begin : cut,
                                           .tensor = t,
                                           .part = t == 2 ? 0.5f : 1.0f,
                                           .has_decay = t != 1};
        it->n_params += lengths[t];
    }
    it->n_states = it->gap;
    for (int s = 0; s < n_states; s++) {
        it->pieces[at++] = (struct tdmi_update_piece){.offset = it->n_states,
                                                      .n = state_lengths[s],
                                                      .part = 1.0f,
                                                      .is_state = true,
                                                      .momentum = s ? 0.25f : 0.5f};
        it->n_states += state_lengths[s];
    }
    assert_int_equal(at, n_pieces);
}

static void open_world(struct world *it, int64_t gap)
{
    *it = (struct world){.gap = gap};
    make_pieces(it);
    for (int a = 0; a <= STATE_MEANS; a++) {
        const int64_t n = a == SUMS    ? it->n_params + it->n_states
                          : a < STATES ? it->n_params
                                       : it->n_states;
        it->arrays[a] = tdmi_alloc_aligned((size_t)n * sizeof(float));
        assert_non_null(it->arrays[a]);
        for (int64_t i = 0; i < n; i++) {
            const int64_t own = i - (a == SUMS && i >= it->n_params ? 2 * gap : gap);
            const float number = number_at((uint32_t)a + 1, own);
            it->arrays[a][i] = a == FIRST || a == SECOND /* a mean of squares is not below 0 */
                                   ? 0.01f + fabsf(number)
                                   : number * (a == SUMS ? 8.0f : 1.0f);
        }
    }
    const struct tdmi_update_piece *zero = &it->pieces[3];
    memset(it->arrays[W] + zero->offset, 0, (size_t)zero->n * sizeof(float));
}

static void close_world(struct world *it)
{
    for (int a = 0; a <= STATE_MEANS; a++)
        tdmi_free(it->arrays[a]);
}

static struct tdmi_step_facts facts_of(enum tdmi_update_rule rule)
{
    return (struct tdmi_step_facts){
        .scale = 1.0f / 8,
        .learning_rate = 0.05f,
        .momentum = 0.9f,
        .weight_decay = rule == TDMI_RULE_ADAM ? 0.0f : 0.03f,
        .beside = rule == TDMI_RULE_ADAM ? 0.3f : 0.0f,
        .average = 0.125f,
        .is_nesterov = rule == TDMI_RULE_SGD,
        .moments = {.first = 0.1f,
                    .second = 0.01f,
                    .of_first = 3.0f,
                    .of_gradient = 0.25f,
                    .of_root = 2.0f,
                    .epsilon = 1e-3f},
        .clip_norm = 0.75,
        .trust = 0.01,
        .trust_epsilon = 1e-4,
    };
}

/* Two steps, as one is not seen to read what it wrote. */
static void run(struct world *it, struct tdmi_update_method way, struct tdmi_step_facts facts,
                bool has_loss)
{
    const struct tdmi_backend *shim = &tdmi_backend_shim;
    const struct tdmi_update_arrays arrays = {.params = it->arrays[W],
                                              .slots = {it->arrays[FIRST], it->arrays[SECOND]},
                                              .states = it->arrays[STATES],
                                              .mean_params = it->arrays[MEANS],
                                              .mean_states = it->arrays[STATE_MEANS],
                                              .state_sums_at = it->n_params,
                                              .loss_scale = has_loss ? &it->loss : NULL};
    tdmi_device *device;
    tdmi_stream *stream;
    tdmi_update_list *list;
    tdm_error err = {0};
    assert_int_equal(shim->device.open(0, &device, NULL), TDM_OK);
    assert_int_equal(shim->stream.open(device, &stream, NULL), TDM_OK);
    assert_int_equal(shim->update->open(stream, &arrays, it->pieces, n_pieces, &list, NULL),
                     TDM_OK);
    for (int step = 0; step < momentum_steps; step++)
        shim->update->run(stream, list, way, it->arrays[SUMS], &facts);
    if (shim->stream.wait(stream, &err) != TDM_OK)
        fail_msg("%s", tdm_error_sentence(&err, 0));
    shim->update->close(list);
    shim->stream.close(stream);
    shim->device.close(device);
}

static int64_t values_of(const struct world *it, int array)
{
    return array == SUMS    ? it->n_params + it->n_states
           : array < STATES ? it->n_params
                            : it->n_states;
}

/* Vectors and single values, in either order of blocks, have the same bits. */
static void compare(struct tdmi_update_method way)
{
    struct world vectors, single;
    open_world(&vectors, 0);
    open_world(&single, 1);
    tdmi_shim_use((struct tdmi_shim_order){0});
    run(&vectors, way, facts_of(way.rule), false);
    tdmi_shim_use((struct tdmi_shim_order){.is_reversed = true});
    run(&single, way, facts_of(way.rule), false);
    for (int a = 0; a <= STATE_MEANS; a++)
        if (a != SUMS)
            assert_memory_equal(vectors.arrays[a], single.arrays[a] + 1,
                                (size_t)values_of(&vectors, a) * sizeof(float));
    close_world(&vectors);
    close_world(&single);
}

/* ---- loss scales ------------------------------------------------------------------------ */

static void scaled_gradients_give_the_same_bits(void)
{
    struct tdmi_update_method way = {TDMI_RULE_LAMB, true};
    struct world plain, scaled;
    open_world(&plain, 0);
    open_world(&scaled, 0);
    for (int64_t i = 0; i < scaled.n_params; i++)
        scaled.arrays[SUMS][i] *= 4096.0f;
    scaled.loss = (struct tdmi_loss_scale){4096.0f, TDMI_LOSS_SCALE_STEPS - momentum_steps, 3};
    run(&plain, way, facts_of(way.rule), false);
    run(&scaled, way, facts_of(way.rule), true);
    for (int a = 0; a <= STATE_MEANS; a++)
        if (a != SUMS)
            assert_memory_equal(plain.arrays[a], scaled.arrays[a],
                                (size_t)values_of(&plain, a) * sizeof(float));
    assert_true(scaled.loss.scale == 8192.0f);
    assert_int_equal(scaled.loss.n_good, 0);
    assert_int_equal(scaled.loss.n_left_out, 3);
    close_world(&plain);
    close_world(&scaled);
}

static void a_sum_that_is_not_finite_leaves_the_step_out(enum tdmi_update_rule rule, float sum)
{
    struct world it, before;
    open_world(&it, 0);
    open_world(&before, 0);
    it.loss = (struct tdmi_loss_scale){1024.0f, 17, 0};
    it.arrays[SUMS][it.n_params - 1] = sum;
    run(&it, (struct tdmi_update_method){rule, false}, facts_of(rule), true);
    for (int a = 0; a <= STATE_MEANS; a++)
        if (a != SUMS)
            assert_memory_equal(it.arrays[a], before.arrays[a],
                                (size_t)values_of(&it, a) * sizeof(float));
    assert_true(it.loss.scale == 256.0f);
    assert_int_equal(it.loss.n_good, 0);
    assert_int_equal(it.loss.n_left_out, momentum_steps);
    close_world(&it);
    close_world(&before);
}

/* ---- size ------------------------------------------------------------------------------- */

static float *reserve(int64_t n)
{
    void *memory = mmap(NULL, (size_t)n * sizeof(float), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* 2^32 values and some: only blocks at both ends run. */
static void run_huge(void)
{
    const int64_t n = ((int64_t)1 << 32) + 4099;
    const struct tdmi_update_piece piece = {.n = n, .part = 1.0f};
    const struct tdmi_step_facts facts = {.scale = 1.0f, .learning_rate = 1.0f};
    const struct tdmi_backend *shim = &tdmi_backend_shim;
    float *params = reserve(n), *slot = reserve(n), *sums = reserve(n);
    if (params && slot && sums) {
        const struct tdmi_update_arrays arrays = {.params = params, .slots = {slot}};
        tdmi_device *device;
        tdmi_stream *stream;
        tdmi_update_list *list;
        assert_int_equal(shim->device.open(0, &device, NULL), TDM_OK);
        assert_int_equal(shim->stream.open(device, &stream, NULL), TDM_OK);
        assert_int_equal(shim->update->open(stream, &arrays, &piece, 1, &list, NULL), TDM_OK);
        sums[5] = 3.0f;
        sums[n - 1] = 7.0f;
        sums[n - 4] = 5.0f;
        tdmi_shim_use((struct tdmi_shim_order){.edge_blocks = 2});
        shim->update->run(stream, list, (struct tdmi_update_method){TDMI_RULE_SGD, false}, sums,
                          &facts);
        assert_int_equal(shim->stream.wait(stream, NULL), TDM_OK);
        assert_true(params[5] == -3.0f && params[n - 1] == -7.0f && params[n - 4] == -5.0f);
        assert_int_equal(tdmi_shim_facts().largest_grid, n / TDMI_CUDA_UPDATE_VALUES + 1);
        shim->update->close(list);
        shim->stream.close(stream);
        shim->device.close(device);
    }
    if (params)
        munmap(params, (size_t)n * sizeof(float));
    if (slot)
        munmap(slot, (size_t)n * sizeof(float));
    if (sums)
        munmap(sums, (size_t)n * sizeof(float));
}

void case_update(void **state)
{
    (void)state;
    for (int rule = TDMI_RULE_SGD; rule <= TDMI_RULE_LAMB; rule++)
        for (int clips = 0; clips < 2; clips++)
            compare((struct tdmi_update_method){(enum tdmi_update_rule)rule, clips});
    tdmi_shim_use((struct tdmi_shim_order){0});
    scaled_gradients_give_the_same_bits();
    a_sum_that_is_not_finite_leaves_the_step_out(TDMI_RULE_SGD, INFINITY);
    a_sum_that_is_not_finite_leaves_the_step_out(TDMI_RULE_LARS, -INFINITY);
    a_sum_that_is_not_finite_leaves_the_step_out(TDMI_RULE_LAMB, NAN);
    run_huge();
}
