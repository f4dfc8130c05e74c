/* Placement of threads: a pure function, from CPUs that are written down here or that hwloc makes.
 */
#include "tandem_features.h"
#include "unit.h"

#include "base/each_allocation.h"
#include "base/system/env.h"
#include "base/system/placement.h"

#include <stdlib.h>

enum { most = 64 };

/* Packages of cores of hardware threads, numbered the way servers do: second threads last. */
struct machine {
    struct tdmi_cpu_place cpus[most];
    int n;
};

static struct machine machine(int packages, int cores, int threads)
{
    struct machine made = {.n = 0};
    for (int core = 0; core < packages * cores; core++)
        for (int thread = 0; thread < threads; thread++)
            made.cpus[made.n++] =
                (struct tdmi_cpu_place){thread * packages * cores + core, core, core / cores};
    return made;
}

static struct tdmi_placement place(const struct machine *machine, double quota, int rank, int size,
                                   int threads)
{
    const struct tdmi_placement_facts facts = {
        machine->cpus, machine->n, quota, {rank, size}, threads};
    struct tdmi_placement placement;
    tdm_error err = {0};
    assert_ok(tdmi_placement_make(&facts, &placement, &err), &err);
    return placement;
}

/* threads; loader threads; text; then the CPUs, ended by -1. */
static void check(struct tdmi_placement placement, int threads, int loader_threads,
                  const char *text, bool is_bound, const int *cpus)
{
    char described[160];
    int n = 0;
    tdmi_placement_describe(&placement, described, sizeof described);
    assert_string_equal(described, text);
    assert_int_equal(placement.threads, threads);
    assert_int_equal(placement.loader_threads, loader_threads);
    assert_int_equal(placement.is_bound, is_bound);
    for (; cpus[n] >= 0; n++) {
        assert_true(n < placement.n_cpus);
        assert_int_equal(placement.cpus[n], cpus[n]);
    }
    assert_int_equal(placement.n_cpus, n);
    tdmi_placement_release(&placement);
    assert_null(placement.cpus);
}

#define CPUS(...) ((const int[]){__VA_ARGS__, -1})
static const int none[] = {-1};

TEST(one_process_has_a_thread_per_core_and_is_not_bound)
{
    const struct machine server = machine(2, 8, 2), one = machine(1, 1, 1);
    check(place(&server, 0, 0, 0, 0), 16, 32, "16, one per core", false, none);
    check(place(&server, 0, 0, 0, 20), 20, 20, "20 (--threads)", false, none);
    check(place(&one, 0, 0, 0, 0), 1, 1, "1, one per core", false, none);
}

TEST(a_quota_is_rounded_up)
{
    const struct machine server = machine(2, 8, 1);
    check(place(&server, 3.5, 0, 0, 0), 4, 4, "4 (CPU quota 3.5 of 16 CPUs)", false, none);
    check(place(&server, 0.2, 0, 0, 0), 1, 1, "1 (CPU quota 0.2 of 16 CPUs)", false, none);
    check(place(&server, 16, 0, 0, 0), 16, 16, "16, one per core", false, none);
    /* More than the cores, less than their hardware threads: for the loader. */
    const struct machine wide = machine(2, 8, 2);
    check(place(&wide, 20, 0, 0, 0), 16, 20, "16, one per core", false, none);
}

