/* Metrics against numbers computed by hand, and the outcomes of every image. */
#include "train/evaluate/metrics.h"
#include "base/file/file.h"
#include "base/memory.h"
#include "weights/safetensors/safetensors.h"
#include "base/text/json.h"
#include "unit.h"

#include <math.h>
#include <unistd.h>

static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g"};

static void add(tdmi_outcomes *outcomes, uint64_t content, int label, int predicted,
                float confidence)
{
    float probabilities[7];
    const int n = outcomes->n_classes;
    for (int c = 0; c < n; c++)
        probabilities[c] = c == predicted ? confidence : (1.0f - confidence) / (float)(n - 1);
    tdmi_outcomes_add(outcomes, content, label, (struct tdmi_judgement){0.5f, predicted},
                      probabilities);
}

static void opened(tdmi_outcomes *outcomes, int n_classes, int64_t capacity)
{
    assert_int_equal(tdmi_outcomes_open(outcomes, n_classes, capacity, NULL), TDM_OK);
    outcomes->classes = names;
    outcomes->network = "lenet5";
}

/* Class a: 3 of 4 right, one taken for b. b: 1 of 2, one taken for a. c: none, but once said. */
static void four_classes(tdmi_outcomes *outcomes)
{
    opened(outcomes, 4, 8);
    add(outcomes, 11, 0, 0, 0.90f);
    add(outcomes, 12, 0, 0, 0.50f);
    add(outcomes, 13, 0, 0, 1.00f);
    add(outcomes, 14, 0, 1, 0.90f);
    add(outcomes, 15, 1, 1, 0.95f);
    add(outcomes, 16, 1, 0, 0.40f);
    add(outcomes, 17, 3, 2, 0.96f);
    add(outcomes, 18, 3, 3, 0.30f);
}

TEST(classes_and_pairs_are_counted)
{
    TDMI_AT_END(tdmi_outcomes_release) tdmi_outcomes outcomes = {0};
    TDMI_AT_END(tdm_metrics_release) struct tdm_metrics metrics = {0};
    four_classes(&outcomes);
    assert_int_equal(tdmi_metrics_of(&outcomes, names, &metrics, NULL), TDM_OK);
    static const int64_t n[] = {4, 2, 0, 2}, correct[] = {3, 1, 0, 1}, predicted[] = {4, 2, 1, 1};
    for (int c = 0; c < 4; c++) {
        assert_string_equal(metrics.per_class[c].label, names[c]);
        assert_int_equal(metrics.per_class[c].n, n[c]);
        assert_int_equal(metrics.per_class[c].correct, correct[c]);
        assert_int_equal(metrics.per_class[c].predicted, predicted[c]);
    }
    assert_int_equal(metrics.score.n, 8);
    assert_int_equal(metrics.score.correct, 5);
    assert_true(metrics.score.loss == 0.5);
    assert_int_equal(metrics.top5_correct, -1);
    static const struct tdm_confusion pairs[] = {{0, 0, 3}, {0, 1, 1}, {1, 0, 1},
                                                 {1, 1, 1}, {3, 2, 1}, {3, 3, 1}};
    assert_int_equal(metrics.n_confusion, 6);
    assert_memory_equal(metrics.confusion, pairs, sizeof pairs);
}

/* (3/4 + 1/2 + 1/2) / 3; class c has no picture. Of the interval: Wilson of 3 of 4 is 0.300642 to
 * 0.954413, of 1 of 2 0.094531 to 0.905469; below 0.583333 by the root of 0.201923 + 2 · 0.164405
 * over 3, above by that of 0.041785 + 2 · 0.164405. */
TEST(balanced_accuracy_is_the_mean_of_recalls_that_exist)
{
    TDMI_AT_END(tdmi_outcomes_release) tdmi_outcomes outcomes = {0};
    TDMI_AT_END(tdm_metrics_release) struct tdm_metrics metrics = {0};
    four_classes(&outcomes);
    assert_int_equal(tdmi_metrics_of(&outcomes, names, &metrics, NULL), TDM_OK);
    assert_true(fabs(metrics.balanced_accuracy - 1.75 / 3.0) < 1e-15);
    assert_true(fabs(metrics.balanced.low - 0.340495) < 1e-6);
    assert_true(fabs(metrics.balanced.high - 0.786255) < 1e-6);
}

