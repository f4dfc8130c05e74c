/* Hosts that a script prints. */
#include "base/clock.h"
#include "base/scope.h"
#include "launch/hosts.h"
#include "tandem/event.h"
#include "unit.h"

static tdm_status ask(const char *script, tdmi_arena *arena, struct tdmi_hosts *hosts,
                      tdm_error *err)
{
    *err = (tdm_error){0};
    return tdmi_hosts_ask(script, 1.0, arena, hosts, err);
}

TEST(hosts_and_slots)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    struct tdmi_hosts hosts;
    tdm_error err;
    assert_int_equal(
        ask("printf '# those of today\\n a:2 \\n\\nnode-1.local # one\\n'", &arena, &hosts, &err),
        TDM_OK);
    assert_string_equal(hosts.list, "a:2,node-1.local:1");
    assert_int_equal(hosts.slots, 3);
    assert_int_equal(ask("true", &arena, &hosts, &err), TDM_OK);
    assert_string_equal(hosts.list, "");
    assert_int_equal(hosts.slots, 0);
}

TEST(lines_that_name_no_host)
{
    static const char *const lines[] = {"a b",     "a:", "a:0",    "a:x",
                                        "a:2,b:2", ":2", "a:9999", "a:-1"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
        struct tdmi_hosts hosts;
        tdm_error err;
        char script[60];
        snprintf(script, sizeof script, "echo '%s'", lines[i]);
        assert_int_equal(ask(script, &arena, &hosts, &err), TDM_E_INPUT);
        assert_non_null(strstr(tdm_error_sentence(&err, 0), "lines like host:2"));
    }
}

TEST(a_script_that_fails)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    struct tdmi_hosts hosts;
    tdm_error err;
    assert_int_equal(ask("echo a:1; exit 7", &arena, &hosts, &err), TDM_E_INPUT);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "exit status 7"));
}

TEST(a_script_that_hangs_is_ended)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    struct tdmi_hosts hosts;
    tdm_error err;
    const int64_t began = tdmi_clock_ns();
    assert_int_equal(ask("echo a:1; sleep 60 | cat", &arena, &hosts, &err), TDM_E_PEER);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "has not ended after 1 seconds"));
    assert_int_equal(ask("exec >&-; sleep 60", &arena, &hosts, &err), TDM_E_PEER);
    assert_true(tdmi_clock_seconds_since(began) < 20.0);
    tdm_stop_request();
    const tdm_status status = ask("sleep 60", &arena, &hosts, &err);
    tdm_stop_clear();
    assert_int_equal(status, TDM_E_STOPPED);
}

TEST(a_long_comment_is_one_line)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    struct tdmi_hosts hosts;
    tdm_error err;
    assert_int_equal(ask("printf '#%0600d b:1\\na:2\\n' 0", &arena, &hosts, &err), TDM_OK);
    assert_string_equal(hosts.list, "a:2");
}

TEST_MAIN(NULL, NULL)
