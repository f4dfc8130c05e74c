/* The layout of the buffer, its twin in ordinary memory, and the copies between them. */
#include "graph/staging.h"
#include "base/memory.h"
#include "tensor/floats.h"

#include <string.h>

enum { places = 2 }; /* for images on the device; for rows in host memory */

/* Offsets of the parts, in both memories; here there is one place for images, or two for rows. */
struct layout {
    size_t judgements, pixels, labels, mixed, key, samples, numbers, class_weights, changes;
    size_t pictures, a_place, bytes;
    size_t rows; /* that one place for them takes */
};

struct tdmi_staging {
    const tdmi_plan *plan;
    tdmi_device *device;
    struct layout at;
    char *there, *here;
    void *rows;                   /* their place on the device */
    tdmi_stream *copies;          /* of prefetched images; NULL: there are rows */
    tdmi_event *is_there[places]; /* NULL where streams run at once */
    int place;                    /* of the current group's images or rows */
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

/* Rows are uploaded to the output of the node that they replace, so they need no place here. */
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

/* The number of a cached row on the device. */
static size_t number_bytes(const tdmi_plan *plan)
{
    return plan->backend->memory.gather && plan->first_node > 0 ? sizeof(int64_t) : 0;
}

/* The changes of an image, where the device makes them. */
static size_t change_bytes(const tdmi_plan *plan)
{
    return plan->backend->changes && plan->first_node == 0 ? plan->backend->changes->bytes : 0;
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
    at.numbers = put(&end, n, number_bytes(plan));
    at.class_weights = put(&end, classes_of(plan), sizeof(float));
    at.changes = put(&end, n, change_bytes(plan));
    at.pictures = put(&end, n, picture_bytes(plan));
    at.a_place = end - at.pictures;
    at.bytes = end + (places - 1) * at.a_place;
    at.rows = (n * row_bytes(plan) + 63) / 64 * 64;
    return at;
}

size_t tdmi_staging_bytes(const tdmi_plan *plan)
{
    return plan->backend->device.is_host ? 0 : layout_of(plan).bytes;
}

/* The stream of copies, and an event a place. */
static tdm_status open_copies(tdmi_staging *staging, tdm_error *err)
{
    const struct tdmi_stream_table *table = &staging->plan->backend->stream;
    TDM_TRY(table->open(staging->device, &staging->copies, err), err, "a stream for images");
    for (int i = 0; table->event_open && i < places; i++)
        TDM_TRY(table->event_open(staging->device, &staging->is_there[i], err), err,
                "an event for images");
    return TDM_OK;
}

tdm_status tdmi_staging_open(const tdmi_plan *plan, tdmi_device *device, void *memory, void *rows,
                             tdmi_staging **staging, tdm_error *err)
{
    const struct tdmi_memory_table *table = &plan->backend->memory;
    TDMI_AT_END(tdmi_staging_close_at) tdmi_staging *made = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    made->plan = plan;
    made->device = device;
    made->at = layout_of(plan);
    made->there = memory;
    made->rows = rows;
    const size_t bytes = made->at.pictures + made->at.a_place + places * made->at.rows;
    made->here =
        table->alloc_pinned ? table->alloc_pinned(device, bytes) : tdmi_alloc_aligned(bytes);
    if (!made->here)
        return TDM_FAIL(err, TDM_E_MEMORY,
                        "reserving %zu MiB to upload %d images to a device: out of memory",
                        bytes >> 20, plan->max_images);
    if (!rows)
        TDM_TRY(open_copies(made, err), err, "preparing to upload images to a device");
    *staging = tdmi_take(&made);
    return TDM_OK;
}

void tdmi_staging_close(tdmi_staging *staging)
{
    if (!staging)
        return;
    const struct tdmi_memory_table *table = &staging->plan->backend->memory;
    const struct tdmi_stream_table *streams = &staging->plan->backend->stream;
    for (int i = 0; i < places; i++)
        if (staging->is_there[i])
            streams->event_close(staging->is_there[i]);
    if (staging->copies)
        streams->close(staging->copies);
    if (staging->here && table->free_pinned)
        table->free_pinned(staging->device, staging->here);
    else
        tdmi_free(staging->here);
    tdmi_free(staging);
}

/* Its address on the device; NULL stays NULL. */
static const void *copy(tdmi_staging *staging, size_t at, const void *from, size_t bytes)
{
    if (!from)
        return NULL;
    memcpy(staging->here + at, from, bytes);
    return staging->there + at;
}

static char *place_of(const tdmi_staging *staging, int place)
{
    return staging->there + staging->at.pictures + (size_t)place * staging->at.a_place;
}

static char *rows_of(const tdmi_staging *staging, int place)
{
    return staging->here + staging->at.pictures + (size_t)place * staging->at.rows;
}

/* Convert a row to the plan's storage type. */
static void store_row(const tdmi_staging *staging, int place, int i, const uint8_t *row)
{
    const tdmi_plan *plan = staging->plan;
    tdmi_floats_store(plan->storage, rows_of(staging, place) + (size_t)i * row_bytes(plan),
                      (const float *)(const void *)row,
                      (int64_t)(tdmi_plan_sample_bytes(plan) / sizeof(float)));
}

/* Upload to the place that no group is read from: its previous user has been waited for. Rows are
 * only converted here; they are small, and are uploaded with their group. */
tdm_status tdmi_staging_prefetch(tdmi_staging *staging, const uint8_t *pictures, int n,
                                 tdm_error *err)
{
    const struct tdmi_backend *backend = staging->plan->backend;
    const int place = 1 - staging->place;
    for (int i = 0; staging->rows && i < n; i++)
        store_row(staging, place, i, pictures + (size_t)i * tdmi_plan_sample_bytes(staging->plan));
    if (staging->rows)
        return TDM_OK;
    TDM_TRY(backend->memory.upload(staging->copies, place_of(staging, place), pictures,
                                   (size_t)n * picture_bytes(staging->plan), err),
            err, "uploading %d images", n);
    if (!staging->is_there[place])
        return TDM_OK;
    return TDM_WRAP(err,
                    backend->stream.event_record(staging->copies, staging->is_there[place], err),
                    "uploading %d images", n);
}

tdm_status tdmi_staging_await_prefetch(tdmi_staging *staging, tdm_error *err)
{
    return staging->rows ? TDM_OK
                         : TDM_WRAP(err, staging->plan->backend->stream.wait(staging->copies, err),
                                    "uploading images");
}

/* Use prefetched images: the stream waits until they are there. */
static void take_prefetched(tdmi_staging *staging, tdmi_stream *stream,
                            const struct tdmi_group *group, const uint8_t **pixels)
{
    staging->place = 1 - staging->place;
    const uint8_t *there = (const uint8_t *)place_of(staging, staging->place);
    for (int i = 0; i < group->n; i++)
        pixels[i] = there + (group->pixels[i] - group->prefetched);
    if (staging->is_there[staging->place])
        (void)staging->plan->backend->stream.event_wait(stream, staging->is_there[staging->place],
                                                        NULL);
}

/* Upload images that were not prefetched, gathered from where they lie. A prefetch that is under
 * way has the other place. */
static void prefetch_now(tdmi_staging *staging, tdmi_stream *stream, const struct tdmi_group *group,
                         const uint8_t **pixels)
{
    const size_t bytes = picture_bytes(staging->plan);
    char *here = staging->here + staging->at.pictures, *there = place_of(staging, staging->place);
    for (int i = 0; i < group->n; i++) {
        memcpy(here + (size_t)i * bytes, group->pixels[i], bytes);
        pixels[i] = (const uint8_t *)there + (size_t)i * bytes;
    }
    (void)staging->plan->backend->memory.upload(stream, there, here, (size_t)group->n * bytes,
                                                NULL);
}

/* Upload rows in one piece, or prefetched rows in as many pieces as are contiguous. */
static void prefetch_rows(tdmi_staging *staging, tdmi_stream *stream,
                          const struct tdmi_group *group)
{
    const struct tdmi_memory_table *memory = &staging->plan->backend->memory;
    const size_t sample = tdmi_plan_sample_bytes(staging->plan), bytes = row_bytes(staging->plan);
    staging->place = group->prefetched ? 1 - staging->place : staging->place;
    for (int i = 0; !group->prefetched && i < group->n; i++)
        store_row(staging, staging->place, i, group->pixels[i]);
    const char *rows = rows_of(staging, staging->place);
    for (int i = 0, end; i < group->n; i = end) {
        const size_t from =
            group->prefetched ? (size_t)(group->pixels[i] - group->prefetched) / sample : (size_t)i;
        end = i + 1;
        while (end < group->n &&
               (!group->prefetched || group->pixels[end] == group->pixels[end - 1] + sample))
            end++;
        (void)memory->upload(stream, (char *)staging->rows + (size_t)i * bytes, rows + from * bytes,
                             (size_t)(end - i) * bytes, NULL);
    }
}

struct tdmi_group tdmi_staging_fill(tdmi_staging *staging, tdmi_stream *stream,
                                    const struct tdmi_group *group)
{
    const struct layout *at = &staging->at;
    const size_t n = (size_t)group->n;
    const uint8_t **pixels = (const uint8_t **)(void *)(staging->here + at->pixels);
    struct tdmi_group placed = *group;
    placed.labels = copy(staging, at->labels, group->labels, n * sizeof *group->labels);
    placed.mixed = copy(staging, at->mixed, group->mixed, n * sizeof *group->mixed);
    placed.draws.key = copy(staging, at->key, group->draws.key, sizeof *group->draws.key);
    placed.draws.samples =
        copy(staging, at->samples, group->draws.samples, n * sizeof *group->draws.samples);
    placed.class_weights = copy(staging, at->class_weights, group->class_weights,
                                classes_of(staging->plan) * sizeof *group->class_weights);
    placed.changes = copy(staging, at->changes, group->changes, n * change_bytes(staging->plan));
    placed.rows = copy(staging, at->numbers, group->rows, n * number_bytes(staging->plan));
    if (group->rows) {
        /* on the device already */
    } else if (staging->rows)
        prefetch_rows(staging, stream, group);
    else if (group->is_on_device)
        memcpy(pixels, group->pixels, n * sizeof *pixels);
    else if (group->prefetched)
        take_prefetched(staging, stream, group, pixels);
    else
        prefetch_now(staging, stream, group, pixels);
    if (!staging->rows)
        placed.pixels = (const uint8_t *const *)(const void *)(staging->there + at->pixels);
    if (group->judgements)
        placed.judgements = (struct tdmi_judgement *)(void *)(staging->there + at->judgements);
    (void)staging->plan->backend->memory.upload(stream, staging->there + at->pixels,
                                                staging->here + at->pixels,
                                                at->pictures - at->pixels, NULL);
    return placed;
}
