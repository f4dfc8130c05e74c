/*
 * tandem prepare SRC -o OUT: convert images to a table that loads fast.
 */
#include "cli/command.h"
#include "base/scope.h"
#include "tandem/prepare.h"
#include "cli/watch.h"

#include <stdlib.h>

struct values {
    struct tdm_prepare_options prepare;
    struct tdmi_fractions split; /* train_fraction and val_fraction as one option */
    const char *slice;           /* "k/n" */
};

static void defaults(void *values)
{
    struct values *own = values;
    *own = (struct values){.prepare = tdm_prepare_options_default()};
    own->split =
        (struct tdmi_fractions){{own->prepare.train_fraction, own->prepare.val_fraction}, 2};
}

/* "3/8": two whole numbers. */
static tdm_status read_slice(const char *text, struct tdm_prepare_options *options, tdm_error *err)
{
    char *end = NULL;
    const long slice = strtol(text, &end, 10);
    const long slices = end != text && *end == '/' ? strtol(end + 1, &end, 10) : 0;
    if (*end != '\0' || slice < 0 || slices < 1 || slice > slices || slices > 1000000)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "--slice takes K/N, such as 1/8 to 8/8 (0/8 to 7/8 will do as well); found "
                        "'%s'",
                        text);
    options->slice = (int)slice;
    options->slices = (int)slices;
    return TDM_OK;
}

static tdm_status read_options(const struct tdmi_call *call, struct tdm_prepare_options *options,
                               tdm_error *err)
{
    const struct values *values = call->values;
    *options = values->prepare;
    options->source = call->arguments[0];
    if (options->folder == NULL)
        return TDM_FAIL(err, TDM_E_USAGE, "tandem prepare needs -o OUT: the folder to make");
    double test = 0.0; /* the rest of both, whether given or not */
    TDMI_TRY(tdmi_split_take(&values->split, "becomes test", &options->train_fraction,
                             &options->val_fraction, &test, err));
    const double sum = options->train_fraction + options->val_fraction + test;
    if (test > 0.0 && sum < 1.0 - 1e-9)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "--split %g,%g,%g leaves images over, and a table has all of them; "
                        "three parts that sum to 1, or two, are accepted",
                        options->train_fraction, options->val_fraction, test);
    return values->slice == NULL ? TDM_OK : read_slice(values->slice, options, err);
}

/* ---- result ------------------------------------------------------------------------------- */

static void report(const struct tdmi_call *call, const struct tdm_prepare_options *options,
                   const struct tdm_prepare_result *result)
{
    tdm_json_writer *json = call->json;
    struct tdmi_output *out = call->out;
    char bytes[40];
    tdm_json_string(json, "folder", options->folder);
    tdm_json_integer(json, "images", result->images);
    tdm_json_integer(json, "train", result->train);
    tdm_json_integer(json, "val", result->val);
    tdm_json_integer(json, "test", result->test);
    tdm_json_integer(json, "classes", result->classes);
    tdm_json_integer(json, "quarantined", result->quarantined);
    tdm_json_integer(json, "left_out", result->left_out);
    tdm_unread_to_json(&result->unread, json);
    tdm_json_integer(json, "bytes", result->bytes);
    tdm_json_integer(json, "parts", result->parts);
    tdm_json_integer(json, "made", result->made);
    tdm_json_integer(json, "version", result->version);
    tdm_json_integer(json, "added", result->added);
    tdm_json_integer(json, "removed", result->removed);
    tdm_json_bool(json, "complete", result->is_complete);
    tdm_json_object_begin(json, "change");
    tdm_json_integer(json, "sampled", result->sampled);
    tdm_json_number(json, "mean", result->change_mean);
    tdm_json_integer(json, "max", result->change_max);
    tdm_json_object_end(json);
    tdm_json_number(json, "seconds", result->seconds);
    if (result->is_complete && result->made == result->parts && result->seconds > 0)
        tdm_json_number(json, "images_per_second", (double)result->images / result->seconds);
    tdmi_format_amount((double)result->bytes, "B", bytes, sizeof bytes);
    if (!result->is_complete) {
        tdmi_print(out, "slice %d of %d: %d of %d parts made in %s (%s, %.1f s)\n", options->slice,
                   options->slices, result->made, result->parts, options->folder, bytes,
                   result->seconds);
        return;
    }
    tdmi_print(out, "%lld %s of %d %s in %s: %lld train, %lld val", (long long)result->images,
               result->images == 1 ? "image" : "images", result->classes,
               result->classes == 1 ? "class" : "classes", options->folder,
               (long long)result->train, (long long)result->val);
    if (result->test > 0)
        tdmi_print(out, ", %lld test", (long long)result->test);
    tdmi_print(out, " (%d %s, %s, %.1f s)\n", result->parts, result->parts == 1 ? "file" : "files",
               bytes, result->seconds);
    if (result->version > 0 && result->added + result->removed > 0)
        tdmi_print(out, "version %lld: %lld %s added, %lld removed; %s@v%lld is the table before\n",
                   (long long)result->version, (long long)result->added,
                   result->added == 1 ? "image" : "images", (long long)result->removed,
                   options->folder, (long long)result->version - 1);
    if (result->quarantined > 0)
        tdmi_print(
            out, "%lld %s left out, not readable or listed by --quarantine: see %s/_dataset.json\n",
            (long long)result->quarantined, result->quarantined == 1 ? "image" : "images",
            options->folder);
    if (result->left_out > 0)
        tdmi_print(out, "%lld left out: copies of test images\n", (long long)result->left_out);
    if (result->sampled > 0)
        tdmi_print(out,
                   "jpeg changed pixels by %.2f of 255 on average and %d at most (%lld images "
                   "compared)\n",
                   result->change_mean, result->change_max, (long long)result->sampled);
}

