/*
 * One lock guards who works on what; pixels are written outside it.
 *
 *     position of the epoch   0 ......... held ......... claimed ............ n
 *                             consumed  │◄── depth slots of batch ──►│
 *
 * A thread claims the lowest position that nobody has, as long as its batch has a slot: batch b
 * lives in slot b mod depth, which is free once the caller has moved past batch b - depth. The slot
 * counts down what is still missing; at zero the caller may have it. So batches fill in order
 * though pictures finish in any, and nothing depends on which thread did what. (Claiming several
 * positions at once was tried and gained nothing even on pictures of 28 x 28.)
 *
 * A seek forbids new claims, waits for the pictures in work (at most one a thread) and starts
 * again: no thread can then write into a slot that has come to mean something else.
 */
#include "data/loader.h"

#include "base/memory.h"
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { DEFAULT_DEPTH = 3, KEPT_SKIPS = 100, MAX_THREADS = 4096, LARGEST_SIDE = 65535 };

struct slot {
    uint8_t *pixels;
    int32_t *labels;
    int64_t *items;
    int64_t *samples; /* index into the loader's subset */
    char (*problems)[TDMI_PROBLEM_BYTES];
    int n_missing; /* guarded by the lock, as everything the threads share below */
};

/* What one thread works with and nobody else touches. */
struct worker {
    tdmi_loader *loader;
    pthread_t thread;
    tdmi_text bytes;
    struct tdmi_preprocess_scratch scratch;
};

struct tdmi_loader {
    struct tdmi_loader_options options;
    size_t picture_bytes;
    tdmi_order order;
    struct slot *slots;
    struct worker *workers;
    int n_workers; /* started */

    pthread_mutex_t lock;
    pthread_cond_t work;  /* there may be something to claim, or the end has come */
    pthread_cond_t ready; /* a slot is full, or nobody is in work any more, or all failed */
    bool has_lock, has_work, has_ready;

    bool is_stopping, is_seeking, has_begun;
    uint32_t epoch;
    int64_t claimed; /* positions below it are handed to threads */
    int64_t held;    /* first position the caller has not moved past: slots start here */
    int64_t next;    /* first position of the batch that next() hands out */
    int n_in_work;
    tdm_error failure; /* code TDM_OK while all is well */

    struct tdmi_batch batch; /* what next() shows */
    uint8_t *is_skipped;     /* a bit per sample: already counted */
    int64_t n_skipped;
    char (*skips)[TDMI_PROBLEM_BYTES];
};

/* ---- one picture --------------------------------------------------------------------------- */

/* The outermost sentence names the object, the innermost the cause. */
static void describe(char text[TDMI_PROBLEM_BYTES], const char *path, const tdm_error *problem)
{
    const char *outer = problem->frames[problem->n_frames - 1].text;
    const char *cause = problem->frames[0].text;
    int length = snprintf(text, TDMI_PROBLEM_BYTES, "%s: %s%s%s", path, outer,
                          outer == cause ? "" : ": ", outer == cause ? "" : cause);
    if (length >= TDMI_PROBLEM_BYTES)
        memcpy(text + TDMI_PROBLEM_BYTES - 4, "...", 4);
}

static tdm_status load(struct worker *worker, struct tdmi_item item, int64_t index, uint8_t *pixels,
                       tdm_error *err)
{
    const struct tdmi_loader_options *options = &worker->loader->options;
    TDM_TRY(tdmi_source_read(options->source, index, &worker->bytes, err), err, "cannot read it");
    TDM_TRY(tdmi_preprocess_file(&options->preprocess, tdmi_text_string(&worker->bytes),
                                 worker->bytes.length_bytes, item.path, &worker->scratch, pixels,
                                 err),
            err, "cannot use it as a picture");
    return TDM_OK;
}

/* Fills position `at` of the slot. Only running out of memory is a failure. */
static tdm_status fill(struct worker *worker, uint32_t epoch, int64_t position, struct slot *slot,
                       int at, tdm_error *err)
{
    const tdmi_loader *loader = worker->loader;
    const struct tdmi_loader_options *options = &loader->options;
    int64_t sample = tdmi_order_at(&loader->order, epoch, position);
    int64_t index = options->items[sample];
    struct tdmi_item item = tdmi_source_item(options->source, index);
    uint8_t *pixels = slot->pixels + (size_t)at * loader->picture_bytes;

    slot->samples[at] = sample;
    slot->items[at] = index;
    slot->labels[at] = item.label;
    if (options->label_map != NULL && item.label >= 0)
        slot->labels[at] = options->label_map[item.label];
    slot->problems[at][0] = '\0';

    tdm_error problem = {0};
    tdm_status status = load(worker, item, index, pixels, &problem);
    if (status == TDM_E_MEMORY) {
        *err = problem;
        return TDM_WRAP(err, status, "cannot load '%s'", item.path);
    }
    if (status != TDM_OK) {
        describe(slot->problems[at], item.path, &problem);
        slot->labels[at] = -1;
        memset(pixels, 0, loader->picture_bytes);
    }
    return TDM_OK;
}

