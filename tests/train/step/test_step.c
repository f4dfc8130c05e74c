/*
 * Steps: sums depend on the batch and the group size only, and not on threads, segments run
 * together or skipped images. Evaluation: counts by position.
 */
#include "dist/tree.h"
#include "models/known_network.h"
#include "train/evaluate/evaluator.h"
#include "train/step/step.h"
#include "train/step/steps.h"
#include "train/step/sums.h"
#include "unit.h"

#include <math.h>

/* hidden 3300: 264,000 weights, so that there are several segments. */
static tdmi_graph *small_graph(int hidden)
{
    int x;
    tdmi_graph *graph = begin_graph(&x);
    x = tdmi_add_conv(graph, "conv", x, 5, 3, 1, 1, false);
    x = tdmi_add_relu(graph, "relu", tdmi_add_batch_norm(graph, "bn", x));
    x = tdmi_add_max_pool(graph, "pool", x, 2, 2);
    x = tdmi_add_dense(graph, "dense1", x, hidden);
    x = tdmi_add_relu(graph, "relu2", x);
    tdmi_add_softmax(graph, tdmi_add_dense(graph, "dense2", x, classes));
    assert_int_equal(tdmi_graph_finish(graph, "small", NULL), TDM_OK);
    return graph;
}

static void open_bench(struct bench *it, int hidden)
{
    open_bench_of(it, small_graph(hidden));
}

static int set_up(void **state)
{
    struct bench *it = calloc(1, sizeof *it);
    assert_non_null(it);
    open_bench(it, 40);
    *state = it;
    return 0;
}

static int tear_down(void **state)
{
    close_bench(*state);
    free(*state);
    return 0;
}

enum statistics { of_groups, of_batch };

/* A plan whose groups teams may compute. */
static tdmi_plan *plan_for_teams(const struct bench *it, int shard)
{
    tdmi_plan *plan = NULL;
    const struct tdmi_plan_options request = {
        .max_images = shard, .is_training = true, .team = TDMI_TEAM_MOST};
    assert_int_equal(tdmi_plan_make(it->graph, &tdmi_backend_ref, &request, &plan, NULL), TDM_OK);
    return plan;
}

/* The sums of one batch; by_segment runs them one by one; mixing may be NULL. */
static float *mixed_sums_of(const struct bench *it, int shard, int threads,
                            const struct tdmi_batch *batch, bool by_segment,
                            const struct tdmi_mixing *mixing, enum statistics statistics)
{
    tdmi_plan *plan = plan_for_teams(it, shard);
    tdmi_pool *pool;
    tdmi_step *step;
    assert_int_equal(tdmi_pool_new(threads, NULL, &pool, NULL), TDM_OK);
    assert_int_equal(
        tdmi_step_open(plan, NULL, pool,
                       &(struct tdmi_step_options){.max_batch = most_batch,
                                                   .can_mix = mixing != NULL,
                                                   .shares_statistics = statistics == of_batch},
                       &step, NULL),
        TDM_OK);
    tdmi_step_begin(step, (struct tdmi_values){it->params, it->states}, batch, mixing);
    if (by_segment)
        for (int s = 0; s < plan->n_segments; s++)
            assert_int_equal(tdmi_step_run(step, s, s, NULL), TDM_OK);
    else
        assert_int_equal(tdmi_step_run(step, 0, plan->n_segments - 1, NULL), TDM_OK);
    float *sums = copied(tdmi_step_sums(step), tdmi_graph_sums_values(it->graph));
    tdmi_step_close(step);
    tdmi_pool_free(pool);
    tdmi_plan_free(plan);
    return sums;
}

static float *sums_of(const struct bench *it, int shard, int threads,
                      const struct tdmi_batch *batch, bool by_segment)
{
    return mixed_sums_of(it, shard, threads, batch, by_segment, NULL, of_groups);
}

