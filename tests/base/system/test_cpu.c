/* Facts of the machine, from made-up machines and checked for sense on this one; the clock, the
 * environment and the stop flag beside it. */
#include "base/system/affinity.h"
#include "base/system/cgroup.h"
#include "base/clock.h"
#include "base/system/cpu.h"
#include "base/system/env.h"
#include "tandem/event.h"

#include <pthread.h>
#include <signal.h>
#include "base/folder.h"
#include "unit.h"

/* ---- containers --------------------------------------------------------------------------- */

struct made_file {
    const char *path, *text;
};

TEST(cgroup_limits_are_the_tightest_on_the_way_up)
{
    static const struct {
        struct made_file files[8];
        struct tdmi_cgroup limits;
    } cases[] = {
        /* No files at all. */
        {{{NULL, NULL}}, {0.0, 0, -1, 0}},
        /* Version 2, in a container that sees itself as the root. */
        {{{"proc/self/cgroup", "0::/\n"},
          {"sys/fs/cgroup/cpu.max", "150000 100000\n"},
          {"sys/fs/cgroup/memory.max", "1073741824\n"}},
         {1.5, 1073741824, -1, 0}},
        /* Version 2, nested: the parent is tighter in memory, the child in CPUs. */
        {{{"proc/self/cgroup", "0::/job/step\n"},
          {"sys/fs/cgroup/job/step/cpu.max", "200000 100000\n"},
          {"sys/fs/cgroup/job/step/memory.max", "max\n"},
          {"sys/fs/cgroup/job/cpu.max", "400000 100000\n"},
          {"sys/fs/cgroup/job/memory.max", "5000000\n"}},
         {2.0, 5000000, -1, 0}},
        /* Version 2 without limits. */
        {{{"proc/self/cgroup", "0::/\n"},
          {"sys/fs/cgroup/cpu.max", "max 100000\n"},
          {"sys/fs/cgroup/memory.max", "max\n"}},
         {0.0, 0, -1, 0}},
        /* Version 1, several controllers in one hierarchy, paths that are not mounted. */
        {{{"proc/self/cgroup",
           "5:memory:/docker/abc\n4:cpuset:/x\n3:cpu,cpuacct:/docker/abc\n1:name=systemd:/\n"},
          {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n"},
          {"sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"},
          {"sys/fs/cgroup/memory/memory.limit_in_bytes", "2000000\n"}},
         {0.5, 2000000, -1, 0}},
        /* Version 1 writes "none" as -1 and as a number near 2^63. */
        {{{"proc/self/cgroup", "5:memory:/\n3:cpu:/\n"},
          {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"},
          {"sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"},
          {"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"}},
         {0.0, 0, -1, 0}},
        /* Swap in version 2: none at all is a limit, and the tightest holds. */
        {{{"proc/self/cgroup", "0::/job/step\n"},
          {"sys/fs/cgroup/job/step/memory.max", "5000000\n"},
          {"sys/fs/cgroup/job/step/memory.swap.max", "max\n"},
          {"sys/fs/cgroup/job/memory.swap.max", "0\n"},
          {"sys/fs/cgroup/memory.swap.max", "100\n"}},
         {0.0, 5000000, 0, 0}},
        /* In version 1 it is counted with the memory. */
        {{{"proc/self/cgroup", "5:memory:/docker\n"},
          {"sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "2000000\n"},
          {"sys/fs/cgroup/memory/docker/memory.memsw.limit_in_bytes", "3000000\n"},
          {"sys/fs/cgroup/memory/memory.memsw.limit_in_bytes", "9223372036854771712\n"}},
         {0.0, 2000000, -1, 3000000}},
        /* Damaged files are no limits. */
        {{{"proc/self/cgroup", "\n:\n0:\n0::/\nrubbish"},
          {"sys/fs/cgroup/cpu.max", "100000\n"},
          {"sys/fs/cgroup/memory.swap.max", "-1\n"},
          {"sys/fs/cgroup/memory.max", "lots\n"}},
         {0.0, 0, -1, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct folder root = folder_new();
        for (const struct made_file *file = cases[i].files; file->path; file++)
            folder_put(&root, file->path, file->text);
        struct tdmi_cgroup limits = tdmi_cgroup_limits(root.path);
        const struct tdmi_cgroup *wanted = &cases[i].limits;
        assert_true(limits.cpus == wanted->cpus);
        assert_true(limits.memory_bytes == wanted->memory_bytes);
        assert_true(limits.swap_bytes == wanted->swap_bytes);
        assert_true(limits.both_bytes == wanted->both_bytes);
        folder_remove(&root);
    }
}

/* ---- machines ----------------------------------------------------------------------------- */

/* Two packages of two cores of two threads, numbered the way servers do: second threads last. */
static struct folder server(void)
{
    struct folder root = folder_new();
    char path[200], text[40];
    for (int cpu = 0; cpu < 8; cpu++) {
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/topology/physical_package_id",
                 cpu);
        snprintf(text, sizeof text, "%d\n", cpu / 2 % 2);
        folder_put(&root, path, text);
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/topology/core_id", cpu);
        snprintf(text, sizeof text, "%d\n", cpu % 2 * 8);
        folder_put(&root, path, text);
    }
    folder_put(&root, "sys/devices/system/cpu/online", "0-3,4-7\n");
    folder_put(&root, "sys/devices/system/node/online", "0-1\n");
    folder_put(&root, "proc/cpuinfo",
               "processor\t: 0\nmodel\t\t: 17\nmodel name\t: A Processor 9 @ 2.4GHz\nflags : fpu\n"
               "processor\t: 1\nmodel name\t: Another\n");
    folder_put(&root, "proc/meminfo",
               "MemTotal:       16384 kB\nMemFree:  99 kB\nMemAvailable:    1024 kB\n");
    static const struct {
        const char *level, *type, *size;
    } caches[] = {{"1", "Data", "48K"},
                  {"1", "Instruction", "32K"},
                  {"2", "Unified", "2048K"},
                  {"3", "Unified", "36M"}};
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu0/cache/index%d/level", i);
        folder_put(&root, path, caches[i].level);
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu0/cache/index%d/type", i);
        folder_put(&root, path, caches[i].type);
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu0/cache/index%d/size", i);
        folder_put(&root, path, caches[i].size);
    }
    return root;
}

TEST(a_server_is_described_from_its_files)
{
    struct folder root = server();
    struct tdmi_cpu cpu;
    tdmi_cpu_describe_files(root.path, &cpu);
    assert_string_equal(cpu.model, "A Processor 9 @ 2.4GHz");
    assert_int_equal(cpu.packages, 2);
    assert_int_equal(cpu.cores, 4);
    assert_int_equal(cpu.threads, 8);
    assert_int_equal(cpu.numa_nodes, 2);
    assert_true(cpu.l1d_bytes == 48 << 10 && cpu.l2_bytes == 2 << 20 && cpu.l3_bytes == 36 << 20);
    assert_true(cpu.memory_bytes == 16384 * 1024 && cpu.memory_available_bytes == 1024 * 1024);
    folder_remove(&root);
}

static void check_places(const char *root, const int *cpus, int n,
                         const struct tdmi_cpu_place *expected)
{
    struct tdmi_cpu_place places[8];
    assert_int_equal(tdmi_sys_places(root, cpus, n, places), n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(places[i].cpu, expected[i].cpu);
        assert_int_equal(places[i].core, expected[i].core);
        assert_int_equal(places[i].node, expected[i].node);
    }
}

TEST(threads_of_a_core_and_cores_of_a_node_stand_side_by_side)
{
    struct folder root = server();
    static const int all[] = {7, 6, 5, 4, 3, 2, 1, 0}, some[] = {6, 5, 2, 1}, unknown[] = {9, 1};
    check_places(root.path, all, 8,
                 (struct tdmi_cpu_place[]){{0, 0, 0},
                                           {4, 0, 0},
                                           {1, 1, 0},
                                           {5, 1, 0},
                                           {2, 2, 1},
                                           {6, 2, 1},
                                           {3, 3, 1},
                                           {7, 3, 1}});
    check_places(root.path, some, 4,
                 (struct tdmi_cpu_place[]){{1, 0, 0}, {5, 0, 0}, {2, 1, 1}, {6, 1, 1}});
    check_places(root.path, unknown, 2, (struct tdmi_cpu_place[]){{9, 0, 0}, {1, 1, 0}});
    check_places(root.path, unknown, 0, NULL);
    /* Nodes that /sys names: the second core of each package is one. */
    folder_put(&root, "sys/devices/system/node/online", "0-3\n");
    folder_put(&root, "sys/devices/system/node/node0/cpulist", "0,4\n");
    folder_put(&root, "sys/devices/system/node/node1/cpulist", "1,5\n");
    folder_put(&root, "sys/devices/system/node/node2/cpulist", "3,7\n");
    folder_put(&root, "sys/devices/system/node/node3/cpulist", "2,6\n");
    check_places(root.path, all, 8,
                 (struct tdmi_cpu_place[]){{0, 0, 0},
                                           {4, 0, 0},
                                           {1, 1, 1},
                                           {5, 1, 1},
                                           {3, 2, 2},
                                           {7, 2, 2},
                                           {2, 3, 3},
                                           {6, 3, 3}});
    folder_remove(&root);
}

TEST(an_unknown_machine_is_all_zeros)
{
    struct folder root = folder_new();
    struct tdmi_cpu cpu;
    struct tdmi_topology topology = {.cores = 3};
    memset(&cpu, 0xa5, sizeof cpu);
    tdmi_cpu_describe_files(root.path, &cpu);
    assert_string_equal(cpu.model, "");
    assert_true(cpu.cores == 0 && cpu.l2_bytes == 0 && cpu.memory_bytes == 0);
    assert_false(tdmi_sys_topology(root.path, &topology));
    assert_int_equal(topology.cores, 0);
    folder_put(&root, "sys/devices/system/cpu/online", "garbage\n");
    assert_false(tdmi_sys_topology(root.path, &topology));
    folder_remove(&root);
}

TEST(this_machine_makes_sense)
{
    struct tdmi_cpu cpu;
    struct tdmi_topology topology;
    tdmi_cpu_describe(&cpu);
    assert_true(cpu.architecture[0] != '\0');
    assert_true(cpu.usable >= 1);
    assert_true(cpu.packages <= cpu.cores && cpu.cores <= cpu.threads);
    assert_true(cpu.memory_bytes > cpu.memory_available_bytes && cpu.memory_available_bytes > 0);
#if defined(__x86_64__) && defined(__GNUC__)
    assert_int_equal(cpu.has_avx2_fma,
                     __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
    assert_int_equal(cpu.has_avx512,
                     __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"));
    assert_int_equal(cpu.has_avx512_vnni, cpu.has_avx512 && __builtin_cpu_supports("avx512vnni"));
    assert_true(strstr(cpu.isa, "sse4.2") || !__builtin_cpu_supports("sse4.2"));
#endif
    /* hwloc and /sys tell of the same machine. */
    if (tdmi_sys_topology("", &topology)) {
        assert_int_equal(cpu.threads, topology.threads);
        assert_int_equal(cpu.cores, topology.cores);
    }
}

/* ---- clock, environment, stop flag -------------------------------------------------------- */

TEST(time_runs_forward_and_has_a_name)
{
    char text[21];
    int year, month, day, hour, minute, second;
    int64_t start = tdmi_clock_ns();
    for (int i = 0; i < 1000; i++)
        assert_true(tdmi_clock_ns() >= start);
    assert_true(tdmi_clock_seconds_since(start - 2000000000) >= 2.0);
    assert_true(tdmi_clock_seconds_since(start) < 60.0);
    tdmi_clock_utc(text);
    assert_int_equal(strlen(text), 20);
    assert_int_equal(
        sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2dZ", &year, &month, &day, &hour, &minute, &second), 6);
    assert_true(year >= 2024 && text[19] == 'Z');
}

TEST(the_home_follows_its_three_variables)
{
    static const struct {
        const char *tandem_home, *cache_home, *home, *expected;
    } cases[] = {
        {"/t", "/c", "/h", "/t"},
        {"", "/c", "/h", "/c/tandem"},
        {NULL, "relative", "/h", "/h/.cache/tandem"},
        {NULL, NULL, "/h", "/h/.cache/tandem"},
        {NULL, NULL, NULL, NULL},
    };
    tdmi_arena arena = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *names[] = {"TANDEM_HOME", "XDG_CACHE_HOME", "HOME"};
        const char *values[] = {cases[i].tandem_home, cases[i].cache_home, cases[i].home};
        for (int v = 0; v < 3; v++) {
            if (values[v])
                setenv(names[v], values[v], 1);
            else
                unsetenv(names[v]);
        }
        const char *home = tdmi_env_home(&arena);
        if (cases[i].expected)
            assert_string_equal(home, cases[i].expected);
        else
            assert_null(home);
    }
    setenv("TANDEM_TEST_EMPTY", "", 1);
    assert_null(tdmi_env("TANDEM_TEST_EMPTY"));
    tdmi_arena_release(&arena);
}

static void on_signal(int number)
{
    (void)number;
    tdm_stop_request();
}

TEST(a_signal_handler_may_ask_to_stop)
{
    assert_false(tdm_stop_is_requested());
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    signal(SIGUSR1, SIG_DFL);
    assert_true(tdm_stop_is_requested());
    tdm_stop_clear();
    assert_false(tdm_stop_is_requested());
}

TEST_MAIN(NULL, NULL)
