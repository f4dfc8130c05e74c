/*
 * Steps, updates and evaluation on a device with memory of its own: the host follows no pointer of
 * the device, and results are bit-identical to those on the host, also for ragged batches.
 */
#include "backend/away.h"
#include "models/known_network.h"
#include "train/trainings.h"
#include "unit.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* A graph with batch norm, dropout and a tensor with two readers. */
static tdmi_graph *small_graph(int hidden)
{
    int x;
    tdmi_graph *graph = begin_graph(&x);
    x = tdmi_add_relu(graph, "relu1", tdmi_add_conv(graph, "conv", x, 5, 3, 1, 1, false));
    const int y = tdmi_add_relu(
        graph, "relu2",
        tdmi_add_batch_norm(graph, "bn", tdmi_add_conv(graph, "conv2", x, 5, 3, 1, 1, false)));
    x = tdmi_add_max_pool(graph, "pool", tdmi_add_sum(graph, "add", x, y), 2, 2);
    x = tdmi_add_relu(graph, "relu3", tdmi_add_dense(graph, "dense1", x, hidden));
    x = tdmi_add_dropout(graph, "dropout", x, 0.25, 0);
    tdmi_add_softmax(graph, tdmi_add_dense(graph, "dense2", x, classes));
    assert_int_equal(tdmi_graph_finish(graph, "small", NULL), TDM_OK);
    return graph;
}

static void same_values(const struct training *a, const struct training *b)
{
    const tdmi_graph *graph = a->of->graph;
    const int64_t n = graph->param_values + graph->state_values;
    float *of_a = calloc((size_t)n, sizeof *of_a), *of_b = calloc((size_t)n, sizeof *of_b);
    fetch(a, of_a, a->params, graph->param_values);
    fetch(a, of_a + graph->param_values, a->states, graph->state_values);
    fetch(b, of_b, b->params, graph->param_values);
    fetch(b, of_b + graph->param_values, b->states, graph->state_values);
    assert_memory_equal(of_a, of_b, sizeof *of_a * (size_t)n);
    assert_memory_equal(a->sums, b->sums,
                        sizeof *a->sums * (size_t)(tdmi_graph_tail_at(graph) + TDMI_TAIL_VALUES));
    free(of_a);
    free(of_b);
}

/* Seven batches of the same pictures: a whole one, ragged ones, one with nothing in it. */
static void compare(const struct bench *of, struct way way)
{
    static const int sizes[] = {most_batch, 1, 12, most_batch, 4, 5, 16};
    struct training host = begin(of, &tdmi_backend_ref, way), there = begin(of, away(), way);
    struct tdmi_augment mixes, none = {0};
    assert_int_equal(tdmi_augment_read("mixup:0.4", &mixes, NULL), TDM_OK);
    for (int k = 0; k < 7; k++) {
        int32_t labels[most_batch];
        struct tdmi_batch batch = first_of(of, sizes[k]);
        const struct tdmi_mixing mixing = {k % 2 ? &mixes : &none, 5, (uint32_t)k};
        for (int i = 0; i < sizes[k]; i++)
            labels[i] = k == 4 || (k > 4 && i % 5 == 2) ? -1 : of->labels[i];
        batch.labels = labels;
        run(&host, &batch, &mixing, false, k == 3 ? 0.1 : 0.0);
        run(&there, &batch, &mixing, k % 3 == 0, k == 3 ? 0.1 : 0.0);
        same_values(&host, &there);
    }
    end(&host);
    end(&there);
}

TEST(one_group_a_batch_gives_the_bits_of_the_host)
{
    for (int threads = 1; threads <= 3; threads += 2)
        compare(*state, (struct way){.shard = most_batch,
                                     .threads = threads,
                                     .optimizer = "sgd",
                                     .has_weights = threads == 3});
}

TEST(groups_one_after_another_are_added_in_the_same_tree)
{
    for (int shard = 1; shard <= 8; shard++)
        compare(*state, (struct way){.shard = shard, .threads = 1 + shard % 3, .optimizer = "sgd"});
}

TEST(every_optimizer_steps_there)
{
    const struct tdmi_optimizer *optimizer;
    for (int i = 0; (optimizer = tdmi_optimizer_at(i)) != NULL; i++)
        compare(*state, (struct way){.shard = most_batch,
                                     .threads = 2,
                                     .optimizer = optimizer->name,
                                     .has_weights = true});
}

