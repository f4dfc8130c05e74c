/* A trained model asked about pictures: opening, evaluating, predicting. */
#include "tandem/log.h"
#include "tandem/model.h"
#include "tandem/event.h"
#include "train/model/model_file.h"
#include "train/pictures.h"
#include "train/evaluate/predict.h"
#include "unit.h"

#include <math.h>

TDMI_POINTER_RELEASE(tdm_model, tdm_model_close)

static const tdm_sink nobody = {NULL, NULL};

/* One small training for all cases: below(tree, "run") and its pictures. */
static int set_up(void **state)
{
    struct tree *tree = begin_with_classes(state, 3, 10);
    struct tdm_train_options options = small_norm_training(tree);
    options.run = below(tree, "run");
    options.epochs = 2;
    must_train(&options, nobody, NULL);
    return 0;
}

static tdm_model *opened(const char *path, int threads)
{
    tdm_model *model = NULL;
    tdm_error err = {0};
    char text[3000];
    if (tdm_model_open(path, &(struct tdm_model_options){.threads = threads}, &model, &err) !=
        TDM_OK) {
        tdm_error_format(&err, text, sizeof text);
        fail_msg("%s", text);
    }
    return model;
}

TEST(a_model_knows_what_it_is)
{
    struct tree *tree = *state;
    static const char *const paths[] = {"run", "run/best.safetensors", "run/last.safetensors"};
    for (int i = 0; i < 3; i++) {
        tdm_model *model = opened(below(tree, paths[i]), 1);
        assert_string_equal(tdm_model_name(model), "convnet7");
        assert_int_equal(tdm_model_classes(model), 3);
        assert_string_equal(tdm_model_class(model, 0), "a");
        assert_string_equal(tdm_model_class(model, 2), "c");
        assert_null(tdm_model_class(model, 3));
        assert_null(tdm_model_class(model, -1));
        assert_true(tdm_model_parameters(model) > 280000);
        tdm_model_close(model);
    }
    tdm_model_close(NULL);
}

static void refused(const char *path, const char *device, tdm_status status, const char *says)
{
    tdm_model *model = NULL;
    tdm_error err = {0};
    char text[3000];
    const struct tdm_model_options options = {.device = device, .threads = 1};
    tdm_status found = tdm_model_open(path, &options, &model, &err);
    tdm_error_format(&err, text, sizeof text);
    if (found != status || !strstr(text, says))
        fail_msg("status %d; expected '%s' in: %s", (int)found, says, text);
    assert_null(model);
}

TEST(what_is_no_model_is_refused_in_a_sentence)
{
    struct tree *tree = *state;
    refused(below(tree, "nowhere"), "cpu", TDM_E_INPUT, "no such file");
    refused(below(tree, "pictures"), "cpu", TDM_E_INPUT, "neither best.safetensors nor");
    refused(below(tree, "pictures/a/000.ppm"), "cpu", TDM_E_INPUT, "000.ppm");
    refused("/dev/null", "cpu", TDM_E_INPUT, "neither a file nor a folder");
    refused(below(tree, "run"), "tpu", TDM_E_USAGE, "tpu");
}

TEST(a_model_that_computes_otherwise_fails_its_own_test)
{
    struct tree *tree = *state;
    TDMI_AT_END(tdmi_model_file_release) struct tdmi_model_file file = {0};
    const char *path = below(tree, "changed.safetensors");
    assert_int_equal(tdmi_model_file_load(below(tree, "run/best.safetensors"), &file, NULL),
                     TDM_OK);
    file.n_slots = 0;
    file.params[file.graph->params[0].offset] += 5.0f;
    assert_int_equal(tdmi_model_file_save(&file, path, NULL), TDM_OK);
    refused(path, "cpu", TDM_E_INPUT, "fails its own self-test");
    file.params[file.graph->params[0].offset] = NAN;
    assert_int_equal(tdmi_model_file_save(&file, path, NULL), TDM_OK);
    refused(path, "cpu", TDM_E_INPUT, "fails its own self-test");
}

TEST(a_model_that_lacks_memory_is_not_to_blame)
{
    struct tree *tree = *state;
    const struct tdm_model_options options = {.device = "cpu", .threads = 1};
    tdm_status status = TDM_E_MEMORY;
    for (int n = 1; status != TDM_OK; n++) {
        tdm_model *model = NULL;
        tdm_error err = {0};
        tdmi_memory_fail_from(n);
        status = tdm_model_open(below(tree, "run"), &options, &model, &err);
        tdmi_memory_fail_from(0);
        if (status != TDM_OK && status != TDM_E_MEMORY)
            fail_msg("allocation %d: %s", n, tdm_error_sentence(&err, 0));
        tdm_model_close(model);
        assert_true(n < 5000);
    }
}

