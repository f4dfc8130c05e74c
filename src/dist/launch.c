/* Variables of launchers, as one list of names a launcher. */
#include "dist/launch.h"
#include "base/system/env.h"
#include "base/text/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most_ranks = 65536, most_port = 65535, store_ports = 16 };
static const double usual_deadline = 60.0;

/* sign: a variable that must be there too; mpis: NULL where ranks talk over TCP. */
struct launcher {
    const char *name, *rank, *world, *sign;
    const char *mpis[2];
};

/* In the order in which they are looked for. What runs inside another launcher's job comes first:
 * torchrun under srun, and mpirun in a job of Slurm. */
static const struct launcher launchers[] = {
    {"tandem run", "TANDEM_RANK", "TANDEM_WORLD", NULL, {NULL}},
    {"torchrun", "RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID", {NULL}},
    {"Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL, {"openmpi"}},
    {"MPICH's mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", {"mpich"}},
    {"srun --mpi=pmi2", "PMI_RANK", "PMI_SIZE", "SLURM_STEP_ID", {"mpich"}},
    {"an MPI launcher that sets PMI_RANK", "PMI_RANK", "PMI_SIZE", NULL, {"mpich", "openmpi"}},
    {"srun --mpi=pmix", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "PMIX_RANK", {"openmpi", "mpich"}},
    {"srun --mpi=pmix", "SLURM_PROCID", "SLURM_NTASKS", "PMIX_RANK", {"openmpi", "mpich"}},
    {"torchrun", "RANK", "WORLD_SIZE", NULL, {NULL}},
};

static tdm_status read_number(tdmi_launch_variable variable, const char *name, int least, int most,
                              int *number, tdm_error *err)
{
    const char *text = variable(name);
    char *end = NULL;
    const long value = text ? strtol(text, &end, 10) : -1;
    if (!text)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "joining the other ranks: %s is not set; it is one of the variables that a "
                        "launcher sets for every rank",
                        name);
    if (end == text || *end || value < least || value > most)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "joining the other ranks: %s is '%s'; a number from %d to %d is accepted",
                        name, text, least, most);
    *number = (int)value;
    return TDM_OK;
}

static tdm_status take_host(const char *name, const char *text, size_t length,
                            struct tdmi_launch *launch, tdm_error *err)
{
    if (length == 0 || length >= sizeof launch->host)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "joining the other ranks: %s is '%s'; the name or address of the host of "
                        "rank 0 is accepted",
                        name, text);
    snprintf(launch->host, sizeof launch->host, "%.*s", (int)length, text);
    return TDM_OK;
}

/* "host:port", "[::1]:port" */
static tdm_status read_address(tdmi_launch_variable variable, struct tdmi_launch *launch,
                               tdm_error *err)
{
    static const char name[] = "TANDEM_ADDRESS";
    const char *text = variable(name), *colon = text ? strrchr(text, ':') : NULL;
    char *end = NULL;
    const long port = colon ? strtol(colon + 1, &end, 10) : 0;
    if (!colon || end == colon + 1 || *end || port < 1 || port > most_port)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "joining the other ranks: %s is %s%s%s; host:port of rank 0 is accepted",
                        name, text ? "'" : "", text ? text : "not set", text ? "'" : "");
    launch->port = (int)port;
    if (variable("TANDEM_LISTENER"))
        TDMI_TRY(read_number(variable, "TANDEM_LISTENER", 3, 1 << 20, &launch->listener, err));
    const bool has_brackets = text[0] == '[' && colon > text + 1 && colon[-1] == ']';
    return take_host(name, text + has_brackets, (size_t)(colon - text) - 2 * has_brackets, launch,
                     err);
}

/* torchrun's own store listens on MASTER_PORT. The next ports are usually free; where the kernel
 * chose MASTER_PORT, one of them may be the end of somebody's connection. */
static tdm_status read_master(tdmi_launch_variable variable, struct tdmi_launch *launch,
                              tdm_error *err)
{
    const char *host = variable("MASTER_ADDR"), *store = variable("TORCHELASTIC_USE_AGENT_STORE");
    TDMI_TRY(read_number(variable, "MASTER_PORT", 1, most_port - 1, &launch->port, err));
    if (store && strcmp(store, "True") == 0) {
        launch->port++;
        launch->n_ports = store_ports;
    }
    return take_host("MASTER_ADDR", host ? host : "", host ? strlen(host) : 0, launch, err);
}

