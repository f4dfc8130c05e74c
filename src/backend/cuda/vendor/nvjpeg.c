/*
 * Two handles: of the GPU's JPEG engines, where it has any, and of nvJPEG's own choice for files
 * that these do not take. A batch that fails says nothing of whose fault it is, so its files are
 * tried one by one: what becomes of a file does not depend on who was decoded beside it.
 */
#include "backend/cuda/vendor/nvjpeg.h"
#include "base/memory.h"

enum { oldest = 110000, n_decoders = 2 };
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

static tdm_status load(const char *file, void **library, struct tdmi_nvjpeg_calls *calls,
                       int *version, tdm_error *err)
{
    static const char *const names[] = {"libnvjpeg.so.13", "libnvjpeg.so.12", "libnvjpeg.so.11",
                                        NULL};
    static const char *const folders[] = {"nvidia/cu13/lib", "nvidia/nvjpeg/lib", NULL};
    const struct tdmi_cuda_library it = {"nvJPEG", names, folders};
    int major = 0, minor = 0, patch = 0;
    TDM_TRY(tdmi_cuda_library_open(&it, file, library, err), err, "opening nvJPEG");
#define X(field, symbol, result, parameters)                                                   \
    if (!tdmi_cuda_library_call(*library, symbol, (void *)&calls->field, sizeof calls->field)) \
        return TDM_FAIL(err, TDM_E_ABSENT, "opening nvJPEG: it lacks the function %s", symbol);
    TDMI_NVJPEG_CALLS(X)
#undef X
    if (calls->property(TDMI_NVJPEG_MAJOR, &major) != 0 ||
        calls->property(TDMI_NVJPEG_MINOR, &minor) != 0 ||
        calls->property(TDMI_NVJPEG_PATCH, &patch) != 0)
        return TDM_FAIL(err, TDM_E_ABSENT, "opening nvJPEG: it does not say its version");
    *version = major * 10000 + minor * 100 + patch;
    if (*version < oldest)
        return TDM_FAIL(err, TDM_E_ABSENT,
                        "opening nvJPEG: found version %d.%d, and %d.%d or newer is wanted", major,
                        minor, oldest / 10000, oldest / 100 % 100);
    return TDM_OK;
}

static tdm_status load_alone(const char *file, void **library, int *version, tdm_error *err)
{
    struct tdmi_nvjpeg_calls calls;
    return load(file, library, &calls, version, err);
}

const struct tdmi_cuda_library_facts tdmi_nvjpeg_facts = {
    "nvJPEG", "JPEG files are decoded on the CPU", "nvjpegGetProperty", load_alone};

tdm_status tdmi_nvjpeg_open(const char *file, tdmi_nvjpeg **nvjpeg, tdm_error *err)
{
    tdmi_nvjpeg *made = tdmi_alloc(1, sizeof *made);
    *nvjpeg = NULL;
    if (!made)
        return TDM_FAIL(err, TDM_E_MEMORY, "opening nvJPEG: out of memory");
    tdm_status status = load(file, &made->library, &made->calls, &made->version, err);
    if (status == TDM_OK) {
        /* Most GPUs have no engines, which is nothing to tell. */
        if (made->calls.create(TDMI_NVJPEG_BY_HARDWARE, NULL, NULL, 0,
                               &made->handles[BY_ENGINES]) != 0)
            made->handles[BY_ENGINES] = NULL;
        const int code =
            made->calls.create(TDMI_NVJPEG_BY_DEFAULT, NULL, NULL, 0, &made->handles[BY_KERNELS]);
        if (code != 0) {
            made->handles[BY_KERNELS] = NULL;
            status = TDM_FAIL(err, TDM_E_ABSENT, "opening nvJPEG on the GPU: it says %d", code);
        }
    }
    if (status != TDM_OK) {
        tdmi_nvjpeg_close(made);
        return status;
    }
    *nvjpeg = made;
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
    tdmi_nvjpeg_state *made = tdmi_alloc(1, sizeof *made);
    int code = 0;
    *state = NULL;
    if (!made)
        return TDM_FAIL(err, TDM_E_MEMORY, "opening a state of nvJPEG: out of memory");
    made->nvjpeg = nvjpeg;
    for (int kind = 0; kind < n_decoders && code == 0; kind++)
        if (nvjpeg->handles[kind])
            code = calls->create_state(nvjpeg->handles[kind], &made->of[kind].state);
    if (code == 0 && nvjpeg->handles[BY_ENGINES])
        code = calls->create_stream(nvjpeg->handles[BY_ENGINES], &made->stream);
    if (code != 0) {
        tdmi_nvjpeg_state_close(made);
        return TDM_FAIL(err, TDM_E_SYSTEM, "opening a state of nvJPEG: it says %d", code);
    }
    *state = made;
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

/* Without memory on the GPU no image is to blame, and decoded here it would have other pixels
 * than in a run that had more. */
static tdm_status check_memory(int code, tdm_error *err)
{
    if (code == TDMI_NVJPEG_NO_MEMORY)
        return TDM_FAIL(err, TDM_E_MEMORY,
                        "decoding pictures on the GPU: nvJPEG finds no memory there; a smaller "
                        "batch, fewer --threads or --decode cpu is wanted");
    return TDM_OK;
}

static tdm_status decode_all(tdmi_nvjpeg_state *state, enum decoder kind, tdmi_stream *stream,
                             bool *is_done, tdm_error *err)
{
    const struct batch *batch = &state->of[kind].batch;
    int code = decode(state, kind, stream, 0, batch->n);
    const bool is_whole = code == 0 || batch->n == 1;
    for (int k = 0; k < batch->n; k++) {
        if (!is_whole) {
            TDM_TRY(tdmi_cuda_stream_wait(stream, err), err, "decoding pictures on the GPU");
            code = decode(state, kind, stream, k, 1);
        }
        is_done[batch->of[k]] = code == 0;
        TDM_TRY(check_memory(code, err), err, "decoding %d pictures", batch->n);
    }
    return TDM_OK;
}

tdm_status tdmi_nvjpeg_decode(tdmi_nvjpeg_state *state, tdmi_stream *stream,
                              const struct tdmi_decoder_file *files,
                              const struct tdmi_nvjpeg_image *images, int n, bool *is_done,
                              tdm_error *err)
{
    tdm_status status = TDM_OK;
    for (int kind = 0; kind < n_decoders; kind++)
        state->of[kind].batch.n = 0;
    for (int i = 0; i < n; i++) {
        is_done[i] = false;
        if (is_agreed(state->nvjpeg, &files[i]))
            add(&state->of[decoder_of(state, &files[i])].batch, i, &files[i], &images[i]);
    }
    for (int kind = 0; kind < n_decoders && status == TDM_OK; kind++)
        if (state->of[kind].batch.n > 0)
            status = decode_all(state, (enum decoder)kind, stream, is_done, err);
    return status;
}
