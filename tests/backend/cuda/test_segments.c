/*
 * The collective's slot (train/step/queued.h): ranges of the sums leave when their segment has run,
 * and the update finds what all ranks have summed. Two ranks of one process have the bits of one
 * rank with both shards, recorded or not; the collective is a test's own.
 */
#include "backend/cuda/recorded.h"
#include "backend/cuda/shim/shim_run.h"

#include <math.h>
#include <pthread.h>

enum { most_segments = 8, n_ranks = 2, own_shard = 9 /* pictures a rank */ };

/* Three segments: each closes with 2^18 values. */
static tdmi_graph *wide_graph(void)
{
    int x;
    tdmi_graph *graph = begin_graph(&x);
    x = tdmi_add_conv(graph, "conv1", x, 5, 3, 2, 1, false);
    x = tdmi_add_relu(graph, "relu1", tdmi_add_batch_norm(graph, "bn1", x));
    x = tdmi_add_relu(graph, "relu2", tdmi_add_dense(graph, "dense1", x, 3300));
    x = tdmi_add_dense(graph, "dense2", x, 80);
    x = tdmi_add_dropout(graph, "dropout", x, 0.25, 1);
    tdmi_add_softmax(graph, tdmi_add_dense(graph, "dense3", x, classes));
    assert_int_equal(tdmi_graph_finish(graph, "wide", NULL), TDM_OK);
    return graph;
}

static struct tdmi_update_rates rates_at(int s)
{
    return (struct tdmi_update_rates){.learning_rate = 0.02f / (float)(1 + s),
                                      .momentum = 0.9f,
                                      .weight_decay = 1e-3f,
                                      .step = s + 1,
                                      .clip_norm = s > 4 ? 0.5 : 0.0};
}

/* Of 18 that two ranks could take, so the last one's shard is always ragged; in one step it has
 * nothing, in one the first has nothing. */
static const int sizes[] = {17, 17, 12, 17, 17, 12, 17, 17, 12, 17};
enum { n_steps = sizeof sizes / sizeof *sizes, without_last = 3, without_first = 6 };

static struct tdmi_batch batch_at(const struct bench *of, int s, int32_t *labels, int *n)
{
    struct tdmi_batch batch = first_of(of, sizes[s]);
    *n = 0;
    for (int i = 0; i < batch.n; i++) {
        const bool is_out = i < own_shard ? s == without_first : s == without_last;
        labels[i] = is_out ? -1 : (of->labels[i] + s) % classes;
        *n += !is_out;
    }
    batch.labels = labels;
    return batch;
}

/* The shard of a rank, which is all that it has of the batch. */
static struct tdmi_batch share_of(const struct tdmi_batch *batch, int rank, int64_t image)
{
    struct tdmi_batch share = *batch;
    share.n = rank == 0 ? own_shard : batch->n - own_shard;
    share.pixels += rank * own_shard * image;
    share.labels += rank * own_shard;
    share.items += rank * own_shard;
    return share;
}

/* What one rank alone makes of all of it: after each step, its values. */
struct course {
    float *params[n_steps], *states[n_steps];
    float tails[n_steps][TDMI_TAIL_VALUES];
};

static void take_course(const struct bench *of, struct way way, struct course *course)
{
    const struct tdmi_backend plain = plain_backend();
    const struct tdmi_augment none = {0};
    way.shard = own_shard;
    struct training it = begin(of, &plain, way);
    tdmi_update_use_stream(it.update, tdmi_step_stream(it.step));
    for (int s = 0; s < n_steps; s++) {
        int32_t labels[most_batch];
        int n;
        const struct tdmi_batch batch = batch_at(of, s, labels, &n);
        const struct tdmi_mixing mixing = {&none, 4, (uint32_t)s};
        assert_int_equal(try_step_of(&it, &batch, n, &mixing, rates_at(s), course->tails[s], NULL),
                         TDM_OK);
        course->params[s] = calloc((size_t)of->graph->param_values, sizeof(float));
        course->states[s] = calloc((size_t)of->graph->state_values, sizeof(float));
        fetch(&it, course->params[s], it.params, of->graph->param_values);
        fetch(&it, course->states[s], it.states, of->graph->state_values);
    }
    end(&it);
}

