/*
 * tandem doctor: what this build and this machine can do, looked up and measured. It exits 0
 * whatever it finds; a missing part comes with the command that installs it.
 */
#include "cli/command.h"
#include "base/scope.h"
#include "tandem/log.h"
#include "tandem/machine.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct values {
    struct tdm_measure_options measure;
    bool has_measurements;
};

static void defaults(void *values)
{
    struct values *own = values;
    own->measure = tdm_measure_options_default();
    own->has_measurements = true;
}

/* ---- words and lines -------------------------------------------------------------------- */

enum { label_width = 14 };

/* Where the result goes: JSON, or lines for people. */
struct report {
    tdm_json_writer *json;
    struct tdmi_output *out;
    int width;
};

/* 0 means "none" or "unknown" in tandem/machine.h; JSON has null for that, as for "". */
static void write_amount(tdm_json_writer *json, const char *key, double amount)
{
    tdm_json_number(json, key, amount > 0 ? amount : NAN);
}

static void write_text(tdm_json_writer *json, const char *key, const char *text)
{
    tdm_json_string(json, key, text && *text ? text : NULL);
}

static void print_label(struct tdmi_output *out, const char *label)
{
    tdmi_print(out, "  %-*s", label_width - 2, label);
}

static void print_line(const struct report *to, const char *label, const char *text)
{
    print_label(to->out, label);
    tdmi_print_wrapped(to->out, text, label_width, label_width, to->width);
    tdmi_print(to->out, "\n");
}

static const char *known_bytes(int64_t bytes, char *text, size_t text_bytes)
{
    return bytes > 0 ? tdmi_format_bytes((double)bytes, text, text_bytes) : "unknown";
}

/* ---- CPU and memory --------------------------------------------------------------------- */

static void write_extensions(tdm_json_writer *json, const char *isa)
{
    tdm_json_array_begin(json, "isa");
    for (const char *at = isa; *at; at += strspn(at, " ")) {
        char name[32];
        int length = (int)strcspn(at, " ");
        snprintf(name, sizeof name, "%.*s", length, at);
        tdm_json_string(json, NULL, name);
        at += length;
    }
    tdm_json_array_end(json);
}

static void report_cpu(const struct report *to, const struct tdm_machine_cpu *cpu)
{
    char line[400], a[32], b[32], c[32];
    tdm_json_object_begin(to->json, "cpu");
    tdm_json_string(to->json, "model", cpu->model);
    tdm_json_string(to->json, "architecture", cpu->architecture);
    write_extensions(to->json, cpu->isa);
    tdm_json_integer(to->json, "packages", cpu->packages);
    tdm_json_integer(to->json, "cores", cpu->cores);
    tdm_json_integer(to->json, "threads", cpu->threads);
    tdm_json_integer(to->json, "usable", cpu->usable);
    tdm_json_integer(to->json, "numa_nodes", cpu->numa_nodes);
    tdm_json_integer(to->json, "l1d_bytes", cpu->l1d_bytes);
    tdm_json_integer(to->json, "l2_bytes", cpu->l2_bytes);
    tdm_json_integer(to->json, "l3_bytes", cpu->l3_bytes);
    tdm_json_object_end(to->json);
    print_line(to, "CPU", *cpu->model ? cpu->model : "unknown");
    snprintf(line, sizeof line, "%d core%s, %d thread%s, %d package%s, %d NUMA node%s; usable: %d",
             cpu->cores, cpu->cores == 1 ? "" : "s", cpu->threads, cpu->threads == 1 ? "" : "s",
             cpu->packages, cpu->packages == 1 ? "" : "s", cpu->numa_nodes,
             cpu->numa_nodes == 1 ? "" : "s", cpu->usable);
    print_line(to, "cores", line);
    snprintf(line, sizeof line, "%s: %s", cpu->architecture, cpu->isa);
    print_line(to, "extensions", line);
    snprintf(line, sizeof line, "L1d %s, L2 %s, L3 %s", known_bytes(cpu->l1d_bytes, a, sizeof a),
             known_bytes(cpu->l2_bytes, b, sizeof b), known_bytes(cpu->l3_bytes, c, sizeof c));
    print_line(to, "caches", line);
}