TEST(segments_are_final_one_by_one)
{
    struct bench large;
    open_bench_of(&large, small_graph(3300));
    compare(&large, (struct way){.shard = 6, .threads = 3, .optimizer = "sgd"});
    compare(&large, (struct way){.shard = most_batch, .threads = 1, .optimizer = "adamw"});
    close_bench(&large);
}

/* Each batch is brought before it is begun, in memory that is another's afterwards. */
TEST(pictures_that_are_brought_ahead_give_the_same_bits)
{
    static const int sizes[] = {most_batch, 1, 12, most_batch, 4};
    const struct bench *of = *state;
    const struct tdmi_augment none = {0};
    const size_t bytes = most_batch * (size_t)of->image;
    uint8_t *slot = malloc(bytes);
    assert_non_null(slot);
    for (int shard = 3; shard <= most_batch; shard += 7) {
        const struct way way = {.shard = shard, .threads = 2, .optimizer = "sgd"};
        struct training host = begin(of, &tdmi_backend_ref, way), there = begin(of, away(), way);
        for (int k = 0; k < 5; k++) {
            int32_t labels[most_batch];
            struct tdmi_batch batch = first_of(of, sizes[k]), prefetched = batch;
            const struct tdmi_mixing mixing = {&none, 5, (uint32_t)k};
            for (int i = 0; i < sizes[k]; i++)
                labels[i] = k > 1 && i % 5 == 2 ? -1 : of->labels[i];
            batch.labels = prefetched.labels = labels;
            prefetched.pixels = memcpy(slot, of->pixels, bytes);
            assert_int_equal(tdmi_step_prefetch(there.step, &prefetched, NULL), TDM_OK);
            if (sizes[k] <= shard) /* all of it is on its way */
                memset(slot, 0x33, bytes);
            run(&host, &batch, &mixing, false, 0.0);
            run(&there, &prefetched, &mixing, false, 0.0);
            assert_int_equal(tdmi_step_await_prefetch(there.step, NULL), TDM_OK);
            same_values(&host, &there);
        }
        end(&host);
        end(&there);
    }
    free(slot);
}

/* ---- rows ---------------------------------------------------------------------------------- */

struct on_rows {
    const struct tdmi_backend *backend;
    tdmi_plan *plan;
    tdmi_step *step;
    float *params, *states, *sums;
};

static struct on_rows begin_rows(const struct bench *of, const struct tdmi_backend *backend,
                                 tdmi_pool *pool, int first_node, int shard)
{
    const tdmi_graph *graph = of->graph;
    const struct tdmi_plan_options request = {.max_images = shard,
                                              .is_training = true,
                                              .first_trained = first_node,
                                              .first_node = first_node};
    const struct tdmi_step_options options = {.max_batch = most_batch};
    struct on_rows it = {.backend = backend,
                         .sums = calloc((size_t)tdmi_graph_sums_values(graph), sizeof(float))};
    const struct training there = {.backend = backend};
    it.params = placed_floats(&there, of->params, graph->param_values);
    it.states = placed_floats(&there, of->states, graph->state_values);
    assert_int_equal(tdmi_plan_make(graph, backend, &request, &it.plan, NULL), TDM_OK);
    assert_int_equal(tdmi_step_open(it.plan, NULL, pool, &options, &it.step, NULL), TDM_OK);
    return it;
}

static void run_rows(struct on_rows *it, const struct tdmi_batch *batch)
{
    const tdmi_graph *graph = it->plan->graph;
    tdmi_step_begin(it->step, (struct tdmi_values){it->params, it->states}, batch, NULL);
    assert_int_equal(tdmi_step_run(it->step, 0, it->plan->n_segments - 1, NULL), TDM_OK);
    assert_int_equal(it->backend->memory.download(
                         NULL, it->sums, tdmi_step_sums(it->step),
                         sizeof *it->sums * (size_t)tdmi_graph_sums_values(graph), NULL),
                     TDM_OK);
}

static void end_rows(struct on_rows *it)
{
    tdmi_step_close(it->step);
    tdmi_plan_free(it->plan);
    it->backend->memory.free(NULL, it->params);
    it->backend->memory.free(NULL, it->states);
    free(it->sums);
}

