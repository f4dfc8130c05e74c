/*
 * The rate of the loader and, interleaved with it, its ceiling: the rate of decoding alone. Every
 * round of the loader begins with an empty ring and ends when the last batch is taken, and its
 * threads rest while the ceiling is measured, so neither slows the other.
 */
#include "base/clock.h"
#include "base/sized.h"
#include "base/thread.h"
#include "data/loader/loader.h"
#include "data/order/order.h"
#include "tandem/bench.h"
#include "tandem/event.h"
#include "tune/bench_rate.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_ROUNDS = 9,
    WARM_UP = 1,          /* rounds that do not count */
    EPOCH_AT_LEAST = 4096 /* smaller sources are repeated: the end of an epoch empties the ring */
};
static const int64_t preload_bytes = (int64_t)256 << 20;

/* Memory of one thread of the ceiling. */
struct thread_state {
    struct tdmi_preprocess_scratch scratch;
    tdmi_image shown; /* in the size of the table */
    uint8_t *pixels;
};

struct bench {
    const struct tdm_bench_loader_options *options;
    struct tdmi_preprocess preprocess;
    struct tdmi_preprocess geometry; /* of a table of originals; width 0: none */
    tdmi_source *source;
    struct tdmi_placement placement;
    tdmi_pool *pool;
    bool is_raw;
    int64_t n_items; /* of the source */
    int64_t *items;  /* what the loader reads; repeated */
    int64_t n_positions;
    bool *is_bad; /* by item: found undecodable */
    tdmi_order order;
    tdmi_loader *loader;
    uint32_t epoch; /* where the next round begins */
    int64_t position;
    tdmi_text *files; /* of the first images in that order */
    int64_t *file_items;
    int64_t n_files;
    struct thread_state *thread_states;
    int64_t until_ns; /* of the ceiling's round */
    atomic_llong next_file, n_done;
    double rates[3][MAX_ROUNDS];     /* loader, ceiling, their ratio */
    double processor[3][MAX_ROUNDS]; /* the same, per second of CPU time */
};

void tdm_bench_loader_options_init(struct tdm_bench_loader_options *options, size_t struct_bytes)
{
    static const struct tdm_bench_loader_options usual = {
        .size = 224, .batch = 64, .seconds = 5, .seed = 42};
    tdmi_options_init(options, struct_bytes, &usual, sizeof usual);
}

static tdm_status check(const struct tdm_bench_loader_options *o, tdm_error *err)
{
    if (o->size < 1 || o->size > 4096 || o->batch < 1 || o->batch > 65536 || o->threads < 0 ||
        !(o->seconds >= 0.5 && o->seconds <= 3600))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "a loader is measured with images of 1 to 4096 pixels, batches of 1 to "
                        "65536 and for 0.5 to 3600 seconds; found %d, %d and %g",
                        o->size, o->batch, o->seconds);
    return TDM_OK;
}

/* ---- preparing ------------------------------------------------------------------------------- */

static tdm_status open_source(struct bench *it, tdm_error *err)
{
    const struct tdm_bench_loader_options *o = it->options;
    TDM_TRY(tdmi_source_open(o->source, &o->how, &it->source, err), err,
            "opening the images to load");
    TDM_TRY(tdmi_placement_here(o->threads, &it->placement, err), err, "choosing threads");
    TDM_TRY(tdmi_pool_new(it->placement.loader_threads, &it->placement, &it->pool, err), err,
            "starting threads");
    it->n_items = tdmi_source_items(it->source);
    it->preprocess = (struct tdmi_preprocess){.width = o->size,
                                              .height = o->size,
                                              .channels = 3,
                                              .fit = TDMI_FIT_PAD,
                                              .crop_fraction = 1,
                                              .filter = TDMI_FILTER_LANCZOS,
                                              .scale = TDMI_SCALE_TF,
                                              .uses_draft = true};
    struct tdmi_raw_shape raw;
    it->is_raw =
        tdmi_source_raw_shape(it->source, &raw) && raw.width == o->size && raw.height == o->size;
    if (it->is_raw)
        it->preprocess.channels = raw.channels;
    if (!tdmi_source_geometry(it->source, &it->geometry))
        it->geometry = (struct tdmi_preprocess){0};
    return TDM_OK;
}