TEST(an_only_process_that_says_so_is_bound)
{
    const struct machine server = machine(2, 2, 2);
    check(place(&server, 0, 0, 1, 0), 4, 8, "4, one per core", true, CPUS(0, 1, 2, 3, 4, 5, 6, 7));
    /* Hardware threads of a core come second. */
    check(place(&server, 0, 0, 1, 6), 6, 6, "6 (--threads)", true, CPUS(0, 1, 2, 3, 4, 5, 6, 7));
    check(place(&server, 0, 0, 1, 9), 9, 9, "9 (--threads)", false, CPUS(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(two_processes_have_a_node_each)
{
    const struct machine server = machine(2, 8, 2);
    check(place(&server, 0, 0, 2, 0), 8, 16,
          "8, one per core of node 0 (process 1 of 2 on this machine)", true,
          CPUS(0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23));
    check(place(&server, 0, 1, 2, 0), 8, 16,
          "8, one per core of node 1 (process 2 of 2 on this machine)", true,
          CPUS(8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31));
    check(place(&server, 0, 1, 2, 3), 3, 3, "3 (--threads, process 2 of 2 on this machine)", true,
          CPUS(8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31));
}

TEST(a_mask_with_holes_is_divided_as_it_is)
{
    /* CPUs 0, 16; 2; 19; 9, 25; 26; 31 of two packages of eight cores. */
    const struct machine holes = {{{0, 0, 0},
                                   {16, 0, 0},
                                   {2, 1, 0},
                                   {19, 2, 0},
                                   {9, 3, 1},
                                   {25, 3, 1},
                                   {26, 4, 1},
                                   {31, 5, 1}},
                                  8};
    check(place(&holes, 0, 0, 0, 0), 6, 8, "6, one per core", false, none);
    check(place(&holes, 0, 0, 2, 0), 3, 4,
          "3, one per core of node 0 (process 1 of 2 on this machine)", true, CPUS(0, 2, 19, 16));
    check(place(&holes, 0, 1, 2, 0), 3, 4,
          "3, one per core of node 1 (process 2 of 2 on this machine)", true, CPUS(9, 26, 31, 25));
}

TEST(a_quota_is_divided_between_processes)
{
    const struct machine server = machine(2, 8, 1);
    check(place(&server, 3.5, 0, 2, 0), 2, 2,
          "2 (CPU quota 3.5 of 16 CPUs, process 1 of 2 on this machine)", false,
          CPUS(0, 1, 2, 3, 4, 5, 6, 7));
    check(place(&server, 3.5, 2, 3, 0), 2, 2,
          "2 (CPU quota 3.5 of 16 CPUs, process 3 of 3 on this machine)", false,
          CPUS(10, 11, 12, 13, 14, 15));
    check(place(&server, 1.5, 0, 4, 0), 1, 1,
          "1 (CPU quota 1.5 of 16 CPUs, process 1 of 4 on this machine)", false, CPUS(0, 1, 2, 3));
}

TEST(processes_beyond_the_cores_have_hardware_threads_and_beyond_those_nothing_of_their_own)
{
    const struct machine two = machine(1, 2, 2), one = machine(1, 1, 1);
    check(place(&two, 0, 1, 3, 0), 1, 1, "1, one per CPU (process 2 of 3 on this machine)", true,
          CPUS(2));
    check(place(&two, 0, 2, 3, 0), 2, 2, "2, one per CPU (process 3 of 3 on this machine)", true,
          CPUS(1, 3));
    check(place(&two, 0, 4, 5, 0), 1, 1, "1 (5 processes share 4 CPUs)", false, none);
    check(place(&one, 0, 1, 2, 0), 1, 1, "1 (2 processes share 1 CPU)", false, none);
}

/* Parts of any number of processes are disjoint, cover all CPUs and differ by one core at most. */
static void check_parts(const struct machine *machine, int size)
{
    int n_seen = 0, least = most, largest = 0;
    bool seen[most] = {false};
    for (int rank = 0; rank < size; rank++) {
        struct tdmi_placement placement = place(machine, 0, rank, size, 0);
        assert_true(placement.threads >= 1);
        for (int i = 0; i < placement.n_cpus; i++, n_seen++) {
            assert_false(seen[placement.cpus[i]]);
            seen[placement.cpus[i]] = true;
        }
        least = placement.threads < least ? placement.threads : least;
        largest = placement.threads > largest ? placement.threads : largest;
        tdmi_placement_release(&placement);
    }
    assert_true(largest - least <= 1);
    assert_int_equal(n_seen, size <= machine->n ? machine->n : 0);
}

TEST(parts_are_disjoint_and_equal)
{
    const struct machine server = machine(2, 8, 2), plain = machine(1, 7, 1);
    for (int size = 1; size <= 33; size++) {
        check_parts(&server, size);
        check_parts(&plain, size);
    }
}

TEST(memory_is_divided_equally)
{
    assert_int_equal(tdmi_placement_share(&(struct tdmi_placement){.local = {0, 0}}, 100), 100);
    assert_int_equal(tdmi_placement_share(&(struct tdmi_placement){.local = {1, 3}}, 100), 33);
}

static tdm_status scene(tdm_error *err)
{
    const struct machine server = machine(1, 2, 1);
    const struct tdmi_placement_facts facts = {server.cpus, server.n, 0, {0, 2}, 0};
    struct tdmi_placement placement;
    tdm_status status = tdmi_placement_make(&facts, &placement, err);
    tdmi_placement_release(&placement);
    return status;
}

TEST(every_failed_allocation_is_reported)
{
    assert_int_equal(fail_each_allocation(scene), 1);
}

/* ---- this process ---------------------------------------------------------------------------- */

static tdm_status here(const char *rank, const char *size, int threads,
                       struct tdmi_placement *placement, tdm_error *err)
{
    rank ? setenv("TANDEM_LOCAL_RANK", rank, 1) : unsetenv("TANDEM_LOCAL_RANK");
    size ? setenv("TANDEM_LOCAL_SIZE", size, 1) : unsetenv("TANDEM_LOCAL_SIZE");
    return tdmi_placement_here(threads, placement, err);
}

#if TDM_HAVE_HWLOC

TEST(a_machine_that_hwloc_makes_is_cut_along_its_packages)
{
    struct tdmi_placement placement;
    tdm_error err = {0};
    setenv("HWLOC_SYNTHETIC", "package:2 core:8 pu:2", 1);
    assert_ok(here("1", "2", 0, &placement, &err), &err);
    unsetenv("HWLOC_SYNTHETIC");
    assert_int_equal(placement.n_cpus, 16);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(placement.cpus[i], 16 + 2 * i);
        assert_int_equal(placement.cpus[8 + i], 17 + 2 * i);
    }
    if (placement.is_bound) /* no quota here */
        assert_int_equal(placement.threads, 8);
    tdmi_placement_release(&placement);
}

#endif

TEST(this_process_has_its_affinity_mask)
{
    static int mask[TDMI_CPUS_MAX];
    const int n_mask = tdmi_affinity_mask(mask, TDMI_CPUS_MAX);
    struct tdmi_placement placement;
    tdm_error err = {0};
    assert_ok(here("0", "1", 0, &placement, &err), &err);
    assert_int_equal(placement.n_cpus, n_mask);
    for (int i = 0; i < n_mask; i++) {
        bool is_there = false;
        for (int k = 0; k < n_mask; k++)
            is_there = is_there || placement.cpus[i] == mask[k];
        assert_true(is_there);
    }
    tdmi_placement_release(&placement);
    assert_ok(here(NULL, "", 3, &placement, &err), &err);
    check(placement, 3, 3, "3 (--threads)", false, none);
}

/* Variables of other launchers: name, value, …; NULL. */
static struct tdmi_local local_by(const char *const *variables)
{
    struct tdmi_local local;
    tdm_error err = {0};
    for (const char *const *it = variables; *it; it += 2)
        setenv(it[0], it[1], 1);
    assert_ok(tdmi_env_local(&local, &err), &err);
    for (const char *const *it = variables; *it; it += 2)
        unsetenv(it[0]);
    return local;
}
#define CHECK_LOCAL(wanted_rank, wanted_size, ...)                                          \
    do {                                                                                    \
        const struct tdmi_local local = local_by((const char *const[]){__VA_ARGS__, NULL}); \
        assert_int_equal(local.rank, wanted_rank);                                          \
        assert_int_equal(local.size, wanted_size);                                          \
    } while (0)

TEST(other_launchers_say_which_process_this_is)
{
    CHECK_LOCAL(1, 2, "OMPI_COMM_WORLD_LOCAL_RANK", "1", "OMPI_COMM_WORLD_LOCAL_SIZE", "2");
    CHECK_LOCAL(3, 4, "MPI_LOCALRANKID", "3", "MPI_LOCALNRANKS", "4");
    CHECK_LOCAL(1, 2, "LOCAL_RANK", "1", "LOCAL_WORLD_SIZE", "2", "SLURM_LOCALID", "0",
                "SLURM_STEP_TASKS_PER_NODE", "4");
    CHECK_LOCAL(0, 3, "TANDEM_LOCAL_RANK", "0", "TANDEM_LOCAL_SIZE", "3", "LOCAL_RANK", "1",
                "LOCAL_WORLD_SIZE", "2");
    CHECK_LOCAL(0, 0, "LOCAL_RANK", "1");
    /* One process of a launcher does not own the machine. */
    CHECK_LOCAL(0, 0, "MPI_LOCALRANKID", "0", "MPI_LOCALNRANKS", "1");
    CHECK_LOCAL(0, 1, "TANDEM_LOCAL_RANK", "0", "TANDEM_LOCAL_SIZE", "1");
}

TEST(tasks_of_a_node_are_read_from_the_list_of_slurm)
{
    CHECK_LOCAL(1, 2, "SLURM_LOCALID", "1", "SLURM_STEP_TASKS_PER_NODE", "2(x4)");
    CHECK_LOCAL(1, 2, "SLURM_LOCALID", "1", "SLURM_STEP_TASKS_PER_NODE", "2,2(x2)");
    CHECK_LOCAL(0, 3, "SLURM_LOCALID", "0", "SLURM_STEP_TASKS_PER_NODE", "4,3(x2),2",
                "SLURM_NODEID", "2");
    CHECK_LOCAL(0, 2, "SLURM_LOCALID", "0", "SLURM_STEP_TASKS_PER_NODE", "4,3(x2),2",
                "SLURM_NODEID", "3");
    CHECK_LOCAL(0, 0, "SLURM_LOCALID", "0", "SLURM_STEP_TASKS_PER_NODE", "4,3");
    CHECK_LOCAL(0, 0, "SLURM_LOCALID", "0", "SLURM_STEP_TASKS_PER_NODE", "4", "SLURM_NODEID", "1");
    CHECK_LOCAL(0, 0, "SLURM_LOCALID", "2", "SLURM_STEP_TASKS_PER_NODE", "2(x4)");
    CHECK_LOCAL(0, 0, "SLURM_LOCALID", "0", "SLURM_STEP_TASKS_PER_NODE", "1(x4)");
    static const char *const wrong[] = {"many", "2(x", "2(x)", "2(x0)", "0", "2(x3", "2;3", "-1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK_LOCAL(0, 0, "SLURM_LOCALID", "0", "SLURM_STEP_TASKS_PER_NODE", wrong[i]);
}

TEST(a_wrong_variable_of_another_launcher_is_named)
{
    struct tdmi_local local;
    tdm_error err = {0};
    setenv("LOCAL_RANK", "2", 1);
    setenv("LOCAL_WORLD_SIZE", "2", 1);
    assert_int_equal(tdmi_env_local(&local, &err), TDM_E_USAGE);
    assert_non_null(
        strstr(tdm_error_sentence(&err, 0), "LOCAL_RANK is 2 and LOCAL_WORLD_SIZE is 2"));
    assert_int_equal(local.size, 0);
    unsetenv("LOCAL_RANK");
    unsetenv("LOCAL_WORLD_SIZE");
}

TEST(a_wrong_variable_is_one_sentence)
{
    static const struct {
        const char *rank, *size;
    } wrong[] = {{"0", NULL}, {NULL, "2"}, {"2", "2"},
                 {"-1", "2"}, {"0", "0"},  {"x", "2"},
                 {"0", "2x"}, {" 0", "2"}, {"0", "99999999999999999999"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct tdmi_placement placement;
        tdm_error err = {0};
        assert_int_equal(here(wrong[i].rank, wrong[i].size, 0, &placement, &err), TDM_E_USAGE);
        assert_int_equal(err.n_frames, 1);
        assert_non_null(strstr(tdm_error_sentence(&err, 0), "TANDEM_LOCAL_RANK is "));
    }
    here(NULL, NULL, 1, &(struct tdmi_placement){0}, NULL);
}

TEST_MAIN(NULL, NULL)
