/*
 * When files of a training are written: about once a second, whatever its epochs take, and each
 * only when all that goes with it is on disk. Nothing of it changes a bit, and no line of the
 * metrics is lost or doubled.
 */
#include "tandem/event.h"
#include "train/model/model_file.h"
#include "train/pictures.h"
#include "unit.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const tdm_sink nobody = {NULL, NULL};

static int set_up(void **state)
{
    begin_with_classes(state, 3, 20);
    tdm_stop_clear();
    return 0;
}

/* Counts events of a kind, and does something at one of them. */
struct trap {
    tdm_event_kind kind;
    int at, seen, best_epoch;
    void (*spring)(const struct tree *tree, const char *run);
    const struct tree *tree;
    const char *run;
};

static void listen(void *self, const tdm_event *event)
{
    struct trap *trap = self;
    if (event->kind == TDM_EVENT_EPOCH && event->is_best)
        trap->best_epoch = event->epoch;
    if (event->kind == trap->kind && ++trap->seen == trap->at && trap->spring)
        trap->spring(trap->tree, trap->run);
}

static int count_of(const char *lines)
{
    int n = 0;
    for (; *lines; lines++)
        n += *lines == '@';
    return n;
}

TEST_WITH(epochs_of_milliseconds_share_a_checkpoint, set_up, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = small_training(tree);
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct trap trap = {.kind = TDM_EVENT_CHECKPOINT};
    options.epochs = 40;
    options.run = below(tree, "run");
    must_train(&options, (tdm_sink){&trap, listen}, &result);
    /* After the first epoch, at the end, and once in each second between. */
    assert_in_range(trap.seen, 2, 2 + (int)result.seconds);
    assert_int_equal(count_of(lines_of(tree, "run", "epoch")), 40);
    assert_int_equal(count_of(lines_of(tree, "run", "checkpoint")), trap.seen);
    options.run = below(tree, "often");
    options.checkpoint_every = 1;
    must_train(&options, nobody, &result);
    same_runs(tree, "run", "often");
    assert_int_equal(count_of(lines_of(tree, "often", "checkpoint")), result.steps);
}

static void kill_now(const struct tree *tree, const char *run)
{
    (void)tree;
    (void)run;
    raise(SIGKILL);
}

/* Killed as soon as a checkpoint has its name: its line is there already. */
TEST_WITH(a_checkpoint_that_is_there_has_its_line, set_up, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = small_training(tree);
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    options.checkpoint_every = 3;
    options.run = below(tree, "whole");
    must_train(&options, nobody, &result);
    options.run = below(tree, "run");
    options.resume = true;
    for (int n = 1; n <= 3; n++) {
        int status;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct trap trap = {.kind = TDM_EVENT_CHECKPOINT, .at = 1, .spring = kill_now};
            (void)!tdm_train(&options, (tdm_sink){&trap, listen}, &result, NULL);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(count_of(lines_of(tree, "run", "checkpoint")), n);
    }
    must_train(&options, nobody, &result);
    same_runs(tree, "whole", "run");
    assert_string_equal(lines_of(tree, "run", "epoch"), lines_of(tree, "whole", "epoch"));
}

static void ask_to_stop(const struct tree *tree, const char *run)
{
    (void)tree;
    (void)run;
    tdm_stop_request();
}

/* A folder of the checkpoint's name: it cannot be written. */
static void stand_in_the_way(const struct tree *tree, const char *run)
{
    char name[100];
    snprintf(name, sizeof name, "%s/next.safetensors", run);
    assert_int_equal(mkdir(below(tree, name), 0777), 0);
}

/* Stopped in the validation of its second epoch, its checkpoint stands at the epoch's last step;
 * the line of the epoch was written when the next sitting failed. */