static void forget_course(struct course *course)
{
    for (int s = 0; s < n_steps; s++) {
        free(course->params[s]);
        free(course->states[s]);
    }
}

/* Of ranks on threads of their own, too. */
static void must(bool is_so, const char *what, int s)
{
    if (is_so)
        return;
    fprintf(stderr, "step %d: %s\n", s, what);
    abort();
}

static void expect_course(const struct training *it, const struct course *course, int s,
                          const float *tail)
{
    const tdmi_graph *graph = it->of->graph;
    const size_t bytes[2] = {sizeof(float) * (size_t)graph->param_values,
                             sizeof(float) * (size_t)graph->state_values};
    float *params = malloc(bytes[0]), *states = malloc(bytes[1]);
    must(params && states, "there is no memory", s);
    fetch(it, params, it->params, graph->param_values);
    fetch(it, states, it->states, graph->state_values);
    must(memcmp(params, course->params[s], bytes[0]) == 0, "other bits of parameters", s);
    must(memcmp(states, course->states[s], bytes[1]) == 0, "other bits of statistics", s);
    must(memcmp(tail, course->tails[s], sizeof course->tails[s]) == 0, "another tail", s);
    free(params);
    free(states);
}

/* ---- one that queues work of the device alone ----------------------------------------------- */

/* Adds what the other rank has summed before. What is late begins when it is finished. */
struct adder {
    const struct tdmi_backend *backend;
    const float *own, *other; /* their sums */
    bool is_late;
    struct {
        float *values;
        int64_t n;
    } begun[most_segments];
    int n_begun, n_calls;
};

static void add_other(const struct adder *it, tdmi_stream *stream, float *values, int64_t n)
{
    it->backend->update->accumulate(stream, TDMI_DTYPE_F32, values, it->other + (values - it->own),
                                    n);
}

static tdm_status begin_adding(void *self, tdmi_stream *stream, float *values, int64_t n,
                               tdm_error *err)
{
    struct adder *it = self;
    (void)err;
    it->n_calls++;
    it->begun[it->n_begun].values = values;
    it->begun[it->n_begun++].n = n;
    if (!it->is_late)
        add_other(it, stream, values, n);
    return TDM_OK;
}

static tdm_status finish_adding(void *self, tdmi_stream *stream, tdm_error *err)
{
    struct adder *it = self;
    (void)err;
    for (int i = 0; it->is_late && i < it->n_begun; i++)
        add_other(it, stream, it->begun[i].values, it->begun[i].n);
    it->n_begun = 0;
    return TDM_OK;
}

/* The other rank's values are those of the first, which alone steps them. */
static void share_values(const struct training *from, struct training *to)
{
    const int64_t n[2] = {from->of->graph->param_values, from->of->graph->state_values};
    for (int k = 0; k < 2; k++) {
        float *values = calloc((size_t)n[k] + 1, sizeof *values);
        assert_non_null(values);
        fetch(from, values, k ? from->states : from->params, n[k]);
        put_there(to, k ? to->states : to->params, values, sizeof *values * (size_t)n[k]);
        free(values);
    }
}

static void run_adding(const struct bench *of, const struct tdmi_backend *backend, struct way way,
                       struct adder *adder, const struct course *course)
{
    const struct tdmi_collective collective = {adder, true, begin_adding, finish_adding};
    const struct tdmi_augment none = {0};
    way.shard = own_shard;
    struct training other = begin(of, backend, way);
    way.collective = &collective;
    struct training first = begin(of, backend, way);
    tdmi_update_use_stream(first.update, tdmi_step_stream(first.step));
    adder->backend = backend;
    for (int s = 0; s < n_steps; s++) {
        int32_t labels[most_batch];
        float tails[2][TDMI_TAIL_VALUES];
        int n;
        const struct tdmi_batch batch = batch_at(of, s, labels, &n);
        const struct tdmi_batch shares[2] = {share_of(&batch, 0, of->image),
                                             share_of(&batch, 1, of->image)};
        const struct tdmi_mixing mixing = {&none, 4, (uint32_t)s};
        const struct tdmi_values values = {other.params, other.states};
        tdmi_step_begin(other.step, values, &shares[1], &mixing);
        assert_int_equal(tdmi_step_run_queued(other.step, NULL, tails[1], NULL), TDM_OK);
        adder->own = tdmi_step_sums(first.step);
        adder->other = tdmi_step_sums(other.step);
        assert_int_equal(try_step_of(&first, &shares[0], n, &mixing, rates_at(s), tails[0], NULL),
                         TDM_OK);
        assert_int_equal(adder->n_begun, 0); /* all of it was finished */
        expect_course(&first, course, s, tails[0]);
        share_values(&first, &other);
    }
    /* One recording a step, collective and all. With and without clipping one step is queued and
     * one recorded, and one has no pictures; where it is replayed nobody is called. */
    const bool is_plain = !backend->stream.capture_begin;
    assert_int_equal(first.plan->n_segments, 3);
    assert_int_equal(tdmi_step_replays(first.step), is_plain ? 0 : n_steps - 3);
    assert_int_equal(adder->n_calls, 3 * (is_plain ? n_steps : 5));
    end(&first);
    end(&other);
}