/* Content 11 stands three times in class a, and content 15 in b and, wrong there, in d. */
TEST(copies_count_once_in_intervals_and_as_images_everywhere_else)
{
    TDMI_AT_END(tdmi_outcomes_release) tdmi_outcomes outcomes = {0};
    TDMI_AT_END(tdm_metrics_release) struct tdm_metrics metrics = {0};
    opened(&outcomes, 4, 6);
    add(&outcomes, 11, 0, 0, 0.9f);
    add(&outcomes, 15, 1, 1, 0.9f);
    add(&outcomes, 11, 0, 0, 0.9f);
    add(&outcomes, 11, 0, 0, 0.9f);
    add(&outcomes, 12, 0, 1, 0.9f);
    add(&outcomes, 15, 3, 1, 0.9f);
    assert_int_equal(tdmi_metrics_of(&outcomes, names, &metrics, NULL), TDM_OK);
    const tdm_interval of_three = tdm_wilson(1, 3);
    assert_int_equal(metrics.score.n, 6);
    assert_int_equal(metrics.score.correct, 4);
    assert_int_equal(metrics.score.n_distinct, 3);
    assert_int_equal(metrics.score.correct_distinct, 1);
    assert_true(metrics.score.accuracy == 4.0 / 6.0);
    assert_true(metrics.score.low == of_three.low && metrics.score.high == of_three.high);
    assert_true(tdm_accuracy_distinct(&metrics.score) == 1.0 / 3.0);
    /* Class b has no image of its own: its only one is counted in d. */
    assert_true(tdm_balanced_distinct(&metrics) == (0.5 + 0.0) / 2.0);
    int worst[4];
    assert_int_equal(tdm_metrics_worst_classes(&metrics, 4, worst), 3);
    assert_int_equal(worst[0], 3);
    assert_int_equal(worst[1], 0);
    assert_int_equal(worst[2], 1);
    assert_true(metrics.balanced_accuracy == (3.0 / 4.0 + 1.0 + 0.0) / 3.0);
    static const int64_t n[] = {4, 1, 0, 1}, distinct[] = {2, 0, 0, 1}, right[] = {1, 0, 0, 0};
    for (int c = 0; c < 4; c++) {
        assert_int_equal(metrics.per_class[c].n, n[c]);
        assert_int_equal(metrics.per_class[c].n_distinct, distinct[c]);
        assert_int_equal(metrics.per_class[c].correct_distinct, right[c]);
    }
    assert_int_equal(metrics.per_class[1].predicted, 3);
    assert_int_equal(metrics.per_class[1].predicted_distinct, 2);
}

TEST(images_of_unknown_content_are_no_copies)
{
    TDMI_AT_END(tdmi_outcomes_release) tdmi_outcomes outcomes = {0};
    TDMI_AT_END(tdm_metrics_release) struct tdm_metrics metrics = {0};
    opened(&outcomes, 2, 4);
    add(&outcomes, 0, 0, 0, 0.9f);
    add(&outcomes, 0, 0, 0, 0.9f);
    add(&outcomes, 7, 1, 1, 0.9f);
    add(&outcomes, 7, 1, 1, 0.9f);
    assert_int_equal(tdmi_metrics_of(&outcomes, names, &metrics, NULL), TDM_OK);
    assert_int_equal(metrics.score.n_distinct, 3);
}

/* Bins: 0.90 twice in bin 13 (one right), 0.95 and 0.96 and 1.00 in 14 (two right), 0.50 in 7,
 * 0.40 in 6 (wrong), 0.30 in 4: distances 0.8, 0.91, 0.5, 0.4 and 0.7 of 8 pictures. */
TEST(calibration_error_is_the_mean_distance_in_15_bins)
{
    TDMI_AT_END(tdmi_outcomes_release) tdmi_outcomes outcomes = {0};
    TDMI_AT_END(tdm_metrics_release) struct tdm_metrics metrics = {0};
    four_classes(&outcomes);
    assert_int_equal(tdmi_metrics_of(&outcomes, names, &metrics, NULL), TDM_OK);
    static const int64_t n[] = {0, 0, 0, 0, 1, 0, 1, 1, 0, 0, 0, 0, 0, 2, 3};
    static const int64_t correct[] = {0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 2};
    for (int b = 0; b < TDM_CALIBRATION_BINS; b++) {
        assert_int_equal(metrics.bins[b].n, n[b]);
        assert_int_equal(metrics.bins[b].correct, correct[b]);
    }
    assert_true(fabs(metrics.bins[13].confidence - 0.9) < 1e-6);
    assert_true(fabs(metrics.calibration_error - (0.8 + 0.91 + 0.5 + 0.4 + 0.7) / 8.0) < 1e-6);
}

