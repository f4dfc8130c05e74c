/*
 * Making a loader: how much memory goes where, which cache there is, and everything allocated.
 *
 *     memory limit = slots × batch  +  threads × working memory  +  a bit a sample  +  cache
 *
 * Under a limit slots are given up first (two are left, so that reading and training overlap), then
 * threads, then the second slot. Half of the rest is for a cache, half for images that need more
 * than a thread's share: those are decoded one at a time.
 */
#include "data/loader/internal.h"

#include "base/system/cpu.h"
#include "base/system/signals.h"
#include "base/text/choice.h"
#include "base/text/quote.h"
#include "io/storage/storage.h"
#include "tandem/log.h"
#include <stdarg.h>
#include <stdatomic.h>
#include <time.h>

enum {
    DEFAULT_DEPTH = 3,
    MAX_THREADS = 4096,
    LARGEST_SIDE = 65535,
    SCRATCH_FLOOR = 4 << 20, /* room for a usual photo of a megapixel */
    USUAL_FILE = 1 << 20,    /* what an image's file hardly exceeds on average */
    TARGETS_KEPT = 8,        /* and for the work of resizing to the target */
    FAR_BYTES = 16 << 20     /* a ring that no cache of a thread holds */
};

static tdm_status check_options(const struct tdmi_loader_options *o, tdm_error *err)
{
    if (o->batch < 1 || o->threads < 1 || o->threads > MAX_THREADS || o->depth < 0 ||
        o->n_items < 0 || o->memory_bytes < 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "a loader cannot have batches of %d, %d threads (1 to %d) and %d slots",
                        o->batch, o->threads, MAX_THREADS, o->depth);
    const struct tdmi_preprocess *p = &o->preprocess;
    if (p->width < 1 || p->width > LARGEST_SIDE || p->height < 1 || p->height > LARGEST_SIDE ||
        p->channels < 1 || p->channels > TDMI_CHANNELS_MAX)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "a loader cannot make images of %d x %d pixels and %d channels: sides of 1 "
                        "to %d and 1 to %d channels can be made",
                        p->height, p->width, p->channels, LARGEST_SIDE, TDMI_CHANNELS_MAX);
    return TDM_OK;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int64_t slot_bytes(const tdmi_loader *loader)
{
    const struct tdmi_batch_slot *slot = NULL;
    size_t a_picture = loader->pipeline.picture_bytes + sizeof *slot->labels + sizeof *slot->items +
                       sizeof *slot->samples + sizeof *slot->problems +
                       (loader->has_rest ? sizeof *slot->keys : 0);
    return (int64_t)a_picture * loader->slot_positions + (int64_t)sizeof *slot;
}

int64_t tdmi_loader_scratch_bytes(int width, int height)
{
    return SCRATCH_FLOOR + (int64_t)TARGETS_KEPT * 3 * width * height;
}

static int64_t worker_bytes(const tdmi_loader *loader)
{
    const struct tdmi_preprocess *first = &loader->pipeline.geometry;
    const int64_t first_bytes = (int64_t)3 * first->width * first->height;
    const int64_t image_bytes = (int64_t)loader->pipeline.picture_bytes;
    const int64_t target = image_bytes > first_bytes ? image_bytes : first_bytes;
    int64_t grows = loader->pipeline.is_raw_as_is ? 0 : SCRATCH_FLOOR + TARGETS_KEPT * target;
    return (int64_t)sizeof(struct tdmi_loader_worker) +
           tdmi_picture_scratch_fixed(&loader->pipeline) + grows;
}

static int64_t needed_bytes(const tdmi_loader *loader)
{
    return (int64_t)sizeof *loader + loader->n_samples / 8 + 1 +
           (int64_t)TDMI_KEPT_SKIPS * (int64_t)sizeof *loader->skips +
           loader->n_slots * slot_bytes(loader) + loader->most_threads * worker_bytes(loader);
}

/* This process's share of free memory, less what is reserved for others. */
static int64_t free_memory(const struct tdmi_loader_options *o)
{
    struct tdmi_cpu machine = {0};
    tdmi_cpu_describe_files("", &machine);
    int64_t bytes = machine.memory_available_bytes;
    if (machine.cgroup_memory_bytes > 0 && machine.cgroup_memory_bytes < bytes)
        bytes = machine.cgroup_memory_bytes;
    if (o->placement)
        bytes = tdmi_placement_share(o->placement, bytes);
    return bytes > o->spoken_for_bytes ? bytes - o->spoken_for_bytes : 0;
}

