/*
 * Copies of a run at another place: whatever happens to the process, its folder and the place, the
 * copies are a state that trains on to the same files, or a sentence says why not.
 */
#include "io/storage/storage.h"
#include "tandem/log.h"
#include "track/folder.h"
#include "track/run.h"
#include "train/copies/copies.h"
#include "train/copies/manifest.h"
#include "train/pictures.h"
#include "unit.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const tdm_sink nobody = {NULL, NULL};

/* A training that leaves its copies in "place". */
static struct tdm_train_options training(const struct tree *tree, const char *run)
{
    static char place[200]; /* for more than a hundred calls of below() */
    struct tdm_train_options options = small_training(tree);
    snprintf(place, sizeof place, "%s/place", tree->root);
    options.run = below(tree, run);
    options.checkpoint_to = place;
    options.checkpoint_every = 2;
    return options;
}

/* Does something at event number `at`, counted from 1. */
struct trap {
    int at, seen;
    void (*act)(const struct tree *tree);
    const struct tree *tree;
};

static void spring(void *self, const tdm_event *event)
{
    struct trap *trap = self;
    (void)event;
    if (++trap->seen == trap->at)
        trap->act(trap->tree);
}

static void die(const struct tree *tree)
{
    (void)tree;
    raise(SIGKILL);
}

static void stop(const struct tree *tree)
{
    (void)tree;
    tdm_stop_request();
}

static void nothing(const struct tree *tree)
{
    (void)tree;
}

/* The place becomes a file: nothing can be written below it. */
static void break_place(const struct tree *tree)
{
    assert_int_equal(rename(below(tree, "place"), below(tree, "away")), 0);
    tree_text(tree, "place", "no folder");
}

static void mend_place(const struct tree *tree)
{
    assert_int_equal(unlink(below(tree, "place")), 0);
    assert_int_equal(rename(below(tree, "away"), below(tree, "place")), 0);
}

static void flip_byte(const char *path, long at)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    const int byte = fgetc(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fputc(byte ^ 1, file), byte ^ 1);
    assert_int_equal(fclose(file), 0);
}

/* The path of the copy of a file as checkpoint.json names it now. */
static const char *copy_of(const struct tree *tree, const char *name)
{
    static char path[400];
    TDMI_AT_END(tdmi_manifest_release) tdmi_manifest manifest = {0};
    assert_int_equal(tdmi_manifest_read(below(tree, "place"), &manifest, NULL), TDM_OK);
    for (int64_t i = 0; i < manifest.n; i++)
        if (strcmp(manifest.files[i].name, name) == 0)
            snprintf(
                path, sizeof path, "%s",
                tdmi_manifest_place(&manifest.files[i], below(tree, "place"), &manifest.arena));
    return path;
}

static int count_files(const char *folder)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    struct tdmi_folder_entry *entries;
    size_t n;
    assert_int_equal(tdmi_folder_list(folder, &arena, &entries, &n, NULL), TDM_OK);
    return (int)n;
}

TEST_WITH(a_run_comes_back_from_its_copies_and_trains_on, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options whole = small_training(tree), options = training(tree, "run");
    whole.run = below(tree, "whole");
    whole.epochs = options.epochs + 2;
    whole.schedule = options.schedule = "constant";
    must_train(&whole, nobody, NULL);
    must_train(&options, nobody, NULL);
    same_files(copy_of(tree, "last.safetensors"), below(tree, "run/last.safetensors"));
    same_files(copy_of(tree, "run.json"), below(tree, "run/run.json"));
    same_files(copy_of(tree, "report.html"), below(tree, "run/report.html"));
    options.run = below(tree, "elsewhere/again");
    options.epochs = whole.epochs;
    options.resume = true;
    must_train(&options, nobody, NULL);
    same_runs(tree, "whole", "elsewhere/again");
    same_files(copy_of(tree, "best.safetensors"), below(tree, "whole/best.safetensors"));
    /* A file that a killed process was writing goes with the next copy; others stay. */
    tree_text(tree, "place/.0123456789abcdef-last.safetensors.17.tmp", "half");
    tree_text(tree, "place/.notes.17.tmp", "of the user");
    options.epochs++;
    must_train(&options, nobody, NULL);
    assert_int_equal(
        tdmi_file_kind_of(below(tree, "place/.0123456789abcdef-last.safetensors.17.tmp")),
        TDMI_FILE_MISSING);
    assert_int_equal(tdmi_file_kind_of(below(tree, "place/.notes.17.tmp")), TDMI_FILE_REGULAR);
    /* Two states are kept: this one and the one before, and a file once where both have it. */
    assert_true(count_files(below(tree, "place")) <= 2 * 7 + 1);
}

