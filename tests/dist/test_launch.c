/* The rank of a process, from the variables of launchers. */
#include "dist/launch.h"
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
    assert_string_equal(launch.token, "job7");
    assert_int_equal(READ(&launch, NULL, "RANK", "1", "WORLD_SIZE", "2", "MASTER_ADDR", "node0",
                          "MASTER_PORT", "29400"),
                     TDM_OK);
    assert_int_equal(launch.port, 29400);
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
    assert_int_equal(READ(&launch, &err, "TANDEM_RANK", "0", "TANDEM_WORLD", "2", "TANDEM_ADDRESS",
                          "node0"),
                     TDM_E_USAGE);
    assert_says(&err, "TANDEM_ADDRESS is 'node0'");
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
