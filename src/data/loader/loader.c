/*
 * One lock guards the assignment of work; pixels are written outside it.
 *
 *     position of the epoch   0 ......... held ......... claimed ............ n
 *                             consumed  │◄── depth slots of batch ──►│
 *
 * A thread claims the lowest position that nobody has, as long as its batch has a slot: batch b
 * lives in slot b mod n_slots, which is free once the caller has moved past batch b - depth; depth,
 * at most n_slots, is how many are in use now. The slot counts down its missing images; at zero the
 * caller may have it. So batches fill in order though images finish in any, and nothing depends on
 * which thread did what. (Claiming several positions at once was tried and gained nothing even on
 * images of 28 x 28.)
 *
 * Where another decoder is given files (image/decoder.h), a thread claims a few positions of one
 * batch, so that it passes on several at once.
 *
 * A seek forbids new claims, waits for the images in work (at most a claim a thread) and starts
 * again: no thread can then write into a slot that has another meaning by now.
 */
#include "data/loader/internal.h"

#include "base/clock.h"
#include "tandem/event.h"
#include "tandem/log.h"
#include <stdio.h>
#include <time.h>

static const double ns_per_second = 1e9;

/* ---- one image ----------------------------------------------------------------------------- */

/* The outermost sentence names the object, the innermost the cause. */
static void describe(char text[TDMI_PROBLEM_BYTES], const char *path, const tdm_error *problem)
{
    const char *outer = tdm_error_sentence(problem, problem->n_frames - 1);
    const char *cause = tdm_error_sentence(problem, 0);
    int length = snprintf(text, TDMI_PROBLEM_BYTES, "%s: %s%s%s", path, outer,
                          outer == cause ? "" : ": ", outer == cause ? "" : cause);
    if (length >= TDMI_PROBLEM_BYTES)
        memcpy(text + TDMI_PROBLEM_BYTES - 4, "...", 4);
}

/* The n positions of a batch that a thread claimed. */
struct claim {
    uint32_t epoch;
    int64_t position;
    int n, at; /* at: place of the first in the slot */
    struct tdmi_batch_slot *slot;
};

/* A position before its image is read. */
static void begin_place(const tdmi_loader *loader, const struct claim *claim, int i,
                        struct tdmi_picture_job *job)
{
    const struct tdmi_loader_options *options = &loader->options;
    struct tdmi_batch_slot *slot = claim->slot;
    const int64_t position = claim->position + i;
    const int at = claim->at + i;
    const int64_t sample = tdmi_order_at(loader->order, claim->epoch, position);
    const int64_t index = options->items != NULL ? options->items[sample] : sample;
    const struct tdmi_item item = tdmi_source_item(options->source, index);

    struct tdmi_augment_key key = {.seed = options->augment_seed,
                                   .epoch = claim->epoch,
                                   .sample = index,
                                   .repeat =
                                       tdmi_order_repeat(loader->order, claim->epoch, position)};
    if (options->views.n > 0) {
        key.content = tdmi_source_bytes_key(options->source, index, options->cache.hashes).number;
        key.view = options->views.given != NULL
                       ? options->views.given[sample]
                       : tdmi_order_view(loader->order, claim->epoch, position, options->views.n);
    }
    slot->samples[at] = sample;
    slot->items[at] = index;
    if (slot->keys != NULL)
        slot->keys[at] = key;
    slot->labels[at] = item.label;
    if (options->label_map != NULL && item.label >= 0)
        slot->labels[at] = options->label_map[item.label];
    slot->problems[at][0] = '\0';
    job->sample = sample;
    job->key = key;
    job->pixels = (uint8_t *)slot->values + (size_t)at * loader->pipeline.picture_bytes;
}

/* Record the result for one image. An error that is not the image's own (no memory, a store that
 * does not answer, a data set that has changed) fails the whole loader, because it would hit every
 * other image too. */
