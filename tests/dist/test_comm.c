/* Collectives over every transport: sums against the tree in one process, bytes, and failures. */
#include "base/clock.h"
#include "base/hash/rng.h"
#include "dist/comm_internal.h"
#include "dist/cut.h"
#include "dist/ranks.h"
#include "dist/tree.h"
#include "tandem/event.h"

#include <sys/wait.h>

enum { most_groups = 13, n_transports = 2 };
static const char *const transports[n_transports] = {"thread", "tcp"};

/* ---- sums ------------------------------------------------------------------------------------ */

/* One value of a group: of very different sizes, so that the order of additions shows. */
static float value_of(int group, int64_t i)
{
    tdmi_rng rng = tdmi_rng_at(3, TDMI_RNG_TEST, (uint32_t)group, (uint64_t)i);
    return tdmi_rng_uniform(&rng, -1.0f, 1.0f) * (float)(1u << tdmi_rng_below(&rng, 24));
}

struct sum_case {
    int n_groups;
    int64_t n, range; /* range: of one sum; 0: 100,000 values */
    const float *wanted;
    bool is_uneven; /* ranks begin sums at different moments */
    bool is_right;
};

static void nap(int rank, int64_t at)
{
    tdmi_rng rng = tdmi_rng_at(4, TDMI_RNG_TEST, (uint32_t)rank, (uint64_t)at);
    const struct timespec time = {.tv_nsec = (long)tdmi_rng_below(&rng, 3) * 1500000};
    nanosleep(&time, NULL);
}

/* As a step does: the groups of this rank first, then ranges of values, the last ones first. */
static bool sum_on(tdmi_comm *comm, const struct sum_case *it)
{
    struct tdmi_tree_part parts[most_groups];
    struct tdmi_tree_addition additions[most_groups];
    float *arrays[most_groups + 1], *roots[most_groups];
    int cut[most_ranks + 1], firsts[TDMI_TREE_ROOTS];
    if (tdmi_cut_make(it->n_groups, tdmi_comm_world(comm), cut, NULL) != TDM_OK ||
        tdmi_comm_divide(comm, it->n_groups, NULL) != TDM_OK)
        return false;
    const int first = cut[tdmi_comm_rank(comm)], end = cut[tdmi_comm_rank(comm) + 1];
    const int n = end - first;
    for (int g = 0; g <= n; g++) {
        arrays[g] = calloc((size_t)it->n, sizeof(float));
        for (int64_t i = 0; g < n && i < it->n; i++)
            arrays[g][i] = value_of(first + g, i);
        if (g < n)
            parts[g] = (struct tdmi_tree_part){first + g, arrays[g]};
    }
    tdmi_tree_sum(parts, additions, tdmi_tree_plan(parts, n, end, it->n_groups, additions), 0,
                  it->n);
    const int n_roots = tdmi_tree_roots(first, end, it->n_groups, firsts);
    for (int i = 0; i < n_roots; i++)
        roots[i] = arrays[firsts[i] - first];
    bool is_right = true;
    for (int64_t at = it->n; at > 0;) {
        const int64_t range = it->range ? it->range : 100000, begin = at > range ? at - range : 0;
        if (it->is_uneven)
            nap(tdmi_comm_rank(comm), at);
        is_right =
            tdmi_comm_sum(comm, roots, arrays[0], begin, at - begin, NULL) == TDM_OK && is_right;
        at = begin;
    }
    is_right = tdmi_comm_finish(comm, NULL) == TDM_OK && is_right;
    is_right = is_right && memcmp(arrays[0], it->wanted, sizeof(float) * (size_t)it->n) == 0;
    for (int g = 0; g <= n; g++)
        free(arrays[g]);
    return is_right;
}

static void sum_rank(tdmi_comm *comm, void *self)
{
    struct sum_case *it = self;
    it->is_right = sum_on(comm, it) && sum_on(comm, it);
}

