/* The loader of tandem/data.h: a source, the items of one part, their order, and the ring. */
#include "base/sized.h"
#include "base/thread.h"
#include "data/loader/loader.h"

struct tdm_loader {
    tdmi_source *source;
    int64_t *items, n_items;
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
                         options->batch >= 1 && options->batch <= 65536 && options->threads >= 0;
    if (is_fine)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_USAGE,
                    "size is %d, channels %d, batch %d, threads %d; a source, 1 to 4096, 1 or 3, 1 "
                    "to 65536, and 0 or more are accepted",
                    options->size, options->channels, options->batch, options->threads);
}

static tdm_status choose_items(struct tdm_loader *loader, enum tdm_part part, tdm_error *err)
{
    const int64_t n = tdmi_source_items(loader->source);
    TDMI_TRY(TDMI_NEW(loader->items, n, err));
    for (int64_t i = 0; i < n; i++)
        if (part == TDM_PART_ALL || (int)tdmi_source_item(loader->source, i).part == (int)part)
            loader->items[loader->n_items++] = i;
    if (loader->n_items == 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the source gives no image of this part; folders train, val and test, or a "
                        "column of a table, divide one");
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
    TDMI_TRY(tdmi_augment_read(options->augment ? options->augment : "", &own.augment, err));
    if (tdmi_augment_has_mix(&own.augment))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "mixup and cutmix are part of a training step; leave them out of '%s'",
                        options->augment);
    TDMI_TRY(tdmi_source_open(options->source, &options->how, &loader->source, err));
    TDMI_TRY(choose_items(loader, options->part, err));
    loader->order = (tdmi_order){
        .seed = options->seed, .n = loader->n_items, .is_shuffled = options->is_shuffled};
    if (options->is_shuffled && tdmi_order_has_groups(loader->source))
        TDMI_TRY(tdmi_order_init_source(&loader->order, loader->source, loader->items,
                                        loader->n_items, options->seed, err));
    own.source = loader->source;
    own.items = loader->items;
    own.n_items = loader->n_items;
    own.order = &loader->order;
    own.threads = options->threads > 0 ? options->threads : tdmi_cpus_usable();
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
    return tdmi_loader_seek(loader->loader, (uint32_t)epoch, 0, err);
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