static tdm_status end_place(struct tdmi_loader_worker *worker, const struct claim *claim, int i,
                            tdm_status status, const tdm_error *problem, tdm_error *err)
{
    const tdmi_loader *loader = worker->loader;
    const struct tdmi_picture_job *job = &worker->scratch.jobs[i];
    struct tdmi_batch_slot *slot = claim->slot;
    const int at = claim->at + i;
    if (status == TDM_OK)
        return TDM_OK;
    const struct tdmi_item item = tdmi_source_item(loader->options.source, job->key.sample);
    if (tdmi_source_is_lost(status) || worker->scratch.is_changed) {
        *err = *problem;
        return TDM_WRAP(err, status, "cannot load '%s'", item.path);
    }
    describe(slot->problems[at], item.path, problem);
    slot->labels[at] = -1;
    memset(job->pixels, 0, loader->pipeline.picture_bytes);
    return TDM_OK;
}

/* Fill the positions. */
static tdm_status fill(struct tdmi_loader_worker *worker, const struct claim *claim, tdm_error *err)
{
    struct tdmi_picture_scratch *scratch = &worker->scratch;
    for (int i = 0; i < claim->n; i++) {
        tdm_error problem = {0};
        begin_place(worker->loader, claim, i, &scratch->jobs[i]);
        tdm_status status = tdmi_picture_begin(scratch, &scratch->jobs[i], &problem);
        TDMI_TRY(end_place(worker, claim, i, status, &problem, err));
    }
    TDM_TRY(tdmi_picture_run(scratch, claim->n, err), err, "cannot load %d images", claim->n);
    for (int i = 0; i < claim->n; i++) {
        tdm_error problem = {0};
        if (!scratch->jobs[i].is_waiting)
            continue;
        tdm_status status = tdmi_picture_end(scratch, &scratch->jobs[i], &problem);
        TDMI_TRY(end_place(worker, claim, i, status, &problem, err));
    }
    tdmi_picture_scratch_trim(scratch);
    return TDM_OK;
}

/* ---- parts of batches ---------------------------------------------------------------------- */

static int batch_length(const tdmi_loader *loader, int64_t first)
{
    int64_t left = loader->n_positions - first;
    return left < loader->options.batch ? (int)left : loader->options.batch;
}

/* Places of a batch that are read here; first is the position that it begins at. */
struct part {
    int first, n;
};

static struct part part_of(const tdmi_loader *loader, int64_t first)
{
    const struct tdmi_loader_part *own = &loader->options.part;
    const int n = batch_length(loader, first);
    int begin = 0, end = n;
    if (own->find != NULL)
        own->find(own->self, n, &begin, &end);
    return (struct part){begin, end - begin};
}

/* Go past positions that are not read here. */
static void skip_others(tdmi_loader *loader)
{
    const int batch = loader->options.batch;
    while (loader->claimed < loader->n_positions) {
        const int64_t first = loader->claimed / batch * batch;
        const struct part part = part_of(loader, first);
        if (loader->claimed < first + part.first)
            loader->claimed = first + part.first;
        if (loader->claimed < first + part.first + part.n)
            return;
        loader->claimed = first + batch_length(loader, first);
    }
}

/* ---- the threads --------------------------------------------------------------------------- */

static bool has_slot(const tdmi_loader *loader)
{
    return loader->claimed - loader->held < (int64_t)loader->tuning.depth * loader->options.batch;
}

/* May this thread claim now? */
static bool can_claim(const struct tdmi_loader_worker *worker)
{
    const tdmi_loader *loader = worker->loader;
    return worker->number < loader->tuning.threads && !loader->is_seeking &&
           loader->failure.code == TDM_OK && loader->claimed < loader->n_positions &&
           has_slot(loader);
}

/* Idle time is the number of idle threads added up over time. */
static void count_idle(tdmi_loader *loader, int change)
{
    int64_t now = tdmi_clock_ns();
    loader->now.ring_ns += loader->n_idle * (now - loader->idle_since_ns);
    loader->idle_since_ns = now;
    loader->n_idle += change;
}