static void expect_sum_of(const char *transport, int world, struct sum_case whole)
{
    const int n_groups = whole.n_groups;
    const int64_t n = whole.n;
    struct sum_case cases[most_ranks];
    float *groups[most_groups];
    struct tdmi_tree_part parts[most_groups];
    struct tdmi_tree_addition additions[most_groups];
    for (int g = 0; g < n_groups; g++) {
        groups[g] = calloc((size_t)n, sizeof(float));
        for (int64_t i = 0; i < n; i++)
            groups[g][i] = value_of(g, i);
        parts[g] = (struct tdmi_tree_part){g, groups[g]};
    }
    tdmi_tree_sum(parts, additions, tdmi_tree_plan(parts, n_groups, n_groups, n_groups, additions),
                  0, n);
    whole.wanted = groups[0];
    for (int r = 0; r < world; r++)
        cases[r] = whole;
    run_ranks((struct job){transport, world, 20.0, false}, sum_rank, cases, sizeof cases[0]);
    for (int r = 0; r < world; r++)
        if (!cases[r].is_right)
            fail_msg("%s: %d groups of %lld values on %d ranks: rank %d has other bits", transport,
                     n_groups, (long long)n, world, r);
    for (int g = 0; g < n_groups; g++)
        free(groups[g]);
}

static void expect_sum(const char *transport, int world, int n_groups, int64_t n)
{
    expect_sum_of(transport, world, (struct sum_case){.n_groups = n_groups, .n = n});
}

TEST(sums_have_the_bits_of_one_process)
{
    static const int worlds[] = {1, 2, 3, 4, 5, 8};
    for (int t = 0; t < n_transports; t++)
        for (size_t w = 0; w < sizeof worlds / sizeof worlds[0]; w++)
            for (int n_groups = 1; n_groups <= most_groups; n_groups += 1 + (w > 2))
                expect_sum(transports[t], worlds[w], n_groups, 1 + 37 * n_groups);
}

TEST(long_sums_go_in_chunks)
{
    for (int t = 0; t < n_transports; t++) {
        expect_sum(transports[t], 2, 2, 300001);
        expect_sum(transports[t], 3, 7, 450000);
        expect_sum_of(transports[t], 4,
                      (struct sum_case){.n_groups = 4, .n = 700001, .range = 700001});
        expect_sum_of(transports[t], 8,
                      (struct sum_case){.n_groups = 8, .n = 270001, .range = 270001});
    }
}

