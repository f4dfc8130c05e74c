/*
 * Whole jobs from text to text, as programs in other languages ask for them.
 */
#include "tandem/train.h"
#include "train/pictures.h"
#include "unit.h"

static tdm_json_document *must_read(const char *text)
{
    tdm_json_document *document = NULL;
    assert_non_null(text);
    assert_int_equal(tdm_json_read(text, strlen(text), "the answer", &document, NULL), TDM_OK);
    return document;
}

TEST(training_and_prediction_take_options_as_text)
{
    struct tree tree = quick_tree_new();
    char options[600], *answer = NULL;
    setenv("TANDEM_HOME", below(&tree, "home"), 1);
    paint_classes(&tree, 2, 10);
    snprintf(options, sizeof options,
             "{\"source\": \"%s\", \"run\": \"%s\", \"model\": \"lenet5\", \"size\": 12,"
             " \"epochs\": 12, \"batch\": 8, \"lr\": 0.02, \"balance\": true}",
             below(&tree, "pictures"), below(&tree, "run"));
    assert_int_equal(tdm_text_train(options, (tdm_sink){0}, &answer), TDM_OK);
    tdm_json_document *document = must_read(answer);
    const tdm_json_value *result = tdm_json_root(document);
    assert_string_equal(tdm_json_as_string(tdm_json_member(result, "run"), ""),
                        below(&tree, "run"));
    assert_int_equal(tdm_json_as_integer(tdm_json_member(result, "epochs"), 0), 12);
    const tdm_json_value *val = tdm_json_member(result, "val");
    assert_int_equal(tdm_json_as_integer(tdm_json_member(val, "n"), 0), 2);
    tdm_json_document_free(document);
    tdm_text_free(answer);

    const char *const paths[] = {below(&tree, "pictures/a/000.ppm"),
                                 below(&tree, "pictures/b/000.ppm")};
    assert_int_equal(tdm_text_predict(below(&tree, "run"), paths, 2, 1, &answer), TDM_OK);
    document = must_read(answer);
    const tdm_json_value *predictions = tdm_json_member(tdm_json_root(document), "predictions");
    assert_int_equal(tdm_json_count(predictions), 2);
    for (size_t i = 0; i < 2; i++) {
        const tdm_json_value *top = tdm_json_member(tdm_json_at(predictions, i), "top");
        assert_int_equal(tdm_json_count(top), 1);
        assert_string_equal(tdm_json_as_string(tdm_json_member(tdm_json_at(top, 0), "label"), ""),
                            i == 0 ? "a" : "b");
    }
    tdm_json_document_free(document);
    tdm_text_free(answer);
    tree_free(&tree);
}

/* Nothing but the new limit has to be said again. */
TEST(resuming_reads_the_recorded_options)
{
    struct tree tree = quick_tree_new();
    char options[600], *answer = NULL;
    setenv("TANDEM_HOME", below(&tree, "home"), 1);
    paint_classes(&tree, 2, 10);
    snprintf(options, sizeof options,
             "{\"source\": \"%s\", \"run\": \"%s\", \"model\": \"lenet5\", \"size\": 12,"
             " \"epochs\": 2, \"batch\": 8, \"seed\": 7, \"optimizer\": \"adam:beta1=0.8\"}",
             below(&tree, "pictures"), below(&tree, "run"));
    assert_int_equal(tdm_text_train(options, (tdm_sink){0}, &answer), TDM_OK);
    tdm_text_free(answer);
    snprintf(options, sizeof options,
             "{\"source\": \"%s\", \"run\": \"%s\", \"resume\": true, \"epochs\": 3}",
             below(&tree, "pictures"), below(&tree, "run"));
    if (tdm_text_train(options, (tdm_sink){0}, &answer) != TDM_OK)
        fail_msg("%s", answer);
    tdm_json_document *document = must_read(answer);
    assert_int_equal(tdm_json_as_integer(tdm_json_member(tdm_json_root(document), "epochs"), 0), 3);
    tdm_json_document_free(document);
    tdm_text_free(answer);
    snprintf(options, sizeof options,
             "{\"source\": \"%s\", \"run\": \"%s\", \"resume\": true, \"batch\": 4}",
             below(&tree, "pictures"), below(&tree, "run"));
    assert_int_equal(tdm_text_train(options, (tdm_sink){0}, &answer), TDM_E_USAGE);
    assert_non_null(strstr(answer, "option --batch is 4, but the run was started with 8"));
    tdm_text_free(answer);
    assert_int_equal(
        tdm_text_train("{\"source\": \"x\", \"resume\": true}", (tdm_sink){0}, &answer),
        TDM_E_USAGE);
    assert_non_null(strstr(answer, "requires \"run\", the folder of the run to resume"));
    tdm_text_free(answer);
    tree_free(&tree);
}