/* ---- the threads --------------------------------------------------------------------------- */

static bool can_claim(const tdmi_loader *loader)
{
    const struct tdmi_loader_options *options = &loader->options;
    return !loader->is_seeking && loader->failure.code == TDM_OK &&
           loader->claimed < options->n_items &&
           loader->claimed - loader->held < (int64_t)options->depth * options->batch;
}

static void *work(void *self)
{
    struct worker *worker = self;
    tdmi_loader *loader = worker->loader;
    int batch = loader->options.batch, depth = loader->options.depth;
    tdm_error err = {0};
    pthread_mutex_lock(&loader->lock);
    for (;;) {
        while (!loader->is_stopping && !can_claim(loader))
            pthread_cond_wait(&loader->work, &loader->lock);
        if (loader->is_stopping)
            break;
        int64_t position = loader->claimed++;
        uint32_t epoch = loader->epoch;
        struct slot *slot = &loader->slots[position / batch % depth];
        loader->n_in_work++;
        pthread_mutex_unlock(&loader->lock);

        tdm_status status = fill(worker, epoch, position, slot, (int)(position % batch), &err);

        pthread_mutex_lock(&loader->lock);
        loader->n_in_work--;
        if (status != TDM_OK && loader->failure.code == TDM_OK)
            loader->failure = err;
        bool is_full = status == TDM_OK && --slot->n_missing == 0;
        if (is_full || loader->failure.code != TDM_OK ||
            (loader->is_seeking && loader->n_in_work == 0))
            pthread_cond_signal(&loader->ready);
    }
    pthread_mutex_unlock(&loader->lock);
    return NULL;
}

/* Signals are the caller's business: its threads of ours must not be chosen to take one. */
static tdm_status start_threads(tdmi_loader *loader, tdm_error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    int problem = pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int i = 0; i < loader->options.threads && problem == 0; i++) {
        loader->workers[i].loader = loader;
        problem = pthread_create(&loader->workers[i].thread, NULL, work, &loader->workers[i]);
        if (problem == 0)
            loader->n_workers++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (problem != 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "cannot start thread %d of %d: %s",
                        loader->n_workers + 1, loader->options.threads, strerror(problem));
    return TDM_OK;
}

/* ---- open and close ------------------------------------------------------------------------ */

static tdm_status allocate(tdmi_loader *loader, tdm_error *err)
{
    const struct tdmi_loader_options *o = &loader->options;
    size_t batch = (size_t)o->batch;
    loader->workers = tdmi_alloc((size_t)o->threads, sizeof *loader->workers);
    loader->slots = tdmi_alloc((size_t)o->depth, sizeof *loader->slots);
    loader->skips = tdmi_alloc(KEPT_SKIPS, sizeof *loader->skips);
    loader->is_skipped = tdmi_alloc((size_t)o->n_items / 8 + 1, 1);
    bool is_complete = loader->workers != NULL && loader->slots != NULL && loader->skips != NULL &&
                       loader->is_skipped != NULL && loader->picture_bytes <= SIZE_MAX / batch;
    for (int i = 0; i < o->depth && is_complete; i++) {
        struct slot *slot = &loader->slots[i];
        slot->pixels = tdmi_alloc_aligned(batch * loader->picture_bytes);
        slot->labels = tdmi_alloc(batch, sizeof *slot->labels);
        slot->items = tdmi_alloc(batch, sizeof *slot->items);
        slot->samples = tdmi_alloc(batch, sizeof *slot->samples);
        slot->problems = tdmi_alloc(batch, sizeof *slot->problems);
        is_complete = slot->pixels != NULL && slot->labels != NULL && slot->items != NULL &&
                      slot->samples != NULL && slot->problems != NULL;
    }
    if (!is_complete)
        return TDM_FAIL(
            err, TDM_E_MEMORY, "no memory for %d batches of %d pictures of %d x %d x %d bytes",
            o->depth, o->batch, o->preprocess.height, o->preprocess.width, o->preprocess.channels);
    return TDM_OK;
}

