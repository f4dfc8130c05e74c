/* Command lines of launchers, for the versions that name things differently. */
#include "base/text/text.h"
#include "launch/engine.h"
#include "unit.h"

static const char *const words[] = {"/opt/tandem", "train", "photos", NULL};
static const char *const variables[] = {"TANDEM_DEADLINE", "TANDEM_HOME", NULL};

static void expect_line(const struct tdmi_engine *engine, const struct tdmi_engine_job *job,
                        const char *wanted)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    const char *const *line;
    assert_int_equal(tdmi_engine_line(engine, job, &arena, &line, NULL), TDM_OK);
    for (int i = 0; line[i]; i++)
        tdmi_text_printf(&text, "%s%s", i > 0 ? " " : "", line[i]);
    assert_string_equal(tdmi_text_string(&text), wanted);
}

TEST(lines_of_open_mpi)
{
    const struct tdmi_engine four = {TDMI_ENGINE_OPENMPI, "mpirun", 4, NULL, NULL},
                             five = {TDMI_ENGINE_OPENMPI, "mpirun", 5, NULL, NULL};
    const struct tdmi_engine_job job = {
        .ranks = 4, .hosts = "a:2,b:2", .iface = "eth0", .variables = variables, .words = words};
    expect_line(
        &four, &job,
        "mpirun -n 4 --host a:2,b:2 --bind-to none --mca btl_tcp_if_include eth0 --mca "
        "oob_tcp_if_include eth0 -x TANDEM_DEADLINE -x TANDEM_HOME /opt/tandem train photos");
    expect_line(&five, &job,
                "mpirun -n 4 --host a:2,b:2 --bind-to none --mca btl_tcp_if_include eth0 --prtemca "
                "prte_if_include eth0 --with-ft ulfm -x TANDEM_DEADLINE -x TANDEM_HOME /opt/tandem "
                "train photos");
}

TEST(lines_of_mpich)
{
    const struct tdmi_engine hydra = {TDMI_ENGINE_MPICH, "mpirun.mpich", 0, NULL, NULL};
    const struct tdmi_engine_job job = {.ranks = 3, .hostfile = "hosts", .words = words};
    expect_line(&hydra, &job, "mpirun.mpich -n 3 -f hosts -bind-to none /opt/tandem train photos");
}

TEST(lines_of_srun)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    struct tdmi_engine srun = {TDMI_ENGINE_SRUN, "srun", 0, "pmix", NULL};
    struct tdmi_engine_job job = {.ranks = 8, .words = words};
    const char *const *line;
    tdm_error err = {0};
    expect_line(
        &srun, &job,
        "srun -n 8 --mpi=pmix --cpu-bind=none --kill-on-bad-exit=1 /opt/tandem train photos");
    srun.cpus = "16";
    expect_line(&srun, &job,
                "srun -n 8 --mpi=pmix --cpu-bind=none --kill-on-bad-exit=1 --cpus-per-task=16 "
                "/opt/tandem train photos");
    job.hosts = "a,b";
    assert_int_equal(tdmi_engine_line(&srun, &job, &arena, &line, &err), TDM_E_USAGE);
    assert_says(&err, "those of the allocation");
}

TEST(a_line_has_an_end)
{
    enum { n = 300 };
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    const char *many[n + 1] = {0}, *const * line;
    const struct tdmi_engine engine = {TDMI_ENGINE_MPICH, "mpirun", 0, NULL, NULL};
    for (int i = 0; i < n; i++)
        many[i] = "x";
    const struct tdmi_engine_job job = {.ranks = 2, .words = many};
    assert_int_equal(tdmi_engine_line(&engine, &job, &arena, &line, NULL), TDM_E_USAGE);
}

TEST_MAIN(NULL, NULL)
