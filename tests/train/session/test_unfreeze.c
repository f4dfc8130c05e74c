/*
 * Gradual unfreezing: where the border lies in each epoch, that nothing before it changes a byte,
 * that a run stopped anywhere goes on to the same bits; and learning rates by depth.
 */
#include "train/pictures.h"
#include "train/hearing.h"
#include "base/file/file.h"
#include "base/memory.h"
#include "models/known_network.h"
#include "weights/safetensors/safetensors.h"
#include "tandem/event.h"
#include "train/freeze.h"

#include <string.h>

static int set_up(void **state)
{
    (void)begin_with_classes(state, 3, 20);
    return 0;
}

/* convnet7: seven layers, the last of which is the head. */
static struct tdm_train_options with_base(const struct tree *tree)
{
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = small_norm_training(tree);
    options.run = below(tree, "base");
    options.epochs = 1;
    must_train(&options, (tdm_sink){0}, &result);
    options.weights = below(tree, "base/best.safetensors");
    options.model = NULL;
    options.schedule = "constant";
    options.run = below(tree, "next");
    options.epochs = 4;
    options.unfreeze = 1;
    return options;
}

static int point(const tdmi_graph *graph, int last, int layers, int epoch)
{
    const struct tdmi_unfreeze schedule = {2, layers, tdmi_freeze_head(graph), last};
    return tdmi_unfreeze_point(&schedule, graph, epoch);
}

TEST(the_freeze_point_moves_towards_the_input)
{
    tdmi_graph *graph = network_new("convnet7", 16, 3);
    const int head = tdmi_freeze_head(graph);
    int none = -1, two = -1;
    assert_int_equal(tdmi_freeze_point(graph, "none", &none, NULL), TDM_OK);
    assert_int_equal(tdmi_freeze_point(graph, "2", &two, NULL), TDM_OK);
    assert_int_equal(point(graph, none, 0, 1), head);
    assert_int_equal(point(graph, none, 0, 2), none);
    assert_int_equal(point(graph, two, 0, 14), two);
    int freeze_point = head, n_moves = 0;
    for (int epoch = 2; freeze_point > two; epoch += 2, n_moves++) {
        const int next = point(graph, two, 1, epoch);
        assert_true(next < freeze_point);
        assert_int_equal(point(graph, two, 1, epoch + 1), next);
        freeze_point = next;
    }
    int layers = 0;
    for (int i = 0; i < head; i++)
        layers += graph->nodes[i].kind == TDMI_OP_CONV || graph->nodes[i].kind == TDMI_OP_DENSE;
    assert_int_equal(n_moves, layers - 2);
    assert_int_equal(point(graph, two, 1, 2000000), two);
    assert_int_equal(point(graph, two, 99, 2), two);
    /* Depth: the head 0, and one more with every layer; a batch norm counts with its layer. */
    assert_int_equal(tdmi_freeze_depth(graph, head, head), 0);
    assert_int_equal(tdmi_freeze_depth(graph, head, head - 1), 1);
    assert_int_equal(tdmi_freeze_depth(graph, head, two), layers - 2);
    assert_int_equal(tdmi_freeze_depth(graph, head, two + 1), layers - 2);
    assert_int_equal(tdmi_freeze_depth(graph, head, 0), layers);
    tdmi_graph_free(graph);
}

TEST(an_unfreezing_schedule_says_where_training_ends_and_when_it_moved)
{
    tdmi_graph *graph = network_new("convnet7", 16, 3);
    const int head = tdmi_freeze_head(graph);
    struct tdmi_unfreeze schedule = {.every = 3, .layers = 0, .first = head, .last = 0};
    assert_int_equal(tdmi_unfreeze_final_point(&schedule, graph, 0.0), 0); /* without a limit */
    assert_int_equal(tdmi_unfreeze_final_point(&schedule, graph, 2.5), head);
    assert_int_equal(tdmi_unfreeze_final_point(&schedule, graph, 3.1), 0);
    assert_int_equal(tdmi_unfreeze_began(&schedule, graph, 2, head), 0);
    assert_int_equal(tdmi_unfreeze_began(&schedule, graph, 3, 0), 3);
    assert_int_equal(tdmi_unfreeze_began(&schedule, graph, 9, 0), 3);
    schedule = (struct tdmi_unfreeze){.first = head, .last = head}; /* never moves */
    assert_int_equal(tdmi_unfreeze_point(&schedule, graph, 100), head);
    assert_int_equal(tdmi_unfreeze_final_point(&schedule, graph, 100.0), head);
    assert_int_equal(tdmi_unfreeze_began(&schedule, graph, 100, head), 0);
    tdmi_graph_free(graph);
}

TEST(too_few_steps_to_unfreeze_are_refused)
{
    struct tdm_train_options options = tdm_train_options_default();
    options.unfreeze = 2;
    options.steps = 20;
    assert_int_equal(tdmi_unfreeze_check_steps(&options, 10, NULL), TDM_E_USAGE);
    options.steps = 21;
    assert_int_equal(tdmi_unfreeze_check_steps(&options, 10, NULL), TDM_OK);
    options.steps = 0;
    assert_int_equal(tdmi_unfreeze_check_steps(&options, 10, NULL), TDM_OK);
}