static void wait_for_work(struct tdmi_loader_worker *worker)
{
    tdmi_loader *loader = worker->loader;
    bool is_idle = worker->number < loader->tuning.threads &&
                   loader->claimed < loader->n_positions && !has_slot(loader);
    if (is_idle)
        count_idle(loader, 1);
    pthread_cond_wait(&loader->work, &loader->lock);
    if (is_idle)
        count_idle(loader, -1);
}

static void take_times(tdmi_loader *loader, struct tdmi_stage_times *times)
{
    for (int i = 0; i < TDMI_STAGES; i++) {
        loader->times.pictures[i] += times->pictures[i];
        loader->times.bytes[i] += times->bytes[i];
        loader->times.ns[i] += times->ns[i];
    }
    loader->times.cached += times->cached;
    *times = (struct tdmi_stage_times){0};
}

static struct claim claim_more(tdmi_loader *loader)
{
    const int batch = loader->options.batch;
    const int64_t position = loader->claimed, first = position / batch * batch;
    const struct part part = part_of(loader, first);
    const int at = (int)(position - first) - part.first, left = part.n - at;
    const int n = left < loader->at_once ? left : loader->at_once;
    loader->claimed += n;
    skip_others(loader);
    return (struct claim){loader->epoch, position, n, at,
                          &loader->slots[position / batch % loader->n_slots]};
}

void *tdmi_loader_work(void *self)
{
    struct tdmi_loader_worker *worker = self;
    tdmi_loader *loader = worker->loader;
    tdm_error err = {0};
    if (loader->options.placement)
        tdmi_placement_enter(loader->options.placement);
    pthread_mutex_lock(&loader->lock);
    for (;;) {
        while (!loader->is_stopping && !can_claim(worker))
            wait_for_work(worker);
        if (loader->is_stopping)
            break;
        const struct claim claim = claim_more(loader);
        loader->n_in_work++;
        pthread_mutex_unlock(&loader->lock);

        tdm_status status = fill(worker, &claim, &err);

        pthread_mutex_lock(&loader->lock);
        loader->n_in_work--;
        take_times(loader, &worker->scratch.times);
        if (status != TDM_OK && loader->failure.code == TDM_OK)
            loader->failure = err;
        claim.slot->n_missing -= status == TDM_OK ? claim.n : 0;
        bool is_full = status == TDM_OK && claim.slot->n_missing == 0;
        if (is_full || loader->failure.code != TDM_OK ||
            (loader->is_seeking && loader->n_in_work == 0))
            pthread_cond_signal(&loader->ready);
    }
    pthread_mutex_unlock(&loader->lock);
    return NULL;
}

/* ---- tuning -------------------------------------------------------------------------------- */

static void begin_stretch(tdmi_loader *loader)
{
    loader->measured = loader->now;
    loader->measured.n_batches = loader->n_handed_out;
}

/* Evaluate the stretch since the last call, if it is long enough to mean something. */
static void tune(tdmi_loader *loader)
{
    enum { batches_enough = 4 };
    static const double seconds_enough = 0.25;
    const struct tdmi_loader_clock *now = &loader->now, *then = &loader->measured;
    struct tdmi_tuning_sample sample = {
        .seconds = (double)(now->at_ns - then->at_ns) / ns_per_second,
        .consumer_waits = (double)(now->consumer_ns - then->consumer_ns) / ns_per_second,
        .ring_waits = (double)(now->ring_ns - then->ring_ns) / ns_per_second,
    };
    if (loader->n_handed_out - then->n_batches < batches_enough || sample.seconds < seconds_enough)
        return;
    const char *why = tdmi_tuning_step(&loader->tuning, &sample);
    begin_stretch(loader);
    if (why == NULL)
        return;
    tdm_log(TDM_LOG_DEBUG,
            "the loader continues with %d of %d threads and %d of %d slots: %s (%.0f %% of the "
            "time waiting for batches, %.1f threads without work)",
            loader->tuning.threads, loader->tuning.most_threads, loader->tuning.depth,
            loader->tuning.most_depth, why, 100.0 * sample.consumer_waits / sample.seconds,
            sample.ring_waits / sample.seconds);
}

/* ---- use ----------------------------------------------------------------------------------- */