/* Pairs of ranks, and pairs of pairs, halve a sum where their subtrees are pairs too. */
TEST(ranks_with_a_subtree_each_halve_sums)
{
    static const struct {
        int world, n_groups, n_levels;
    } cases[] = {{4, 4, 2}, {4, 7, 2}, {8, 8, 3}, {8, 13, 0}, {8, 15, 3},
                 {4, 6, 0}, {4, 3, 0}, {3, 3, 0}, {6, 6, 0},  {2, 2, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tdmi_sum_plan plan = {0};
        assert_int_equal(tdmi_sum_plan_make(&plan, cases[i].world, cases[i].n_groups, NULL),
                         TDM_OK);
        assert_int_equal(plan.n_levels, cases[i].n_levels);
        tdmi_sum_plan_release(&plan);
    }
}

/* A rank may send parts of a sum that another one has not begun. */
TEST(sums_follow_each_other_on_ranks_of_any_pace)
{
    for (int t = 0; t < n_transports; t++)
        for (int world = 2; world <= 5; world++)
            expect_sum_of(transports[t], world,
                          (struct sum_case){.n_groups = 7, .n = 1000001, .is_uneven = true});
}

/* ---- bytes ----------------------------------------------------------------------------------- */

enum { n_bytes = 3000 };

struct bytes_case {
    bool is_right;
};

static void move_bytes(tdmi_comm *comm, void *self)
{
    struct bytes_case *it = self;
    const int rank = tdmi_comm_rank(comm), world = tdmi_comm_world(comm);
    char mine[n_bytes], all[most_ranks * n_bytes], word[] = "spread", *block = NULL;
    size_t sizes[most_ranks], n = rank == 0 ? 5 : 0, at = 0;
    memset(mine, rank == 0 ? 'a' : 'b', sizeof mine);
    it->is_right = tdmi_comm_broadcast(comm, mine, sizeof mine, NULL) == TDM_OK;
    it->is_right = it->is_right && mine[0] == 'a' && mine[n_bytes - 1] == 'a';
    if (rank == 0)
        block = word;
    it->is_right = tdmi_comm_spread(comm, (void **)&block, &n, NULL) == TDM_OK && it->is_right &&
                   n == 5 && memcmp(block, "sprea", 5) == 0;
    if (rank > 0)
        tdmi_free(block);
    for (int r = 0; r < world; r++)
        sizes[r] = (size_t)r * 100; /* rank 0 sends nothing */
    memset(mine, '0' + rank, sizeof mine);
    it->is_right =
        tdmi_comm_gather(comm, mine, sizes, rank == 0 ? all : NULL, NULL) == TDM_OK && it->is_right;
    for (int r = 0; r < world && rank == 0; at += sizes[r++])
        for (size_t i = 0; i < sizes[r]; i++)
            it->is_right = it->is_right && all[at + i] == '0' + r;
}

/* Two messages to rank 0 and one from it, none waited for before all are begun. */
static void move_bytes_at_once(tdmi_comm *comm, void *self)
{
    struct bytes_case *it = self;
    const int rank = tdmi_comm_rank(comm), world = tdmi_comm_world(comm);
    char first[most_ranks] = {0}, second[most_ranks] = {0}, word[8] = "";
    size_t sizes[most_ranks];
    for (int r = 0; r < world; r++)
        sizes[r] = 1;
    first[0] = (char)('a' + rank); /* on rank 0 it is there already */
    second[0] = (char)('A' + rank);
    if (rank == 0)
        memcpy(word, "decided", sizeof word);
    nap(rank, 1);
    it->is_right = tdmi_comm_begin_gather(comm, first, sizes, first, NULL) == TDM_OK &&
                   tdmi_comm_begin_gather(comm, second, sizes, second, NULL) == TDM_OK &&
                   tdmi_comm_begin_broadcast(comm, word, sizeof word, NULL) == TDM_OK;
    nap(rank, 2);
    it->is_right = tdmi_comm_finish(comm, NULL) == TDM_OK && it->is_right;
    it->is_right = it->is_right && memcmp(word, "decided", sizeof word) == 0;
    for (int r = 0; r < world && rank == 0; r++)
        it->is_right = it->is_right && first[r] == 'a' + r && second[r] == 'A' + r;
}

static void move_all_bytes(tdmi_comm *comm, void *self)
{
    struct bytes_case *it = self;
    move_bytes(comm, it);
    const bool is_right = it->is_right;
    move_bytes_at_once(comm, it);
    it->is_right = it->is_right && is_right;
}

TEST(bytes_reach_all_and_come_from_all)
{
    for (int t = 0; t < n_transports; t++)
        for (int world = 1; world <= 9; world++) {
            struct bytes_case cases[most_ranks] = {0};
            run_ranks((struct job){transports[t], world, 20.0, false}, move_all_bytes, cases,
                      sizeof cases[0]);
            for (int r = 0; r < world; r++)
                if (!cases[r].is_right)
                    fail_msg("%s: rank %d of %d has other bytes", transports[t], r, world);
        }
}

/* ---- failures -------------------------------------------------------------------------------- */

struct end_case {
    tdm_status status;
    tdm_error err;
    double seconds;
};

static void end_early(tdmi_comm *comm, void *self)
{
    struct end_case *it = self;
    const int64_t began = tdmi_clock_ns();
    char bytes[8] = {0};
    if (tdmi_comm_rank(comm) == tdmi_comm_world(comm) - 1) {
        tdm_error why = {0};
        if (TDM_FAIL(&why, TDM_E_INPUT, "no such image") != TDM_OK)
            tdmi_comm_abort(comm, TDM_E_INPUT, &why);
        return;
    }
    const size_t sizes[most_ranks] = {8, 8, 8, 8};
    char all[most_ranks * 8];
    it->status = tdmi_comm_gather(comm, bytes, sizes, all, &it->err);
    for (int i = 0; it->status == TDM_OK && i < 2; i++)
        it->status = tdmi_comm_broadcast(comm, bytes, sizeof bytes, &it->err);
    if (it->status != TDM_OK)
        tdmi_comm_abort(comm, it->status, &it->err);
    it->seconds = tdmi_clock_seconds_since(began);
}

static void expect_end(const char *transport, bool has_mute, tdm_status status, const char *word)
{
    enum { world = 4 };
    struct end_case cases[world] = {0};
    run_ranks((struct job){transport, world, has_mute ? 1.0 : 20.0, has_mute}, end_early, cases,
              sizeof cases[0]);
    for (int r = 0; r < world - 1; r++) {
        assert_int_equal(cases[r].status, status);
        assert_true(cases[r].seconds < 2.5);
    }
    assert_says(&cases[0].err, word);
}

TEST(a_rank_that_fails_ends_all_with_its_sentence)
{
    for (int t = 0; t < n_transports; t++)
        expect_end(transports[t], false, TDM_E_INPUT, "no such image");
}

/* The sum is done everywhere when rank 1 fails, and rank 0 looks at it later. */
static void fail_after_sum(tdmi_comm *comm, void *self)
{
    struct end_case *it = self;
    const struct timespec later = {.tv_nsec = 400000000};
    float value = 1.0f, *roots[1] = {&value};
    it->status = tdmi_comm_divide(comm, 2, &it->err);
    if (it->status == TDM_OK)
        it->status = tdmi_comm_sum(comm, roots, &value, 0, 1, &it->err);
    if (tdmi_comm_rank(comm) == 0)
        nanosleep(&later, NULL);
    if (it->status == TDM_OK)
        it->status = tdmi_comm_finish(comm, &it->err);
    it->seconds = (double)value;
    if (it->status == TDM_OK && tdmi_comm_rank(comm) == 1 &&
        TDM_FAIL(&it->err, TDM_E_INPUT, "no such image") != TDM_OK)
        tdmi_comm_abort(comm, TDM_E_INPUT, &it->err);
    else if (it->status == TDM_OK && tdmi_comm_broadcast(comm, &value, 4, &it->err) == TDM_OK)
        it->status = TDM_E_BUG; /* it has to fail */
}

TEST(what_was_done_before_a_rank_failed_counts)
{
    for (int t = 0; t < n_transports; t++) {
        struct end_case cases[2] = {0};
        run_ranks((struct job){transports[t], 2, 20.0, false}, fail_after_sum, cases,
                  sizeof cases[0]);
        assert_int_equal(cases[0].status, TDM_OK);
        assert_true(cases[0].seconds > 1.5); /* the sum */
        assert_says(&cases[0].err, "no such image");
    }
}

TEST(a_silent_rank_is_named_after_the_deadline)
{
    for (int t = 0; t < n_transports; t++)
        expect_end(transports[t], true, TDM_E_PEER, "rank 3");
}

/* Rank 1 is late, and lives; rank 2 is silent. */
static void gather_late(tdmi_comm *comm, void *self)
{
    struct end_case *it = self;
    const int64_t began = tdmi_clock_ns();
    const struct timespec late = {.tv_sec = 4};
    const size_t sizes[3] = {8, 8, 8};
    char bytes[8] = {0}, all[3 * 8];
    if (tdmi_comm_rank(comm) == 1)
        nanosleep(&late, NULL);
    it->status = tdmi_comm_gather(comm, bytes, sizes, all, &it->err);
    it->seconds = tdmi_clock_seconds_since(began);
}

TEST(a_silent_rank_is_named_while_another_is_late)
{
    for (int t = 0; t < n_transports; t++) {
        struct end_case cases[3] = {0};
        run_ranks((struct job){transports[t], 3, 1.0, true}, gather_late, cases, sizeof cases[0]);
        assert_int_equal(cases[0].status, TDM_E_PEER);
        assert_says(&cases[0].err, "heard nothing from rank 2");
        assert_true(cases[0].seconds < 2.5);
    }
}

/* A caller that notes where it is and then neither computes nor waits; its communicator lives. */
static void hang(tdmi_comm *comm, void *self)
{
    struct end_case *it = self;
    const int64_t began = tdmi_clock_ns();
    const struct timespec long_enough = {.tv_sec = 3};
    char bytes[3] = {0};
    if (tdmi_comm_rank(comm) == 1) {
        tdmi_comm_note(comm, "training epoch 3", 17);
        nanosleep(&long_enough, NULL);
    }
    it->status =
        tdmi_comm_complete(comm, bytes, (const size_t[]){0, 1, 2, 3}, &it->err); /* needs all */
    it->seconds = tdmi_clock_seconds_since(began);
}

TEST(a_rank_that_comes_no_further_ends_the_job)
{
    for (int t = 0; t < n_transports; t++) {
        struct end_case cases[3] = {0};
        run_ranks((struct job){transports[t], 3, 1.0, false}, hang, cases, sizeof cases[0]);
        for (int r = 0; r < 3; r++) {
            assert_int_equal(cases[r].status, TDM_E_PEER);
            assert_says(&cases[r].err,
                        "rank 1 has come no further for 1.5 seconds: training epoch 3, step 17");
        }
        assert_true(cases[0].seconds < 2.9);
    }
}

/* In a process of its own, whose caller never comes back. */
static void be_hung(int port)
{
    const struct tdmi_launch launch = {.transport = "tcp",
                                       .rank = 1,
                                       .world = 2,
                                       .host = "127.0.0.1",
                                       .port = port,
                                       .deadline = 1.0,
                                       .patience = 1.5,
                                       .ends_process = true};
    tdmi_comm *comm = NULL;
    if (tdmi_comm_open(&launch, &comm, NULL) != TDM_OK)
        _exit(1);
    tdmi_comm_note(comm, "training epoch 3", 17);
    nanosleep(&(struct timespec){.tv_sec = 60}, NULL);
    _exit(0);
}

TEST(a_rank_that_hangs_for_ever_ends_its_process)
{
    const int port = free_port();
    const struct tdmi_launch launch = {.transport = "tcp",
                                       .world = 2,
                                       .host = "127.0.0.1",
                                       .port = port,
                                       .deadline = 1.0,
                                       .patience = 60.0};
    const int64_t began = tdmi_clock_ns();
    tdmi_comm *comm = NULL;
    tdm_error err = {0};
    char bytes[2] = {0};
    int status = 0;
    const pid_t child = fork();
    if (child == 0)
        be_hung(port);
    assert_true(child > 0);
    assert_int_equal(tdmi_comm_open(&launch, &comm, &err), TDM_OK);
    assert_int_equal(tdmi_comm_complete(comm, bytes, (const size_t[]){0, 1, 2}, &err), TDM_E_PEER);
    assert_says(&err, "rank 1 has come no further for 1.5 seconds: training epoch 3, step 17");
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 5);
    assert_true(tdmi_clock_seconds_since(began) < 10.0);
    tdmi_comm_close(comm);
}

