/* The shim as a backend. */
#include "shim_backend.h"
#include "fake_cublaslt.h"
#include "fake_cudnn.h"
#include "fake_nvjpeg.h"
#include "shim_streams.h"
#include "backend/cuda/cuda.h"
#include "backend/cuda/libraries.h"
#include "backend/cuda/shim_run.h"
#include "backend/guarded.h"
#include "backend/host.h"
#include "base/memory.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static bool is_guarding;

void tdmi_shim_guard(bool wanted)
{
    is_guarding = wanted;
}

static size_t limit_bytes;

void tdmi_shim_limit(size_t bytes)
{
    limit_bytes = bytes;
}

static struct tdmi_cuda_places places;

static int launch(void (*run)(void *self), void *self, size_t self_bytes)
{
    const struct tdmi_shim_launch it = {{1, 1, 1}, {1, 1, 1}, run, self, self_bytes};
    return tdmi_shim_launch(&it);
}

/* What a library of ours shows of itself; it stays open. NULL: there is none. */
static void *open_fake(const char *file, const char *name)
{
    void *library = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
    return library ? dlsym(library, name) : NULL;
}

void tdmi_shim_libraries(const char *cudnn, const char *cublaslt, const char *home)
{
    struct fake_cudnn *convs = open_fake(cudnn, "fake_cudnn");
    struct fake_cublaslt *products = open_fake(cublaslt, "fake_cublaslt");
    if (convs)
        convs->launch = launch;
    if (products)
        products->launch = launch;
    places.cudnn = cudnn;
    places.cublaslt = cublaslt;
    places.home = home;
}

void tdmi_shim_nvjpeg(const char *file)
{
    struct fake_nvjpeg *pictures = open_fake(file, "fake_nvjpeg");
    if (pictures)
        pictures->launch = launch;
    places.nvjpeg = file;
}

/* Kernels may touch the memory of the card, and nobody else. */
static void visit(int is_inside)
{
    if (is_inside)
        guarded_enter();
    else
        guarded_leave();
}

void tdmi_cuda_make_current(const tdmi_device *device)
{
    (void)device;
}

struct CUstream_st *tdmi_cuda_queue(const tdmi_stream *stream)
{
    tdmi_shim_around(visit); /* of the calling thread, as a card would be */
    if (!tdmi_shim_is_recording())
        tdmi_shim_catch_up((tdmi_stream *)(uintptr_t)stream); /* kernels run at once */
    return stream->queue;
}

void tdmi_cuda_note(tdmi_stream *stream, int code, const char *what)
{
    if (code == 0 || stream->failure != 0)
        return;
    stream->failure = code;
    stream->failed = what;
}

tdm_status tdmi_cuda_stream_open(tdmi_device *device, tdmi_stream **stream, tdm_error *err)
{
    *stream = tdmi_alloc(1, sizeof **stream);
    if (!*stream)
        return TDM_FAIL(err, TDM_E_MEMORY, "opening a stream: out of memory");
    (*stream)->device = device;
    if (tdmi_shim_stream_begin(*stream))
        return TDM_OK;
    tdmi_free(*stream);
    *stream = NULL;
    return TDM_FAIL(err, TDM_E_MEMORY, "opening a stream: out of memory");
}

tdm_status tdmi_cuda_stream_wait(tdmi_stream *stream, tdm_error *err)
{
    tdmi_shim_catch_up(stream);
    if (stream->failure == 0)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_FAILED, "%s: CUDA would say %d: %s", stream->failed, stream->failure,
                    tdmi_shim_facts().problem);
}

void tdmi_cuda_stream_close(tdmi_stream *stream)
{
    if (!stream)
        return;
    tdmi_shim_stream_end(stream);
    tdmi_free(stream);
}

/* Blocks of the card; who has no place here is not counted. */
enum { most_held = 4096 };

