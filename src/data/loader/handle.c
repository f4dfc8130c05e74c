/* The loader of tandem/data.h: a source, the items of one part, their order, and the ring. */
#include "base/sized.h"
#include "base/thread.h"
#include "data/audit/contents.h"
#include "data/audit/split.h"
#include "data/loader/loader.h"

#include <string.h>

struct tdm_loader {
    tdmi_source *source;
    int64_t *items, n_items;
    int per_batch; /* images */
    tdmi_order order;
    tdmi_loader *loader;
    struct tdm_batch batch;
};

void tdm_loader_options_init(struct tdm_loader_options *options, size_t struct_bytes)
{
    static const struct tdm_loader_options usual = {
        .size = 224, .channels = 3, .batch = 32, .is_shuffled = true, .seed = 42};
    tdmi_options_init(options, struct_bytes, &usual, sizeof usual);
}

TDMI_POINTER_RELEASE(tdm_loader, tdm_loader_close)

static tdm_status check(const struct tdm_loader_options *options, tdm_error *err)
{
    const bool is_fine = options->source && options->size >= 1 && options->size <= 4096 &&
                         (options->channels == 1 || options->channels == 3) &&
                         options->batch >= 1 && options->batch <= 65536 && options->threads >= 0 &&
                         options->part >= TDM_PART_ALL && options->part <= TDM_PART_TEST;
    if (is_fine && options->train_fraction + options->val_fraction + options->test_fraction > 0.0 &&
        options->part == TDM_PART_ALL)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "fractions divide the images, and no part was named; part train, val or "
                        "test is accepted with them");
    if (is_fine)
        return TDM_OK;
    return TDM_FAIL(
        err, TDM_E_USAGE,
        "size is %d, channels %d, batch %d, threads %d, part %d; a source, 1 to 4096, 1 "
        "or 3, 1 to 65536, 0 or more, and 0 to 3 are accepted",
        options->size, options->channels, options->batch, options->threads, (int)options->part);
}

static int usable_threads(const struct tdm_loader_options *options)
{
    return options->threads > 0 ? options->threads : tdmi_cpus_usable();
}

struct divided {
    tdmi_pool *pool;
    tdmi_contents contents;
    tdmi_split split;
};

static void divided_release(struct divided *divided)
{
    tdmi_split_release(&divided->split);
    tdmi_contents_release(&divided->contents);
    tdmi_pool_free(divided->pool);
}

/* The items of a part of the split that a training with this seed would make. */
static tdm_status divide(struct tdm_loader *loader, const struct tdm_loader_options *options,
                         tdm_error *err)
{
    TDMI_AT_END(divided_release) struct divided divided = {0};
    const tdmi_split *split = &divided.split;
    TDMI_TRY(tdmi_pool_new(usable_threads(options), NULL, &divided.pool, err));
    TDMI_TRY(tdmi_contents_read(loader->source, divided.pool, "reading images", (tdm_sink){0},
                                &divided.contents, err));
    TDMI_TRY(tdmi_split_make(loader->source, &divided.contents,
                             (struct tdmi_split_options){.train_fraction = options->train_fraction,
                                                         .val_fraction = options->val_fraction,
                                                         .test_fraction = options->test_fraction,
                                                         .fraction = 1,
                                                         .seed = options->seed},
                             (struct tdmi_split_stored){0}, &divided.split, err));
    const struct {
        const int64_t *items;
        int64_t n;
    } parts[] = {[TDM_PART_TRAIN] = {split->train, split->n_train},
                 [TDM_PART_VAL] = {split->val, split->n_val},
                 [TDM_PART_TEST] = {split->test, split->n_test}};
    loader->n_items = parts[options->part].n;
    if (loader->n_items > 0)
        memcpy(loader->items, parts[options->part].items,
               (size_t)loader->n_items * sizeof *loader->items);
    return TDM_OK;
}

static tdm_status choose_items(struct tdm_loader *loader, const struct tdm_loader_options *options,
                               tdm_error *err)
{
    const enum tdm_part part = options->part;
    const int64_t n = tdmi_source_items(loader->source);
    TDMI_TRY(TDMI_NEW(loader->items, n, err));
    if (options->train_fraction + options->val_fraction + options->test_fraction > 0.0) {
        TDMI_TRY(divide(loader, options, err));
    } else {
        for (int64_t i = 0; i < n; i++)
            if (part == TDM_PART_ALL || (int)tdmi_source_item(loader->source, i).part == (int)part)
                loader->items[loader->n_items++] = i;
    }
    if (loader->n_items == 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the source gives no image of this part; folders train, val and test, a "
                        "column of a table, or fractions divide one");
    return TDM_OK;
}