static tdm_status make_order(struct bench *it, tdm_error *err)
{
    bool has_groups = tdmi_order_has_groups(it->source);
    int64_t repeats =
        has_groups || it->n_items >= EPOCH_AT_LEAST ? 1 : EPOCH_AT_LEAST / it->n_items + 1;
    it->n_positions = repeats * it->n_items;
    TDMI_TRY(TDMI_NEW(it->items, it->n_positions, err));
    TDMI_TRY(TDMI_NEW(it->is_bad, it->n_items, err));
    for (int64_t i = 0; i < it->n_positions; i++)
        it->items[i] = i % it->n_items;
    it->order = (tdmi_order){.seed = it->options->seed, .n = it->n_positions, .is_shuffled = true};
    if (!has_groups)
        return TDM_OK;
    return tdmi_order_init_source(&it->order, it->source, NULL, it->n_items, it->options->seed,
                                  err);
}

static tdm_status open_loader(struct bench *it, tdm_error *err)
{
    struct tdmi_loader_options loader = {.source = it->source,
                                         .preprocess = it->preprocess,
                                         .augment_seed = it->options->seed,
                                         .items = it->items,
                                         .n_items = it->n_positions,
                                         .order = &it->order,
                                         .batch = it->options->batch,
                                         .threads = tdmi_pool_threads(it->pool),
                                         .placement = &it->placement};
    TDM_TRY(tdmi_augment_read(it->options->augment != NULL ? it->options->augment : "",
                              &loader.augment, err),
            err, "reading the augmentation");
    if (tdmi_augment_has_mix(&loader.augment))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "mixup and cutmix are work of a training's step, not of the loader; "
                        "leave them out of '%s'",
                        it->options->augment);
    return tdmi_loader_open(&loader, &it->loader, err);
}

/* The files in the order of the first epoch, each once, as many as the room allows. */
static tdm_status preload(struct bench *it, tdm_error *err)
{
    int64_t held = 0;
    TDMI_AT_END(tdmi_free_at) bool *is_here = NULL;
    TDMI_TRY(TDMI_NEW(is_here, it->n_items, err));
    TDMI_TRY(TDMI_NEW(it->files, it->n_items, err));
    TDMI_TRY(TDMI_NEW(it->file_items, it->n_items, err));
    for (int64_t p = 0; p < it->n_positions && held < preload_bytes; p++) {
        const int64_t item = it->items[tdmi_order_at(&it->order, 0, p)];
        if (is_here[item])
            continue;
        if (tdm_stop_is_requested())
            return TDM_FAIL(err, TDM_E_STOPPED, "stopped on request while reading images");
        is_here[item] = true;
        tdmi_text *file = &it->files[it->n_files];
        if (tdmi_source_read(it->source, item, file, NULL) != TDM_OK) {
            it->is_bad[item] = true;
            continue;
        }
        it->file_items[it->n_files++] = item;
        held += (int64_t)file->length_bytes;
    }
    return TDM_OK;
}

static tdm_status make_thread_states(struct bench *it, tdm_error *err)
{
    const int threads = tdmi_pool_threads(it->pool);
    const size_t bytes = (size_t)it->preprocess.width * (size_t)it->preprocess.height * 3;
    TDMI_TRY(TDMI_NEW(it->thread_states, threads, err));
    for (int i = 0; i < threads; i++)
        if ((it->thread_states[i].pixels = tdmi_alloc_aligned(bytes)) == NULL)
            return TDM_FAIL(err, TDM_E_MEMORY, "no memory for %d images", threads);
    return TDM_OK;
}

