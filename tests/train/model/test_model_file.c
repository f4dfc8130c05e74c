/* Model files: everything comes back as it was saved, and nothing damaged is believed. */
#include "train/model/model_file.h"
#include "train/evaluate/score.h"
#include "models/known_network.h"
#include "weights/safetensors/safetensors.h"
#include "train/pictures.h"
#include "unit.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>

enum { n_classes = 4, n_train = 7, n_val = 3, size = 12 };

struct made {
    struct tdmi_model_file file;
    const char *names[n_classes];
    uint64_t train[n_train], val[n_val];
};

static float *numbers(int64_t n, uint64_t stream)
{
    float *values = tdmi_alloc((size_t)n + 1, sizeof *values);
    tdmi_rng rng = tdmi_rng_at(1, TDMI_RNG_TEST, 0, stream);
    assert_non_null(values);
    for (int64_t i = 0; i < n; i++)
        values[i] = tdmi_rng_uniform(&rng, -3.0f, 3.0f);
    return values;
}

static tdm_score with_copies(tdm_score score)
{
    tdmi_score_count_distinct(&score, score.n - 9, score.correct - 8);
    return score;
}

static void make(struct made *it, const char *network, bool is_checkpoint)
{
    static const char *const names[n_classes] = {"plain", "with space", "ünï/cødé", "quote\"d\n"};
    tdmi_graph *graph = network_new(network, size, n_classes);
    memset(it, 0, sizeof *it);
    for (int i = 0; i < n_classes; i++)
        it->names[i] = names[i];
    for (int i = 0; i < n_train; i++)
        it->train[i] = 0xF000000000000001u + (uint64_t)i;
    for (int i = 0; i < n_val; i++)
        it->val[i] = 3u * (uint64_t)i;
    it->file = (struct tdmi_model_file){
        .network = network,
        .graph = graph,
        .shard = 5,
        .n_classes = n_classes,
        .classes = it->names,
        .params = numbers(graph->param_values, 1),
        .states = numbers(graph->state_values, 2),
        .train_hashes = it->train,
        .val_hashes = it->val,
        .n_train_hashes = n_train,
        .n_val_hashes = n_val,
        .progress = {.step = 1ll << 40,
                     .epoch = 3,
                     .position = 17,
                     .epoch_n = 16,
                     .epoch_correct = 9,
                     .epoch_loss = 1.0 / 3.0,
                     .epoch_skipped = 1,
                     .images = 123456789012,
                     .best_epoch = 2,
                     .best_step = 77,
                     .epochs_since_best = 1,
                     .evaluated_step = 78,
                     .train_skipped = 2,
                     .val_skipped = 4,
                     .best_train = with_copies(tdmi_score_of(100, 50, 66.6)),
                     .best_val = tdmi_score_of(11, 7, 0.1)},
        .test_pixels = tdmi_alloc((size_t)tdmi_shape_values(graph->nodes[0].out), 1),
        .test_logits = numbers(n_classes, 3),
        .optimizer = "sgd",
        .n_slots = is_checkpoint ? 1 : 0,
        .slot_names = {"momentum"},
        .slots = {numbers(graph->param_values, 4)},
    };
    assert_non_null(it->file.test_pixels);
    for (int64_t i = 0; i < tdmi_shape_values(graph->nodes[0].out); i++)
        it->file.test_pixels[i] = (uint8_t)(i * 7);
}

static void unmake(struct made *it)
{
    tdmi_free(it->file.params);
    tdmi_free(it->file.states);
    tdmi_free(it->file.test_pixels);
    tdmi_free(it->file.test_logits);
    tdmi_free(it->file.slots[0]);
    tdmi_graph_free(it->file.graph);
}

static void same_values(const struct tdmi_tensor *tensors, int n, const float *a, const float *b)
{
    for (int i = 0; i < n; i++)
        assert_memory_equal(a + tensors[i].offset, b + tensors[i].offset,
                            sizeof *a * (size_t)tensors[i].n);
}

