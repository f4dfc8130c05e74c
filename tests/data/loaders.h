/* Loaders in tests: opened, run and asked, each call of which must succeed. */
#pragma once

#include "data/loader/loader.h"
#include "unit.h"

static inline tdmi_loader *open_loader(const struct tdmi_loader_options *options)
{
    tdm_error err = {0};
    tdmi_loader *loader = NULL;
    assert_ok(tdmi_loader_open(options, &loader, &err), &err);
    return loader;
}

static inline void seek(tdmi_loader *loader, uint32_t epoch, int64_t position)
{
    tdm_error err = {0};
    assert_ok(tdmi_loader_seek(loader, epoch, position, &err), &err);
}

static inline const struct tdmi_batch *next(tdmi_loader *loader)
{
    tdm_error err = {0};
    const struct tdmi_batch *batch = NULL;
    assert_ok(tdmi_loader_next(loader, &batch, &err), &err);
    return batch;
}

static inline void run_epoch(tdmi_loader *loader, uint32_t epoch)
{
    seek(loader, epoch, 0);
    while (next(loader) != NULL)
        ;
}

static inline struct tdmi_loader_rates rates_of(const tdmi_loader *loader)
{
    struct tdmi_loader_rates rates;
    tdmi_loader_rates(loader, &rates);
    return rates;
}

/* Number of images that the loader skipped, as far as it keeps them (100). */
static inline int64_t loader_skips(const tdmi_loader *loader)
{
    struct tdmi_skip skip;
    int64_t n = 0;
    while (tdmi_loader_skip_at(loader, n, &skip))
        n++;
    return n;
}
