/*
 * tandem bench loader SRC, bench compute, bench scaling, bench allreduce: what this machine
 * reaches, with the ceiling beside it, what more CPUs would, and what several ranks do. All share
 * one option table; an option that the measurement at hand has no use for is refused.
 */
#include "cli/command.h"
#include "cli/settings.h"
#include "base/scope.h"
#include "tandem/bench.h"
#include "tandem/train.h"

#include <string.h>

struct values {
    struct tdm_bench_loader_options loader;
    struct tdm_bench_compute_options compute;
    const char *mode, *freeze;
    /* of both; 0: its own default */
    int batch, threads;
    double seconds;
    double bandwidth; /* GB/s; 0: no limit */
    int64_t bytes;    /* of a sum; 0: the usual ones */
};

static void defaults(void *values)
{
    struct values *made = values;
    made->loader = tdm_bench_loader_options_default();
    made->compute = tdm_bench_compute_options_default();
    made->mode = "train";
    made->freeze = "none";
}

/* ---- loader -------------------------------------------------------------------------------- */

static void report_stage(const struct tdmi_call *call, const char *name,
                         const struct tdm_bench_stage *stage)
{
    char rate[32];
    tdm_json_object_begin(call->json, name);
    tdm_json_integer(call->json, "images", stage->images);
    tdm_json_integer(call->json, "bytes", stage->bytes);
    tdm_json_number(call->json, "thread_seconds", stage->seconds);
    if (stage->seconds > 0.0)
        tdm_json_number(call->json, "images_per_second", (double)stage->images / stage->seconds);
    else
        tdm_json_null(call->json, "images_per_second");
    tdm_json_object_end(call->json);
    if (stage->images > 0 && stage->seconds > 0.0)
        tdmi_print(
            call->out, "  %-9s %10.0f images/s a thread, %s\n", name,
            (double)stage->images / stage->seconds,
            tdmi_format_amount((double)stage->bytes / stage->seconds, "B/s", rate, sizeof rate));
}

static void write_rate(tdm_json_writer *json, const char *name, const struct tdm_bench_rate *rate)
{
    tdm_json_object_begin(json, name);
    tdm_json_number(json, "low", rate->low);
    tdm_json_number(json, "high", rate->high);
    tdm_json_object_end(json);
}

static void report_loader(const struct tdmi_call *call, const struct tdm_bench_loader *result)
{
    tdm_json_writer *json = call->json;
    struct tdmi_output *out = call->out;
    const char *ceiling = result->is_raw ? "reading" : "decoding";
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
    tdmi_print(out, "  %-9s %10.0f images/s (%.0f to %.0f in %d round%s), %.2f ms a batch\n",
               "loader", result->loader.median, result->loader.low, result->loader.high,
               result->rounds, result->rounds == 1 ? "" : "s", result->milliseconds);
    tdmi_print(out, "  %-9s %10.0f images/s (%.0f to %.0f), %s alone\n", "ceiling",
               result->ceiling.median, result->ceiling.low, result->ceiling.high, ceiling);
    tdmi_print(out, "  %-9s %10.0f and %.0f images for a second of CPU time\n", "",
               result->loader_processor.median, result->ceiling_processor.median);
    if (result->ceiling.median > 0.0)
        tdmi_print(
            out, "  the loader reaches %.1f %% of its ceiling with %d thread%s (%.1f to %.1f)\n",
            100.0 * result->fraction.median, result->threads, result->threads == 1 ? "" : "s",
            100.0 * result->fraction.low, 100.0 * result->fraction.high);
    tdmi_print(out, "\n");
    report_stage(call, "read", &result->read);
    report_stage(call, "decode", &result->decode);
    report_stage(call, "augment", &result->augment);
    tdm_json_number(json, "consumer_wait_seconds", result->consumer_wait_seconds);
    tdm_json_number(json, "ring_wait_seconds", result->ring_wait_seconds);
    if (result->skipped > 0 || result->others > 0)
        tdmi_print(out, "%lld of %lld images could not be used; %lld other %s\n",
                   (long long)result->skipped, (long long)result->source_images,
                   (long long)result->others, result->others == 1 ? "file" : "files");
}

