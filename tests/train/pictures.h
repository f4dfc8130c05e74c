/*
 * A folder of small PPM pictures in class folders, made by the test itself, and a training small
 * enough to be repeated many times.
 */
#pragma once

#include "base/file/file.h"
#include "base/memory.h"
#include "base/hash/rng.h"
#include "data/tree.h"
#include "tandem/event.h"
#include "tandem/train.h"
#include "unit.h"

enum { PICTURE_SIDE = 9, PICTURE_BYTES = 11 + PICTURE_SIDE * PICTURE_SIDE * 3 };

/* A fresh folder, in memory where the system has such: hundreds of small trainings fsync a lot. */
static inline struct tree quick_tree_new(void)
{
    struct tree tree = {"/dev/shm/tandem-test-XXXXXX"};
    return mkdtemp(tree.root) ? tree : tree_new();
}

/* Each class lights another third of the rows, with noise that no two pictures share. */
static inline void paint_picture(const struct tree *tree, const char *name, int label, int number)
{
    uint8_t bytes[PICTURE_BYTES];
    tdmi_rng rng = tdmi_rng_at(6, TDMI_RNG_TEST, (uint32_t)label, (uint64_t)number);
    int at = snprintf((char *)bytes, sizeof bytes, "P6\n%d %d\n255\n", PICTURE_SIDE, PICTURE_SIDE);
    for (int y = 0; y < PICTURE_SIDE; y++)
        for (int x = 0; x < PICTURE_SIDE * 3; x++)
            bytes[at++] = (uint8_t)(tdmi_rng_below(&rng, 120) +
                                    (y * 3 / PICTURE_SIDE == label % 3 ? 100 : 30));
    assert_int_equal(at, PICTURE_BYTES);
    tree_file(tree, name, bytes, sizeof bytes);
}

static inline void paint_classes(const struct tree *tree, int classes, int per_class)
{
    for (int c = 0; c < classes; c++) {
        for (int i = 0; i < per_class; i++) {
            char name[40];
            snprintf(name, sizeof name, "pictures/%c/%03d.ppm", 'a' + c, i);
            paint_picture(tree, name, c, i);
        }
    }
}

/* A path below the tree that stays valid while 99 more are asked for. */
static inline const char *below(const struct tree *tree, const char *name)
{
    static char paths[100][200];
    static int next;
    char *path = paths[next++ % 100];
    snprintf(path, sizeof paths[0], "%s/%s", tree->root, name);
    return path;
}

/* 3 epochs of 7 steps of a small network; options.run is for the caller. */
static inline struct tdm_train_options small_training(const struct tree *tree)
{
    static char source[200];
    struct tdm_train_options options = tdm_train_options_default();
    snprintf(source, sizeof source, "%s/pictures", tree->root);
    options.source = source;
    options.model = "lenet5";
    options.size = 12;
    options.epochs = 3;
    options.patience = 0;
    options.batch = 8;
    options.shard = 3;
    options.learning_rate = 0.05;
    options.threads = 1;
    options.seed = 5;
    options.augment = "none"; /* auto has tests of its own */
    return options;
}

/* A head on the features of the run "base". */
static inline struct tdm_train_options with_frozen_base(const struct tree *tree, const char *run)
{
    struct tdm_train_options options = small_training(tree);
    options.weights = below(tree, "base");
    options.model = NULL;
    options.run = below(tree, run);
    return options;
}

/* A small training with batch norm, and eighty times the work. */
static inline struct tdm_train_options small_norm_training(const struct tree *tree)
{
    struct tdm_train_options options = small_training(tree);
    options.model = "convnet7";
    options.size = 8;
    return options;
}

/* result may be NULL. */
static inline void must_train(const struct tdm_train_options *options, tdm_sink sink,
                              struct tdm_train_result *result)
{
    struct tdm_train_result unused = {.struct_bytes = sizeof unused};
    tdm_error err = {0};
    char text[3000];
    if (tdm_train(options, sink, result ? result : &unused, &err) == TDM_OK)
        return;
    tdm_error_format(&err, text, sizeof text);
    fail_msg("%s", text);
}