static void a_collective_of_the_device_is_recorded_with_the_step(void **state)
{
    const struct tdmi_backend plain = plain_backend();
    const struct way ways[2] = {
        {.threads = 1, .optimizer = "sgd"},
        {.threads = 1, .optimizer = "adamw", .has_weights = true, .storage = TDMI_DTYPE_BF16}};
    struct bench of;
    (void)state;
    fake_runtime_guard(false); /* others look who follows pointers; these networks are wide */
    tdmi_shim_use((struct tdmi_shim_way){0});
    open_bench_of(&of, wide_graph());
    for (int k = 0; k < 2; k++) {
        struct course course;
        take_course(&of, ways[k], &course);
        for (int is_late = 0; is_late < 2; is_late++) {
            struct adder recorded = {.is_late = is_late};
            run_adding(&of, &tdmi_backend_shim, ways[k], &recorded, &course);
        }
        struct adder queued = {.is_late = k};
        run_adding(&of, &plain, ways[k], &queued, &course);
        forget_course(&course);
    }
    close_bench(&of);
}

/* ---- one that the host takes part in -------------------------------------------------------- */

/* Where ranks meet: what each has handed over, in ordinary memory. */
struct meeting {
    pthread_barrier_t barrier;
    float *sums[n_ranks];
};

struct rank {
    const struct bench *of;
    const struct tdmi_backend *backend;
    struct way way;
    const struct course *course;
    struct meeting *meeting;
    int rank;
    bool is_late;
    struct training it;
    struct tdmi_collective collective;

    int s, n_begun;
    int64_t last_begin; /* where the range before began: the next ends there */
    int64_t replays;
};

static void take_part(struct rank *it, tdmi_stream *stream, float *there, int64_t first, int64_t n)
{
    const struct tdmi_memory_table *memory = &it->backend->memory;
    float *own = it->meeting->sums[it->rank];
    float *sum = malloc(sizeof *sum * (size_t)n);
    must(sum != NULL, "there is no memory", it->s);
    must(it->backend->stream.wait(stream, NULL) == TDM_OK, "the step failed", it->s);
    must(memory->download(stream, own + first, there + first, sizeof *own * (size_t)n, NULL) ==
             TDM_OK,
         "a range is not there", it->s);
    pthread_barrier_wait(&it->meeting->barrier);
    for (int64_t i = 0; i < n; i++)
        sum[i] = it->meeting->sums[0][first + i] + it->meeting->sums[1][first + i];
    pthread_barrier_wait(&it->meeting->barrier); /* nobody reads them any more */
    must(memory->upload(stream, there + first, sum, sizeof *sum * (size_t)n, NULL) == TDM_OK,
         "a range does not go back", it->s);
    free(sum);
}

/* What is handed over is complete, and what lies below has not been computed yet: all of it was NaN
 * before the step. */
