/*
 * How good is a trained model, class by class?
 *
 *     cc evaluate.c $(pkg-config --cflags --libs tandem) -o evaluate
 *     ./evaluate run/ photos/
 */
#include <tandem/model.h>
#include <tandem/metrics.h>

#include <stdio.h>

static int fail(const tdm_error *err)
{
    char text[4000];
    tdm_error_format(err, text, sizeof text);
    fputs(text, stderr);
    return tdm_status_exit(err->code);
}

int main(int argc, char **argv)
{
    tdm_error err = {0};
    tdm_model *model = NULL;
    struct tdm_evaluation evaluation = {.struct_bytes = sizeof evaluation};
    if (argc != 3)
        return fprintf(stderr, "usage: evaluate MODEL PICTURES\n"), 2;
    if (tdm_model_open(argv[1], NULL, &model, &err) != TDM_OK)
        return fail(&err);
    if (tdm_model_evaluate(
            model,
            &(struct tdm_evaluate_options){.source = argv[2], .part = TDM_PART_ALL, .batch = 64},
            (tdm_sink){0}, &evaluation, &err) != TDM_OK) {
        tdm_model_close(model);
        return fail(&err);
    }
    for (int c = 0; c < evaluation.metrics.n_classes; c++) {
        const struct tdm_class_score *score = &evaluation.metrics.per_class[c];
        tdm_interval interval = tdm_wilson(score->correct_distinct, score->n_distinct);
        printf("%-24s %lld of %lld right (95 %% interval %.1f to %.1f %%)\n", score->label,
               (long long)score->correct, (long long)score->n, 100.0 * interval.low,
               100.0 * interval.high);
    }
    printf("%lld of these pictures were trained on\n", (long long)evaluation.trained_on);
    if (evaluation.unseen)
        printf("%.1f %% of the unseen ones are right\n", 100.0 * evaluation.unseen->score.accuracy);
    tdm_evaluation_release(&evaluation);
    tdm_model_close(model);
    return 0;
}