/* Train in a child that dies at an event. True: it died. */
static bool train_and_die(const struct tree *tree, const struct tdm_train_options *options, int at)
{
    int status;
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct trap trap = {.at = at, .act = die, .tree = tree};
        struct tdm_train_result result = {.struct_bytes = sizeof result};
        _exit(tdm_train(options, (tdm_sink){&trap, spring}, &result, NULL) == TDM_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        return true;
    assert_int_equal(WEXITSTATUS(status), 0);
    return false;
}

TEST_WITH(a_machine_that_dies_at_any_event_leaves_a_state_that_trains_on, begin_with_sixty,
          end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = training(tree, "whole");
    struct trap count = {.act = nothing};
    int n_deaths = 0, n_fetched = 0;
    must_train(&options, (tdm_sink){&count, spring}, NULL);
    remove_tree(options.checkpoint_to);
    options.resume = true;
    for (int at = 1; at <= count.seen; at++) {
        options.run = below(tree, "run");
        n_deaths += train_and_die(tree, &options, at);
        remove_tree(options.run); /* with the machine */
        tdm_error err = {0};
        assert_ok(tdmi_copies_fetch(options.checkpoint_to, options.run, &err), &err);
        n_fetched += tdmi_file_kind_of(below(tree, "run/run.json")) == TDMI_FILE_REGULAR;
        must_train(&options, nobody, NULL);
        same_runs(tree, "whole", "run");
        remove_tree(options.run);
        remove_tree(options.checkpoint_to);
    }
    assert_true(n_deaths > 10);
    assert_true(n_fetched > 3 && n_fetched < n_deaths);
}

TEST_WITH(a_requested_stop_leaves_its_checkpoint_at_the_place, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = training(tree, "whole");
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct trap trap = {.at = 20, .act = stop};
    must_train(&options, nobody, NULL);
    remove_tree(options.checkpoint_to);
    options.run = below(tree, "run");
    assert_int_equal(tdm_train(&options, (tdm_sink){&trap, spring}, &result, NULL), TDM_E_STOPPED);
    tdm_stop_clear();
    same_files(copy_of(tree, "last.safetensors"), below(tree, "run/last.safetensors"));
    same_files(copy_of(tree, "run.json"), below(tree, "run/run.json"));
    remove_tree(options.run);
    options.resume = true;
    must_train(&options, nobody, NULL);
    same_runs(tree, "whole", "run");
}

TEST_WITH(a_place_that_is_gone_for_a_while_ends_nothing, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = training(tree, "run");
    struct trap trap = {.at = 12, .act = break_place, .tree = tree};
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    enum tdmi_run_status status;
    tdm_error err = {0};
    char text[3000];
    assert_int_equal(tdm_train(&options, (tdm_sink){&trap, spring}, &result, &err), TDM_E_SYSTEM);
    tdm_error_format(&err, text, sizeof text);
    assert_non_null(strstr(text, "is complete, but its last state is not in"));
    assert_non_null(strstr(text, "--resume copies it"));
    assert_int_equal(tdmi_run_read(options.run, &status, NULL, NULL), TDM_OK);
    assert_int_equal(status, TDMI_RUN_FINISHED);
    mend_place(tree);
    options.resume = true;
    must_train(&options, nobody, NULL);
    same_files(copy_of(tree, "last.safetensors"), below(tree, "run/last.safetensors"));

    /* Broken at one event, mended at a later one: the end finds it in order. */
    options = training(tree, "other");
    options.checkpoint_to = below(tree, "place");
    remove_tree(options.checkpoint_to);
    struct tdm_train_options stopped = options;
    struct trap late = {.at = 12, .act = stop, .tree = tree};
    assert_int_equal(tdm_train(&stopped, (tdm_sink){&late, spring}, &result, NULL), TDM_E_STOPPED);
    tdm_stop_clear();
    break_place(tree);
    options.resume = true;
    fails_with(&options, TDM_E_INPUT, "expected a folder for copies");
    mend_place(tree);
    must_train(&options, nobody, NULL);
    same_files(copy_of(tree, "last.safetensors"), below(tree, "other/last.safetensors"));
}

TEST_WITH(damaged_copies_are_refused_by_name, begin_with_sixty, end_with_tree)
{
    static const char *const files[] = {"last.safetensors", "best.safetensors", "run.json",
                                        "metrics.jsonl", "outcomes.safetensors"};
    struct tree *tree = *state;
    struct tdm_train_options options = training(tree, "run");
    must_train(&options, nobody, NULL);
    options.run = below(tree, "again");
    options.resume = true;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const char *path = copy_of(tree, files[i]);
        flip_byte(path, 9);
        fails_with(&options, TDM_E_INPUT, "is damaged: it does not have the size and hash");
        fails_with(&options, TDM_E_INPUT, files[i]);
        flip_byte(path, 9);
    }
    const char *path = copy_of(tree, "best.safetensors");
    assert_int_equal(rename(path, below(tree, "kept")), 0);
    fails_with(&options, TDM_E_INPUT, "No such file");
    assert_int_equal(rename(below(tree, "kept"), path), 0);
    must_train(&options, nobody, NULL); /* what the failures left is no obstacle */
    same_runs(tree, "run", "again");

    tree_text(tree, "place/checkpoint.json", "{\"format_version\": 1, \"files\": [");
    options.run = below(tree, "third");
    fails_with(&options, TDM_E_INPUT, "checkpoint.json");
    tree_text(tree, "place/checkpoint.json", "{\"format_version\": 2, \"files\": []}");
    fails_with(&options, TDM_E_INPUT, "its format_version is 2; 1 is accepted");
    static const char *const names[] = {"../x", "/etc/x", "kernels/../x", "kernels/.x", "lock"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char text[300];
        snprintf(text, sizeof text,
                 "{\"format_version\": 1, \"files\": [{\"name\": \"%s\", \"bytes\": 1, "
                 "\"xxh64\": \"0123456789abcdef\"}]}",
                 names[i]);
        tree_text(tree, "place/checkpoint.json", text);
        fails_with(&options, TDM_E_INPUT, "is no file of a run");
    }
    assert_int_equal(tdmi_file_kind_of(options.run), TDMI_FILE_MISSING);
}

