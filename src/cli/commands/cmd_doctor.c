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

/* ---- JSON ------------------------------------------------------------------------------- */

/* 0 means "none" or "unknown" in tandem/machine.h; JSON has null for that, as for "". */
static void write_amount(tdm_json_writer *json, const char *key, double amount)
{
    tdm_json_number(json, key, amount > 0 ? amount : NAN);
}

static void write_text(tdm_json_writer *json, const char *key, const char *text)
{
    tdm_json_string(json, key, text && *text ? text : NULL);
}

static void write_cpu(tdm_json_writer *json, const struct tdm_machine_cpu *cpu)
{
    tdm_json_object_begin(json, "cpu");
    tdm_json_string(json, "model", cpu->model);
    tdm_json_string(json, "architecture", cpu->architecture);
    tdm_json_array_begin(json, "isa");
    for (const char *at = cpu->isa; *at; at += strspn(at, " ")) {
        char name[32];
        int length = (int)strcspn(at, " ");
        snprintf(name, sizeof name, "%.*s", length, at);
        tdm_json_string(json, NULL, name);
        at += length;
    }
    tdm_json_array_end(json);
    tdm_json_integer(json, "packages", cpu->packages);
    tdm_json_integer(json, "cores", cpu->cores);
    tdm_json_integer(json, "threads", cpu->threads);
    tdm_json_integer(json, "usable", cpu->usable);
    tdm_json_integer(json, "numa_nodes", cpu->numa_nodes);
    tdm_json_integer(json, "l1d_bytes", cpu->l1d_bytes);
    tdm_json_integer(json, "l2_bytes", cpu->l2_bytes);
    tdm_json_integer(json, "l3_bytes", cpu->l3_bytes);
    tdm_json_object_end(json);
}

static int described_gpus(const struct tdm_machine_gpus *gpus)
{
    return gpus->n < TDM_MACHINE_GPUS_MAX ? gpus->n : TDM_MACHINE_GPUS_MAX;
}

static void write_gpus(tdm_json_writer *json, const struct tdm_machine_gpus *gpus)
{
    char text[48];
    tdm_json_array_begin(json, "gpus");
    for (int i = 0; i < described_gpus(gpus); i++) {
        const struct tdm_machine_gpu *gpu = &gpus->of[i];
        tdm_json_object_begin(json, NULL);
        tdm_json_integer(json, "index", i);
        tdm_json_string(json, "name", gpu->name);
        write_text(json, "uuid", gpu->uuid);
        tdm_json_integer(json, "memory_bytes", gpu->memory_bytes);
        tdm_json_integer(json, "memory_free_bytes", gpu->memory_free_bytes);
        snprintf(text, sizeof text, "%d.%d", gpu->compute_major, gpu->compute_minor);
        tdm_json_string(json, "compute_capability", text);
        write_amount(json, "pcie_generation", gpu->pcie_generation);
        write_amount(json, "pcie_lanes", gpu->pcie_lanes);
        tdm_json_integer(json, "nvlinks", gpu->nvlinks);
        write_amount(json, "power_limit_watts", gpu->power_limit_watts);
        tdm_json_object_end(json);
    }
    tdm_json_array_end(json);
    tdm_json_object_begin(json, "gpu_driver");
    write_text(json, "version", gpus->driver);
    snprintf(text, sizeof text, "%d.%d", gpus->cuda_major, gpus->cuda_minor);
    write_text(json, "cuda", gpus->cuda_major ? text : NULL);
    write_text(json, "problem", gpus->problem);
    tdm_json_object_end(json);
}

static void write_library(tdm_json_writer *json, const char *key,
                          const struct tdm_machine_library *library)
{
    tdm_json_object_begin(json, key);
    tdm_json_bool(json, "found", library->is_found);
    write_text(json, "file", library->file);
    write_text(json, "version", library->version);
    write_text(json, "problem", library->problem);
    tdm_json_object_end(json);
}

static void write_gpu_libraries(tdm_json_writer *json, const struct tdm_machine *machine)
{
    tdm_json_array_begin(json, "gpu_libraries");
    for (int i = 0; i < machine->n_gpu_libraries; i++) {
        const struct tdm_machine_gpu_library *library = &machine->gpu_libraries[i];
        tdm_json_object_begin(json, NULL);
        tdm_json_string(json, "name", library->name);
        tdm_json_bool(json, "found", library->is_found);
        write_text(json, "version", library->version);
        write_text(json, "file", library->file);
        write_text(json, "problem", library->problem);
        write_text(json, "without", library->without);
        tdm_json_object_end(json);
    }
    tdm_json_array_end(json);
}

static void write_features(tdm_json_writer *json, const struct tdm_machine *machine)
{
    tdm_json_array_begin(json, "features");
    for (int i = 0; i < machine->n_features; i++) {
        const struct tdm_machine_feature *feature = &machine->features[i];
        tdm_json_object_begin(json, NULL);
        tdm_json_string(json, "name", feature->name);
        tdm_json_bool(json, "on", feature->is_on);
        write_text(json, "version", feature->version);
        tdm_json_string(json, "gives", feature->gives);
        write_text(json, "remedy", feature->is_on ? NULL : feature->remedy);
        write_text(json, "problem", feature->problem);
        tdm_json_object_end(json);
    }
    tdm_json_array_end(json);
}

