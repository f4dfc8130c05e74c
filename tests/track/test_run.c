/* The run folder: who may open it, and what it remembers. */
#include "unit.h"
#include "track/run.h"
#include "base/file/file.h"
#include "base/memory.h"
#include "tandem/log.h"
#include "track/runs.h"

static void check_refused(const char *path, enum tdmi_run_mode mode, tdm_status status,
                          const char *says)
{
    tdmi_run *run = NULL;
    tdm_error err = {0};
    assert_int_equal(tdmi_run_open(path, mode, &run, &err), status);
    assert_null(run);
    if (strstr(tdm_error_sentence(&err, 0), says) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", tdm_error_sentence(&err, 0), says);
}

/* ---- opening ---------------------------------------------------------------------------- */

TEST_WITH(a_new_run_makes_its_folder_and_parents_and_keeps_it_once_saved, make_folder,
          remove_folder)
{
    char path[1024];
    in_folder(state, "a/b/run", path);
    tdmi_run *run = open_run(path, TDMI_RUN_NEW);
    assert_string_equal(tdmi_run_path(run), path);
    assert_int_equal(tdmi_run_found(run), TDMI_RUN_NONE);
    assert_null(tdmi_run_recorded(run, "options"));
    put_lines(run, 1, 1);
    tdmi_run_close(run);
    assert_int_equal(tdmi_file_kind_of(path), TDMI_FILE_MISSING); /* it never was a run */
    run = open_run(path, TDMI_RUN_NEW);
    assert_int_equal(tdmi_run_save(run, TDMI_RUN_RUNNING, NULL), TDM_OK);
    tdmi_run_close(run);
    assert_int_equal(tdmi_file_kind_of(path), TDMI_FILE_FOLDER);
}

TEST_WITH(an_empty_folder_and_one_with_only_a_lock_are_new, make_folder, remove_folder)
{
    char path[1024];
    in_folder(state, "", path);
    for (int i = 0; i < 2; i++)
        tdmi_run_close(open_run(path, TDMI_RUN_NEW));
    put_text(in_folder(state, ".hidden", path), "x");
    tdmi_run_close(open_run(*state, TDMI_RUN_RESUME));
}

TEST_WITH(a_run_that_ended_before_it_began_is_no_obstacle, make_folder, remove_folder)
{
    char path[1024];
    in_folder(state, "metrics.jsonl", path);
    for (int mode = TDMI_RUN_NEW; mode <= TDMI_RUN_RESUME; mode++) {
        put_text(path, "{\"step\":1}\n"); /* as a killed process leaves it */
        tdmi_run *run = open_run(*state, (enum tdmi_run_mode)mode);
        assert_int_equal(tdmi_file_kind_of(path), TDMI_FILE_MISSING);
        tdmi_run_close(run);
    }
    put_text(path, "{\"step\":1}\n");
    /* Where there is a checkpoint too, somebody lost a record: nothing is touched. */
    char other[1024];
    put_text(in_folder(state, "last.safetensors", other), "x");
    check_refused(*state, TDMI_RUN_RESUME, TDM_E_USAGE, "last.safetensors");
    TDMI_AT_END(free_at) char *text = text_of(path);
    assert_string_equal(text, "{\"step\":1}\n");
}

TEST_WITH(an_existing_run_is_opened_by_resume_only, make_folder, remove_folder)
{
    tdmi_run *run = open_run(*state, TDMI_RUN_NEW);
    assert_int_equal(tdmi_run_save(run, TDMI_RUN_RUNNING, NULL), TDM_OK);
    tdmi_run_close(run);
    check_refused(*state, TDMI_RUN_NEW, TDM_E_USAGE, "--resume");
    run = open_run(*state, TDMI_RUN_RESUME);
    assert_int_equal(tdmi_run_found(run), TDMI_RUN_RUNNING);
    tdmi_run_close(run);
}

TEST_WITH(a_folder_of_other_files_is_left_alone, make_folder, remove_folder)
{
    char path[1024];
    put_text(in_folder(state, "thesis.txt", path), "x");
    check_refused(*state, TDMI_RUN_NEW, TDM_E_USAGE, "thesis.txt");
    check_refused(*state, TDMI_RUN_RESUME, TDM_E_USAGE, "thesis.txt");
    assert_int_equal(tdmi_file_kind_of(in_folder(state, "lock", path)), TDMI_FILE_MISSING);
    in_folder(state, "thesis.txt", path);
    check_refused(path, TDMI_RUN_NEW, TDM_E_USAGE, "needs a folder");
}

TEST_WITH(a_run_in_use_is_refused, make_folder, remove_folder)
{
    TDMI_AT_END(tdmi_run_close_at) tdmi_run *run = open_run(*state, TDMI_RUN_NEW);
    char pid[32];
    snprintf(pid, sizeof pid, "process %ld", (long)getpid());
    check_refused(*state, TDMI_RUN_RESUME, TDM_E_SYSTEM, pid);
    assert_int_equal(tdmi_run_save(run, TDMI_RUN_RUNNING, NULL), TDM_OK);
    check_refused(*state, TDMI_RUN_RESUME, TDM_E_SYSTEM, pid);
}

TEST_WITH(a_folder_that_cannot_be_made_is_the_systems_refusal, make_folder, remove_folder)
{
    char path[1024];
    snprintf(path, sizeof path, "/proc/no-folder-here/run");
    tdmi_run *run = NULL;
    tdm_error err = {0};
    assert_int_equal(tdmi_run_open(path, TDMI_RUN_NEW, &run, &err), TDM_E_SYSTEM);
}

TEST_WITH(a_damaged_or_newer_record_is_bad_input, make_folder, remove_folder)
{
    static const struct {
        const char *record, *says;
    } cases[] = {
        {"{\"format_version\":1,\"sta", "run.json"},
        {"", "run.json"},
        {"[]", "no run record"},
        {"{\"format_version\":2,\"status\":\"running\"}", "newer"},
        {"{\"format_version\":1,\"status\":\"asleep\"}", "asleep"},
        {"{\"format_version\":1}", "(none)"},
    };
    char path[1024];
    in_folder(state, "run.json", path);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tdm_json_document *document = NULL;
        put_text(path, cases[i].record);
        check_refused(*state, TDMI_RUN_RESUME, TDM_E_INPUT, cases[i].says);
        assert_int_equal(tdmi_run_read(*state, NULL, &document, NULL), TDM_E_INPUT);
        assert_null(document);
    }
}