static tdm_status run_loader(struct tdmi_call *call, tdm_error *err)
{
    const struct values *values = call->values;
    struct tdm_bench_loader_options options = values->loader;
    struct tdm_bench_loader result = {.struct_bytes = sizeof result};
    options.source = call->arguments[1];
    options.threads = values->threads;
    options.batch = values->batch ? values->batch : options.batch;
    options.seconds = values->seconds > 0.0 ? values->seconds : options.seconds;
    TDMI_TRY(tdm_bench_loader(&options, &result, err));
    report_loader(call, &result);
    return TDM_OK;
}

/* ---- compute ------------------------------------------------------------------------------- */

static void write_algorithm(tdm_json_writer *json, const char *key,
                            const struct tdm_bench_way *algorithm)
{
    if (!*algorithm->by) {
        tdm_json_null(json, key);
        return;
    }
    tdm_json_object_begin(json, key);
    tdm_json_string(json, "by", algorithm->by);
    tdm_json_integer(json, "workspace_bytes", algorithm->workspace_bytes);
    tdm_json_object_end(json);
}

static void report_nodes(tdm_json_writer *json, struct tdmi_output *out,
                         const struct tdm_bench_compute *result)
{
    char operations[32], bytes[32];
    tdm_json_array_begin(json, "profile");
    tdmi_print(out, "\n  %-28s %-12s %10s %10s %7s %13s %11s\n", "node", "op", "forward ms",
               "backward", "share", "arithmetic", "traffic");
    for (int i = 0; i < result->n_nodes; i++) {
        const struct tdm_bench_node *node = &result->nodes[i];
        const double forward_ms = 1e3 * node->forward_seconds;
        const double backward_ms = 1e3 * node->backward_seconds;
        tdm_json_object_begin(json, NULL);
        tdm_json_string(json, "name", node->name);
        tdm_json_string(json, "op", node->op);
        tdm_json_number(json, "forward_milliseconds", forward_ms);
        tdm_json_number(json, "backward_milliseconds", backward_ms);
        tdm_json_number(json, "share", node->share);
        tdm_json_number(json, "operations_per_second", node->operations_per_s);
        tdm_json_number(json, "bytes_per_second", node->bytes_per_s);
        write_algorithm(json, "forward", &node->forward_way);
        write_algorithm(json, "input_gradient", &node->input_gradient_way);
        write_algorithm(json, "weight_gradient", &node->weight_gradient_way);
        tdm_json_object_end(json);
        tdmi_print(
            out, "  %-28s %-12s %10.3f %10.3f %5.1f %% %13s %11s\n", node->name, node->op,
            forward_ms, backward_ms, 100.0 * node->share,
            tdmi_format_amount(node->operations_per_s, "FLOP/s", operations, sizeof operations),
            tdmi_format_amount(node->bytes_per_s, "B/s", bytes, sizeof bytes));
    }
    tdm_json_array_end(json);
    tdm_json_number(json, "other_milliseconds", 1e3 * result->other_seconds);
    tdmi_print(out, "  %-41s %10.3f\n", "adding, updating, waiting", 1e3 * result->other_seconds);
    if (!(result->update_seconds > 0.0))
        return;
    tdm_json_object_begin(json, "update");
    tdm_json_number(json, "milliseconds", 1e3 * result->update_seconds);
    tdm_json_number(json, "bytes_per_second", result->update_bytes_per_s);
    tdm_json_object_end(json);
    tdmi_print(out, "  %-41s %10.3f %8s %13s %11s\n", "the optimizer's step alone",
               1e3 * result->update_seconds, "", "",
               tdmi_format_amount(result->update_bytes_per_s, "B/s", bytes, sizeof bytes));
}