static void report_threads(const struct report *to, const struct tdm_machine_threads *threads)
{
    tdm_json_object_begin(to->json, "threads");
    write_amount(to->json, "n", threads->n);
    tdm_json_string(to->json, "text", threads->text);
    tdm_json_object_end(to->json);
    print_line(to, "threads", threads->text);
}

static void report_memory(const struct report *to, const struct tdm_machine *machine)
{
    const struct tdm_machine_memory *memory = &machine->memory;
    char line[400], a[32], b[32];
    tdm_json_object_begin(to->json, "memory");
    tdm_json_integer(to->json, "total_bytes", memory->total_bytes);
    tdm_json_integer(to->json, "available_bytes", memory->available_bytes);
    tdm_json_object_end(to->json);
    tdm_json_object_begin(to->json, "limits");
    write_amount(to->json, "cpus", machine->limits.cpus);
    write_amount(to->json, "memory_bytes", (double)machine->limits.memory_bytes);
    tdm_json_object_end(to->json);
    snprintf(line, sizeof line, "%s, %s available",
             tdmi_format_bytes((double)memory->total_bytes, a, sizeof a),
             tdmi_format_bytes((double)memory->available_bytes, b, sizeof b));
    print_line(to, "memory", line);
    snprintf(a, sizeof a, "%.3g CPUs", machine->limits.cpus);
    tdmi_format_bytes((double)machine->limits.memory_bytes, b, sizeof b);
    snprintf(line, sizeof line, "%s, %s", machine->limits.cpus > 0 ? a : "no limit on CPUs",
             machine->limits.memory_bytes > 0 ? b : "no limit on memory");
    print_line(to, "cgroup", line);
}

/* ---- GPUs ------------------------------------------------------------------------------- */

static void report_gpu(const struct report *to, const struct tdm_machine_gpu *gpu, int index)
{
    char line[400], text[48], total[32], left[32], pcie[32] = "", power[32] = "";
    tdm_json_object_begin(to->json, NULL);
    tdm_json_integer(to->json, "index", index);
    tdm_json_string(to->json, "name", gpu->name);
    write_text(to->json, "uuid", gpu->uuid);
    tdm_json_integer(to->json, "memory_bytes", gpu->memory_bytes);
    tdm_json_integer(to->json, "memory_free_bytes", gpu->memory_free_bytes);
    snprintf(text, sizeof text, "%d.%d", gpu->compute_major, gpu->compute_minor);
    tdm_json_string(to->json, "compute_capability", text);
    write_amount(to->json, "pcie_generation", gpu->pcie_generation);
    write_amount(to->json, "pcie_lanes", gpu->pcie_lanes);
    tdm_json_integer(to->json, "nvlinks", gpu->nvlinks);
    write_amount(to->json, "power_limit_watts", gpu->power_limit_watts);
    tdm_json_object_end(to->json);
    if (gpu->pcie_generation > 0)
        snprintf(pcie, sizeof pcie, ", PCIe %d x%d", gpu->pcie_generation, gpu->pcie_lanes);
    if (gpu->power_limit_watts > 0)
        snprintf(power, sizeof power, ", up to %.0f W", gpu->power_limit_watts);
    snprintf(line, sizeof line, "%s, %s (%s free), compute %s%s, %d NVLinks%s", gpu->name,
             tdmi_format_bytes((double)gpu->memory_bytes, total, sizeof total),
             tdmi_format_bytes((double)gpu->memory_free_bytes, left, sizeof left), text, pcie,
             gpu->nvlinks, power);
    snprintf(text, sizeof text, "GPU %d", index);
    print_line(to, text, line);
}