TEST_WITH(places_of_others_are_refused, begin_with_sixty, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_options options = training(tree, "run");
    options.checkpoint_to = options.run;
    fails_with(&options, TDM_E_USAGE, "is the run folder itself");
    assert_int_equal(tdmi_file_kind_of(options.run), TDMI_FILE_MISSING);
    options.checkpoint_to = below(tree, "pictures/a/000.ppm");
    fails_with(&options, TDM_E_INPUT, "expected a folder for copies");
    options = training(tree, "run");
    must_train(&options, nobody, NULL);
    options.run = below(tree, "other");
    fails_with(&options, TDM_E_USAGE, "holds the copies of a run already");
    /* As if it had been started at another time. */
    options.checkpoint_to = NULL;
    must_train(&options, nobody, NULL);
    char *text = text_of(below(tree, "place/checkpoint.json"));
    char *year = strstr(text, "\"started\": \"20");
    assert_non_null(year);
    year[12] = '1';
    put_text(below(tree, "place/checkpoint.json"), text);
    free(text);
    options.checkpoint_to = below(tree, "place");
    options.resume = true;
    fails_with(&options, TDM_E_USAGE, "holds the copies of another run, started at 10");
    /* A folder of other files is not filled. */
    tree_text(tree, "photos/me.txt", "mine");
    options.run = below(tree, "photos");
    fails_with(&options, TDM_E_USAGE, "is no run folder but holds other files");
    assert_int_equal(count_files(options.run), 1);
}

TEST_MAIN(be_silent, NULL)
