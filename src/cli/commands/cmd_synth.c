/*
 * tandem synth OUT: a synthetic photo-like data set to try things with.
 */
#include "cli/command.h"
#include "base/scope.h"
#include "tandem/prepare.h"
#include "cli/watch.h"

struct values {
    struct tdm_synth_options synth;
};

/* The folder to make: the argument, or -o. */
static tdm_status choose_folder(const struct tdmi_call *call, const char **folder, tdm_error *err)
{
    const bool is_argument = call->n_arguments > 0;
    if (is_argument && *folder)
        return TDM_FAIL(err, TDM_E_USAGE, "found both '%s' and --out %s; one folder is made",
                        call->arguments[0], *folder);
    if (is_argument)
        *folder = call->arguments[0];
    return *folder ? TDM_OK
                   : TDM_FAIL(err, TDM_E_USAGE,
                              "tandem synth needs OUT: folder to make; it must be empty or absent");
}

static void defaults(void *values)
{
    ((struct values *)values)->synth = tdm_synth_options_default();
}

static tdm_status run(struct tdmi_call *call, tdm_error *err)
{
    struct tdm_synth_options options = ((const struct values *)call->values)->synth;
    struct tdm_synth_result result = {.struct_bytes = sizeof result};
    char bytes[32];
    TDMI_TRY(choose_folder(call, &options.folder, err));
    TDMI_TRY(tdm_synth(&options, tdmi_watch_sink(call->watch), &result, err));
    tdm_json_string(call->json, "folder", options.folder);
    tdm_json_integer(call->json, "images", result.images);
    tdm_json_integer(call->json, "classes", result.classes);
    tdm_json_integer(call->json, "bytes", result.bytes);
    tdm_json_number(call->json, "seconds", result.seconds);
    tdmi_print(call->out, "%lld image%s of %d %s in %s (%s, %.1f s)\n", (long long)result.images,
               result.images == 1 ? "" : "s", result.classes,
               result.classes == 1 ? "class" : "classes", options.folder,
               tdmi_format_amount((double)result.bytes, "B", bytes, sizeof bytes), result.seconds);
    if (!call->globals->quiet)
        tdmi_print_next(call->out, "tandem train", options.folder);
    return TDM_OK;
}

static const struct tdmi_argument arguments[] = {
    {.name = "OUT", .help = "folder to make; it must be empty or absent", .is_optional = true},
    {.name = NULL},
};

static const struct tdmi_option options[] = {
    TDMI_ROW(PATH, "out", synth.folder, "Result", "folder to make, in place of the argument",
             .letter = 'o', .value_name = "OUT", .is_command_line_only = true),
    TDMI_ROW(INTEGER, "classes", synth.classes, "Images", "number of classes, one folder each",
             .low = 2, .high = 1000),
    TDMI_ROW(INTEGER, "per-class", synth.per_class, "Images", "number of images per class",
             .low = 1, .high = 1000000),
    TDMI_ROW_SIZE(synth.size, 16, 2048, "Images", "typical side; images vary around it"),
    TDMI_ROW(CHOICE, "format", synth.format, "Images",
             "format of the files, if this build can write it", .choices = "jpeg|png|bmp|ppm"),
    TDMI_ROW_SEED(synth.seed, "Images", "the same seed gives the same bytes on any machine"),
    TDMI_ROW_THREADS(synth.threads, "all usable CPUs",
                     "number of threads; never changes the bytes"),
    {.name = NULL},
};

static const char *const examples[] = {
    "tandem synth pictures --classes 4 --per-class 200",
    "a small set to train on",
    "tandem synth -o thumbnails --size 64 --format png --seed 7",
    "other images of another size",
    NULL,
};

TDMI_COMMAND(synth, "generate a synthetic data set of photo-like images",
             "Writes class folders of images with textures, shapes, clutter, changing light "
             "and sizes, which a small network can learn and a colour histogram cannot.");
