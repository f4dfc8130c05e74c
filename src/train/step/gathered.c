/* Gathering the samples of a shard; positions without a label are left out. */
#include "train/step/gathered.h"
#include "base/scope.h"

tdm_status tdmi_gathered_open(struct tdmi_gathered *room, int max_batch, tdm_error *err)
{
    *room = (struct tdmi_gathered){0};
    TDMI_TRY(TDMI_NEW(room->pixels, max_batch, err));
    TDMI_TRY(TDMI_NEW(room->rows, max_batch, err));
    TDMI_TRY(TDMI_NEW(room->labels, max_batch, err));
    TDMI_TRY(TDMI_NEW(room->items, max_batch, err));
    TDMI_TRY(TDMI_NEW(room->keys, max_batch, err));
    return TDMI_NEW(room->judgements, max_batch, err);
}

void tdmi_gathered_release(struct tdmi_gathered *room)
{
    tdmi_free(room->pixels);
    tdmi_free(room->rows);
    tdmi_free(room->labels);
    tdmi_free(room->items);
    tdmi_free(room->keys);
    tdmi_free(room->judgements);
    *room = (struct tdmi_gathered){0};
}

struct tdmi_gathered tdmi_gathered_of(const struct tdmi_gathered *room,
                                      const struct tdmi_batch *batch, size_t image_bytes, int first,
                                      int end)
{
    struct tdmi_gathered it = {0,
                               room->pixels + first,
                               room->rows + first,
                               room->labels + first,
                               room->items + first,
                               room->keys + first,
                               room->judgements + first};
    for (int p = first; p < end && p < batch->n; p++) {
        if (batch->labels[p] < 0)
            continue;
        if (batch->rows)
            it.rows[it.n] = batch->rows[p];
        else
            it.pixels[it.n] = batch->pixels + (size_t)p * image_bytes;
        it.labels[it.n] = batch->labels[p];
        it.items[it.n] = batch->items[p];
        if (batch->keys)
            it.keys[it.n] = batch->keys[p];
        it.n++;
    }
    return it;
}
