/*
 * Steps of several ranks, each on a GPU of its own: through the CPU's memory and by a stand-in for
 * NCCL they have the bits of one GPU with the same groups. A rank that fails ends the others' wait.
 */
#include "backend/cuda/fakes/fake_nccl.h"
#include "backend/cuda/shim/shim_backend.h"
#include "backend/cuda/shim/shim_run.h"
#include "base/hash/rng.h"
#include "dist/cut.h"
#include "dist/device_sum.h"
#include "dist/ranks.h"
#include "dist/tree.h"
#include "models/network.h"
#include "train/trainings.h"

#include <math.h>

enum { n_steps = 5, most_world = 4 };

static struct fake_nccl *nccl;

/* Several segments; batch norms of each group. */
static tdmi_graph *small_graph(void)
{
    int x;
    tdmi_graph *graph = begin_graph(&x);
    x = tdmi_add_conv(graph, "conv", x, 4, 3, 2, 1, false);
    x = tdmi_add_relu(graph, "relu1", tdmi_add_batch_norm(graph, "bn", x));
    x = tdmi_add_relu(graph, "relu2", tdmi_add_dense(graph, "dense1", x, 4200));
    x = tdmi_add_relu(graph, "relu3", tdmi_add_dense(graph, "dense2", x, 64));
    tdmi_add_softmax(graph, tdmi_add_dense(graph, "dense3", x, classes));
    assert_int_equal(tdmi_graph_finish(graph, "small", NULL), TDM_OK);
    return graph;
}

/* Batches of 17, 17, 3, 12, 17 images, some of them left out. */
static struct tdmi_batch batch_at(const struct bench *of, int step, int32_t *labels)
{
    static const int sizes[n_steps] = {most_batch, most_batch, 3, 12, most_batch};
    struct tdmi_batch batch = first_of(of, sizes[step]);
    for (int i = 0; i < batch.n; i++)
        labels[i] = step > 2 && i % 5 == 2 ? -1 : of->labels[i];
    batch.labels = labels;
    return batch;
}