/* ---- heartbeats ------------------------------------------------------------------------------ */

struct beat_case {
    struct tdmi_heartbeat of[2];
    bool is_asked_before, is_asked, have_hosts;
};

/* Rank 1 is asked to stop and sends nothing but heartbeats. */
static void ask_to_stop(tdmi_comm *comm, void *self)
{
    struct beat_case *it = self;
    const struct timespec moment = {.tv_nsec = 600000000};
    char bytes[8] = {0};
    const tdm_status met = tdmi_comm_broadcast(comm, bytes, sizeof bytes, NULL);
    it->is_asked_before = tdmi_comm_is_asked_to_stop(comm);
    if (met == TDM_OK && tdmi_comm_rank(comm) == 1) {
        tdmi_comm_note(comm, "training epoch 3", 17);
        tdm_stop_request();
    }
    nanosleep(&moment, NULL);
    it->is_asked = tdmi_comm_is_asked_to_stop(comm);
    nanosleep(&moment, NULL);
    it->have_hosts = true;
    for (int r = 0; r < 2; r++) {
        tdmi_comm_heartbeat(comm, r, &it->of[r]);
        it->have_hosts = it->have_hosts && it->of[r].host[0]; /* lent by the communicator */
    }
    tdm_stop_clear();
}

TEST(rank_0_hears_at_once_that_another_was_asked_to_stop)
{
    for (int t = 0; t < n_transports; t++) {
        struct beat_case cases[2] = {0};
        run_ranks((struct job){transports[t], 2, 4.0, false}, ask_to_stop, cases, sizeof cases[0]);
        assert_false(cases[0].is_asked_before);
        assert_true(cases[0].is_asked); /* the next heartbeat of all would come after a second */
        assert_string_equal(cases[0].of[1].at, "asked to stop, training epoch 3, step 17");
        assert_true(cases[0].of[1].silent_seconds < 2.0);
        assert_true(cases[0].have_hosts);
    }
}

