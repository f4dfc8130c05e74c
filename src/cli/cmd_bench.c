/*
 * tandem bench loader SRC: what this machine reaches, with the ceiling beside it.
 */
#include "command.h"
#include "tandem/bench.h"
#include "tandem/train.h"

#include <string.h>

struct values {
    struct tdm_bench_loader_options loader;
};

static void defaults(void *values)
{
    ((struct values *)values)->loader = tdm_bench_loader_options_default();
}

static void write_stage(tdm_json_writer *json, const char *name,
                        const struct tdm_bench_stage *stage)
{
    tdm_json_object_begin(json, name);
    tdm_json_integer(json, "images", stage->images);
    tdm_json_integer(json, "bytes", stage->bytes);
    tdm_json_number(json, "thread_seconds", stage->seconds);
    tdm_json_object_end(json);
}

static void write_rate(tdm_json_writer *json, const char *name, const struct tdm_bench_rate *rate)
{
    tdm_json_object_begin(json, name);
    tdm_json_number(json, "low", rate->low);
    tdm_json_number(json, "high", rate->high);
    tdm_json_object_end(json);
}

static void write_json(tdm_json_writer *json, const struct tdm_bench_loader *result)
{
    tdm_json_number(json, "images_per_second", result->loader.median);
    tdm_json_number(json, "ceiling_images_per_second", result->ceiling.median);
    tdm_json_number(json, "milliseconds", result->milliseconds);
    write_rate(json, "images_per_second_spread", &result->loader);
    write_rate(json, "ceiling_spread", &result->ceiling);
    tdm_json_number(json, "fraction_of_ceiling", result->fraction.median);
    write_rate(json, "fraction_spread", &result->fraction);
    tdm_json_number(json, "images_per_processor_second", result->loader_processor.median);
    tdm_json_number(json, "ceiling_images_per_processor_second", result->ceiling_processor.median);
    tdm_json_number(json, "fraction_of_processor_ceiling", result->fraction_processor.median);
    tdm_json_string(json, "kind", result->kind);
    tdm_json_bool(json, "raw", result->is_raw);
    tdm_json_bool(json, "draft", result->uses_draft);
    tdm_json_integer(json, "rounds", result->rounds);
    tdm_json_integer(json, "threads", result->threads);
    tdm_json_integer(json, "images", result->images);
    tdm_json_integer(json, "skipped", result->skipped);
    tdm_json_integer(json, "others", result->others);
    tdm_json_integer(json, "source_images", result->source_images);
    write_stage(json, "read", &result->read);
    write_stage(json, "decode", &result->decode);
    write_stage(json, "augment", &result->augment);
    tdm_json_number(json, "consumer_wait_seconds", result->consumer_wait_seconds);
    tdm_json_number(json, "ring_wait_seconds", result->ring_wait_seconds);
}

static void print_stage(struct tdmi_output *out, const char *name,
                        const struct tdm_bench_stage *stage)
{
    char rate[32];
    if (stage->images == 0 || !(stage->seconds > 0.0))
        return;
    tdmi_print(out, "  %-9s %10.0f images/s a thread, %s\n", name,
               (double)stage->images / stage->seconds,
               tdmi_format_amount((double)stage->bytes / stage->seconds, "B/s", rate, sizeof rate));
}

static void print_people(struct tdmi_output *out, const struct tdm_bench_loader *result)
{
    const char *ceiling = result->is_raw ? "reading" : "decoding";
    tdmi_print(out, "  %-9s %10.0f images/s (%.0f to %.0f in %d rounds), %.2f ms a batch\n",
               "loader", result->loader.median, result->loader.low, result->loader.high,
               result->rounds, result->milliseconds);
    tdmi_print(out, "  %-9s %10.0f images/s (%.0f to %.0f), %s alone\n", "ceiling",
               result->ceiling.median, result->ceiling.low, result->ceiling.high, ceiling);
    tdmi_print(out, "  %-9s %10.0f and %.0f images for a second of processor time\n", "",
               result->loader_processor.median, result->ceiling_processor.median);
    if (result->ceiling.median > 0.0)
        tdmi_print(
            out, "  the loader reaches %.1f %% of its ceiling with %d thread%s (%.1f to %.1f)\n",
            100.0 * result->fraction.median, result->threads, result->threads == 1 ? "" : "s",
            100.0 * result->fraction.low, 100.0 * result->fraction.high);
    tdmi_print(out, "\n");
    print_stage(out, "read", &result->read);
    print_stage(out, "decode", &result->decode);
    print_stage(out, "augment", &result->augment);
    if (result->skipped > 0 || result->others > 0)
        tdmi_print(out, "%lld of %lld pictures could not be used; %lld other %s\n",
                   (long long)result->skipped, (long long)result->source_images,
                   (long long)result->others, result->others == 1 ? "file" : "files");
}

static tdm_status run(struct tdmi_call *call, tdm_error *err)
{
    const struct values *values = call->values;
    struct tdm_bench_loader_options options = values->loader;
    struct tdm_bench_loader result;
    if (strcmp(call->arguments[0], "loader") != 0)
        return TDM_FAIL(err, TDM_E_USAGE, "tandem bench measures: loader; found '%s'",
                        call->arguments[0]);
    options.source = call->arguments[1];
    tdm_status status = tdm_bench_loader(&options, &result, err);
    if (status == TDM_OK && call->json)
        write_json(call->json, &result);
    else if (status == TDM_OK)
        print_people(call->out, &result);
    return status;
}

static const struct tdmi_argument arguments[] = {
    {.name = "WHAT", .help = "loader: from the files of pictures to shuffled batches"},
    TDMI_ARGUMENT_SRC,
    {.name = NULL},
};

#define FIELD(name) offsetof(struct values, loader.name)

static const struct tdmi_option options[] = {
    TDMI_ROW_SIZE(FIELD(size), 1, 4096, "Batches",
                  "side of the pictures in a batch; shrunk to fit, centred on white"),
    TDMI_ROW_BATCH(FIELD(batch), 65536, "Batches", "in a batch"),
    TDMI_ROW_AUGMENT(FIELD(augment), "Batches", "what is done to pictures, such as flip,crop:4"),
    TDMI_ROW_SEED(FIELD(seed), "Batches", "of the order"),
    {.name = "seconds",
     .type = TDMI_OPTION_DURATION,
     .offset = FIELD(seconds),
     .low = 0.5,
     .high = 3600,
     .group = "Measuring",
     .help = "half of them for the loader, half for its ceiling, in turn"},
    TDMI_ROWS_SOURCE(loader.how),
    TDMI_ROW_THREADS(FIELD(threads), "that load; as many decode for the ceiling"),
    {.name = NULL},
};

static const char *const examples[] = {
    "tandem bench loader pictures --size 299 --threads 2",
    "the rate at which batches could arrive, and what bounds it",
    NULL,
};

const struct tdmi_command tdmi_command_bench = {
    .name = "bench",
    .summary = "measure what this machine reaches, with the ceiling beside it",
    .description =
        "The loader reads, decodes and scales pictures in shuffled order into batches, with no "
        "cache but the system's. Its ceiling is decoding and scaling alone, of the same pictures "
        "with their files in memory. Both are measured in turn in the same run.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .values_bytes = sizeof(struct values),
    .defaults = defaults,
    .run = run,
};