/* With memory_parts, in the unit of the option: a limit for this part alone would be too small
 * again. */
static tdm_status refuse_limit(const tdmi_loader *loader, tdm_error *err)
{
    const struct tdmi_loader_options *o = &loader->options;
    const struct tdmi_preprocess *p = &o->preprocess;
    const int64_t needed = needed_bytes(loader), all_bytes = o->memory_parts * needed;
    if (o->memory_parts > 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "--memory is too small for one batch of %d images of %d x %d x %d and the "
                        "work of one thread; use --memory %lldM, or a smaller batch",
                        o->batch, p->height, p->width, p->channels,
                        (long long)((all_bytes + (1 << 20) - 1) >> 20));
    return TDM_FAIL(err, TDM_E_USAGE,
                    "%lld bytes of memory cannot hold one batch of %d images of %d x %d x %d and "
                    "the work of one thread; give %lld bytes, or a smaller batch",
                    (long long)o->memory_bytes, o->batch, p->height, p->width, p->channels,
                    (long long)needed);
}

static tdm_status share_out(tdmi_loader *loader, tdm_error *err)
{
    const struct tdmi_loader_options *o = &loader->options;
    const int64_t limit = o->memory_bytes;
    loader->n_slots = o->depth > 0 ? o->depth : DEFAULT_DEPTH;
    loader->most_threads = o->threads;
    if (limit == 0) {
        loader->cache_limit = o->cache.kind == TDMI_CACHE_NONE ? 0 : free_memory(o) / 4;
        return TDM_OK;
    }
    while (needed_bytes(loader) > limit && loader->n_slots > 2)
        loader->n_slots--;
    while (needed_bytes(loader) > limit && loader->most_threads > 1)
        loader->most_threads--;
    if (needed_bytes(loader) > limit)
        loader->n_slots = 1;
    if (needed_bytes(loader) > limit)
        return refuse_limit(loader, err);
    const int64_t left = limit - needed_bytes(loader);
    loader->cache_limit = o->cache.kind == TDMI_CACHE_NONE ? 0 : left / 2;
    loader->pipeline.scratch_limit = worker_bytes(loader) -
                                     (int64_t)sizeof(struct tdmi_loader_worker) -
                                     tdmi_picture_scratch_fixed(&loader->pipeline);
    loader->pipeline.large_limit = loader->pipeline.scratch_limit + left - loader->cache_limit;
    loader->pipeline.large = &loader->large;
    return TDM_OK;
}

/* ---- caches ---------------------------------------------------------------------------------- */

static const char *const cache_words[] = {
    [TDMI_CACHE_NONE] = "none",       [TDMI_CACHE_AUTO] = "auto", [TDMI_CACHE_ENCODED] = "encoded",
    [TDMI_CACHE_DECODED] = "decoded", [TDMI_CACHE_DISK] = "disk",
};
enum { N_CACHE_WORDS = sizeof cache_words / sizeof cache_words[0] };

tdm_status tdmi_cache_kind_find(const char *word, enum tdmi_cache_kind *kind, tdm_error *err)
{
    int index = 0;
    TDMI_TRY(tdmi_choice_find("cache", word, cache_words, N_CACHE_WORDS, &index, err));
    *kind = (enum tdmi_cache_kind)index;
    return TDM_OK;
}

static void note(tdmi_loader *loader, enum tdmi_cache_kind kind, const char *format, ...)
    TDM_PRINTF(3, 4);
static void note(tdmi_loader *loader, enum tdmi_cache_kind kind, const char *format, ...)
{
    va_list arguments;
    loader->cache = kind;
    va_start(arguments, format);
    tdmi_quote(loader->cache_note, sizeof loader->cache_note, format, arguments);
    va_end(arguments);
}

static double mib(int64_t bytes)
{
    return (double)bytes / (1 << 20);
}

/* A cache of most_bytes, or as many as the limit allows; perhaps none. */
static tdm_status open_memory_cache(tdmi_loader *loader, int64_t most_bytes,
                                    tdmi_memory_cache **cache, tdm_error *err)
{
    int64_t overhead = tdmi_memory_cache_overhead(loader->n_samples);
    int64_t room = loader->cache_limit - overhead;
    int64_t capacity = most_bytes < room ? most_bytes : room;
    if (capacity <= 0) {
        note(loader, TDMI_CACHE_NONE, "no images are kept: the memory limit leaves no room");
        return TDM_OK;
    }
    TDMI_TRY(tdmi_memory_cache_new(loader->n_samples, capacity, cache, err));
    loader->memory_bytes += capacity + overhead;
    return TDM_OK;
}

