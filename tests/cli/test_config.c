/*
 * The config file's form: what entries a text gives, and which line is complained about.
 */
#include "cli/config.h"
#include "unit.h"

struct log {
    char text[1024];
};

static tdm_status write_down(void *self, const struct tdmi_config_entry *entry, tdm_error *err)
{
    struct log *log = self;
    size_t at = strlen(log->text);
    (void)err;
    snprintf(log->text + at, sizeof log->text - at, "%d:%s.%s=%s;", entry->line, entry->section,
             entry->key ? entry->key : "", entry->value ? entry->value : "");
    return TDM_OK;
}

static tdm_status read(const char *typed, struct log *log, tdm_error *err)
{
    char text[1024];
    memset(log, 0, sizeof *log);
    memset(text, 'x', sizeof text); /* what lies behind the end must not be read */
    memcpy(text, typed, strlen(typed));
    return tdmi_config_read(text, strlen(typed), "a.toml",
                            (struct tdmi_config_visitor){log, write_down}, err);
}

TEST(reads_every_form_of_value)
{
    static const struct {
        const char *typed, *entries;
    } cases[] = {
        {"", ""},
        {"\n\n# nothing\n   \t# still nothing", ""},
        {"seed = 7", "1:.seed=7;"},
        {"seed=7\n", "1:.seed=7;"},
        {"seed=7#seven\n", "1:.seed=7;"},
        {"seed = 7  # seven\r\nlr = 1e-3\r\n", "1:.seed=7;2:.lr=1e-3;"},
        {"[train]\nmodel = \"lenet5\"", "1:train.=;2:train.model=lenet5;"},
        {" [ train ]  # now\n\tresume = true", "1:train.=;2:train.resume=true;"},
        {"a = \"x # y\" # z", "1:.a=x # y;"},
        {"a = \"q\\\"\\\\\\t.\"", "1:.a=q\"\\\t.;"},
        {"a = 'C:\\dir # 1'", "1:.a=C:\\dir # 1;"},
        {"a = \"\"", "1:.a=;"},
        {"split = [0.9, 0.1] # two", "1:.split=0.9, 0.1;"},
        {"a = 1\n[x]\na = 2\n[y]\na = 3", "1:.a=1;2:x.=;3:x.a=2;4:y.=;5:y.a=3;"},
        {"a = -1.5e+3", "1:.a=-1.5e+3;"},
        {"a = 512M", "1:.a=512M;"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct log log;
        tdm_error err = {0};
        print_message("# %s\n", cases[i].entries);
        assert_int_equal(read(cases[i].typed, &log, &err), TDM_OK);
        assert_string_equal(log.text, cases[i].entries);
    }
}

TEST(complains_about_the_line)
{
    static const struct {
        const char *typed, *start;
    } cases[] = {
        {"seed", "a.toml, line 1: found a line of another form"},
        {"= 7", "a.toml, line 1: found a line of another form"},
        {"a = 1\n\nb =", "a.toml, line 3: found nothing where"},
        {"a = # 1", "a.toml, line 1: found nothing where"},
        {"a = 1 2", "a.toml, line 1: found more after the value"},
        {"a = \"1\" 2", "a.toml, line 1: found more after the value"},
        {"a = \"1", "a.toml, line 1: found a text without end"},
        {"a = \"1\\", "a.toml, line 1: found a text without end"},
        {"a = \"\\q\"", "a.toml, line 1: found a text without end or with an unknown \\ escape"},
        {"a = '1", "a.toml, line 1: found a value of another form"},
        {"a = [1", "a.toml, line 1: found a value of another form"},
        {"a = {}", "a.toml, line 1: found a value of another form"},
        {"[train", "a.toml, line 1: found a section of another form"},
        {"[]", "a.toml, line 1: found a section of another form"},
        {"[a.b]", "a.toml, line 1: found a section of another form"},
        {"[a] x", "a.toml, line 1: found a section of another form"},
        {"[[a]]", "a.toml, line 1: found a section of another form"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct log log;
        tdm_error err = {0};
        print_message("# %s\n", cases[i].typed);
        assert_int_equal(read(cases[i].typed, &log, &err), TDM_E_INPUT);
        assert_memory_equal(tdm_error_sentence(&err, 0), cases[i].start, strlen(cases[i].start));
    }
}

TEST(refuses_zero_bytes)
{
    char text[] = "a = 1\nb\0 = 2\n";
    struct log log = {{0}};
    tdm_error err = {0};
    assert_int_equal(tdmi_config_read(text, sizeof text - 1, "a.toml",
                                      (struct tdmi_config_visitor){&log, write_down}, &err),
                     TDM_E_INPUT);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "line 2: found a zero byte"));
}

TEST_MAIN(NULL, NULL)
