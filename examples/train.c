/*
 * Train a classifier on a folder of class folders, then ask it about one picture.
 *
 *     cc train.c $(pkg-config --cflags --libs tandem) -o train
 *     ./train photos/ run/ photos/cats/1.jpg
 */
#include <tandem/model.h>
#include <tandem/train.h>

#include <stdio.h>

static void show_epoch(void *self, const tdm_event *event)
{
    (void)self;
    if (event->kind == TDM_EVENT_EPOCH)
        printf("epoch %d: %.1f %% of %lld validation pictures right\n", event->epoch,
               100.0 * event->val.accuracy, (long long)event->val.n);
}

static tdm_status show_guess(void *self, const struct tdm_prediction *it, tdm_error *err)
{
    (void)self;
    (void)err;
    if (it->problem)
        printf("%s: no answer, %s\n", it->path, it->problem);
    else
        printf("%s: %s (%.1f %%)\n", it->path, it->guesses[0].label,
               100.0 * (double)it->guesses[0].probability);
    return TDM_OK;
}

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
    struct tdm_train_options options = tdm_train_options_default();
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    tdm_model *model = NULL;
    if (argc != 4)
        return fprintf(stderr, "usage: train PICTURES RUN PICTURE\n"), 2;
    options.source = argv[1];
    options.run = argv[2];
    if (tdm_train(&options, (tdm_sink){NULL, show_epoch}, &result, &err) != TDM_OK ||
        tdm_model_open(result.run, NULL, &model, &err) != TDM_OK)
        return fail(&err);
    const char *picture = argv[3];
    tdm_status status =
        tdm_model_predict(model, &picture, 1, 1, (tdm_prediction_sink){NULL, show_guess}, &err);
    tdm_model_close(model);
    return status == TDM_OK ? 0 : fail(&err);
}