static tdm_status open_parts(struct tdm_loader *loader, const struct tdm_loader_options *options,
                             tdm_error *err)
{
    struct tdmi_loader_options own = {.preprocess = {.width = options->size,
                                                     .height = options->size,
                                                     .channels = options->channels,
                                                     .fit = TDMI_FIT_PAD,
                                                     .crop_fraction = 1,
                                                     .filter = TDMI_FILTER_LANCZOS,
                                                     .scale = TDMI_SCALE_TF,
                                                     .uses_draft = true},
                                      .augment_seed = options->seed,
                                      .batch = options->batch,
                                      .memory_bytes = options->memory};
    TDMI_TRY(check(options, err));
    if (options->augment && strcmp(options->augment, "auto") == 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "option augment is auto, which a training chooses by its images and its "
                        "network; none or a list such as flip,resized-crop is accepted");
    TDMI_TRY(tdmi_augment_read(options->augment ? options->augment : "", &own.augment, err));
    if (tdmi_augment_has_mix(&own.augment))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "mixup and cutmix are part of a training step; leave them out of '%s'",
                        options->augment);
    TDMI_TRY(tdmi_source_open(options->source, &options->how, &loader->source, err));
    TDMI_TRY(choose_items(loader, options, err));
    loader->order = (tdmi_order){
        .seed = options->seed, .n = loader->n_items, .is_shuffled = options->is_shuffled};
    if (options->is_shuffled && tdmi_order_has_groups(loader->source))
        TDMI_TRY(tdmi_order_init_source(&loader->order, loader->source, loader->items,
                                        loader->n_items, options->seed, err));
    own.source = loader->source;
    own.items = loader->items;
    own.n_items = loader->n_items;
    own.order = &loader->order;
    own.threads = usable_threads(options);
    loader->per_batch = options->batch;
    return tdmi_loader_open(&own, &loader->loader, err);
}

tdm_status tdm_loader_open(const struct tdm_loader_options *options, tdm_loader **loader,
                           tdm_error *err)
{
    TDMI_OPTIONS(tdm_loader_options, options, tdm_loader_options_default(), err);
    TDMI_AT_END(tdm_loader_close_at) tdm_loader *made = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    TDM_TRY(open_parts(made, options, err), err, "opening a loader on %s",
            options->source ? options->source : "nothing");
    TDMI_TRY(tdm_loader_begin(made, 0, err));
    *loader = tdmi_take(&made);
    return TDM_OK;
}

void tdm_loader_close(tdm_loader *loader)
{
    if (!loader)
        return;
    tdmi_loader_close(loader->loader);
    tdmi_order_release(&loader->order);
    tdmi_source_close(loader->source);
    tdmi_free(loader->items);
    tdmi_free(loader);
}

int64_t tdm_loader_images(const tdm_loader *loader)
{
    return loader->n_items;
}

int tdm_loader_classes(const tdm_loader *loader)
{
    return tdmi_source_classes(loader->source);
}

const char *tdm_loader_class(const tdm_loader *loader, int index)
{
    return index >= 0 && index < tdm_loader_classes(loader)
               ? tdmi_source_class(loader->source, index)
               : NULL;
}

tdm_status tdm_loader_begin(tdm_loader *loader, int epoch, tdm_error *err)
{
    return tdm_loader_seek(loader, epoch, 0, err);
}

tdm_status tdm_loader_seek(tdm_loader *loader, int epoch, int64_t position, tdm_error *err)
{
    const int64_t n = loader->n_items;
    if (epoch < 0 || position < 0 || position > n ||
        (position % loader->per_batch != 0 && position != n))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "cannot go to position %lld of epoch %d: an epoch of 0 or more, and a "
                        "multiple of the batch of %d up to %lld are accepted",
                        (long long)position, epoch, loader->per_batch, (long long)n);
    return tdmi_loader_seek(loader->loader, (uint32_t)epoch, position, err);
}

tdm_status tdm_loader_next(tdm_loader *loader, const struct tdm_batch **batch, tdm_error *err)
{
    const struct tdmi_batch *next;
    *batch = NULL;
    TDM_TRY(tdmi_loader_next(loader->loader, &next, err), err, "loading a batch");
    if (!next)
        return TDM_OK;
    loader->batch = (struct tdm_batch){
        .n = next->n, .pixels = next->pixels, .labels = next->labels, .items = next->items};
    *batch = &loader->batch;
    return TDM_OK;
}
