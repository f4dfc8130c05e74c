/*
 * Changes of pixels, against the formulas that Pillow and torchvision document, computed here in
 * double precision: equal where the formula is a table of bytes, within 1 of 255 elsewhere.
 */
#include "image/pictures.h"
#include "image/augment/ops.h"
#include "unit.h"

#include <math.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { LARGEST = 64 * 64 * 3 };

struct scene {
    struct tdmi_canvas canvas;
    uint8_t before[LARGEST], one[LARGEST], other[LARGEST];
    size_t n; /* bytes */
};

static const struct tdmi_augment_shape shapes[] = {{37, 53, 3}, {64, 64, 3}, {29, 31, 1},
                                                   {3, 3, 3},   {1, 7, 1},   {2, 1, 3}};

/* The test pattern, or its red for grey; some shapes get few values, as drawings have. */
static void draw(struct scene *scene, size_t which)
{
    const struct tdmi_augment_shape shape = shapes[which % COUNT(shapes)];
    tdmi_image image = {0};
    draw_pattern(&image, shape.width, shape.height);
    scene->n = (size_t)shape.height * (size_t)shape.width * (size_t)shape.channels;
    for (size_t i = 0; i < scene->n; i++) {
        uint8_t value = image.pixels[shape.channels == 3 ? i : 3 * i];
        scene->before[i] = which < COUNT(shapes) ? value : (uint8_t)(60 + value % 90);
    }
    tdmi_image_release(&image);
    memcpy(scene->one, scene->before, scene->n);
    memset(scene->other, 0xaa, scene->n);
    scene->canvas = (struct tdmi_canvas){shape, scene->one, scene->other};
}

static uint8_t cut_off(double value) /* as Pillow does: fractions go */
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static void assert_near(const struct scene *scene, const uint8_t *expected, int most)
{
    for (size_t i = 0; i < scene->n; i++)
        if (abs(scene->canvas.pixels[i] - expected[i]) > most)
            fail_msg("byte %zu of %zu: %d instead of %d", i, scene->n, scene->canvas.pixels[i],
                     expected[i]);
}

static double luma_of(const uint8_t *pixel)
{
    return floor((pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) / 65536.0);
}

/* ---- blends -------------------------------------------------------------------------------- */

enum { TO_BLACK, TO_MEAN, TO_LUMA, TO_SMOOTH };

/* Pillow's SMOOTH: 5 and eight 1 of 13, rounded; the edge stays. */
static double smooth_at(const struct scene *scene, size_t i)
{
    const struct tdmi_augment_shape shape = scene->canvas.shape;
    const int channels = shape.channels, row = shape.width * channels;
    const int y = (int)i / row, x = (int)i % row / channels;
    if (y == 0 || x == 0 || y == shape.height - 1 || x == shape.width - 1)
        return scene->before[i];
    double sum = 4 * scene->before[i];
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            sum += scene->before[(int)i + dy * row + dx * channels];
    return floor(sum / 13 + 0.5);
}

static double mean_of(const struct scene *scene)
{
    const size_t channels = (size_t)scene->canvas.shape.channels;
    double sum = 0;
    for (size_t i = 0; i < scene->n; i += channels)
        sum += channels == 3 ? luma_of(&scene->before[i]) : scene->before[i];
    return floor(sum / (double)(scene->n / channels) + 0.5);
}

/* ImageEnhance: degenerate + factor (picture - degenerate). */
TEST(blends_equal_pillows_formulas)
{
    static void (*const changes[])(struct tdmi_canvas *,
                                   double) = {[TO_BLACK] = tdmi_colour_brightness,
                                              [TO_MEAN] = tdmi_colour_contrast,
                                              [TO_LUMA] = tdmi_colour_saturation,
                                              [TO_SMOOTH] = tdmi_colour_sharpness};
    static const double factors[] = {0, 0.1, 0.6, 1, 1.4, 1.9, 2};
    static struct scene scene;
    static uint8_t expected[LARGEST];
    for (size_t s = 0; s < 2 * COUNT(shapes); s++)
        for (size_t f = 0; f < COUNT(factors); f++)
            for (int to = TO_BLACK; to <= TO_SMOOTH; to++) {
                draw(&scene, s);
                const double mean = mean_of(&scene);
                for (size_t i = 0; i < scene.n; i++) {
                    double base = to == TO_BLACK    ? 0
                                  : to == TO_MEAN   ? mean
                                  : to == TO_SMOOTH ? smooth_at(&scene, i)
                                  : scene.canvas.shape.channels == 3
                                      ? luma_of(&scene.before[i / 3 * 3])
                                      : scene.before[i];
                    expected[i] = cut_off(base + factors[f] * (scene.before[i] - base));
                }
                changes[to](&scene.canvas, factors[f]);
                assert_near(&scene, expected, factors[f] == 1 || factors[f] == 2 ? 0 : 1);
            }
}