static void same_file(const struct tdmi_model_file *a, const struct tdmi_model_file *b)
{
    assert_string_equal(a->network, b->network);
    assert_int_equal(a->shard, b->shard);
    assert_int_equal(a->n_classes, b->n_classes);
    for (int i = 0; i < a->n_classes; i++)
        assert_string_equal(a->classes[i], b->classes[i]);
    assert_int_equal(a->graph->n_nodes, b->graph->n_nodes);
    same_values(a->graph->params, a->graph->n_params, a->params, b->params);
    same_values(a->graph->states, a->graph->n_states, a->states, b->states);
    assert_int_equal(a->n_train_hashes, b->n_train_hashes);
    assert_int_equal(a->n_val_hashes, b->n_val_hashes);
    assert_memory_equal(a->train_hashes, b->train_hashes,
                        sizeof(uint64_t) * (size_t)a->n_train_hashes);
    assert_memory_equal(a->val_hashes, b->val_hashes, sizeof(uint64_t) * (size_t)a->n_val_hashes);
    assert_memory_equal(a->test_logits, b->test_logits, sizeof(float) * (size_t)a->n_classes);
    assert_memory_equal(a->test_pixels, b->test_pixels,
                        (size_t)tdmi_shape_values(a->graph->nodes[0].out));
    assert_int_equal(a->n_slots, b->n_slots);
    for (int i = 0; i < a->n_slots; i++) {
        assert_string_equal(a->slot_names[i], b->slot_names[i]);
        same_values(a->graph->params, a->graph->n_params, a->slots[i], b->slots[i]);
    }
}

static void same_score(const tdm_score *a, const tdm_score *b)
{
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->correct, b->correct);
    assert_int_equal(a->n_distinct, b->n_distinct);
    assert_int_equal(a->correct_distinct, b->correct_distinct);
    assert_true(a->accuracy == b->accuracy && a->low == b->low && a->high == b->high);
    assert_true(a->loss == b->loss);
}

static void same_progress(const struct tdmi_progress *a, const struct tdmi_progress *b)
{
    assert_int_equal(a->step, b->step);
    assert_int_equal(a->epoch, b->epoch);
    assert_int_equal(a->position, b->position);
    assert_int_equal(a->epoch_n, b->epoch_n);
    assert_int_equal(a->epoch_correct, b->epoch_correct);
    assert_true(a->epoch_loss == b->epoch_loss);
    assert_int_equal(a->epoch_skipped, b->epoch_skipped);
    assert_int_equal(a->images, b->images);
    assert_int_equal(a->best_epoch, b->best_epoch);
    assert_int_equal(a->best_step, b->best_step);
    assert_int_equal(a->epochs_since_best, b->epochs_since_best);
    assert_int_equal(a->evaluated_step, b->evaluated_step);
    assert_int_equal(a->train_skipped, b->train_skipped);
    assert_int_equal(a->val_skipped, b->val_skipped);
    same_score(&a->best_train, &b->best_train);
    same_score(&a->best_val, &b->best_val);
}