static void report_gpus(const struct report *to, const struct tdm_machine_gpus *gpus)
{
    char line[400], cuda[48];
    snprintf(cuda, sizeof cuda, "%d.%d", gpus->cuda_major, gpus->cuda_minor);
    snprintf(line, sizeof line, "%s, serves CUDA up to %s", gpus->driver, cuda);
    if (gpus->n > 0)
        print_line(to, "GPU driver", line);
    tdm_json_array_begin(to->json, "gpus");
    for (int i = 0; i < gpus->n && i < TDM_MACHINE_GPUS_MAX; i++)
        report_gpu(to, &gpus->of[i], i);
    tdm_json_array_end(to->json);
    tdm_json_object_begin(to->json, "gpu_driver");
    write_text(to->json, "version", gpus->driver);
    write_text(to->json, "cuda", gpus->cuda_major ? cuda : NULL);
    write_text(to->json, "problem", gpus->problem);
    tdm_json_object_end(to->json);
    if (gpus->n > TDM_MACHINE_GPUS_MAX)
        tdmi_print(to->out, "%*s… and %d more\n", label_width, "", gpus->n - TDM_MACHINE_GPUS_MAX);
    snprintf(line, sizeof line, "%s: %s", gpus->n > 0 ? "problem" : "none", gpus->problem);
    if (*gpus->problem)
        print_line(to, "GPUs", line);
}

/* ---- libraries and parts ---------------------------------------------------------------- */

static void report_gpu_libraries(const struct report *to, const struct tdm_machine *machine)
{
    char line[1000];
    tdm_json_array_begin(to->json, "gpu_libraries");
    for (int i = 0; i < machine->n_gpu_libraries; i++) {
        const struct tdm_machine_gpu_library *library = &machine->gpu_libraries[i];
        tdm_json_object_begin(to->json, NULL);
        tdm_json_string(to->json, "name", library->name);
        tdm_json_bool(to->json, "found", library->is_found);
        write_text(to->json, "version", library->version);
        write_text(to->json, "file", library->file);
        write_text(to->json, "problem", library->problem);
        write_text(to->json, "without", library->without);
        tdm_json_object_end(to->json);
        if (library->is_found)
            snprintf(line, sizeof line, "%s (%s)", library->version,
                     *library->file ? library->file : "linked in");
        else
            snprintf(line, sizeof line, "not found: %s; without it %s", library->problem,
                     library->without);
        print_line(to, library->name, line);
    }
    tdm_json_array_end(to->json);
}

/* label NULL: people have read of it already. */
static void report_library(const struct report *to, const char *key, const char *label,
                           const struct tdm_machine_library *library)
{
    char line[400];
    tdm_json_object_begin(to->json, key);
    tdm_json_bool(to->json, "found", library->is_found);
    write_text(to->json, "file", library->file);
    write_text(to->json, "version", library->version);
    write_text(to->json, "problem", library->problem);
    tdm_json_object_end(to->json);
    if (library->is_found)
        snprintf(line, sizeof line, "%s (%s)", library->version, library->file);
    else
        snprintf(line, sizeof line, "not found: %s", library->problem);
    if (label)
        print_line(to, label, line);
}

static bool is_gpu_library(const struct tdm_machine *machine, const char *name)
{
    for (int i = 0; i < machine->n_gpu_libraries; i++)
        if (strcmp(machine->gpu_libraries[i].name, name) == 0)
            return true;
    return false;
}