/* Some of them without a sample, in memory that holds others as soon as they are ready. */
TEST(rows_that_are_made_ready_ahead_give_the_same_bits)
{
    const struct bench *of = *state;
    const tdmi_graph *graph = of->graph;
    int first = 0;
    while (graph->nodes[first].kind != TDMI_OP_DENSE)
        first++;
    const size_t width = (size_t)tdmi_shape_values(graph->nodes[first - 1].out);
    const size_t tail = (size_t)tdmi_graph_tail_at(graph);
    float *rows = calloc(most_batch * width, sizeof *rows),
          *slot = calloc(most_batch * width, sizeof *slot);
    tdmi_pool *pool;
    tdmi_rng rng = tdmi_rng_at(3, TDMI_RNG_TEST, 7, 0);
    assert_true(rows && slot);
    for (size_t i = 0; i < most_batch * width; i++)
        rows[i] = (float)tdmi_rng_unit(&rng) - 0.5f;
    assert_int_equal(tdmi_pool_new(1, NULL, &pool, NULL), TDM_OK);
    struct on_rows host = begin_rows(of, &tdmi_backend_ref, pool, first, most_batch),
                   there = begin_rows(of, away(), pool, first, most_batch);
    const int64_t from = graph->params[graph->nodes[first].first_param].offset;
    for (int k = 0; k < 8; k++) {
        int32_t labels[most_batch];
        struct tdmi_batch batch = first_of(of, most_batch - k);
        for (int i = 0; i < batch.n; i++)
            labels[i] = k > 2 && (i % 5 == 2 || i % 7 < k - 4) ? -1 : of->labels[i];
        batch.labels = labels;
        batch.pixels = (const uint8_t *)rows;
        run_rows(&host, &batch);
        memcpy(slot, rows, most_batch * width * sizeof *slot);
        batch.pixels = (const uint8_t *)slot;
        if (k % 3 != 1) { /* else in its turn */
            assert_int_equal(tdmi_step_prefetch(there.step, &batch, NULL), TDM_OK);
            memset(slot, 0x41, most_batch * width * sizeof *slot);
        }
        run_rows(&there, &batch);
        assert_memory_equal(host.sums + from, there.sums + from,
                            sizeof(float) * (size_t)(graph->param_values - from));
        assert_memory_equal(host.sums + tail, there.sums + tail, sizeof(float) * TDMI_TAIL_VALUES);
        for (size_t i = 0; i < most_batch * width; i++)
            rows[i] = 0.25f - rows[i] * 0.75f;
    }
    end_rows(&host);
    end_rows(&there);
    tdmi_pool_free(pool);
    free(rows);
    free(slot);
}

/* ---- rows that are kept there ---------------------------------------------------------------- */

enum { n_kept = 3 * most_batch };

/* So many rows, of which a batch names any, and some of them twice. */
struct kept {
    float *rows;
    tdmi_feature_table *there;
    int64_t numbers[n_kept]; /* by row */
    size_t width;
};

static struct kept keep_rows(size_t width)
{
    const struct tdmi_feature_table_options options = {
        .backend = away(), .width = (int)width, .n_rows = n_kept, .at_once = most_batch};
    struct kept it = {.rows = calloc(n_kept * width, sizeof(float)), .width = width};
    tdmi_rng rng = tdmi_rng_at(4, TDMI_RNG_TEST, 7, 0);
    float *row = calloc(width, sizeof *row);
    assert_true(it.rows && row);
    for (size_t i = 0; i < n_kept * width; i++)
        it.rows[i] = (float)tdmi_rng_unit(&rng) - 0.5f;
    assert_int_equal(tdmi_feature_table_open(&options, &it.there, NULL), TDM_OK);
    for (int i = 0; i < n_kept; i++) { /* in another order than they are counted in */
        const int r = (i * 7 + 3) % n_kept;
        memcpy(row, it.rows + (size_t)r * width, sizeof *row * width);
        assert_int_equal(tdmi_feature_table_put(it.there, row, &it.numbers[r], NULL), TDM_OK);
        if (i % 5 == 4)
            assert_int_equal(tdmi_feature_table_flush(it.there, NULL), TDM_OK);
    }
    assert_int_equal(tdmi_feature_table_flush(it.there, NULL), TDM_OK);
    free(row);
    return it;
}

