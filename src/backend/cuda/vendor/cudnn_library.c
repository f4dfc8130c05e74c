/* Opening cuDNN. */
#include "backend/cuda/vendor/cudnn_library.h"
#include "base/memory.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* The first that plans for a described GPU. */
enum { oldest = 90800 };

struct tdmi_cudnn {
    void *library;
    struct tdmi_cudnn_calls calls;
    tdmi_cudnn_handle handle; /* NULL: of a GPU that is only described */
    tdmi_cudnn_descriptor card;
    int version;
    pthread_mutex_t turn; /* of the handle */
};

static tdm_status refuse(const tdmi_cudnn *cudnn, int code, const char *what, tdm_error *err)
{
    char why[256] = "";
    cudnn->calls.last_error(why, sizeof why);
    why[sizeof why - 1] = '\0';
    return TDM_FAIL(err, TDM_E_ABSENT, "%s: cuDNN %d.%d says %d, %s", what, cudnn->version / 10000,
                    cudnn->version / 100 % 100, code, why);
}

static tdm_status load(tdmi_cudnn *cudnn, const char *file, tdm_error *err)
{
    static const char *const names[] = {"libcudnn.so.9", NULL};
    static const char *const folders[] = {"nvidia/cudnn/lib", NULL};
    const struct tdmi_cuda_library library = {"cuDNN 9", names, folders};
    TDM_TRY(tdmi_cuda_library_open(&library, file, &cudnn->library, err), err, "opening cuDNN");
#define X(field, symbol, result, parameters)                                         \
    if (!tdmi_cuda_library_call(cudnn->library, symbol, (void *)&cudnn->calls.field, \
                                sizeof cudnn->calls.field))                          \
        return TDM_FAIL(err, TDM_E_ABSENT, "opening cuDNN: it lacks the function %s", symbol);
    TDMI_CUDNN_CALLS(X)
#undef X
    cudnn->version = (int)cudnn->calls.version();
    if (cudnn->version < oldest)
        return TDM_FAIL(err, TDM_E_ABSENT,
                        "opening cuDNN: found version %d.%d, and %d.%d or newer is wanted",
                        cudnn->version / (cudnn->version < 10000 ? 1000 : 10000),
                        cudnn->version / 100 % (cudnn->version < 10000 ? 10 : 100), oldest / 10000,
                        oldest / 100 % 100);
    return TDM_OK;
}

static tdm_status look_at_card(tdmi_cudnn *cudnn, const char *card, tdm_error *err)
{
    int code = card ? 0 : cudnn->calls.create_handle(&cudnn->handle);
    if (code != 0)
        return refuse(cudnn, code, "opening cuDNN on the GPU", err);
    code = cudnn->calls.create(TDMI_CUDNN_DEVICE, &cudnn->card);
    if (code == 0)
        code = card ? cudnn->calls.set(cudnn->card, TDMI_CUDNN_A_DEVICE_JSON, TDMI_CUDNN_T_CHAR,
                                       (int64_t)strlen(card), card)
                    : cudnn->calls.set(cudnn->card, TDMI_CUDNN_A_DEVICE_HANDLE, TDMI_CUDNN_T_HANDLE,
                                       1, &cudnn->handle);
    if (code == 0)
        code = cudnn->calls.finalize(cudnn->card);
    return code == 0 ? TDM_OK : refuse(cudnn, code, "telling cuDNN of the GPU", err);
}

tdm_status tdmi_cudnn_open(const char *file, const char *card, tdmi_cudnn **cudnn, tdm_error *err)
{
    *cudnn = NULL;
    tdmi_cudnn *made = tdmi_alloc(1, sizeof *made);
    if (!made)
        return TDM_FAIL(err, TDM_E_MEMORY, "opening cuDNN: out of memory");
    if (pthread_mutex_init(&made->turn, NULL) != 0) {
        tdmi_free(made);
        return TDM_FAIL(err, TDM_E_SYSTEM, "opening cuDNN: no lock to be had");
    }
    tdm_status status = load(made, file, err);
    if (status == TDM_OK)
        status = look_at_card(made, card, err);
    if (status != TDM_OK) {
        tdmi_cudnn_close(made);
        return status;
    }
    *cudnn = made;
    return TDM_OK;
}

void tdmi_cudnn_close(tdmi_cudnn *cudnn)
{
    if (!cudnn)
        return;
    if (cudnn->card)
        (void)cudnn->calls.destroy(cudnn->card);
    if (cudnn->handle)
        (void)cudnn->calls.destroy_handle(cudnn->handle);
    tdmi_cuda_library_close(cudnn->library);
    pthread_mutex_destroy(&cudnn->turn);
    tdmi_free(cudnn);
}

static tdm_status load_alone(const char *file, void **library, int *version, tdm_error *err)
{
    tdmi_cudnn found = {.version = 0};
    const tdm_status status = load(&found, file, err);
    *library = found.library;
    *version = found.version;
    return status;
}

const struct tdmi_cuda_library_facts tdmi_cudnn_facts = {
    "cuDNN", "convolutions are computed by kernels of tandem's own", "cudnnGetVersion", load_alone};

const struct tdmi_cudnn_calls *tdmi_cudnn_calls_of(const tdmi_cudnn *cudnn)
{
    return &cudnn->calls;
}

tdmi_cudnn_descriptor tdmi_cudnn_card(const tdmi_cudnn *cudnn)
{
    return cudnn->card;
}

int tdmi_cudnn_version(const tdmi_cudnn *cudnn)
{
    return cudnn->version;
}

int tdmi_cudnn_execute(tdmi_cudnn *cudnn, struct CUstream_st *queue, tdmi_cudnn_descriptor plan,
                       tdmi_cudnn_descriptor pack)
{
    pthread_mutex_lock(&cudnn->turn);
    int code = cudnn->calls.set_stream(cudnn->handle, queue);
    if (code == 0)
        code = cudnn->calls.execute(cudnn->handle, plan, pack);
    pthread_mutex_unlock(&cudnn->turn);
    return code;
}