static void report_features(const struct report *to, const struct tdm_machine *machine)
{
    char line[TDM_ERROR_TEXT_BYTES + 16];
    tdmi_print(to->out, "\nThis build (%s, %s)\n", machine->build_type, machine->compiler);
    tdm_json_array_begin(to->json, "features");
    for (int i = 0; i < machine->n_features; i++) {
        const struct tdm_machine_feature *feature = &machine->features[i];
        tdm_json_object_begin(to->json, NULL);
        tdm_json_string(to->json, "name", feature->name);
        tdm_json_bool(to->json, "on", feature->is_on);
        write_text(to->json, "version", feature->version);
        tdm_json_string(to->json, "gives", feature->gives);
        write_text(to->json, "remedy", feature->is_on ? NULL : feature->remedy);
        write_text(to->json, "problem", feature->problem);
        tdm_json_object_end(to->json);
        if (feature->is_on)
            snprintf(line, sizeof line, "on    %s%s%s", feature->version,
                     *feature->version ? ": " : "", feature->gives);
        else if (*feature->problem) /* which says what to do, too */
            snprintf(line, sizeof line, "off   %s", feature->problem);
        else
            snprintf(line, sizeof line, "off   %s; to get it: %s", feature->gives, feature->remedy);
        print_label(to->out, feature->name);
        tdmi_print_wrapped(to->out, line, label_width, label_width + 6, to->width);
        tdmi_print(to->out, "\n");
    }
    tdm_json_array_end(to->json);
}

/* ---- measurements ----------------------------------------------------------------------- */

static void write_rate(tdm_json_writer *json, const char *key, const struct tdm_machine_rate *rate)
{
    tdm_json_object_begin(json, key);
    write_amount(json, "one_thread", rate->one_thread);
    write_amount(json, "all_threads", rate->all_threads);
    tdm_json_object_end(json);
}

static void write_rates(tdm_json_writer *json, const struct tdm_machine_rates *rates)
{
    tdm_json_object_begin(json, "measured");
    tdm_json_number(json, "seconds", rates->seconds);
    tdm_json_integer(json, "threads", rates->threads);
    write_rate(json, "copy_bytes_per_s", &rates->copy_bytes_per_s);
    tdm_json_integer(json, "copy_buffer_bytes", rates->copy_buffer_bytes);
    tdm_json_string(json, "matmul_method", rates->matmul_method);
    write_rate(json, "f32_flop_per_s", &rates->f32_flop_per_s);
    write_rate(json, "bf16_flop_per_s", &rates->bf16_flop_per_s);
    write_text(json, "bf16_problem", rates->bf16_problem);
    write_text(json, "faster_precision", rates->faster_precision);
    write_amount(json, "disk_read_bytes_per_s", rates->disk_read_bytes_per_s);
    tdm_json_integer(json, "disk_bytes", rates->disk_bytes);
    write_text(json, "disk_method", rates->disk_method);
    write_text(json, "disk_problem", rates->disk_problem);
    tdm_json_object_end(json);
}

static void print_rate(struct tdmi_output *out, const char *label,
                       const struct tdm_machine_rate *rate, const char *unit, int threads,
                       const char *remark)
{
    char one[32], all[32];
    print_label(out, label);
    tdmi_print(out, "%-13s on one thread, %-13s on %d (%s)\n",
               tdmi_format_amount(rate->one_thread, unit, one, sizeof one),
               tdmi_format_amount(rate->all_threads, unit, all, sizeof all), threads, remark);
}

static void print_precision(const struct report *to, const struct tdm_machine_rates *rates)
{
    char line[400];
    double f32 = rates->f32_flop_per_s.all_threads, bf16 = rates->bf16_flop_per_s.all_threads;
    if (bf16 <= 0)
        snprintf(line, sizeof line, "f32 (bf16 was not measured: %s)", rates->bf16_problem);
    else if (!rates->faster_precision)
        snprintf(line, sizeof line, "f32 and bf16 are within a tenth of each other");
    else
        snprintf(line, sizeof line, "%s is faster here, %.2f times; training on the CPU uses f32",
                 rates->faster_precision, bf16 > f32 ? bf16 / f32 : f32 / bf16);
    print_line(to, "precision", line);
}