struct open_case {
    struct tdmi_launch launch;
    const struct tdmi_transport_table *table;
    tdmi_transport *transport;
    tdm_status status;
};

static void *open_transport(void *self)
{
    struct open_case *it = self;
    it->status = tdmi_transport_find("tcp", &it->table, NULL);
    if (it->status == TDM_OK)
        it->status = it->table->open(&it->launch, &it->transport, NULL);
    return NULL;
}

/* ---- ranks that are needed, although no message waits for them ------------------------------- */

struct need {
    tdm_status status;
    tdm_error err;
};

/* Rank 0 waits for all; the others leave at once. */
static void need_all(tdmi_comm *comm, void *self)
{
    struct need *it = self;
    const struct timespec moment = {.tv_nsec = 10000000};
    const int64_t began = tdmi_clock_ns();
    while (tdmi_comm_rank(comm) == 0 && it->status == TDM_OK &&
           tdmi_clock_seconds_since(began) < 10.0) {
        nanosleep(&moment, NULL);
        it->status = tdmi_comm_check(comm, &it->err);
    }
}

TEST(a_rank_that_is_gone_fails_who_needs_all)
{
    struct need needs[2] = {0};
    run_ranks((struct job){"tcp", 2, 20.0, false}, need_all, needs, sizeof needs[0]);
    assert_int_equal(needs[0].status, TDM_E_PEER);
    assert_says(&needs[0].err, "rank 1 on");
    assert_says(&needs[0].err, "was lost: it closed its connection");
}

