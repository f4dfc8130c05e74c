/* The rank of a process, from the variables of launchers. */
#include "dist/launch.h"
#include "dist/transport.h"
#include "tandem_features.h"
#include "unit.h"

static const char *const *variables; /* name, value, …, NULL */

static const char *variable(const char *name)
{
    for (const char *const *it = variables; *it; it += 2)
        if (strcmp(it[0], name) == 0)
            return it[1];
    return NULL;
}

static tdm_status read_from(const char *const *given, struct tdmi_launch *launch, tdm_error *err)
{
    variables = given;
    return tdmi_launch_read(variable, launch, err);
}
#define READ(launch, err, ...) read_from((const char *const[]){__VA_ARGS__, NULL}, launch, err)

TEST(without_a_launcher_a_process_is_alone)
{
    struct tdmi_launch launch;
    assert_int_equal(READ(&launch, NULL, "HOME", "/root"), TDM_OK);
    assert_int_equal(launch.world, 1);
    assert_null(launch.transport);
    assert_int_equal(READ(&launch, NULL, "TANDEM_RANK", "0", "TANDEM_WORLD", "1"), TDM_OK);
    assert_null(launch.transport);
}

TEST(our_own_variables)
{
    struct tdmi_launch launch;
    assert_int_equal(READ(&launch, NULL, "TANDEM_RANK", "2", "TANDEM_WORLD", "4", "TANDEM_ADDRESS",
                          "[::1]:29500", "TANDEM_TOKEN", "secret", "TANDEM_DEADLINE", "7.5", "RANK",
                          "9", "WORLD_SIZE", "10"),
                     TDM_OK);
    assert_int_equal(launch.rank, 2);
    assert_int_equal(launch.world, 4);
    assert_string_equal(launch.host, "::1");
    assert_int_equal(launch.port, 29500);
    assert_string_equal(launch.token, "secret");
    assert_string_equal(launch.transport, "tcp");
    assert_true(launch.deadline == 7.5);
    assert_int_equal(launch.listener, 0);
    assert_int_equal(READ(&launch, NULL, "TANDEM_RANK", "0", "TANDEM_WORLD", "2", "TANDEM_ADDRESS",
                          "127.0.0.1:29500", "TANDEM_LISTENER", "7"),
                     TDM_OK);
    assert_int_equal(launch.listener, 7);
}

/* Its agent's store listens on the port that it names. */
TEST(variables_of_torchrun)
{
    struct tdmi_launch launch;
    assert_int_equal(READ(&launch, NULL, "RANK", "1", "WORLD_SIZE", "2", "MASTER_ADDR", "node0",
                          "MASTER_PORT", "29400", "TORCHELASTIC_USE_AGENT_STORE", "True",
                          "TORCHELASTIC_RUN_ID", "job7"),
                     TDM_OK);
    assert_int_equal(launch.rank, 1);
    assert_string_equal(launch.host, "node0");
    assert_int_equal(launch.port, 29401);
    assert_int_equal(launch.n_ports, 16);
    assert_string_equal(launch.token, "job7");
    assert_int_equal(READ(&launch, NULL, "RANK", "1", "WORLD_SIZE", "2", "MASTER_ADDR", "node0",
                          "MASTER_PORT", "29400"),
                     TDM_OK);
    assert_int_equal(launch.port, 29400);
}

static void expect_mpi(const struct tdmi_launch *launch, const char *launcher, const char *first,
                       const char *second)
{
    assert_int_equal(launch->rank, 1);
    assert_int_equal(launch->world, 4);
    assert_string_equal(launch->transport, "mpi");
    assert_string_equal(launch->launcher, launcher);
    assert_string_equal(launch->mpis[0], first);
    if (second)
        assert_string_equal(launch->mpis[1], second);
    else
        assert_null(launch->mpis[1]);
}

TEST(variables_of_mpi)
{
    struct tdmi_launch launch;
    assert_int_equal(READ(&launch, NULL, "OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "4",
                          "PMIX_RANK", "1", "SLURM_PROCID", "0", "SLURM_NTASKS", "2", "RANK", "0",
                          "WORLD_SIZE", "2"),
                     TDM_OK);
    expect_mpi(&launch, "Open MPI's mpirun", "openmpi", NULL);
    assert_int_equal(READ(&launch, NULL, "PMI_RANK", "1", "PMI_SIZE", "4", "MPI_LOCALRANKID", "1",
                          "MPI_LOCALNRANKS", "2", "SLURM_STEP_ID", "0"),
                     TDM_OK);
    expect_mpi(&launch, "MPICH's mpiexec", "mpich", NULL);
    assert_int_equal(READ(&launch, NULL, "PMI_RANK", "1", "PMI_SIZE", "4"), TDM_OK);
    expect_mpi(&launch, "an MPI launcher that sets PMI_RANK", "mpich", "openmpi");
}