TEST_WITH(leftovers_of_killed_writers_are_removed, make_folder, remove_folder)
{
    char path[1024];
    put_text(in_folder(state, ".run.json.12345.tmp", path), "{");
    tdmi_run_close(open_run(*state, TDMI_RUN_NEW));
    assert_int_equal(tdmi_file_kind_of(path), TDMI_FILE_MISSING);
}

/* ---- the record ------------------------------------------------------------------------- */

TEST_WITH(the_record_keeps_what_was_set_and_not_forgotten, make_folder, remove_folder)
{
    static const char options[] =
        "{\"seed\":9007199254740993,\"rate\":0.1,\"x\":[true,null,\"\\u00e4\",{}]}";
    tdm_error err = {0};
    tdmi_run *run = open_run(*state, TDMI_RUN_NEW);
    assert_int_equal(tdmi_run_set(run, "options", options, &err), TDM_OK);
    assert_int_equal(tdmi_run_set(run, "clock", "{}", &err), TDM_OK);
    assert_int_equal(tdmi_run_set(run, "data", "{}", &err), TDM_OK);
    assert_int_equal(tdmi_run_set(run, "machine", "{\"cpu\":\"old\"}", &err), TDM_OK);
    assert_int_equal(tdmi_run_save(run, TDMI_RUN_RUNNING, &err), TDM_OK);
    tdmi_run_forget(run, "data");
    assert_int_equal(tdmi_run_save(run, TDMI_RUN_STOPPED, &err), TDM_OK);
    tdmi_run_close(run);

    run = open_run(*state, TDMI_RUN_RESUME);
    assert_int_equal(tdmi_run_found(run), TDMI_RUN_STOPPED);
    const tdm_json_value *found = tdmi_run_recorded(run, "options");
    assert_int_equal(tdm_json_as_integer(tdm_json_member(found, "seed"), 0), 9007199254740993);
    tdmi_run_forget(run, "clock");
    assert_int_equal(tdmi_run_set(run, "machine", "{\"cpu\":\"newer\"}", &err), TDM_OK);
    assert_int_equal(tdmi_run_set(run, "machine", "{\"cpu\":\"new\"}", &err), TDM_OK);
    assert_int_equal(tdmi_run_set(run, "result", "{\"n\":7}", &err), TDM_OK);
    assert_int_equal(tdmi_run_save(run, TDMI_RUN_FINISHED, &err), TDM_OK);
    assert_string_equal(
        tdm_json_as_string(tdm_json_member(tdmi_run_recorded(run, "machine"), "cpu"), ""), "old");
    tdmi_run_close(run);

    enum tdmi_run_status status = TDMI_RUN_NONE;
    tdm_json_document *document = NULL;
    assert_int_equal(tdmi_run_read(*state, &status, &document, &err), TDM_OK);
    assert_int_equal(status, TDMI_RUN_FINISHED);
    const tdm_json_value *root = tdm_json_root(document);
    assert_int_equal(tdm_json_as_integer(tdm_json_member(root, "format_version"), 0), 1);
    assert_int_equal(tdm_json_as_integer(tdm_json_member(root, "sittings"), 0), 2);
    assert_string_equal(tdm_json_as_string(tdm_json_member(root, "tandem"), ""), tdm_version());
    assert_int_equal(strlen(tdm_json_as_string(tdm_json_member(root, "started"), "")), 20);
    assert_int_equal(strlen(tdm_json_as_string(tdm_json_member(root, "ended"), "")), 20);
    assert_null(tdm_json_member(root, "data"));
    assert_null(tdm_json_member(root, "clock"));
    const tdm_json_value *kept = tdm_json_member(root, "options");
    assert_int_equal(tdm_json_as_integer(tdm_json_member(kept, "seed"), 0), 9007199254740993);
    assert_true(tdm_json_as_number(tdm_json_member(kept, "rate"), 0) == 0.1);
    const tdm_json_value *list = tdm_json_member(kept, "x");
    assert_int_equal(tdm_json_count(list), 4);
    assert_true(tdm_json_as_bool(tdm_json_at(list, 0), false));
    assert_int_equal(tdm_json_kind_of(tdm_json_at(list, 1)), TDM_JSON_NULL);
    assert_string_equal(tdm_json_as_string(tdm_json_at(list, 2), ""), "\xc3\xa4");
    assert_int_equal(tdm_json_kind_of(tdm_json_at(list, 3)), TDM_JSON_OBJECT);
    assert_string_equal(
        tdm_json_as_string(tdm_json_member(tdm_json_member(root, "machine"), "cpu"), ""), "new");
    tdm_json_document_free(document);
}