/* The same sums the plain way: group after group in one lane, then the tree. */
static float *plain_sums(const struct bench *it, int shard, const struct tdmi_batch *batch)
{
    int64_t n_values = tdmi_graph_sums_values(it->graph);
    int n_groups = (batch->n + shard - 1) / shard;
    float *arrays[most_batch];
    struct tdmi_tree_part parts[most_batch];
    struct tdmi_tree_addition additions[most_batch];
    tdmi_plan *plan;
    tdmi_executor *lane;
    assert_int_equal(tdmi_plan_new(it->graph, &tdmi_backend_ref, shard, true, &plan, NULL), TDM_OK);
    assert_int_equal(tdmi_executor_open(plan, NULL, &lane, NULL), TDM_OK);
    for (int s = 0; s < n_groups; s++) {
        const uint8_t *pixels[most_batch];
        int32_t labels[most_batch];
        struct tdmi_judgement judgements[most_batch];
        struct tdmi_group taken = {.pixels = pixels, .labels = labels, .judgements = judgements};
        for (int p = s * shard; p < (s + 1) * shard && p < batch->n; p++) {
            if (batch->labels[p] < 0)
                continue;
            pixels[taken.n] = batch->pixels + p * it->image;
            labels[taken.n++] = batch->labels[p];
        }
        arrays[s] = calloc((size_t)n_values, sizeof(float));
        assert_non_null(arrays[s]);
        struct tdmi_values values = {it->params, it->states};
        if (taken.n == 0)
            continue;
        tdmi_executor_forward(lane, values, &taken, arrays[s]);
        for (int g = 0; g < plan->n_segments; g++)
            tdmi_executor_backward(lane, values, g, arrays[s], NULL);
    }
    tdmi_executor_close(lane);
    tdmi_plan_free(plan);
    for (int s = 0; s < n_groups; s++)
        parts[s] = (struct tdmi_tree_part){s, arrays[s]};
    tdmi_tree_sum(parts, additions, tdmi_tree_plan(parts, n_groups, n_groups, n_groups, additions),
                  0, n_values);
    for (int s = 1; s < n_groups; s++)
        free(arrays[s]);
    return arrays[0];
}

static void same_sums(const struct bench *it, const float *a, const float *b)
{
    for (int t = 0; t < it->graph->n_params; t++) {
        const struct tdmi_tensor *tensor = &it->graph->params[t];
        assert_memory_equal(a + tensor->offset, b + tensor->offset, sizeof *a * (size_t)tensor->n);
    }
    for (int t = 0; t < it->graph->n_states; t++) {
        int64_t at = tdmi_graph_state_sums_at(it->graph) + it->graph->states[t].offset;
        assert_memory_equal(a + at, b + at, sizeof *a * (size_t)it->graph->states[t].n);
    }
    int64_t tail = tdmi_graph_tail_at(it->graph);
    assert_memory_equal(a + tail, b + tail, sizeof *a * TDMI_TAIL_VALUES);
}

static void check_threads(const struct bench *it, int shard, int threads, float *const *wanted)
{
    tdmi_plan *plan = plan_for_teams(it, shard);
    tdmi_pool *pool;
    tdmi_step *step;
    assert_int_equal(tdmi_pool_new(threads, NULL, &pool, NULL), TDM_OK);
    assert_int_equal(tdmi_step_open(plan, NULL, pool,
                                    &(struct tdmi_step_options){.max_batch = most_batch}, &step,
                                    NULL),
                     TDM_OK);
    for (int n = most_batch; n >= 1; n--) {
        struct tdmi_batch batch = first_of(it, n);
        tdmi_step_begin(step, (struct tdmi_values){it->params, it->states}, &batch, NULL);
        assert_int_equal(tdmi_step_run(step, 0, plan->n_segments - 1, NULL), TDM_OK);
        same_sums(it, tdmi_step_sums(step), wanted[n]);
    }
    tdmi_step_close(step);
    tdmi_pool_free(pool);
    tdmi_plan_free(plan);
}

/* One group as large as the batch is what statistics over a batch must come to, whatever the groups
 * and with pictures left out; and threads change no bit of it. */