/* Tensors of layers that are not the same in both, the head's not counted. */
static int layers_that_differ(const struct tree *tree, const char *a, const char *b)
{
    tdmi_safetensors *left = NULL, *right = NULL;
    int n = 0;
    assert_int_equal(tdmi_safetensors_open(below(tree, a), &left, NULL), TDM_OK);
    assert_int_equal(tdmi_safetensors_open(below(tree, b), &right, NULL), TDM_OK);
    for (size_t i = 0; i < tdmi_safetensors_count(left); i++) {
        const struct tdmi_safetensors_tensor *one = tdmi_safetensors_at(left, i);
        if (one->rank != 4 || strncmp(one->name, "optimizer.", 10) == 0)
            continue;
        const struct tdmi_safetensors_tensor *other = tdmi_safetensors_find(right, one->name);
        assert_non_null(other);
        n += memcmp(one->data, other->data, one->bytes) != 0;
    }
    tdmi_safetensors_close(left);
    tdmi_safetensors_close(right);
    return n;
}

TEST_WITH(layers_are_unfrozen_from_the_head_down, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct heard heard = {""};
    struct tdm_train_options options = with_base(tree);
    options.unfreeze_layers = 2;
    const char *base = "base/best.safetensors", *last = "next/last.safetensors";
    for (options.epochs = 2; options.epochs <= 4; options.epochs++) {
        heard.text[0] = '\0';
        must_train(&options, (tdm_sink){&heard, hear}, &result);
        options.resume = true;
        assert_int_equal(layers_that_differ(tree, base, last),
                         options.epochs == 4 ? 6 : 2 * (options.epochs - 1));
    }
    /* In one go, and at once. */
    options.epochs = 4;
    options.resume = false;
    options.run = below(tree, "whole");
    heard.text[0] = '\0';
    must_train(&options, (tdm_sink){&heard, hear}, &result);
    same_runs(tree, "next", "whole");
    assert_heard(&heard, "features: 60 computed", false); /* they were in the cache */
    assert_heard(&heard, "60 found in the cache", true);
    assert_heard(&heard, "2 layers before the head are trained from here on", true);
    assert_heard(&heard, "6 layers before the head are trained from here on", true);
    options.threads = 3;
    options.features = "none";
    options.run = below(tree, "computed");
    must_train(&options, (tdm_sink){0}, &result);
    same_runs(tree, "next", "computed");
}

/* Stops at the n-th progress of training. */
struct stopper {
    int left;
};

static void stop_after(void *self, const tdm_event *event)
{
    struct stopper *it = self;
    if (event->kind == TDM_EVENT_PROGRESS && event->epoch > 0 && --it->left == 0)
        tdm_stop_request();
}

/* While rows are made, before training begins. */
static void stop_in_features(void *self, const tdm_event *event)
{
    struct stopper *it = self;
    if (event->kind == TDM_EVENT_PHASE_BEGIN && strcmp(event->text, "computing features") == 0 &&
        --it->left == 0)
        tdm_stop_request();
}

/* Anywhere: in the head's epochs, on the border between, behind it. */
TEST_WITH(a_run_stopped_anywhere_goes_on_to_the_same_bits, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = with_base(tree);
    tdm_error err;
    options.unfreeze = 2;
    options.optimizer = "adam";
    options.learning_rate = 0.0;
    options.layer_decay = 0.8;
    options.ema = 0.9;
    must_train(&options, (tdm_sink){0}, &result);
    for (int steps = 3; steps <= 24; steps += 3) {
        char name[20];
        struct stopper stopper = {steps};
        snprintf(name, sizeof name, "cut%d", steps);
        options.run = below(tree, name);
        options.resume = false;
        assert_int_equal(tdm_train(&options, (tdm_sink){&stopper, stop_after}, &result, &err),
                         TDM_E_STOPPED);
        tdm_stop_clear();
        options.resume = true;
        must_train(&options, (tdm_sink){0}, &result);
        same_runs(tree, "next", name);
    }
}

TEST_WITH(deeper_layers_are_moved_less, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = with_base(tree);
    options.unfreeze = 0;
    options.freeze = "none";
    options.epochs = 1;
    options.layer_decay = 0.01; /* 1e-12 of the rate at the first layer: no bit moves */
    options.weight_decay = 0.0;
    must_train(&options, (tdm_sink){0}, &result);
    const int moved = layers_that_differ(tree, "base/best.safetensors", "next/last.safetensors");
    assert_true(moved > 0 && moved < 6);
    options.layer_decay = 1.0;
    options.run = below(tree, "all");
    must_train(&options, (tdm_sink){0}, &result);
    assert_int_equal(layers_that_differ(tree, "base/best.safetensors", "all/last.safetensors"), 6);
}

