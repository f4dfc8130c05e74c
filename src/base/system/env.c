/* The environment, read in this one place. */
#include "base/system/env.h"

#include <stdlib.h>
#include <string.h>

const char *tdmi_env(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

/* Digits only, below 2^31. */
static bool read_number(const char *text, int *number)
{
    if (!text || strspn(text, "0123456789") != strlen(text) || strlen(text) > 9)
        return false;
    *number = (int)strtol(text, NULL, 10);
    return true;
}

/* Variables of launchers, in the order in which they are looked for. */
static const struct {
    const char *rank, *size;
} local_names[] = {
    {"TANDEM_LOCAL_RANK", "TANDEM_LOCAL_SIZE"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"}, /* Open MPI */
    {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"},                       /* MPICH */
    {"LOCAL_RANK", "LOCAL_WORLD_SIZE"},                           /* torchrun */
};
enum { n_local_names = sizeof local_names / sizeof local_names[0] };

/* The number of tasks on a node by Slurm's list, as in "2(x3),1"; 0: the list does not say. node
 * -1: any, where all nodes have the same number. */
static int tasks_of_node(const char *list, int node)
{
    int found = 0;
    for (int first = 0; *list;) {
        char *end;
        const long tasks = strtol(list, &end, 10);
        long repeat = 1;
        if (end == list || tasks < 1 || tasks > 1000000)
            return 0;
        if (strncmp(end, "(x", 2) == 0) {
            list = end + 2;
            repeat = strtol(list, &end, 10);
            if (end == list || *end++ != ')' || repeat < 1 || repeat > 1000000)
                return 0;
        }
        if ((*end != ',' && *end != '\0') || (node < 0 && found > 0 && found != tasks))
            return 0;
        if (node < 0 || (node >= first && node < first + repeat))
            found = (int)tasks;
        first += (int)repeat;
        list = end + (*end == ',');
    }
    return found;
}

static void read_slurm(struct tdmi_local *local)
{
    const char *list = tdmi_env("SLURM_STEP_TASKS_PER_NODE");
    struct tdmi_local found;
    int node = -1;
    if (!list || !read_number(tdmi_env("SLURM_LOCALID"), &found.rank))
        return;
    if (!read_number(tdmi_env("SLURM_NODEID"), &node))
        node = -1;
    found.size = tasks_of_node(list, node);
    if (found.rank < found.size && found.size > 1)
        *local = found;
}

/* Only TANDEM_LOCAL_SIZE=1 says that the machine has nothing else to do: a launcher that starts one
 * process here may have been started twice. */
static tdm_status read_pair(int index, struct tdmi_local *local, tdm_error *err)
{
    const char *names[] = {local_names[index].rank, local_names[index].size};
    const char *rank = tdmi_env(names[0]), *size = tdmi_env(names[1]);
    if (read_number(rank, &local->rank) && read_number(size, &local->size) && local->size >= 1 &&
        local->rank < local->size) {
        if (index > 0 && local->size == 1)
            *local = (struct tdmi_local){0, 0};
        return TDM_OK;
    }
    *local = (struct tdmi_local){0, 0};
    return TDM_FAIL(err, TDM_E_USAGE,
                    "%s is %s and %s is %s: the number of processes of this job on this machine, 1 "
                    "or more, and which of them this is, from 0 to that number less 1, are "
                    "accepted, or neither",
                    names[0], rank ? rank : "not set", names[1], size ? size : "not set");
}

tdm_status tdmi_env_local(struct tdmi_local *local, tdm_error *err)
{
    *local = (struct tdmi_local){0, 0};
    for (int i = 0; i < n_local_names; i++) {
        const bool has_rank = tdmi_env(local_names[i].rank),
                   has_size = tdmi_env(local_names[i].size);
        if (i == 0 ? has_rank || has_size : has_rank && has_size)
            return read_pair(i, local, err);
    }
    read_slurm(local);
    return TDM_OK;
}

char *tdmi_env_home(tdmi_arena *arena)
{
    const char *home = tdmi_env("TANDEM_HOME");
    if (home)
        return tdmi_arena_copy(arena, home);
    home = tdmi_env("XDG_CACHE_HOME");
    if (home && home[0] == '/') /* the XDG rule: relative ones are to be ignored */
        return tdmi_arena_printf(arena, "%s/tandem", home);
    home = tdmi_env("HOME");
    return home ? tdmi_arena_printf(arena, "%s/.cache/tandem", home) : NULL;
}
