/* Memory of fake GPUs, and copies. Memory that was never written is full of NaN. */
#include "backend/cuda/fakes/fake_runtime_inside.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { begins_on = 256, page = 4096, unwritten = 0xff };

/* ---- protection ------------------------------------------------------------------------------ */

static void protect(int device, int protection)
{
    for (const struct fake_block *block = fake_runtime.blocks; block; block = block->next)
        if (block->mapped && block->device == device)
            (void)mprotect(block->mapped, block->mapped_bytes - page, protection);
}

void fake_open_memory(int device)
{
    for (int i = 0; device < 0 && i < fake_runtime.gpus.n; i++)
        protect(i, PROT_NONE);
    if (device >= 0)
        protect(device, PROT_READ | PROT_WRITE);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

const struct fake_block *fake_block_of(const void *at)
{
    for (const struct fake_block *block = fake_runtime.blocks; block; block = block->next)
        if ((const char *)at >= block->memory && (const char *)at < block->memory + block->bytes)
            return block;
    return NULL;
}

static size_t rounded(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

/* The page behind the last byte is protected. */
static bool map(struct fake_block *block)
{
    const size_t bytes = rounded(block->bytes, begins_on), pages = rounded(bytes, page);
    char *mapped = mmap(NULL, pages + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        return false;
    block->mapped = mapped;
    block->mapped_bytes = pages + page;
    block->memory = mapped + pages - bytes;
    (void)mprotect(mapped, pages, PROT_READ | PROT_WRITE);
    memset(block->memory, unwritten, block->bytes);
    (void)mprotect(mapped, pages, PROT_NONE);
    return true;
}

static bool take(struct fake_block *block)
{
    block->memory = aligned_alloc(begins_on, rounded(block->bytes, begins_on));
    if (!block->memory)
        return false;
    memset(block->memory, unwritten, block->bytes);
    return true;
}

static cudaError_t reserve(int device, size_t bytes, void **memory)
{
    struct fake_block *block = calloc(1, sizeof *block);
    if (!block)
        return cudaErrorMemoryAllocation;
    block->bytes = bytes;
    block->device = device;
    if (!(device >= 0 && fake_runtime.is_guarding ? map(block) : take(block))) {
        free(block);
        return cudaErrorMemoryAllocation;
    }
    if (device >= 0)
        fake_runtime.of[device].used_bytes += bytes;
    block->next = fake_runtime.blocks;
    fake_runtime.blocks = block;
    *memory = block->memory;
    return cudaSuccess;
}

/* NULL: there is none that begins there. */
static struct fake_block **place_of(const void *memory, bool is_pinned)
{
    struct fake_block **at = &fake_runtime.blocks;
    while (*at && ((*at)->memory != memory || ((*at)->device < 0) != is_pinned))
        at = &(*at)->next;
    return *at ? at : NULL;
}

static void give_back(struct fake_block **at)
{
    struct fake_block *block = *at;
    *at = block->next;
    if (block->device >= 0)
        fake_runtime.of[block->device].used_bytes -= block->bytes;
    if (block->mapped)
        (void)munmap(block->mapped, block->mapped_bytes);
    else
        free(block->memory);
    free(block);
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    const struct fake_runtime *all = &fake_runtime;
    cudaError_t code = fake_begin();
    if (code == cudaSuccess)
        code = fake_forbid(__func__);
    if (code == cudaSuccess && ((all->limit_bytes > 0 && bytes >= all->limit_bytes) ||
                                bytes > all->gpus.bytes - all->of[fake_device()].used_bytes))
        code = cudaErrorMemoryAllocation;
    if (code == cudaSuccess)
        code = reserve(fake_device(), bytes, memory);
    return fake_end(code);
}

/* Waits for queued work, as CUDA documents. The code may be that of earlier work: the memory is
 * freed all the same. */
cudaError_t cudaFree(void *memory)
{
    cudaError_t code = fake_begin();
    struct fake_block **at = memory ? place_of(memory, false) : NULL;
    const cudaError_t forbidden = fake_forbid(__func__);
    if (forbidden != cudaSuccess)
        code = forbidden;
    if (code == cudaSuccess && memory && !at)
        code = fake_refuse(cudaErrorInvalidValue, "%s of something that is no memory of a GPU",
                           __func__);
    if (forbidden == cudaSuccess && at) {
        fake_catch_up_all((*at)->device);
        give_back(at);
    }
    return fake_end(code);
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    cudaError_t code = fake_begin();
    if (code == cudaSuccess)
        code = fake_forbid(__func__);
    if (code == cudaSuccess && flags != cudaHostAllocDefault)
        code = fake_refuse(cudaErrorInvalidValue, "%s with flags %u", __func__, flags);
    if (code == cudaSuccess)
        code = reserve(-1, bytes, memory);
    return fake_end(code);
}

/* CUDA does not promise that it waits. */
cudaError_t cudaFreeHost(void *memory)
{
    cudaError_t code = fake_begin();
    struct fake_block **at = memory ? place_of(memory, true) : NULL;
    const cudaError_t forbidden = fake_forbid(__func__);
    if (forbidden != cudaSuccess)
        code = forbidden;
    if (code == cudaSuccess && memory && !at)
        code = fake_refuse(cudaErrorInvalidValue, "%s of something that is no pinned memory",
                           __func__);
    if (forbidden == cudaSuccess && at) {
        if (fake_is_queued(*at))
            fake_complain("%s of memory that queued copies read or write", __func__);
        fake_catch_up_all(-1); /* after a complaint that a test heard */
        give_back(at);
    }
    return fake_end(code);
}

/* ---- copies ---------------------------------------------------------------------------------- */

static bool is_inside(const struct fake_block *block, const void *at, size_t bytes)
{
    return bytes <= block->bytes - (size_t)((const char *)at - block->memory);
}

static cudaError_t check_gpu(const char *function, const void *at, size_t bytes)
{
    const struct fake_block *block = fake_block_of(at);
    if (!block || block->device < 0)
        return fake_refuse(cudaErrorInvalidValue, "%s: %p is no memory of a GPU", function, at);
    if (!is_inside(block, at, bytes))
        return fake_refuse(cudaErrorInvalidValue,
                           "%s of %zu bytes, which end outside the allocation", function, bytes);
    return cudaSuccess;
}

static cudaError_t check_host(const char *function, const void *at, size_t bytes)
{
    const struct fake_block *block = fake_block_of(at);
    if (block && block->device >= 0)
        return fake_refuse(cudaErrorInvalidValue, "%s: %p is memory of GPU %d, not the host's",
                           function, at, block->device);
    if (block && !is_inside(block, at, bytes))
        return fake_refuse(cudaErrorInvalidValue,
                           "%s of %zu bytes, which end outside the pinned memory", function, bytes);
    return cudaSuccess;
}

/* Memory that is not pinned is read now, and written before the call ends. */
static cudaError_t copy(cudaStream_t stream, struct fake_work work, bool is_to_gpu)
{
    const bool is_pinned = fake_block_of(is_to_gpu ? work.from : work.to) != NULL;
    if (is_to_gpu)
        *(is_pinned ? &fake_runtime.copied.pinned_bytes : &fake_runtime.copied.other_bytes) +=
            (int64_t)work.bytes;
    if (!is_pinned && stream->capture) {
        stream->is_invalid = true;
        return fake_refuse(cudaErrorStreamCaptureUnsupported,
                           "a copy of memory that is not pinned, inside a capture");
    }
    if (!is_pinned && is_to_gpu) {
        work.kept = malloc(work.bytes);
        if (!work.kept)
            return cudaErrorMemoryAllocation;
        work.from = memcpy(work.kept, work.from, work.bytes);
    }
    const cudaError_t code = fake_queue(stream, &work);
    if (code == cudaSuccess && !is_pinned && !is_to_gpu)
        fake_catch_up(stream);
    return code;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    cudaError_t code = fake_begin();
    const bool is_to_gpu = kind == cudaMemcpyHostToDevice;
    stream = fake_stream(stream);
    if (code == cudaSuccess && !stream)
        code = cudaErrorInvalidResourceHandle;
    if (code == cudaSuccess && bytes > 0)
        code = check_gpu(__func__, is_to_gpu ? to : from, bytes);
    if (code == cudaSuccess && bytes > 0)
        code = check_host(__func__, is_to_gpu ? from : to, bytes);
    if (code == cudaSuccess && bytes > 0)
        code = copy(stream,
                    (struct fake_work){.kind = FAKE_COPY, .to = to, .from = from, .bytes = bytes},
                    is_to_gpu);
    return fake_end(code);
}

static cudaError_t clear(const char *function, void *memory, int value, size_t bytes,
                         cudaStream_t stream)
{
    const struct fake_work work = {.kind = FAKE_CLEAR, .to = memory, .bytes = bytes};
    if (!stream)
        return cudaErrorInvalidResourceHandle;
    if (value != 0)
        return fake_refuse(cudaErrorInvalidValue, "%s with %d: only 0 is known", function, value);
    const cudaError_t code = bytes > 0 ? check_gpu(function, memory, bytes) : cudaSuccess;
    return code == cudaSuccess && bytes > 0 ? fake_queue(stream, &work) : code;
}

cudaError_t cudaMemset(void *memory, int value, size_t bytes)
{
    cudaError_t code = fake_begin();
    if (code == cudaSuccess)
        code = fake_forbid(__func__);
    if (code == cudaSuccess)
        code = clear(__func__, memory, value, bytes, fake_stream(NULL));
    return fake_end(code);
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream)
{
    const cudaError_t code = fake_begin();
    return fake_end(code == cudaSuccess ? clear(__func__, memory, value, bytes, fake_stream(stream))
                                        : code);
}
