/*
 * tandem predict MODEL FILE…: what a trained model sees in pictures.
 */
#include "command.h"
#include "tandem/log.h"
#include "tandem/model.h"
#include "tandem/text.h"

struct values {
    struct tdm_model_options model;
    int top;
    bool logits;
};

static void defaults(void *values)
{
    *(struct values *)values = (struct values){.top = 5, .model.device = "cpu"};
}

static void print_people(struct tdmi_output *out, const struct tdm_prediction *it)
{
    tdmi_print_name(out, it->path, 0);
    tdmi_print(out, "\n");
    if (it->problem) {
        tdmi_print(out, "    skipped: ");
        tdmi_print_name(out, it->problem, 0);
        tdmi_print(out, "\n");
    }
    for (int i = 0; i < it->n_guesses; i++) {
        tdmi_print(out, "  %6.2f %%  ", 100 * (double)it->guesses[i].probability);
        tdmi_print_name(out, it->guesses[i].label, 0);
        tdmi_print(out, "\n");
    }
}

struct answering {
    struct tdmi_call *call;
    int64_t n_answered;
};

static tdm_status on_prediction(void *self, const struct tdm_prediction *prediction, tdm_error *err)
{
    struct answering *answering = self;
    struct tdmi_call *call = answering->call;
    const struct values *values = call->values;
    answering->n_answered += !prediction->problem;
    if (call->json) {
        tdm_prediction_to_json(prediction, values->logits, call->json);
        return TDM_OK;
    }
    print_people(call->out, prediction);
    /* A reader that has gone away (| head) ends the work early. */
    return tdmi_output_check(call->out, err);
}

static tdm_status run(struct tdmi_call *call, tdm_error *err)
{
    const struct values *values = call->values;
    struct answering answering = {.call = call};
    tdm_model *model = NULL;
    if (values->logits && !call->json)
        return TDM_FAIL(err, TDM_E_USAGE, "--logits are for scripts: they want --json");
    tdm_status status = tdm_model_open(call->arguments[0], &values->model, &model, err);
    if (status != TDM_OK)
        return status;
    if (call->json)
        tdm_json_array_begin(call->json, "predictions");
    status = tdm_model_predict(model, call->arguments + 1, (size_t)call->n_arguments - 1,
                               values->top, (tdm_prediction_sink){&answering, on_prediction}, err);
    if (call->json)
        tdm_json_array_end(call->json);
    tdm_model_close(model);
    if (status == TDM_E_INPUT && answering.n_answered > 0) { /* some path is missing */
        tdm_log(TDM_LOG_ERROR, "%s", err->frames[0].text);
        call->exit_status = tdm_status_exit(status);
        return TDM_OK;
    }
    if (status == TDM_OK && answering.n_answered == 0) /* each has said why */
        call->exit_status = tdm_status_exit(TDM_E_INPUT);
    return status;
}

static const struct tdmi_argument arguments[] = {
    TDMI_ARGUMENT_MODEL,
    {.name = "FILE|DIR",
     .help = "pictures, or folders that are searched for pictures at any depth",
     .is_many = true},
    {.name = NULL},
};

static const struct tdmi_option options[] = {
    {.name = "top",
     .type = TDMI_OPTION_INTEGER,
     .offset = offsetof(struct values, top),
     .low = 1,
     .high = 1000,
     .unit = "classes",
     .group = "Answer",
     .help = "the likeliest of each picture"},
    {.name = "logits",
     .type = TDMI_OPTION_FLAG,
     .offset = offsetof(struct values, logits),
     .group = "Answer",
     .help = "with --json: what the network computes for every class, before probabilities"},
    TDMI_ROWS_FOREIGN(model),
    TDMI_ROW_THREADS(offsetof(struct values, model.threads), "any number gives the same answers"),
    TDMI_ROW_DEVICE(offsetof(struct values, model.device),
                    "cpu, or the name of one backend such as ref"),
    {.name = NULL},
};

static const char *const examples[] = {
    "tandem predict runs/first holiday.jpg",
    "one picture, the five likeliest classes",
    "tandem predict runs/first new-pictures --top 1 --json",
    "a folder, for a script",
    "tandem predict keras_model.h5 photo.jpg --classes labels.txt",
    "a full Keras model of another program",
    NULL,
};

const struct tdmi_command tdmi_command_predict = {
    .name = "predict",
    .summary = "ask a trained model about pictures",
    .description = "Files that are no readable pictures are named and skipped; a path that is "
                   "missing is named, and makes the exit code 3.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .values_bytes = sizeof(struct values),
    .defaults = defaults,
    .run = run,
};