static void expect_cut(const struct rank *it, tdmi_stream *stream, float *there, int64_t first,
                       int64_t n)
{
    const tdmi_graph *graph = it->of->graph;
    const int64_t all = tdmi_graph_sums_values(graph), tail = tdmi_graph_tail_at(graph);
    const bool has_pictures = it->s != (it->rank == 0 ? without_first : without_last);
    float *sums = malloc(sizeof *sums * (size_t)all);
    must(sums != NULL, "there is no memory", it->s);
    must(it->backend->stream.wait(stream, NULL) == TDM_OK, "the step failed", it->s);
    must(it->backend->memory.download(stream, sums, there, sizeof *sums * (size_t)all, NULL) ==
             TDM_OK,
         "sums are not there", it->s);
    must(first + n == it->last_begin, "ranges do not lie side by side", it->s);
    for (int t = 0; t < graph->n_params; t++) { /* between tensors there is nothing */
        const struct tdmi_tensor *tensor = &graph->params[t];
        const float *of_tensor = sums + tensor->offset;
        for (int64_t i = 0; tensor->offset >= first && i < tensor->n; i++)
            must(isfinite(of_tensor[i]), "what is handed over is not final", it->s);
        for (int64_t i = 0; has_pictures && tensor->offset < first && i < tensor->n; i++)
            must(isnan(of_tensor[i]), "the next segment has run before", it->s);
    }
    must(isfinite(sums[tail + TDMI_TAIL_LOSS]), "the loss is not there", it->s);
    free(sums);
}

static tdm_status begin_meeting(void *self, tdmi_stream *stream, float *values, int64_t n,
                                tdm_error *err)
{
    struct rank *it = self;
    float *there = tdmi_step_sums(it->it.step);
    const int64_t first = values - there;
    (void)err;
    it->n_begun++;
    expect_cut(it, stream, there, first, n);
    it->last_begin = first;
    if (!it->is_late)
        take_part(it, stream, there, first, n);
    return TDM_OK;
}

static tdm_status finish_meeting(void *self, tdmi_stream *stream, tdm_error *err)
{
    struct rank *it = self;
    (void)err;
    if (it->is_late)
        take_part(it, stream, tdmi_step_sums(it->it.step), 0,
                  tdmi_graph_sums_values(it->of->graph));
    return TDM_OK;
}

static void forget_sums(struct rank *it)
{
    const int64_t n = tdmi_graph_sums_values(it->of->graph);
    float *none = malloc(sizeof *none * (size_t)n);
    must(none != NULL, "there is no memory", it->s);
    for (int64_t i = 0; i < n; i++)
        none[i] = NAN;
    must(it->backend->memory.upload(it->it.stream, tdmi_step_sums(it->it.step), none,
                                    sizeof *none * (size_t)n, NULL) == TDM_OK &&
             it->backend->stream.wait(it->it.stream, NULL) == TDM_OK,
         "sums are not cleared", it->s);
    it->last_begin = n;
    it->n_begun = 0;
    free(none);
}

static void *run_rank(void *self)
{
    struct rank *it = self;
    const struct tdmi_augment none = {0};
    it->collective = (struct tdmi_collective){it, false, begin_meeting, finish_meeting};
    it->way.shard = own_shard;
    it->way.collective = &it->collective;
    it->it = begin(it->of, it->backend, it->way);
    tdmi_update_use_stream(it->it.update, tdmi_step_stream(it->it.step));
    for (it->s = 0; it->s < n_steps; it->s++) {
        int32_t labels[most_batch];
        float tail[TDMI_TAIL_VALUES];
        int n;
        const struct tdmi_batch batch = batch_at(it->of, it->s, labels, &n);
        const struct tdmi_batch share = share_of(&batch, it->rank, it->of->image);
        const struct tdmi_mixing mixing = {&none, 4, (uint32_t)it->s};
        forget_sums(it);
        must(try_step_of(&it->it, &share, n, &mixing, rates_at(it->s), tail, NULL) == TDM_OK,
             "it failed", it->s);
        must(it->n_begun == it->it.plan->n_segments, "a segment was not handed over", it->s);
        expect_course(&it->it, it->course, it->s, tail);
    }
    it->replays = tdmi_step_replays(it->it.step);
    end(&it->it);
    return NULL;
}