TEST_WITH(a_run_that_goes_on_has_not_ended, make_folder, remove_folder)
{
    tdm_json_document *document = NULL;
    tdmi_run *run = open_run(*state, TDMI_RUN_NEW);
    assert_int_equal(tdmi_run_save(run, TDMI_RUN_STOPPED, NULL), TDM_OK);
    assert_int_equal(tdmi_run_save(run, TDMI_RUN_RUNNING, NULL), TDM_OK);
    tdmi_run_close(run);
    assert_int_equal(tdmi_run_read(*state, NULL, &document, NULL), TDM_OK);
    const tdm_json_value *ended = tdm_json_member(tdm_json_root(document), "ended");
    assert_non_null(ended);
    assert_int_equal(tdm_json_kind_of(ended), TDM_JSON_NULL);
    tdm_json_document_free(document);
}

TEST_WITH(a_missing_run_reads_as_none, make_folder, remove_folder)
{
    char path[1024];
    enum tdmi_run_status status = TDMI_RUN_FAILED;
    tdm_json_document *document = NULL;
    assert_int_equal(tdmi_run_read(in_folder(state, "none", path), &status, &document, NULL),
                     TDM_OK);
    assert_int_equal(status, TDMI_RUN_NONE);
    assert_null(document);
    assert_int_equal(tdmi_run_read(*state, &status, NULL, NULL), TDM_OK);
    assert_string_equal(tdmi_run_status_name(status), "none");
}