static tdm_status make_lock(tdmi_loader *loader, tdm_error *err)
{
    loader->has_lock = pthread_mutex_init(&loader->lock, NULL) == 0;
    loader->has_work = pthread_cond_init(&loader->work, NULL) == 0;
    loader->has_ready = pthread_cond_init(&loader->ready, NULL) == 0;
    if (!loader->has_lock || !loader->has_work || !loader->has_ready)
        return TDM_FAIL(err, TDM_E_SYSTEM, "cannot make the locks of the loader");
    return TDM_OK;
}

static tdm_status check_options(const struct tdmi_loader_options *o, tdm_error *err)
{
    if (o->batch < 1 || o->threads < 1 || o->threads > MAX_THREADS || o->depth < 0 ||
        o->n_items < 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "a loader cannot have batches of %d, %d threads (1 to %d) and %d slots",
                        o->batch, o->threads, MAX_THREADS, o->depth);
    const struct tdmi_preprocess *p = &o->preprocess;
    if (p->width < 1 || p->width > LARGEST_SIDE || p->height < 1 || p->height > LARGEST_SIDE ||
        p->channels < 1 || p->channels > 3)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "a loader cannot make pictures of %d x %d pixels and %d channels: sides of "
                        "1 to %d and 1 to 3 channels can be made",
                        p->height, p->width, p->channels, LARGEST_SIDE);
    return TDM_OK;
}

tdm_status tdmi_loader_open(const struct tdmi_loader_options *options, tdmi_loader **loader,
                            tdm_error *err)
{
    *loader = NULL;
    TDM_TRY(check_options(options, err), err, "cannot open a loader");
    tdmi_loader *opened = tdmi_alloc(1, sizeof *opened);
    if (opened == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for a loader");
    opened->options = *options;
    if (opened->options.depth == 0)
        opened->options.depth = DEFAULT_DEPTH;
    opened->picture_bytes = (size_t)options->preprocess.width * (size_t)options->preprocess.height *
                            (size_t)options->preprocess.channels;
    opened->order = (tdmi_order){
        .seed = options->seed, .n = options->n_items, .is_shuffled = options->is_shuffled};
    /* Nothing may be claimed before the first seek. */
    opened->claimed = opened->held = opened->next = options->n_items;

    tdm_status status = make_lock(opened, err);
    if (status == TDM_OK)
        status = allocate(opened, err);
    if (status == TDM_OK)
        status = start_threads(opened, err);
    if (status == TDM_OK)
        *loader = opened;
    else
        tdmi_loader_close(opened);
    return status;
}

static void free_slots(tdmi_loader *loader)
{
    for (int i = 0; loader->slots != NULL && i < loader->options.depth; i++) {
        struct slot *slot = &loader->slots[i];
        tdmi_free(slot->pixels);
        tdmi_free(slot->labels);
        tdmi_free(slot->items);
        tdmi_free(slot->samples);
        tdmi_free(slot->problems);
    }
    tdmi_free(loader->slots);
}

void tdmi_loader_close(tdmi_loader *loader)
{
    if (loader == NULL)
        return;
    if (loader->n_workers > 0) {
        pthread_mutex_lock(&loader->lock);
        loader->is_stopping = true;
        pthread_cond_broadcast(&loader->work);
        pthread_mutex_unlock(&loader->lock);
    }
    for (int i = 0; i < loader->n_workers; i++) {
        struct worker *worker = &loader->workers[i];
        pthread_join(worker->thread, NULL);
        tdmi_text_release(&worker->bytes);
        tdmi_preprocess_scratch_release(&worker->scratch);
    }
    free_slots(loader);
    tdmi_free(loader->workers);
    tdmi_free(loader->skips);
    tdmi_free(loader->is_skipped);
    if (loader->has_ready)
        pthread_cond_destroy(&loader->ready);
    if (loader->has_work)
        pthread_cond_destroy(&loader->work);
    if (loader->has_lock)
        pthread_mutex_destroy(&loader->lock);
    tdmi_free(loader);
}

/* ---- use ----------------------------------------------------------------------------------- */

static int batch_length(const tdmi_loader *loader, int64_t first)
{
    int64_t left = loader->options.n_items - first;
    return left < loader->options.batch ? (int)left : loader->options.batch;
}

static struct slot *slot_of(const tdmi_loader *loader, int64_t position)
{
    return &loader->slots[position / loader->options.batch % loader->options.depth];
}

tdm_status tdmi_loader_seek(tdmi_loader *loader, uint32_t epoch, int64_t position, tdm_error *err)
{
    int batch = loader->options.batch;
    int64_t n = loader->options.n_items;
    if (position < 0 || position > n || (position % batch != 0 && position != n))
        return TDM_FAIL(err, TDM_E_BUG,
                        "cannot begin at position %lld: a multiple of the batch of %d up to %lld "
                        "can be begun at",
                        (long long)position, batch, (long long)n);
    pthread_mutex_lock(&loader->lock);
    loader->is_seeking = true;
    while (loader->n_in_work > 0)
        pthread_cond_wait(&loader->ready, &loader->lock);
    loader->is_seeking = false;
    loader->has_begun = true;
    loader->epoch = epoch;
    loader->claimed = loader->held = loader->next = position;
    int64_t first = position;
    for (int i = 0; i < loader->options.depth && first < n; i++, first += batch)
        slot_of(loader, first)->n_missing = batch_length(loader, first);
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->lock);
    return TDM_OK;
}