static struct tdmi_batch_slot *slot_of(const tdmi_loader *loader, int64_t position)
{
    return &loader->slots[position / loader->options.batch % loader->n_slots];
}

tdm_status tdmi_loader_seek(tdmi_loader *loader, uint32_t epoch, int64_t position, tdm_error *err)
{
    int batch = loader->options.batch;
    int64_t n = loader->n_positions;
    if (position < 0 || position > n || (position % batch != 0 && position != n))
        return TDM_FAIL(err, TDM_E_BUG,
                        "cannot begin at position %lld: multiples of the batch of %d up to %lld "
                        "are possible",
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
    for (int i = 0; i < loader->n_slots && first < n; i++, first += batch)
        slot_of(loader, first)->n_missing = part_of(loader, first).n;
    skip_others(loader);
    loader->delivered_ns = tdmi_clock_ns();
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->lock);
    return TDM_OK;
}

/* The caller has moved past its batch: the slot waits for the batch n_slots later. */
static void free_slot(tdmi_loader *loader)
{
    int batch = loader->options.batch;
    while (loader->held < loader->next) {
        int64_t later = loader->held + (int64_t)loader->n_slots * batch;
        if (later < loader->n_positions)
            slot_of(loader, later)->n_missing = part_of(loader, later).n;
        loader->held += batch_length(loader, loader->held);
    }
    pthread_cond_broadcast(&loader->work);
}

static tdm_status count_skips(tdmi_loader *loader, const struct tdmi_batch_slot *slot,
                              struct part part, tdm_error *err)
{
    for (int i = 0; i < part.n; i++) {
        if (slot->problems[i][0] == '\0')
            continue;
        TDM_TRY(tdmi_lost_rows_add(&loader->lost, loader->options.source, slot->items[i],
                                   slot->problems[i], err),
                err, "the loader stopped at position %lld", (long long)loader->next);
        int64_t sample = slot->samples[i];
        uint8_t bit = (uint8_t)(1u << sample % 8);
        if ((loader->is_skipped[sample / 8] & bit) != 0)
            continue;
        loader->is_skipped[sample / 8] |= bit;
        if (loader->n_skipped < TDMI_KEPT_SKIPS) {
            struct tdmi_skip *skip = &loader->skips[loader->n_skipped];
            skip->item = slot->items[i];
            skip->epoch = loader->epoch;
            skip->position = loader->next + part.first + i;
            memcpy(skip->text, slot->problems[i], sizeof skip->text);
        }
        loader->n_skipped++;
    }
    return TDM_OK;
}

/* Wait until the slot is full, all failed, or a stop is requested. A signal handler can only raise
 * the flag, so it is checked ten times a second. */
static tdm_status wait_for(tdmi_loader *loader, const struct tdmi_batch_slot *slot, tdm_error *err)
{
    enum { look_ns = 100000000, second_ns = 1000000000 };
    while (slot->n_missing > 0 && loader->failure.code == TDM_OK) {
        if (!loader->options.waits_on && tdm_stop_is_requested())
            return TDM_FAIL(err, TDM_E_STOPPED,
                            "stopped on request while waiting for the images from position %lld",
                            (long long)loader->next);
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += look_ns;
        if (until.tv_nsec >= second_ns) {
            until.tv_nsec -= second_ns;
            until.tv_sec++;
        }
        pthread_cond_timedwait(&loader->ready, &loader->lock, &until);
    }
    return TDM_OK;
}

/* The first batch after a seek is waited for in any case, which shows nothing about what suffices.
 */
static void count_batch(tdmi_loader *loader, int64_t called_ns, bool is_first)
{
    int64_t now = tdmi_clock_ns();
    count_idle(loader, 0);
    loader->now.at_ns += now - loader->delivered_ns;
    loader->now.consumer_ns += now - called_ns;
    loader->delivered_ns = now;
    loader->n_handed_out++;
    if (loader->is_undecided)
        tdmi_loader_decide(loader);
    if (!loader->options.is_tuned)
        return;
    if (is_first)
        begin_stretch(loader);
    else
        tune(loader);
}