static tdm_status read_token(tdmi_launch_variable variable, struct tdmi_launch *launch,
                             tdm_error *err)
{
    const char *token = variable("TANDEM_TOKEN");
    token = token ? token : variable("TORCHELASTIC_RUN_ID");
    if (token && strlen(token) >= sizeof launch->token)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "joining the other ranks: TANDEM_TOKEN has %zu characters; at most %zu are "
                        "accepted",
                        strlen(token), sizeof launch->token - 1);
    snprintf(launch->token, sizeof launch->token, "%s", token ? token : "");
    return TDM_OK;
}

static tdm_status read_deadline(tdmi_launch_variable variable, struct tdmi_launch *launch,
                                tdm_error *err)
{
    const char *text = variable("TANDEM_DEADLINE");
    char *end = NULL;
    launch->deadline = text ? strtod(text, &end) : usual_deadline;
    if (text && (end == text || *end || !(launch->deadline >= 1.0) || launch->deadline > 1e6))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "joining the other ranks: TANDEM_DEADLINE is '%s'; seconds from 1 are "
                        "accepted",
                        text);
    return TDM_OK;
}

/* The variable of the rank alone names a launcher too, so that a missing number is reported; but
 * Slurm sets its own in batch scripts as well, which are no ranks. */
static bool is_launcher(tdmi_launch_variable variable, const struct launcher *it)
{
    if (it->sign)
        return variable(it->sign) && variable(it->rank) && variable(it->world);
    return variable(it->rank) || variable(it->world);
}

/* srun without a part for MPI starts processes that do not know each other: each would train the
 * whole run, into the same folder. In batch scripts SLURM_STEP_ID is not set. */
static tdm_status refuse_lone_step(tdmi_launch_variable variable, struct tdmi_launch *launch,
                                   tdm_error *err)
{
    const char *name = variable("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
    int world = 1, rank = 0;
    if (!variable("SLURM_STEP_ID") || !variable("SLURM_PROCID") || !variable(name))
        return TDM_OK;
    TDMI_TRY(read_number(variable, name, 1, most_ranks, &world, err));
    TDMI_TRY(read_number(variable, "SLURM_PROCID", 0, most_ranks, &rank, err));
    if (world == 1)
        return TDM_OK;
    launch->rank = rank;
    return TDM_FAIL(err, TDM_E_ABSENT,
                    "joining the other ranks: srun started %d tasks without MPI, so they cannot "
                    "find each other: 'srun --mpi=pmix' (Open MPI) or 'srun --mpi=pmi2' (MPICH) "
                    "starts one training, and TANDEM_RANK=0 TANDEM_WORLD=1 makes each task train "
                    "alone",
                    world);
}

tdm_status tdmi_launch_read(tdmi_launch_variable variable, struct tdmi_launch *launch,
                            tdm_error *err)
{
    *launch = (struct tdmi_launch){.world = 1};
    TDMI_TRY(read_deadline(variable, launch, err));
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0] && !launch->launcher; i++)
        if (is_launcher(variable, &launchers[i])) {
            const struct launcher *it = &launchers[i];
            TDMI_TRY(read_number(variable, it->world, 1, most_ranks, &launch->world, err));
            TDMI_TRY(read_number(variable, it->rank, 0, launch->world - 1, &launch->rank, err));
            launch->launcher = it->name;
            memcpy(launch->mpis, it->mpis, sizeof launch->mpis);
        }
    if (!launch->launcher)
        return refuse_lone_step(variable, launch, err);
    if (launch->world == 1)
        return TDM_OK;
    launch->transport = launch->mpis[0] ? "mpi" : "tcp";
    if (launch->mpis[0])
        return TDM_OK;
    TDMI_TRY(read_token(variable, launch, err));
    const bool has_master = variable("MASTER_ADDR") || variable("MASTER_PORT");
    const bool is_torch = strcmp(launch->launcher, "torchrun") == 0;
    return variable("TANDEM_ADDRESS") || !(has_master || is_torch)
               ? read_address(variable, launch, err)
               : read_master(variable, launch, err);
}

tdm_status tdmi_launch_here(struct tdmi_launch *launch, tdm_error *err)
{
    TDMI_TRY(tdmi_launch_read(tdmi_env, launch, err));
    launch->ends_process = launch->world > 1;
    return TDM_OK;
}
