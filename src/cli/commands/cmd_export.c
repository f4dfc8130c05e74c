/*
 * tandem export MODEL -o FILE: a trained model for other programs.
 */
#include "cli/command.h"
#include "base/scope.h"
#include "tandem/model.h"

#include <string.h>

TDMI_POINTER_RELEASE(tdm_model, tdm_model_close)

struct values {
    struct tdm_model_options model;
    struct tdm_export_options export;
};

static void defaults(void *values)
{
    *(struct values *)values = (struct values){.model = {.threads = 1}};
}

static void print_result(struct tdmi_call *call, const tdm_model *model,
                         const struct tdm_export_options *options,
                         const struct tdm_export_result *result)
{
    char bytes[32];
    tdm_json_string(call->json, "path", options->path);
    tdm_json_string(call->json, "form", result->form);
    tdm_json_integer(call->json, "bytes", result->bytes);
    tdm_json_string(call->json, "network", tdm_model_name(model));
    tdm_json_integer(call->json, "classes", tdm_model_classes(model));
    tdm_json_string(call->json, "note", *result->note ? result->note : NULL);
    tdmi_print(call->out, "%s with %d classes as %s in %s (%s)\n", tdm_model_name(model),
               tdm_model_classes(model), result->form, options->path,
               tdmi_format_amount((double)result->bytes, "B", bytes, sizeof bytes));
    if (*result->note)
        tdmi_print(call->out, "note: %s\n", result->note);
}

/* Refuse --form h5 -o model.onnx: other programs go by the extension. */
static tdm_status check_extension(const struct tdm_export_options *options, tdm_error *err)
{
    const char *extension = strrchr(options->path, '.'), *form;
    for (int i = 0; extension && options->form && (form = tdm_export_form(i)) != NULL; i++)
        if (strcmp(extension + 1, form) == 0 && strcmp(options->form, form) != 0)
            return TDM_FAIL(err, TDM_E_USAGE,
                            "--form is %s, but '%s' has the extension of %s; leave --form out, or "
                            "give the file another extension",
                            options->form, options->path, form);
    return TDM_OK;
}

static tdm_status run(struct tdmi_call *call, tdm_error *err)
{
    const struct values *values = call->values;
    struct tdm_export_result result = {.struct_bytes = sizeof result};
    TDMI_AT_END(tdm_model_close_at) tdm_model *model = NULL;
    if (!values->export.path)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "no file to write was given: --out FILE, such as model.onnx");
    TDMI_TRY(check_extension(&values->export, err));
    TDMI_TRY(tdm_model_open(call->arguments[0], &values->model, &model, err));
    TDMI_TRY(tdm_model_export(model, &values->export, &result, err));
    print_result(call, model, &values->export, &result);
    return TDM_OK;
}

static const struct tdmi_argument arguments[] = {
    TDMI_ARGUMENT_MODEL,
    {.name = NULL},
};

static const struct tdmi_option options[] = {
    TDMI_ROW(PATH, "out", export.path, "Result", "file to write; its extension selects the format",
             .letter = 'o', .value_name = "FILE", .default_words = "must be given",
             .is_common = true),
    TDMI_ROW(TEXT, "form", export.form, "Result",
             "format: onnx for runtimes; safetensors with torchvision's names for PyTorch; h5 for "
             "Keras",
             .name_at = tdm_export_form, .default_words = "by the extension of the file",
             .is_common = true),
    TDMI_ROW(FLAG, "preprocess", export.preprocess, "Result",
             "onnx: take images of the network's size as bytes, and scale them in the graph",
             .is_common = true),
#include "cli/foreign.def"
    {.name = NULL},
};

static const char *const examples[] = {
    "tandem export runs/first -o first.onnx",
    "for onnxruntime and its like: floats in, logits and probabilities out",
    "tandem export runs/first -o first.onnx --preprocess",
    "the same, taking images of the right size as bytes",
    "tandem export runs/first -o first.safetensors",
    "for PyTorch: load_state_dict(load_file(\"first.safetensors\"))",
    "tandem export runs/first -o first.h5",
    "for Keras: keras.models.load_model(\"first.h5\")",
    "tandem export resnet50.pth --model resnet50 -o resnet50.onnx",
    "weights of one program in the format of another",
    NULL,
};

TDMI_COMMAND(export, "write a trained model for other programs",
             "Writes classes and preprocessing into the file as JSON. The same model gives "
             "the same bytes.");