/* The part of a batch that a rank computes. */
static struct tdmi_batch part_of(const struct bench *of, struct tdmi_batch batch, int shard,
                                 int rank, int world)
{
    int firsts[most_world + 1];
    const int n = batch.n;
    assert_int_equal(tdmi_cut_make((n + shard - 1) / shard, world, firsts, NULL), TDM_OK);
    const int first = firsts[rank] * shard < n ? firsts[rank] * shard : n;
    const int end = firsts[rank + 1] * shard < n ? firsts[rank + 1] * shard : n;
    batch.whole.n = n;
    batch.whole.first = first;
    batch.n = end - first;
    batch.pixels += first * of->image;
    batch.labels += first;
    batch.items += first;
    return batch;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

struct course {
    const struct bench *of;
    int shard;
    bool is_fast, has_peers;
    float *sums[n_steps];   /* gradients, statistics, tail */
    tdm_status status;      /* result of the first step that failed */
    int failing, failed_at; /* this rank fails before this step, with words or without; -1: none */
    bool is_silent;
    tdm_error err;
};

static int64_t sum_values(const struct bench *of)
{
    return tdmi_graph_tail_at(of->graph) + TDMI_TAIL_VALUES;
}

static tdm_status look(void *self, tdm_error *err)
{
    return tdmi_comm_check(self, err);
}

static tdm_status connect_gpu(tdmi_comm *comm, tdmi_peers **peers, tdmi_device *device,
                              tdm_error *err)
{
    const struct tdmi_peer_table *table = tdmi_backend_shim.peers;
    const int rank = tdmi_comm_rank(comm);
    struct tdmi_peers_id id = {{0}};
    TDMI_TRY(table->open(device, rank == 0 ? &id : NULL, peers, err));
    TDMI_TRY(tdmi_comm_broadcast(comm, &id, sizeof id, err));
    return table->join(*peers, &id, rank, tdmi_comm_world(comm),
                       (struct tdmi_peers_watch){look, comm, 1.0}, err);
}

/* No rank leaves while the GPU of another one may need it. */
static void meet(tdmi_comm *comm)
{
    char all[most_world] = "";
    const size_t firsts[most_world + 1] = {0, 1, 2, 3, 4};
    (void)!tdmi_comm_complete(comm, all, firsts, NULL);
}

static tdm_status take_step(struct training *it, const struct tdmi_batch *batch, tdm_error *err)
{
    tdmi_step_begin(it->step, (struct tdmi_values){it->params, it->states}, batch, NULL);
    return tdmi_step_run(it->step, 0, it->plan->n_segments - 1, err);
}

static void update(struct training *it)
{
    const struct tdmi_update_rates rates = {.learning_rate = 0.05f, .momentum = 0.9f, .step = 1};
    const float n = it->sums[tdmi_graph_tail_at(it->of->graph) + TDMI_TAIL_SAMPLES];
    if (n > 0.0f)
        assert_int_equal(tdmi_update_run(it->update, tdmi_step_sums(it->step), n, rates, NULL),
                         TDM_OK);
}

static void keep(struct training *it, struct course *course, int step)
{
    const int64_t n = sum_values(course->of);
    fetch(it, it->sums, tdmi_step_sums(it->step), n);
    course->sums[step] = copied(it->sums, n);
}

static void fail_here(tdmi_comm *comm, const struct course *course)
{
    tdm_error why = {0};
    const tdm_status status = TDM_FAIL(&why, TDM_E_INPUT, "an image of this rank is damaged");
    if (!course->is_silent)
        tdmi_comm_abort(comm, status, &why);
}

static void train_rank(tdmi_comm *comm, void *self)
{
    struct course *course = self;
    const int rank = tdmi_comm_rank(comm), world = tdmi_comm_world(comm);
    tdmi_peers *peers = NULL;
    tdmi_device *device;
    assert_int_equal(tdmi_backend_shim.device.open(rank, &device, NULL), TDM_OK);
    if (course->has_peers)
        course->status = connect_gpu(comm, &peers, device, &course->err);
    struct training it = begin(course->of, &tdmi_backend_shim,
                               (struct way){.shard = course->shard,
                                            .threads = 1,
                                            .optimizer = "sgd",
                                            .gpu = rank,
                                            .comm = comm,
                                            .peers = peers,
                                            .is_fast = course->is_fast});
    assert_true(it.plan->n_segments > 1);
    int s = 0;
    for (; s < n_steps && course->status == TDM_OK; s++) {
        int32_t labels[most_batch];
        const struct tdmi_batch whole = batch_at(course->of, s, labels);
        const struct tdmi_batch part = part_of(course->of, whole, course->shard, rank, world);
        if (s == course->failed_at && rank == course->failing) {
            fail_here(comm, course);
            break;
        }
        course->status = take_step(&it, &part, &course->err);
        if (course->status != TDM_OK)
            break;
        keep(&it, course, s);
        update(&it);
    }
    if (s == n_steps)
        meet(comm);
    if (peers)
        tdmi_backend_shim.peers->close(peers);
    end(&it);
    tdmi_backend_shim.device.close(device);
}

static struct course *run_world(const struct bench *of, const char *transport, int world,
                                struct course usual)
{
    static struct course courses[most_world];
    usual.of = of;
    for (int r = 0; r < world; r++)
        courses[r] = usual;
    run_ranks((struct job){.transport = transport, .world = world, .deadline = 20}, train_rank,
              courses, sizeof courses[0]);
    return courses;
}

static void forget(struct course *courses, int world)
{
    for (int r = 0; r < world; r++)
        for (int s = 0; s < n_steps; s++)
            free(courses[r].sums[s]);
}

/* One GPU, with all groups of every batch. */
static struct course alone(const struct bench *of, int shard)
{
    struct course course = {.of = of};
    struct training it = begin(of, &tdmi_backend_shim,
                               (struct way){.shard = shard, .threads = 1, .optimizer = "sgd"});
    for (int s = 0; s < n_steps; s++) {
        int32_t labels[most_batch];
        const struct tdmi_batch batch = batch_at(of, s, labels);
        assert_int_equal(take_step(&it, &batch, NULL), TDM_OK);
        keep(&it, &course, s);
        update(&it);
    }
    end(&it);
    return course;
}

static void use_gpus(int n)
{
    struct fake_gpus gpus = fake_runtime_first_gpus();
    gpus.n = n;
    fake_runtime_gpus(gpus);
    nccl->groups = nccl->sums = 0;
}

/* ---- sums ------------------------------------------------------------------------------------ */

static void expect_bits_of_one(const struct bench *of, bool has_peers)
{
    static const int shards[] = {3, 5, most_batch}; /* one group: most ranks have nothing */
    for (int k = 0; k < 3; k++)
        for (int world = 2 + k % 2; world <= most_world; world += 2) {
            const char *transport = (k + world) % 3 ? "tcp" : "thread";
            use_gpus(world);
            fake_runtime_guard(world == 2); /* it takes long */
            struct course one = alone(of, shards[k]);
            struct course *courses = run_world(
                of, transport, world,
                (struct course){.shard = shards[k], .has_peers = has_peers, .failing = -1});
            for (int r = 0; r < world; r++)
                for (int s = 0; s < n_steps; s++) {
                    assert_ok(courses[r].status, &courses[r].err);
                    if (memcmp(courses[r].sums[s], one.sums[s],
                               sizeof(float) * (size_t)sum_values(of)) != 0)
                        fail_msg("groups of %d, rank %d of %d, step %d: other sums than on one GPU",
                                 shards[k], r, world, s + 1);
                }
            assert_int_equal(nccl->groups > 0, has_peers);
            assert_int_equal(nccl->sums, 0);
            assert_int_equal(nccl->alive, 0);
            forget(courses, world);
            forget(&one, 1);
        }
}

TEST(ranks_have_the_bits_of_one_gpu_through_the_host)
{
    expect_bits_of_one(*state, false);
}

TEST(ranks_have_the_bits_of_one_gpu_by_nccl)
{
    expect_bits_of_one(*state, true);
}

/* ---- long sums ------------------------------------------------------------------------------- */

enum { long_values = 2500001, long_groups = 5, long_world = 2 };

struct long_sum {
    const float *groups, *wanted;
    bool is_right;
};

/* Two subtrees of rank 1, an odd number of values, and several chunks. */
static void sum_long(tdmi_comm *comm, void *self)
{
    struct long_sum *it = self;
    const struct tdmi_backend *backend = &tdmi_backend_shim;
    const int rank = tdmi_comm_rank(comm);
    const int first = rank == 0 ? 0 : 2, n_roots = rank == 0 ? 1 : 2; /* 0 1 | 2 3, 4 */
    const size_t bytes = sizeof(float) * long_values;
    float *roots[2], *sums = malloc(bytes);
    tdmi_device *device;
    tdmi_stream *stream;
    tdmi_peers *peers;
    tdm_error err = {0};
    assert_non_null(sums);
    assert_int_equal(backend->device.open(rank, &device, NULL), TDM_OK);
    assert_int_equal(backend->stream.open(device, &stream, NULL), TDM_OK);
    assert_ok(connect_gpu(comm, &peers, device, &err), &err);
    struct tdmi_device_sum sum = {.backend = backend,
                                  .device = device,
                                  .stream = stream,
                                  .comm = comm,
                                  .peers = peers,
                                  .n_values = long_values,
                                  .most_roots = 2};
    assert_ok(tdmi_device_sum_init(&sum, &err), &err);
    assert_ok(tdmi_comm_divide(comm, long_groups, &err), &err);
    for (int i = 0; i < n_roots; i++) {
        roots[i] = backend->memory.alloc(device, bytes);
        const float *from = it->groups + (size_t)(first + 2 * i) * long_values;
        assert_ok(backend->memory.upload(stream, roots[i], from, bytes, &err), &err);
    }
    assert_ok(tdmi_device_sum_start(&sum, roots, roots[0], 7, long_values - 7, 0, &err), &err);
    assert_ok(tdmi_device_sum_start(&sum, roots, roots[0], 0, 7, 0, &err), &err);
    assert_ok(tdmi_device_sum_finish(&sum, roots[0], 0, &err), &err);
    assert_ok(backend->memory.download(stream, sums, roots[0], bytes, &err), &err);
    assert_ok(backend->stream.wait(stream, &err), &err);
    it->is_right = memcmp(sums, it->wanted, bytes) == 0;
    tdmi_device_sum_release(&sum);
    backend->peers->close(peers);
    for (int i = 0; i < n_roots; i++)
        backend->memory.free(device, roots[i]);
    backend->stream.close(stream);
    backend->device.close(device);
    free(sums);
}

/* The subtrees 0 1 | 2 3 | 4, whose values lie in groups 0, 2 and 4. */
TEST(long_sums_go_in_several_chunks)
{
    float *groups = malloc(sizeof *groups * long_groups * long_values);
    float *wanted = malloc(sizeof *wanted * long_values);
    assert_true(groups && wanted);
    for (int64_t i = 0; i < (int64_t)long_groups * long_values; i++) {
        tdmi_rng rng = tdmi_rng_at(3, TDMI_RNG_TEST, 1, (uint64_t)i);
        groups[i] = tdmi_rng_uniform(&rng, -1.0f, 1.0f) * (float)(1u << tdmi_rng_below(&rng, 24));
    }
    groups[0] = groups[2 * (int64_t)long_values] = groups[4 * (int64_t)long_values] = -0.0f;
    for (int64_t i = 0; i < long_values; i++)
        wanted[i] = (groups[i] + groups[2 * (int64_t)long_values + i]) +
                    groups[4 * (int64_t)long_values + i];
    struct long_sum ranks[long_world] = {{groups, wanted, false}, {groups, wanted, false}};
    use_gpus(long_world);
    run_ranks((struct job){.transport = "thread", .world = long_world, .deadline = 20}, sum_long,
              ranks, sizeof ranks[0]);
    assert_true(ranks[0].is_right && ranks[1].is_right);
    assert_true(nccl->groups >= long_world * 2 * 3);
    free(groups);
    free(wanted);
}

/* ---- in any order ---------------------------------------------------------------------------- */

static double length_of(const float *values, const float *less, int64_t n)
{
    double squares = 0.0;
    for (int64_t i = 0; i < n; i++) {
        const double value = (double)values[i] - (less ? (double)less[i] : 0.0);
        squares += value * value;
    }
    return sqrt(squares);
}

/* limit: of the first step's gradients. Ranks never drift apart. */
static void expect_fast(const struct bench *of, bool has_peers, double limit)
{
    const int64_t n = of->graph->param_values, tail = tdmi_graph_tail_at(of->graph);
    for (int shard = 3; shard <= most_batch; shard += 14) { /* with the latter rank 1 has nothing */
        use_gpus(2);
        struct course one = alone(of, shard);
        struct course *two =
            run_world(of, "thread", 2,
                      (struct course){
                          .shard = shard, .has_peers = has_peers, .is_fast = true, .failing = -1});
        for (int s = 0; s < n_steps; s++) {
            assert_ok(two[0].status, &two[0].err);
            assert_ok(two[1].status, &two[1].err);
            assert_memory_equal(two[0].sums[s], two[1].sums[s],
                                sizeof(float) * (size_t)sum_values(of));
            assert_true(two[0].sums[s][tail + TDMI_TAIL_SAMPLES] ==
                        one.sums[s][tail + TDMI_TAIL_SAMPLES]);
        }
        const double apart = length_of(two[0].sums[0], one.sums[0], n);
        assert_true(apart <= limit * length_of(one.sums[0], NULL, n));
        assert_int_equal(nccl->sums > 0, has_peers);
        assert_int_equal(nccl->groups, 0);
        forget(two, 2);
        forget(&one, 1);
    }
}

TEST(fast_sums_go_through_the_host_as_bf16)
{
    expect_fast(*state, false, 1.0 / 128.0);
}

TEST(fast_sums_by_nccl_are_one_call_a_segment)
{
    expect_fast(*state, true, 1e-6);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* The other rank is stopped in NCCL's wait. */
static struct course *run_until_failure(const struct bench *of, bool is_silent)
{
    use_gpus(2);
    struct course *courses = run_world(
        of, "tcp", 2,
        (struct course){
            .shard = 3, .has_peers = true, .failing = 1, .failed_at = 2, .is_silent = is_silent});
    assert_int_equal(courses[1].status, TDM_OK);
    assert_int_equal(nccl->alive, 0);
    return courses;
}

TEST(a_rank_that_fails_ends_the_wait_for_its_gpu_with_its_words)
{
    struct course *courses = run_until_failure(*state, false);
    assert_int_equal(courses[0].status, TDM_E_INPUT);
    assert_says(&courses[0].err, "an image of this rank is damaged");
    assert_says(&courses[0].err, "rank 1");
    forget(courses, 2);
}

TEST(a_rank_that_is_lost_ends_the_wait_for_its_gpu)
{
    struct course *courses = run_until_failure(*state, true);
    assert_int_equal(courses[0].status, TDM_E_PEER);
    assert_says(&courses[0].err, "rank 1");
    forget(courses, 2);
}

/* It ends in the middle of a step, whose first sum both have begun. */
TEST(a_rank_that_is_lost_during_a_sum_ends_the_wait_for_its_gpu)
{
    nccl->breaks[1] = 1;
    use_gpus(2);
    struct course *courses =
        run_world(*state, "tcp", 2, (struct course){.shard = 3, .has_peers = true, .failing = -1});
    nccl->breaks[1] = 0;
    assert_int_equal(courses[1].status, TDM_E_SYSTEM);
    assert_says(&courses[1].err, "NCCL says 5, invalid usage");
    assert_int_equal(courses[0].status, TDM_E_PEER);
    assert_says(&courses[0].err, "rank 1 on");
    assert_says(&courses[0].err, "was lost");
    assert_int_equal(nccl->alive, 0);
    forget(courses, 2);
}

TEST(gpus_that_cannot_be_connected_are_reported_within_the_deadline)
{
    nccl->refuses[1] = 1;
    use_gpus(2);
    struct course *courses = run_world(
        *state, "thread", 2, (struct course){.shard = 3, .has_peers = true, .failing = -1});
    assert_int_equal(courses[0].status, TDM_E_PEER);
    assert_says(&courses[0].err, "not all ranks were there after 1 seconds");
    assert_int_equal(courses[1].status, TDM_E_SYSTEM);
    assert_says(&courses[1].err, "NCCL says 5, invalid usage");
    assert_int_equal(nccl->alive, 0);
    nccl->refuses[1] = 0;
}

/* ---- names of devices ------------------------------------------------------------------------ */

TEST(each_rank_takes_a_gpu_of_the_list)
{
    char device[TDMI_DEVICE_NAME_BYTES];
    int n = 0;
    tdm_error err = {0};
    static const struct {
        const char *name;
        int rank;
        const char *device;
    } cases[] = {{"cuda:3,1", 0, "cuda:3"}, {"cuda:3,1", 1, "cuda:1"}, {"cuda:2", 1, "cuda:2"},
                 {"cpu", 1, "cpu"},         {"ref", 0, "ref"},         {"cuda:0,x", 1, "cuda:0,x"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(tdmi_backend_of_rank(cases[i].name, 2, cases[i].rank, device, NULL),
                         TDM_OK);
        assert_string_equal(device, cases[i].device);
    }
    assert_int_equal(tdmi_backend_of_rank("cuda:1", 1, 0, device, NULL), TDM_OK);
    assert_string_equal(device, "cuda:1");
    assert_int_equal(tdmi_backend_of_rank("cuda:0,1", 1, 0, device, &err), TDM_E_USAGE);
    assert_says(&err, "it names 2 GPUs, and one process computes on one");
    assert_int_equal(tdmi_backend_ranks_for("cuda:0,1,5", &n, NULL), TDM_OK);
    assert_int_equal(n, 3);
    assert_int_equal(tdmi_backend_ranks_for("cuda:5", &n, NULL), TDM_OK);
    assert_int_equal(n, 1);
    assert_int_equal(tdmi_backend_ranks_for("cpu", &n, NULL), TDM_OK);
    assert_int_equal(n, 1);
    assert_true(tdmi_backend_is_list("cuda:all") && tdmi_backend_is_list("cuda:0,1"));
    assert_false(tdmi_backend_is_list("cuda:1") || tdmi_backend_is_list("cuda:") ||
                 tdmi_backend_is_list("cuda:0,") || tdmi_backend_is_list("cpu:0,1"));
}

static int set_up(void **state)
{
    struct bench *it = calloc(1, sizeof *it);
    nccl = tdmi_shim_fake(FAKE_NCCL, "fake_nccl");
    if (!it || !nccl)
        return -1;
    tdmi_shim_nccl(FAKE_NCCL);
    fake_runtime_guard(true);
    fake_runtime_pace(FAKE_LATE);
    open_bench_of(it, small_graph());
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