static struct {
    pthread_mutex_t lock;
    struct {
        const void *memory;
        int64_t bytes;
    } blocks[most_held];
    int64_t bytes;
} held = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Of the block in that place, from now on; NULL: there is none. */
static void hold(const void *before, const void *memory, size_t bytes)
{
    pthread_mutex_lock(&held.lock);
    for (int i = 0; i < most_held; i++) {
        if (held.blocks[i].memory != before)
            continue;
        held.bytes += (int64_t)bytes - held.blocks[i].bytes;
        held.blocks[i].memory = memory;
        held.blocks[i].bytes = (int64_t)bytes;
        break;
    }
    pthread_mutex_unlock(&held.lock);
}

void *tdmi_cuda_alloc(tdmi_device *device, size_t bytes)
{
    (void)device;
    if (limit_bytes > 0 && bytes >= limit_bytes)
        return NULL;
    void *memory = is_guarding ? guarded_alloc(bytes) : tdmi_alloc_aligned(bytes);
    if (memory)
        hold(NULL, memory, bytes);
    return memory;
}

void tdmi_cuda_free(tdmi_device *device, void *memory)
{
    (void)device;
    tdmi_shim_catch_up(NULL); /* after all work that was queued */
    hold(memory, NULL, 0);
    if (!guarded_free(memory))
        tdmi_free(memory);
}

/* Only kernels are recorded here. */
static bool refuse_in_recording(tdmi_stream *stream, const char *what)
{
    if (!tdmi_shim_is_recording())
        return false;
    if (stream)
        tdmi_cuda_note(stream, 900, what); /* what is not permitted while a stream is recorded */
    return true;
}

void tdmi_shim_copy_now(const struct tdmi_shim_copy *copy)
{
    if (copy->from)
        guarded_copy(copy->to, copy->from, copy->bytes);
    else
        guarded_clear(copy->to, copy->bytes);
}

/* stream NULL: of a test, at once. */
tdm_status tdmi_cuda_upload(tdmi_stream *stream, void *to, const void *from, size_t bytes,
                            tdm_error *err)
{
    (void)err;
    if (refuse_in_recording(stream, "a copy"))
        return TDM_OK; /* as a card: told later */
    if (stream)
        tdmi_shim_queue_copy(stream, (struct tdmi_shim_copy){to, from, bytes});
    else
        guarded_copy(to, from, bytes);
    return TDM_OK;
}

/* To memory that is not pinned, a copy is waited for. */
static tdm_status download(tdmi_stream *stream, void *to, const void *from, size_t bytes,
                           tdm_error *err)
{
    (void)err;
    if (refuse_in_recording(stream, "a copy"))
        return TDM_OK;
    tdmi_shim_catch_up(stream);
    guarded_copy(to, from, bytes);
    return TDM_OK;
}

static void clear(tdmi_stream *stream, void *memory, size_t bytes)
{
    if (!refuse_in_recording(stream, "clearing memory"))
        tdmi_shim_queue_copy(stream, (struct tdmi_shim_copy){memory, NULL, bytes});
}

static tdm_status begin_recording(tdmi_stream *stream, tdm_error *err)
{
    if (stream->failure != 0)
        return TDM_FAIL(err, TDM_E_FAILED, "%s: CUDA would say %d", stream->failed,
                        stream->failure);
    tdmi_shim_catch_up(stream);
    tdmi_shim_record_begin();
    return TDM_OK;
}

static tdm_status end_recording(tdmi_stream *stream, tdmi_recording **recording, tdm_error *err)
{
    struct tdmi_shim_recording *made = tdmi_shim_record_end();
    const int before = stream->failure; /* of what was to be recorded, as on a card */
    stream->failure = 0;
    if (before != 0 || !made) {
        tdmi_shim_recording_free(made);
        return TDM_FAIL(err, TDM_E_FAILED, "recording: %s, and CUDA would say %d",
                        before ? stream->failed : "no memory", before);
    }
    *recording = (tdmi_recording *)made;
    return TDM_OK;
}

static void run_recording(tdmi_stream *stream, tdmi_recording *recording)
{
    tdmi_shim_around(visit);
    tdmi_cuda_note(stream, tdmi_shim_replay((struct tdmi_shim_recording *)recording), "a replay");
}