TEST_WITH(an_epoch_that_is_ended_twice_has_one_line, set_up, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = small_training(tree);
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    options.run = below(tree, "whole");
    must_train(&options, nobody, &result);
    struct tdm_train_options fresh = options;
    fresh.run = below(tree, "twice");
    fresh.resume = true;
    /* Reading, and two each epoch. */
    struct trap stop = {.kind = TDM_EVENT_PHASE_END, .at = 1 + 2 + 2, .spring = ask_to_stop};
    assert_int_equal(tdm_train(&fresh, (tdm_sink){&stop, listen}, &result, NULL), TDM_E_STOPPED);
    assert_string_equal(lines_of(tree, "twice", "epoch"), "1@7 ");
    tdm_stop_clear();
    struct trap block = {
        .kind = TDM_EVENT_EPOCH, .at = 1, .spring = stand_in_the_way, .tree = tree, .run = "twice"};
    fresh.checkpoint_every = 1; /* it is due with the epoch */
    assert_int_not_equal(tdm_train(&fresh, (tdm_sink){&block, listen}, &result, NULL), TDM_OK);
    assert_string_equal(lines_of(tree, "twice", "epoch"), "1@7 2@14 ");
    assert_int_equal(rmdir(below(tree, "twice/next.safetensors")), 0);
    must_train(&fresh, nobody, &result);
    same_runs(tree, "whole", "twice");
    assert_string_equal(lines_of(tree, "twice", "epoch"), "1@7 2@14 3@21 ");
}

/* Killed between its record and its name: what is whole and told gets its name now. */
TEST_WITH(a_checkpoint_that_was_recorded_is_gone_on_from, set_up, end_with_tree)
{
    struct tree *tree = *state;
    for (int is_first = 0; is_first < 2; is_first++) {
        struct tdm_train_options options = small_training(tree);
        struct tdm_train_result result = {.struct_bytes = sizeof result};
        char run[20], name[3][60];
        snprintf(run, sizeof run, "run-%d", is_first);
        snprintf(name[0], sizeof name[0], "%s/last.safetensors", run);
        snprintf(name[1], sizeof name[1], "%s/next.safetensors", run);
        snprintf(name[2], sizeof name[2], "%s/previous.safetensors", run);
        options.run = below(tree, run);
        must_train(&options, nobody, &result);
        assert_int_equal(rename(below(tree, name[0]), below(tree, name[1])), 0);
        if (is_first)
            assert_int_equal(remove(below(tree, name[2])), 0);
        options.resume = true;
        must_train(&options, nobody, &result);
        assert_int_equal(tdmi_file_bytes(below(tree, name[1])), -1);
        assert_string_equal(lines_of(tree, run, "epoch"), "1@7 2@14 3@21 ");
        assert_int_equal(result.steps, 21);
    }
    same_runs(tree, "run-0", "run-1");
}

/* In the way of the name, when all that goes with the first checkpoint is on disk. */
static void stand_where_it_is_to_be(const struct tree *tree, const char *run)
{
    char name[100];
    snprintf(name, sizeof name, "%s/last.safetensors", run);
    assert_int_equal(mkdir(below(tree, name), 0777), 0);
}

TEST_WITH(who_has_not_written_a_checkpoint_begins_again, set_up, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = small_training(tree);
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct trap trap = {.kind = TDM_EVENT_EPOCH,
                        .at = 1,
                        .spring = stand_where_it_is_to_be,
                        .tree = tree,
                        .run = "run"};
    options.run = below(tree, "whole");
    must_train(&options, nobody, &result);
    options.run = below(tree, "run");
    assert_int_equal(tdm_train(&options, (tdm_sink){&trap, listen}, &result, NULL), TDM_E_SYSTEM);
    assert_int_equal(rmdir(below(tree, "run/last.safetensors")), 0);
    options.resume = true;
    must_train(&options, nobody, &result);
    same_runs(tree, "whole", "run");
    assert_string_equal(lines_of(tree, "run", "epoch"), "1@7 2@14 3@21 ");
}

static void take_pictures_away(const struct tree *tree, const char *run)
{
    (void)run;
    assert_int_equal(rename(below(tree, "pictures"), below(tree, "elsewhere")), 0);
}

TEST_WITH(the_best_weights_are_kept_when_what_follows_fails, set_up, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = small_training(tree);
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    TDMI_AT_END(tdmi_model_file_release) struct tdmi_model_file best = {0};
    struct trap trap = {
        .kind = TDM_EVENT_EPOCH, .at = 4, .spring = take_pictures_away, .tree = tree};
    options.run = below(tree, "run");
    options.epochs = 400;
    options.learning_rate = 0.01;
    options.cache = "none";
    assert_int_equal(tdm_train(&options, (tdm_sink){&trap, listen}, &result, NULL), TDM_E_INPUT);
    assert_true(trap.best_epoch > 1); /* later than the first checkpoint */
    assert_int_equal(tdmi_model_file_load(below(tree, "run/best.safetensors"), &best, NULL),
                     TDM_OK);
    assert_int_equal(best.progress.best_epoch, trap.best_epoch);
}

TEST_MAIN(NULL, NULL)
