/*
 * A training that is stopped or killed anywhere and resumed ends with files that are byte-identical
 * to those of an uninterrupted one.
 */
#include "train/pictures.h"
#include "tandem/event.h"
#include "track/run.h"
#include "unit.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static const tdm_sink nobody = {NULL, NULL};

/* Does something at event number `at`, counted from 1. */
struct trap {
    int at, seen;
    bool kills;
};

static void spring(void *self, const tdm_event *event)
{
    struct trap *trap = self;
    (void)event;
    if (++trap->seen != trap->at)
        return;
    if (trap->kills)
        raise(SIGKILL);
    tdm_stop_request();
}

static int count_events(const struct tdm_train_options *options, struct tdm_train_result *result)
{
    struct trap trap = {0};
    must_train(options, (tdm_sink){&trap, spring}, result);
    return trap.seen;
}

/* The trainings that are interrupted: ending with an epoch, or inside one. */
static struct tdm_train_options training(const struct tree *tree, int kind)
{
    struct tdm_train_options options = small_training(tree);
    switch (kind) {
    case 0:
        break;
    case 1:
        options.steps = 17;
        options.checkpoint_every = 2;
        break;
    case 2:
        options.eval_every = 2;
        options.checkpoint_every = 1;
        break;
    case 3:
        options = small_norm_training(tree);
        options.epochs = 2;
        break;
    case 4: /* slots of two kinds, a product of momenta, averages, and counted validations */
        options.optimizer = "nadam:beta2=0.99";
        options.learning_rate = 0.004;
        options.ema = 0.9;
        options.clip_norm = 0.5;
        options.schedule = "plateau:factor=0.5,patience=0,threshold=0.5";
        options.epochs = 4;
        options.checkpoint_every = 3;
        break;
    default:
        options = small_norm_training(tree);
        options.epochs = 2;
        options.optimizer = "lamb";
        options.learning_rate = 0.01;
        options.ema = 0.99;
        break;
    }
    return options;
}

enum { n_kinds = 6 };

static void same_results(const struct tdm_train_result *a, const struct tdm_train_result *b)
{
    assert_int_equal(a->epochs, b->epochs);
    assert_int_equal(a->best_epoch, b->best_epoch);
    assert_int_equal(a->steps, b->steps);
    assert_memory_equal(&a->train, &b->train, sizeof a->train);
    assert_memory_equal(&a->val, &b->val, sizeof a->val);
    assert_int_equal(a->skipped, b->skipped);
    assert_int_equal(a->world, b->world);
}

TEST_WITH(a_training_stopped_at_any_event_resumes_to_the_same_files, begin_with_sixty,
          end_with_tree)
{
    static const int strides[n_kinds] = {2, 1, 3, 13, 3, 17};
    struct tree *tree = *state;
    for (int kind = 0; kind < n_kinds; kind++) {
        struct tdm_train_options options = training(tree, kind);
        struct tdm_train_result whole = {.struct_bytes = sizeof whole},
                                result = {.struct_bytes = sizeof result};
        char name[40];
        snprintf(name, sizeof name, "whole-%d", kind);
        options.run = below(tree, name);
        int n_events = count_events(&options, &whole), n_stops = 0;
        for (int at = 1; at <= n_events; at += strides[kind]) {
            char run[40];
            tdm_error err = {0};
            struct trap trap = {.at = at};
            snprintf(run, sizeof run, "stopped-%d-%d", kind, at);
            options.run = below(tree, run);
            options.resume = true;
            options.threads = 1 + at % 2;
            tdm_status status = tdm_train(&options, (tdm_sink){&trap, spring}, &result, &err);
            tdm_stop_clear();
            if (status != TDM_OK) {
                char text[3000];
                tdm_error_format(&err, text, sizeof text);
                if (status != TDM_E_STOPPED)
                    fail_msg("stopped at event %d: %s", at, text);
                n_stops++;
                must_train(&options, nobody, &result);
            }
            same_results(&result, &whole);
            snprintf(name, sizeof name, "whole-%d", kind);
            same_runs(tree, name, run);
            assert_string_equal(lines_of(tree, run, "epoch"), lines_of(tree, name, "epoch"));
        }
        assert_true(n_stops > 1);
    }
}

