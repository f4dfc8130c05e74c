/*
 * Two handles: of the GPU's JPEG engines, where it has any, and of nvJPEG's own choice for files
 * that these do not take. A failed batch does not name the file that failed, so its files are tried
 * one by one: the result of a file does not depend on the others.
 */
#include "backend/cuda/vendor/nvjpeg.h"
#include "base/scope.h"

enum { n_decoders = 2 };
enum decoder { BY_ENGINES, BY_KERNELS };

struct tdmi_nvjpeg {
    void *library;
    struct tdmi_nvjpeg_calls calls;
    int version;
    void *handles[n_decoders]; /* NULL: not on this GPU */
};

/* Files that are decoded together. */
struct batch {
    int n;
    int of[TDMI_DECODER_FILES]; /* files */
    const uint8_t *bytes[TDMI_DECODER_FILES];
    size_t lengths[TDMI_DECODER_FILES];
    struct tdmi_nvjpeg_image images[TDMI_DECODER_FILES];
};

struct tdmi_nvjpeg_state {
    tdmi_nvjpeg *nvjpeg;
    struct {
        void *state;
        int n;              /* files that it was begun for; 0: it has to be begun */
        struct batch batch; /* stays until the next: decoding goes on behind the call */
    } of[n_decoders];
    void *stream; /* that headers are read into; NULL: no engines */
};

/* ---- opening -------------------------------------------------------------------------------- */

static int version_of(const void *self)
{
    const struct tdmi_nvjpeg_calls *calls = self;
    int major = 0, minor = 0, patch = 0;
    if (calls->property(TDMI_NVJPEG_MAJOR, &major) != 0 ||
        calls->property(TDMI_NVJPEG_MINOR, &minor) != 0 ||
        calls->property(TDMI_NVJPEG_PATCH, &patch) != 0)
        return 0;
    return major * 10000 + minor * 100 + patch;
}

static const char *const names[] = {"libnvjpeg.so.13", "libnvjpeg.so.12", "libnvjpeg.so.11", NULL};
static const char *const folders[] = {"nvidia/cu13/lib", "nvidia/nvjpeg/lib", NULL};
#define X(field, symbol, result, parameters) #symbol,
static const char *const symbols[] = {TDMI_NVJPEG_CALLS(X) NULL};
#undef X
const struct tdmi_cuda_library tdmi_nvjpeg_library = {
    "nvJPEG", "JPEG files are decoded on the CPU", names, folders, symbols, version_of, 110000};

tdm_status tdmi_nvjpeg_open(const char *file, tdmi_nvjpeg **nvjpeg, tdm_error *err)
{
    TDMI_AT_END(tdmi_nvjpeg_close_at) tdmi_nvjpeg *made = NULL;
    *nvjpeg = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    TDMI_TRY(tdmi_cuda_library_open(&tdmi_nvjpeg_library, file, &made->calls, &made->library,
                                    &made->version, err));
    /* Most GPUs have no engines, which is not worth a message. */
    if (made->calls.create(TDMI_NVJPEG_BY_HARDWARE, NULL, NULL, 0, &made->handles[BY_ENGINES]) != 0)
        made->handles[BY_ENGINES] = NULL;
    const int code =
        made->calls.create(TDMI_NVJPEG_BY_DEFAULT, NULL, NULL, 0, &made->handles[BY_KERNELS]);
    if (code != 0) {
        made->handles[BY_KERNELS] = NULL;
        return TDM_FAIL(err, TDM_E_ABSENT, "opening nvJPEG on the GPU: it says %d", code);
    }
    *nvjpeg = tdmi_take(&made);
    return TDM_OK;
}

void tdmi_nvjpeg_close(tdmi_nvjpeg *nvjpeg)
{
    if (!nvjpeg)
        return;
    for (int kind = 0; kind < n_decoders; kind++)
        if (nvjpeg->handles[kind])
            (void)nvjpeg->calls.destroy(nvjpeg->handles[kind]);
    tdmi_cuda_library_close(nvjpeg->library);
    tdmi_free(nvjpeg);
}

int tdmi_nvjpeg_version(const tdmi_nvjpeg *nvjpeg)
{
    return nvjpeg->version;
}

/* ---- a thread's ------------------------------------------------------------------------------ */

tdm_status tdmi_nvjpeg_state_open(tdmi_nvjpeg *nvjpeg, tdmi_nvjpeg_state **state, tdm_error *err)
{
    const struct tdmi_nvjpeg_calls *calls = &nvjpeg->calls;
    TDMI_AT_END(tdmi_nvjpeg_state_close_at) tdmi_nvjpeg_state *made = NULL;
    int code = 0;
    *state = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    made->nvjpeg = nvjpeg;
    for (int kind = 0; kind < n_decoders && code == 0; kind++)
        if (nvjpeg->handles[kind])
            code = calls->create_state(nvjpeg->handles[kind], &made->of[kind].state);
    if (code == 0 && nvjpeg->handles[BY_ENGINES])
        code = calls->create_stream(nvjpeg->handles[BY_ENGINES], &made->stream);
    if (code != 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "opening a state of nvJPEG: it says %d", code);
    *state = tdmi_take(&made);
    return TDM_OK;
}

