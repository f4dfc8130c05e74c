/*
 * tandem predict MODEL FILE…: the likeliest classes of images.
 */
#include "cli/command.h"
#include "base/scope.h"
#include "cli/settings.h"
#include "base/file/input.h"
#include "tandem/log.h"
#include "tandem/model.h"
#include "tandem/train.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TDMI_POINTER_RELEASE(tdm_model, tdm_model_close)

struct values {
    struct tdm_model_options model;
    int top;
    bool logits, csv;
    const char *files_from;
    struct tdm_serve_options serve; /* address NULL: no server */
};

static const struct tdmi_argument arguments[] = {
    TDMI_ARGUMENT_MODEL,
    {.name = "FILE|DIR",
     .help = "images, or folders that are searched for images at any depth; - is one image, from "
             "standard input",
     .is_optional = true,
     .is_many = true},
    {.name = NULL},
};

static void defaults(void *values)
{
    struct values *it = values;
    *it = (struct values){.top = 5, .model.device = "cpu", .serve = tdm_serve_options_default()};
    it->serve.address = NULL;
}

static void print_people(struct tdmi_output *out, const struct tdm_prediction *it)
{
    tdmi_print(out, "%s\n", it->path);
    if (it->problem)
        tdmi_print(out, "    skipped: %s\n", it->problem);
    for (int i = 0; i < it->n_guesses; i++)
        tdmi_print(out, "  %5.1f %%  %s\n", 100 * (double)it->guesses[i].probability,
                   it->guesses[i].label);
}

/* ---- CSV --------------------------------------------------------------------------------- */

/* Nine digits are what it takes to read the same float back. */
static void print_csv(struct tdmi_output *out, const struct tdm_prediction *it)
{
    if (it->problem) {
        tdmi_print_field(out, it->path);
        tdmi_print(out, ",,,,,");
        tdmi_print_field(out, it->problem);
        tdmi_print(out, "\n");
    }
    for (int i = 0; i < it->n_guesses; i++) {
        tdmi_print_field(out, it->path);
        tdmi_print(out, ",%d,", i + 1);
        tdmi_print_field(out, it->guesses[i].label);
        tdmi_print(out, ",%.9g,%d,\n", (double)it->guesses[i].probability, it->guesses[i].index);
    }
}

/* ---- one form or another ------------------------------------------------------------------ */

struct answering {
    struct tdmi_call *call;
    int64_t n_answered, n_printed; /* printed: those with a problem, too */
};

static tdm_status on_prediction(void *self, const struct tdm_prediction *prediction, tdm_error *err)
{
    struct answering *answering = self;
    struct tdmi_call *call = answering->call;
    const struct values *values = call->values;
    answering->n_answered += !prediction->problem;
    answering->n_printed++;
    if (call->json) {
        tdm_prediction_to_json(prediction, values->logits, call->json);
        return TDM_OK;
    }
    (values->csv ? print_csv : print_people)(call->out, prediction);
    /* A reader that has gone away (| head) ends the work early. */
    return tdmi_output_check(call->out, err);
}

/* Images of the command line, of a list, or one from standard input. */
static tdm_status predict(tdm_model *model, const struct tdmi_call *call, tdm_prediction_sink sink,
                          tdm_error *err)
{
    const struct values *values = call->values;
    const char *const *paths = call->arguments + 1;
    size_t n_paths = (size_t)call->n_arguments - 1;
    TDMI_AT_END(tdmi_input_close_at) tdmi_input *input = NULL;
    if (values->files_from) {
        const tdm_status status = tdmi_input_open(values->files_from, &input, err);
        if (status == TDM_E_INPUT)
            return TDM_WRAP(err, status,
                            "--files-from takes a list of paths, one a line: a file, or - for "
                            "standard input (images and folders themselves are given without "
                            "it)");
        TDMI_TRY(status);
        TDMI_TRY(tdmi_input_paths(input, &paths, &n_paths, err));
    } else if (n_paths == 1 && strcmp(paths[0], "-") == 0) {
        struct tdm_picture picture = {.name = "-"};
        TDMI_TRY(tdmi_input_open("-", &input, err));
        picture.bytes = tdmi_input_bytes(input, &picture.length_bytes);
        return tdm_model_predict_pictures(model, &picture, 1, values->top, sink, err);
    }
    return tdm_model_predict(model, paths, n_paths, values->top, sink, err);
}

static tdm_status check_server(const struct tdmi_call *call, tdm_error *err)
{
    const struct values *values = call->values;
    if (values->files_from || call->n_arguments > 1)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "with --serve, which takes PORT or ADDRESS:PORT, images come by HTTP; "
                        "found %s%.100s",
                        values->files_from ? "--files-from " : "",
                        values->files_from ? values->files_from : call->arguments[1]);
    if (values->csv || values->logits)
        return TDM_FAIL(err, TDM_E_USAGE, "--%s is not for --serve%s",
                        values->csv ? "csv" : "logits",
                        values->csv ? ", which answers JSON" : "; a request has ?logits=1");
    return TDM_OK;
}