TEST(statistics_of_a_batch_do_not_see_its_groups)
{
    struct bench *it = *state;
    int64_t n = tdmi_graph_sums_values(it->graph);
    int32_t kept[most_batch];
    memcpy(kept, it->labels, sizeof kept);
    for (int way = 0; way < 2; way++) {
        it->labels[4] = it->labels[5] = way ? -1 : 1;
        it->labels[6] = it->labels[7] = way ? -1 : 2;
        for (int size_of_batch = 9; size_of_batch <= most_batch; size_of_batch += 4) {
            struct tdmi_batch batch = first_of(it, size_of_batch);
            float *whole = mixed_sums_of(it, size_of_batch, 1, &batch, false, NULL, of_groups);
            for (int shard = 1; shard <= 5; shard++) {
                float *one = mixed_sums_of(it, shard, 1, &batch, false, NULL, of_batch);
                float *more = mixed_sums_of(it, shard, 3, &batch, true, NULL, of_batch);
                same_sums(it, one, more);
                for (int64_t i = 0; i < n; i++)
                    if (!(fabs((double)(one[i] - whole[i])) <=
                          1e-4 * (1.0 + fabs((double)whole[i]))))
                        fail_msg("groups of %d of %d: value %lld is %g, wanted %g", shard,
                                 size_of_batch, (long long)i, (double)one[i], (double)whole[i]);
                free(one);
                free(more);
            }
            float *apart = mixed_sums_of(it, 3, 1, &batch, false, NULL, of_groups);
            assert_true(memcmp(apart, whole, sizeof *apart * (size_t)n) != 0);
            free(apart);
            free(whole);
        }
    }
    memcpy(it->labels, kept, sizeof kept);
}

TEST(every_number_of_threads_gives_the_bits_of_one)
{
    struct bench *it = *state;
    for (int shard = 1; shard <= 8; shard++) {
        float *wanted[most_batch + 1] = {NULL};
        for (int n = 1; n <= most_batch; n++) {
            struct tdmi_batch batch = first_of(it, n);
            wanted[n] = plain_sums(it, shard, &batch);
        }
        for (int threads = 1; threads <= 9; threads++)
            check_threads(it, shard, threads, wanted);
        for (int n = 1; n <= most_batch; n++)
            free(wanted[n]);
    }
}

TEST(segments_one_by_one_give_the_bits_of_all_at_once)
{
    struct bench large;
    open_bench(&large, 3300);
    for (int n = 1; n <= most_batch; n += 8) {
        struct tdmi_batch batch = first_of(&large, n);
        float *wanted = plain_sums(&large, 3, &batch);
        float *at_once = sums_of(&large, 3, 2, &batch, false);
        float *one_by_one = sums_of(&large, 3, 3, &batch, true);
        same_sums(&large, at_once, wanted);
        same_sums(&large, one_by_one, wanted);
        free(wanted);
        free(at_once);
        free(one_by_one);
    }
    tdmi_plan *plan;
    assert_int_equal(tdmi_plan_new(large.graph, &tdmi_backend_ref, 3, true, &plan, NULL), TDM_OK);
    assert_true(plan->n_segments >= 2);
    tdmi_plan_free(plan);
    close_bench(&large);
}

/* So large that groups go through fewer arrays than there are of them. */
TEST(arrays_that_are_used_again_change_no_bit)
{
    struct bench large;
    int32_t labels[most_batch];
    open_bench(&large, 3300);
    const struct tdmi_sums_options used = {
        .n_values = tdmi_graph_sums_values(large.graph), .max_groups = most_batch, .n_threads = 4};
    assert_true(tdmi_sums_arrays(&used) < most_batch);
    for (int n = most_batch; n > 0; n -= 3) {
        tdmi_rng rng = tdmi_rng_at(5, TDMI_RNG_TEST, 2, (uint64_t)n);
        struct tdmi_batch batch = first_of(&large, n);
        for (int i = 0; i < n; i++)
            labels[i] = tdmi_rng_below(&rng, 5) ? large.labels[i] : -1;
        batch.labels = labels;
        float *wanted = plain_sums(&large, 1, &batch);
        for (int threads = 1; threads <= 9; threads++) {
            float *sums = sums_of(&large, 1, threads, &batch, threads % 2 == 0);
            same_sums(&large, sums, wanted);
            free(sums);
        }
        free(wanted);
    }
    close_bench(&large);
}