TEST(a_label_among_the_five_likeliest_counts)
{
    TDMI_AT_END(tdmi_outcomes_release) tdmi_outcomes outcomes = {0};
    TDMI_AT_END(tdm_metrics_release) struct tdm_metrics metrics = {0};
    const float falling[] = {0.4f, 0.2f, 0.15f, 0.1f, 0.08f, 0.05f, 0.02f};
    const float equal[] = {0.5f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.0f};
    opened(&outcomes, 7, 9);
    for (int label = 0; label < 7; label++)
        tdmi_outcomes_add(&outcomes, 1, label, (struct tdmi_judgement){0.0f, 0}, falling);
    for (int label = 4; label < 6; label++) /* equals stand in the order of the classes */
        tdmi_outcomes_add(&outcomes, 1, label, (struct tdmi_judgement){0.0f, 0}, equal);
    for (int label = 0; label < 7; label++)
        assert_int_equal(outcomes.ranks[label], label);
    assert_int_equal(tdmi_metrics_of(&outcomes, names, &metrics, NULL), TDM_OK);
    assert_int_equal(metrics.top5_correct, 5 + 1);
}

TEST(only_what_is_right_has_rank_0)
{
    TDMI_AT_END(tdmi_outcomes_release) tdmi_outcomes outcomes = {0};
    const float saturated[] = {1.0f, 1.0f, 0.0f};
    opened(&outcomes, 3, 2);
    tdmi_outcomes_add(&outcomes, 1, 0, (struct tdmi_judgement){0.1f, 1}, saturated);
    tdmi_outcomes_add(&outcomes, 1, 1, (struct tdmi_judgement){0.1f, 1}, saturated);
    assert_int_equal(outcomes.ranks[0], 1);
    assert_int_equal(outcomes.ranks[1], 0);
}

TEST(the_worst_come_first_and_fit_the_room)
{
    TDMI_AT_END(tdmi_outcomes_release) tdmi_outcomes outcomes = {0};
    TDMI_AT_END(tdm_metrics_release) struct tdm_metrics metrics = {0};
    int classes[4];
    struct tdm_confusion pairs[2];
    four_classes(&outcomes);
    assert_int_equal(tdmi_metrics_of(&outcomes, names, &metrics, NULL), TDM_OK);
    assert_int_equal(tdm_metrics_worst_classes(&metrics, 4, classes), 3);
    assert_int_equal(classes[0], 1);
    assert_int_equal(classes[1], 3);
    assert_int_equal(classes[2], 0);
    assert_int_equal(tdm_metrics_worst_classes(&metrics, 1, classes), 1);
    assert_int_equal(classes[0], 1);
    assert_int_equal(tdm_metrics_worst_classes(&metrics, 0, classes), 0);
    assert_int_equal(tdm_metrics_worst_confusions(&metrics, 2, pairs), 2);
    assert_int_equal(pairs[0].label, 0);
    assert_int_equal(pairs[1].label, 1);
}

TEST(metrics_of_nothing_are_no_numbers_that_mislead)
{
    TDMI_AT_END(tdmi_outcomes_release) tdmi_outcomes outcomes = {0};
    TDMI_AT_END(tdm_metrics_release) struct tdm_metrics metrics = {0};
    opened(&outcomes, 3, 0);
    assert_int_equal(tdmi_metrics_of(&outcomes, names, &metrics, NULL), TDM_OK);
    assert_int_equal(metrics.score.n, 0);
    assert_true(metrics.balanced.low == 0.0 && metrics.balanced.high == 1.0);
    assert_true(metrics.calibration_error == 0.0);
    assert_int_equal(metrics.n_confusion, 0);
}

TEST(json_has_a_row_of_counts_for_every_class)
{
    TDMI_AT_END(tdmi_outcomes_release) tdmi_outcomes outcomes = {0};
    TDMI_AT_END(tdm_metrics_release) struct tdm_metrics metrics = {0};
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    const char *text;
    size_t n_bytes;
    four_classes(&outcomes);
    assert_int_equal(tdmi_metrics_of(&outcomes, names, &metrics, NULL), TDM_OK);
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *writer = tdm_json_writer_new(0);
    tdm_json_object_begin(writer, NULL);
    tdm_metrics_to_json(&metrics, writer);
    tdm_json_object_end(writer);
    assert_int_equal(tdm_json_finish(writer, &text, &n_bytes, NULL), TDM_OK);
    assert_int_equal(tdm_json_read(text, n_bytes, "metrics", &document, NULL), TDM_OK);
    const tdm_json_value *root = tdm_json_root(document);
    const tdm_json_value *rows = tdm_json_member(root, "confusion");
    static const int64_t counts[4][4] = {{3, 1, 0, 0}, {1, 1, 0, 0}, {0, 0, 0, 0}, {0, 0, 1, 1}};
    for (size_t r = 0; r < 4; r++)
        for (size_t c = 0; c < 4; c++)
            assert_int_equal(tdm_json_as_integer(tdm_json_at(tdm_json_at(rows, r), c), -1),
                             counts[r][c]);
    const tdm_json_value *c = tdm_json_at(tdm_json_member(root, "per_class"), 2);
    assert_int_equal(tdm_json_kind_of(tdm_json_member(c, "recall")), TDM_JSON_NULL);
    assert_true(tdm_json_as_number(tdm_json_member(c, "precision"), -1.0) == 0.0);
    assert_int_equal(tdm_json_kind_of(tdm_json_member(root, "top5")), TDM_JSON_NULL);
}