/* Called with the lock held. */
static tdm_status next_batch(tdmi_loader *loader, const struct tdmi_batch **batch, tdm_error *err)
{
    const int64_t called_ns = tdmi_clock_ns();
    if (!loader->has_begun)
        return TDM_FAIL(err, TDM_E_BUG, "a loader has no next batch before its first seek");
    bool is_first = loader->held == loader->next;
    free_slot(loader);
    if (loader->next >= loader->n_positions)
        return TDM_OK;
    struct tdmi_batch_slot *slot = slot_of(loader, loader->next);
    TDMI_TRY(wait_for(loader, slot, err));
    if (loader->failure.code != TDM_OK) {
        if (err != NULL)
            *err = loader->failure;
        return TDM_WRAP(err, loader->failure.code, "the loader stopped before position %lld",
                        (long long)loader->next);
    }
    const int n = batch_length(loader, loader->next);
    const struct part part = part_of(loader, loader->next);
    TDMI_TRY(count_skips(loader, slot, part, err));
    count_batch(loader, called_ns, is_first);
    loader->batch =
        (struct tdmi_batch){.n = part.n,
                            .whole = {part.first, n},
                            .first = loader->next + part.first,
                            .values = slot->values,
                            .pixels = slot->values,
                            .labels = slot->labels,
                            .items = slot->items,
                            .keys = slot->keys,
                            .problems = (const char(*)[TDMI_PROBLEM_BYTES])slot->problems};
    loader->next += n;
    loader->n_pictures += part.n;
    *batch = &loader->batch;
    return TDM_OK;
}

tdm_status tdmi_loader_next(tdmi_loader *loader, const struct tdmi_batch **batch, tdm_error *err)
{
    *batch = NULL;
    pthread_mutex_lock(&loader->lock);
    const tdm_status status = next_batch(loader, batch, err);
    pthread_mutex_unlock(&loader->lock);
    return status;
}

/* ---- queries ------------------------------------------------------------------------------- */

bool tdmi_loader_skip_at(const tdmi_loader *loader, int64_t index, struct tdmi_skip *skip)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&loader->lock;
    pthread_mutex_lock(lock);
    bool is_kept = index >= 0 && index < TDMI_KEPT_SKIPS && index < loader->n_skipped;
    if (is_kept)
        *skip = loader->skips[index];
    pthread_mutex_unlock(lock);
    return is_kept;
}

static struct tdmi_stage_rate rate_of(const struct tdmi_stage_times *times, int stage)
{
    return (struct tdmi_stage_rate){.pictures = times->pictures[stage],
                                    .bytes = times->bytes[stage],
                                    .seconds = (double)times->ns[stage] / ns_per_second};
}

void tdmi_loader_rates(const tdmi_loader *loader, struct tdmi_loader_rates *rates)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&loader->lock;
    pthread_mutex_lock(lock);
    const struct tdmi_stage_times *times = &loader->times;
    *rates = (struct tdmi_loader_rates){
        .read = rate_of(times, TDMI_STAGE_READ),
        .decode = rate_of(times, TDMI_STAGE_DECODE),
        .augment = rate_of(times, TDMI_STAGE_AUGMENT),
        .cached = times->cached,
        .pictures = loader->n_pictures,
        .seconds = (double)loader->now.at_ns / ns_per_second,
        .consumer_waits = (double)loader->now.consumer_ns / ns_per_second,
        .ring_waits = (double)loader->now.ring_ns / ns_per_second,
        .threads = loader->tuning.threads,
        .depth = loader->tuning.depth,
        .most_threads = loader->most_threads,
        .n_slots = loader->n_slots,
        .memory_bytes = loader->memory_bytes,
        .cache = loader->cache,
    };
    pthread_mutex_unlock(lock);
    double busy = rates->read.seconds + rates->decode.seconds + rates->augment.seconds;
    if (busy > 0.0)
        rates->ceiling_per_second = rates->threads * (double)rates->read.pictures / busy;
}

const char *tdmi_loader_cache_note(const tdmi_loader *loader)
{
    return loader->cache_note;
}