TEST_WITH(everything_comes_back_as_it_was_saved, begin_with_tree, end_with_tree)
{
    static const char *const networks[] = {"lenet5", "convnet7"};
    struct tree *tree = *state;
    for (int i = 0; i < 4; i++) {
        struct made made;
        struct tdmi_model_file back;
        const char *path = below(tree, "a.safetensors"), *again = below(tree, "b.safetensors");
        make(&made, networks[i % 2], i / 2);
        assert_int_equal(tdmi_model_file_save(&made.file, path, NULL), TDM_OK);
        assert_int_equal(tdmi_model_file_load(path, &back, NULL), TDM_OK);
        same_file(&made.file, &back);
        same_progress(&made.file.progress, &back.progress);
        assert_int_equal(tdmi_model_file_save(&back, again, NULL), TDM_OK);
        same_files(path, again);
        tdmi_model_file_release(&back);
        unmake(&made);
    }
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void refused(const char *path, const char *says)
{
    struct tdmi_model_file back;
    tdm_error err = {0};
    char text[3000];
    tdm_status status = tdmi_model_file_load(path, &back, &err);
    tdm_error_format(&err, text, sizeof text);
    if (status != TDM_E_INPUT || !strstr(text, says) || !strstr(text, tdmi_path_name(path)))
        fail_msg("status %d; expected '%s' and the path in: %s", (int)status, says, text);
    assert_null(back.graph); /* released: nothing to release */
}

TEST_WITH(a_file_cut_short_is_refused, begin_with_tree, end_with_tree)
{
    struct tree *tree = *state;
    struct made made;
    void *bytes;
    size_t length;
    const char *path = below(tree, "model.safetensors");
    make(&made, "lenet5", true);
    assert_int_equal(tdmi_model_file_save(&made.file, path, NULL), TDM_OK);
    assert_int_equal(tdmi_file_read(path, 1 << 28, &bytes, &length, NULL), TDM_OK);
    for (size_t cut = 0; cut < length; cut += cut < 5000 ? 250 : length / 15) {
        tree_file(tree, "cut.safetensors", bytes, cut);
        refused(below(tree, "cut.safetensors"), "");
    }
    tdmi_free(bytes);
    unmake(&made);
}

TEST_WITH(a_flipped_bit_anywhere_is_refused, begin_with_tree, end_with_tree)
{
    struct tree *tree = *state;
    struct made made;
    void *bytes;
    size_t length;
    const char *path = below(tree, "model.safetensors");
    make(&made, "lenet5", true);
    assert_int_equal(tdmi_model_file_save(&made.file, path, NULL), TDM_OK);
    assert_int_equal(tdmi_file_read(path, 1 << 28, &bytes, &length, NULL), TDM_OK);
    for (int i = 0; i < 60; i++) {
        tdmi_rng rng = tdmi_rng_at(9, TDMI_RNG_TEST, 0, (uint64_t)i);
        size_t at = i < 20 ? tdmi_rng_below(&rng, 4000) : tdmi_rng_below(&rng, (uint32_t)length);
        uint8_t bit = (uint8_t)(1u << tdmi_rng_below(&rng, 8));
        ((uint8_t *)bytes)[at] ^= bit;
        tree_file(tree, "flipped.safetensors", bytes, length);
        refused(below(tree, "flipped.safetensors"), "");
        ((uint8_t *)bytes)[at] ^= bit;
    }
    tdmi_free(bytes);
    unmake(&made);
}

/* A file with these metadata and no tensors. */
static const char *with_text(struct tree *tree, const char *text)
{
    const char *path = below(tree, "other.safetensors");
    const float value = 1.0f;
    tdmi_safetensors_writer *writer = tdmi_safetensors_writer_new();
    if (text)
        tdmi_safetensors_note(writer, "tandem", text);
    tdmi_safetensors_add(writer, "x", TDMI_DTYPE_F32, 0, NULL, &value);
    assert_int_equal(tdmi_safetensors_finish(writer, path, NULL), TDM_OK);
    tdmi_safetensors_writer_free(writer);
    return path;
}

#define NODES                                                                                   \
    "\"nodes\":[{\"name\":\"input\",\"op\":\"input\",\"preprocess\":{\"width\":3,\"height\":3," \
    "\"channels\":3,\"fit\":\"pad\",\"crop_fraction\":1,\"filter\":\"lanczos\","                \
    "\"scale\":\"tf\"}},{\"name\":\"pool\",\"op\":\"global_pool\",\"input\":\"input\"},"        \
    "{\"name\":\"softmax\",\"op\":\"softmax\",\"input\":\"pool\"}]"

TEST_WITH(what_is_no_model_is_refused_in_a_sentence, begin_with_tree, end_with_tree)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {NULL, "no metadata entry 'tandem'"},
        {"{", "tandem"},
        {"{}", "model format 0"},
        {"{\"format_version\":999}", "model format 999"},
        {"{\"format_version\":1}", "network"},
        {"{\"format_version\":1," NODES "}", "0 class names for a network of 3"},
        {"{\"format_version\":1,\"classes\":[\"a\",\"b\"]," NODES "}", "2 class names"},
        {"{\"format_version\":1,\"classes\":[\"a\",\"b\",\"c\"]," NODES "}", "split.train"},
        {"{\"format_version\":1,\"shard\":0,\"classes\":[\"a\",\"b\",\"c\"]," NODES "}", "of 0"},
    };
    struct tree *tree = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refused(with_text(tree, cases[i].text), cases[i].says);
    refused(below(tree, "nowhere.safetensors"), "nowhere");
}