/* Could a cache on disk distinguish the images? The answer for one holds for all that can be read.
 */
static bool has_names(const tdmi_loader *loader)
{
    enum { UNREADABLE_AT_MOST = 1000 };
    const struct tdmi_loader_options *o = &loader->options;
    const int64_t n = tdmi_source_items(o->source);
    for (int64_t i = 0; i < n && i < UNREADABLE_AT_MOST; i++)
        if (tdmi_source_bytes_key(o->source, i, o->cache.hashes).number != 0)
            return true;
    return false;
}

static tdm_status open_cache(tdmi_loader *loader, tdm_error *err)
{
    const struct tdmi_loader_options *o = &loader->options;
    const int64_t decoded = loader->n_samples * (int64_t)loader->pipeline.picture_bytes;
    bool does_fit = decoded + tdmi_memory_cache_overhead(loader->n_samples) <= loader->cache_limit;
    enum tdmi_cache_kind kind = o->cache.kind;
    if (loader->pipeline.has_box) {
        does_fit = false; /* another part each time */
        kind = kind == TDMI_CACHE_DECODED ? TDMI_CACHE_ENCODED : kind;
    }
    note(loader, TDMI_CACHE_NONE, "no images are kept");
    if (kind == TDMI_CACHE_AUTO) {
        bool is_far = tdmi_storage_is_uri(tdmi_source_path(o->source));
        if (loader->pipeline.is_raw_as_is && !is_far) {
            note(loader, TDMI_CACHE_NONE, "no images are kept: they are read as they are");
            return TDM_OK;
        }
        kind = does_fit                      ? TDMI_CACHE_DECODED
               : is_far && has_names(loader) ? TDMI_CACHE_DISK
                                             : TDMI_CACHE_NONE;
        loader->is_undecided = kind == TDMI_CACHE_NONE && !loader->pipeline.is_raw;
    }
    if (kind == TDMI_CACHE_DECODED) {
        TDMI_TRY(open_memory_cache(loader, decoded, &loader->pipeline.decoded, err));
        if (loader->pipeline.decoded != NULL)
            note(loader, kind, "%s kept decoded in memory (%.1f MiB)",
                 does_fit ? "images are" : "as many images as fit are",
                 mib(does_fit ? decoded : loader->cache_limit));
    } else if (kind == TDMI_CACHE_ENCODED) {
        tdmi_memory_cache *encoded = NULL;
        TDMI_TRY(open_memory_cache(loader, loader->n_samples * USUAL_FILE, &encoded, err));
        atomic_store(&loader->pipeline.encoded, encoded);
        if (encoded != NULL)
            note(loader, kind, "files of images are kept in memory (at most %.1f MiB)",
                 mib(loader->cache_limit));
    } else if (kind == TDMI_CACHE_DISK && !has_names(loader)) {
        note(loader, TDMI_CACHE_NONE, "no images are kept on disk: their bytes have no known name");
    } else if (kind == TDMI_CACHE_DISK) {
        TDMI_TRY(tdmi_disk_cache_open(o->cache.folder, o->cache.disk_bytes, &loader->pipeline.disk,
                                      err));
        note(loader, kind, "files of images are kept in %s",
             tdmi_disk_cache_folder(loader->pipeline.disk));
    }
    return TDM_OK;
}

void tdmi_loader_decide(tdmi_loader *loader)
{
    enum { pictures_enough = 64 };
    const struct tdmi_stage_times *times = &loader->times;
    if (times->pictures[TDMI_STAGE_DECODE] < pictures_enough)
        return;
    loader->is_undecided = false;
    if (times->ns[TDMI_STAGE_READ] * 2 < times->ns[TDMI_STAGE_DECODE])
        return;
    tdmi_memory_cache *encoded = NULL;
    tdm_error err = {0};
    const int64_t mean = times->bytes[TDMI_STAGE_READ] / times->pictures[TDMI_STAGE_READ] + 1;
    if (open_memory_cache(loader, loader->n_samples * (mean + mean / 4), &encoded, &err) !=
            TDM_OK ||
        encoded == NULL)
        return; /* it would only have made things faster */
    atomic_store_explicit(&loader->pipeline.encoded, encoded, memory_order_release);
    note(loader, TDMI_CACHE_ENCODED,
         "files of images are kept in memory (at most %.1f MiB): reading them is slow",
         mib(loader->cache_limit));
    tdm_log(TDM_LOG_INFO, "%s", loader->cache_note);
}