/* The caller has moved past its batch: the slot waits for the batch that lies depth further on. */
static void let_go(tdmi_loader *loader)
{
    int batch = loader->options.batch;
    while (loader->held < loader->next) {
        int64_t later = loader->held + (int64_t)loader->options.depth * batch;
        if (later < loader->options.n_items)
            slot_of(loader, later)->n_missing = batch_length(loader, later);
        loader->held += batch_length(loader, loader->held);
    }
    pthread_cond_broadcast(&loader->work);
}

static void count_skips(tdmi_loader *loader, const struct slot *slot, int n)
{
    for (int i = 0; i < n; i++) {
        if (slot->problems[i][0] == '\0')
            continue;
        int64_t sample = slot->samples[i];
        uint8_t bit = (uint8_t)(1u << sample % 8);
        if ((loader->is_skipped[sample / 8] & bit) != 0)
            continue;
        loader->is_skipped[sample / 8] |= bit;
        if (loader->n_skipped < KEPT_SKIPS)
            memcpy(loader->skips[loader->n_skipped], slot->problems[i], TDMI_PROBLEM_BYTES);
        loader->n_skipped++;
    }
}

tdm_status tdmi_loader_next(tdmi_loader *loader, const struct tdmi_batch **batch, tdm_error *err)
{
    *batch = NULL;
    tdm_status status = TDM_OK;
    pthread_mutex_lock(&loader->lock);
    if (!loader->has_begun) {
        status = TDM_FAIL(err, TDM_E_BUG, "a loader has no next batch before its first seek");
        goto out;
    }
    let_go(loader);
    if (loader->next >= loader->options.n_items)
        goto out;
    struct slot *slot = slot_of(loader, loader->next);
    while (slot->n_missing > 0 && loader->failure.code == TDM_OK)
        pthread_cond_wait(&loader->ready, &loader->lock);
    if (loader->failure.code != TDM_OK) {
        if (err != NULL)
            *err = loader->failure;
        status = TDM_WRAP(err, loader->failure.code, "the loader stopped before position %lld",
                          (long long)loader->next);
        goto out;
    }
    int n = batch_length(loader, loader->next);
    count_skips(loader, slot, n);
    loader->batch =
        (struct tdmi_batch){.n = n,
                            .first = loader->next,
                            .pixels = slot->pixels,
                            .labels = slot->labels,
                            .items = slot->items,
                            .problems = (const char(*)[TDMI_PROBLEM_BYTES])slot->problems};
    loader->next += n;
    *batch = &loader->batch;
out:
    pthread_mutex_unlock(&loader->lock);
    return status;
}

int64_t tdmi_loader_skipped(const tdmi_loader *loader)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&loader->lock;
    pthread_mutex_lock(lock);
    int64_t n = loader->n_skipped;
    pthread_mutex_unlock(lock);
    return n;
}

bool tdmi_loader_skip_at(const tdmi_loader *loader, int64_t index, char *text, size_t text_bytes)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&loader->lock;
    pthread_mutex_lock(lock);
    bool is_kept = index >= 0 && index < KEPT_SKIPS && index < loader->n_skipped;
    if (is_kept)
        snprintf(text, text_bytes, "%s", loader->skips[index]);
    pthread_mutex_unlock(lock);
    return is_kept;
}
