/*
 * Rows of a frozen base that are damaged, or whose store is removed, while a training uses or makes
 * them: they are made once more, and the training ends with the bits of one that was left alone.
 */
#include "train/pictures.h"
#include "tandem/log.h"
#include "tandem/event.h"
#include "unit.h"

#include <fcntl.h>
#include <glob.h>
#include <unistd.h>

enum { n_classes = 4, per_class = 20, n_pictures = n_classes * per_class, n_val = 8 };

static int set_up(void **state)
{
    begin_with_base(state, n_classes, per_class);
    tdm_log_set_level(TDM_LOG_SILENT);
    return 0;
}

/* A byte of every row in every file that is there, or of its head. */
static void damage(const struct tree *tree, bool is_head)
{
    glob_t found;
    int n_rows = 0;
    assert_int_equal(glob(below(tree, "home/features/*/*.rows"), 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const int file = open(found.gl_pathv[i], O_RDWR);
        const off_t end = is_head ? 41 : 128 + 84 * 4 * 5;
        assert_true(file >= 0);
        for (off_t at = is_head ? 40 : 128 + 17; at < end; at += 84 * 4, n_rows++) {
            unsigned char byte;
            assert_int_equal(pread(file, &byte, 1, at), 1);
            byte ^= 0x55;
            assert_int_equal(pwrite(file, &byte, 1, at), 1);
        }
        close(file);
    }
    assert_true(n_rows > 0);
    globfree(&found);
}

TEST_WITH(damaged_rows_are_made_once_more, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = with_frozen_base(tree, "whole");
    must_train(&options, (tdm_sink){0}, &result);
    assert_int_equal(result.features.remade, 0);
    for (int is_head = 0; is_head < 2; is_head++) {
        damage(tree, is_head);
        options.run = below(tree, is_head ? "head" : "rows");
        must_train(&options, (tdm_sink){0}, &result);
        same_runs(tree, "whole", is_head ? "head" : "rows");
        assert_int_equal(result.features.rows, n_pictures);
        /* A file with a damaged header no longer says which rows it had. */
        assert_int_equal(result.features.remade, is_head ? 0 : n_pictures);
        assert_int_equal(result.features.reused, is_head ? 0 : n_pictures);
    }
    options.run = below(tree, "next");
    must_train(&options, (tdm_sink){0}, &result);
    assert_int_equal(result.features.reused, n_pictures);
    assert_int_equal(result.features.remade, 0);
    same_runs(tree, "whole", "next");
}

/* The files of rows that this process has open are read no more, though nothing is wrong on disk:
 * as from a disk that fails to answer. */
static void silence(void)
{
    char link[40], path[300];
    int n = 0;
    const int folder = open("/", O_RDONLY);
    for (int i = 0; i < 1024; i++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", i);
        const ssize_t length = readlink(link, path, sizeof path - 1);
        if (length < 5 || memcmp(path + length - 5, ".rows", 5) != 0)
            continue;
        assert_int_equal(dup2(folder, i), i);
        n++;
    }
    close(folder);
    assert_true(n > 0);
}

struct trap {
    const struct tree *tree;
    tdm_event_kind kind;
    const char *text; /* of the phase that the event is in; NULL: any */
    int at, seen;
    bool is_phase, removes, silences;
};

static void spring(void *self, const tdm_event *event)
{
    struct trap *trap = self;
    if (event->kind == TDM_EVENT_PHASE_BEGIN)
        trap->is_phase = !trap->text || strcmp(event->text, trap->text) == 0;
    if (event->kind != trap->kind || !trap->is_phase || ++trap->seen != trap->at)
        return;
    if (trap->removes)
        assert_int_equal(rename(below(trap->tree, "home/features"), below(trap->tree, "home/gone")),
                         0);
    else if (trap->silences)
        silence();
    else
        damage(trap->tree, false);
}

TEST_WITH(rows_damaged_in_training_and_in_validation_are_made_once_more, set_up, end_with_tree)
{
    static const char *const phases[] = {"training epoch 2", "validating"};
    struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = with_frozen_base(tree, "whole");
    must_train(&options, (tdm_sink){0}, &result);
    for (int i = 0; i < 2; i++) {
        struct trap trap = {
            .tree = tree, .kind = TDM_EVENT_PHASE_BEGIN, .text = phases[i], .at = 1};
        options.run = below(tree, phases[i]);
        must_train(&options, (tdm_sink){&trap, spring}, &result);
        same_runs(tree, "whole", phases[i]);
        assert_int_equal(result.features.remade, n_pictures);
        assert_int_equal(result.features.rows, n_pictures);
    }
}

TEST_WITH(rows_that_the_system_does_not_read_are_no_damage, set_up, end_with_tree)
{
    static const char *const phases[] = {"training epoch 2", "validating", "computing features"};
    struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = with_frozen_base(tree, "whole");
    must_train(&options, (tdm_sink){0}, &result);
    for (int i = 0; i < 3; i++) {
        struct trap trap = {.tree = tree,
                            .kind = TDM_EVENT_PHASE_BEGIN,
                            .text = phases[i],
                            .at = 1,
                            .silences = true};
        char text[4000];
        tdm_error err = {0};
        options.run = below(tree, phases[i]);
        assert_int_equal(tdm_train(&options, (tdm_sink){&trap, spring}, &result, &err),
                         TDM_E_SYSTEM);
        tdm_error_format(&err, text, sizeof text);
        assert_non_null(strstr(text, "cannot read row "));
        assert_non_null(strstr(text, "Is a directory"));
        assert_null(strstr(text, "remove"));
    }
    options.run = below(tree, "next");
    must_train(&options, (tdm_sink){0}, &result);
    assert_int_equal(result.features.reused, n_pictures);
    assert_int_equal(result.features.remade, 0);
    same_runs(tree, "whole", "next");
}

TEST_WITH(a_store_that_is_removed_while_it_is_filled_is_filled_again, set_up, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = with_frozen_base(tree, "alone");
    options.augment = "flip,crop:2";
    options.views = 2;
    must_train(&options, (tdm_sink){0}, &result);
    /* In the first batch of the first epoch's rows; and of the second's, which finds the first's
     * gone. */
    for (int n = 1; n <= 4; n += 3) {
        char run[20];
        snprintf(run, sizeof run, "removed-%d", n);
        assert_int_equal(rename(below(tree, "home"), below(tree, run)), 0);
        struct trap trap = {.tree = tree,
                            .kind = TDM_EVENT_PROGRESS,
                            .text = "computing features",
                            .at = n,
                            .removes = true};
        snprintf(run, sizeof run, "run-%d", n);
        options.run = below(tree, run);
        must_train(&options, (tdm_sink){&trap, spring}, &result);
        assert_true(trap.seen > n);
        same_runs(tree, "alone", run);
        assert_int_equal(result.features.rows, n_val + 2 * (n_pictures - n_val));
        if (n > 1)
            assert_true(result.features.remade > 0);
    }
}

TEST_MAIN(NULL, NULL)
