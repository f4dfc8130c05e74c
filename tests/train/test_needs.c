/* Memory that training requires, the limit, and the choice that fits. */
#include "train/needs.h"

#include "base/memory.h"
#include "unit.h"

#include <sys/stat.h>
#include <unistd.h>

/* ---- a training that is easily counted ------------------------------------------------------ */

struct training {
    int n_asked;
    bool is_broken;
};

/* 100 whatever is chosen, 10 a thread and picture of a group, 1 a picture of the batch. */
static tdm_status measure(void *self, struct tdmi_needs_choice choice, struct tdmi_needs *needs,
                          tdm_error *err)
{
    struct training *training = self;
    training->n_asked++;
    if (training->is_broken)
        return TDM_FAIL(err, TDM_E_ABSENT, "no plan");
    *needs = (struct tdmi_needs){.weights = 60,
                                 .others = 40,
                                 .activations = 10 * choice.threads * choice.shard,
                                 .pictures = choice.batch};
    return TDM_OK;
}

static struct tdmi_needs_choice found_for(int64_t limit, bool keeps_bits)
{
    struct training training = {0};
    struct tdmi_needs_choice found;
    struct tdmi_needs needs;
    const struct tdmi_needs_measure how = {
        .run = measure, .self = &training, .keeps_bits = keeps_bits};
    assert_int_equal(
        tdmi_needs_find(&how, (struct tdmi_needs_choice){32, 8, 4}, limit, &found, &needs, NULL),
        TDM_OK);
    if (found.threads > 0)
        assert_true(tdmi_needs_total(&needs) <= limit);
    return found;
}

static void check_found(int64_t limit, bool keeps_bits, int batch, int shard, int threads)
{
    const struct tdmi_needs_choice found = found_for(limit, keeps_bits);
    if (found.batch != batch || found.shard != shard || found.threads != threads)
        fail_msg("within %lld: batch %d, shard %d, threads %d", (long long)limit, found.batch,
                 found.shard, found.threads);
}

TEST(fewer_threads_come_before_smaller_batches_and_those_before_smaller_groups)
{
    check_found(452, false, 32, 8, 4); /* as asked */
    check_found(451, false, 32, 8, 3);
    check_found(212, false, 32, 8, 1);
    check_found(211, false, 16, 8, 1);
    check_found(188, false, 8, 8, 1);
    check_found(187, false, 32, 4, 1);
    check_found(111, false, 1, 1, 1);
    check_found(110, false, 0, 0, 0); /* nothing does */
}

TEST(a_run_that_is_gone_on_with_may_change_threads_alone)
{
    check_found(212, true, 32, 8, 1);
    check_found(211, true, 0, 0, 0);
}

TEST(what_cannot_be_planned_is_an_error)
{
    struct training training = {.is_broken = true};
    struct tdmi_needs_choice found;
    struct tdmi_needs needs;
    assert_int_equal(
        tdmi_needs_find(&(struct tdmi_needs_measure){.run = measure, .self = &training},
                        (struct tdmi_needs_choice){32, 8, 4}, 452, &found, &needs, NULL),
        TDM_E_ABSENT);
    assert_int_equal(training.n_asked, 1);
}

/* ---- limits --------------------------------------------------------------------------------- */

static void put(const char *root, const char *path, const char *text)
{
    char full[400];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *slash = strchr(full + strlen(root) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(full, 0755);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void check_limit(const char *root, int64_t bytes, const char *what)
{
    const struct tdmi_memory_limit limit = tdmi_memory_limit(root, 0);
    assert_int_equal(limit.bytes, bytes);
    assert_string_equal(limit.what, what);
}

static void remove_folder(const char *root)
{
    char command[100];
    snprintf(command, sizeof command, "rm -r '%s'", root);
    assert_int_equal(system(command), 0);
}

TEST(the_tighter_of_container_and_machine_is_the_limit)
{
    char root[] = "/tmp/tandem-needs-XXXXXX";
    assert_non_null(mkdtemp(root));
    assert_int_equal(tdmi_memory_limit(root, 0).bytes, 0);
    put(root, "proc/self/cgroup", "0::/jobs/one\n");
    put(root, "sys/fs/cgroup/jobs/memory.max", "700000\n");
    check_limit(root, 700000, "this container allows"); /* of a machine that does not say */
    put(root, "proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 10 kB\n");
    put(root, "sys/fs/cgroup/jobs/one/memory.max", "max\n");
    check_limit(root, 700000, "this container allows");
    put(root, "sys/fs/cgroup/jobs/memory.max", "70000000000\n");
    check_limit(root, 1000 * 1024, "this machine has");
    put(root, "proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 10 kB\nSwapTotal: 500 kB\n");
    check_limit(root, 1500 * 1024, "this machine has");
    remove_folder(root);
}

TEST(swap_counts_as_far_as_a_container_allows_it)
{
    char root[] = "/tmp/tandem-needs-XXXXXX";
    const int64_t memory = 700000, swap = 500 * 1024;
    assert_non_null(mkdtemp(root));
    put(root, "proc/meminfo", "MemTotal: 1000 kB\nSwapTotal: 500 kB\n");
    put(root, "proc/self/cgroup", "0::/jobs\n");
    put(root, "sys/fs/cgroup/jobs/memory.max", "700000\n");
    put(root, "sys/fs/cgroup/jobs/memory.swap.max", "max\n");
    check_limit(root, memory + swap, "this container allows");
    put(root, "sys/fs/cgroup/jobs/memory.swap.max", "1000\n");
    check_limit(root, memory + 1000, "this container allows");
    put(root, "sys/fs/cgroup/jobs/memory.swap.max", "0\n");
    check_limit(root, memory, "this container allows");
    /* All of the memory is allowed and none of the swap. */
    put(root, "sys/fs/cgroup/jobs/memory.max", "max\n");
    check_limit(root, 1000 * 1024, "this container allows");
    /* Version 1. */
    put(root, "proc/self/cgroup", "5:memory:/old\n");
    put(root, "sys/fs/cgroup/memory/old/memory.limit_in_bytes", "700000\n");
    check_limit(root, memory + swap, "this container allows");
    put(root, "sys/fs/cgroup/memory/old/memory.memsw.limit_in_bytes", "800000\n");
    check_limit(root, 800000, "this container allows");
    put(root, "sys/fs/cgroup/memory/old/memory.memsw.limit_in_bytes", "9223372036854771712\n");
    check_limit(root, memory + swap, "this container allows");
    remove_folder(root);
}

TEST(this_process_is_resident)
{
    const size_t bytes = 32 << 20;
    const int64_t before = tdmi_memory_resident();
    char *block = tdmi_alloc_large(bytes);
    assert_non_null(block);
    memset(block, 1, bytes);
    assert_true(before > 0);
    assert_true(tdmi_memory_resident() > before + (int64_t)bytes / 2);
    tdmi_free_large(block);
}

TEST(the_sentence_adds_up)
{
    const int64_t mib = 1 << 20;
    const struct tdmi_needs needs = {.weights = 3 * mib,
                                     .activations = 400 * mib,
                                     .gradients = 50 * mib,
                                     .evaluating = 6 * mib,
                                     .pictures = 7 * mib,
                                     .others = mib / 2};
    char text[300];
    tdmi_needs_describe(&needs, text, sizeof text);
    assert_non_null(strstr(text, "466 MiB"));
    assert_non_null(strstr(text, "activations 400, gradients 50"));
}

TEST_MAIN(NULL, NULL)