static void print_rates(const struct report *to, const struct tdm_machine_rates *rates)
{
    struct tdmi_output *out = to->out;
    char line[400], a[32], b[32];
    const char *method = rates->matmul_method;
    tdmi_print(out, "\nMeasured in %.1f s\n", rates->seconds);
    print_rate(out, "memory copy", &rates->copy_bytes_per_s, "B/s", rates->threads,
               "read + written");
    print_rate(out, "f32 matmul", &rates->f32_flop_per_s, "FLOP/s", rates->threads, method);
    if (rates->bf16_flop_per_s.all_threads > 0)
        print_rate(out, "bf16 matmul", &rates->bf16_flop_per_s, "FLOP/s", rates->threads, method);
    print_precision(to, rates);
    if (*rates->disk_problem)
        snprintf(line, sizeof line, "not measured: %s", rates->disk_problem);
    else
        snprintf(line, sizeof line, "%s over %s (%s)",
                 tdmi_format_amount(rates->disk_read_bytes_per_s, "B/s", a, sizeof a),
                 tdmi_format_bytes((double)rates->disk_bytes, b, sizeof b), rates->disk_method);
    print_line(to, "disk read", line);
}

static void report(const struct report *to, const struct tdm_machine *machine)
{
    tdmi_print(to->out, "tandem %s\n\nThis machine\n", tdm_version());
    tdm_json_string(to->json, "version", tdm_version());
    tdm_json_object_begin(to->json, "build");
    tdm_json_string(to->json, "type", machine->build_type);
    tdm_json_string(to->json, "compiler", machine->compiler);
    tdm_json_object_end(to->json);
    report_cpu(to, &machine->cpu);
    report_threads(to, &machine->threads);
    report_memory(to, machine);
    report_gpus(to, &machine->gpus);
    report_gpu_libraries(to, machine);
    report_library(to, "mpi", "MPI", &machine->mpi);
    report_library(to, "nccl", is_gpu_library(machine, "NCCL") ? NULL : "NCCL", &machine->nccl);
    report_features(to, machine);
}

/* ---- the command ------------------------------------------------------------------------ */

static tdm_status run(struct tdmi_call *call, tdm_error *err)
{
    const struct values *values = call->values;
    struct tdm_machine machine = {.struct_bytes = sizeof machine};
    struct tdm_machine_rates rates = {.struct_bytes = sizeof rates};
    tdm_machine_describe(&machine);
    if (values->has_measurements) {
        tdm_log(TDM_LOG_INFO, "measuring for about %.3g s", values->measure.seconds);
        TDMI_TRY(tdm_machine_measure(&values->measure, &rates, err));
    }
    const struct report to = {call->json, call->out, tdmi_output_width(call->out)};
    report(&to, &machine);
    if (values->has_measurements) {
        write_rates(call->json, &rates);
        print_rates(&to, &rates);
    } else {
        tdm_json_null(call->json, "measured");
    }
    return TDM_OK;
}

static const struct tdmi_argument arguments[] = {{.name = NULL}};

static const struct tdmi_option options[] = {
    TDMI_ROW(FLAG, "measure", has_measurements, "Measurements", "look things up, measure nothing"),
    TDMI_ROW(DURATION, "time", measure.seconds, "Measurements", "time of all measurements together",
             .low = 1, .high = 60),
    TDMI_ROW(PATH, "folder", measure.folder, "Measurements",
             "folder whose disk is measured, with a file that is deleted afterwards",
             .value_name = "DIR", .default_words = "the current folder"),
    TDMI_ROW(SIZE, "disk-size", measure.disk_bytes, "Measurements",
             "size of that file; smaller on a slow disk", .low = 0x1p22, .high = 0x1p40),
    {.name = NULL},
};

static const char *const examples[] = {
    "tandem doctor",
    "facts, and about three seconds of measurements",
    "tandem doctor --json --no-measure",
    "facts for a script, at once",
    "tandem doctor --folder /data",
    "is the disk with the images fast enough?",
    NULL,
};

TDMI_COMMAND(doctor, "show what this build and this machine can do",
             "Lists the CPU, memory, limits of the container, GPUs, MPI and NCCL, and the "
             "optional parts of this build with the command that installs a missing one; and "
             "measures memory, arithmetic, disk, and which precision is faster here.");