static void write_rate(tdm_json_writer *json, const char *key, const struct tdm_machine_rate *rate)
{
    tdm_json_object_begin(json, key);
    write_amount(json, "one_thread", rate->one_thread);
    write_amount(json, "all_threads", rate->all_threads);
    tdm_json_object_end(json);
}

static void write_rates(tdm_json_writer *json, const struct tdm_machine_rates *rates)
{
    if (!rates) {
        tdm_json_null(json, "measured");
        return;
    }
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

static void write_json(tdm_json_writer *json, const struct tdm_machine *machine,
                       const struct tdm_machine_rates *rates)
{
    tdm_json_string(json, "version", tdm_version());
    tdm_json_object_begin(json, "build");
    tdm_json_string(json, "type", machine->build_type);
    tdm_json_string(json, "compiler", machine->compiler);
    tdm_json_object_end(json);
    write_cpu(json, &machine->cpu);
    tdm_json_object_begin(json, "memory");
    tdm_json_integer(json, "total_bytes", machine->memory.total_bytes);
    tdm_json_integer(json, "available_bytes", machine->memory.available_bytes);
    tdm_json_object_end(json);
    tdm_json_object_begin(json, "limits");
    write_amount(json, "cpus", machine->limits.cpus);
    write_amount(json, "memory_bytes", (double)machine->limits.memory_bytes);
    tdm_json_object_end(json);
    write_gpus(json, &machine->gpus);
    write_gpu_libraries(json, machine);
    write_library(json, "mpi", &machine->mpi);
    write_library(json, "nccl", &machine->nccl);
    write_features(json, machine);
    write_rates(json, rates);
}

/* ---- for people ------------------------------------------------------------------------- */

enum { label_width = 14 };

static void print_label(struct tdmi_output *out, const char *label)
{
    tdmi_print(out, "  %-*s", label_width - 2, label);
}

static void print_line(struct tdmi_output *out, const char *label, const char *text, int width)
{
    print_label(out, label);
    tdmi_print_wrapped(out, text, label_width, label_width, width);
    tdmi_print(out, "\n");
}

static const char *known_bytes(int64_t bytes, char *text, size_t text_bytes)
{
    return bytes > 0 ? tdmi_format_bytes((double)bytes, text, text_bytes) : "unknown";
}

static void print_cpu(struct tdmi_output *out, const struct tdm_machine *machine, int width)
{
    const struct tdm_machine_cpu *cpu = &machine->cpu;
    char line[400], a[32], b[32], c[32];
    print_line(out, "CPU", *cpu->model ? cpu->model : "unknown", width);
    snprintf(line, sizeof line, "%d core%s, %d thread%s, %d package%s, %d NUMA node%s; usable: %d",
             cpu->cores, cpu->cores == 1 ? "" : "s", cpu->threads, cpu->threads == 1 ? "" : "s",
             cpu->packages, cpu->packages == 1 ? "" : "s", cpu->numa_nodes,
             cpu->numa_nodes == 1 ? "" : "s", cpu->usable);
    print_line(out, "cores", line, width);
    snprintf(line, sizeof line, "%s: %s", cpu->architecture, cpu->isa);
    print_line(out, "extensions", line, width);
    snprintf(line, sizeof line, "L1d %s, L2 %s, L3 %s", known_bytes(cpu->l1d_bytes, a, sizeof a),
             known_bytes(cpu->l2_bytes, b, sizeof b), known_bytes(cpu->l3_bytes, c, sizeof c));
    print_line(out, "caches", line, width);
    snprintf(line, sizeof line, "%s, %s available",
             tdmi_format_bytes((double)machine->memory.total_bytes, a, sizeof a),
             tdmi_format_bytes((double)machine->memory.available_bytes, b, sizeof b));
    print_line(out, "memory", line, width);
    snprintf(a, sizeof a, "%.3g CPUs", machine->limits.cpus);
    tdmi_format_bytes((double)machine->limits.memory_bytes, b, sizeof b);
    snprintf(line, sizeof line, "%s, %s", machine->limits.cpus > 0 ? a : "no limit on CPUs",
             machine->limits.memory_bytes > 0 ? b : "no limit on memory");
    print_line(out, "cgroup", line, width);
}

static void describe_gpu(const struct tdm_machine_gpu *gpu, char *line, size_t line_bytes)
{
    char total[32], left[32], pcie[32] = "", power[32] = "";
    if (gpu->pcie_generation > 0)
        snprintf(pcie, sizeof pcie, ", PCIe %d x%d", gpu->pcie_generation, gpu->pcie_lanes);
    if (gpu->power_limit_watts > 0)
        snprintf(power, sizeof power, ", up to %.0f W", gpu->power_limit_watts);
    snprintf(line, line_bytes, "%s, %s (%s free), compute %d.%d%s, %d NVLinks%s", gpu->name,
             tdmi_format_bytes((double)gpu->memory_bytes, total, sizeof total),
             tdmi_format_bytes((double)gpu->memory_free_bytes, left, sizeof left),
             gpu->compute_major, gpu->compute_minor, pcie, gpu->nvlinks, power);
}

static void print_gpus(struct tdmi_output *out, const struct tdm_machine_gpus *gpus, int width)
{
    char line[400], label[24];
    if (gpus->n > 0) {
        snprintf(line, sizeof line, "%s, serves CUDA up to %d.%d", gpus->driver, gpus->cuda_major,
                 gpus->cuda_minor);
        print_line(out, "GPU driver", line, width);
    }
    for (int i = 0; i < described_gpus(gpus); i++) {
        snprintf(label, sizeof label, "GPU %d", i);
        describe_gpu(&gpus->of[i], line, sizeof line);
        print_line(out, label, line, width);
    }
    if (gpus->n > TDM_MACHINE_GPUS_MAX)
        tdmi_print(out, "%*s… and %d more\n", label_width, "", gpus->n - TDM_MACHINE_GPUS_MAX);
    if (*gpus->problem) {
        snprintf(line, sizeof line, "%s: %s", gpus->n > 0 ? "problem" : "none", gpus->problem);
        print_line(out, "GPUs", line, width);
    }
}

static void print_gpu_library(struct tdmi_output *out, const struct tdm_machine_gpu_library *it,
                              int width)
{
    char line[1000];
    if (it->is_found)
        snprintf(line, sizeof line, "%s (%s)", it->version, *it->file ? it->file : "linked in");
    else
        snprintf(line, sizeof line, "not found: %s; without it %s", it->problem, it->without);
    print_line(out, it->name, line, width);
}

static void print_library(struct tdmi_output *out, const char *label,
                          const struct tdm_machine_library *library, int width)
{
    char line[400];
    if (library->is_found)
        snprintf(line, sizeof line, "%s (%s)", library->version, library->file);
    else
        snprintf(line, sizeof line, "not found: %s", library->problem);
    print_line(out, label, line, width);
}

static void print_features(struct tdmi_output *out, const struct tdm_machine *machine, int width)
{
    char line[TDM_ERROR_TEXT_BYTES + 16];
    tdmi_print(out, "\nThis build (%s, %s)\n", machine->build_type, machine->compiler);
    for (int i = 0; i < machine->n_features; i++) {
        const struct tdm_machine_feature *feature = &machine->features[i];
        if (feature->is_on)
            snprintf(line, sizeof line, "on    %s: %s", feature->version, feature->gives);
        else if (*feature->problem) /* which says what to do, too */
            snprintf(line, sizeof line, "off   %s", feature->problem);
        else
            snprintf(line, sizeof line, "off   %s; to get it: %s", feature->gives, feature->remedy);
        print_label(out, feature->name);
        tdmi_print_wrapped(out, line, label_width, label_width + 6, width);
        tdmi_print(out, "\n");
    }
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

static void print_precision(struct tdmi_output *out, const struct tdm_machine_rates *rates,
                            int width)
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
    print_line(out, "precision", line, width);
}

static void print_rates(struct tdmi_output *out, const struct tdm_machine_rates *rates, int width)
{
    char line[400], a[32], b[32];
    const char *method = rates->matmul_method;
    tdmi_print(out, "\nMeasured in %.1f s\n", rates->seconds);
    print_rate(out, "memory copy", &rates->copy_bytes_per_s, "B/s", rates->threads,
               "read + written");
    print_rate(out, "f32 matmul", &rates->f32_flop_per_s, "FLOP/s", rates->threads, method);
    if (rates->bf16_flop_per_s.all_threads > 0)
        print_rate(out, "bf16 matmul", &rates->bf16_flop_per_s, "FLOP/s", rates->threads, method);
    print_precision(out, rates, width);
    if (*rates->disk_problem)
        snprintf(line, sizeof line, "not measured: %s", rates->disk_problem);
    else
        snprintf(line, sizeof line, "%s over %s (%s)",
                 tdmi_format_amount(rates->disk_read_bytes_per_s, "B/s", a, sizeof a),
                 tdmi_format_bytes((double)rates->disk_bytes, b, sizeof b), rates->disk_method);
    print_line(out, "disk read", line, width);
}

static void print_people(struct tdmi_output *out, const struct tdm_machine *machine,
                         const struct tdm_machine_rates *rates)
{
    int width = tdmi_output_width(out);
    tdmi_print(out, "tandem %s\n\nThis machine\n", tdm_version());
    print_cpu(out, machine, width);
    print_gpus(out, &machine->gpus, width);
    for (int i = 0; i < machine->n_gpu_libraries; i++)
        print_gpu_library(out, &machine->gpu_libraries[i], width);
    print_library(out, "MPI", &machine->mpi, width);
    print_library(out, "NCCL", &machine->nccl, width);
    print_features(out, machine, width);
    if (rates)
        print_rates(out, rates, width);
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
    const struct tdm_machine_rates *measured = values->has_measurements ? &rates : NULL;
    write_json(call->json, &machine, measured);
    print_people(call->out, &machine, measured);
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
