/* Neighbours are read together: in tables they share a row group, in archives a block. */
#include "train/choice/look.h"
#include "base/clock.h"
#include "image/facts.h"
#include "tandem/event.h"

#include <limits.h>
#include <stdlib.h>

enum { PLACES = 8, NEIGHBOURS = 8, MOST_SEEN = PLACES * NEIGHBOURS };
/* Digits, letters and icons are smaller than photos that anybody took. */
enum { SMALL_SIDE = 64 };

struct looking {
    const tdmi_source *source;
    tdmi_text bytes;
    tdmi_image image;
    int sides[MOST_SEEN];
    int n, n_grey, n_decoded;
    int64_t decode_ns; /* reading included */
    int edge[256];     /* pixels at the edges of small images, by their value of red */
};

static void release(struct looking *it)
{
    tdmi_text_release(&it->bytes);
    tdmi_image_release(&it->image);
}

static bool is_grey(const tdmi_image *image)
{
    const int64_t n = (int64_t)image->width * image->height;
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *pixel = image->pixels + 3 * i;
        if (pixel[0] != pixel[1] || pixel[1] != pixel[2])
            return false;
    }
    return true;
}

static void count_edge(const tdmi_image *image, int edge[256])
{
    for (int y = 0; y < image->height; y++) {
        const bool is_whole = y == 0 || y == image->height - 1 || image->width == 1;
        const uint8_t *row = image->pixels + (size_t)3 * (size_t)image->width * (size_t)y;
        for (int x = 0; x < image->width; x += is_whole ? 1 : image->width - 1)
            edge[row[3 * x]]++;
    }
}

/* The header of a large image says enough, but for how long decoding takes. */
static tdm_status see(struct looking *it, int64_t index, bool is_timed, tdm_error *err)
{
    tdm_error problem = {0};
    struct tdmi_image_facts facts;
    const char *path = tdmi_source_item(it->source, index).path;
    const int64_t began = tdmi_clock_ns();
    TDMI_TRY(tdmi_source_try(it->source, index, &it->bytes, &problem, err));
    const char *bytes = tdmi_text_string(&it->bytes);
    const size_t n = it->bytes.length_bytes;
    if (problem.code != TDM_OK || tdmi_image_describe(bytes, n, path, &facts, NULL) != TDM_OK)
        return TDM_OK;
    const int64_t side = facts.width > facts.height ? facts.width : facts.height;
    const bool is_small = side <= SMALL_SIDE;
    if (is_small || is_timed) {
        const tdm_status status =
            tdmi_image_decode(bytes, n, path, (struct tdmi_image_limits){0}, &it->image, &problem);
        if (status == TDM_E_MEMORY)
            return TDM_FAIL(err, TDM_E_MEMORY, "decoding an image: out of memory");
        if (status != TDM_OK)
            return TDM_OK;
        it->decode_ns += tdmi_clock_ns() - began;
        it->n_decoded++;
    }
    if (is_small) {
        it->n_grey += is_grey(&it->image);
        count_edge(&it->image, it->edge);
    }
    it->sides[it->n++] = (int)(side < INT_MAX ? side : INT_MAX);
    return TDM_OK;
}

static int by_size(const void *a, const void *b)
{
    const int left = *(const int *)a, right = *(const int *)b;
    return (left > right) - (left < right);
}

static int median_of_edge(const int edge[256])
{
    int64_t n = 0, up_to_here = 0;
    for (int i = 0; i < 256; i++)
        n += edge[i];
    for (int i = 0; i < 256; i++) {
        up_to_here += edge[i];
        if (2 * up_to_here >= n)
            return i;
    }
    return 0;
}

tdm_status tdmi_look_at(const tdmi_source *source, struct tdmi_look *look, tdm_error *err)
{
    TDMI_AT_END(release) struct looking it = {.source = source};
    const int64_t n = tdmi_source_items(source);
    int64_t next = 0;
    for (int place = 0; place < PLACES; place++) {
        const int64_t from = place * n / PLACES, first = from > next ? from : next;
        for (next = first; next < n && next < first + NEIGHBOURS; next++) {
            if (tdm_stop_is_requested())
                return TDM_FAIL(err, TDM_E_STOPPED, "stopped on request");
            TDMI_TRY(see(&it, next, next == first, err));
        }
    }
    *look = (struct tdmi_look){.n_seen = it.n};
    if (it.n == 0)
        return TDM_OK;
    qsort(it.sides, (size_t)it.n, sizeof *it.sides, by_size);
    look->side = it.sides[it.n / 2];
    look->large_side = it.sides[9 * it.n / 10];
    look->is_grey = 10 * it.n_grey >= 9 * it.n;
    look->background = median_of_edge(it.edge);
    if (it.n_decoded > 0)
        look->decode_second = 1e-9 * (double)it.decode_ns / it.n_decoded;
    return TDM_OK;
}

enum tdmi_suits tdmi_look_suits(const struct tdmi_look *look)
{
    if (look->n_seen == 0 || look->side > SMALL_SIDE)
        return TDMI_SUITS_PRETRAINED;
    return look->is_grey ? TDMI_SUITS_SMALL : TDMI_SUITS_UNSURE;
}