/* Refuse options of a server on the command line; this is none. */
static tdm_status refuse_server_options(const struct tdmi_call *call, tdm_error *err)
{
    for (const struct tdmi_option *row = call->settings->command->options; row->name; row++) {
        if (strcmp(row->group, "Serve") == 0 && tdmi_settings_is_typed(call->settings, row->name))
            return TDM_FAIL(err, TDM_E_USAGE, "--%s is for a server: it requires --serve",
                            row->name);
    }
    return TDM_OK;
}

static tdm_status check(const struct tdmi_call *call, tdm_error *err)
{
    const struct values *values = call->values;
    const int n = call->n_arguments;
    if (values->serve.address)
        return check_server(call, err);
    if (values->logits && !call->json)
        return TDM_FAIL(err, TDM_E_USAGE, "--logits requires --json");
    if (values->csv && call->json)
        return TDM_FAIL(err, TDM_E_USAGE, "found both --csv and --json; one of them is accepted");
    if (values->files_from && n > 1)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "images come from the list of --files-from or from the command line, "
                        "not both; found '%.100s'",
                        call->arguments[1]);
    if (!values->files_from && n == 1)
        return TDM_FAIL(err, TDM_E_USAGE, "tandem predict needs %s after MODEL '%.100s': %s",
                        arguments[1].name, call->arguments[0], arguments[1].help);
    for (int i = 1; i < n && n > 2; i++) {
        if (strcmp(call->arguments[i], "-") == 0)
            return TDM_FAIL(err, TDM_E_USAGE,
                            "- is one image, from standard input, and stands alone (a file of "
                            "that name is ./-)");
    }
    return refuse_server_options(call, err);
}

/* ---- --serve: a model that answers until somebody ends it ------------------------------------ */

/* Is text an address, and not the next argument? "8080", "127.0.0.1:0", "[::1]:80". */
static bool is_address(const char *text)
{
    const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
    return *port != '\0' && port[strspn(port, "0123456789")] == '\0';
}

/* The one line on standard output is the address, so that a script that asked for any free port
 * reads it there. */
static tdm_status answer(struct tdmi_call *call, tdm_model *model,
                         const struct tdm_serve_options *options, tdm_error *err)
{
    tdm_server *server = NULL;
    TDMI_TRY(tdm_server_start(model, options, &server, err));
    tdm_log(TDM_LOG_INFO, "%s with %d classes answers at %s until Ctrl-C", tdm_model_name(model),
            tdm_model_classes(model), tdm_server_url(server));
    tdmi_print(call->out, "%s\n", tdm_server_url(server));
    const tdm_status status = tdmi_output_check(call->out, err);
    if (status == TDM_OK)
        tdm_server_wait(server);
    tdm_json_string(call->json, "url", tdm_server_url(server));
    const struct tdm_serve_counts counts = tdm_server_stop(server);
    tdm_json_integer(call->json, "requests", counts.requests);
    tdm_json_integer(call->json, "pictures", counts.pictures);
    tdm_log(TDM_LOG_INFO, "%lld %s answered, %lld %s predicted", (long long)counts.requests,
            counts.requests == 1 ? "request was" : "requests were", (long long)counts.pictures,
            counts.pictures == 1 ? "image" : "images");
    return status;
}

/* Print where the model is served, wait for a request to stop, finish, and report the counts. */
static tdm_status serve(struct tdmi_call *call, struct tdm_serve_options *options, tdm_error *err)
{
    const struct values *values = call->values;
    TDMI_AT_END(tdm_model_close_at) tdm_model *opened = NULL;
    const char *token = getenv("TANDEM_TOKEN"); /* never an option: others see those of a process */
    if (!options->token_file && token)
        options->token = token;
    if (options->token && !*token)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "TANDEM_TOKEN is empty, which is no token; unset it to serve without one");
    const tdm_status status = tdm_serve_check(options, err);
    if (status != TDM_OK && options->token)
        return TDM_WRAP(err, status, "serving with the token in TANDEM_TOKEN");
    TDMI_TRY(status);
    TDMI_TRY(tdm_model_open(call->arguments[0], &values->model, &opened, err));
    return answer(call, opened, options, err);
}

/* ---- the command ---------------------------------------------------------------------------- */