/* Batch k: rows to be looked at by who follows pointers, and their numbers. */
static void name_batch(const struct kept *it, int k, int n, float *values, int64_t *numbers)
{
    for (int i = 0; i < n; i++) {
        const int r = (i * (k + 2) + 5 * k) % n_kept;
        memcpy(values + (size_t)i * it->width, it->rows + (size_t)r * it->width,
               sizeof *values * it->width);
        numbers[i] = it->numbers[r];
    }
}

static int first_dense(const tdmi_graph *graph)
{
    int first = 0;
    while (graph->nodes[first].kind != TDMI_OP_DENSE)
        first++;
    return first;
}

/* Whole batches and ragged ones, some samples left out, in groups; every fourth batch travels. */
TEST(rows_that_are_kept_there_give_the_same_bits)
{
    const struct bench *of = *state;
    const tdmi_graph *graph = of->graph;
    const int first = first_dense(graph);
    const size_t tail = (size_t)tdmi_graph_tail_at(graph);
    const int64_t from = graph->params[graph->nodes[first].first_param].offset;
    struct kept kept = keep_rows((size_t)tdmi_shape_values(graph->nodes[first - 1].out));
    float *values = calloc(most_batch * kept.width, sizeof *values);
    tdmi_pool *pool;
    assert_non_null(values);
    assert_int_equal(tdmi_pool_new(1, NULL, &pool, NULL), TDM_OK);
    for (int shard = 4; shard <= most_batch; shard += 8) {
        struct on_rows host = begin_rows(of, &tdmi_backend_ref, pool, first, shard),
                       there = begin_rows(of, away(), pool, first, shard);
        tdmi_step_keep(there.step, kept.there);
        for (int k = 0; k < 8; k++) {
            int32_t labels[most_batch];
            int64_t numbers[most_batch];
            struct tdmi_batch batch = first_of(of, most_batch - k);
            name_batch(&kept, k, batch.n, values, numbers);
            for (int i = 0; i < batch.n; i++)
                labels[i] = k > 2 && i % 5 == 2 ? -1 : of->labels[i];
            batch.labels = labels;
            batch.pixels = (const uint8_t *)values;
            run_rows(&host, &batch);
            if (k % 4 != 3) {
                batch.rows = numbers;
                batch.pixels = NULL;
            }
            assert_int_equal(tdmi_step_prefetch(there.step, &batch, NULL), TDM_OK);
            run_rows(&there, &batch);
            assert_memory_equal(host.sums + from, there.sums + from,
                                sizeof(float) * (size_t)(graph->param_values - from));
            assert_memory_equal(host.sums + tail, there.sums + tail,
                                sizeof(float) * TDMI_TAIL_VALUES);
        }
        end_rows(&host);
        end_rows(&there);
    }
    tdmi_feature_table_close(kept.there);
    tdmi_pool_free(pool);
    free(kept.rows);
    free(values);
}