static void print_algorithm(struct tdmi_output *out, const char *node, const char *direction,
                            const struct tdm_bench_way *algorithm)
{
    char workspace[32] = "", bytes[32];
    if (!*algorithm->by)
        return;
    if (algorithm->workspace_bytes > 0)
        snprintf(workspace, sizeof workspace, ", %s",
                 tdmi_format_bytes((double)algorithm->workspace_bytes, bytes, sizeof bytes));
    tdmi_print(out, "  %-28s %-16s %s%s\n", node, direction, algorithm->by, workspace);
}

/* The algorithm chosen for each direction, if there was a choice. */
static void print_algorithms(struct tdmi_output *out, const struct tdm_bench_compute *result)
{
    bool has_title = false;
    for (int i = 0; i < result->n_nodes; i++) {
        const struct tdm_bench_node *node = &result->nodes[i];
        if (!*node->forward_way.by)
            continue;
        if (!has_title)
            tdmi_print(out, "\n  %-28s %-16s %s\n", "node", "", "computed by, workspace");
        has_title = true;
        print_algorithm(out, node->name, "forward", &node->forward_way);
        print_algorithm(out, "", "input gradient", &node->input_gradient_way);
        print_algorithm(out, "", "weight gradient", &node->weight_gradient_way);
    }
}

static void report_compute(const struct tdmi_call *call, const struct tdm_bench_compute *result)
{
    const struct values *values = call->values;
    tdm_json_writer *json = call->json;
    struct tdmi_output *out = call->out;
    char amount[32], planned[32];
    tdm_json_number(json, "images_per_second", result->rate.median);
    tdm_json_number(json, "ceiling_images_per_second", result->ceiling);
    tdm_json_number(json, "milliseconds", result->milliseconds);
    write_rate(json, "images_per_second_spread", &result->rate);
    tdm_json_number(json, "fraction_of_ceiling",
                    result->ceiling > 0.0 ? result->rate.median / result->ceiling : 0.0);
    tdm_json_number(json, "images_per_processor_second", result->processor_rate);
    tdm_json_number(json, "operations_per_second", result->operations_per_s);
    tdm_json_number(json, "start_milliseconds", result->start_milliseconds);
    tdm_json_string(json, "model", result->model);
    tdm_json_string(json, "mode", values->mode);
    tdm_json_string(json, "freeze", values->freeze);
    tdm_json_string(json, "backend", result->backend);
    tdm_json_bool(json, "unfused", values->compute.is_unfused);
    tdm_json_integer(json, "parameters", result->parameters);
    tdm_json_integer(json, "image", result->image);
    tdm_json_integer(json, "shard", result->shard);
    tdm_json_integer(json, "steps", result->steps);
    tdm_json_integer(json, "threads", result->threads);
    tdm_json_integer(json, "planned_bytes", result->planned_bytes);
    tdm_json_integer(json, "peak_bytes", result->peak_bytes);
    tdmi_print(out, "%s, %s%s, %d pixels, on %s with %d thread%s, groups of %d images\n",
               result->model, values->mode,
               strcmp(values->freeze, "base") == 0 ? ", base frozen" : "", result->image,
               result->backend, result->threads, result->threads == 1 ? "" : "s", result->shard);
    tdmi_print(out, "  %-9s %10.1f images/s (%.1f to %.1f in %d steps), %.1f ms a batch, %s\n",
               "reached", result->rate.median, result->rate.low, result->rate.high, result->steps,
               result->milliseconds,
               tdmi_format_amount(result->operations_per_s, "FLOP/s", amount, sizeof amount));
    tdmi_print(out, "  %-9s %10.1f images for a second of CPU time\n", "", result->processor_rate);
    tdmi_print(out,
               "  %-9s %10.1f images/s, convolutions and dense layers alone, each at its best\n",
               "ceiling", result->ceiling);
    tdmi_print(out, "  %-9s %10.1f ms to start, %s planned, %s at most in memory\n", "",
               result->start_milliseconds,
               tdmi_format_bytes((double)result->planned_bytes, planned, sizeof planned),
               tdmi_format_bytes((double)result->peak_bytes, amount, sizeof amount));
    if (result->nodes) {
        report_nodes(json, out, result);
        print_algorithms(out, result);
    }
}