/* Reading all pictures may be long: who stops it has a run that says so, and its options. */
TEST_WITH(a_training_stopped_before_its_first_step_is_recorded, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = training(tree, 0);
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    options.run = below(tree, "whole");
    must_train(&options, nobody, &result);
    options.run = below(tree, "run");
    enum tdmi_run_status status;
    tdm_json_document *record;
    for (int n = 0; n < 2; n++) {
        struct trap trap = {.at = 1};
        tdm_error err = {0};
        char text[3000];
        options.resume = n > 0;
        assert_int_equal(tdm_train(&options, (tdm_sink){&trap, spring}, &result, &err),
                         TDM_E_STOPPED);
        tdm_stop_clear();
        tdm_error_format(&err, text, sizeof text);
        assert_non_null(strstr(text, "was stopped on request"));
        assert_non_null(strstr(text, "run keeps the options, and --resume continues"));
        assert_int_equal(tdmi_run_read(options.run, &status, &record, NULL), TDM_OK);
        assert_int_equal(status, TDMI_RUN_STOPPED);
        const tdm_json_value *asked = tdm_json_member(tdm_json_root(record), "options");
        assert_string_equal(tdm_json_as_string(tdm_json_member(asked, "model"), ""), "lenet5");
        tdm_json_document_free(record);
    }
    must_train(&options, nobody, &result);
    same_runs(tree, "whole", "run");
    struct trap trap = {.at = 1};
    assert_int_equal(tdm_train(&options, (tdm_sink){&trap, spring}, &result, NULL), TDM_E_STOPPED);
    tdm_stop_clear();
    assert_int_equal(tdmi_run_read(options.run, &status, NULL, NULL), TDM_OK);
    assert_int_equal(status, TDMI_RUN_FINISHED); /* as it was */
}

/* Train in a child that dies at an event, or after a while when at is 0. True: it died. */
static bool train_and_die(const struct tdm_train_options *options, int at, long microseconds)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct trap trap = {.at = at, .kills = true};
        struct tdm_train_result result = {.struct_bytes = sizeof result};
        tdm_status trained = tdm_train(options, (tdm_sink){&trap, spring}, &result, NULL);
        _exit(trained == TDM_OK ? 0 : 1);
    }
    if (at == 0) {
        struct timespec wait = {microseconds / 1000000, microseconds % 1000000 * 1000};
        nanosleep(&wait, NULL);
        kill(child, SIGKILL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) {
        assert_int_equal(WTERMSIG(status), SIGKILL);
        return true;
    }
    assert_int_equal(WEXITSTATUS(status), 0);
    return false;
}

TEST_WITH(a_training_killed_again_and_again_ends_with_the_same_files, begin_with_sixty,
          end_with_tree)
{
    struct tree *tree = *state;
    for (int kind = 0; kind < n_kinds; kind++) {
        struct tdm_train_options options = training(tree, kind);
        struct tdm_train_result whole = {.struct_bytes = sizeof whole},
                                result = {.struct_bytes = sizeof result};
        char name[40], run[40];
        int n_killed = 0;
        snprintf(name, sizeof name, "whole-%d", kind);
        snprintf(run, sizeof run, "killed-%d", kind);
        options.run = below(tree, name);
        int n_events = count_events(&options, &whole);
        options.run = below(tree, run);
        options.resume = true;
        tdmi_rng rng = tdmi_rng_at(1, TDMI_RNG_TEST, 0, (uint64_t)kind);
        for (int i = 0; i < 5; i++) {
            options.threads = 1 + i % 2;
            int at = 1 + (int)tdmi_rng_below(&rng, (uint32_t)n_events);
            n_killed += train_and_die(&options, at, 0);
        }
        assert_true(n_killed > 0);
        must_train(&options, nobody, &result);
        same_results(&result, &whole);
        same_runs(tree, name, run);
        assert_string_equal(lines_of(tree, run, "epoch"), lines_of(tree, name, "epoch"));
    }
}

/* ---- a record of another time ------------------------------------------------------------------
 */

static void die_at_note(void *self, const tdm_event *event)
{
    const char *words = self;
    if (event->text && strstr(event->text, words))
        raise(SIGKILL);
}

/* Every number of that name in the run's record. */
static void set_in_record(const struct tree *tree, const char *record, const char *name,
                          const char *number)
{
    void *bytes;
    size_t n_bytes, used = 0;
    char text[20000], wanted[60];
    snprintf(wanted, sizeof wanted, "\"%s\": ", name);
    assert_int_equal(tdmi_file_read(below(tree, record), 1 << 20, &bytes, &n_bytes, NULL), TDM_OK);
    const char *from = bytes, *at;
    int n_set = 0;
    while ((at = strstr(from, wanted)) != NULL) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%.*s%s%s", (int)(at - from),
                                 from, wanted, number);
        from = at + strlen(wanted);
        from += strcspn(from, ",\n}");
        n_set++;
    }
    snprintf(text + used, sizeof text - used, "%s", from);
    assert_true(n_set > 0);
    tdmi_free(bytes);
    tree_text(tree, record, text);
}