static tdm_status run(struct tdmi_call *call, tdm_error *err)
{
    struct tdm_prepare_options options;
    struct tdm_prepare_result result = {.struct_bytes = sizeof result};
    TDMI_TRY(read_options(call, &options, err));
    TDMI_TRY(tdm_prepare(&options, tdmi_watch_sink(call->watch), &result, err));
    report(call, &options, &result);
    if (result.is_complete && !call->globals->quiet)
        tdmi_print_next(call->out, "tandem train", options.folder);
    return TDM_OK;
}

/* ---- the command --------------------------------------------------------------------- */

static const struct tdmi_argument arguments[] = {
    TDMI_ARGUMENT_SRC,
    {.name = NULL},
};

static const struct tdmi_option options[] = {
    TDMI_ROW(PATH, "out", prepare.folder, "Result", "folder to make, or to continue", .letter = 'o',
             .value_name = "OUT", .default_words = "must be given", .old_name = "output",
             .is_common = true),
    TDMI_ROW(CHOICE, "compression", prepare.compression, "Result",
             "compression of the columns, and of raw images", .choices = "zstd|snappy|none",
             .default_words = "zstd, but not of images"),
    TDMI_ROW(TEXT, "slice", slice, "Result",
             "make only part K of N, such as 1/8, to share the work between machines",
             .value_name = "K/N", .default_words = "all of it", .is_common = true,
             .is_command_line_only = true),
    TDMI_ROW(FLAG, "merge", prepare.merge, "Result", "complete the table after all slices",
             .is_common = true, .is_command_line_only = true),
    TDMI_ROW_SIZE(prepare.size, 1, 8192, "Images", "width and height"),
    TDMI_ROW(CHOICE, "fit", prepare.fit, "Images",
             "shrink and centre on white, fill and crop, or distort", .choices = "pad|crop|stretch",
             .is_common = true),
    TDMI_ROW(NUMBER, "crop-fraction", prepare.crop_fraction, "Images",
             "with --fit crop: resize the short side to size / F before the crop", .low = 0.01,
             .high = 1, .value_name = "F"),
    TDMI_ROW(CHOICE, "resample", prepare.resample, "Images", "filter that resizes images",
             .choices = "lanczos|bicubic|bilinear"),
    TDMI_ROW(CHOICE, "codec", prepare.codec, "Images",
             "format of stored images; raw: plain pixels, keep: the bytes of the file",
             .choices = "jpeg|png|raw|keep", .is_common = true),
    TDMI_ROW(INTEGER, "quality", prepare.quality, "Images",
             "quality of jpeg; from 95 on colours keep their full resolution", .low = 1,
             .high = 100, .default_words = "95", .is_common = true),
    TDMI_ROW_SPLIT(
        split, "Rows",
        "fractions to train and to validate on, if the source has no split; the rest becomes test"),
    TDMI_ROW_SEED(prepare.seed, "Rows", "seed of split and order"),
#define AT prepare.how.
#define HOW(member) member
#include "tandem/source.def"
#undef AT
    TDMI_ROW_THREADS(prepare.threads, "all usable CPUs",
                     "number of threads; never changes the bytes"),
    {.name = NULL},
};

static const char *const examples[] = {
    "tandem prepare photos -o pets --size 224",
    "a table of small images, split into train and val",
    "tandem prepare photos -o pets --slice 1/8",
    "one machine's share; run 1/8 to 8/8 anywhere",
    "tandem prepare photos -o pets --merge",
    "complete the table when all shares are there",
    NULL,
};

TDMI_COMMAND(
    prepare, "convert a data set to one image size, as Parquet and Delta",
    "Rotates every image that decodes upright, scales it to one size, and writes all of them, "
    "split and shuffled, to Parquet files with a Delta log. The same images and options give "
    "the same bytes. After an interruption run it again: finished files stay.");
