/* The CPU as a device. */
#include "backend/host.h"
#include "base/memory.h"

#include <stdatomic.h>
#include <string.h>

/* The device has no state: it is the address of this object. */
static const char the_host = 0;

/* Threads may share one. */
struct tdmi_stream {
    atomic_int failure; /* a tdm_status */
    _Atomic(const char *) failed;
};

int tdmi_host_count(void)
{
    return 1;
}

tdm_status tdmi_host_open(int index, tdmi_device **device, tdm_error *err)
{
    (void)index;
    (void)err;
    *device = (tdmi_device *)(uintptr_t)&the_host;
    return TDM_OK;
}

void tdmi_host_close(tdmi_device *device)
{
    (void)device;
}

void *tdmi_host_alloc(tdmi_device *device, size_t bytes)
{
    (void)device;
    return tdmi_alloc_large(bytes);
}

void tdmi_host_free(tdmi_device *device, void *memory)
{
    (void)device;
    tdmi_free_large(memory);
}

tdm_status tdmi_host_copy(tdmi_stream *stream, void *to, const void *from, size_t bytes,
                          tdm_error *err)
{
    (void)stream;
    (void)err;
    memcpy(to, from, bytes);
    return TDM_OK;
}

void tdmi_host_clear(tdmi_stream *stream, void *memory, size_t bytes)
{
    (void)stream;
    memset(memory, 0, bytes);
}

void tdmi_host_tail(tdmi_stream *stream, const struct tdmi_judgement *judgements,
                    const int32_t *labels, const struct tdmi_mixed_label *mixed, int n, float *tail)
{
    int correct = 0;
    double loss = 0.0;
    (void)stream;
    for (int i = 0; i < n; i++) {
        const bool is_other = mixed && mixed[i].weight < 0.5f;
        correct += judgements[i].predicted == (is_other ? mixed[i].other : labels[i]);
        loss += (double)judgements[i].loss;
    }
    tail[TDMI_TAIL_SAMPLES] = (float)n;
    tail[TDMI_TAIL_CORRECT] = (float)correct;
    tail[TDMI_TAIL_LOSS] = (float)loss;
}

tdm_status tdmi_host_stream_open(tdmi_device *device, tdmi_stream **stream, tdm_error *err)
{
    (void)device;
    *stream = tdmi_alloc(1, sizeof **stream);
    return *stream ? TDM_OK : TDM_FAIL(err, TDM_E_MEMORY, "opening a stream: out of memory");
}

void tdmi_host_stream_close(tdmi_stream *stream)
{
    tdmi_free(stream);
}

void tdmi_host_note(tdmi_stream *stream, tdm_status code, const char *what)
{
    int none = TDM_OK;
    if (stream && atomic_compare_exchange_strong(&stream->failure, &none, (int)code))
        atomic_store(&stream->failed, what);
}

tdm_status tdmi_host_stream_wait(tdmi_stream *stream, tdm_error *err)
{
    const tdm_status code = stream ? (tdm_status)atomic_exchange(&stream->failure, TDM_OK) : TDM_OK;
    return code == TDM_OK ? TDM_OK : TDM_FAIL(err, code, "%s", atomic_load(&stream->failed));
}