static tdm_status replay(tdmi_stream *stream, tdmi_recording *recording, tdm_error *err)
{
    (void)err;
    tdmi_shim_queue_replay(stream, recording, run_recording);
    return TDM_OK;
}

static void close_recording(tdmi_recording *recording)
{
    tdmi_shim_catch_up(NULL);
    tdmi_shim_recording_free((struct tdmi_shim_recording *)recording);
}

/* TANDEM_CARD_BYTES: a card of so little memory, of which what is held is not free. It gives more
 * all the same. */
static bool memory_of(const tdmi_device *device, int64_t *free_bytes, int64_t *total_bytes)
{
    const char *text = getenv("TANDEM_CARD_BYTES");
    (void)device;
    *total_bytes = text ? strtoll(text, NULL, 10) : 0;
    pthread_mutex_lock(&held.lock);
    *free_bytes = *total_bytes > held.bytes ? *total_bytes - held.bytes : 0;
    pthread_mutex_unlock(&held.lock);
    return *total_bytes > 0;
}

static tdm_status open_card(int index, tdmi_device **device, tdm_error *err)
{
    tdmi_device *made = tdmi_alloc(1, sizeof *made);
    *device = made;
    if (!made)
        return TDM_FAIL(err, TDM_E_MEMORY, "opening the shim: out of memory");
    made->index = index;
    made->driver_version = 13000;
    snprintf(made->uuid, sizeof made->uuid, "shim");
    struct tdmi_cuda_places alone = {"/nowhere/libcudnn.so.9", "/nowhere/libcublasLt.so.13",
                                     places.nvjpeg, NULL};
    if (places.home || places.nvjpeg)
        made->libraries = tdmi_cuda_libraries_new(made, places.home ? &places : &alone);
    return TDM_OK;
}

static void close_card(tdmi_device *device)
{
    if (device)
        tdmi_cuda_libraries_free(device->libraries);
    tdmi_free(device);
}

static void describe(const tdmi_device *device, char *text, size_t text_bytes)
{
    char libraries[512] = "";
    if (places.home)
        tdmi_cuda_libraries_describe(device->libraries, libraries, sizeof libraries);
    snprintf(text, text_bytes, "the shim%s%s", libraries[0] ? ", " : "", libraries);
}

static void keep(tdmi_device *device, const char *folder)
{
    if (device->libraries)
        tdmi_cuda_libraries_keep(device->libraries, folder);
}

static bool library(int index, struct tdmi_backend_library *found)
{
    return places.home && tdmi_cuda_library_at(index, &places, found);
}

const struct tdmi_backend tdmi_backend_shim = {
    .name = "shim",
    .summary = "kernels of backend cuda, run here",
    .device = {tdmi_host_count, open_card, close_card, describe, false, memory_of, keep, library},
    .memory = {.alloc = tdmi_cuda_alloc,
               .free = tdmi_cuda_free,
               .upload = tdmi_cuda_upload,
               .download = download,
               .clear = clear,
               .alloc_pinned = tdmi_shim_alloc_pinned,
               .free_pinned = tdmi_shim_free_pinned,
               .gather = tdmi_cuda_gather_rows},
    .stream = {.open = tdmi_cuda_stream_open,
               .close = tdmi_cuda_stream_close,
               .wait = tdmi_cuda_stream_wait,
               .event_open = tdmi_shim_event_open,
               .event_close = tdmi_shim_event_close,
               .event_record = tdmi_shim_event_record,
               .event_wait = tdmi_shim_event_wait,
               .capture_begin = begin_recording,
               .capture_end = end_recording,
               .replay = replay,
               .recording_close = close_recording},
    .kernels = tdmi_cuda_kernels,
    .storages = 1u << TDMI_DTYPE_BF16 | 1u << TDMI_DTYPE_F16,
    .update = &tdmi_cuda_update_table,
    .changes = &tdmi_cuda_changes,
    .pictures = &tdmi_cuda_pictures,
};
