/* Pairs are drawn by position in the group. Images are mixed here, or the changes are written as
 * numbers for the device. */
#include "train/step/mixer.h"
#include "base/scope.h"

#include <string.h>

struct tdmi_mixer {
    const tdmi_plan *plan;
    struct tdmi_augment_shape shape;
    size_t image_bytes;
    char *changes;   /* as the device reads them; NULL: it cannot change images */
    uint8_t *pixels; /* a copy of the group's images, and one more; NULL: the device mixes */
    const uint8_t **pictures;
    struct tdmi_augment_key *keys;
    struct tdmi_mix *mixes;
    struct tdmi_mixed_label *labels;
};

static struct tdmi_augment_shape shape_of(const tdmi_plan *plan)
{
    const struct tdmi_shape input = plan->graph->nodes[0].out;
    return (struct tdmi_augment_shape){input.h, input.w, input.c};
}

int64_t tdmi_mixer_bytes(const tdmi_plan *plan)
{
    return plan->backend->changes
               ? 0
               : (plan->max_images + 1) * tdmi_shape_values(plan->graph->nodes[0].out);
}

TDMI_POINTER_RELEASE(tdmi_mixer, tdmi_mixer_close)

tdm_status tdmi_mixer_open(const tdmi_plan *plan, tdmi_mixer **mixer, tdm_error *err)
{
    const struct tdmi_change_table *table = plan->backend->changes;
    const size_t images = (size_t)plan->max_images;
    TDMI_AT_END(tdmi_mixer_close_at) tdmi_mixer *made = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    made->plan = plan;
    made->shape = shape_of(plan);
    made->image_bytes = (size_t)tdmi_shape_values(plan->graph->nodes[0].out);
    TDMI_TRY(TDMI_NEW(made->keys, images, err));
    TDMI_TRY(TDMI_NEW(made->mixes, images, err));
    TDMI_TRY(TDMI_NEW(made->labels, images, err));
    TDMI_TRY(TDMI_NEW(made->pictures, images, err));
    if (table)
        TDMI_TRY(TDMI_NEW(made->changes, images * table->bytes, err));
    else
        TDMI_TRY(TDMI_NEW(made->pixels, (images + 1) * made->image_bytes, err));
    *mixer = tdmi_take(&made);
    return TDM_OK;
}

void tdmi_mixer_close(tdmi_mixer *mixer)
{
    if (!mixer)
        return;
    tdmi_free(mixer->changes);
    tdmi_free(mixer->pixels);
    tdmi_free(mixer->pictures);
    tdmi_free(mixer->keys);
    tdmi_free(mixer->mixes);
    tdmi_free(mixer->labels);
    tdmi_free(mixer);
}

/* Draws the partner of each image, and sets the mixed labels. */
static void pair(tdmi_mixer *mixer, const struct tdmi_mixing *mixing, const int64_t *items,
                 struct tdmi_group *group)
{
    for (int i = 0; i < group->n; i++)
        mixer->keys[i] = (struct tdmi_augment_key){
            .seed = mixing->seed, .epoch = mixing->epoch, .sample = items[i]};
    tdmi_augment_pair(mixing->augment, mixer->keys, group->labels, group->n, mixer->shape,
                      mixer->mixes);
    for (int i = 0; i < group->n; i++)
        mixer->labels[i] = (struct tdmi_mixed_label){group->labels[mixer->mixes[i].partner],
                                                     mixer->mixes[i].weight};
    group->mixed = mixer->labels;
}

/* Mixes the pixels of the pairs. */
static void mix(tdmi_mixer *mixer, struct tdmi_group *group)
{
    const size_t bytes = mixer->image_bytes;
    for (int i = 0; i < group->n; i++) {
        memcpy(mixer->pixels + (size_t)i * bytes, group->pixels[i], bytes);
        mixer->pictures[i] = mixer->pixels + (size_t)i * bytes;
    }
    tdmi_augment_mix(mixer->mixes, group->n, mixer->shape, mixer->pixels,
                     mixer->pixels + (size_t)mixer->plan->max_images * bytes);
    group->pixels = mixer->pictures;
    group->prefetched = NULL; /* these images are not mixed */
}

/* Writes the changes that the device applies. */
static void list_changes(tdmi_mixer *mixer, bool is_mixed, const struct tdmi_augment *rest,
                         const struct tdmi_augment_key *keys, struct tdmi_group *group)
{
    const struct tdmi_change_table *table = mixer->plan->backend->changes;
    for (int i = 0; i < group->n; i++) {
        struct tdmi_augment_change change = {.is_flipped = false};
        if (rest)
            tdmi_augment_draw(rest, keys[i], mixer->shape, &change);
        table->put(mixer->changes + (size_t)i * table->bytes, &change,
                   is_mixed ? &mixer->mixes[i] : NULL, i);
    }
    group->changes = mixer->changes;
}

void tdmi_mixer_run(tdmi_mixer *mixer, const struct tdmi_mixing *mixing, const int64_t *items,
                    const struct tdmi_augment *rest, const struct tdmi_augment_key *keys,
                    struct tdmi_group *group)
{
    if (mixing)
        pair(mixer, mixing, items, group);
    if (mixer->changes && (mixing || rest))
        list_changes(mixer, mixing != NULL, rest, keys, group);
    else if (mixing)
        mix(mixer, group);
}