TEST(skipped_pictures_are_left_out_wherever_they_stand)
{
    struct bench *it = *state;
    for (int round = 0; round < 40; round++) {
        tdmi_rng rng = tdmi_rng_at(4, TDMI_RNG_TEST, 1, (uint64_t)round);
        int n = 1 + (int)tdmi_rng_below(&rng, most_batch), n_valid = 0;
        int shard = 1 + (int)tdmi_rng_below(&rng, 8);
        int32_t labels[most_batch];
        for (int i = 0; i < n; i++) {
            labels[i] = tdmi_rng_below(&rng, 3) && round ? it->labels[i] : -1;
            n_valid += labels[i] >= 0;
        }
        struct tdmi_batch batch = first_of(it, n);
        batch.labels = labels;
        float *wanted = plain_sums(it, shard, &batch);
        float *sums = sums_of(it, shard, 1 + round % 3, &batch, round % 2);
        same_sums(it, sums, wanted);
        assert_int_equal((int)sums[tdmi_graph_tail_at(it->graph) + TDMI_TAIL_SAMPLES], n_valid);
        free(wanted);
        free(sums);
    }
}

TEST(a_batch_leaves_nothing_behind_for_the_next)
{
    struct bench *it = *state;
    struct tdmi_values values = {it->params, it->states};
    struct tdmi_batch large = first_of(it, most_batch), little = first_of(it, 5);
    tdmi_plan *plan;
    tdmi_pool *pool;
    tdmi_step *step;
    float *wanted = plain_sums(it, 2, &little);
    assert_int_equal(tdmi_plan_new(it->graph, &tdmi_backend_ref, 2, true, &plan, NULL), TDM_OK);
    assert_int_equal(tdmi_pool_new(2, NULL, &pool, NULL), TDM_OK);
    assert_int_equal(tdmi_step_open(plan, NULL, pool,
                                    &(struct tdmi_step_options){.max_batch = most_batch}, &step,
                                    NULL),
                     TDM_OK);
    tdmi_step_begin(step, values, &large, NULL);
    assert_int_equal(tdmi_step_run(step, 0, plan->n_segments - 1, NULL), TDM_OK);
    int64_t calls = tdmi_memory_calls();
    tdmi_step_begin(step, values, &little, NULL);
    assert_int_equal(tdmi_step_run(step, 0, plan->n_segments - 1, NULL), TDM_OK);
    assert_int_equal(tdmi_memory_calls(), calls); /* and allocates nothing */
    same_sums(it, tdmi_step_sums(step), wanted);
    free(wanted);
    tdmi_step_close(step);
    tdmi_pool_free(pool);
    tdmi_plan_free(plan);
}

/* ---- evaluation ---------------------------------------------------------------------------- */

struct verdict {
    struct tdmi_judgement judgements[most_batch];
    float probabilities[most_batch * classes], logits[most_batch * classes];
};

static void evaluator(const struct bench *it, int piece, int threads,
                      const struct tdmi_batch *batch, struct verdict *verdict)
{
    tdmi_plan *plan;
    tdmi_pool *pool;
    tdmi_evaluator *made;
    memset(verdict, 0, sizeof *verdict);
    assert_int_equal(tdmi_plan_new(it->graph, &tdmi_backend_ref, piece, false, &plan, NULL),
                     TDM_OK);
    assert_int_equal(tdmi_pool_new(threads, NULL, &pool, NULL), TDM_OK);
    assert_int_equal(tdmi_evaluator_open(plan, NULL, pool, most_batch, &made, NULL), TDM_OK);
    assert_int_equal(tdmi_evaluator_take(made, (struct tdmi_values){it->params, it->states}, NULL),
                     TDM_OK);
    assert_int_equal(tdmi_evaluator_batch(made, batch, verdict->judgements, verdict->probabilities,
                                          verdict->logits, NULL),
                     TDM_OK);
    tdmi_evaluator_close(made);
    tdmi_pool_free(pool);
    tdmi_plan_free(plan);
}

TEST(results_of_an_image_do_not_depend_on_its_batch)
{
    struct bench *it = *state;
    struct verdict expected, got;
    struct tdmi_batch all = first_of(it, most_batch);
    evaluator(it, 1, 1, &all, &expected);
    for (int piece = 1; piece <= 8; piece += 3) {
        for (int threads = 1; threads <= 3; threads++) {
            evaluator(it, piece, threads, &all, &got);
            assert_memory_equal(&got, &expected, sizeof got);
        }
    }
}