TEST_WITH(wrong_sections_are_refused_and_change_nothing, make_folder, remove_folder)
{
    tdm_error err = {0};
    tdmi_run *run = open_run(*state, TDMI_RUN_NEW);
    assert_int_equal(tdmi_run_set(run, "data", "{\"images\":5}", &err), TDM_OK);
    assert_int_equal(tdmi_run_set(run, "status", "\"finished\"", &err), TDM_E_BUG);
    assert_int_not_equal(tdmi_run_set(run, "data", "{\"images\":", &err), TDM_OK);
    assert_int_not_equal(tdmi_run_set(run, "other", "", &err), TDM_OK);
    assert_int_equal(tdmi_run_save(run, TDMI_RUN_NONE, &err), TDM_E_BUG);
    assert_int_equal(tdmi_run_save(run, TDMI_RUN_RUNNING, &err), TDM_OK);
    tdmi_run_close(run);
    run = open_run(*state, TDMI_RUN_RESUME);
    assert_int_equal(
        tdm_json_as_integer(tdm_json_member(tdmi_run_recorded(run, "data"), "images"), 0), 5);
    assert_null(tdmi_run_recorded(run, "other"));
    tdmi_run_close(run);
}

/* ---- metrics ---------------------------------------------------------------------------- */

TEST_WITH(lines_are_cut_back_to_a_step_and_go_on_from_there, make_folder, remove_folder)
{
    TDMI_AT_END(tdmi_run_close_at) tdmi_run *run = open_run(*state, TDMI_RUN_NEW);
    put_lines(run, 1, 4);
    assert_int_equal(tdmi_run_line(run, "{\"no\":1}", 8, NULL), TDM_OK);
    assert_int_equal(tdmi_run_sync(run, NULL), TDM_OK);
    assert_int_equal(tdmi_run_cut(run, up_to(2), NULL), TDM_OK);
    check_metrics(state, "{\"step\":1}\n{\"step\":2}\n{\"no\":1}\n");
    put_lines(run, 3, 3);
    check_metrics(state, "{\"step\":1}\n{\"step\":2}\n{\"no\":1}\n{\"step\":3}\n");
}

/* An epoch's line has the step of the checkpoint that was written when its validation was stopped.
 */
TEST_WITH(the_line_of_an_epoch_that_is_to_end_again_goes_with_what_follows_it, make_folder,
          remove_folder)
{
    static const char *const events[] = {"note", "checkpoint", "epoch", "note", "checkpoint"};
    char path[1024], text[400];
    for (int is_inside = 0; is_inside < 2; is_inside++) {
        size_t n = (size_t)snprintf(text, sizeof text, "{\"event\":\"epoch\",\"step\":5}\n");
        size_t kept = 0;
        for (int i = 0; i < 5; i++) {
            if (i == 2)
                kept = n;
            n += (size_t)snprintf(text + n, sizeof text - n, "{\"event\":\"%s\",\"step\":6}\n",
                                  events[i]);
        }
        tdmi_run *run = open_run(*state, TDMI_RUN_RESUME);
        put_text(in_folder(state, "metrics.jsonl", path), text);
        assert_int_equal(tdmi_run_cut(run, (struct tdmi_lines_end){6, is_inside == 1}, NULL),
                         TDM_OK);
        text[is_inside ? kept : n] = '\0';
        check_metrics(state, text);
        tdmi_run_close(run);
    }
}

TEST_WITH(a_cut_without_metrics_is_fine, make_folder, remove_folder)
{
    TDMI_AT_END(tdmi_run_close_at) tdmi_run *run = open_run(*state, TDMI_RUN_NEW);
    assert_int_equal(tdmi_run_cut(run, up_to(0), NULL), TDM_OK);
    assert_int_equal(tdmi_run_sync(run, NULL), TDM_OK);
    check_metrics(state, "(none)");
}