static void release(struct bench *it)
{
    for (int i = 0; it->thread_states != NULL && i < tdmi_pool_threads(it->pool); i++) {
        tdmi_preprocess_scratch_release(&it->thread_states[i].scratch);
        tdmi_image_release(&it->thread_states[i].shown);
        tdmi_free(it->thread_states[i].pixels);
    }
    for (int64_t i = 0; it->files != NULL && i < it->n_items; i++)
        tdmi_text_release(&it->files[i]);
    tdmi_free(it->thread_states);
    tdmi_free(it->files);
    tdmi_free(it->file_items);
    tdmi_loader_close(it->loader);
    tdmi_order_release(&it->order);
    tdmi_free(it->is_bad);
    tdmi_free(it->items);
    tdmi_pool_free(it->pool);
    tdmi_placement_release(&it->placement);
    tdmi_source_close(it->source);
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* One round of the loader; rates in good images per second. */
static tdm_status run_loader(struct bench *it, double seconds, int round, int64_t *n_images,
                             tdm_error *err)
{
    double processor = tdmi_cpu_seconds();
    int64_t start = tdmi_clock_ns(), n_good = 0;
    double took = 0.0;
    TDM_TRY(tdmi_loader_seek(it->loader, it->epoch, it->position, err), err, "loading images");
    while (took < seconds) {
        const struct tdmi_batch *batch;
        TDM_TRY(tdmi_loader_next(it->loader, &batch, err), err, "loading images");
        if (batch == NULL) {
            it->position = 0;
            TDM_TRY(tdmi_loader_seek(it->loader, ++it->epoch, 0, err), err, "loading images");
            continue;
        }
        took = tdmi_clock_seconds_since(start);
        it->position += batch->n;
        for (int i = 0; i < batch->n; i++) {
            n_good += batch->problems[i][0] == '\0';
            it->is_bad[batch->items[i]] |= batch->problems[i][0] != '\0';
        }
        if (tdm_stop_is_requested())
            return TDM_FAIL(err, TDM_E_STOPPED, "stopped on request while loading images");
    }
    it->rates[0][round] = (double)n_good / took;
    it->processor[0][round] = (double)n_good / (tdmi_cpu_seconds() - processor);
    *n_images += n_good;
    return tdmi_loader_seek(it->loader, it->epoch, it->n_positions, err); /* rest */
}

static tdm_status decode(const struct bench *it, struct thread_state *state, int64_t item,
                         const tdmi_text *file)
{
    const bool has_table = it->geometry.width > 0;
    if (has_table)
        TDMI_TRY(tdmi_image_reshape(&state->shown, it->geometry.width, it->geometry.height, NULL));
    TDMI_TRY(tdmi_preprocess_file(has_table ? &it->geometry : &it->preprocess,
                                  tdmi_text_string(file), file->length_bytes,
                                  tdmi_source_item(it->source, item).path, &state->scratch,
                                  has_table ? state->shown.pixels : state->pixels, NULL));
    return has_table ? tdmi_preprocess_image(&it->preprocess, &state->shown, &state->scratch,
                                             state->pixels, NULL)
                     : TDM_OK;
}

/* A thread of the ceiling: one image after the other until the time is over. */
static tdm_status decode_on(void *self, int index, int worker, tdm_error *err)
{
    struct bench *it = self;
    struct thread_state *state = &it->thread_states[index];
    (void)worker, (void)err;
    while (tdmi_clock_ns() < it->until_ns && !tdm_stop_is_requested()) {
        int64_t i = atomic_fetch_add(&it->next_file, 1) % it->n_files;
        int64_t item = it->file_items[i];
        const tdmi_text *file = &it->files[i];
        tdm_status status = it->is_raw ? tdmi_source_read_raw(it->source, item, state->pixels, NULL)
                                       : decode(it, state, item, file);
        if (status == TDM_OK)
            atomic_fetch_add(&it->n_done, 1);
    }
    return TDM_OK;
}

static tdm_status run_ceiling(struct bench *it, double seconds, int round, tdm_error *err)
{
    double processor = tdmi_cpu_seconds();
    it->rates[1][round] = it->processor[1][round] = 0.0;
    if (it->n_files == 0)
        return TDM_OK;
    int64_t start = tdmi_clock_ns();
    it->until_ns = start + (int64_t)(seconds * 1e9);
    atomic_store(&it->n_done, 0);
    TDM_TRY(tdmi_pool_run(it->pool, tdmi_pool_threads(it->pool), decode_on, it, err), err,
            "decoding images");
    double n_done = (double)atomic_load(&it->n_done);
    it->rates[1][round] = n_done / tdmi_clock_seconds_since(start);
    it->processor[1][round] = n_done / (tdmi_cpu_seconds() - processor);
    return TDM_OK;
}

static struct tdm_bench_stage stage_of(const struct tdmi_stage_rate *rate)
{
    return (struct tdm_bench_stage){rate->pictures, rate->bytes, rate->seconds};
}

static void fill_result(struct bench *it, struct tdm_bench_loader *result)
{
    struct tdmi_loader_rates rates;
    tdmi_loader_rates(it->loader, &rates);
    result->loader = tdmi_bench_spread(it->rates[0], result->rounds);
    result->ceiling = tdmi_bench_spread(it->rates[1], result->rounds);
    result->loader_processor = tdmi_bench_spread(it->processor[0], result->rounds);
    result->ceiling_processor = tdmi_bench_spread(it->processor[1], result->rounds);
    result->fraction = tdmi_bench_spread(it->rates[2], result->rounds);
    result->fraction_processor = tdmi_bench_spread(it->processor[2], result->rounds);
    if (result->loader.median > 0.0)
        result->milliseconds = 1e3 * it->options->batch / result->loader.median;
    result->threads = tdmi_pool_threads(it->pool);
    result->others = tdmi_source_ignored(it->source);
    result->source_images = it->n_items;
    result->is_raw = it->is_raw;
    result->uses_draft = it->preprocess.uses_draft;
    for (int64_t i = 0; i < it->n_items; i++)
        result->skipped += it->is_bad[i];
    result->read = stage_of(&rates.read);
    result->decode = stage_of(&rates.decode);
    result->augment = stage_of(&rates.augment);
    result->consumer_wait_seconds = rates.consumer_waits;
    result->ring_wait_seconds = rates.ring_waits;
    snprintf(result->kind, sizeof result->kind, "%s", tdmi_source_kind(it->source));
}

static tdm_status measure(struct bench *it, struct tdm_bench_loader *result, tdm_error *err)
{
    /* Rounds of a quarter of a second at least, an odd number of them, so that one is the median.
     */
    double seconds = it->options->seconds;
    int rounds = seconds < 1.5 ? 1 : seconds < 4 ? 3 : seconds < 10 ? 5 : MAX_ROUNDS;
    double one = seconds / (2 * (rounds + WARM_UP));
    int64_t warm_up_images = 0;
    for (int r = -WARM_UP; r < rounds; r++) {
        int at = r < 0 ? 0 : r;
        int64_t *images = r < 0 ? &warm_up_images : &result->images;
        TDM_TRY(run_loader(it, one, at, images, err), err, "measuring the loader");
        TDM_TRY(run_ceiling(it, one, at, err), err, "measuring the ceiling");
        if (it->rates[1][at] > 0.0)
            it->rates[2][at] = it->rates[0][at] / it->rates[1][at];
        if (it->processor[1][at] > 0.0)
            it->processor[2][at] = it->processor[0][at] / it->processor[1][at];
    }
    result->rounds = rounds;
    fill_result(it, result);
    return TDM_OK;
}

static tdm_status bench(struct bench *it, struct tdm_bench_loader *result, tdm_error *err)
{
    TDMI_TRY(check(it->options, err));
    TDMI_TRY(open_source(it, err));
    TDMI_TRY(make_order(it, err));
    TDMI_TRY(open_loader(it, err));
    TDMI_TRY(preload(it, err));
    TDMI_TRY(make_thread_states(it, err));
    return measure(it, result, err);
}

tdm_status tdm_bench_loader(const struct tdm_bench_loader_options *options,
                            struct tdm_bench_loader *result, tdm_error *err)
{
    TDMI_OPTIONS(tdm_bench_loader_options, options, tdm_bench_loader_options_default(), err);
    TDMI_RESULT(tdm_bench_loader, result, err);
    TDMI_AT_END(release) struct bench it = {.options = options};
    return TDM_WRAP(err, bench(&it, result, err), "cannot measure how fast %s is loaded",
                    options->source ? options->source : "nothing");
}
