/* A GPU's libraries, and asking them. */
#include "backend/cuda/vendor/libraries.h"
#include "backend/cuda/vendor/algorithm_cache.h"
#include "backend/cuda/vendor/nccl_api.h"
#include "backend/cuda/vendor/nvjpeg.h"
#include "base/scope.h"
#include "base/system/env.h"

#include <pthread.h>
#include <stdio.h>

enum { text_room = 256 };

struct tdmi_cuda_libraries {
    tdmi_device *device;
    struct tdmi_cuda_places places;
    pthread_mutex_t lock; /* of everything below */
    bool has_looked;
    tdmi_cudnn *cudnn;
    tdmi_cublaslt *cublaslt;
    char no_cudnn[text_room], no_cublaslt[text_room]; /* why it is NULL */
    struct tdmi_cuda_algorithm_cache cache;
};

tdm_status tdmi_cuda_libraries_new(tdmi_device *device, const struct tdmi_cuda_places *places,
                                   struct tdmi_cuda_libraries **libraries, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) struct tdmi_cuda_libraries *made = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    made->device = device;
    if (places)
        made->places = *places;
    if (pthread_mutex_init(&made->lock, NULL) != 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "opening GPU %d: the system gives no lock",
                        device->index);
    *libraries = tdmi_take(&made);
    return TDM_OK;
}

void tdmi_cuda_libraries_free(struct tdmi_cuda_libraries *libraries)
{
    if (!libraries)
        return;
    tdmi_cuda_algorithm_cache_release(&libraries->cache);
    tdmi_cudnn_close(libraries->cudnn);
    tdmi_cublaslt_close(libraries->cublaslt);
    pthread_mutex_destroy(&libraries->lock);
    tdmi_free(libraries);
}

/* ---- opening -------------------------------------------------------------------------------- */

/* The folder of choices; each version of either library has its own. */
static void find_folder(struct tdmi_cuda_libraries *it)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena;
    tdmi_arena_init(&arena, 0);
    const char *home = it->places.home ? it->places.home : tdmi_env_home(&arena);
    const int room = sizeof it->cache.folder;
    const int n =
        home ? snprintf(it->cache.folder, sizeof it->cache.folder, "%s/cuda/%s-%d-%d-%d", home,
                        it->device->uuid, it->cudnn ? tdmi_cudnn_version(it->cudnn) : 0,
                        it->cublaslt ? tdmi_cublaslt_version(it->cublaslt) : 0,
                        it->device->driver_version)
             : 0;
    if (n < 0 || n >= room)
        it->cache.folder[0] = '\0';
}

static void look(struct tdmi_cuda_libraries *it)
{
    tdm_error err = {0};
    tdmi_cuda_make_current(it->device); /* whichever thread asks: libraries look which it is */
    if (it->has_looked)
        return;
    it->has_looked = true;
    if (tdmi_cudnn_open(it->places.cudnn, NULL, &it->cudnn, &err) != TDM_OK)
        snprintf(it->no_cudnn, text_room, "%.200s", tdm_error_sentence(&err, 0));
    if (tdmi_cublaslt_open(it->places.cublaslt, &it->cublaslt, &err) != TDM_OK)
        snprintf(it->no_cublaslt, text_room, "%.200s", tdm_error_sentence(&err, 0));
    it->cache.device = it->device;
    it->cache.cudnn = it->cudnn;
    it->cache.cublaslt = it->cublaslt;
    find_folder(it);
}

void tdmi_cuda_libraries_keep(struct tdmi_cuda_libraries *it, const char *folder)
{
    pthread_mutex_lock(&it->lock);
    char *kept = it->cache.kept;
    if (snprintf(kept, TDMI_CUDA_FOLDER_ROOM, "%s", folder) >= TDMI_CUDA_FOLDER_ROOM)
        kept[0] = '\0';
    pthread_mutex_unlock(&it->lock);
}

void tdmi_cuda_libraries_describe(struct tdmi_cuda_libraries *it, char *text, size_t text_bytes)
{
    char of_cudnn[text_room + 16], of_cublaslt[text_room + 16];
    pthread_mutex_lock(&it->lock);
    look(it);
    const int cudnn = it->cudnn ? tdmi_cudnn_version(it->cudnn) : 0;
    const int cublaslt = it->cublaslt ? tdmi_cublaslt_version(it->cublaslt) : 0;
    if (cudnn)
        snprintf(of_cudnn, sizeof of_cudnn, "cuDNN %d.%d.%d", cudnn / 10000, cudnn / 100 % 100,
                 cudnn % 100);
    else
        snprintf(of_cudnn, sizeof of_cudnn, "no cuDNN (%s)", it->no_cudnn);
    if (cublaslt)
        snprintf(of_cublaslt, sizeof of_cublaslt, "cuBLASLt %d.%d.%d", cublaslt / 10000,
                 cublaslt / 100 % 100, cublaslt % 100);
    else
        snprintf(of_cublaslt, sizeof of_cublaslt, "no cuBLASLt (%s)", it->no_cublaslt);
    pthread_mutex_unlock(&it->lock);
    snprintf(text, text_bytes, "%s, %s", of_cudnn, of_cublaslt);
}

const struct tdmi_cuda_places *tdmi_cuda_libraries_places(const struct tdmi_cuda_libraries *it)
{
    return &it->places;
}