/* ---- evaluate -------------------------------------------------------------------------------- */

TEST(evaluation_recognises_copies_and_leaves_out_what_it_does_not_know)
{
    struct tree *tree = *state;
    struct tdm_evaluation evaluation = {.struct_bytes = sizeof evaluation};
    tdm_model *model = opened(below(tree, "run"), 2);
    for (int i = 0; i < 10; i++) { /* the pictures of class b, renamed; strangers; a broken one */
        char name[40];
        snprintf(name, sizeof name, "mixed/b/renamed-%d.ppm", i);
        paint_picture(tree, name, 1, i);
        snprintf(name, sizeof name, "mixed/stranger/%d.ppm", i);
        paint_picture(tree, name, 1, 100 + i);
    }
    paint_picture(tree, "mixed/b/new.ppm", 1, 500);
    tree_text(tree, "mixed/b/broken.ppm", "P6\n9 9\n255\nshort");
    assert_int_equal(
        tdm_model_evaluate(model,
                           &(struct tdm_evaluate_options){
                               .source = below(tree, "mixed"), .part = TDM_PART_ALL, .batch = 7},
                           nobody, &evaluation, NULL),
        TDM_OK);
    assert_int_equal(evaluation.metrics.score.n, 11);
    assert_int_equal(evaluation.metrics.per_class[1].n, 11);
    assert_string_equal(evaluation.metrics.per_class[1].label, "b");
    assert_int_equal(evaluation.skipped, 11);
    assert_int_equal(evaluation.trained_on, 9);
    assert_int_equal(evaluation.unseen->score.n, 1);
    assert_int_equal(evaluation.validation->score.n, 1);
    assert_string_equal(evaluation.unseen->per_class[1].label, "b");
    tdm_evaluation_release(&evaluation);
    assert_int_equal(
        tdm_model_evaluate(model,
                           &(struct tdm_evaluate_options){
                               .source = below(tree, "mixed"), .part = TDM_PART_VAL, .batch = 7},
                           nobody, &evaluation, NULL),
        TDM_OK);
    assert_int_equal(evaluation.metrics.score.n, 1);
    tdm_evaluation_release(&evaluation);
    tdm_model_close(model);
}

TEST(evaluations_that_make_no_sense_are_refused)
{
    struct tree *tree = *state;
    struct tdm_evaluation evaluation = {.struct_bytes = sizeof evaluation};
    TDMI_AT_END(tdm_model_close_at) tdm_model *model = opened(below(tree, "run"), 1);
    static const struct {
        const char *source;
        enum tdm_part part;
        int batch;
        tdm_status status;
        const char *says;
    } cases[] = {
        {"nowhere", TDM_PART_ALL, 8, TDM_E_INPUT, "nowhere"},
        {"pictures", TDM_PART_ALL, 0, TDM_E_USAGE, "1 to 256"},
        {"pictures", TDM_PART_ALL, 257, TDM_E_USAGE, "1 to 256"},
        {"pictures", TDM_PART_TEST, 8, TDM_E_INPUT, "the run kept no images of"},
        {"strange", TDM_PART_ALL, 8, TDM_E_INPUT, "none is one of the model's 3"},
        {"flat", TDM_PART_ALL, 8, TDM_E_INPUT, "no class folders"},
    };
    paint_picture(tree, "strange/x/1.ppm", 0, 1);
    paint_picture(tree, "strange/y/1.ppm", 0, 2);
    paint_picture(tree, "flat/1.ppm", 0, 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdm_error err = {0};
        char text[3000];
        tdm_status status = tdm_model_evaluate(
            model,
            &(struct tdm_evaluate_options){.source = below(tree, cases[i].source),
                                           .part = cases[i].part,
                                           .batch = cases[i].batch},
            nobody, &evaluation, &err);
        tdm_error_format(&err, text, sizeof text);
        if (status != cases[i].status || !strstr(text, cases[i].says))
            fail_msg("status %d; expected '%s' in: %s", (int)status, cases[i].says, text);
        assert_null(evaluation.metrics.per_class);
    }
}

/* ---- predict --------------------------------------------------------------------------------- */

struct answers {
    int n, n_problems, top, stop_after;
    char paths[40][60], problems[40][200];
    struct tdm_guess best[40];
};