/* Killed before its first checkpoint, and the program's default is another one now. */
TEST_WITH(a_run_without_a_checkpoint_keeps_the_rate_it_was_begun_with, begin_with_sixty,
          end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = training(tree, 0);
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    int status;
    setenv("TANDEM_HOME", below(tree, "home"), 1);
    options.run = below(tree, "base");
    must_train(&options, nobody, &result);
    for (int unfreeze = 0; unfreeze < 2; unfreeze++) {
        const char *name = unfreeze ? "unfreezing" : "head";
        options = with_frozen_base(tree, name);
        options.freeze = unfreeze ? "none" : "base";
        options.unfreeze = unfreeze;
        options.learning_rate = 0.0;
        fflush(NULL);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(tdm_train(&options, (tdm_sink){"steps an epoch", die_at_note}, &result, NULL));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        char record[40], wanted[40];
        snprintf(record, sizeof record, "%s/run.json", name);
        set_in_record(tree, record, "learning_rate", "0.00125");
        if (unfreeze)
            set_in_record(tree, record, "thawed_rate", "0.00125");
        options.resume = true;
        must_train(&options, nobody, &result);
        snprintf(wanted, sizeof wanted, "%s-asked", name);
        options.run = below(tree, wanted);
        options.resume = false;
        options.learning_rate = 0.00125;
        must_train(&options, nobody, &result);
        same_runs(tree, wanted, name);
    }
}

/* The clock falls into places that no event marks: the middle of a file that is being written. */
TEST_WITH(a_training_killed_at_any_time_ends_with_the_same_files, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = training(tree, 2);
    struct tdm_train_result whole = {.struct_bytes = sizeof whole},
                            result = {.struct_bytes = sizeof result};
    options.run = below(tree, "whole");
    must_train(&options, nobody, &whole);
    long most = (long)(whole.seconds * 1e6);
    options.run = below(tree, "killed");
    options.resume = true;
    for (int i = 0; i < 12; i++) {
        tdmi_rng rng = tdmi_rng_at(2, TDMI_RNG_TEST, 0, (uint64_t)i);
        train_and_die(&options, 0, (long)tdmi_rng_below(&rng, (uint32_t)most + 1000));
    }
    must_train(&options, nobody, &result);
    same_results(&result, &whole);
    same_runs(tree, "whole", "killed");
    assert_string_equal(lines_of(tree, "killed", "epoch"), lines_of(tree, "whole", "epoch"));
}

TEST_WITH(no_half_written_file_stays_beside_the_finished_ones, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = training(tree, 2);
    struct tdmi_folder_entry *entries;
    size_t n;
    tdmi_arena arena;
    options.run = below(tree, "run");
    must_train(&options, nobody, NULL);
    tdmi_arena_init(&arena, 0);
    assert_int_equal(tdmi_folder_list(options.run, &arena, &entries, &n, NULL), TDM_OK);
    for (size_t i = 0; i < n; i++)
        assert_null(strstr(entries[i].name, ".tmp"));
    tdmi_arena_release(&arena);
}

/* ---- what may be resumed --------------------------------------------------------------------- */

TEST_WITH(an_existing_run_is_not_overwritten, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = training(tree, 0);
    options.run = below(tree, "run");
    must_train(&options, nobody, NULL);
    options.run = below(tree, "copy");
    must_train(&options, nobody, NULL);
    fails_with(&options, TDM_E_USAGE, "resume");
    same_runs(tree, "run", "copy");
}

TEST_WITH(a_finished_run_says_the_same_again, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    for (int kind = 0; kind < n_kinds; kind++) {
        struct tdm_train_options options = training(tree, kind);
        struct tdm_train_result first = {.struct_bytes = sizeof first},
                                second = {.struct_bytes = sizeof second};
        char run[40], copy[40];
        snprintf(run, sizeof run, "run-%d", kind);
        snprintf(copy, sizeof copy, "copy-%d", kind);
        options.run = below(tree, copy);
        must_train(&options, nobody, &first);
        options.run = below(tree, run);
        must_train(&options, nobody, &first);
        options.resume = true;
        must_train(&options, nobody, &second);
        same_results(&first, &second);
        same_runs(tree, run, copy);
    }
}

TEST_WITH(a_larger_limit_continues_as_if_it_had_been_there, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = training(tree, 0);
    struct tdm_train_result whole = {.struct_bytes = sizeof whole},
                            grown = {.struct_bytes = sizeof grown};
    options.schedule = "constant";
    options.epochs = 4;
    options.run = below(tree, "whole");
    must_train(&options, nobody, &whole);
    options.run = below(tree, "grown");
    options.resume = true;
    for (options.epochs = 1; options.epochs <= 4; options.epochs++)
        must_train(&options, nobody, &grown);
    same_results(&whole, &grown);
    same_runs(tree, "whole", "grown");
}