/* ---- the file --------------------------------------------------------------------------- */

TEST(a_file_of_outcomes_reads_back)
{
    char path[] = "/tmp/tandem-outcomes-XXXXXX";
    TDMI_AT_END(tdmi_outcomes_release) tdmi_outcomes outcomes = {0};
    TDMI_AT_END(tdmi_outcomes_release) tdmi_outcomes read = {0};
    assert_true(close(mkstemp(path)) == 0);
    four_classes(&outcomes);
    outcomes.epoch = 7;
    outcomes.step = 70;
    assert_int_equal(tdmi_outcomes_save(&outcomes, path, NULL), TDM_OK);
    assert_int_equal(tdmi_outcomes_load(path, &read, NULL), TDM_OK);
    assert_int_equal(read.n, 8);
    assert_int_equal(read.n_classes, 4);
    assert_string_equal(read.classes[3], "d");
    assert_string_equal(read.network, "lenet5");
    assert_int_equal(read.epoch, 7);
    assert_int_equal(read.step, 70);
    assert_memory_equal(read.contents, outcomes.contents, 8 * sizeof *read.contents);
    assert_memory_equal(read.labels, outcomes.labels, 8 * sizeof *read.labels);
    assert_memory_equal(read.predicted, outcomes.predicted, 8 * sizeof *read.predicted);
    assert_memory_equal(read.ranks, outcomes.ranks, 8 * sizeof *read.ranks);
    assert_memory_equal(read.probabilities, outcomes.probabilities, 8 * sizeof(float));
    assert_memory_equal(read.confidences, outcomes.confidences, 8 * sizeof(float));
    assert_memory_equal(read.losses, outcomes.losses, 8 * sizeof(float));
    remove(path);
}

TEST(a_file_that_would_count_wrongly_is_refused)
{
    char path[] = "/tmp/tandem-outcomes-XXXXXX";
    assert_true(close(mkstemp(path)) == 0);
    for (int kind = 0; kind < 6; kind++) {
        TDMI_AT_END(tdmi_outcomes_release) tdmi_outcomes outcomes = {0};
        TDMI_AT_END(tdmi_outcomes_release) tdmi_outcomes read = {0};
        tdm_error err = {0};
        four_classes(&outcomes);
        switch (kind) {
        case 0:
            outcomes.labels[3] = 4;
            break;
        case 1:
            outcomes.predicted[3] = -1;
            break;
        case 2:
            outcomes.ranks[0] = 2; /* right, and yet two are likelier */
            break;
        case 3:
            outcomes.confidences[1] = NAN;
            break;
        case 4:
            outcomes.losses[1] = INFINITY;
            break;
        default:
            outcomes.probabilities[1] = 1.5f;
            break;
        }
        assert_int_equal(tdmi_outcomes_save(&outcomes, path, NULL), TDM_OK);
        assert_int_equal(tdmi_outcomes_load(path, &read, &err), TDM_E_INPUT);
    }
    remove(path);
}

TEST(another_safetensors_file_is_named_as_such)
{
    TDMI_AT_END(tdmi_safetensors_writer_free_at)
    tdmi_safetensors_writer *writer = tdmi_safetensors_writer_new();
    tdmi_outcomes read;
    tdm_error err = {0};
    char text[2000];
    TDMI_AT_END(tdmi_free_at) void *bytes = NULL;
    size_t n_bytes;
    assert_int_equal(tdmi_safetensors_finish_bytes(writer, &bytes, &n_bytes, NULL), TDM_OK);
    assert_int_equal(tdmi_outcomes_read(bytes, n_bytes, "x", &read, &err), TDM_E_INPUT);
    tdm_error_format(&err, text, sizeof text);
    assert_non_null(strstr(text, "it holds no outcomes"));
}

TEST_MAIN(NULL, NULL)
