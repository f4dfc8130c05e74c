/*
 * tandem weights list|inspect|convert|fetch: other people's weights, before anything is made of
 * them.
 */
#include "cli/command.h"
#include "cli/settings.h"
#include "base/scope.h"
#include "tandem/train.h"
#include "tandem/weights.h"
#include "cli/watch.h"
#include "cli/weights_offer.h"

#include <string.h>

TDMI_POINTER_RELEASE(tdm_weights_file, tdm_weights_close)

struct values {
    const char *mirror, *model, *out;
    int show;
};

static void defaults(void *values)
{
    *(struct values *)values = (struct values){.show = 400};
}

/* ---- list ---------------------------------------------------------------------------------- */

static tdm_status list_one(struct tdmi_call *call, const struct tdm_weights_known *known,
                           tdm_error *err)
{
    char path[1024] = "";
    bool is_here = false;
    TDMI_TRY(tdm_weights_place(known, path, sizeof path, &is_here, err));
    tdmi_print(call->out, "  %-22s  %-16s  %-24s  %-12s  %6.1f MB  %s\n", known->name,
               known->network, known->origin, known->licence, known->megabytes,
               is_here ? "here" : "");
    tdm_json_object_begin(call->json, NULL);
    tdm_json_string(call->json, "name", known->name);
    tdm_json_string(call->json, "network", known->network);
    tdm_json_string(call->json, "origin", known->origin);
    tdm_json_string(call->json, "licence", known->licence);
    tdm_json_number(call->json, "bytes", 1e6 * known->megabytes);
    tdm_json_string(call->json, "hash", *known->hash ? known->hash : NULL);
    tdm_json_string(call->json, "folder", known->folder);
    tdm_json_string(call->json, "file", known->file);
    tdm_json_string(call->json, "path", path);
    tdm_json_bool(call->json, "here", is_here);
    tdm_json_object_end(call->json);
    return TDM_OK;
}

static tdm_status list(struct tdmi_call *call, tdm_error *err)
{
    const struct tdm_weights_known *known;
    tdmi_print(call->out, "  %-22s  %-16s  %-24s  %-12s  %9s\n", "name", "network", "origin",
               "licence", "size");
    for (int i = 0; (known = tdm_weights_known_at(i)) != NULL; i++)
        TDMI_TRY(list_one(call, known, err));
    tdmi_print(call->out, "\ntandem weights fetch NAME downloads one; the images of ImageNet, on "
                          "which they were trained, are for research\n");
    return TDM_OK;
}

/* ---- inspect ------------------------------------------------------------------------------- */

static void write_tensor(tdm_json_writer *json, const struct tdm_weights_tensor *tensor)
{
    tdm_json_object_begin(json, NULL);
    tdm_json_string(json, "name", tensor->name);
    tdm_json_string(json, "type", tensor->type);
    tdm_json_array_begin(json, "shape");
    for (int i = 0; i < tensor->rank; i++)
        tdm_json_integer(json, NULL, tensor->shape[i]);
    tdm_json_array_end(json);
    tdm_json_number(json, "low", tensor->low);
    tdm_json_number(json, "high", tensor->high);
    tdm_json_number(json, "mean", tensor->mean);
    tdm_json_integer(json, "not_finite", tensor->not_finite);
    tdm_json_object_end(json);
}

static void write_facts(tdm_json_writer *json, const char *path,
                        const struct tdm_weights_facts *facts)
{
    tdm_json_string(json, "path", path);
    tdm_json_string(json, "form", facts->form);
    tdm_json_string(json, "sha256", *facts->sha256 ? facts->sha256 : NULL);
    tdm_json_integer(json, "values", facts->values);
    tdm_json_integer(json, "bytes", facts->bytes);
}

static void write_reading(tdm_json_writer *json, const tdm_weights_file *file,
                          const struct tdm_weights_reading *reading)
{
    const char *remark;
    tdm_json_object_begin(json, "read_as");
    tdm_json_string(json, "network", reading->network);
    tdm_json_string(json, "problem", reading->problem);
    if (reading->network) {
        tdm_json_integer(json, "width", reading->width);
        tdm_json_integer(json, "height", reading->height);
        tdm_json_integer(json, "channels", reading->channels);
        tdm_json_string(json, "fit", reading->fit);
        tdm_json_number(json, "crop_fraction", reading->crop_fraction);
        tdm_json_string(json, "scale", reading->scale);
        tdm_json_integer(json, "classes", reading->classes);
        tdm_json_bool(json, "class_names", reading->has_class_names);
    }
    tdm_json_array_begin(json, "remarks");
    for (int i = 0; (remark = tdm_weights_remark_at(file, i)) != NULL; i++)
        tdm_json_string(json, NULL, remark);
    tdm_json_array_end(json);
    tdm_json_object_end(json);
}