TEST_WITH(other_options_or_pictures_are_refused, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = training(tree, 0), changed;
    options.run = below(tree, "run");
    must_train(&options, nobody, NULL);
    options.resume = true;
    changed = options;
    changed.seed++;
    fails_with(&changed, TDM_E_USAGE, "--seed is 6, but the run was started with 5");
    changed = options;
    changed.epochs = 2;
    fails_with(&changed, TDM_E_USAGE, "--epochs is 2, but the run was last trained with 3");
    assert_int_equal(remove(below(tree, "pictures/a/000.ppm")), 0);
    fails_with(&options, TDM_E_INPUT, "are not those of the run");
}

/* On a processor both are the same bits. */
TEST_WITH(precision_may_be_said_where_it_was_not, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = training(tree, 0);
    options.run = below(tree, "run");
    options.epochs = 2;
    options.schedule = "constant";
    must_train(&options, nobody, NULL);
    options.resume = true;
    options.precision = "f32";
    options.epochs = 3;
    must_train(&options, nobody, NULL);
    options.precision = "auto";
    must_train(&options, nobody, NULL);
    options.precision = "bf16";
    fails_with(&options, TDM_E_USAGE, "option --precision bf16");
    options.precision = "f32";
    options.resume = false;
    options.run = below(tree, "whole-f32");
    must_train(&options, nobody, NULL);
    same_runs(tree, "whole-f32", "run");
}

/* The newest one damaged, missing, or of the moment between two renames. */
TEST_WITH(the_checkpoint_before_a_damaged_one_is_resumed, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = training(tree, 0);
    options.run = below(tree, "whole");
    must_train(&options, nobody, NULL);
    for (int is_missing = 0; is_missing < 2; is_missing++) {
        options.run = below(tree, is_missing ? "missing" : "damaged");
        options.resume = false;
        must_train(&options, nobody, NULL);
        char last[100];
        snprintf(last, sizeof last, "%s/last.safetensors", is_missing ? "missing" : "damaged");
        if (is_missing)
            assert_int_equal(remove(below(tree, last)), 0);
        else
            assert_int_equal(truncate(below(tree, last), 5000), 0);
        options.resume = true;
        must_train(&options, nobody, NULL);
        same_runs(tree, "whole", is_missing ? "missing" : "damaged");
    }
}

/* The file that is gone on from stays until a newer one is whole. */
TEST_WITH(a_damaged_file_does_not_take_the_place_of_a_whole_one, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = training(tree, 0);
    options.run = below(tree, "run");
    must_train(&options, nobody, NULL);
    assert_int_equal(truncate(below(tree, "run/last.safetensors"), 1000), 0);
    options.resume = true;
    must_train(&options, nobody, NULL);
    assert_true(tdmi_file_bytes(below(tree, "run/previous.safetensors")) > 1000);
}

TEST_WITH(a_run_without_any_checkpoint_is_not_begun_again, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = training(tree, 0);
    options.run = below(tree, "run");
    must_train(&options, nobody, NULL);
    assert_int_equal(rename(below(tree, "run/best.safetensors"), below(tree, "kept")), 0);
    assert_int_equal(link(below(tree, "kept"), below(tree, "run/best.safetensors")), 0);
    assert_int_equal(remove(below(tree, "run/last.safetensors")), 0);
    assert_int_equal(remove(below(tree, "run/previous.safetensors")), 0);
    options.resume = true;
    fails_with(&options, TDM_E_INPUT, "no checkpoint is left in it");
    same_files(below(tree, "kept"), below(tree, "run/best.safetensors"));
}

TEST_WITH(damaged_checkpoints_are_reported_not_overwritten, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = training(tree, 0);
    options.run = below(tree, "run");
    must_train(&options, nobody, NULL);
    options.resume = true;
    assert_int_equal(truncate(below(tree, "run/previous.safetensors"), 5000), 0);
    must_train(&options, nobody, NULL); /* not looked at */
    assert_int_equal(truncate(below(tree, "run/last.safetensors"), 5000), 0);
    fails_with(&options, TDM_E_INPUT, "last.safetensors");
}

/* By the clock, after every step: the same files. */
TEST_WITH(checkpoints_by_the_clock_change_no_bit, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = training(tree, 0);
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    options.run = below(tree, "whole");
    must_train(&options, nobody, &result);
    options.run = below(tree, "run");
    options.checkpoint_minutes = 1e-9;
    struct trap never = {.at = -1};
    must_train(&options, (tdm_sink){&never, spring}, &result);
    same_runs(tree, "whole", "run");
    assert_true(never.seen > 3 * result.steps); /* progress, and a checkpoint each */
}

TEST_MAIN(NULL, NULL)
