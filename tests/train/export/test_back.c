/* An export of ours opened again says of the same pictures what the run says. */
#include "tandem/model.h"
#include "train/pictures.h"
#include "unit.h"

#include <math.h>

TDMI_POINTER_RELEASE(tdm_model, tdm_model_close)

enum { CLASSES = 3, PICTURES = 4 };

struct answers {
    int n;
    float logits[CLASSES * PICTURES][CLASSES];
};

static tdm_status remember(void *self, const struct tdm_prediction *prediction, tdm_error *err)
{
    struct answers *answers = self;
    (void)err;
    assert_null(prediction->problem);
    assert_int_equal(prediction->n_logits, CLASSES);
    assert_true(answers->n < CLASSES * PICTURES);
    memcpy(answers->logits[answers->n++], prediction->logits, sizeof answers->logits[0]);
    return TDM_OK;
}

static tdm_model *must_open(const char *path, const struct tdm_model_options *options)
{
    tdm_model *model = NULL;
    tdm_error err = {0};
    char text[3000];
    if (tdm_model_open(path, options, &model, &err) != TDM_OK) {
        tdm_error_format(&err, text, sizeof text);
        fail_msg("%s", text);
    }
    return model;
}

static void ask(tdm_model *model, const struct tree *tree, struct answers *answers)
{
    const char *pictures = below(tree, "pictures");
    *answers = (struct answers){0};
    assert_int_equal(tdm_model_predict(model, &pictures, 1, CLASSES,
                                       (tdm_prediction_sink){answers, remember}, NULL),
                     TDM_OK);
    assert_int_equal(answers->n, CLASSES * PICTURES);
}

static void answers_alike(const struct tree *tree, const char *path, const char *network,
                          const struct answers *expected)
{
    struct answers found;
    tdm_model *model = must_open(path, &(struct tdm_model_options){.network = network});
    ask(model, tree, &found);
    assert_string_equal(tdm_model_class(model, 2), "c");
    tdm_model_close(model);
    for (int i = 0; i < expected->n; i++)
        for (int c = 0; c < CLASSES; c++) {
            const float want = expected->logits[i][c], is = found.logits[i][c];
            if (!(fabsf(is - want) <= 1e-4F * (1.0F + fabsf(want))))
                fail_msg("%s (--model %s): logit %d of picture %d is %g, the run's %g", path,
                         network ? network : "not given", c, i, (double)is, (double)want);
        }
}

static void exports_answer_as_their_run(const struct tree *tree, const char *network, int size)
{
    static const char *const files[] = {"back.safetensors", "back.h5"};
    struct tdm_train_options options = small_training(tree);
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct answers expected;
    char run[80];
    snprintf(run, sizeof run, "run-%s-%d", network, size);
    options.run = below(tree, run);
    options.model = network;
    options.size = size;
    options.epochs = 1;
    /* Statistics over three images of one pixel each would divide by almost nothing, and rounding
     * would grow with every layer. */
    options.shard = 8;
    options.learning_rate = 0.01;
    must_train(&options, (tdm_sink){0}, &result);
    TDMI_AT_END(tdm_model_close_at) tdm_model *model = must_open(options.run, NULL);
    ask(model, tree, &expected);
    for (int i = 0; i < 2; i++) {
        struct tdm_export_result exported = {.struct_bytes = sizeof exported};
        const char *path = below(tree, files[i]);
        assert_int_equal(
            tdm_model_export(model, &(struct tdm_export_options){.path = path}, &exported, NULL),
            TDM_OK);
        answers_alike(tree, path, NULL, &expected);
        answers_alike(tree, path, network, &expected);
    }
}

TEST(lenet5_comes_back)
{
    exports_answer_as_their_run(*state, "lenet5", 12);
}

TEST(convnet7_comes_back)
{
    exports_answer_as_their_run(*state, "convnet7", 8);
}

/* Trained here it pads as Keras does and scales to -1…1: neither is what PyTorch publishes. */
TEST(mobilenetv2_comes_back)
{
    exports_answer_as_their_run(*state, "mobilenetv2-0.35", 32);
}

/* Its shortcuts are widened by channels of zeros, which Keras says with Permute. */
TEST(resnet20_comes_back)
{
    exports_answer_as_their_run(*state, "resnet20-cifar", 32);
}

static int set_up(void **state)
{
    (void)begin_with_classes(state, CLASSES, PICTURES);
    return 0;
}

TEST_MAIN(set_up, end_with_tree)
