/*
 * Steps that are queued, recorded and replayed on rows that the card keeps: each replay with its
 * own rows, of a table that grows meanwhile, and steps whose rows travel in between.
 */
#include "backend/cuda/shim/shim_backend.h"
#include "models/known_network.h"
#include "train/trainings.h"

#include "backend/cuda/shim/shim_run.h"

enum { n_rows = 4 * most_batch, n_steps = 14 };

struct on_rows {
    const struct bench *of;
    tdmi_device *device;
    tdmi_stream *stream; /* of the test */
    tdmi_pool *pool;
    tdmi_plan *plan;
    tdmi_step *step;
    tdmi_update *update;
    float *params, *states, *slots[TDMI_OPTIMIZER_SLOTS];
};

static int first_dense(const tdmi_graph *graph)
{
    int first = 0;
    while (graph->nodes[first].kind != TDMI_OP_DENSE)
        first++;
    return first;
}

static tdmi_graph *head_graph(void)
{
    int x;
    tdmi_graph *graph = begin_graph(&x);
    x = tdmi_add_relu(graph, "relu", tdmi_add_conv(graph, "conv", x, 5, 3, 1, 1, true));
    x = tdmi_add_relu(graph, "relu2", tdmi_add_dense(graph, "dense", x, 11));
    tdmi_add_softmax(graph, tdmi_add_dense(graph, "dense2", x, classes));
    assert_int_equal(tdmi_graph_finish(graph, "head", NULL), TDM_OK);
    return graph;
}

static struct on_rows open_training(const struct bench *of, enum tdmi_dtype storage, int shard)
{
    const struct tdmi_backend *shim = &tdmi_backend_shim;
    const struct tdmi_plan_options request = {.max_images = shard,
                                              .is_training = true,
                                              .storage = storage,
                                              .first_trained = first_dense(of->graph),
                                              .first_node = first_dense(of->graph)};
    const struct tdmi_step_options options = {.max_batch = most_batch};
    const struct tdmi_optimizer *sgd;
    struct on_rows it = {.of = of};
    assert_int_equal(shim->device.open(0, &it.device, NULL), TDM_OK);
    assert_int_equal(shim->stream.open(it.device, &it.stream, NULL), TDM_OK);
    const struct training there = {.backend = shim, .device = it.device, .stream = it.stream};
    it.params = placed_floats(&there, of->params, of->graph->param_values);
    it.states = placed_floats(&there, of->states, of->graph->state_values);
    it.slots[0] = placed_floats(&there, NULL, of->graph->param_values);
    assert_int_equal(tdmi_pool_new(1, false, &it.pool, NULL), TDM_OK);
    assert_int_equal(tdmi_optimizer_find("sgd", &sgd, NULL), TDM_OK);
    assert_int_equal(tdmi_plan_make(of->graph, shim, &request, &it.plan, NULL), TDM_OK);
    assert_int_equal(tdmi_step_open(it.plan, it.device, it.pool, &options, &it.step, NULL), TDM_OK);
    assert_int_equal(tdmi_update_open(of->graph, it.plan->first_trained, shim, it.device, sgd,
                                      it.pool, it.params, it.states, it.slots, &it.update, NULL),
                     TDM_OK);
    tdmi_update_use_stream(it.update, tdmi_step_stream(it.step));
    return it;
}

static void close_training(struct on_rows *it)
{
    const struct tdmi_backend *shim = &tdmi_backend_shim;
    tdmi_update_close(it->update);
    tdmi_step_close(it->step);
    tdmi_plan_free(it->plan);
    tdmi_pool_free(it->pool);
    shim->memory.free(it->device, it->params);
    shim->memory.free(it->device, it->states);
    shim->memory.free(it->device, it->slots[0]);
    shim->stream.close(it->stream);
    shim->device.close(it->device);
}

/* Its loss. */
static float take_step(struct on_rows *it, const struct tdmi_batch *batch, int number)
{
    float tail[TDMI_TAIL_VALUES];
    const struct tdmi_update_rates rates = {
        .learning_rate = 0.05f, .momentum = 0.9f, .step = number + 1};
    tdmi_step_begin(it->step, (struct tdmi_values){it->params, it->states}, batch, NULL);
    assert_int_equal(tdmi_update_begin(it->update, (float)tdmi_step_images(it->step), rates, NULL),
                     TDM_OK);
    const struct tdmi_step_next next = tdmi_update_next(it->update);
    assert_int_equal(tdmi_step_run_queued(it->step, &next, tail, NULL), TDM_OK);
    return tail[TDMI_TAIL_LOSS];
}