/* A limit on the size of files stands for a full disk. */
TEST_WITH(a_file_that_cannot_be_written_leaves_the_old_one, begin_with_tree, end_with_tree)
{
    struct tree *tree = *state;
    struct made old, new;
    struct tdmi_model_file back;
    struct rlimit before, little;
    tdm_error err = {0};
    const char *path = below(tree, "model.safetensors");
    make(&old, "lenet5", false);
    make(&new, "convnet7", false);
    assert_int_equal(tdmi_model_file_save(&old.file, path, NULL), TDM_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    little = before;
    little.rlim_cur = 100000;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    tdm_status status = tdmi_model_file_save(&new.file, path, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, TDM_E_SYSTEM);
    assert_int_equal(tdmi_model_file_load(path, &back, NULL), TDM_OK);
    same_file(&old.file, &back);
    tdmi_model_file_release(&back);
    tree_text(tree, "plain", "no folder");
    assert_int_equal(tdmi_model_file_save(&old.file, below(tree, "plain/x.safetensors"), &err),
                     TDM_E_SYSTEM);
    assert_int_equal(tdmi_model_file_save(&old.file, below(tree, "gone/x.safetensors"), &err),
                     TDM_E_SYSTEM);
    assert_int_equal(access(below(tree, "gone"), F_OK), -1); /* a moved run is not made again */
    unmake(&old);
    unmake(&new);
}

/* Every allocation of saving and loading fails in turn. */
TEST_WITH(running_out_of_memory_is_an_ordinary_error, begin_with_tree, end_with_tree)
{
    struct tree *tree = *state;
    struct made made;
    struct tdmi_model_file back;
    const char *path = below(tree, "model.safetensors");
    int n_failed[2] = {0};
    make(&made, "lenet5", true);
    assert_int_equal(tdmi_model_file_save(&made.file, path, NULL), TDM_OK);
    for (int loads = 0; loads < 2; loads++) {
        tdm_status status = TDM_E_MEMORY;
        for (int64_t n = 1; status != TDM_OK; n++) {
            tdm_error err = {0};
            tdmi_memory_fail_from(n);
            status = loads ? tdmi_model_file_load(path, &back, &err)
                           : tdmi_model_file_save(&made.file, path, &err);
            tdmi_memory_fail_from(0);
            if (status != TDM_OK)
                assert_int_equal(status, TDM_E_MEMORY);
            n_failed[loads] += status != TDM_OK;
        }
        assert_true(n_failed[loads] > 5);
    }
    same_file(&made.file, &back);
    tdmi_model_file_release(&back);
    unmake(&made);
}

TEST_WITH(a_score_follows_from_its_counts, begin_with_tree, end_with_tree)
{
    tdm_score score = tdmi_score_of(200, 150, 50.0), none = tdmi_score_of(0, 0, 0.0);
    assert_true(score.accuracy == 0.75 && score.loss == 0.25);
    assert_true(fabs(score.low - 0.6857) < 1e-4 && fabs(score.high - 0.8049) < 1e-4);
    assert_int_equal(none.n, 0);
    assert_true(none.low == 0.0 && none.high == 1.0 && none.loss == 0.0);
}

TEST_MAIN(NULL, NULL)