/* ---- hue ----------------------------------------------------------------------------------- */

/* torchvision's: RGB to HSV, hue moved on, back to RGB. */
static void turn(const uint8_t *from, double by, double *to)
{
    const double r = from[0] / 255.0, g = from[1] / 255.0, b = from[2] / 255.0;
    const double high = fmax(r, fmax(g, b)), low = fmin(r, fmin(g, b)), range = high - low;
    const double s = high > 0 ? range / high : 0, divisor = range > 0 ? range : 1;
    const double rc = (high - r) / divisor, gc = (high - g) / divisor, bc = (high - b) / divisor;
    double h = r == high ? bc - gc : g == high ? 2 + rc - bc : 4 + gc - rc;
    h = h / 6 + 1 + by;
    h -= floor(h);
    const int sextant = (int)floor(h * 6);
    const double f = h * 6 - sextant, p = high * (1 - s), q = high * (1 - s * f),
                 t = high * (1 - s * (1 - f));
    const double table[6][3] = {{high, t, p}, {q, high, p}, {p, high, t},
                                {p, q, high}, {t, p, high}, {high, p, q}};
    for (int c = 0; c < 3; c++)
        to[c] = table[sextant % 6][c] * 255;
}

TEST(hue_equals_torchvisions_formula)
{
    static const double turns[] = {0, 0.1, 0.25, 0.5, -0.5, -0.03, 1.0 / 3};
    static struct scene scene;
    static uint8_t expected[LARGEST];
    for (size_t s = 0; s < 2 * COUNT(shapes); s++)
        for (size_t t = 0; t < COUNT(turns); t++) {
            draw(&scene, s);
            const bool is_grey = scene.canvas.shape.channels == 1;
            memcpy(expected, scene.before, scene.n);
            for (size_t i = 0; i < scene.n && !is_grey; i += 3) {
                double turned[3];
                turn(&scene.before[i], turns[t], turned);
                for (int c = 0; c < 3; c++)
                    expected[i + (size_t)c] = cut_off(turned[c] + 0.5);
            }
            tdmi_colour_hue(&scene.canvas, turns[t]);
            assert_near(&scene, expected, turns[t] == 0 ? 0 : 1);
        }
}

/* ---- tables: equal to Pillow's ------------------------------------------------------------- */

TEST(posterize_and_solarize_equal_their_formulas)
{
    static struct scene scene;
    static uint8_t expected[LARGEST];
    for (int bits = 4; bits <= 8; bits++) {
        draw(&scene, 0);
        for (size_t i = 0; i < scene.n; i++)
            expected[i] = (uint8_t)(scene.before[i] >> (8 - bits) << (8 - bits));
        tdmi_colour_posterize(&scene.canvas, bits);
        assert_near(&scene, expected, 0);
    }
    for (int threshold = 0; threshold <= 256; threshold += 32) {
        draw(&scene, 1);
        for (size_t i = 0; i < scene.n; i++)
            expected[i] =
                scene.before[i] < threshold ? scene.before[i] : (uint8_t)(255 - scene.before[i]);
        tdmi_colour_solarize(&scene.canvas, threshold);
        assert_near(&scene, expected, 0);
    }
}

TEST(autocontrast_and_equalize_equal_pillows_formulas)
{
    static struct scene scene;
    static uint8_t stretched[LARGEST], flat[LARGEST];
    for (size_t s = 0; s < 2 * COUNT(shapes); s++) {
        draw(&scene, s);
        const size_t channels = (size_t)scene.canvas.shape.channels;
        for (size_t c = 0; c < channels; c++) {
            size_t counts[256] = {0}, n_values = 0, last = 0;
            int low = 255, high = 0;
            for (size_t i = c; i < scene.n; i += channels) {
                counts[scene.before[i]]++;
                low = scene.before[i] < low ? scene.before[i] : low;
                high = scene.before[i] > high ? scene.before[i] : high;
            }
            for (int i = 0; i < 256; i++)
                if (counts[i] > 0) {
                    n_values++;
                    last = counts[i];
                }
            const size_t step = (scene.n / channels - last) / 255;
            size_t table[256], sum = step / 2;
            for (size_t i = 0; i < 256; i++) {
                table[i] = step > 0 && n_values > 1 ? sum / step : i;
                table[i] = table[i] > 255 ? 255 : table[i];
                sum += counts[i];
            }
            const double scale = 255.0 / (high - low), offset = -low * scale;
            for (size_t i = c; i < scene.n; i += channels) {
                const int value = scene.before[i];
                stretched[i] = high > low ? cut_off(value * scale + offset) : (uint8_t)value;
                flat[i] = (uint8_t)table[value];
            }
        }
        tdmi_colour_autocontrast(&scene.canvas);
        assert_near(&scene, stretched, 0);
        draw(&scene, s);
        tdmi_colour_equalize(&scene.canvas);
        assert_near(&scene, flat, 0);
    }
}