/* Rows of a batch that nobody has named yet are put before it is begun, and only then. */
static void name_rows(tdmi_feature_table *kept, const float *rows, size_t width, int step, int n,
                      float *values, int64_t *numbers, int64_t *number_of)
{
    for (int i = 0; i < n; i++) {
        const int r = (i * (2 * step + 1) + 3 * step) % (2 * most_batch + 2 * step);
        memcpy(values + (size_t)i * width, rows + (size_t)r * width, sizeof *rows * width);
        if (number_of[r] < 0)
            assert_int_equal(
                tdmi_feature_table_put(kept, rows + (size_t)r * width, &number_of[r], NULL),
                TDM_OK);
        numbers[i] = number_of[r];
    }
    assert_int_equal(tdmi_feature_table_flush(kept, NULL), TDM_OK);
}

static void compare(const struct bench *of, enum tdmi_dtype storage, int shard, enum fake_pace pace)
{
    const tdmi_graph *graph = of->graph;
    const size_t width = (size_t)tdmi_shape_values(graph->nodes[first_dense(graph) - 1].out);
    struct on_rows copied = open_training(of, storage, shard),
                   kept = open_training(of, storage, shard);
    const struct tdmi_feature_table_options options = {.backend = &tdmi_backend_shim,
                                                       .device = kept.device,
                                                       .storage = storage,
                                                       .width = (int)width,
                                                       .n_rows = n_rows,
                                                       .at_once = 5};
    float *rows = calloc(n_rows * width, sizeof *rows),
          *values = calloc(most_batch * width, sizeof *values);
    int64_t number_of[n_rows], numbers[most_batch];
    tdmi_rng rng = tdmi_rng_at(4, TDMI_RNG_TEST, 8, 0);
    tdmi_feature_table *there;
    assert_true(rows && values);
    for (size_t i = 0; i < n_rows * width; i++)
        rows[i] = (float)tdmi_rng_unit(&rng) - 0.5f;
    for (int i = 0; i < n_rows; i++)
        number_of[i] = -1;
    assert_int_equal(tdmi_feature_table_open(&options, &there, NULL), TDM_OK);
    tdmi_step_keep(kept.step, there);
    for (int s = 0; s < n_steps; s++) {
        struct tdmi_batch batch = first_of(of, s % 5 == 4 ? most_batch - 3 : most_batch);
        fake_runtime_pace(pace);
        name_rows(there, rows, width, s, batch.n, values, numbers, number_of);
        batch.pixels = (const uint8_t *)values;
        if (s % 3 != 2) {
            batch.rows = numbers;
            batch.pixels = NULL;
        }
        const float got = take_step(&kept, &batch, s);
        fake_runtime_pace(FAKE_AT_ONCE);
        batch.rows = NULL;
        batch.pixels = (const uint8_t *)values;
        const float wanted = take_step(&copied, &batch, s);
        if (memcmp(&got, &wanted, sizeof got) != 0)
            fail_msg("step %d, shards of %d, pace %d: loss %.9g, wanted %.9g", s, shard, (int)pace,
                     (double)got, (double)wanted);
    }
    assert_true(tdmi_step_replays(kept.step) >= 6);
    tdmi_feature_table_close(there);
    close_training(&copied);
    close_training(&kept);
    free(rows);
    free(values);
}

static void replayed_steps_find_the_rows_that_they_name(void **state)
{
    static const enum tdmi_dtype types[] = {TDMI_DTYPE_F32, TDMI_DTYPE_BF16, TDMI_DTYPE_F16};
    struct bench of;
    (void)state;
    open_bench_of(&of, head_graph());
    fake_runtime_guard(true);
    tdmi_shim_use((struct tdmi_shim_way){0});
    for (int t = 0; t < 3; t++)
        for (int shard = 6; shard <= most_batch; shard += most_batch - 6)
            for (int pace = FAKE_AT_ONCE; pace < FAKE_PACES; pace++)
                compare(&of, types[t], shard, (enum fake_pace)pace);
    close_bench(&of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replayed_steps_find_the_rows_that_they_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