TEST(options_are_set_by_text_over_those_that_are_there)
{
    struct tdm_train_options options = tdm_train_options_default();
    tdm_json_document *words = NULL;
    tdm_error err = {0};
    options.epochs = 7;
    assert_ok(tdm_train_options_set("{\"source\": \"x\", \"lr\": 0.5, \"raw-shape\": \"2x2x3\"}",
                                    &options, &words, &err),
              &err);
    assert_int_equal(options.epochs, 7);
    assert_string_equal(options.source, "x");
    assert_string_equal(options.how.raw_shape, "2x2x3");
    assert_true(options.learning_rate > 0.49 && options.learning_rate < 0.51);
    tdm_json_document_free(words);
    assert_int_equal(tdm_train_options_set("{\"epoch\": 3}", &options, &words, &err), TDM_E_USAGE);
    assert_says(&err, "there is no option \"epoch\"");
    assert_null(words);
    assert_int_equal(options.epochs, 7);
}

TEST(errors_are_answered_in_sentences)
{
    static const struct {
        const char *options, *words;
        tdm_status status;
    } cases[] = {
        {"{\"source\": \"x\", \"epoch\": 3}", "did you mean 'epochs'?", TDM_E_USAGE},
        {"{\"source\": \"x\", \"tracee\": 3}", "did you mean 'trace'?", TDM_E_USAGE},
        {"{\"source\": \"x\", \"epochs\": \"3\"}",
         "option \"epochs\" is a string; a number or null is accepted", TDM_E_USAGE},
        {"{\"source\": \"x\", \"epochs\": 3.5}", "a whole number is accepted", TDM_E_USAGE},
        {"{\"source\": \"x\", \"epochs\": 4294967297}", "--epochs is 4.29497e+09; 0 to 1e+09 is",
         TDM_E_USAGE},
        {"{\"source\": \"x\", \"batch\": 4294967328}", "--batch is 4.29497e+09; 1 to 65536 is",
         TDM_E_USAGE},
        {"{\"source\": \"x\", \"steps\": 1e19}", "--steps is 1e+19; 0 to 1e+15 is", TDM_E_USAGE},
        {"{\"source\": \"x\", \"seed\": 1e19}", "a whole number of 64 bits is", TDM_E_USAGE},
        {"{\"source\": \"x\", \"batch\": null}",
         "option \"batch\" is null; a number or \"auto\" is", TDM_E_USAGE},
        {"{\"source\": \"x\", \"batch\": \"any\"}", "\"batch\" is a string; a number or \"auto\"",
         TDM_E_USAGE},
        {"{\"source\": \"/dev/null/x\", \"batch\": \"auto\"}", "/dev/null/x", TDM_E_INPUT},
        {"{\"source\": \"x\", \"bn\": 3}", "option \"bn\" is a number; a string is accepted",
         TDM_E_USAGE},
        {"{\"source\": \"x\", \"bn\": null}", "option \"bn\" is null; a string is", TDM_E_USAGE},
        {"{\"source\": \"x\", \"strict\": 2}",
         "option \"strict\" is a number; true, false, 0 or 1 is accepted", TDM_E_USAGE},
        {"{\"source\": 3}", "option \"source\" is a number; a string is accepted", TDM_E_USAGE},
        {"{\"source\": \"x\", \"run\": []}", "option \"run\" is an array; a string", TDM_E_USAGE},
        {"{\"source\": \"x\", \"resume\": \"yes\"}", "option \"resume\" is a string; true, false",
         TDM_E_USAGE},
        {"{\"source\": \"x\", \"bn\": \"all\"}", "shard, batch or frozen is accepted", TDM_E_USAGE},
        {"{\"source\": \"x\", \"model\": \"vgg\"}", "there is none of that name", TDM_E_USAGE},
        {"{\"epochs\": 3}", "no source of images is given", TDM_E_USAGE},
        {"{\"source\": \"/dev/null/x\"}", "/dev/null/x", TDM_E_INPUT},
        {"[]", "options are one JSON object", TDM_E_USAGE},
        {"{\"source\"", "the options", TDM_E_INPUT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *answer = NULL;
        assert_int_equal(tdm_text_train(cases[i].options, (tdm_sink){0}, &answer), cases[i].status);
        if (!answer || !strstr(answer, cases[i].words))
            fail_msg("'%s' is not in: %s", cases[i].words, answer ? answer : "nothing");
        tdm_text_free(answer);
    }
    char *answer = NULL;
    assert_int_equal(tdm_text_predict("/dev/null/run", NULL, 0, 1, &answer), TDM_E_INPUT);
    assert_non_null(strstr(answer, "/dev/null/run"));
    tdm_text_free(answer);
}

TEST_MAIN(NULL, NULL)