/* All values of each range from low to high, against the digest that Pillow 13 gives:
 *
 *     h = hashlib.sha256()
 *     for low in range(255):
 *         for high in range(low + 1, 256):
 *             row = Image.frombytes("L", (high - low + 1, 1), bytes(range(low, high + 1)))
 *             h.update(ImageOps.autocontrast(row).tobytes())
 *     h.hexdigest()[:16]
 *
 * In 5,958 of the 32,640 ranges quotients of whole numbers would give something else. */
TEST(autocontrast_equals_pillows_for_every_range)
{
    tdmi_sha256 sum;
    uint8_t raw[32];
    char found[65];
    tdmi_sha256_init(&sum);
    for (int low = 0; low < 255; low++)
        for (int high = low + 1; high < 256; high++) {
            uint8_t row[256], spare[256];
            const int n = high - low + 1;
            for (int i = 0; i < n; i++)
                row[i] = (uint8_t)(low + i);
            struct tdmi_canvas canvas = {{1, n, 1}, row, spare};
            tdmi_colour_autocontrast(&canvas);
            tdmi_sha256_add(&sum, canvas.pixels, (size_t)n);
        }
    tdmi_sha256_result(&sum, raw);
    tdmi_sha256_hex(raw, found);
    found[16] = '\0';
    assert_string_equal(found, "6a5340a4c95383a5");
}

/* ---- moving pixels ------------------------------------------------------------------------- */

TEST(flip_and_shift_move_whole_pixels)
{
    static struct scene scene;
    static uint8_t expected[LARGEST];
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (int dy = -70; dy <= 70; dy += 5)
            for (int dx = -70; dx <= 70; dx += 7) {
                draw(&scene, s);
                const struct tdmi_augment_shape shape = scene.canvas.shape;
                size_t at = 0;
                for (int y = 0; y < shape.height; y++)
                    for (int x = shape.width - 1; x >= 0; x--) /* mirrored */
                        for (int c = 0; c < shape.channels; c++, at++) {
                            int v = y + dy, u = x + dx;
                            bool is_inside =
                                v >= 0 && v < shape.height && u >= 0 && u < shape.width;
                            expected[at] = 7;
                            if (is_inside)
                                expected[at] =
                                    scene.before[(v * shape.width + u) * shape.channels + c];
                        }
                tdmi_warp_shift(&scene.canvas, dx, dy, 7);
                tdmi_warp_flip(&scene.canvas);
                assert_near(&scene, expected, 0);
            }
}

/* Pillow's BILINEAR: what lies outside is filled; half a pixel is taken off; neighbours that are
 * missing are those at the edge. *is_edge: on the line where rounding decides about the fill. */
static double bilinear(const struct scene *scene, double x, double y, int c, bool *is_edge)
{
    const struct tdmi_augment_shape shape = scene->canvas.shape;
    const double w = shape.width, h = shape.height;
    *is_edge = fabs(x) < 1e-6 || fabs(y) < 1e-6 || fabs(x - w) < 1e-6 || fabs(y - h) < 1e-6;
    if (x < 0 || y < 0 || x >= w || y >= h)
        return 9;
    x -= 0.5;
    y -= 0.5;
    double sum = 0;
    for (int k = 0; k < 4; k++) {
        int u = (int)floor(x) + k % 2, v = (int)floor(y) + k / 2;
        double part =
            (k % 2 ? x - floor(x) : 1 - x + floor(x)) * (k / 2 ? y - floor(y) : 1 - y + floor(y));
        u = u < 0 ? 0 : u >= shape.width ? shape.width - 1 : u;
        v = v < 0 ? 0 : v >= shape.height ? shape.height - 1 : v;
        sum += part * scene->before[(v * shape.width + u) * shape.channels + c];
    }
    return sum;
}