static tdm_status run_compute(struct tdmi_call *call, tdm_error *err)
{
    const struct values *values = call->values;
    struct tdm_bench_compute_options options = values->compute;
    TDMI_AT_END(tdm_bench_compute_release)
    struct tdm_bench_compute result = {.struct_bytes = sizeof result};
    options.mode = strcmp(values->mode, "train") == 0 ? TDM_BENCH_TRAIN : TDM_BENCH_FEATURES;
    options.has_frozen_base = strcmp(values->freeze, "base") == 0;
    options.threads = values->threads;
    options.batch = values->batch ? values->batch : options.batch;
    options.seconds = values->seconds > 0.0 ? values->seconds : options.seconds;
    TDMI_TRY(tdm_bench_compute(&options, &result, err));
    report_compute(call, &result);
    return TDM_OK;
}

/* ---- scaling ------------------------------------------------------------------------------- */

static void report_scaling(const struct tdmi_call *call, const struct tdm_bench_scaling *result)
{
    const struct values *values = call->values;
    tdm_json_writer *json = call->json;
    struct tdmi_output *out = call->out;
    const bool is_training = strcmp(values->mode, "train") == 0;
    char bytes[32], images[32] = "", update[32] = "";
    tdm_json_string(json, "model", result->model);
    tdm_json_string(json, "mode", values->mode);
    tdm_json_integer(json, "image", result->image);
    tdm_json_integer(json, "shard", result->shard);
    tdm_json_integer(json, "batch", result->batch);
    tdm_json_number(json, "step_milliseconds", 1e3 * result->step_seconds);
    tdm_json_number(json, "group_milliseconds", 1e3 * result->group_seconds);
    tdm_json_number(json, "update_milliseconds", 1e3 * result->update_seconds);
    tdm_json_number(json, "wait_microseconds", 1e6 * result->barrier_seconds);
    tdm_json_number(json, "step_bytes", result->step_bytes);
    if (is_training) {
        snprintf(images, sizeof images, " in groups of %d", result->shard);
        snprintf(update, sizeof update, ", %.2f ms an update", 1e3 * result->update_seconds);
    }
    tdmi_print(out, "%s, %s, %d pixels, %d images%s, on one thread:\n", result->model, values->mode,
               result->image, result->batch, images);
    tdmi_print(out,
               "  %.1f ms a step, %.1f ms %s%s, %.2f us a wait of two threads; %s moved a step\n",
               1e3 * result->step_seconds, 1e3 * result->group_seconds,
               is_training ? "a group" : "one image alone", update, 1e6 * result->barrier_seconds,
               tdmi_format_bytes(result->step_bytes, bytes, sizeof bytes));
    if (result->busy_speedup > 0.0) {
        tdm_json_number(json, "busy_slowdown", result->busy_slowdown);
        tdm_json_number(json, "busy_speedup", result->busy_speedup);
        tdmi_print(
            out,
            "  two copies at once take %.2f times as long as one (counted below); two threads "
            "finish a step %.2f times as fast as two copies theirs\n",
            result->busy_slowdown, result->busy_speedup);
    }
    tdmi_print(out, "\n");
    tdmi_print(out, "  %7s %14s %8s %12s %9s %11s%s %11s\n", "threads", "teams", "regions",
               "predicted ms", "speed-up", "by members",
               result->rows[0].bandwidth_speedup > 0.0 ? "  with bandwidth" : "", "measured ms");
    tdm_json_array_begin(json, "threads");
    for (int i = 0; i < result->n_rows; i++) {
        const struct tdm_bench_scaling_row *row = &result->rows[i];
        char teams[32] = "-", measured[32] = "", with_bandwidth[32] = "";
        tdm_json_object_begin(json, NULL);
        tdm_json_integer(json, "threads", row->threads);
        tdm_json_integer(json, "teams", row->teams);
        tdm_json_integer(json, "members", row->members);
        tdm_json_integer(json, "regions", row->regions);
        tdm_json_number(json, "predicted_milliseconds", 1e3 * row->seconds);
        tdm_json_number(json, "speedup", row->speedup);
        tdm_json_number(json, "members_speedup", row->members_speedup);
        if (row->bandwidth_speedup > 0.0)
            tdm_json_number(json, "speedup_with_bandwidth", row->bandwidth_speedup);
        if (row->measured_seconds > 0.0)
            tdm_json_number(json, "measured_milliseconds", 1e3 * row->measured_seconds);
        tdm_json_object_end(json);
        if (row->members > 1)
            snprintf(teams, sizeof teams, "%d of %d", row->teams, row->members);
        if (row->bandwidth_speedup > 0.0)
            snprintf(with_bandwidth, sizeof with_bandwidth, "  %14.2f", row->bandwidth_speedup);
        if (row->measured_seconds > 0.0)
            snprintf(measured, sizeof measured, " %11.1f", 1e3 * row->measured_seconds);
        tdmi_print(out, "  %7d %14s %8lld %12.1f %9.2f %11.2f%s%s\n", row->threads, teams,
                   (long long)row->regions, 1e3 * row->seconds, row->speedup, row->members_speedup,
                   with_bandwidth, measured);
    }
    tdm_json_array_end(json);
}