/* ---- open and close ------------------------------------------------------------------------ */

static void *alloc_values(const tdmi_loader *loader, size_t bytes)
{
    const struct tdmi_loader_allocator *own = &loader->options.allocator;
    return own->alloc != NULL ? own->alloc(own->self, bytes) : tdmi_alloc_aligned(bytes);
}

static tdm_status allocate(tdmi_loader *loader, tdm_error *err)
{
    const struct tdmi_loader_options *o = &loader->options;
    struct tdmi_picture_pipeline *pipeline = &loader->pipeline;
    const size_t batch = (size_t)loader->slot_positions;
    const int64_t n_bits = tdmi_source_items(o->source) / 8 + 1;
    TDMI_TRY(TDMI_NEW(loader->workers, loader->most_threads, err));
    TDMI_TRY(TDMI_NEW(loader->slots, loader->n_slots, err));
    TDMI_TRY(TDMI_NEW(loader->skips, TDMI_KEPT_SKIPS, err));
    TDMI_TRY(TDMI_NEW(loader->is_skipped, loader->n_samples / 8 + 1, err));
    if (o->decoder != NULL)
        TDMI_TRY(TDMI_NEW(pipeline->is_sound, n_bits, err));
    if (o->contents != NULL)
        TDMI_TRY(TDMI_NEW(pipeline->is_read, n_bits, err));
    for (int i = 0; i < loader->n_slots; i++) {
        struct tdmi_batch_slot *slot = &loader->slots[i];
        if (pipeline->picture_bytes <= SIZE_MAX / batch)
            slot->values = alloc_values(loader, batch * pipeline->picture_bytes);
        if (slot->values == NULL)
            return TDM_FAIL(err, TDM_E_MEMORY,
                            "no memory for %d batches of %d images of %d x %d x %d",
                            loader->n_slots, loader->slot_positions, o->preprocess.height,
                            o->preprocess.width, o->preprocess.channels);
        TDMI_TRY(TDMI_NEW(slot->labels, batch, err));
        TDMI_TRY(TDMI_NEW(slot->items, batch, err));
        TDMI_TRY(TDMI_NEW(slot->samples, batch, err));
        TDMI_TRY(TDMI_NEW(slot->problems, batch, err));
        if (loader->has_rest)
            TDMI_TRY(TDMI_NEW(slot->keys, batch, err));
    }
    for (int i = 0; i < loader->most_threads; i++)
        TDM_TRY(tdmi_picture_scratch_init(pipeline, &loader->workers[i].scratch, err), err,
                "cannot open a loader");
    return TDM_OK;
}

/* Waits with an end are timed by the clock that nobody sets. */
static void make_locks(tdmi_loader *loader)
{
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_mutex_init(&loader->lock, NULL);
    pthread_mutex_init(&loader->large, NULL);
    pthread_cond_init(&loader->work, NULL);
    pthread_cond_init(&loader->ready, &steady);
    pthread_condattr_destroy(&steady);
}