TEST(verdicts_agree_with_each_other)
{
    struct bench *it = *state;
    struct verdict verdict;
    struct tdmi_batch all = first_of(it, most_batch);
    evaluator(it, 4, 2, &all, &verdict);
    for (int p = 0; p < most_batch; p++) {
        const float *row = verdict.probabilities + p * classes, *logits = verdict.logits;
        double sum = 0.0, powers = 0.0;
        for (int c = 0; c < classes; c++) {
            sum += (double)row[c];
            powers += exp((double)logits[p * classes + c]);
            assert_true(row[c] <= row[verdict.judgements[p].predicted]);
        }
        assert_true(fabs(sum - 1.0) < 1e-6);
        for (int c = 0; c < classes; c++)
            assert_true(fabs((double)row[c] - exp((double)logits[p * classes + c]) / powers) <
                        1e-5);
        assert_true(fabs((double)verdict.judgements[p].loss + log((double)row[it->labels[p]])) <
                    1e-4);
    }
}

TEST(a_skipped_picture_does_not_disturb_the_others)
{
    struct bench *it = *state;
    struct verdict expected, got;
    int32_t labels[most_batch];
    struct tdmi_batch batch = first_of(it, most_batch);
    evaluator(it, 4, 2, &batch, &expected);
    memcpy(labels, it->labels, sizeof labels);
    labels[0] = labels[7] = labels[most_batch - 1] = -1;
    batch.labels = labels;
    evaluator(it, 4, 2, &batch, &got);
    for (int p = 0; p < most_batch; p++)
        if (labels[p] >= 0)
            assert_memory_equal(&got.judgements[p], &expected.judgements[p],
                                sizeof got.judgements[p]);
    assert_memory_equal(got.probabilities, expected.probabilities, sizeof got.probabilities);
}

/* ---- out of memory ------------------------------------------------------------------------- */

/* Everything a training reserves, with each allocation failing in turn: an error that says so, and
 * nothing left behind (which the address sanitizer sees). */
static tdm_status open_all(tdm_error *err)
{
    tdmi_graph *graph = NULL;
    tdmi_plan *train_plan = NULL, *evaluation_plan = NULL;
    tdmi_pool *pool = NULL;
    tdmi_executor *lane = NULL;
    tdmi_step *step = NULL;
    tdmi_evaluator *evaluated = NULL;
    struct tdmi_network network;
    tdm_status status = tdmi_network_find("lenet5", &network, err);
    if (status == TDM_OK)
        status = tdmi_network_build(&network, &network.preprocess, 4, &graph, err);
    if (status == TDM_OK)
        status = tdmi_plan_new(graph, &tdmi_backend_ref, 2, true, &train_plan, err);
    if (status == TDM_OK)
        status = tdmi_plan_new(graph, &tdmi_backend_ref, 2, false, &evaluation_plan, err);
    if (status == TDM_OK)
        status = tdmi_pool_new(2, NULL, &pool, err);
    if (status == TDM_OK)
        status = tdmi_executor_open(train_plan, NULL, &lane, err);
    if (status == TDM_OK)
        status = tdmi_step_open(
            train_plan, NULL, pool,
            &(struct tdmi_step_options){.max_batch = 7, .shares_statistics = true}, &step, err);
    if (status == TDM_OK)
        status = tdmi_evaluator_open(evaluation_plan, NULL, pool, 7, &evaluated, err);
    tdmi_evaluator_close(evaluated);
    tdmi_step_close(step);
    tdmi_executor_close(lane);
    tdmi_pool_free(pool);
    tdmi_plan_free(evaluation_plan);
    tdmi_plan_free(train_plan);
    tdmi_graph_free(graph);
    return status;
}

TEST(running_out_of_memory_anywhere_is_an_ordinary_error)
{
    tdm_status status = TDM_E_MEMORY;
    int64_t n = 1;
    for (; status != TDM_OK; n++) {
        tdm_error err = {0};
        char text[2000];
        tdmi_memory_fail_from(n);
        status = open_all(&err);
        tdmi_memory_fail_from(0);
        if (status == TDM_OK)
            break;
        assert_int_equal(status, TDM_E_MEMORY);
        assert_int_equal(err.code, TDM_E_MEMORY);
        tdm_error_format(&err, text, sizeof text);
        if (!strstr(text, "memory"))
            fail_msg("allocation %lld: %s", (long long)n, text);
    }
    assert_true(n > 20); /* so many places were tried */
}

/* Mixing pairs pictures inside a group, so no number of threads and no segmenting can change it;
 * another epoch and no mixing at all do. */
