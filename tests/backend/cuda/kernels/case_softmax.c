/* softmax.cu: many classes and few, half precision, mixed labels. Against ref: test_ops.c. */
#include "backend/cuda/values.h"
#include "backend/cuda/kernels/loss/softmax.h"

enum { n = 5 };

static void run(enum tdmi_dtype type, int classes)
{
    static const int32_t labels[n] = {0, 1, 1, 0, 1};
    static const struct tdmi_mixed_label mixed[n] = {
        {1, 1.0f}, {0, 0.25f}, {0, 0.0f}, {1, 0.5f}, {1, 1.0f}};
    static const struct tdmi_loss_scale loss_scale = {.scale = 1024.0f};
    struct tdmi_judgement judgements[n];
    void *blocks[3];
    void *x = tensor(type, (int64_t)n * classes, 0, 1, &blocks[0]);
    float *y = tensor(TDMI_DTYPE_F32, (int64_t)n * classes, 0, 0, &blocks[1]);
    void *dx = tensor(type, (int64_t)n * classes, 0, 0, &blocks[2]);
    const struct tdmi_cuda_loss call = {.type = type,
                                        .x = x,
                                        .y = y,
                                        .dx = dx,
                                        .n = n,
                                        .logits = classes,
                                        .classes = classes,
                                        .labels = labels,
                                        .mixed = mixed,
                                        .smoothing = 0.1,
                                        .judgements = judgements,
                                        .loss_scale = &loss_scale};
    put_value(x, type, 3 * classes, 9.0f); /* two of one sample are largest: the first counts */
    put_value(x, type, 4 * classes - 1, 9.0f);
    assert_int_equal(tdmi_cuda_softmax_forward(NULL, &call), 0);
    assert_int_equal(tdmi_cuda_softmax_backward(NULL, &call), 0);
    assert_int_equal(judgements[3].predicted, 0);
    for (int i = 0; i < n; i++) {
        double sum = 0.0, loss = 0.0;
        for (int c = 0; c < classes; c++)
            sum += exp(value_at(x, type, (int64_t)i * classes + c));
        for (int c = 0; c < classes; c++) {
            const int64_t at = (int64_t)i * classes + c;
            const double wanted = exp(value_at(x, type, at)) / sum, own = (double)mixed[i].weight;
            double target = labels[i] == c ? own : 0.0;
            if (mixed[i].other == c && own < 1.0)
                target += 1.0 - own;
            target = 0.9 * target + 0.1 / classes;
            loss -= target * log(wanted);
            expect_near((double)y[at], wanted, 1e-6, "y", at);
            const double gradient = 1024.0 * (wanted - target);
            expect_near(value_at(dx, type, at), gradient,
                        step_of(type, fabs(gradient)) + 1024.0 * 1e-6, "dx", at);
        }
        expect_near((double)judgements[i].loss, loss, 1e-5 * loss, "loss", i);
    }
    for (int i = 0; i < 3; i++)
        tdmi_free(blocks[i]);
}

void case_softmax(void **state)
{
    static const int classes[] = {2, 10, 127, 128, 1000};
    (void)state;
    for (int reversed = 0; reversed < 2; reversed++)
        for (int t = 0; t < n_float_types; t++)
            for (int k = 0; k < 5; k++) {
                tdmi_shim_use((struct tdmi_shim_way){.is_reversed = reversed});
                run(float_types[t], classes[k]);
            }
}