static void run_meeting(const struct bench *of, const struct tdmi_backend *backend, struct way way,
                        bool is_late, const struct course *course)
{
    struct meeting meeting;
    struct rank ranks[n_ranks];
    pthread_t threads[n_ranks];
    assert_int_equal(pthread_barrier_init(&meeting.barrier, NULL, n_ranks), 0);
    for (int r = 0; r < n_ranks; r++) {
        meeting.sums[r] = calloc((size_t)tdmi_graph_sums_values(of->graph), sizeof(float));
        assert_non_null(meeting.sums[r]);
        ranks[r] = (struct rank){.of = of,
                                 .backend = backend,
                                 .way = way,
                                 .course = course,
                                 .meeting = &meeting,
                                 .rank = r,
                                 .is_late = is_late};
    }
    for (int r = 0; r < n_ranks; r++)
        assert_int_equal(pthread_create(&threads[r], NULL, run_rank, &ranks[r]), 0);
    for (int r = 0; r < n_ranks; r++) {
        assert_int_equal(pthread_join(threads[r], NULL), 0);
        free(meeting.sums[r]);
        /* three segments and the update, each a recording */
        if (backend->stream.capture_begin)
            assert_true(ranks[r].replays >= 4 * 4);
        else
            assert_int_equal(ranks[r].replays, 0);
    }
    pthread_barrier_destroy(&meeting.barrier);
}

static void a_collective_of_the_host_stands_between_recordings(void **state)
{
    const struct tdmi_backend plain = plain_backend();
    const struct way way = {.threads = 1, .optimizer = "sgd", .has_weights = true};
    struct bench of;
    struct course course;
    (void)state;
    fake_runtime_guard(false); /* others look who follows pointers; these networks are wide */
    tdmi_shim_use((struct tdmi_shim_way){0});
    open_bench_of(&of, wide_graph());
    take_course(&of, way, &course);
    for (int is_late = 0; is_late < 2; is_late++)
        run_meeting(&of, &tdmi_backend_shim, way, is_late, &course);
    run_meeting(&of, &plain, way, false, &course);
    forget_course(&course);
    close_bench(&of);
}

/* ---- failures ------------------------------------------------------------------------------- */

struct failing {
    int at, n_calls;
};

static tdm_status fail_to_begin(void *self, tdmi_stream *stream, float *values, int64_t n,
                                tdm_error *err)
{
    struct failing *it = self;
    (void)stream;
    (void)values;
    (void)n;
    return ++it->n_calls == it->at ? TDM_FAIL(err, TDM_E_PEER, "planted: rank 1 is gone") : TDM_OK;
}

static tdm_status finish_nothing(void *self, tdmi_stream *stream, tdm_error *err)
{
    (void)self;
    (void)stream;
    (void)err;
    return TDM_OK;
}

/* Of the first step, which is queued; of the second, between recordings and inside one: there the
 * step is queued as it is, and goes on if the collective does. */
static void a_collective_that_fails_ends_the_step(void **state)
{
    const struct tdmi_augment none = {0};
    const struct tdmi_mixing mixing = {&none, 4, 0};
    struct bench of;
    (void)state;
    fake_runtime_guard(false); /* others look who follows pointers; these networks are wide */
    open_bench_of(&of, wide_graph());
    const struct tdmi_batch batch = first_of(&of, own_shard);
    for (int k = 0; k < 4; k++) {
        struct failing failing = {.at = k < 2 ? 2 : 5};
        const struct tdmi_collective collective = {&failing, k % 2, fail_to_begin, finish_nothing};
        struct training it = begin(
            &of, &tdmi_backend_shim,
            (struct way){
                .shard = own_shard, .threads = 1, .optimizer = "sgd", .collective = &collective});
        float tail[TDMI_TAIL_VALUES];
        char text[1000] = "";
        tdm_status status = TDM_OK;
        tdm_error err = {0};
        tdmi_update_use_stream(it.update, tdmi_step_stream(it.step));
        for (int s = 0; s < 2 && status == TDM_OK; s++)
            status = try_step_of(&it, &batch, batch.n, &mixing, rates_at(s), tail, &err);
        if (k == 3) { /* while it was recorded: queued, all three segments are handed over */
            assert_int_equal(status, TDM_OK);
            assert_int_equal(failing.n_calls, 3 + 2 + 3);
            assert_int_equal(tdmi_step_replays(it.step), 0);
        } else {
            tdm_error_line(&err, text, sizeof text);
            assert_int_equal(status, TDM_E_PEER);
            assert_non_null(strstr(text, "handing over segment 2 of 3: planted: rank 1 is gone"));
        }
        end(&it);
    }
    close_bench(&of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_collective_of_the_device_is_recorded_with_the_step),
        cmocka_unit_test(a_collective_of_the_host_stands_between_recordings),
        cmocka_unit_test(a_collective_that_fails_ends_the_step),
    };
    fake_runtime_pace(FAKE_LATE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