TEST(mixed_groups_give_the_same_bits_on_any_threads)
{
    const struct bench *it = *state;
    const size_t bytes = sizeof(float) * (size_t)tdmi_graph_sums_values(it->graph);
    static const char *const specs[] = {"mixup:0.4", "cutmix:1", "mixup:0.2,cutmix:1"};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        struct tdmi_augment augment;
        assert_int_equal(tdmi_augment_read(specs[i], &augment, NULL), TDM_OK);
        struct tdmi_mixing mixing = {.augment = &augment, .seed = 5, .epoch = 2};
        const struct tdmi_batch batch = first_of(it, most_batch - 3);
        float *one = mixed_sums_of(it, 8, 1, &batch, false, &mixing, of_groups);
        for (int threads = 2; threads <= 5; threads++) {
            float *more =
                mixed_sums_of(it, 8, threads, &batch, threads % 2 == 1, &mixing, of_groups);
            assert_memory_equal(one, more, bytes);
            free(more);
        }
        float *plain = sums_of(it, 8, 2, &batch, false);
        assert_true(memcmp(one, plain, bytes) != 0);
        /* As many samples, and a loss that is a number. */
        const float *tail = one + tdmi_graph_tail_at(it->graph);
        assert_true(tail[TDMI_TAIL_SAMPLES] > 0 &&
                    tail[TDMI_TAIL_SAMPLES] ==
                        plain[tdmi_graph_tail_at(it->graph) + TDMI_TAIL_SAMPLES]);
        assert_true(tail[TDMI_TAIL_LOSS] > 0);
        mixing.epoch = 3;
        float *later = mixed_sums_of(it, 8, 2, &batch, false, &mixing, of_groups);
        assert_true(memcmp(one, later, bytes) != 0);
        free(later);
        free(plain);
        free(one);
    }
}

/* A pool and a dropout before the last layer. */
static tdmi_graph *graph_with_dropout(void)
{
    int x;
    tdmi_graph *graph = begin_graph(&x);
    x = tdmi_add_max_pool(graph, "pool", x, 2, 2);
    x = tdmi_add_dropout(graph, "dropout", x, 0.5, 0);
    tdmi_add_softmax(graph, tdmi_add_dense(graph, "dense", x, classes));
    assert_int_equal(tdmi_graph_finish(graph, "with dropout", NULL), TDM_OK);
    return graph;
}

/* Masks belong to pictures: neither threads nor the place in a group change a sample's gradient. */
TEST(dropout_draws_by_seed_epoch_and_picture_alone)
{
    struct bench *it = *state, dropping = *it;
    const struct tdmi_augment none = {0};
    struct tdmi_batch batch = first_of(it, most_batch), second = batch;
    struct tdmi_mixing mixing = {&none, 5, 2};
    dropping.graph = graph_with_dropout();
    size_t bytes = sizeof(float) * (size_t)dropping.graph->param_values;
    float *one = mixed_sums_of(&dropping, 4, 1, &batch, false, &mixing, of_groups);
    float *more = mixed_sums_of(&dropping, 4, 3, &batch, true, &mixing, of_groups);
    same_sums(&dropping, one, more);
    free(more);
    for (int way = 0; way < 2; way++) {
        struct tdmi_mixing other = {&none, way ? 6 : 5, way ? 2 : 3};
        float *sums = mixed_sums_of(&dropping, 4, 1, &batch, false, &other, of_groups);
        assert_true(memcmp(one, sums, bytes) != 0);
        free(sums);
    }
    free(one);
    batch.n = second.n = 1; /* the same picture, alone and behind a skipped one */
    one = mixed_sums_of(&dropping, 4, 1, &batch, false, &mixing, of_groups);
    int32_t labels[2] = {-1, it->labels[0]};
    int64_t items[2] = {9, it->items[0]};
    uint8_t *pixels = tdmi_alloc((size_t)(2 * it->image), 1);
    assert_non_null(pixels);
    memcpy(pixels + it->image, it->pixels, (size_t)it->image);
    second = (struct tdmi_batch){.n = 2, .pixels = pixels, .labels = labels, .items = items};
    more = mixed_sums_of(&dropping, 4, 1, &second, false, &mixing, of_groups);
    assert_memory_equal(one, more, bytes);
    free(one);
    free(more);
    tdmi_free(pixels);
    tdmi_graph_free(dropping.graph);
}

TEST_MAIN(set_up, tear_down)