static tdm_status take(void *self, const struct tdm_prediction *prediction, tdm_error *err)
{
    struct answers *answers = self;
    const char *path = prediction->path, *problem = prediction->problem;
    const struct tdm_guess *guesses = prediction->guesses;
    const int n_guesses = prediction->n_guesses;
    assert_int_equal(prediction->n_logits, problem ? 0 : 3);
    assert_true((prediction->logits == NULL) == (problem != NULL));
    double sum = 0.0;
    if (answers->stop_after && answers->n == answers->stop_after)
        return TDM_FAIL(err, TDM_E_SYSTEM, "the listener has enough");
    assert_true(answers->n < 40);
    snprintf(answers->paths[answers->n], sizeof answers->paths[0], "%s", path);
    assert_true((problem == NULL) == (n_guesses > 0));
    for (int i = 0; i < n_guesses; i++) {
        assert_true(i == 0 || guesses[i].probability <= guesses[i - 1].probability);
        assert_true(guesses[i].index >= 0 && guesses[i].index < 3);
        assert_int_equal(guesses[i].label[0], 'a' + guesses[i].index);
        sum += (double)guesses[i].probability;
    }
    if (problem) {
        snprintf(answers->problems[answers->n], sizeof answers->problems[0], "%s", problem);
        answers->n_problems++;
    } else {
        answers->best[answers->n] = guesses[0];
        assert_int_equal(n_guesses, answers->top < 3 ? answers->top : 3);
        assert_true(n_guesses < 3 || fabs(sum - 1.0) < 1e-6);
    }
    answers->n++;
    return TDM_OK;
}

TEST(predictions_sum_to_one_in_descending_order)
{
    struct tree *tree = *state;
    for (int top = 1; top <= 4; top++) {
        tdm_model *model = opened(below(tree, "run"), top);
        struct answers answers = {.top = top};
        const char *paths[] = {below(tree, "pictures")};
        assert_int_equal(
            tdm_model_predict(model, paths, 1, top, (tdm_prediction_sink){&answers, take}, NULL),
            TDM_OK);
        assert_int_equal(answers.n, 30);
        assert_int_equal(answers.n_problems, 0);
        assert_string_equal(answers.paths[0], "a/000.ppm");
        assert_string_equal(answers.paths[29], "c/009.ppm");
        tdm_model_close(model);
    }
}

TEST(predictions_agree_with_evaluation)
{
    struct tree *tree = *state;
    tdm_model *model = opened(below(tree, "run"), 2);
    struct answers answers = {.top = 1};
    struct tdm_evaluation evaluation = {.struct_bytes = sizeof evaluation};
    const char *paths[] = {below(tree, "pictures")};
    int64_t correct = 0;
    assert_int_equal(
        tdm_model_predict(model, paths, 1, 1, (tdm_prediction_sink){&answers, take}, NULL), TDM_OK);
    for (int i = 0; i < answers.n; i++)
        correct += answers.paths[i][0] == answers.best[i].label[0];
    assert_int_equal(tdm_model_evaluate(model,
                                        &(struct tdm_evaluate_options){
                                            .source = paths[0], .part = TDM_PART_ALL, .batch = 8},
                                        nobody, &evaluation, NULL),
                     TDM_OK);
    assert_int_equal(evaluation.metrics.score.correct, correct);
    tdm_evaluation_release(&evaluation);
    assert_int_equal(tdm_model_evaluate(model, &(struct tdm_evaluate_options){.batch = 8}, nobody,
                                        &evaluation, NULL),
                     TDM_E_USAGE);
    tdm_model_close(model);
}

TEST(every_picture_is_answered_in_the_order_asked)
{
    struct tree *tree = *state;
    TDMI_AT_END(tdm_model_close_at) tdm_model *model = opened(below(tree, "run"), 2);
    struct answers answers = {.top = 3};
    tree_text(tree, "asked/broken.ppm", "P6\n9 9\n255\nshort");
    tree_text(tree, "asked/notes.txt", "no picture");
    paint_picture(tree, "asked/deep/er/z.ppm", 0, 1);
    paint_picture(tree, "asked/_hidden/z.ppm", 0, 1);
    const char *paths[] = {below(tree, "pictures/c/001.ppm"), below(tree, "asked"),
                           below(tree, "asked/notes.txt"), below(tree, "pictures/a/001.ppm")};
    assert_int_equal(
        tdm_model_predict(model, paths, 4, 3, (tdm_prediction_sink){&answers, take}, NULL), TDM_OK);
    assert_int_equal(answers.n, 5);
    assert_string_equal(answers.paths[0], paths[0]);
    assert_string_equal(answers.paths[1], below(tree, "asked/broken.ppm"));
    assert_string_equal(answers.paths[2], below(tree, "asked/deep/er/z.ppm"));
    assert_string_equal(answers.paths[3], paths[2]);
    assert_string_equal(answers.paths[4], paths[3]);
    assert_int_equal(answers.n_problems, 2);
    assert_true(strlen(answers.problems[1]) > 10 && strlen(answers.problems[3]) > 10);
}