TEST(variables_of_srun)
{
    struct tdmi_launch launch;
    assert_int_equal(READ(&launch, NULL, "PMIX_RANK", "1", "SLURM_STEP_ID", "0", "SLURM_PROCID",
                          "1", "SLURM_NTASKS", "8", "SLURM_STEP_NUM_TASKS", "4"),
                     TDM_OK);
    expect_mpi(&launch, "srun --mpi=pmix", "openmpi", "mpich");
    assert_int_equal(READ(&launch, NULL, "PMIX_RANK", "1", "SLURM_STEP_ID", "0", "SLURM_PROCID",
                          "1", "SLURM_NTASKS", "4"),
                     TDM_OK);
    expect_mpi(&launch, "srun --mpi=pmix", "openmpi", "mpich");
    assert_int_equal(READ(&launch, NULL, "PMI_RANK", "1", "PMI_SIZE", "4", "SLURM_STEP_ID", "0",
                          "SLURM_PROCID", "1", "SLURM_NTASKS", "4"),
                     TDM_OK);
    /* Open MPI would end the process in MPI_Init. */
    expect_mpi(&launch, "srun --mpi=pmi2", "mpich", NULL);
    /* A batch script is one process, however many tasks the job may have. */
    assert_int_equal(READ(&launch, NULL, "SLURM_PROCID", "0", "SLURM_NTASKS", "4"), TDM_OK);
    assert_int_equal(launch.world, 1);
    assert_int_equal(READ(&launch, NULL, "SLURM_STEP_ID", "4294967290", "SLURM_PROCID", "0",
                          "SLURM_NTASKS", "4", "SLURM_STEP_NUM_TASKS", "1"),
                     TDM_OK);
    assert_int_equal(launch.world, 1);
    /* srun starts torchrun once on each node */
    assert_int_equal(READ(&launch, NULL, "PMIX_RANK", "1", "SLURM_STEP_ID", "0", "SLURM_PROCID",
                          "1", "SLURM_NTASKS", "2", "RANK", "3", "WORLD_SIZE", "4", "MASTER_ADDR",
                          "node0", "MASTER_PORT", "29400", "TORCHELASTIC_RUN_ID", "7"),
                     TDM_OK);
    assert_string_equal(launch.launcher, "torchrun");
    assert_int_equal(launch.rank, 3);
}

TEST(tasks_of_srun_without_mpi_are_refused)
{
    struct tdmi_launch launch;
    tdm_error err = {0};
    assert_int_equal(READ(&launch, &err, "SLURM_STEP_ID", "0", "SLURM_PROCID", "2", "SLURM_NTASKS",
                          "4", "SLURM_STEP_NUM_TASKS", "4"),
                     TDM_E_ABSENT);
    assert_int_equal(err.n_frames, 1);
    assert_says(&err, "srun started 4 tasks without MPI");
    assert_says(&err, "srun --mpi=pmix");
    assert_int_equal(launch.rank, 2);
    assert_int_equal(
        READ(&launch, &err, "SLURM_STEP_ID", "0", "SLURM_PROCID", "2", "SLURM_NTASKS", "4"),
        TDM_E_ABSENT);
    assert_int_equal(READ(&launch, &err, "SLURM_STEP_ID", "0", "SLURM_PROCID", "2", "SLURM_NTASKS",
                          "4", "TANDEM_RANK", "0", "TANDEM_WORLD", "1"),
                     TDM_OK);
    assert_int_equal(launch.world, 1);
}

TEST(the_transport_is_the_plugin_of_an_mpi_or_a_sentence)
{
    const struct tdmi_transport_table *thin = NULL, *table = NULL;
    const struct tdmi_launch launch = {
        .launcher = "srun --mpi=pmix", .world = 4, .mpis = {"openmpi", "mpich"}};
    tdm_error err = {0};
    assert_int_equal(tdmi_transport_find("mpi", &thin, NULL), TDM_OK);
    assert_non_null(thin->load);
    if (TDM_HAVE_OPENMPI || TDM_HAVE_MPICH) {
        assert_int_equal(thin->load(&launch, &table, &err), TDM_OK);
        assert_string_equal(table->name, "mpi");
        assert_null(table->load);
        return;
    }
    assert_int_equal(thin->load(&launch, &table, &err), TDM_E_ABSENT);
    assert_null(table);
    assert_int_equal(err.n_frames, 1);
    assert_says(&err, "srun --mpi=pmix started 4 ranks, but this tandem has no part for any MPI");
    assert_says(&err, "libopenmpi-dev");
}

TEST(what_is_missing_or_wrong_is_named)
{
    struct tdmi_launch launch;
    tdm_error err = {0};
    assert_int_equal(READ(&launch, &err, "TANDEM_RANK", "0"), TDM_E_USAGE);
    assert_says(&err, "TANDEM_WORLD is not set");
    assert_int_equal(READ(&launch, &err, "TANDEM_RANK", "2", "TANDEM_WORLD", "2"), TDM_E_USAGE);
    assert_says(&err, "TANDEM_RANK is '2'; a number from 0 to 1 is accepted");
    assert_int_equal(READ(&launch, &err, "TANDEM_RANK", "x", "TANDEM_WORLD", "2"), TDM_E_USAGE);
    assert_int_equal(
        READ(&launch, &err, "TANDEM_RANK", "0", "TANDEM_WORLD", "2", "TANDEM_ADDRESS", "node0"),
        TDM_E_USAGE);
    assert_says(&err, "TANDEM_ADDRESS is 'node0'");
    assert_int_equal(READ(&launch, &err, "TANDEM_RANK", "0", "TANDEM_WORLD", "2"), TDM_E_USAGE);
    assert_says(&err, "TANDEM_ADDRESS is not set; host:port of rank 0 is accepted");
    assert_int_equal(READ(&launch, &err, "RANK", "0", "WORLD_SIZE", "2"), TDM_E_USAGE);
    assert_says(&err, "MASTER_PORT is not set");
    assert_int_equal(READ(&launch, &err, "RANK", "0", "WORLD_SIZE", "2", "MASTER_ADDR", "node0"),
                     TDM_E_USAGE);
    assert_says(&err, "MASTER_PORT is not set");
    assert_int_equal(READ(&launch, &err, "RANK", "0", "WORLD_SIZE", "2", "MASTER_PORT", "5"),
                     TDM_E_USAGE);
    assert_says(&err, "MASTER_ADDR");
    assert_int_equal(READ(&launch, &err, "TANDEM_DEADLINE", "soon"), TDM_E_USAGE);
    assert_says(&err, "TANDEM_DEADLINE");
}

TEST_MAIN(NULL, NULL)
