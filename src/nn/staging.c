/* The layout of the buffer, its twin in ordinary memory, and the copy between them. */
#include "nn/staging.h"
#include "base/memory.h"
#include "tensor/floats.h"

#include <string.h>

/* Where each part begins, in both. */
struct layout {
    size_t judgements, pixels, labels, mixed, key, samples, class_weights, pictures, bytes;
};

struct tdmi_staging {
    const tdmi_plan *plan;
    tdmi_device *device;
    struct layout at;
    char *there, *here; /* rows lie behind the rest of here */
    void *rows;         /* their place on the device */
};

static size_t put(size_t *end, size_t count, size_t item_bytes)
{
    const size_t at = *end;
    *end = (at + count * item_bytes + 63) / 64 * 64;
    return at;
}

static size_t classes_of(const tdmi_plan *plan)
{
    return (size_t)tdmi_shape_values(plan->graph->nodes[plan->graph->n_nodes - 1].out);
}

/* Rows that stand for pixels go to the place of what they stand for: not here. */
static size_t picture_bytes(const tdmi_plan *plan)
{
    return plan->first_node > 0 ? 0 : tdmi_plan_sample_bytes(plan);
}

/* A row, as it is stored. */
static size_t row_bytes(const tdmi_plan *plan)
{
    if (plan->first_node == 0)
        return 0;
    return tdmi_dtype_bytes(plan->storage) * (tdmi_plan_sample_bytes(plan) / sizeof(float));
}

static struct layout layout_of(const tdmi_plan *plan)
{
    const size_t n = (size_t)plan->max_images;
    struct layout at;
    size_t end = 0;
    at.judgements = put(&end, n, sizeof(struct tdmi_judgement));
    at.pixels = put(&end, n, sizeof(const uint8_t *));
    at.labels = put(&end, n, sizeof(int32_t));
    at.mixed = put(&end, n, sizeof(struct tdmi_mixed_label));
    at.key = put(&end, 1, sizeof(struct tdmi_draw_key));
    at.samples = put(&end, n, sizeof(int64_t));
    at.class_weights = put(&end, classes_of(plan), sizeof(float));
    at.pictures = put(&end, n, picture_bytes(plan));
    at.bytes = end;
    return at;
}

size_t tdmi_staging_bytes(const tdmi_plan *plan)
{
    return plan->backend->device.is_host ? 0 : layout_of(plan).bytes;
}

/* Pictures do not move, so neither do their pointers. */
static void point_at_pictures(tdmi_staging *staging)
{
    const size_t bytes = picture_bytes(staging->plan);
    const uint8_t **pixels = (const uint8_t **)(void *)(staging->here + staging->at.pixels);
    for (int i = 0; i < staging->plan->max_images; i++)
        pixels[i] = (const uint8_t *)staging->there + staging->at.pictures + (size_t)i * bytes;
}

tdm_status tdmi_staging_open(const tdmi_plan *plan, tdmi_device *device, void *memory, void *rows,
                             tdmi_staging **staging, tdm_error *err)
{
    const struct tdmi_memory_table *table = &plan->backend->memory;
    tdmi_staging *made = tdmi_alloc(1, sizeof *made);
    if (!made)
        return TDM_FAIL(err, TDM_E_MEMORY,
                        "preparing to bring pictures to a device: out of memory");
    made->plan = plan;
    made->device = device;
    made->at = layout_of(plan);
    made->there = memory;
    made->rows = rows;
    const size_t bytes = made->at.bytes + (size_t)plan->max_images * row_bytes(plan);
    made->here =
        table->alloc_pinned ? table->alloc_pinned(device, bytes) : tdmi_alloc_aligned(bytes);
    if (!made->here) {
        tdmi_staging_close(made);
        return TDM_FAIL(err, TDM_E_MEMORY,
                        "reserving %zu MiB to bring %d pictures to a device: out of memory",
                        bytes >> 20, plan->max_images);
    }
    point_at_pictures(made);
    *staging = made;
    return TDM_OK;
}

void tdmi_staging_close(tdmi_staging *staging)
{
    if (!staging)
        return;
    const struct tdmi_memory_table *table = &staging->plan->backend->memory;
    if (staging->here && table->free_pinned)
        table->free_pinned(staging->device, staging->here);
    else
        tdmi_free(staging->here);
    tdmi_free(staging);
}

/* Where it will be on the device; NULL stays NULL. */
static const void *copy(tdmi_staging *staging, size_t at, const void *from, size_t bytes)
{
    if (!from)
        return NULL;
    memcpy(staging->here + at, from, bytes);
    return staging->there + at;
}

static void copy_pictures(tdmi_staging *staging, const struct tdmi_shard *shard)
{
    const size_t bytes = picture_bytes(staging->plan);
    char *to = staging->here + staging->at.pictures;
    for (int i = 0; bytes > 0 && i < shard->n; i++)
        memcpy(to + (size_t)i * bytes, shard->pixels[i], bytes);
}

/* Rows of floats, as they are stored, in one piece. */
static void bring_rows(tdmi_staging *staging, tdmi_stream *stream, const struct tdmi_shard *shard)
{
    const tdmi_plan *plan = staging->plan;
    const size_t bytes = row_bytes(plan);
    char *rows = staging->here + staging->at.bytes;
    for (int i = 0; i < shard->n; i++)
        tdmi_floats_store(plan->storage, rows + (size_t)i * bytes,
                          (const float *)(const void *)shard->pixels[i],
                          (int64_t)(tdmi_plan_sample_bytes(plan) / sizeof(float)));
    (void)plan->backend->memory.upload(stream, staging->rows, rows, (size_t)shard->n * bytes, NULL);
}

struct tdmi_shard tdmi_staging_fill(tdmi_staging *staging, tdmi_stream *stream,
                                    const struct tdmi_shard *shard)
{
    const struct layout *at = &staging->at;
    const size_t n = (size_t)shard->n, pictures = picture_bytes(staging->plan);
    struct tdmi_shard placed = *shard;
    placed.labels = copy(staging, at->labels, shard->labels, n * sizeof *shard->labels);
    placed.mixed = copy(staging, at->mixed, shard->mixed, n * sizeof *shard->mixed);
    placed.draws.key = copy(staging, at->key, shard->draws.key, sizeof *shard->draws.key);
    placed.draws.samples =
        copy(staging, at->samples, shard->draws.samples, n * sizeof *shard->draws.samples);
    placed.class_weights = copy(staging, at->class_weights, shard->class_weights,
                                classes_of(staging->plan) * sizeof *shard->class_weights);
    copy_pictures(staging, shard);
    if (staging->rows)
        bring_rows(staging, stream, shard);
    else
        placed.pixels = (const uint8_t *const *)(const void *)(staging->there + at->pixels);
    if (shard->judgements)
        placed.judgements = (struct tdmi_judgement *)(void *)(staging->there + at->judgements);
    (void)staging->plan->backend->memory.upload(stream, staging->there + at->pixels,
                                                staging->here + at->pixels,
                                                at->pictures - at->pixels + n * pictures, NULL);
    return placed;
}
