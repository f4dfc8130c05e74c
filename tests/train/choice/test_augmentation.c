/*
 * --augment auto: the rule, when it applies, and that a resumed run keeps what it was started with,
 * also where the run is older than the rule.
 */
#include "train/choice/augmentation.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "train/hearing.h"
#include "train/pictures.h"

/* ---- the rule -------------------------------------------------------------------------------- */

static const struct tdmi_look photos = {.n_seen = 64, .side = 500},
                              icons = {.n_seen = 64, .side = 32},
                              digits = {.n_seen = 64, .side = 28, .is_grey = true},
                              ink = {.n_seen = 64, .side = 64, .is_grey = true, .background = 250};

TEST(images_are_changed_by_what_they_seem_to_show)
{
    static const struct {
        const struct tdmi_look *look;
        const char *classes[3];
        int side;
        const char *spec, *reason;
    } cases[] = {
        {&photos, {"cat", "dog", "7"}, 224, "flip", "photos"},
        {&icons, {"cat", "dog", "truck"}, 32, "zoom,flip", "photos"},
        {&photos, {"TurnLeft", "TurnRight", "stop"}, 224, "none", "class 'TurnLeft' tells"},
        {&photos, {"0", "1", "2"}, 224, "none", "class names stand for numbers or letters"},
        {&photos, {"Zero", "one", "nine"}, 224, "none", "class names stand for numbers or letters"},
        {&photos, {"one", "two", "none"}, 224, "flip", "photos"},
        {&icons, {"00017", "9", "42"}, 32, "zoom", "class names stand for numbers or letters"},
        {&icons, {"A", "\xc3\x84", "7"}, 32, "zoom", "class names stand for numbers or letters"},
        {&photos, {"stop", "turn-left", "turn-right"}, 224, "none", "class 'turn-left' tells"},
        {&icons, {"stop", "go", "Right turn"}, 32, "zoom", "class 'Right turn' tells"},
        {&digits, {"0", "1", "2"}, 28, "crop:2:0", "shifted and never mirrored"},
        {&digits, {"coat", "bag", "boot"}, 32, "crop:2:0", "grey and small (28 pixels)"},
        {&ink, {"a", "b", "c"}, 64, "crop:4:250", "grey and small (64 pixels)"},
        {&ink, {"a", "b", "c"}, 9, "crop:1:250", "grey and small"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tdmi_augment augment;
        const struct tdmi_augmentation found =
            tdmi_augmentation_for(cases[i].look, cases[i].classes, 3, cases[i].side);
        assert_string_equal(found.spec, cases[i].spec);
        if (!strstr(found.reason, cases[i].reason))
            fail_msg("'%s' is not in: %s", cases[i].reason, found.reason);
        assert_int_equal(tdmi_augment_read(found.spec, &augment, NULL), TDM_OK);
    }
}

/* ---- in a run -------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    begin_with_base(state, 4, 12);
    return 0;
}

/* From scratch; the classes are called a, b, c and d. */
static struct tdm_train_options by_images(const struct tree *tree, const char *run)
{
    struct tdm_train_options options = small_training(tree);
    options.augment = "auto";
    options.run = below(tree, run);
    return options;
}

/* The member of a section of the run's record. */
static void assert_recorded(const struct tree *tree, const char *run, const char *section,
                            const char *expected)
{
    char name[60];
    void *text;
    size_t n_bytes;
    tdm_json_document *json;
    snprintf(name, sizeof name, "%s/run.json", run);
    assert_int_equal(tdmi_file_read(below(tree, name), 1 << 28, &text, &n_bytes, NULL), TDM_OK);
    assert_int_equal(tdm_json_read(text, n_bytes, "run.json", &json, NULL), TDM_OK);
    const tdm_json_value *at = tdm_json_member(tdm_json_root(json), section);
    assert_string_equal(tdm_json_as_string(tdm_json_member(at, "augment"), "(none)"), expected);
    tdm_json_document_free(json);
    tdmi_free(text);
}

TEST_WITH(a_network_from_scratch_sees_changed_images, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct heard heard = {""};
    struct tdm_train_options options = by_images(tree, "auto");
    must_train(&options, (tdm_sink){&heard, hear}, NULL);
    assert_heard(
        &heard,
        "augment: zoom, because the images seem to be photos; they are not mirrored, since "
        "the class names stand for numbers or letters; --augment none switches it off",
        true);
    assert_recorded(tree, "auto", "options", "auto");
    assert_recorded(tree, "auto", "data", "zoom:0.8:1:1.1");
    options = by_images(tree, "named");
    options.augment = "zoom";
    must_train(&options, (tdm_sink){0}, NULL);
    assert_recorded(tree, "named", "options", "zoom");
    same_runs(tree, "auto", "named");
}

static void stop_at_step_7(void *self, const tdm_event *event)
{
    (void)self;
    if (event->kind == TDM_EVENT_PROGRESS && event->step == 7)
        tdm_stop_request();
}

TEST_WITH(a_resumed_run_keeps_its_changes, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct heard heard = {""};
    tdm_error err = {0};
    struct tdm_train_options options = by_images(tree, "whole");
    options.schedule = "constant";
    must_train(&options, (tdm_sink){0}, NULL);
    options.run = below(tree, "cut");
    assert_int_equal(tdm_train(&options, (tdm_sink){.event = stop_at_step_7}, &result, &err),
                     TDM_E_STOPPED);
    tdm_stop_clear();
    options.resume = true;
    options.threads = 2;
    must_train(&options, (tdm_sink){&heard, hear}, NULL);
    assert_heard(&heard, "augment: ", false);
    same_runs(tree, "whole", "cut");
    options.augment = "flip";
    fails_with(&options, TDM_E_USAGE, "the run was started with 'auto'");
}

/* Older programs recorded "" for no changes, the oldest nothing. */
TEST_WITH(a_run_from_before_auto_is_resumed_without_changes, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    static const char *const before[] = {"\"augment\": \"\",", ""};
    struct tdm_train_options options = small_training(tree);
    options.schedule = "constant";
    options.epochs = 4;
    options.run = below(tree, "whole");
    must_train(&options, (tdm_sink){0}, NULL);
    for (int i = 0; i < 2; i++) {
        TDMI_AT_END(tdmi_text_release) tdmi_text older = {0};
        static const char own[] = "\"augment\": \"none\",";
        const char *run = i == 0 ? "empty" : "lacking";
        char name[60];
        void *text;
        size_t n_bytes;
        options = small_training(tree);
        options.schedule = "constant";
        options.epochs = 2;
        options.run = below(tree, run);
        must_train(&options, (tdm_sink){0}, NULL);
        snprintf(name, sizeof name, "%s/run.json", run);
        assert_int_equal(tdmi_file_read(below(tree, name), 1 << 28, &text, &n_bytes, NULL), TDM_OK);
        const char *at = strstr(text, own);
        if (!at)
            fail_msg("no %s in %s", own, (const char *)text);
        tdmi_text_add(&older, text, (size_t)(at - (const char *)text));
        tdmi_text_printf(&older, "%s%s", before[i], at + strlen(own));
        tree_text(tree, name, tdmi_text_string(&older));
        tdmi_free(text);
        options.epochs = 4;
        options.augment = "auto";
        options.resume = true;
        must_train(&options, (tdm_sink){0}, NULL);
        same_runs(tree, "whole", run);
        assert_recorded(tree, run, "options", i == 0 ? "" : "none");
    }
}

TEST_WITH(features_are_of_unchanged_images, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct heard heard = {""};
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = with_frozen_base(tree, "plain");
    must_train(&options, (tdm_sink){0}, NULL);
    for (int i = 0; i < 2; i++) { /* cached, and computed in every epoch */
        options = with_frozen_base(tree, i == 0 ? "auto" : "again");
        options.augment = "auto";
        options.features = i == 0 ? "f32" : "none";
        must_train(&options, (tdm_sink){&heard, hear}, &result);
        assert_int_equal(result.views, 0);
        same_runs(tree, "plain", i == 0 ? "auto" : "again");
    }
    assert_heard(&heard, "augment", false);
    assert_recorded(tree, "auto", "data", "none");
    options.views = 3;
    fails_with(&options, TDM_E_USAGE, "--augment auto changes none whose features are kept");
}

TEST_WITH(pretrained_layers_that_are_trained_see_unchanged_images, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct heard heard = {""};
    for (int way = 0; way < 2; way++) { /* unfrozen after two epochs, or never frozen */
        const char *const runs[] = {way ? "free-none" : "none", way ? "free-auto" : "auto"};
        for (int i = 0; i < 2; i++) {
            struct tdm_train_options options = with_frozen_base(tree, runs[i]);
            options.augment = i == 0 ? "none" : "auto";
            options.unfreeze = way == 0 ? 2 : 0;
            options.freeze = way == 0 ? "auto" : "none";
            options.epochs = 4;
            must_train(&options, (tdm_sink){&heard, hear}, NULL);
        }
        same_runs(tree, runs[0], runs[1]);
        assert_recorded(tree, runs[1], "data", "none");
    }
    assert_heard(&heard, "augment", false);
}

TEST_MAIN(NULL, NULL)