TEST(a_silent_rank_fails_who_needs_all)
{
    for (int i = 0; i < 2; i++) {
        struct need needs[2] = {0};
        run_ranks((struct job){i == 0 ? "tcp" : "thread", 2, 1.0, true}, need_all, needs,
                  sizeof needs[0]);
        assert_int_equal(needs[0].status, TDM_E_PEER);
        assert_says(&needs[0].err, "heard nothing from rank 1 on");
    }
}

/* The answer of rank 1, more than a connection holds, waits unread for longer than the deadline. */
static void ask_once(tdmi_comm *comm, void *self)
{
    struct need *it = self;
    const struct timespec pause = {.tv_sec = 3};
    const size_t sizes[2] = {1, 32 << 20};
    TDMI_AT_END(tdmi_free_at) char *all = tdmi_alloc(1, 1 + sizes[1]);
    assert_non_null(all);
    if (tdmi_comm_rank(comm) == 0) {
        it->status = tdmi_comm_check(comm, &it->err);
        nanosleep(&pause, NULL);
    }
    if (it->status == TDM_OK)
        it->status = tdmi_comm_gather(comm, all, sizes, all, &it->err);
}

TEST(a_rank_that_was_needed_a_while_ago_may_wait)
{
    struct need needs[2] = {0};
    run_ranks((struct job){"tcp", 2, 1.0, false}, ask_once, needs, sizeof needs[0]);
    for (int r = 0; r < 2; r++)
        if (needs[r].status != TDM_OK)
            fail_msg("rank %d: %s", r, tdm_error_sentence(&needs[r].err, 0));
}

/* Rank 1 reads nothing while rank 0 sends more heartbeats than the connection takes. */
TEST(a_heartbeat_that_is_half_sent_is_finished)
{
    enum { most_beats = 300000 };
    const int port = free_port();
    struct open_case ranks[2] = {0};
    pthread_t threads[2];
    for (int r = 0; r < 2; r++) {
        ranks[r].launch = (struct tdmi_launch){
            .rank = r, .world = 2, .host = "127.0.0.1", .port = port, .deadline = 20.0};
        assert_int_equal(pthread_create(&threads[r], NULL, open_transport, &ranks[r]), 0);
    }
    for (int r = 0; r < 2; r++)
        pthread_join(threads[r], NULL);
    assert_int_equal(ranks[0].status | ranks[1].status, TDM_OK);
    const struct tdmi_transport_table *table = ranks[0].table;
    const char words[TDMI_BEAT_BYTES] = "training epoch 3, step 17";
    for (int i = 0; i < most_beats; i++)
        table->beat(ranks[0].transport, words);
    char sent[5] = "four", received[5] = "";
    struct tdmi_message to = {.peer = 1, .bytes = sent, .n = sizeof sent};
    struct tdmi_message from = {.peer = 0, .bytes = received, .n = sizeof received};
    tdm_error err = {0};
    assert_int_equal(table->send(ranks[0].transport, &to, &err), TDM_OK);
    assert_int_equal(table->receive(ranks[1].transport, &from, &err), TDM_OK);
    const int64_t began = tdmi_clock_ns();
    while (!from.is_done && tdmi_clock_seconds_since(began) < 10.0)
        for (int r = 0; r < 2; r++)
            assert_int_equal(table->progress(ranks[r].transport, false, &err), TDM_OK);
    assert_string_equal(received, "four");
    assert_string_equal(table->said(ranks[1].transport, 0), words);
    for (int r = 0; r < 2; r++)
        table->close(ranks[r].transport);
}

TEST(an_unknown_transport_lists_the_known_ones)
{
    const struct tdmi_transport_table *table = NULL;
    tdm_error err = {0};
    assert_int_equal(tdmi_transport_find("pigeon", &table, &err), TDM_E_USAGE);
    assert_says(&err, "'pigeon'");
    assert_null(table);
}

TEST_MAIN(NULL, NULL)