TEST_WITH(unfreezing_without_frozen_layers_is_refused, set_up, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_options options = small_norm_training(tree);
    options.run = below(tree, "run");
    options.unfreeze = 3;
    fails_with(&options, TDM_E_USAGE, "--unfreeze is 3, but training ends after 3 epochs");
    options.unfreeze = 1;
    options.freeze = "base";
    fails_with(&options, TDM_E_USAGE, "--freeze base leaves nothing to unfreeze");
    options.freeze = "6";
    fails_with(&options, TDM_E_USAGE, "--freeze 6 leaves nothing before the head to unfreeze");
    options.freeze = "none";
    options.unfreeze = 0;
    options.unfreeze_layers = 2;
    fails_with(&options, TDM_E_USAGE,
               "--unfreeze N, the epochs between moves, is required with it");
    options.unfreeze_layers = 0;
    options.layer_decay = 1.5;
    fails_with(&options, TDM_E_USAGE, "--layer-decay is 1.5; 0.01 to 1 is accepted");
}

TEST_WITH(steps_that_end_before_unfreezing_are_refused, set_up, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = with_base(tree); /* 7 steps an epoch */
    options.unfreeze = 2;
    options.steps = 14;
    fails_with(&options, TDM_E_USAGE,
               "--unfreeze 2 has no effect: training ends after 14 steps and layers are unfrozen "
               "after step 14");
    assert_int_equal(tdmi_file_kind_of(options.run), TDMI_FILE_MISSING);
    options.steps = 15;
    must_train(&options, (tdm_sink){0}, &result);
    assert_int_equal(result.layers_left, 0);
}

/* Layers that are still frozen are known, and reported, only at the end. */
TEST_WITH(layers_never_unfrozen_are_reported, set_up, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result},
                            again = {.struct_bytes = sizeof again};
    struct tdm_train_options options = with_base(tree);
    struct heard slow = {""}, short_of = {""}, whole = {""};
    options.unfreeze_layers = 1;
    options.patience = 10;
    must_train(&options, (tdm_sink){&slow, hear}, &result);
    assert_int_equal(result.layers_left, 6 - 3);
    assert_heard(&slow, "--patience counts from the last move, so it has no effect", true);
    assert_heard(&slow, "--unfreeze-layers 1: of 6 layers before the head 3 are unfrozen within",
                 true);
    assert_heard(
        &slow, "training ended in epoch 4 (epochs), and 3 layers before the head were never", true);
    options.resume = true;
    must_train(&options, (tdm_sink){0}, &again);
    assert_int_equal(again.layers_left, 3);
    options.resume = false;
    options.unfreeze_layers = 0;
    options.minutes = 1e-9;
    options.run = below(tree, "short");
    must_train(&options, (tdm_sink){&short_of, hear}, &result);
    assert_int_equal(result.layers_left, 6);
    assert_heard(&short_of, "training ended in epoch 1 (minutes), and 6 layers before", true);
    options.minutes = 0.0;
    options.run = below(tree, "whole");
    must_train(&options, (tdm_sink){&whole, hear}, &result);
    assert_int_equal(result.layers_left, 0);
    assert_heard(&whole, "never unfrozen", false);
    assert_heard(&whole, "ends nothing", false);
}

TEST_WITH(patience_that_is_off_is_not_spoken_of, set_up, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = with_base(tree);
    struct heard heard = {""};
    options.unfreeze_layers = 1;
    options.patience = 0;
    must_train(&options, (tdm_sink){&heard, hear}, &result);
    assert_heard(&heard, "--unfreeze-layers 1: of 6 layers before the head 3 are unfrozen within",
                 true);
    assert_heard(&heard, "--patience", false);
}

/* Another version may number nodes differently. Before the first checkpoint nothing is lost, so the
 * run is refused. */
TEST_WITH(another_freeze_point_is_refused_before_the_first_checkpoint, set_up, end_with_tree)
{
    struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = with_base(tree);
    struct stopper stopper = {1};
    char *words = NULL;
    size_t n_bytes = 0;
    tdm_error err = {0};
    options.unfreeze = 0;
    options.freeze = "base";
    assert_int_equal(tdm_train(&options, (tdm_sink){&stopper, stop_in_features}, &result, &err),
                     TDM_E_STOPPED);
    tdm_stop_clear();
    assert_int_equal(
        tdmi_file_read(below(tree, "next/run.json"), 1 << 20, (void **)&words, &n_bytes, NULL),
        TDM_OK);
    char *number = strstr(words, "\"first_trained\": ");
    assert_non_null(number);
    number += strlen("\"first_trained\": ");
    const char was = *number;
    *number = was == '5' ? '6' : '5';
    assert_int_equal(tdmi_file_write(below(tree, "next/run.json"), words, n_bytes, NULL), TDM_OK);
    options.resume = true;
    fails_with(&options, TDM_E_INPUT, "another -o begins anew");
    *number = was;
    assert_int_equal(tdmi_file_write(below(tree, "next/run.json"), words, n_bytes, NULL), TDM_OK);
    tdmi_free(words);
    must_train(&options, (tdm_sink){0}, &result);
    options.resume = false;
    options.run = below(tree, "whole");
    must_train(&options, (tdm_sink){0}, &result);
    same_runs(tree, "next", "whole");
}

TEST_MAIN(NULL, NULL)