static void assert_affine(struct scene *scene, const double m[6])
{
    const struct tdmi_augment_shape shape = scene->canvas.shape;
    size_t at = 0;
    for (int y = 0; y < shape.height; y++)
        for (int x = 0; x < shape.width; x++)
            for (int c = 0; c < shape.channels; c++, at++) {
                bool is_edge;
                double value = bilinear(scene, m[0] * (x + 0.5) + m[1] * (y + 0.5) + m[2],
                                        m[3] * (x + 0.5) + m[4] * (y + 0.5) + m[5], c, &is_edge);
                if (!is_edge && fabs(scene->canvas.pixels[at] - value) > 0.8)
                    fail_msg("(%d, %d): %d instead of %g", x, y, scene->canvas.pixels[at], value);
            }
}

TEST(affine_maps_and_rotations_equal_the_bilinear_formula)
{
    static const double maps[][6] = {{1, 0.3, 0, 0, 1, 0},      {1, 0, 0, -0.09, 1, 0},
                                     {0.5, 0, 3.3, 0, 0.5, -2}, {2, 0.1, -9, -0.2, 2, 4},
                                     {1, 0, 0.5, 0, 1, 0.25},   {-1, 0, 30, 0, 1, 0}};
    static const double angles[] = {0, 1, 15, -30, 45, 90, 133.7, 180, -180};
    static struct scene scene;
    for (size_t s = 0; s < COUNT(shapes); s++) {
        for (size_t m = 0; m < COUNT(maps); m++) {
            draw(&scene, s);
            tdmi_warp_affine(&scene.canvas, maps[m], 9);
            assert_affine(&scene, maps[m]);
        }
        for (size_t a = 0; a < COUNT(angles); a++) {
            draw(&scene, s);
            const double angle = angles[a] * acos(-1) / 180, cx = scene.canvas.shape.width / 2.0,
                         cy = scene.canvas.shape.height / 2.0;
            const double m[6] = {cos(angle), -sin(angle), cx - cos(angle) * cx + sin(angle) * cy,
                                 sin(angle), cos(angle),  cy - sin(angle) * cx - cos(angle) * cy};
            tdmi_warp_rotate(&scene.canvas, angles[a], 9);
            assert_affine(&scene, m);
        }
    }
    draw(&scene, 0);
    tdmi_warp_rotate(&scene.canvas, 0, 9);
    assert_near(&scene, scene.before, 0);
}

TEST(zoom_is_the_affine_map_of_its_box)
{
    static const double parts[][4] = {/* of the side: x, y, width, height */
                                      {0, 0, 1, 1},
                                      {0, 0, 0.5, 0.7},
                                      {0.3, 0.1, 0.7, 0.9},
                                      {0.5, 0.5, 0.1, 0.4}};
    static const struct tdmi_augment_shape wide = {2, 1500, 3};
    static struct scene scene, expected;
    for (size_t s = 0; s <= COUNT(shapes); s++)
        for (size_t p = 0; p < COUNT(parts); p++) {
            draw(&scene, s);
            draw(&expected, s);
            if (s == COUNT(shapes)) {
                scene.canvas.shape = expected.canvas.shape = wide;
                scene.n = 3 * 2 * 1500;
                for (size_t i = 0; i < scene.n; i++)
                    scene.one[i] = expected.one[i] = (uint8_t)(i * 7 + i / 100);
            }
            const struct tdmi_augment_shape shape = scene.canvas.shape;
            struct tdmi_box box = {.x = floor(parts[p][0] * shape.width)};
            box.y = floor(parts[p][1] * shape.height);
            box.width = fmin(ceil(parts[p][2] * shape.width), shape.width - box.x);
            box.height = fmin(ceil(parts[p][3] * shape.height), shape.height - box.y);
            const double m[6] = {box.width / shape.width,   0,    box.x, 0,
                                 box.height / shape.height, box.y};
            tdmi_warp_zoom(&scene.canvas, box);
            tdmi_warp_affine(&expected.canvas, m, 9);
            assert_near(&scene, expected.canvas.pixels, 0);
        }
}

/* Counter-clockwise: what was at the right is at the top. */
TEST(a_quarter_turn_goes_against_the_clock)
{
    uint8_t pixels[9] = {0, 0, 0, 0, 0, 200, 0, 0, 0}, spare[9];
    struct tdmi_canvas canvas = {{3, 3, 1}, pixels, spare};
    tdmi_warp_rotate(&canvas, 90, 0);
    assert_int_equal(canvas.pixels[1], 200);
}

TEST_MAIN(NULL, NULL)