static tdm_status run_scaling(struct tdmi_call *call, tdm_error *err)
{
    const struct values *values = call->values;
    struct tdm_bench_compute_options options = values->compute;
    struct tdm_bench_scaling result = {.struct_bytes = sizeof result};
    options.mode = strcmp(values->mode, "train") == 0 ? TDM_BENCH_TRAIN : TDM_BENCH_FEATURES;
    options.has_frozen_base = strcmp(values->freeze, "base") == 0;
    options.batch = values->batch ? values->batch : options.batch;
    options.seconds = values->seconds > 0.0 ? values->seconds : 60.0;
    if (tdmi_settings_is_typed(call->settings, "threads"))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "option --threads: bench scaling predicts 1 to 64 threads; leave it out");
    TDMI_TRY(tdm_bench_scaling(&options, 1e9 * values->bandwidth, &result, err));
    report_scaling(call, &result);
    return TDM_OK;
}

/* ---- allreduce ----------------------------------------------------------------------------- */

static void report_sums(const struct tdmi_call *call, const struct tdm_bench_allreduce *result)
{
    tdm_json_integer(call->json, "world", result->world);
    tdm_json_string(call->json, "transport", result->transport);
    tdmi_print(call->out, "the exact sum over %d ranks by %s:\n  %10s %10s %10s %10s %12s\n",
               result->world, result->transport, "size", "low ms", "median", "high", "rate");
    tdm_json_array_begin(call->json, "sums");
    for (int i = 0; i < result->n_rows; i++) {
        const struct tdm_bench_allreduce_row *row = &result->rows[i];
        char size[32], rate[32];
        tdm_json_object_begin(call->json, NULL);
        tdm_json_integer(call->json, "bytes", row->bytes);
        tdm_json_integer(call->json, "rounds", row->rounds);
        tdm_json_number(call->json, "milliseconds_low", 1e3 * row->low);
        tdm_json_number(call->json, "milliseconds", 1e3 * row->median);
        tdm_json_number(call->json, "milliseconds_high", 1e3 * row->high);
        tdm_json_object_end(call->json);
        tdmi_print(call->out, "  %10s %10.3f %10.3f %10.3f %12s\n",
                   tdmi_format_amount((double)row->bytes, "B", size, sizeof size), 1e3 * row->low,
                   1e3 * row->median, 1e3 * row->high,
                   tdmi_format_amount((double)row->bytes / row->median, "B/s", rate, sizeof rate));
    }
    tdm_json_array_end(call->json);
}