TEST_WITH(a_torn_line_goes_wherever_it_was_torn, make_folder, remove_folder)
{
    static const char *const ends[] = {"{", "{\"step\":3", "{\"step\":3}"};
    char path[1024], text[128];
    for (size_t i = 0; i < 6; i++) {
        char folder[1024];
        in_folder(state, "run", folder);
        tdmi_run *run = open_run(folder, TDMI_RUN_NEW);
        in_folder(state, "run/metrics.jsonl", path);
        snprintf(text, sizeof text, "{\"step\":1}\n{\"step\":2}\n%s", ends[i % 3]);
        put_text(path, text);
        if (i >= 3)
            assert_int_equal(tdmi_run_cut(run, up_to(9), NULL), TDM_OK);
        put_lines(run, 4, 4);
        char *found = text_of(path);
        assert_string_equal(found, "{\"step\":1}\n{\"step\":2}\n{\"step\":4}\n");
        free(found);
        tdmi_run_close(run);
        remove_tree(folder);
    }
}

TEST_WITH(a_long_torn_line_goes, make_folder, remove_folder)
{
    char path[1024];
    TDMI_AT_END(tdmi_run_close_at) tdmi_run *run = open_run(*state, TDMI_RUN_NEW);
    char *text = malloc(20001);
    memset(text, 'x', 20000);
    memcpy(text, "{\"step\":1}\n", 11);
    text[20000] = '\0';
    put_text(in_folder(state, "metrics.jsonl", path), text);
    free(text);
    put_lines(run, 2, 2);
    check_metrics(state, "{\"step\":1}\n{\"step\":2}\n");
}

TEST_WITH(a_damaged_line_goes_with_the_cut, make_folder, remove_folder)
{
    char path[1024];
    TDMI_AT_END(tdmi_run_close_at) tdmi_run *run = open_run(*state, TDMI_RUN_NEW);
    put_text(in_folder(state, "metrics.jsonl", path), "nonsense\n{\"step\":1}\n[]\n{\"step\":2}\n");
    assert_int_equal(tdmi_run_cut(run, up_to(1), NULL), TDM_OK);
    check_metrics(state, "{\"step\":1}\n");
}

TEST_WITH(a_line_with_a_newline_is_our_own_mistake, make_folder, remove_folder)
{
    TDMI_AT_END(tdmi_run_close_at) tdmi_run *run = open_run(*state, TDMI_RUN_NEW);
    assert_int_equal(tdmi_run_line(run, "{\n}", 3, NULL), TDM_E_BUG);
    assert_int_equal(tdmi_run_line(run, "", 0, NULL), TDM_E_BUG);
    check_metrics(state, "(none)");
}

TEST_WITH(every_failing_allocation_is_an_ordinary_error, make_folder, remove_folder)
{
    char path[1024];
    bool is_done = false;
    in_folder(state, "run", path);
    for (int64_t n = 1; !is_done; n++) {
        assert_true(n < 2000);
        tdm_error err = {0};
        tdmi_run *run = NULL;
        tdmi_memory_fail_from(n);
        tdm_status status = tdmi_run_open(path, TDMI_RUN_RESUME, &run, &err);
        if (status == TDM_OK)
            status = tdmi_run_set(run, "data", "{\"images\":[1,2]}", &err);
        if (status == TDM_OK)
            status = tdmi_run_save(run, TDMI_RUN_RUNNING, &err);
        if (status == TDM_OK)
            status = tdmi_run_line(run, "{\"step\":1}", 10, &err);
        if (status == TDM_OK)
            status = tdmi_run_cut(run, up_to(0), &err);
        tdmi_memory_fail_from(0);
        is_done = status == TDM_OK;
        if (!is_done)
            assert_int_equal(status, TDM_E_MEMORY);
        tdmi_run_close(run);
        remove_tree(path);
    }
}

TEST_MAIN(be_silent, NULL)
