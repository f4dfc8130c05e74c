/*
 * The fingerprint: the image in 32 × 32 values of brightness, their cosine transform, and of its
 * 64 lowest frequencies one bit each: does it reach their median? Low frequencies survive
 * compression and resizing, and comparing with the median makes scale and brightness cancel.
 * The mean (frequency 0, 0) says nothing of the image; (8, 0) takes its place.
 */
#include "image/fingerprint.h"

enum { SIDE = 32, FREQUENCIES = 9, BITS = 64, COSINE_ONE = 8192 };

/* cos(k π / 64) for k from 0 to 32, times COSINE_ONE, rounded. */
static const int16_t quarter[SIDE + 1] = {
    8192, 8182, 8153, 8103, 8035, 7946, 7839, 7713, 7568, 7405, 7225,
    7027, 6811, 6580, 6333, 6070, 5793, 5501, 5197, 4880, 4551, 4212,
    3862, 3503, 3135, 2760, 2378, 1990, 1598, 1202, 803,  402,  0,
};

/* cos(k π / 64) for any k ≥ 0. */
static int64_t cosine(int k)
{
    k %= 4 * SIDE;
    if (k > 2 * SIDE)
        k = 4 * SIDE - k;
    return k <= SIDE ? quarter[k] : -quarter[2 * SIDE - k];
}

/* One cosine transform of 32 values that lie step apart: the first FREQUENCIES coefficients. */
static void transform(const int64_t *values, int step, int64_t coefficients[FREQUENCIES])
{
    for (int u = 0; u < FREQUENCIES; u++) {
        coefficients[u] = 0;
        for (int x = 0; x < SIDE; x++)
            coefficients[u] += values[x * step] * cosine((2 * x + 1) * u);
    }
}

/* The 64 coefficients in the order of the fingerprint's bits. Below 2^60 in size. */
static void lowest_frequencies(const uint8_t *pixels, int64_t found[BITS])
{
    int64_t rows[SIDE][FREQUENCIES], columns[FREQUENCIES][FREQUENCIES];
    for (int y = 0; y < SIDE; y++) {
        int64_t brightness[SIDE]; /* times 1000 */
        for (int x = 0; x < SIDE; x++, pixels += 3)
            brightness[x] = 299 * pixels[0] + 587 * pixels[1] + 114 * pixels[2];
        transform(brightness, 1, rows[y]);
    }
    for (int u = 0; u < FREQUENCIES; u++)
        transform(&rows[0][u], FREQUENCIES, columns[u]);
    for (int i = 0; i < BITS; i++)
        found[i] = columns[i % 8][i / 8];
    found[0] = columns[8][0];
}

/* The upper one: half of 64 different values reach it, and all of 64 equal ones. */
static int64_t median_of(const int64_t values[BITS])
{
    int64_t sorted[BITS];
    for (int i = 0; i < BITS; i++) {
        int k = i;
        for (; k > 0 && sorted[k - 1] > values[i]; k--)
            sorted[k] = sorted[k - 1];
        sorted[k] = values[i];
    }
    return sorted[BITS / 2];
}

tdm_status tdmi_image_fingerprint(const tdmi_image *image, tdmi_image *scratch,
                                  uint64_t *fingerprint, tdm_error *err)
{
    /* Coefficient of a wave of one step of brightness; less is noise. */
    const int64_t least = (int64_t)1000 * COSINE_ONE * COSINE_ONE * SIDE * SIDE / 4;
    const struct tdmi_box whole = {0, 0, image->width, image->height};
    *fingerprint = 0;
    TDM_TRY(tdmi_image_resize(image, whole, SIDE, SIDE, TDMI_FILTER_BILINEAR, scratch, err), err,
            "cannot take the fingerprint of an image of %d x %d pixels", image->width,
            image->height);
    int64_t coefficients[BITS];
    lowest_frequencies(scratch->pixels, coefficients);
    const int64_t median = median_of(coefficients);
    bool is_plain = true;
    for (int i = 0; i < BITS; i++) {
        is_plain = is_plain && coefficients[i] < least && coefficients[i] > -least;
        if (coefficients[i] >= median)
            *fingerprint |= (uint64_t)1 << i;
    }
    if (is_plain)
        *fingerprint = 0;
    return TDM_OK;
}

int tdmi_fingerprint_distance(uint64_t a, uint64_t b)
{
    int n = 0;
    for (uint64_t different = a ^ b; different != 0; different &= different - 1)
        n++;
    return n;
}