static tdm_status run_allreduce(struct tdmi_call *call, tdm_error *err)
{
    const struct values *values = call->values;
    struct tdm_bench_allreduce result = {.struct_bytes = sizeof result};
    const double seconds = values->seconds > 0.0 ? values->seconds : 4.0;
    const bool has_batch = tdmi_settings_is_typed(call->settings, "batch");
    if (has_batch || tdmi_settings_is_typed(call->settings, "threads"))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "option --%s has no meaning for bench allreduce; leave it out",
                        has_batch ? "batch" : "threads");
    call->is_silent = tdm_train_rank() > 0;
    TDMI_TRY(tdm_bench_allreduce(values->bytes, seconds, &result, err));
    if (!call->is_silent)
        report_sums(call, &result);
    return TDM_OK;
}

/* ---- all ---------------------------------------------------------------------------------- */

/* Refuse options of other measurements. */
static tdm_status check_options(const struct tdmi_call *call, const char *verb, tdm_error *err)
{
    static const char *const owners[][2] = {{"Loader", "loader"},
                                            {"Source", "loader"},
                                            {"Compute", "compute"},
                                            {"Scaling", "scaling"},
                                            {"Allreduce", "allreduce"}};
    const struct tdmi_option *rows = call->settings->command->options;
    for (int i = 0; rows[i].name; i++)
        for (size_t j = 0; j < sizeof owners / sizeof owners[0]; j++) {
            const bool is_shared =
                strcmp(owners[j][1], "compute") == 0 && strcmp(verb, "scaling") == 0;
            if (strcmp(rows[i].group, owners[j][0]) == 0 && strcmp(owners[j][1], verb) != 0 &&
                !is_shared &&
                call->settings->of[TDMI_TABLE_OWN][i].origin == TDMI_FROM_COMMAND_LINE)
                return TDM_FAIL(err, TDM_E_USAGE,
                                "option --%s belongs to bench %s, not to bench %s", rows[i].name,
                                owners[j][1], verb);
        }
    return TDM_OK;
}

static tdm_status run(struct tdmi_call *call, tdm_error *err)
{
    static const struct tdmi_verb verbs[] = {
        {"loader", "SRC, a folder of images or another source", 2, 2, run_loader},
        {"compute", "no SRC", 1, 1, run_compute},
        {"scaling", "no SRC", 1, 1, run_scaling},
        {"allreduce", "no SRC", 1, 1, run_allreduce},
        {.name = NULL}};
    const struct tdmi_verb *verb;
    TDMI_TRY(tdmi_verb_find(call, verbs, &verb, err));
    TDMI_TRY(check_options(call, verb->name, err));
    return verb->run(call, err);
}

static const struct tdmi_argument arguments[] = {
    {.name = "WHAT",
     .help = "loader: read image files into shuffled batches; compute: run a network on batches in "
             "memory; scaling: predict a step on more CPUs; allreduce: add arrays of several ranks",
     .choices = "loader|compute|scaling|allreduce"},
    {.name = "SRC",
     .help =
         "loader: labelled images, as class folders, archives, WebDataset shards, lists, Parquet "
         "or Delta tables, IDX or CIFAR files",
     .is_optional = true},
    {.name = NULL},
};