char *tdmi_cuda_write_choices(tdmi_device *device)
{
    struct tdmi_cuda_libraries *it = device->libraries;
    pthread_mutex_lock(&it->lock);
    char *text = tdmi_cuda_algorithm_cache_write(&it->cache);
    pthread_mutex_unlock(&it->lock);
    return text;
}

void tdmi_cuda_read_choices(tdmi_device *device, const char *text)
{
    struct tdmi_cuda_libraries *it = device->libraries;
    pthread_mutex_lock(&it->lock);
    it->cache.given = text;
    pthread_mutex_unlock(&it->lock);
}

bool tdmi_cuda_library_at(int index, const struct tdmi_cuda_places *places,
                          struct tdmi_backend_library *library)
{
    static const struct tdmi_cuda_places everywhere;
    const struct tdmi_cuda_places *in = places ? places : &everywhere;
    const struct {
        const struct tdmi_cuda_library *library;
        const char *file;
    } known[] = {{&tdmi_cudnn_library, in->cudnn},
                 {&tdmi_cublaslt_library, in->cublaslt},
                 {&tdmi_nvjpeg_library, in->nvjpeg},
                 {&tdmi_nccl_library, in->nccl}};
    const int n = sizeof known / sizeof known[0];
    if (index < n)
        tdmi_cuda_library_look(known[index].library, known[index].file, library);
    return index < n;
}

/* ---- choosing ------------------------------------------------------------------------------- */

/* NULL: there is none. */
static const struct tdmi_cuda_cached_algorithm *choose(const tdmi_device *device,
                                                       const struct tdmi_cuda_problem *problem)
{
    struct tdmi_cuda_libraries *it = device ? device->libraries : NULL;
    if (!it)
        return NULL;
    pthread_mutex_lock(&it->lock);
    look(it);
    const struct tdmi_cuda_cached_algorithm *entry =
        tdmi_cuda_algorithm_cache_find(&it->cache, problem);
    pthread_mutex_unlock(&it->lock);
    return entry && entry->is_there ? entry : NULL;
}

const struct tdmi_cudnn_plan *tdmi_cuda_conv_plan(tdmi_device *device,
                                                  const struct tdmi_cudnn_conv *conv)
{
    const struct tdmi_cuda_problem problem = {.conv = conv};
    const struct tdmi_cuda_cached_algorithm *entry = choose(device, &problem);
    return entry ? &entry->conv : NULL;
}

const struct tdmi_cublaslt_plan *tdmi_cuda_product_plan(tdmi_device *device,
                                                        const struct tdmi_cublaslt_product *it)
{
    const struct tdmi_cuda_problem problem = {.product = it};
    const struct tdmi_cuda_cached_algorithm *entry = choose(device, &problem);
    return entry ? &entry->product : NULL;
}

struct tdmi_cuda_algorithm tdmi_cuda_conv_algorithm(tdmi_device *device,
                                                    const struct tdmi_cudnn_conv *conv,
                                                    const struct tdmi_cublaslt_product *product)
{
    struct tdmi_cuda_algorithm chosen = {tdmi_cuda_conv_plan(device, conv),
                                         product ? tdmi_cuda_product_plan(device, product) : NULL};
    const struct tdmi_cuda_problem problem = {conv, product, chosen.conv, chosen.product};
    if (!chosen.conv || !chosen.product)
        return chosen;
    const struct tdmi_cuda_cached_algorithm *entry = choose(device, &problem);
    if (entry && entry->is_product)
        chosen.conv = NULL;
    else
        chosen.product = NULL;
    return chosen;
}

void tdmi_cuda_algorithm_name(const tdmi_device *device,
                              const struct tdmi_cuda_algorithm *algorithm, char *text,
                              size_t text_bytes)
{
    if (algorithm->conv)
        tdmi_cudnn_plan_name(device->libraries->cudnn, algorithm->conv, text, text_bytes);
    else
        tdmi_cublaslt_plan_name(device->libraries->cublaslt, algorithm->product, text, text_bytes);
}

/* ---- running -------------------------------------------------------------------------------- */

enum { workspace_begins_on = 256 };

size_t tdmi_cuda_workspace_room(size_t bytes)
{
    return bytes ? bytes + workspace_begins_on - 1 : 0;
}

static void *begin_of(void *workspace)
{
    const uintptr_t at = (uintptr_t)workspace + workspace_begins_on - 1;
    return (void *)(at - at % workspace_begins_on);
}

int tdmi_cuda_conv_run(tdmi_stream *stream, const struct tdmi_cudnn_plan *plan,
                       void *const tensors[TDMI_CUDNN_TENSORS], void *workspace)
{
    return tdmi_cudnn_plan_run(stream->device->libraries->cudnn, plan, tdmi_cuda_queue(stream),
                               tensors, begin_of(workspace));
}

int tdmi_cuda_product_run(tdmi_stream *stream, const struct tdmi_cublaslt_plan *plan,
                          const struct tdmi_cublaslt_call *call)
{
    struct tdmi_cublaslt_call it = *call;
    it.workspace = begin_of(call->workspace);
    return tdmi_cublaslt_plan_run(stream->device->libraries->cublaslt, plan,
                                  tdmi_cuda_queue(stream), &it);
}