void tdmi_nvjpeg_state_close(tdmi_nvjpeg_state *state)
{
    if (!state)
        return;
    if (state->stream)
        (void)state->nvjpeg->calls.destroy_stream(state->stream);
    for (int kind = 0; kind < n_decoders; kind++)
        if (state->of[kind].state)
            (void)state->nvjpeg->calls.destroy_state(state->of[kind].state);
    tdmi_free(state);
}

/* ---- decoding -------------------------------------------------------------------------------- */

/* Does nvJPEG see the image that we see? What it writes then has the size of our planes. */
static bool is_agreed(const tdmi_nvjpeg *nvjpeg, const struct tdmi_decoder_file *file)
{
    int n = 0, css = -1, widths[TDMI_NVJPEG_PLANES] = {0}, heights[TDMI_NVJPEG_PLANES] = {0};
    const int wanted_css = file->n_components == 1 ? TDMI_NVJPEG_CSS_GREY
                           : file->across == 1     ? TDMI_NVJPEG_CSS_444
                           : file->down == 1       ? TDMI_NVJPEG_CSS_422
                                                   : TDMI_NVJPEG_CSS_420;
    if (nvjpeg->calls.image_info(nvjpeg->handles[BY_KERNELS], file->bytes, file->length_bytes, &n,
                                 &css, widths, heights) != 0 ||
        n != file->n_components || css != wanted_css)
        return false;
    for (int c = 0; c < n; c++) {
        const int across = c ? file->across : 1, down = c ? file->down : 1;
        if (widths[c] != (file->width + across - 1) / across ||
            heights[c] != (file->height + down - 1) / down)
            return false;
    }
    return true;
}

static enum decoder decoder_of(const tdmi_nvjpeg_state *state, const struct tdmi_decoder_file *file)
{
    const tdmi_nvjpeg *nvjpeg = state->nvjpeg;
    void *handle = nvjpeg->handles[BY_ENGINES];
    int refusal = 1; /* 0: it takes it */
    if (!handle ||
        nvjpeg->calls.parse_header(handle, file->bytes, file->length_bytes, state->stream) != 0 ||
        nvjpeg->calls.is_supported(handle, state->stream, &refusal) != 0)
        return BY_KERNELS;
    return refusal == 0 ? BY_ENGINES : BY_KERNELS;
}

/* Decode files begin … begin + n of the batch of this kind; nvJPEG's code. */
static int decode(tdmi_nvjpeg_state *state, enum decoder kind, tdmi_stream *stream, int begin,
                  int n)
{
    const struct tdmi_nvjpeg_calls *calls = &state->nvjpeg->calls;
    void *handle = state->nvjpeg->handles[kind], *it = state->of[kind].state;
    struct batch *batch = &state->of[kind].batch;
    int code = 0;
    if (state->of[kind].n != n)
        code = calls->begin_batch(handle, it, n, 1, TDMI_NVJPEG_AS_PLANES);
    if (code == 0)
        code = calls->decode_batch(handle, it, batch->bytes + begin, batch->lengths + begin,
                                   batch->images + begin, tdmi_cuda_queue(stream));
    state->of[kind].n = code == 0 ? n : 0;
    return code;
}

static void add(struct batch *batch, int i, const struct tdmi_decoder_file *file,
                const struct tdmi_nvjpeg_image *image)
{
    batch->of[batch->n] = i;
    batch->bytes[batch->n] = file->bytes;
    batch->lengths[batch->n] = file->length_bytes;
    batch->images[batch->n] = *image;
    batch->n++;
}

/* A lack of memory fails the batch: decoded by the host, an image would have other pixels than in a
 * run that had enough. */
static tdm_status decode_all(tdmi_nvjpeg_state *state, enum decoder kind, tdmi_stream *stream,
                             bool *is_done, tdm_error *err)
{
    const struct batch *batch = &state->of[kind].batch;
    int code = decode(state, kind, stream, 0, batch->n);
    const bool is_whole = code == 0 || batch->n == 1;
    for (int k = 0; k < batch->n; k++) {
        if (!is_whole) {
            TDM_TRY(tdmi_cuda_stream_wait(stream, err), err, "decoding images on the GPU");
            code = decode(state, kind, stream, k, 1);
        }
        is_done[batch->of[k]] = code == 0;
        if (code == TDMI_NVJPEG_NO_MEMORY)
            return TDM_FAIL(err, TDM_E_MEMORY,
                            "decoding %d images on the GPU: nvJPEG finds no memory there; use a "
                            "smaller batch, fewer --threads or --decode cpu",
                            batch->n);
    }
    return TDM_OK;
}

tdm_status tdmi_nvjpeg_decode(tdmi_nvjpeg_state *state, tdmi_stream *stream,
                              const struct tdmi_decoder_file *files,
                              const struct tdmi_nvjpeg_image *images, int n, bool *is_done,
                              tdm_error *err)
{
    for (int kind = 0; kind < n_decoders; kind++)
        state->of[kind].batch.n = 0;
    for (int i = 0; i < n; i++) {
        is_done[i] = false;
        if (is_agreed(state->nvjpeg, &files[i]))
            add(&state->of[decoder_of(state, &files[i])].batch, i, &files[i], &images[i]);
    }
    for (int kind = 0; kind < n_decoders; kind++)
        if (state->of[kind].batch.n > 0)
            TDMI_TRY(decode_all(state, (enum decoder)kind, stream, is_done, err));
    return TDM_OK;
}