static const struct tdmi_option options[] = {
    TDMI_ROW(INTEGER, "batch", batch, "Measuring", "images per batch", .high = 65536,
             .unit = "images", .default_words = "64 for the loader, else 32", .is_common = true),
    TDMI_ROW(
        DURATION, "seconds", seconds, "Measuring",
        "time of the whole measurement; of loader half, of compute a third measures the ceiling",
        .low = 0.5, .high = 3600,
        .default_words = "5s for the loader, 10s for compute, 60s for scaling, 4s for allreduce",
        .is_common = true),
    TDMI_ROW_SIZE(loader.size, 1, 4096, "Loader",
                  "side of the images in a batch; they are shrunk to fit and centred on white"),
    TDMI_ROW_AUGMENT(loader.augment, "Loader", "random changes of images, such as flip,crop:4"),
    TDMI_ROW_SEED(loader.seed, "Loader", "seed of the order"),
#define AT loader.how.
#define HOW(member) member
#include "tandem/source.def"
#undef AT
    TDMI_ROW(TEXT, "model", compute.model, "Compute", "network to run", .value_name = "NAME",
             .name_at = tdm_network_name, .is_common = true),
    TDMI_ROW(
        CHOICE, "mode", mode, "Compute",
        "train: the training step of all layers; features: inference up to the pooled features",
        .choices = "train|features", .is_common = true),
    TDMI_ROW(CHOICE, "freeze", freeze, "Compute",
             "base: train only the head; the layers before it run as in --mode features",
             .choices = "none|base", .is_common = true),
    TDMI_ROW(INTEGER, "image", compute.image, "Compute", "side of the square input", .high = 4096,
             .unit = "pixels", .value_name = "PX", .default_words = "the model's own",
             .is_common = true),
    TDMI_ROW(INTEGER, "classes", compute.classes, "Compute",
             "classes of the last layer, when training", .low = 2, .high = 100000),
    TDMI_ROW(INTEGER, "shard", compute.shard, "Compute", "images per batch-norm group",
             .high = 65536, .unit = "images", .default_words = "the model's own"),
    TDMI_ROW(TEXT, "precision", compute.precision, "Compute",
             "f32, bf16 on a GPU, or auto, which is f32 so far", .value_name = "NAME"),
    TDMI_ROW(FLAG, "profile", compute.has_profile, "Compute", "report the time of each node, too",
             .is_common = true),
    TDMI_ROW(FLAG, "unfused", compute.is_unfused, "Compute",
             "run every node alone, to see how much fusion saves"),
    TDMI_ROW(TEXT, "device", compute.device, "Compute", "cpu, or one backend: cuda, cuda:1, ref",
             .value_name = "NAME", .is_common = true),
    TDMI_ROW(NUMBER, "bandwidth", bandwidth, "Scaling",
             "GB/s that the memory of the predicted machine moves", .high = 1e6,
             .value_name = "RATE", .default_words = "no limit"),
    TDMI_ROW(SIZE, "bytes", bytes, "Allreduce", "size of the arrays that are added", .low = 4,
             .high = 1e12, .default_words = "1, 4, 16 and 64 MiB"),
    TDMI_ROW_THREADS(threads, "one per core to compute, one per CPU to load",
                     "threads that load or compute, and that run the ceiling"),
    {.name = NULL},
};

static const char *const examples[] = {
    "tandem bench loader pictures --size 299 --threads 2",
    "the rate at which batches arrive, and its limit",
    "tandem bench compute --model lenet5 --batch 128 --classes 10",
    "the rate at which a network trains, and its limit",
    "tandem run -n 2 -- bench allreduce",
    "how fast two processes add their gradients",
    NULL,
};

TDMI_COMMAND(
    bench, "measure the speed of this machine, beside its ceiling",
    "The loader reads, decodes and scales images in shuffled order into batches, with no cache "
    "but the system's. Its ceiling is decoding and scaling alone, of the same images with "
    "their files in memory; both are measured interleaved in one run. Compute runs a network "
    "on batches of noise in memory, with or without the training step. Its ceiling is the sum "
    "of the best times of each convolution and dense layer alone. Scaling measures a step of "
    "either on one CPU at a time and predicts it for up to 64. Allreduce adds arrays over the "
    "ranks that tandem run or another launcher started, in the order of training.");
