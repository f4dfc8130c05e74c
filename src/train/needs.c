/* Memory that training requires: sums, their description, and the search for a smaller choice. */
#include "train/needs.h"
#include "base/system/cgroup.h"
#include "base/system/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int64_t tdmi_needs_total(const struct tdmi_needs *needs)
{
    return needs->weights + needs->activations + needs->gradients + needs->evaluating +
           needs->pictures + needs->others;
}

static double mib(int64_t bytes)
{
    return (double)bytes / (1 << 20);
}

void tdmi_needs_describe(const struct tdmi_needs *needs, char *text, size_t text_bytes)
{
    snprintf(text, text_bytes,
             "%.0f MiB of memory (activations %.0f, gradients %.0f, weights and the optimizer's "
             "state %.0f, validation %.0f, images read ahead %.0f, the process itself %.0f)",
             mib(tdmi_needs_total(needs)), mib(needs->activations), mib(needs->gradients),
             mib(needs->weights), mib(needs->evaluating), mib(needs->pictures), mib(needs->others));
}

struct tdmi_memory_limit tdmi_memory_limit(const char *root, int n_processes)
{
    struct tdmi_cpu machine = {0};
    tdmi_cpu_describe_files(root, &machine);
    const int64_t all = machine.all_memory_bytes;
    const bool is_all = all == machine.memory_bytes + machine.swap_bytes;
    if (n_processes > 1)
        return (struct tdmi_memory_limit){all / n_processes,
                                          is_all ? "a process's share of this machine is"
                                                 : "a process's share of this container is"};
    return (struct tdmi_memory_limit){all, is_all ? "this machine has" : "this container allows"};
}

/* Resident pages, and how many of them belong to files. */
static bool resident_pages(long long *pages, long long *of_files)
{
    char text[128], *end = NULL;
    if (tdmi_system_text("", "/proc/self/statm", text, sizeof text) <= 0)
        return false;
    (void)strtoll(text, &end, 10); /* size of the address space */
    *pages = strtoll(end, &end, 10);
    *of_files = strtoll(end, NULL, 10);
    return *pages > 0 && *of_files >= 0 && *of_files <= *pages;
}

int64_t tdmi_memory_resident(void)
{
    long long pages, of_files;
    return resident_pages(&pages, &of_files) ? pages * sysconf(_SC_PAGESIZE) : 0;
}

int64_t tdmi_memory_own(void)
{
    long long pages, of_files;
    return resident_pages(&pages, &of_files) ? (pages - of_files) * sysconf(_SC_PAGESIZE) : 0;
}

/* ---- a choice that fits -------------------------------------------------------------------- */

/* The most threads, up to those of the choice, that stay within the limit. */
static tdm_status find_threads(const struct tdmi_needs_measure *measure,
                               struct tdmi_needs_choice choice, int64_t limit_bytes,
                               struct tdmi_needs_choice *found, struct tdmi_needs *needs,
                               tdm_error *err)
{
    for (; choice.threads > 0; choice.threads--) {
        TDM_TRY(measure->run(measure->self, choice, needs, err), err,
                "planning groups of %d images", choice.shard);
        if (tdmi_needs_total(needs) <= limit_bytes) {
            *found = choice;
            return TDM_OK;
        }
    }
    return TDM_OK;
}

tdm_status tdmi_needs_find(const struct tdmi_needs_measure *measure,
                           struct tdmi_needs_choice requested, int64_t limit_bytes,
                           struct tdmi_needs_choice *found, struct tdmi_needs *needs,
                           tdm_error *err)
{
    const int least_shard = measure->keeps_bits ? requested.shard : 1;
    struct tdmi_needs_choice choice = requested;
    *found = (struct tdmi_needs_choice){0};
    for (; choice.shard >= least_shard; choice.shard /= 2) {
        const int least_batch = measure->keeps_bits ? requested.batch : choice.shard;
        for (choice.batch = requested.batch; choice.batch >= least_batch; choice.batch /= 2) {
            TDM_TRY(find_threads(measure, choice, limit_bytes, found, needs, err), err,
                    "trying batches of %d", choice.batch);
            if (found->threads > 0)
                return TDM_OK;
        }
    }
    return TDM_OK;
}
