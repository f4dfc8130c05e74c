/*
 * The shim in the place of libtandem_cuda.so (base/system/plugin.h): `tandem train --device cuda`
 * computes with the kernels of cards on a machine that has none, in memory that only they may
 * touch. For tests/cli/gpu/test_train_card.sh, which asks for a card that records nothing
 * (TANDEM_CARD_RECORDS=0), for a byte a replay in a file (TANDEM_CARD_REPLAYS), and for recordings
 * that take so much of the card (TANDEM_CARD_RECORDING_BYTES, of TANDEM_CARD_BYTES), and replays
 * that take so much longer, whatever they compute (TANDEM_CARD_REPLAY_MS); and for
 * test_card_libraries.sh.
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
    const char *path = getenv("TANDEM_CARD_REPLAYS");
    FILE *file = path ? fopen(path, "a") : NULL;
    const char *ms = getenv("TANDEM_CARD_REPLAY_MS");
    const struct timespec longer = {0, ms ? 1000000 * strtol(ms, NULL, 10) : 0};
    (void)nanosleep(&longer, NULL);
    if (file) {
        (void)fputc('.', file);
        (void)fclose(file);
    }
    return tdmi_backend_shim.stream.replay(stream, recording, err);
}

/* Recordings that there are. One thread records. */
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
    const char *each = getenv("TANDEM_CARD_RECORDING_BYTES");
    const bool is_known = tdmi_backend_shim.device.memory(device, free_bytes, total_bytes);
    *free_bytes -= each ? n_recordings * strtoll(each, NULL, 10) : 0;
    return is_known;
}

/* TANDEM_CARD_NVJPEG: the file that stands for it; TANDEM_CARD_NVJPEG_VERSION: 12.4, unless it is
 * another; _REFUSES: files of which it takes none, by their sums (fake_nvjpeg.h); _DECODED: a file
 * that gets a byte a picture. */
static const char *use_nvjpeg(void)
{
    const char *file = getenv("TANDEM_CARD_NVJPEG"), *word;
    void *library = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
    struct fake_nvjpeg *fake = library ? dlsym(library, "fake_nvjpeg") : NULL;
    if (fake && (word = getenv("TANDEM_CARD_NVJPEG_VERSION")) != NULL)
        fake->version[0] = (int)strtol(word, NULL, 10);
    if (fake && (word = getenv("TANDEM_CARD_NVJPEG_REFUSES")) != NULL)
        fake->refuses_one_of = (int)strtol(word, NULL, 10);
    if (fake)
        fake->told = getenv("TANDEM_CARD_NVJPEG_DECODED");
    return file;
}

/* TANDEM_CARD_CUDNN, TANDEM_CARD_CUBLASLT: files that stand for NVIDIA's; TANDEM_CARD_WORKSPACE:
 * bytes that the fastest engine of the first wants, which is the fastest by far then. */
static void use_libraries(void)
{
    const char *cudnn = getenv("TANDEM_CARD_CUDNN"), *cublaslt = getenv("TANDEM_CARD_CUBLASLT");
    const char *workspace = getenv("TANDEM_CARD_WORKSPACE");
    void *library = cudnn && workspace ? dlopen(cudnn, RTLD_NOW | RTLD_LOCAL) : NULL;
    struct fake_cudnn *fake = library ? dlsym(library, "fake_cudnn") : NULL;
    if (fake) {
        fake->right_bytes = strtol(workspace, NULL, 10);
        fake->slow_ns = 20000000;
    }
    tdmi_shim_nvjpeg(use_nvjpeg());
    if (cudnn || cublaslt)
        tdmi_shim_libraries(cudnn ? cudnn : "/nowhere/libcudnn.so.9",
                            cublaslt ? cublaslt : "/nowhere/libcublasLt.so.13",
                            getenv("TANDEM_HOME"));
}

/* TANDEM_CARD_PACE: "late", "slow" or "chance" (fake_runtime.h). */
static void pace(void)
{
    const char *word = getenv("TANDEM_CARD_PACE");
    if (word && strcmp(word, "late") == 0)
        fake_runtime_pace(FAKE_LATE);
    if (word && strcmp(word, "slow") == 0)
        fake_runtime_pace(FAKE_SLOW_KERNELS);
    if (word && strcmp(word, "chance") == 0)
        fake_runtime_pace(FAKE_BY_CHANCE);
}

/* TANDEM_CARD_BYTES: a card of so little memory. */
static void shrink(void)
{
    const char *bytes = getenv("TANDEM_CARD_BYTES");
    struct fake_cards cards = fake_runtime_first_cards();
    if (!bytes)
        return;
    cards.bytes = (size_t)strtoll(bytes, NULL, 10);
    fake_runtime_cards(cards);
}

/* TANDEM_CARD_FAIL: a function of CUDA's runtime and which call of it fails, as "cudaMalloc 3";
 * "a-launch" is a kernel's. */
static void fail(void)
{
    const char *wanted = getenv("TANDEM_CARD_FAIL");
    char function[40];
    int at;
    if (wanted && sscanf(wanted, "%39s %d", function, &at) == 2)
        fake_runtime_fail(strcmp(function, "a-launch") == 0 ? "a launch" : function, at,
                          2); /* out of memory */
}

/* TANDEM_CARD_PLAIN: a card that changes no pictures, pins no memory, records nothing and keeps no
 * rows; TANDEM_CARD_GATHERS=0: the last alone. */
const void *tdmi_plugin(const struct tdmi_plugin_host *host, const char **made_by,
                        size_t *table_bytes)
{
    const char *records = getenv("TANDEM_CARD_RECORDS"), *gathers = getenv("TANDEM_CARD_GATHERS");
    static struct tdmi_backend card; /* written with the same value each time */
    (void)host;                      /* all of libtandem is linked again */
    card = tdmi_backend_shim;
    card.name = "cuda";
    card.device.memory = memory_of;
    card.stream.capture_end = end_recording;
    card.stream.replay = replay;
    card.stream.recording_close = close_recording;
    if (records && strcmp(records, "0") == 0) {
        card.stream.capture_begin = NULL;
        card.stream.capture_end = NULL;
        card.stream.replay = NULL;
        card.stream.recording_close = NULL;
    }
    if (gathers && strcmp(gathers, "0") == 0)
        card.memory.gather = NULL;
    fake_runtime_guard(true);
    use_libraries();
    pace();
    shrink();
    fail();
    if (getenv("TANDEM_CARD_PLAIN")) {
        card.changes = NULL;
        card.memory.gather = NULL;
        card.memory.alloc_pinned = NULL;
        card.memory.free_pinned = NULL;
        card.stream.event_open = NULL;
        card.stream.capture_begin = NULL;
    }
    *made_by = tdm_version();
    *table_bytes = sizeof card;
    return &card;
}