static tdm_status run(struct tdmi_call *call, tdm_error *err)
{
    const struct values *values = call->values;
    struct answering answering = {.call = call};
    TDMI_AT_END(tdm_model_close_at) tdm_model *model = NULL;
    TDMI_TRY(check(call, err));
    if (values->serve.address) {
        struct tdm_serve_options options = values->serve;
        options.top = values->top;
        return serve(call, &options, err);
    }
    TDMI_TRY(tdm_model_open(call->arguments[0], &values->model, &model, err));
    tdm_json_array_begin(call->json, "predictions");
    if (values->csv)
        tdmi_print(call->out, "path,rank,label,probability,index,problem\n");
    const tdm_status status =
        predict(model, call, (tdm_prediction_sink){&answering, on_prediction}, err);
    tdm_json_array_end(call->json);
    /* Some path is missing, or some image lacks memory. The sentence of a path alone is that of its
     * answer: on a terminal people have it before them. */
    if ((status == TDM_E_INPUT || status == TDM_E_MEMORY) && answering.n_printed > 0) {
        if (call->json || values->csv || answering.n_printed > 1 || status == TDM_E_MEMORY ||
            !isatty(STDOUT_FILENO))
            tdm_log(TDM_LOG_ERROR, "%s", tdm_error_sentence(err, 0));
        call->exit_status = tdm_status_exit(status);
        return TDM_OK;
    }
    if (status == TDM_OK && answering.n_answered == 0) /* every problem was printed */
        call->exit_status = tdm_status_exit(TDM_E_INPUT);
    return status;
}

static const struct tdmi_option options[] = {
    TDMI_ROW(PATH, "files-from", files_from, "Images",
             "list of images and folders, one a line, or ended by zeros as find -print0 writes "
             "them; - is standard input",
             .value_name = "FILE", .default_words = "the command line", .is_common = true,
             .is_command_line_only = true),
    TDMI_ROW(INTEGER, "top", top, "Answer", "number of likeliest classes for each image", .low = 1,
             .high = 1000, .unit = "classes", .is_common = true),
    TDMI_ROW(FLAG, "csv", csv, "Answer",
             "print one line for each guess: path,rank,label,probability,index,problem",
             .is_common = true),
    TDMI_ROW(FLAG, "logits", logits, "Answer", "with --json: add the logits of every class"),
    TDMI_ROW(TEXT, "serve", serve.address, "Serve",
             "answer over HTTP instead, at PORT or ADDRESS:PORT (alone: 127.0.0.1:8080; port 0: "
             "any free port)",
             .value_name = "[ADDR]", .alone = "127.0.0.1:8080", .is_value = is_address,
             .default_words = "no server", .is_common = true, .is_command_line_only = true),
    TDMI_ROW(PATH, "token-file", serve.token_file, "Serve",
             "file with the token that requests must carry; without a token only this machine is "
             "answered",
             .value_name = "FILE", .default_words = "the variable TANDEM_TOKEN, else none"),
    TDMI_ROW(SIZE, "body-limit", serve.body_bytes, "Serve", "largest request", .low = 1024,
             .high = 1 << 30),
    TDMI_ROW(LONG, "pixel-limit", serve.pixels, "Serve", "most pixels of one image", .low = 1,
             .high = 1e9, .unit = "pixels"),
    TDMI_ROW(LONG, "request-pixel-limit", serve.request_pixels, "Serve",
             "most pixels of all images of one request", .low = 1, .high = 1e12, .unit = "pixels",
             .default_words = "4 times --pixel-limit"),
    TDMI_ROW(DURATION, "time-limit", serve.seconds, "Serve",
             "time from the first line of a request to its answer, and for the answer to be read",
             .low = 0.1, .high = 3600),
    TDMI_ROW(INTEGER, "connections", serve.connections, "Serve",
             "connections at a time; further ones wait", .low = 1, .high = 10000),
    TDMI_ROW(INTEGER, "requests", serve.requests, "Serve",
             "requests with images at a time; further ones get status 503 and retry", .low = 1,
             .high = 10000),
#include "cli/foreign.def"
    TDMI_ROW_THREADS(model.threads, "one per core", "number of threads; never changes the results"),
    TDMI_ROW_DEVICE(model.device, "cpu, or one backend: cuda, cuda:1, ref"),
    {.name = NULL},
};

static const char *const examples[] = {
    "tandem predict runs/first holiday.jpg",
    "one image, the five likeliest classes",
    "tandem predict runs/first new-pictures --top 1 --json",
    "a folder, for a script",
    "tandem predict runs/first --serve 8080",
    "answer over HTTP, with a page at http://127.0.0.1:8080/",
    "find new -mtime -1 -print0 | tandem predict runs/first --files-from - --csv",
    "a list from another program, a table for another program",
    "curl -s https://example.org/cat.jpg | tandem predict runs/first -",
    "one image through a pipe",
    "tandem predict keras_model.h5 photo.jpg --classes labels.txt",
    "a full Keras model of another program",
    NULL,
};

TDMI_COMMAND(
    predict, "classify images with a trained model",
    "Files that are not readable images are named and skipped. The exit status is 3 where a "
    "path is missing, and where no file is a readable image.");
