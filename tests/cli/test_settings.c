/*
 * Where a setting comes from and which place wins, on the real tables of the command.
 */
#include "cli/settings.h"
#include "unit.h"

#include <unistd.h>

static const struct tdmi_command *doctor(void)
{
    const struct tdmi_command *command = NULL;
    tdm_error err = {0};
    assert_int_equal(tdmi_command_find("doctor", &command, &err), TDM_OK);
    return command;
}

/* What --time (of doctor) came out as, and from where. */
static const struct tdmi_setting *time_of(const struct tdmi_settings *settings)
{
    const struct tdmi_option *row = tdmi_option_find(settings->command->options, "time");
    assert_non_null(row);
    return &settings->of[TDMI_TABLE_OWN][row - settings->command->options];
}

TEST(the_stronger_source_wins)
{
    static const struct {
        const char *argument, *specific, *general, *file;
        double seconds;
        enum tdmi_origin origin;
    } cases[] = {
        {NULL, NULL, NULL, "", 0, TDMI_FROM_DEFAULT},
        {NULL, NULL, NULL, "time = 2", 2, TDMI_FROM_CONFIG},
        {NULL, NULL, NULL, "time = 2\n[doctor]\ntime = 3", 3, TDMI_FROM_CONFIG_SECTION},
        {NULL, NULL, "TANDEM_TIME=4", "[doctor]\ntime = 3", 4, TDMI_FROM_ENVIRONMENT},
        {NULL, "TANDEM_DOCTOR_TIME=5", "TANDEM_TIME=4", "", 5, TDMI_FROM_ENVIRONMENT},
        {"--time=6s", "TANDEM_DOCTOR_TIME=5", NULL, "time = 2", 6, TDMI_FROM_COMMAND_LINE},
        {"--time=6s", NULL, "TANDEM_TIME=4", "", 6, TDMI_FROM_COMMAND_LINE},
        {NULL, "TANDEM_DOCTOR_TIME=", NULL, "time = 2", 2, TDMI_FROM_CONFIG},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static struct tdmi_settings settings;
        char program[] = "tandem", command[] = "doctor", argument[64] = "";
        char path[] = "settings-XXXXXX";
        char *argv[] = {program, command, argument, NULL};
        const char *environment[3] = {NULL};
        int n = 0;
        tdm_error err = {0};
        memset(&settings, 0, sizeof settings);
        snprintf(argument, sizeof argument, "%s", cases[i].argument ? cases[i].argument : "");
        if (cases[i].general)
            environment[n++] = cases[i].general;
        if (cases[i].specific)
            environment[n++] = cases[i].specific;
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_true(write(fd, cases[i].file, strlen(cases[i].file)) >= 0);
        close(fd);

        assert_int_equal(
            tdmi_settings_read_arguments(&settings, cases[i].argument ? 3 : 2, argv, &err), TDM_OK);
        assert_int_equal(tdmi_settings_read_environment(&settings, environment, &err), TDM_OK);
        assert_int_equal(tdmi_settings_read_config(&settings, path, &err), TDM_OK);
        unlink(path);
        assert_int_equal(time_of(&settings)->origin, cases[i].origin);
        assert_true(time_of(&settings)->value.number == cases[i].seconds);
    }
}

TEST(options_may_stand_anywhere_until_two_dashes)
{
    static struct tdmi_settings settings;
    char words[][16] = {"tandem", "--json", "help", "one", "--no-quiet", "--", "--two", "-"};
    char *argv[9] = {NULL};
    tdm_error err = {0};
    memset(&settings, 0, sizeof settings);
    for (int i = 0; i < 8; i++)
        argv[i] = words[i];
    assert_int_equal(tdmi_settings_read_arguments(&settings, 8, argv, &err), TDM_OK);
    assert_string_equal(settings.command->name, "help");
    assert_int_equal(settings.n_arguments, 3);
    assert_string_equal(settings.arguments[0], "one");
    assert_string_equal(settings.arguments[1], "--two");
    assert_string_equal(settings.arguments[2], "-");
    struct tdmi_globals globals = {.quiet = true};
    tdmi_settings_store(&settings, &globals, NULL);
    assert_true(globals.json);
    assert_false(globals.quiet);
}

/* The arrays in struct tdmi_settings and the frame have fixed room: every table must fit, and the
 * names must be usable in all sources. */
TEST(every_option_table_is_sound)
{
    for (const struct tdmi_command *const *at = tdmi_commands; *at; at++) {
        int n = 0;
        assert_true((*at)->values_bytes <= TDMI_VALUES_BYTES);
        assert_true((*at)->values_bytes > 0 || !(*at)->options->name);
        for (const struct tdmi_option *row = (*at)->options; row->name; row++, n++) {
            print_message("# %s --%s\n", (*at)->name, row->name);
            assert_non_null(row->help);
            assert_non_null(row->group);
            assert_true(row->offset < (*at)->values_bytes);
            assert_true(strspn(row->name, "abcdefghijklmnopqrstuvwxyz-") == strlen(row->name));
            assert_ptr_equal(tdmi_option_find((*at)->options, row->name), row);
            assert_null(tdmi_option_find(tdmi_global_options, row->name));
            assert_true(strncmp(row->name, "no-", 3) != 0);
            assert_true((row->type == TDMI_OPTION_CHOICE) == (row->choices != NULL));
        }
        assert_true(n <= TDMI_OPTIONS_MAX);
    }
    assert_true(doctor()->options[0].name != NULL);
}

TEST_MAIN(NULL, NULL)
