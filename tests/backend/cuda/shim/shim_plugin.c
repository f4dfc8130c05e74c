/*
 * The shim as the plugin libtandem_cuda.so (base/system/plugin.h): `tandem train --device cuda`
 * computes with GPU kernels on a machine without a GPU, in memory that only they may touch. For
 * tests/cli/gpu/test_train_gpu.sh and test_gpu_*.sh, which set:
 *
 *     TANDEM_FAKE_RECORDS=0         a GPU that records nothing
 *     TANDEM_FAKE_REPLAYS=FILE      append a byte for each replay
 *     TANDEM_FAKE_REPLAY_MS=N       how much longer a replay takes
 *     TANDEM_FAKE_RECORDING_BYTES=N memory that a recording takes, of TANDEM_FAKE_BYTES
 */
#include "backend/cuda/fakes/fake_cudnn.h"
#include "backend/cuda/fakes/fake_nvjpeg.h"
#include "backend/cuda/shim/shim_backend.h"
#include "base/system/plugin.h"
#include "tandem/api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

TDM_API const void *tdmi_plugin(const struct tdmi_plugin_host *host, const char **made_by,
                                size_t *table_bytes);

static tdm_status replay(tdmi_stream *stream, tdmi_recording *recording, tdm_error *err)
{
    const char *path = getenv("TANDEM_FAKE_REPLAYS");
    FILE *file = path ? fopen(path, "a") : NULL;
    const char *ms = getenv("TANDEM_FAKE_REPLAY_MS");
    const struct timespec longer = {0, ms ? 1000000 * strtol(ms, NULL, 10) : 0};
    (void)nanosleep(&longer, NULL);
    if (file) {
        (void)fputc('.', file);
        (void)fclose(file);
    }
    return tdmi_backend_shim.stream.replay(stream, recording, err);
}

/* Number of open recordings. One thread records. */
static int n_recordings;

static tdm_status end_recording(tdmi_stream *stream, tdmi_recording **recording, tdm_error *err)
{
    const tdm_status status = tdmi_backend_shim.stream.capture_end(stream, recording, err);
    n_recordings += status == TDM_OK;
    return status;
}

static void close_recording(tdmi_recording *recording)
{
    n_recordings--;
    tdmi_backend_shim.stream.recording_close(recording);
}

static bool memory_of(const tdmi_device *device, int64_t *free_bytes, int64_t *total_bytes)
{
    const char *each = getenv("TANDEM_FAKE_RECORDING_BYTES");
    const bool is_known = tdmi_backend_shim.device.memory(device, free_bytes, total_bytes);
    *free_bytes -= each ? n_recordings * strtoll(each, NULL, 10) : 0;
    return is_known;
}

/* TANDEM_FAKE_NVJPEG: the stand-in's file; _VERSION: another than 12.4; _REFUSES: which files it
 * refuses (fake_nvjpeg.h); _DECODED: a file that gets a byte for each image. */
static const char *use_nvjpeg(void)
{
    const char *file = getenv("TANDEM_FAKE_NVJPEG"), *word;
    void *library = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
    struct fake_nvjpeg *fake = library ? dlsym(library, "fake_nvjpeg") : NULL;
    if (fake && (word = getenv("TANDEM_FAKE_NVJPEG_VERSION")) != NULL)
        fake->version[0] = (int)strtol(word, NULL, 10);
    if (fake && (word = getenv("TANDEM_FAKE_NVJPEG_REFUSES")) != NULL)
        fake->refuses_one_of = (int)strtol(word, NULL, 10);
    if (fake)
        fake->told = getenv("TANDEM_FAKE_NVJPEG_DECODED");
    return file;
}

/* TANDEM_FAKE_NCCL, TANDEM_FAKE_CUDNN, TANDEM_FAKE_CUBLASLT: files of the stand-ins;
 * TANDEM_FAKE_WORKSPACE: workspace of cuDNN's fastest engine. */
static void use_libraries(void)
{
    const char *cudnn = getenv("TANDEM_FAKE_CUDNN"), *cublaslt = getenv("TANDEM_FAKE_CUBLASLT");
    const char *workspace = getenv("TANDEM_FAKE_WORKSPACE");
    void *library = cudnn && workspace ? dlopen(cudnn, RTLD_NOW | RTLD_LOCAL) : NULL;
    struct fake_cudnn *fake = library ? dlsym(library, "fake_cudnn") : NULL;
    if (fake)
        fake->right_bytes = strtol(workspace, NULL, 10);
    tdmi_shim_nvjpeg(use_nvjpeg());
    tdmi_shim_nccl(getenv("TANDEM_FAKE_NCCL"));
    if (cudnn || cublaslt)
        tdmi_shim_libraries(cudnn ? cudnn : "/nowhere/libcudnn.so.9",
                            cublaslt ? cublaslt : "/nowhere/libcublasLt.so.13",
                            getenv("TANDEM_HOME"));
}

/* TANDEM_FAKE_PACE: "late", "slow" or "chance" (fake_runtime.h). */
static void pace(void)
{
    const char *word = getenv("TANDEM_FAKE_PACE");
    if (word && strcmp(word, "late") == 0)
        fake_runtime_pace(FAKE_LATE);
    if (word && strcmp(word, "slow") == 0)
        fake_runtime_pace(FAKE_SLOW_KERNELS);
    if (word && strcmp(word, "chance") == 0)
        fake_runtime_pace(FAKE_BY_CHANCE);
}

/* TANDEM_FAKE_GPUS: number of GPUs; TANDEM_FAKE_BYTES: memory of each. */
static void shape(void)
{
    const char *bytes = getenv("TANDEM_FAKE_BYTES"), *n = getenv("TANDEM_FAKE_GPUS");
    struct fake_gpus gpus = fake_runtime_first_gpus();
    if (bytes)
        gpus.bytes = (size_t)strtoll(bytes, NULL, 10);
    if (n)
        gpus.n = (int)strtol(n, NULL, 10);
    fake_runtime_gpus(gpus);
}

/* TANDEM_FAKE_PLAIN: a GPU that augments no images, pins no memory, records nothing and keeps no
 * cached features; TANDEM_FAKE_GATHERS=0: only the last. */
const void *tdmi_plugin(const struct tdmi_plugin_host *host, const char **made_by,
                        size_t *table_bytes)
{
    const char *records = getenv("TANDEM_FAKE_RECORDS"), *gathers = getenv("TANDEM_FAKE_GATHERS");
    static struct tdmi_backend gpu; /* written with the same value each time */
    (void)host;                     /* all of libtandem is linked again */
    gpu = tdmi_backend_shim;
    gpu.name = "cuda";
    gpu.device.memory = memory_of;
    gpu.stream.capture_end = end_recording;
    gpu.stream.replay = replay;
    gpu.stream.recording_close = close_recording;
    if (records && strcmp(records, "0") == 0) {
        gpu.stream.capture_begin = NULL;
        gpu.stream.capture_end = NULL;
        gpu.stream.replay = NULL;
        gpu.stream.recording_close = NULL;
    }
    if (gathers && strcmp(gathers, "0") == 0)
        gpu.memory.gather = NULL;
    fake_runtime_guard(true);
    use_libraries();
    pace();
    shape();
    if (getenv("TANDEM_FAKE_PLAIN")) {
        gpu.changes = NULL;
        gpu.memory.gather = NULL;
        gpu.memory.alloc_pinned = NULL;
        gpu.memory.free_pinned = NULL;
        gpu.stream.event_open = NULL;
        gpu.stream.capture_begin = NULL;
    }
    *made_by = tdm_version();
    *table_bytes = sizeof gpu;
    return &gpu;
}