/* In one chunk, and in several. */
TEST(rows_kept_on_the_device_are_evaluated_alike)
{
    const struct bench *of = *state;
    const tdmi_graph *graph = of->graph;
    const int first = first_dense(graph);
    struct kept kept = keep_rows((size_t)tdmi_shape_values(graph->nodes[first - 1].out));
    float *values = calloc(most_batch * kept.width, sizeof *values);
    const struct training there = {.backend = away()};
    float *params = placed_floats(&there, of->params, graph->param_values),
          *states = placed_floats(&there, of->states, graph->state_values);
    tdmi_pool *pool;
    assert_non_null(values);
    assert_int_equal(tdmi_pool_new(1, NULL, &pool, NULL), TDM_OK);
    for (int most = 5; most <= most_batch; most += 11) {
        struct tdmi_plan_options request = {.max_images = most, .first_node = first};
        tdmi_plan *plan;
        tdmi_evaluator *evaluator;
        assert_int_equal(tdmi_plan_make(graph, away(), &request, &plan, NULL), TDM_OK);
        assert_int_equal(tdmi_evaluator_open(plan, NULL, pool, most_batch, &evaluator, NULL),
                         TDM_OK);
        assert_int_equal(tdmi_evaluator_take(evaluator, (struct tdmi_values){params, states}, NULL),
                         TDM_OK);
        tdmi_evaluator_keep(evaluator, kept.there);
        for (int k = 0; k < 5; k++) {
            struct tdmi_judgement verdicts[2][most_batch] = {{{0}}};
            float rows[2][most_batch * classes] = {{0}};
            int64_t numbers[most_batch];
            struct tdmi_batch batch = first_of(of, most_batch - k);
            name_batch(&kept, k, batch.n, values, numbers);
            batch.pixels = (const uint8_t *)values;
            assert_int_equal(
                tdmi_evaluator_batch(evaluator, &batch, verdicts[0], rows[0], NULL, NULL), TDM_OK);
            batch.rows = numbers;
            batch.pixels = NULL;
            assert_int_equal(
                tdmi_evaluator_batch(evaluator, &batch, verdicts[1], rows[1], NULL, NULL), TDM_OK);
            assert_memory_equal(verdicts[0], verdicts[1], sizeof verdicts[0]);
            assert_memory_equal(rows[0], rows[1], sizeof rows[0]);
            assert_true(rows[0][0] > 0.0f);
        }
        tdmi_evaluator_close(evaluator);
        tdmi_plan_free(plan);
    }
    away()->memory.free(NULL, params);
    away()->memory.free(NULL, states);
    tdmi_feature_table_close(kept.there);
    tdmi_pool_free(pool);
    free(kept.rows);
    free(values);
}

TEST(verdicts_come_back)
{
    const struct bench *of = *state;
    for (int shard = 1; shard <= most_batch; shard += 8) {
        const struct way way = {.shard = shard, .threads = 2, .optimizer = "sgd"};
        struct training host = begin(of, &tdmi_backend_ref, way), there = begin(of, away(), way);
        struct tdmi_judgement wanted[most_batch] = {{0}}, got[most_batch] = {{0}};
        float rows[2][most_batch * classes], logits[2][most_batch * classes];
        const struct tdmi_batch batch = first_of(of, most_batch - 2);
        const size_t bytes = sizeof(float) * (most_batch - 2) * classes;
        assert_int_equal(tdmi_evaluator_take(host.evaluator,
                                             (struct tdmi_values){host.params, host.states}, NULL),
                         TDM_OK);
        assert_int_equal(tdmi_evaluator_take(there.evaluator,
                                             (struct tdmi_values){there.params, there.states},
                                             NULL),
                         TDM_OK);
        assert_int_equal(
            tdmi_evaluator_batch(host.evaluator, &batch, wanted, rows[0], logits[0], NULL), TDM_OK);
        assert_int_equal(
            tdmi_evaluator_batch(there.evaluator, &batch, got, rows[1], logits[1], NULL), TDM_OK);
        assert_memory_equal(got, wanted, sizeof got);
        assert_memory_equal(rows[0], rows[1], bytes);
        assert_memory_equal(logits[0], logits[1], bytes);
        end(&host);
        end(&there);
    }
}

/* The guard itself: the same look at memory from outside and from inside. */
TEST(whoever_follows_a_pointer_of_the_device_is_caught)
{
    for (int inside = 0; inside < 2; inside++) {
        volatile float *there = guarded_alloc(64);
        int ended = 0;
        assert_non_null(there);
        const pid_t child = fork();
        if (child == 0) {
            signal(SIGSEGV, SIG_DFL);
            if (inside)
                guarded_enter();
            _exit(there[3] == 0.0f ? 7 : 8);
        }
        assert_int_equal(waitpid(child, &ended, 0), child);
        if (inside)
            assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 7);
        else
            assert_false(WIFEXITED(ended) && WEXITSTATUS(ended) == 7);
        guarded_free((void *)(uintptr_t)there);
    }
}

static int set_up(void **state)
{
    struct bench *it = calloc(1, sizeof *it);
    assert_non_null(it);
    tdmi_thread_flush_denormals(); /* as the pool's threads do, which step large tensors here */
    open_bench_of(it, small_graph(40));
    *state = it;
    return 0;
}

static int tear_down(void **state)
{
    close_bench(*state);
    free(*state);
    return 0;
}

TEST_MAIN(set_up, tear_down)