static void write_file(struct tdmi_call *call, const char *path, tdm_weights_file *file,
                       const struct tdm_weights_reading *reading)
{
    tdm_json_writer *json = call->json;
    const struct tdm_weights_tensor *tensor;
    const char *key, *value;
    tdm_json_object_begin(json, NULL);
    write_facts(json, path, tdm_weights_facts(file));
    tdm_json_object_begin(json, "notes");
    for (int64_t i = 0; tdm_weights_note_at(file, i, &key, &value); i++)
        tdm_json_string(json, key, value);
    tdm_json_object_end(json);
    write_reading(json, file, reading);
    tdm_json_array_begin(json, "tensors");
    for (int64_t i = 0; (tensor = tdm_weights_tensor_at(file, i)) != NULL; i++)
        write_tensor(json, tensor);
    tdm_json_array_end(json);
    tdm_json_object_end(json);
}

static void print_tensor(struct tdmi_output *out, const struct tdm_weights_tensor *tensor,
                         int widest)
{
    char shape[120] = "";
    size_t n = 0;
    for (int i = 0; i < tensor->rank && n < sizeof shape; i++)
        n += (size_t)snprintf(shape + n, sizeof shape - n, i ? "×%lld" : "%lld",
                              (long long)tensor->shape[i]);
    tdmi_print(out, "  %-*s  %-4s  %-18s", widest, tensor->name, tensor->type, shape);
    if (strchr(tensor->type, 'F') && tensor->values > tensor->not_finite)
        tdmi_print(out, "  %.4g to %.4g, mean %.3g", tensor->low, tensor->high, tensor->mean);
    if (tensor->not_finite > 0)
        tdmi_print(out, "  %lld not finite!", (long long)tensor->not_finite);
    tdmi_print(out, "\n");
}

static void print_notes(struct tdmi_output *out, const tdm_weights_file *file)
{
    enum { most = 60 };
    const char *key, *value;
    for (int64_t i = 0; tdm_weights_note_at(file, i, &key, &value); i++) {
        if (strlen(value) > most) /* a description of the network, as a rule */
            tdmi_print(out, "  %-16s  %zu bytes\n", key, strlen(value));
        else
            tdmi_print(out, "  %-16s  %s\n", key, value);
    }
}

static void print_reading(struct tdmi_output *out, const tdm_weights_file *file,
                          const struct tdm_weights_reading *reading)
{
    const char *remark;
    if (!reading->network) {
        tdmi_print(out, "  read as           no network: %s\n", reading->problem);
        return;
    }
    tdmi_print(out, "  read as           %s of %d×%d pixels, %s; fit %s", reading->network,
               reading->width, reading->height, reading->channels == 1 ? "grey" : "colour",
               reading->fit);
    if (strcmp(reading->fit, "crop") == 0)
        tdmi_print(out, " to %.4g", reading->crop_fraction);
    tdmi_print(out, ", scale %s; ", reading->scale);
    if (reading->classes == 0)
        tdmi_print(out, "no last layer\n");
    else
        tdmi_print(out, "%d classes %s names\n", reading->classes,
                   reading->has_class_names ? "with" : "without");
    for (int i = 0; (remark = tdm_weights_remark_at(file, i)) != NULL; i++)
        tdmi_print(out, "    %s\n", remark);
}

static void print_file(struct tdmi_call *call, const char *path, tdm_weights_file *file,
                       const struct tdm_weights_reading *reading)
{
    const struct values *values = call->values;
    const struct tdm_weights_facts *facts = tdm_weights_facts(file);
    const struct tdm_weights_tensor *tensor;
    char bytes[32];
    int widest = 4;
    tdmi_print(call->out, "%s: %s, %lld tensors, %lld values, %s\n", path, facts->form,
               (long long)facts->tensors, (long long)facts->values,
               tdmi_format_amount((double)facts->bytes, "B", bytes, sizeof bytes));
    if (*facts->sha256)
        tdmi_print(call->out, "  sha256            %s\n", facts->sha256);
    print_notes(call->out, file);
    print_reading(call->out, file, reading);
    tdmi_print(call->out, "\n");
    for (int64_t i = 0; i < values->show && (tensor = tdm_weights_tensor_at(file, i)) != NULL; i++)
        widest = tdmi_widest(widest, tensor->name, 60);
    for (int64_t i = 0; i < values->show && (tensor = tdm_weights_tensor_at(file, i)) != NULL; i++)
        print_tensor(call->out, tensor, widest);
    if (facts->tensors > values->show)
        tdmi_print(call->out, "  … and %lld more (--show)\n",
                   (long long)facts->tensors - values->show);
}

static tdm_status inspect(struct tdmi_call *call, tdm_error *err)
{
    const struct values *values = call->values;
    const char *path = call->arguments[1];
    struct tdm_weights_reading reading = {.struct_bytes = sizeof reading};
    TDMI_AT_END(tdm_weights_close_at) tdm_weights_file *file = NULL;
    TDM_TRY(tdm_weights_open(path, &file, err), err, "looking into %s", path);
    TDMI_TRY(tdm_weights_read(file, values->model, &reading, err));
    (call->json ? write_file : print_file)(call, path, file, &reading); /* figures take time */
    return TDM_OK;
}

/* ---- convert and fetch --------------------------------------------------------------------- */

