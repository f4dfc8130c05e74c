/*
 * Ranks are left free to use the CPUs that tandem divides among those of a host, so binding is off;
 * Open MPI 4 and 5, Hydra and srun name that, hosts, interfaces and variables differently.
 */
#include "launch/engine.h"
#include "base/system/env.h"
#include "dist/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most_words = 256 };

struct words {
    const char **of;
    int n;
    tdmi_arena *arena;
    bool is_broken;
};

static void add(struct words *words, const char *word)
{
    if (!word || words->n == most_words - 1)
        words->is_broken = true;
    else
        words->of[words->n++] = word;
}

static void add_number(struct words *words, const char *option, int number)
{
    add(words, option);
    add(words, tdmi_arena_printf(words->arena, "%d", number));
}

static void add_value(struct words *words, const char *option, const char *value)
{
    if (!value)
        return;
    add(words, option);
    add(words, value);
}

/* ---- one launcher each -------------------------------------------------------------------------
 */

static void openmpi(const struct tdmi_engine *engine, const struct tdmi_engine_job *job,
                    struct words *words)
{
    static const char *const families[] = {"btl_tcp_if_include", "oob_tcp_if_include"};
    add_number(words, "-n", job->ranks);
    add_value(words, "--host", job->hosts);
    add_value(words, "--hostfile", job->hostfile);
    add_value(words, "--bind-to", "none");
    for (int i = 0; job->iface && i < (engine->major >= 5 ? 1 : 2); i++) {
        add(words, "--mca");
        add_value(words, families[i], job->iface);
    }
    if (job->iface && engine->major >= 5) {
        add(words, "--prtemca");
        add_value(words, "prte_if_include", job->iface);
    }
    if (engine->major >= 5) /* survivors say which rank was lost, and end by themselves */
        add_value(words, "--with-ft", "ulfm");
    for (int i = 0; job->variables && job->variables[i]; i++)
        add_value(words, "-x", job->variables[i]);
}

/* Hydra takes the whole environment along. */
static void mpich(const struct tdmi_engine_job *job, struct words *words)
{
    add_number(words, "-n", job->ranks);
    add_value(words, "-hosts", job->hosts);
    add_value(words, "-f", job->hostfile);
    add_value(words, "-bind-to", "none");
    add_value(words, "-iface", job->iface);
}

static tdm_status slurm(const struct tdmi_engine *engine, const struct tdmi_engine_job *job,
                        struct words *words, tdm_error *err)
{
    if (job->hosts || job->hostfile || job->iface)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "starting ranks by srun: hosts and interfaces are those of the allocation; "
                        "leave out -H, --hostfile and --iface");
    add_number(words, "-n", job->ranks);
    add(words, tdmi_arena_printf(words->arena, "--mpi=%s", engine->mpi));
    add(words, "--cpu-bind=none");
    add(words, "--kill-on-bad-exit=1");
    if (engine->cpus) /* srun does not inherit it */
        add(words, tdmi_arena_printf(words->arena, "--cpus-per-task=%s", engine->cpus));
    return TDM_OK;
}

tdm_status tdmi_engine_line(const struct tdmi_engine *engine, const struct tdmi_engine_job *job,
                            tdmi_arena *arena, const char *const **line, tdm_error *err)
{
    struct words words = {.arena = arena};
    words.of = tdmi_arena_alloc(arena, most_words, sizeof *words.of);
    TDMI_CHECK_MEMORY(words.of, err);
    add(&words, engine->program);
    if (engine->kind == TDMI_ENGINE_OPENMPI)
        openmpi(engine, job, &words);
    else if (engine->kind == TDMI_ENGINE_MPICH)
        mpich(job, &words);
    else
        TDMI_TRY(slurm(engine, job, &words, err));
    for (int i = 0; job->words[i]; i++)
        add(&words, job->words[i]);
    if (words.is_broken)
        return TDM_FAIL(err, TDM_E_USAGE, "starting ranks: at most %d words in all are accepted",
                        most_words - 1);
    words.of[words.n] = NULL;
    *line = words.of;
    return TDM_OK;
}

/* ---- which one is here
 * --------------------------------------------------------------------------- */

/* The first line that a command prints, "" where it cannot be run. */
static void first_line(const char *command, char *text, size_t text_bytes)
{
    FILE *pipe = popen(command, "r");
    text[0] = '\0';
    if (!pipe)
        return;
    if (!fgets(text, (int)text_bytes, pipe))
        text[0] = '\0';
    while (fgetc(pipe) != EOF) {}
    (void)pclose(pipe);
}

/* "mpirun (Open MPI) 5.0.2", "mpirun.openmpi (OpenRTE) 4.1.4", "HYDRA build details:" */
static bool is_launcher(const char *program, struct tdmi_engine *engine)
{
    char command[200], line[200];
    snprintf(command, sizeof command, "%s --version 2>/dev/null", program);
    first_line(command, line, sizeof line);
    const char *version = strstr(line, ") ");
    const bool is_open = version && (strstr(line, "Open MPI)") || strstr(line, "OpenRTE)"));
    if (!is_open && !strstr(line, "HYDRA"))
        return false;
    engine->kind = is_open ? TDMI_ENGINE_OPENMPI : TDMI_ENGINE_MPICH;
    engine->major = is_open ? (int)strtol(version + strlen(") "), NULL, 10) : 0;
    engine->program = program;
    return true;
}

static tdm_status find_mpirun(struct tdmi_engine *engine, tdm_error *err)
{
    /* mpirun is the one that somebody chose, by a module or PATH; the others are Debian's */
    static const char *const programs[] = {"mpirun", "mpiexec", "mpirun.openmpi", "mpirun.mpich"};
    static const char *const names[] = {
        [TDMI_ENGINE_OPENMPI] = "openmpi", [TDMI_ENGINE_MPICH] = "mpich"};
    const bool has_any = tdmi_mpi_is_built("openmpi") || tdmi_mpi_is_built("mpich");
    for (size_t i = 0; has_any && i < sizeof programs / sizeof programs[0]; i++)
        if (is_launcher(programs[i], engine) && tdmi_mpi_is_built(names[engine->kind]))
            return TDM_OK;
    return TDM_FAIL(err, TDM_E_ABSENT,
                    "starting ranks on other hosts: %s; Open MPI (openmpi-bin, libopenmpi-dev) or "
                    "MPICH (mpich, libmpich-dev) is accepted",
                    has_any ? "no mpirun of the MPI that this tandem was built with is found"
                            : "this tandem was built without MPI");
}

const char *tdmi_engine_pmi(void)
{
    return tdmi_mpi_is_built("openmpi") || !tdmi_mpi_is_built("mpich") ? "pmix" : "pmi2";
}

/* The shell of salloc may be a step of its own. */
bool tdmi_engine_is_allocation(void)
{
    static const char interactive_step[] = "4294967290";
    const char *step = tdmi_env("SLURM_STEP_ID");
    return tdmi_env("SLURM_JOB_ID") && (!step || strcmp(step, interactive_step) == 0);
}

tdm_status tdmi_engine_find(const struct tdmi_engine_job *job, struct tdmi_engine *engine,
                            tdm_error *err)
{
    *engine = (struct tdmi_engine){.kind = TDMI_ENGINE_SRUN, .program = "srun"};
    if (!tdmi_engine_is_allocation() || job->hosts || job->hostfile)
        return find_mpirun(engine, err);
    engine->mpi = tdmi_engine_pmi();
    engine->cpus = tdmi_env("SLURM_CPUS_PER_TASK");
    return TDM_OK;
}
