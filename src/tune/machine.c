/*
 * Description of this build and this machine: base's description of the CPU, the GPUs that NVML
 * sees, the libraries found at run time, the optional parts of the build, and the probes' timings.
 */
#include "tandem/machine.h"
#include "base/clock.h"
#include "base/system/cpu.h"
#include "base/file/file.h"
#include "base/system/plugin.h"
#include "base/sized.h"
#include "backend/backend.h"
#include "image/image.h"
#include "io/arrow/bridge.h"
#include "dist/library_probe.h"
#include "tandem/event.h"
#include "track/nvml.h"
#include "tune/probe.h"

#include <stdio.h>
#include <string.h>

static void describe_cpu(struct tdm_machine *machine)
{
    struct tdmi_cpu found;
    struct tdm_machine_cpu *cpu = &machine->cpu;
    tdmi_cpu_describe(&found);
    snprintf(cpu->model, sizeof cpu->model, "%s", found.model);
    snprintf(cpu->architecture, sizeof cpu->architecture, "%s", found.architecture);
    snprintf(cpu->isa, sizeof cpu->isa, "%s", found.isa);
    cpu->packages = found.packages;
    cpu->cores = found.cores;
    cpu->threads = found.threads;
    cpu->usable = found.usable;
    cpu->numa_nodes = found.numa_nodes;
    cpu->l1d_bytes = found.l1d_bytes;
    cpu->l2_bytes = found.l2_bytes;
    cpu->l3_bytes = found.l3_bytes;
    machine->memory.total_bytes = found.memory_bytes;
    machine->memory.available_bytes = found.memory_available_bytes;
    machine->limits.cpus = found.cgroup_cpus;
    machine->limits.memory_bytes = found.cgroup_memory_bytes;
}

static void describe_threads(struct tdm_machine_threads *threads)
{
    struct tdmi_placement placement;
    tdm_error why = {0};
    if (tdmi_placement_here(0, &placement, &why) != TDM_OK) {
        snprintf(threads->text, sizeof threads->text, "%.319s", tdm_error_sentence(&why, 0));
        return;
    }
    threads->n = placement.threads;
    tdmi_placement_describe(&placement, threads->text, sizeof threads->text);
    tdmi_placement_release(&placement);
}

static void describe_gpus(struct tdm_machine_gpus *gpus)
{
    tdmi_nvml *nvml;
    tdm_error why = {0};
    if (tdmi_nvml_open(NULL, &nvml, &why) != TDM_OK) {
        snprintf(gpus->problem, sizeof gpus->problem, "%.239s", tdm_error_sentence(&why, 0));
        return;
    }
    gpus->n = tdmi_nvml_count(nvml);
    snprintf(gpus->driver, sizeof gpus->driver, "%s", tdmi_nvml_driver(nvml));
    gpus->cuda_major = tdmi_nvml_cuda(nvml) / 1000;
    gpus->cuda_minor = tdmi_nvml_cuda(nvml) % 1000 / 10;
    for (int i = 0; i < gpus->n && i < TDM_MACHINE_GPUS_MAX; i++)
        if (tdmi_nvml_describe(nvml, i, &gpus->of[i], &why) != TDM_OK) {
            snprintf(gpus->problem, sizeof gpus->problem, "%.239s", tdm_error_sentence(&why, 0));
            tdm_error_clear(&why);
        }
    tdmi_nvml_close(nvml);
}

static void describe_gpu_libraries(struct tdm_machine *machine)
{
    const struct tdmi_backend *backend;
    struct tdmi_backend_library found;
    if (tdmi_cuda_backend(&backend, NULL) != TDM_OK || !backend->device.library)
        return;
    for (int i = 0; i < TDM_MACHINE_GPU_LIBRARIES_MAX && backend->device.library(i, &found); i++) {
        struct tdm_machine_gpu_library *library =
            &machine->gpu_libraries[machine->n_gpu_libraries++];
        library->is_found = found.is_found;
        snprintf(library->name, sizeof library->name, "%s", found.name);
        snprintf(library->version, sizeof library->version, "%s", found.version);
        snprintf(library->file, sizeof library->file, "%s", found.file);
        snprintf(library->problem, sizeof library->problem, "%s", found.problem);
        snprintf(library->without, sizeof library->without, "%s",
                 found.without ? found.without : "");
    }
}

/* Parts that are libraries of their own: they can be opened here, or why says what is wrong. */
static bool can_open(const char *name, tdm_error *why)
{
    const void *table;
    const struct tdmi_backend *backend;
    if (strcmp(name, "onednn") == 0)
        return tdmi_plugin_open("onednn", "the part of tandem that computes by oneDNN", 0, 0,
                                &table, why) == TDM_OK;
    if (strcmp(name, "arrow") == 0)
        return tdmi_arrow_require(why) == TDM_OK;
    if (strcmp(name, "http") == 0) /* whose functions belong to a room above this one */
        return tdmi_plugin_open("http", "the part of tandem that answers over HTTP", 0, 0, &table,
                                why) == TDM_OK;
    if (strcmp(name, "cuda") == 0)
        return tdmi_cuda_backend(&backend, why) == TDM_OK;
    return true;
}