/* The training ends with this status, and its message has these words. */
static inline void fails_with(const struct tdm_train_options *options, tdm_status status,
                              const char *words)
{
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    tdm_error err = {0};
    char text[4000];
    tdm_status found = tdm_train(options, (tdm_sink){0}, &result, &err);
    tdm_error_format(&err, text, sizeof text);
    if (found != status || !strstr(text, words))
        fail_msg("status %d, expected %d; expected '%s' in: %s", (int)found, (int)status, words,
                 text);
}

static inline void same_files(const char *a, const char *b)
{
    void *left, *right;
    size_t n_left, n_right;
    assert_int_equal(tdmi_file_read(a, 1 << 28, &left, &n_left, NULL), TDM_OK);
    assert_int_equal(tdmi_file_read(b, 1 << 28, &right, &n_right, NULL), TDM_OK);
    if (n_left != n_right || memcmp(left, right, n_left) != 0)
        fail_msg("%s and %s differ", a, b);
    tdmi_free(left);
    tdmi_free(right);
}

static inline void same_runs(const struct tree *tree, const char *a, const char *b)
{
    static const char *const files[] = {"best.safetensors", "last.safetensors",
                                        "outcomes.safetensors"};
    for (int i = 0; i < 3; i++) {
        char left[100], right[100];
        snprintf(left, sizeof left, "%s/%s", a, files[i]);
        snprintf(right, sizeof right, "%s/%s", b, files[i]);
        same_files(below(tree, left), below(tree, right));
    }
}

/* "1@7 2@14 ": epochs and steps of the lines of one kind in a run's metrics, as they stand. */
static inline const char *lines_of(const struct tree *tree, const char *run, const char *event)
{
    static char texts[4][8000];
    static int next;
    char *told = texts[next++ % 4], name[100], wanted[60];
    void *bytes;
    size_t n_bytes, n = 0;
    snprintf(name, sizeof name, "%s/metrics.jsonl", run);
    snprintf(wanted, sizeof wanted, "{\"event\":\"%s\",\"epoch\":", event);
    assert_int_equal(tdmi_file_read(below(tree, name), 1 << 28, &bytes, &n_bytes, NULL), TDM_OK);
    *told = '\0';
    for (const char *line = bytes; (line = strstr(line, wanted)) != NULL; line++) {
        int epoch, step;
        assert_int_equal(sscanf(line + strlen(wanted), "%d,\"step\":%d", &epoch, &step), 2);
        n += (size_t)snprintf(told + n, sizeof texts[0] - n, "%d@%d ", epoch, step);
    }
    tdmi_free(bytes);
    return told;
}

/* ---- set-up of a test program ------------------------------------------------------------- */

/* An empty folder. */
static inline int begin_with_tree(void **state)
{
    struct tree *tree = malloc(sizeof *tree);
    assert_non_null(tree);
    *tree = quick_tree_new();
    *state = tree;
    return 0;
}

/* A folder with so many classes of so many pictures, which holds the home of features, too. */
static inline struct tree *begin_with_classes(void **state, int classes, int per_class)
{
    (void)begin_with_tree(state);
    struct tree *tree = *state;
    setenv("TANDEM_HOME", below(tree, "home"), 1);
    paint_classes(tree, classes, per_class);
    return tree;
}

static inline int begin_with_sixty(void **state)
{
    (void)begin_with_classes(state, 3, 20);
    return 0;
}

/* A folder with classes, and in "base" a model of another three classes. */
static inline void begin_with_base(void **state, int classes, int per_class)
{
    struct tree *tree = begin_with_classes(state, 3, 6);
    struct tdm_train_options options = small_training(tree);
    options.run = below(tree, "base");
    must_train(&options, (tdm_sink){0}, NULL);
    assert_int_equal(rename(below(tree, "pictures"), below(tree, "others")), 0);
    paint_classes(tree, classes, per_class);
}

static inline int end_with_tree(void **state)
{
    tdm_stop_clear();
    tree_free(*state);
    free(*state);
    return 0;
}