/* As a source does: by content where the name does not say, without a run, and not in circles. */
TEST(folders_are_searched_as_a_source_searches_them)
{
    struct tree *tree = *state;
    TDMI_AT_END(tdm_model_close_at) tdm_model *model = opened(below(tree, "run"), 2);
    struct answers answers = {.top = 3};
    paint_picture(tree, "first/1.ppm", 0, 1);
    paint_picture(tree, "first/noending", 0, 2);
    paint_picture(tree, "first/deep/3.ppm", 0, 3);
    paint_picture(tree, "first/old-run/plot.ppm", 0, 3);
    tree_text(tree, "first/old-run/run.json", "{}");
    assert_int_equal(symlink("..", below(tree, "first/deep/up")), 0);
    paint_picture(tree, "second/1.ppm", 0, 1);
    const char *paths[] = {below(tree, "first"), below(tree, "second")};
    tdm_log_set_level(TDM_LOG_SILENT);
    assert_int_equal(
        tdm_model_predict(model, paths, 2, 3, (tdm_prediction_sink){&answers, take}, NULL), TDM_OK);
    tdm_log_set_level(TDM_LOG_WARNING);
    assert_int_equal(answers.n, 4);
    assert_int_equal(answers.n_problems, 0);
    assert_string_equal(answers.paths[0], below(tree, "first/1.ppm"));
    assert_string_equal(answers.paths[1], below(tree, "first/deep/3.ppm"));
    assert_string_equal(answers.paths[2], below(tree, "first/noending"));
    assert_string_equal(answers.paths[3], below(tree, "second/1.ppm"));
}

/* The logits of each image by its position, or that it is not an image. */
struct seen {
    int n;
    bool is_picture[40];
    float logits[40][3];
    char names[40][40];
};

static tdm_status see(void *self, const struct tdm_prediction *prediction, tdm_error *err)
{
    struct seen *seen = self;
    (void)err;
    assert_true(seen->n < 40);
    seen->is_picture[seen->n] = !prediction->problem;
    if (!prediction->problem)
        memcpy(seen->logits[seen->n], prediction->logits, sizeof seen->logits[0]);
    snprintf(seen->names[seen->n++], sizeof seen->names[0], "%s", prediction->path);
    return TDM_OK;
}

TEST(pictures_in_memory_get_the_bits_that_their_files_get)
{
    struct tree *tree = *state;
    TDMI_AT_END(tdm_model_close_at) tdm_model *model = opened(below(tree, "run"), 2);
    const char *paths[] = {below(tree, "pictures")};
    struct seen files = {0}, together = {0};
    assert_int_equal(
        tdm_model_predict(model, paths, 1, 1, (tdm_prediction_sink){&files, see}, NULL), TDM_OK);
    struct tdm_picture pictures[32] = {0};
    for (int i = 0; i < 30; i++) {
        void *bytes;
        char name[60];
        snprintf(name, sizeof name, "pictures/%s", files.names[i]);
        assert_int_equal(
            tdmi_file_read(below(tree, name), 1 << 20, &bytes, &pictures[i].length_bytes, NULL),
            TDM_OK);
        pictures[i].bytes = bytes;
        pictures[i].name = files.names[i];
        struct seen alone = {0};
        assert_int_equal(tdm_model_predict_pictures(model, &pictures[i], 1, 3,
                                                    (tdm_prediction_sink){&alone, see}, NULL),
                         TDM_OK);
        assert_memory_equal(alone.logits[0], files.logits[i], sizeof alone.logits[0]);
    }
    pictures[30] = (struct tdm_picture){.name = "nothing"};
    pictures[31] = (struct tdm_picture){"cut", pictures[0].bytes, pictures[0].length_bytes / 2};
    assert_int_equal(tdm_model_predict_pictures(model, pictures, 32, 1,
                                                (tdm_prediction_sink){&together, see}, NULL),
                     TDM_OK);
    assert_int_equal(together.n, 32);
    for (int i = 0; i < 32; i++)
        assert_int_equal(together.is_picture[i], i < 30);
    assert_memory_equal(together.logits, files.logits, 30 * sizeof files.logits[0]);
    assert_string_equal(together.names[31], "cut");
    for (int i = 0; i < 30; i++)
        tdmi_free((void *)(uintptr_t)pictures[i].bytes);
}

