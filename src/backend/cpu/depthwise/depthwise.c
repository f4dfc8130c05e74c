/*
 * Shapes of depthwise convolution: how rows are grouped into bands, and what lies where in the
 * workspace. The arithmetic is in depthwise_forward_body.h and depthwise_backward_body.h.
 */
#include "backend/cpu/depthwise/depthwise.h"

enum {
    WIDEST = 16,             /* lanes of the widest instruction set */
    RING_BYTES = 256 * 1024, /* a share of the second cache, which is 512 KiB or more */
    BAND_PIXELS = 448        /* of f32 sums, which become doubles at a band's end */
};

static int64_t padded_channels(const struct tdmi_depthwise *shape)
{
    return ((int64_t)shape->channels + WIDEST - 1) / WIDEST * WIDEST;
}

static int64_t slot_values(const struct tdmi_depthwise *shape,
                           const struct tdmi_depthwise_ring *ring)
{
    return ring->columns * padded_channels(shape);
}

/* m rows need ((m - 1) · times + reach) / part + 1 slots; as many rows as fit, at least one. */
static struct tdmi_depthwise_ring ring_of(const struct tdmi_depthwise *shape, int rows, int columns,
                                          int times, int part, struct tdmi_depthwise_ring ring)
{
    int reach = (shape->kernel - 1) * shape->dilation;
    ring.columns |= 1; /* equal columns of a slot's blocks fall into different sets of the cache */
    int64_t slot_bytes = slot_values(shape, &ring) * (int64_t)sizeof(float);
    for (int m = 1; m <= rows; m++) {
        int slots = ((m - 1) * times + reach) / part + 1;
        if (m > 1 && (slots * slot_bytes > RING_BYTES || m * columns > BAND_PIXELS))
            break;
        ring.band_rows = m;
        ring.slots = slots;
    }
    return ring;
}

struct tdmi_depthwise_ring tdmi_depthwise_forward_ring(const struct tdmi_depthwise *shape)
{
    int reach = (shape->kernel - 1) * shape->dilation;
    int columns = (shape->out_w - 1) * shape->stride + reach + 1;
    return ring_of(shape, shape->out_h, shape->out_w, shape->stride, 1,
                   (struct tdmi_depthwise_ring){.columns = columns, .freeze_point = shape->left});
}

/* Input column j meets output columns from (j + left - reach) / stride on, up to
 * (j + left) / stride; rows alike. */
struct tdmi_depthwise_ring tdmi_depthwise_backward_ring(const struct tdmi_depthwise *shape)
{
    int freeze_point = (shape->kernel - 1) * shape->dilation / shape->stride;
    int met = (shape->w - 1 + shape->left) / shape->stride + 1;
    int columns = freeze_point + (met > shape->out_w ? met : shape->out_w);
    return ring_of(shape, shape->h, shape->w, 1, shape->stride,
                   (struct tdmi_depthwise_ring){.columns = columns, .freeze_point = freeze_point});
}

/* Cuts the workspace, or only measures it when there is none. */
static int64_t cut(const struct tdmi_depthwise *shape, const struct tdmi_depthwise_ring *ring,
                   char *workspace, struct tdmi_depthwise_room *room)
{
    int64_t channels = padded_channels(shape);
    int64_t taps = (int64_t)shape->kernel * shape->kernel;
    int64_t at = 0;
#define CUT(pointer, type, count)                                        \
    do {                                                                 \
        (pointer) = workspace ? (type *)(void *)(workspace + at) : NULL; \
        at += ((count) * (int64_t)sizeof(type) + 63) / 64 * 64;          \
    } while (0)
    CUT(room->sums[0], double, channels);
    CUT(room->sums[1], double, channels);
    CUT(room->sums[2], double, channels);
    CUT(room->dweights, double, taps *channels);
    CUT(room->weights, float, taps *channels);
    CUT(room->band_dweights, float, taps *WIDEST);
    CUT(room->scale, float, channels);
    CUT(room->shift, float, channels);
    CUT(room->centre, float, channels);
    CUT(room->of_g, float, channels);
    CUT(room->of_y, float, channels);
    CUT(room->one, float, channels);
    CUT(room->bias, float, channels);
    CUT(room->rows, const float *, (int64_t)ring->slots);
    CUT(room->ring, float, (ring->slots + 1) * slot_values(shape, ring));
#undef CUT
    return at;
}

struct tdmi_depthwise_room tdmi_depthwise_room_at(const struct tdmi_depthwise *shape,
                                                  const struct tdmi_depthwise_ring *ring,
                                                  void *workspace)
{
    struct tdmi_depthwise_room room;
    cut(shape, ring, workspace, &room);
    return room;
}

size_t tdmi_depthwise_workspace_bytes(const struct tdmi_depthwise *shape)
{
    struct tdmi_depthwise_ring forward = tdmi_depthwise_forward_ring(shape);
    struct tdmi_depthwise_ring backward = tdmi_depthwise_backward_ring(shape);
    struct tdmi_depthwise_room room;
    int64_t of_forward = cut(shape, &forward, NULL, &room);
    int64_t of_backward = cut(shape, &backward, NULL, &room);
    return (size_t)(of_forward > of_backward ? of_forward : of_backward);
}

const struct tdmi_depthwise_kernels *tdmi_depthwise_kernels(enum tdmi_isa isa)
{
    static const struct tdmi_depthwise_kernels *const kernels[] = TDMI_PER_ISA(tdmi_depthwise);
    return kernels[isa];
}