/* The format whose decoder is opened at run time where it is installed. */
static enum tdmi_image_format opened_format(const char *name)
{
    return strcmp(name, "tiff") == 0   ? TDMI_IMAGE_TIFF
           : strcmp(name, "heif") == 0 ? TDMI_IMAGE_HEIC
           : strcmp(name, "jxl") == 0  ? TDMI_IMAGE_JXL
                                       : TDMI_IMAGE_UNKNOWN;
}

static void open_feature(struct tdm_machine_feature *feature)
{
    tdm_error why = {0};
    const enum tdmi_image_format format = opened_format(feature->name);
    const bool is_decoder = format != TDMI_IMAGE_UNKNOWN;
    if (!feature->is_on || (is_decoder ? tdmi_image_find_decoder(format, &why) == TDM_OK
                                       : can_open(feature->name, &why)))
        return;
    feature->is_on = false;
    feature->version = "";
    if (!is_decoder)
        feature->remedy = "make install";
    snprintf(feature->problem, sizeof feature->problem, "%s", tdm_error_sentence(&why, 0));
}

static void describe_features(struct tdm_machine *machine)
{
    const struct tdm_machine_feature *built = tdmi_features(&machine->n_features);
    for (int i = 0; i < machine->n_features; i++) {
        machine->features[i] = built[i];
        open_feature(&machine->features[i]);
    }
}

void tdm_machine_describe(struct tdm_machine *machine)
{
    TDMI_RESULT_OR(tdm_machine, machine, NULL, return );
    describe_cpu(machine);
    describe_threads(&machine->threads);
    describe_gpus(&machine->gpus);
    describe_gpu_libraries(machine);
    tdmi_library_probe_mpi(&machine->mpi);
    tdmi_library_probe_nccl(&machine->nccl);
    machine->build_type = tdmi_build_type();
    machine->compiler = tdmi_build_compiler();
    describe_features(machine);
}

/* ---- measuring -------------------------------------------------------------------------- */

void tdm_measure_options_init(struct tdm_measure_options *options, size_t struct_bytes)
{
    static const struct tdm_measure_options usual = {.seconds = 3,
                                                     .disk_bytes = (int64_t)256 << 20};
    tdmi_options_init(options, struct_bytes, &usual, sizeof usual);
}

static tdm_status check(const struct tdm_measure_options *options, tdm_error *err)
{
    if (!(options->seconds >= 1 && options->seconds <= 60))
        return TDM_FAIL(err, TDM_E_USAGE, "measuring takes from 1 to 60 seconds; found %g",
                        options->seconds);
    if (options->disk_bytes < (int64_t)4 << 20)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "the disk is measured with a file of at least 4 MiB; found %lld bytes",
                        (long long)options->disk_bytes);
    if (options->folder && tdmi_file_kind_of(options->folder) != TDMI_FILE_FOLDER)
        return TDM_FAIL(err, TDM_E_INPUT, "the disk cannot be measured in %s, which is no folder",
                        options->folder);
    return TDM_OK;
}

static tdm_status check_stop(tdm_error *err)
{
    return tdm_stop_is_requested()
               ? TDM_FAIL(err, TDM_E_STOPPED, "the measurements were stopped on request")
               : TDM_OK;
}

/* A fifth for memory, half for arithmetic, a quarter for the disk; setting up and the last
 * repetitions take the rest. Buffers may be a part of the free memory, or of the limit of the
 * container where it is lower. */
static tdm_status measure(tdmi_pool *pool, const struct tdm_measure_options *options,
                          struct tdm_machine_rates *rates, tdm_error *err)
{
    struct tdmi_cpu cpu;
    tdmi_cpu_describe(&cpu);
    int64_t memory = cpu.memory_available_bytes;
    if (cpu.cgroup_memory_bytes > 0 && cpu.cgroup_memory_bytes < memory)
        memory = cpu.cgroup_memory_bytes;
    TDM_TRY(tdmi_probe_copy(pool, options->seconds * 0.2, cpu.l3_bytes, memory, rates, err), err,
            "memory could not be measured");
    TDMI_TRY(check_stop(err));
    TDM_TRY(tdmi_probe_matmul(pool, tdmi_matmul_method_best(), options->seconds * 0.5, rates, err),
            err, "arithmetic could not be measured");
    TDMI_TRY(check_stop(err));
    tdmi_probe_disk(options->folder ? options->folder : ".", options->seconds * 0.25,
                    options->disk_bytes, rates);
    return check_stop(err);
}

tdm_status tdm_machine_measure(const struct tdm_measure_options *options,
                               struct tdm_machine_rates *rates, tdm_error *err)
{
    TDMI_OPTIONS(tdm_measure_options, options, tdm_measure_options_default(), err);
    TDMI_RESULT(tdm_machine_rates, rates, err);
    TDMI_AT_END(tdmi_pool_free_at) tdmi_pool *pool = NULL;
    const int64_t start = tdmi_clock_ns();
    TDMI_TRY(check(options, err));
    TDM_TRY(tdmi_pool_new(0, NULL, &pool, err), err, "the machine could not be measured");
    rates->threads = tdmi_pool_threads(pool);
    const tdm_status status = measure(pool, options, rates, err);
    rates->seconds = tdmi_clock_seconds_since(start);
    return status;
}
