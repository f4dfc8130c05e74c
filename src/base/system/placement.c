/* Cuts the CPUs of a machine into parts: pure but for tdmi_placement_here. */
#include "base/system/placement.h"
#include "base/system/cgroup.h"
#include "base/system/env.h"

#include <math.h>
#include <stdio.h>

/* Where part `index` of `parts` begins in n things, cut as equally as can be. */
static int cut(int n, int index, int parts)
{
    return (int)((int64_t)n * index / parts);
}

static int part_of(int n, struct tdmi_local local)
{
    return cut(n, local.rank + 1, local.size) - cut(n, local.rank, local.size);
}

static bool begins_core(const struct tdmi_cpu_place *cpus, int i)
{
    return i == 0 || cpus[i].core != cpus[i - 1].core;
}

static int count_cores(const struct tdmi_cpu_place *cpus, int n_cpus)
{
    int n = 0;
    for (int i = 0; i < n_cpus; i++)
        n += begins_core(cpus, i);
    return n;
}

/* The first CPU of core number `core`; n_cpus past the last. */
static int first_of_core(const struct tdmi_cpu_place *cpus, int n_cpus, int core)
{
    int i = 0;
    for (int n = -1; i < n_cpus; i++)
        if ((n += begins_core(cpus, i)) == core)
            break;
    return i;
}

/* The CPUs of a part, one of every core first, then the second ones, and so on. */
static void order_cpus(const struct tdmi_cpu_place *cpus, int n_cpus, int *order)
{
    for (int round = 0, n = 0; n < n_cpus; round++)
        for (int i = 0, thread = 0; i < n_cpus; i++) {
            thread = begins_core(cpus, i) ? 0 : thread + 1;
            if (thread == round)
                order[n++] = cpus[i].cpu;
        }
}

/* The share of a limit on the threads of all processes, at least one and at most `most`. */
static int share_of_quota(double quota, int n_units, struct tdmi_local local, int most)
{
    if (quota <= 0.0 || quota >= n_units)
        return most;
    const int share = part_of((int)ceil(quota), local);
    return share < 1 ? 1 : share > most ? most : share;
}

static void describe_process(struct tdmi_local local, char *text, size_t text_bytes)
{
    text[0] = '\0';
    if (local.size > 1)
        snprintf(text, text_bytes, "process %d of %d on this machine", local.rank + 1, local.size);
}

static bool is_one_node(const struct tdmi_cpu_place *cpus, int n_cpus)
{
    return n_cpus == 0 || cpus[0].node == cpus[n_cpus - 1].node;
}

/* Which of the rules decided: facts of all processes, the CPUs of this one. */
static void explain(const struct tdmi_placement_facts *facts, const struct tdmi_cpu_place *part,
                    int n_part, bool is_by_core, struct tdmi_placement *placement)
{
    char process[64], node[24] = "";
    const char *unit = is_by_core ? "one per core" : "one per CPU";
    describe_process(facts->local, process, sizeof process);
    if (is_one_node(part, n_part) && !is_one_node(facts->cpus, facts->n_cpus))
        snprintf(node, sizeof node, " of node %d", part[0].node);
    char *why = placement->why;
    const size_t why_bytes = sizeof placement->why;
    const char *comma = process[0] ? ", " : "";
    if (facts->threads != 0)
        snprintf(why, why_bytes, " (--threads%s%s)", comma, process);
    else if (facts->local.size > facts->n_cpus)
        snprintf(why, why_bytes, " (%d processes share %d CPU%s)", facts->local.size, facts->n_cpus,
                 facts->n_cpus == 1 ? "" : "s");
    else if (placement->threads < (is_by_core ? count_cores(part, n_part) : n_part))
        snprintf(why, why_bytes, " (CPU quota %.3g of %d CPUs%s%s)", facts->quota, facts->n_cpus,
                 comma, process);
    else
        snprintf(why, why_bytes, process[0] ? ", %s%s (%s)" : ", %s%s", unit, node, process);
}

tdm_status tdmi_placement_make(const struct tdmi_placement_facts *facts,
                               struct tdmi_placement *placement, tdm_error *err)
{
    const struct tdmi_cpu_place *cpus = facts->cpus;
    const int n_cpus = facts->n_cpus, n_cores = count_cores(cpus, n_cpus);
    const struct tdmi_local local = {facts->local.rank,
                                     facts->local.size > 0 ? facts->local.size : 1};
    const bool has_part = local.size <= n_cpus, is_by_core = local.size <= n_cores;
    *placement = (struct tdmi_placement){.local = facts->local, .threads = 1, .loader_threads = 1};
    int first = 0, end = n_cpus;
    if (is_by_core) {
        first = first_of_core(cpus, n_cpus, cut(n_cores, local.rank, local.size));
        end = first_of_core(cpus, n_cpus, cut(n_cores, local.rank + 1, local.size));
    } else if (has_part) {
        first = cut(n_cpus, local.rank, local.size);
        end = cut(n_cpus, local.rank + 1, local.size);
    }
    const struct tdmi_cpu_place *part = cpus + first;
    const int n_part = end - first;
    if (has_part) {
        const int n_units = is_by_core ? n_cores : n_cpus;
        const int most = is_by_core ? count_cores(part, n_part) : n_part;
        placement->threads = share_of_quota(facts->quota, n_units, local, most);
        placement->loader_threads = share_of_quota(facts->quota, n_cpus, local, n_part);
    }
    if (facts->threads != 0)
        placement->threads = placement->loader_threads = facts->threads;
    explain(facts, part, n_part, is_by_core, placement);
    if (facts->local.size == 0 || !has_part)
        return TDM_OK;
    TDMI_TRY(TDMI_NEW(placement->cpus, n_part, err));
    placement->n_cpus = n_part;
    order_cpus(part, n_part, placement->cpus);
    /* With a quota the CPUs are shared with whoever has the rest of it. */
    placement->is_bound =
        placement->threads <= n_part && (facts->quota <= 0.0 || facts->quota >= n_cpus);
    return TDM_OK;
}

void tdmi_placement_release(struct tdmi_placement *placement)
{
    tdmi_free(placement->cpus);
    *placement = (struct tdmi_placement){0};
}

tdm_status tdmi_placement_here(int threads, struct tdmi_placement *placement, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) struct tdmi_cpu_place *cpus = NULL;
    struct tdmi_placement_facts facts = {.threads = threads};
    *placement = (struct tdmi_placement){0};
    TDMI_TRY(tdmi_env_local(&facts.local, err));
    TDMI_TRY(TDMI_NEW(cpus, TDMI_CPUS_MAX, err));
    facts.cpus = cpus;
    facts.quota = tdmi_cgroup_limits("").cpus;
    if (threads == 0 || facts.local.size > 0)
        facts.n_cpus = tdmi_affinity_places(cpus, TDMI_CPUS_MAX);
    if (facts.n_cpus == 0) /* nothing to place, or the system does not say */
        facts.n_cpus = 1;
    return tdmi_placement_make(&facts, placement, err);
}

void tdmi_placement_enter(const struct tdmi_placement *placement)
{
    if (placement->n_cpus > 0) /* where it is refused, the thread is free to move */
        tdmi_affinity_bind(placement->cpus, placement->n_cpus);
}

int64_t tdmi_placement_share(const struct tdmi_placement *placement, int64_t bytes)
{
    return placement->local.size > 1 ? bytes / placement->local.size : bytes;
}

void tdmi_placement_describe(const struct tdmi_placement *placement, char *text, size_t text_bytes)
{
    snprintf(text, text_bytes, "%d%s", placement->threads, placement->why);
}