/* Signals are the caller's business: our threads must not be chosen to take one. */
static tdm_status start_threads(tdmi_loader *loader, tdm_error *err)
{
    int problem = 0;
    sigset_t before;
    for (int i = 0; i < loader->most_threads; i++)
        TDMI_TRY(tdmi_lane_open(loader->options.trace, "images", i,
                                &loader->workers[i].scratch.lane, err));
    tdmi_signals_block(&before);
    for (int i = 0; i < loader->most_threads && problem == 0; i++) {
        struct tdmi_loader_worker *worker = &loader->workers[i];
        worker->loader = loader;
        worker->number = i;
        problem = pthread_create(&worker->thread, NULL, tdmi_loader_work, worker);
        if (problem == 0)
            loader->n_workers++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (problem != 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "cannot start thread %d of %d: %s",
                        loader->n_workers + 1, loader->most_threads, strerror(problem));
    return TDM_OK;
}

/* Remove the changes that the consumer applies from this loader's. */
static void leave_rest(tdmi_loader *loader)
{
    struct tdmi_augment *own = &loader->options.augment, first, rest;
    loader->has_rest = loader->options.leaves_rest && tdmi_augment_divide(own, &first, &rest);
    for (int kind = 0; loader->has_rest && kind < TDMI_AUGMENTS; kind++)
        if (rest.is_on[kind]) {
            own->is_on[kind] = false;
            memset(own->arguments[kind], 0, sizeof own->arguments[kind]);
        }
}

static void begin(tdmi_loader *loader, const struct tdmi_loader_options *options)
{
    loader->options = *options;
    loader->slot_positions = options->part.find != NULL ? options->part.most : options->batch;
    leave_rest(loader);
    loader->n_samples =
        options->items == NULL ? tdmi_source_items(options->source) : options->n_items;
    loader->in_file_order.n = loader->n_samples;
    loader->order = options->order != NULL ? options->order : &loader->in_file_order;
    loader->n_positions = loader->n_samples == 0 ? 0 : loader->order->n;
    tdmi_picture_pipeline_init(&loader->pipeline, &loader->options);
    /* Under a limit a thread holds one image. */
    loader->at_once =
        options->decoder != NULL && options->memory_bytes == 0 ? TDMI_DECODER_FILES : 1;
    /* Nothing may be claimed before the first seek. */
    loader->claimed = loader->held = loader->next = loader->n_positions;
}

tdm_status tdmi_loader_open(const struct tdmi_loader_options *options, tdmi_loader **loader,
                            tdm_error *err)
{
    TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *opened = NULL;
    *loader = NULL;
    TDM_TRY(check_options(options, err), err, "cannot open a loader");
    TDMI_TRY(TDMI_NEW(opened, 1, err));
    make_locks(opened);
    begin(opened, options);
    TDMI_TRY(share_out(opened, err));
    opened->memory_bytes =
        needed_bytes(opened) + opened->pipeline.large_limit - opened->pipeline.scratch_limit;
    opened->tuning = (struct tdmi_tuning){
        .threads = options->is_tuned ? 1 : opened->most_threads,
        .depth = options->is_tuned && opened->n_slots > 2 ? 2 : opened->n_slots,
        .most_threads = opened->most_threads,
        .most_depth = opened->n_slots};
    opened->pipeline.is_far = opened->n_slots * slot_bytes(opened) > FAR_BYTES;
    TDMI_TRY(allocate(opened, err));
    TDM_TRY(open_cache(opened, err), err, "cannot keep images for later epochs");
    TDMI_TRY(start_threads(opened, err));
    *loader = tdmi_take(&opened);
    return TDM_OK;
}

static void free_slots(tdmi_loader *loader)
{
    const struct tdmi_loader_allocator *own = &loader->options.allocator;
    for (int i = 0; loader->slots != NULL && i < loader->n_slots; i++) {
        struct tdmi_batch_slot *slot = &loader->slots[i];
        if (own->alloc != NULL && slot->values != NULL)
            own->free(own->self, slot->values);
        else
            tdmi_free(slot->values);
        tdmi_free(slot->labels);
        tdmi_free(slot->items);
        tdmi_free(slot->samples);
        tdmi_free(slot->problems);
        tdmi_free(slot->keys);
    }
    tdmi_free(loader->slots);
}

void tdmi_loader_close(tdmi_loader *loader)
{
    if (loader == NULL)
        return;
    pthread_mutex_lock(&loader->lock);
    loader->is_stopping = true;
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->lock);
    for (int i = 0; i < loader->n_workers; i++)
        pthread_join(loader->workers[i].thread, NULL);
    for (int i = 0; loader->workers != NULL && i < loader->most_threads; i++) {
        tdmi_lane_close(loader->workers[i].scratch.lane);
        tdmi_picture_scratch_release(&loader->workers[i].scratch);
    }
    free_slots(loader);
    tdmi_memory_cache_free(loader->pipeline.decoded);
    tdmi_memory_cache_free(atomic_load(&loader->pipeline.encoded));
    tdmi_disk_cache_close(loader->pipeline.disk);
    tdmi_free(loader->workers);
    tdmi_free(loader->skips);
    tdmi_free(loader->is_skipped);
    tdmi_lost_rows_release(&loader->lost);
    tdmi_free(loader->pipeline.is_read);
    tdmi_free(loader->pipeline.is_sound);
    pthread_cond_destroy(&loader->ready);
    pthread_cond_destroy(&loader->work);
    pthread_mutex_destroy(&loader->large);
    pthread_mutex_destroy(&loader->lock);
    tdmi_free(loader);
}
