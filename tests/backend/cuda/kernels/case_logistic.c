/* logistic.cu: one logit and many, half precision, mixed labels, weights of classes; logits far
 * out. Against ref: test_ops.c. */
#include "backend/cuda/values.h"
#include "backend/cuda/kernels/loss/logistic.h"

enum { n = 5 };

static const struct tdmi_loss_scale loss_scale = {.scale = 1024.0f};
static const int32_t labels[n] = {0, 1, 1, 0, 1};
static const struct tdmi_mixed_label mixed[n] = {
    {1, 1.0f}, {0, 0.25f}, {0, 0.0f}, {1, 0.5f}, {1, 1.0f}};

static double target_of(int i, int c, int classes)
{
    const double own = (double)mixed[i].weight;
    double target = labels[i] == c ? own : 0.0;
    if (mixed[i].other == c && own < 1.0)
        target += 1.0 - own;
    return 0.9 * target + 0.1 / classes;
}

static double logistic(double z)
{
    return 1.0 / (1.0 + exp(-z));
}

/* Of the loss of one question: target · -log(logistic z) + (1 - target) · -log(1 - logistic z). */
static double cross_entropy(double target, double z)
{
    const double far = z > 0.0 ? z : 0.0;
    return far + log(exp(z - far) + exp(-far)) - target * z;
}

struct rows {
    struct tdmi_cuda_loss call;
    struct tdmi_judgement judgements[n];
    float weights[1000];
    void *blocks[3];
};

static void make(struct rows *it, enum tdmi_dtype type, int logits, int classes)
{
    void *x = tensor(type, (int64_t)n * logits, 0, 1, &it->blocks[0]);
    it->call = (struct tdmi_cuda_loss){
        .type = type,
        .x = x,
        .y = tensor(TDMI_DTYPE_F32, (int64_t)n * classes, 0, 0, &it->blocks[1]),
        .dx = tensor(type, (int64_t)n * logits, 0, 0, &it->blocks[2]),
        .n = n,
        .logits = logits,
        .classes = classes,
        .labels = labels,
        .mixed = mixed,
        .class_weights = it->weights,
        .smoothing = 0.1,
        .judgements = it->judgements,
        .loss_scale = &loss_scale,
    };
    for (int c = 0; c < classes; c++)
        it->weights[c] = 0.5f + (float)(c % 3);
    put_value(x, type, 0, -60.0f);
    if (logits > 1) {
        put_value(x, type, 3 * logits, 9.0f); /* two of one sample are largest: the first counts */
        put_value(x, type, 4 * logits - 1, 9.0f);
    }
}

static void drop(struct rows *it)
{
    for (int i = 0; i < 3; i++)
        tdmi_free(it->blocks[i]);
}

static void look_at(const struct rows *it, int i)
{
    const struct tdmi_cuda_loss *call = &it->call;
    const int logits = call->logits, classes = call->classes;
    double loss = 0.0, slopes[2] = {0.0, 0.0};
    for (int c = 0; c < classes; c++) {
        const int64_t at = (int64_t)i * logits + (logits == 1 ? 0 : c);
        const double z = value_at(call->x, call->type, at) * (logits == 1 && c == 0 ? -1.0 : 1.0);
        const double target = target_of(i, c, classes), weight = (double)it->weights[c];
        expect_near((double)call->y[(int64_t)i * classes + c], logistic(z), 1e-7, "y", c);
        if (logits == 1) {
            loss += weight * target * cross_entropy(1.0, z);
            slopes[c] = weight * target * logistic(-z);
            continue;
        }
        const double gradient = 1024.0 * weight * (logistic(z) - target);
        loss += weight * cross_entropy(target, z);
        expect_near(value_at(call->dx, call->type, at), gradient,
                    step_of(call->type, fabs(gradient)) + 1024.0 * 1e-6, "dx", at);
    }
    if (logits == 1) {
        const double gradient = 1024.0 * (slopes[0] - slopes[1]);
        expect_near(value_at(call->dx, call->type, i), gradient,
                    step_of(call->type, fabs(gradient)) + 1024.0 * 1e-6, "dx", i);
    }
    expect_near((double)call->judgements[i].loss, loss, 1e-6 * loss, "loss", i);
}

static void run(enum tdmi_dtype type, int logits, int classes)
{
    struct rows it;
    make(&it, type, logits, classes);
    assert_int_equal(tdmi_cuda_logistic_forward(NULL, &it.call), 0);
    assert_int_equal(tdmi_cuda_logistic_backward(NULL, &it.call), 0);
    for (int i = 0; i < n; i++)
        look_at(&it, i);
    if (logits == 1)
        assert_int_equal(it.judgements[0].predicted, 0);
    else
        assert_int_equal(it.judgements[3].predicted, 0);
    drop(&it);
}

/* Only probabilities are wanted: nothing else is touched. */
static void without_labels(void)
{
    struct rows it;
    make(&it, TDMI_DTYPE_F32, 7, 7);
    it.call.labels = NULL;
    it.call.mixed = NULL;
    it.call.judgements = NULL;
    assert_int_equal(tdmi_cuda_logistic_forward(NULL, &it.call), 0);
    for (int64_t i = 0; i < n * 7; i++)
        expect_near((double)it.call.y[i], logistic(value_at(it.call.x, TDMI_DTYPE_F32, i)), 1e-7,
                    "y", i);
    drop(&it);
}

void case_logistic(void **state)
{
    static const int classes[] = {2, 10, 127, 129, 1000};
    (void)state;
    for (int t = 0; t < n_float_types; t++) {
        tdmi_shim_use((struct tdmi_shim_way){.is_reversed = t == 1});
        run(float_types[t], 1, 2);
        for (int k = 0; k < 5; k++)
            run(float_types[t], classes[k], classes[k]);
    }
    without_labels();
}