static tdm_status convert(struct tdmi_call *call, tdm_error *err)
{
    const struct values *values = call->values;
    const char *from = call->arguments[1];
    const char *to = call->n_arguments > 2 ? call->arguments[2] : values->out;
    struct tdm_weights_facts facts;
    if (!to || (call->n_arguments > 2 && values->out))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "tandem weights convert needs the file to write, once: as TO or as -o TO");
    TDMI_TRY(tdm_weights_convert(from, to, &facts, err));
    tdm_json_object_begin(call->json, NULL);
    write_facts(call->json, to, &facts);
    tdm_json_string(call->json, "from", from);
    tdm_json_object_end(call->json);
    tdmi_print(call->out, "%s: %lld tensors of %s (%s)\n", to, (long long)facts.tensors, from,
               facts.form);
    return TDM_OK;
}

static tdm_status fetch(struct tdmi_call *call, tdm_error *err)
{
    const struct values *values = call->values;
    const char *name = call->arguments[1];
    struct tdm_weights_fetched fetched = {.struct_bytes = sizeof fetched};
    call->watch->unit = "bytes";
    TDMI_TRY(tdm_weights_fetch(name, values->mirror, tdmi_watch_sink(call->watch), &fetched, err));
    tdm_json_object_begin(call->json, NULL);
    tdm_json_string(call->json, "name", name);
    tdm_json_string(call->json, "path", fetched.path);
    tdm_json_string(call->json, "sha256", fetched.sha256);
    tdm_json_integer(call->json, "bytes", fetched.bytes);
    tdm_json_bool(call->json, "was_here", fetched.was_here);
    tdm_json_bool(call->json, "published_hash", fetched.is_published);
    tdm_json_object_end(call->json);
    tdmi_print(call->out, "%s%s\nsha256 %s: %s\n", fetched.path,
               fetched.was_here ? " (was here already)" : "", fetched.sha256,
               tdmi_weights_proof(&fetched));
    return TDM_OK;
}

/* ---- the command --------------------------------------------------------------------------- */

static tdm_status run(struct tdmi_call *call, tdm_error *err)
{
    static const struct tdmi_verb verbs[] = {
        {"list", "no argument", 1, 1, list},
        {"fetch", "the NAME of published weights", 2, 2, fetch},
        {"inspect", "one FILE", 2, 2, inspect},
        {"convert", "a FILE and the file to write", 2, 3, convert},
        {.name = NULL}};
    const struct tdmi_verb *verb;
    TDMI_TRY(tdmi_verb_find(call, verbs, &verb, err));
    if (verb->run != fetch && tdmi_settings_is_typed(call->settings, "mirror"))
        return TDM_FAIL(err, TDM_E_USAGE, "--mirror is for tandem weights fetch");
    if (verb->run != convert && tdmi_settings_is_typed(call->settings, "out"))
        return TDM_FAIL(err, TDM_E_USAGE, "--out is for tandem weights convert");
    tdm_json_array_begin(call->json, "weights");
    TDMI_TRY(verb->run(call, err));
    tdm_json_array_end(call->json);
    return TDM_OK;
}

static const struct tdmi_argument arguments[] = {
    {.name = "WHAT",
     .help = "list, fetch, inspect or convert",
     .is_optional = true,
     .choices = "list|fetch|inspect|convert"},
    {.name = "NAME|FILE",
     .help = "fetch: a name that list shows; inspect and convert: a weights file",
     .is_optional = true},
    {.name = "TO", .help = "convert: the .safetensors file to write", .is_optional = true},
    {.name = NULL},
};

static const struct tdmi_option options[] = {
    TDMI_ROW(PATH, "out", out, "Convert", "file to write, in place of the argument TO",
             .letter = 'o', .value_name = "TO", .is_command_line_only = true),
    TDMI_ROW(TEXT, "mirror", mirror, "Fetch",
             "URL of a folder that has the file, on another server", .value_name = "URL",
             .default_words = "the publisher"),
    TDMI_ROW(TEXT, "model", model, "Inspect", "read the file as this network",
             .name_at = tdm_network_name, .value_name = "NAME",
             .default_words = "as the file says, or its tensors"),
    TDMI_ROW(INTEGER, "show", show, "Inspect", "tensors to print; --json has all", .high = 1e6,
             .unit = "tensors"),
    {.name = NULL},
};

static const char *const examples[] = {
    "tandem weights list",
    "published weights, their licences, and which are here",
    "tandem weights fetch xception-notop",
    "a base for transfer learning; resumes an interrupted fetch",
    "tandem weights inspect model.h5",
    "the tensors of a file of Keras, PyTorch, NumPy or safetensors",
    "tandem weights convert model.pth -o model.safetensors",
    "the same tensors in a format without pickle",
    NULL,
};

TDMI_COMMAND(weights, "fetch, inspect and convert published weights",
             "Keeps published weights in TANDEM_HOME/weights and compares them with the "
             "publisher's hash; if there is none, the first fetch prints the SHA-256 and "
             "remembers it. Files are only read: nothing in them is ever run.");