struct allowing {
    struct answers answers;
    tdm_status statuses[4];
};

static bool allow_all_but_the_second(void *self, size_t index, struct tdmi_image_limits *limits)
{
    (void)self;
    limits->max_pixels = index == 2 ? 1 : 1000000;
    return index != 1;
}

static tdm_status take_status(void *self, const struct tdm_prediction *prediction, tdm_error *err)
{
    struct allowing *it = self;
    (void)err;
    assert_true((prediction->problem == NULL) == (prediction->problem_status == TDM_OK));
    it->statuses[it->answers.n++] = prediction->problem_status;
    return TDM_OK;
}

/* Each picture has limits of its own, and one that nobody wants any more is left out. */
TEST(a_server_says_of_each_picture_what_it_may_take)
{
    struct tree *tree = *state;
    TDMI_AT_END(tdm_model_close_at) tdm_model *model = opened(below(tree, "run"), 2);
    struct allowing allowing = {0};
    const struct tdmi_predicting how = {.allow = allow_all_but_the_second, .is_finished = true};
    struct tdm_picture pictures[4];
    TDMI_AT_END(tdmi_free_at) void *bytes = NULL;
    size_t length = 0;
    assert_int_equal(
        tdmi_file_read(below(tree, "pictures/a/001.ppm"), 1 << 20, &bytes, &length, NULL), TDM_OK);
    for (int i = 0; i < 4; i++)
        pictures[i] = (struct tdm_picture){"p", bytes, length};
    tdm_stop_request(); /* which a server's pictures do not see */
    assert_int_equal(tdmi_model_predict_pictures(model, pictures, 4, 1, &how,
                                                 (tdm_prediction_sink){&allowing, take_status},
                                                 NULL),
                     TDM_OK);
    tdm_stop_clear();
    assert_int_equal(allowing.answers.n, 4);
    assert_int_equal(allowing.statuses[0], TDM_OK);
    assert_int_equal(allowing.statuses[1], TDM_E_STOPPED);
    assert_int_equal(allowing.statuses[2], TDM_E_INPUT);
    assert_int_equal(allowing.statuses[3], TDM_OK);
}

TEST(predictions_that_make_no_sense_are_refused)
{
    struct tree *tree = *state;
    TDMI_AT_END(tdm_model_close_at) tdm_model *model = opened(below(tree, "run"), 1);
    struct answers answers = {.top = 1};
    tdm_prediction_sink sink = {&answers, take};
    tdm_error err = {0};
    const char *missing[] = {below(tree, "pictures/a/001.ppm"), below(tree, "nowhere")};
    const char *bare[] = {below(tree, "bare")}, *all[] = {below(tree, "pictures")};
    tree_folder(tree, "bare");
    assert_int_equal(tdm_model_predict(model, missing, 2, 1, sink, &err), TDM_E_INPUT);
    assert_int_equal(answers.n, 2); /* what is there is answered all the same */
    assert_int_equal(answers.n_problems, 1);
    answers.n = answers.n_problems = 0;
    assert_int_equal(tdm_model_predict(model, bare, 1, 1, sink, &err), TDM_E_INPUT);
    assert_int_equal(answers.n, 1); /* with the problem, when it stands alone, too */
    assert_int_equal(answers.n_problems, 1);
    answers.n = 0;
    assert_int_equal(tdm_model_predict(model, all, 0, 1, sink, &err), TDM_E_INPUT);
    assert_int_equal(tdm_model_predict(model, all, 1, 0, sink, &err), TDM_E_USAGE);
    assert_int_equal(tdm_model_predict(model, all, 1, 1001, sink, &err), TDM_E_USAGE);
    assert_int_equal(answers.n, 0); /* nothing was answered before the refusal */
    answers.stop_after = 4;
    assert_int_equal(tdm_model_predict(model, all, 1, 1, sink, &err), TDM_E_SYSTEM);
    assert_int_equal(answers.n, 4);
}

TEST_MAIN(set_up, end_with_tree)
