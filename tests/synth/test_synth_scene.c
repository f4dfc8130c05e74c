/*
 * The synthetic pictures: what the classes are, and that a picture is the same bits everywhere.
 */
#include "unit.h"
#include "data/tree.h"

#include "base/hash/hash.h"
#include "synth/class.h"
#include "synth/scene.h"

/* ---- classes ------------------------------------------------------------------------------- */

TEST(thousand_classes_differ_and_half_have_no_colour)
{
    static struct tdmi_synth_class classes[TDMI_SYNTH_CLASSES];
    int n_colourless = 0;
    char name[TDMI_SYNTH_NAME_BYTES], last_name[TDMI_SYNTH_NAME_BYTES] = "";
    for (int i = 0; i < TDMI_SYNTH_CLASSES; i++) {
        classes[i] = tdmi_synth_class_of(i);
        assert_in_range(classes[i].shape, 0, TDMI_SYNTH_SHAPES - 1);
        assert_in_range(classes[i].texture, 0, TDMI_SYNTH_TEXTURES - 1);
        assert_in_range(classes[i].arrangement, 0, TDMI_SYNTH_ARRANGEMENTS - 1);
        assert_true(classes[i].scheme >= TDMI_SYNTH_ANY_SCHEME);
        assert_true(classes[i].scheme < TDMI_SYNTH_SCHEMES);
        n_colourless += classes[i].scheme == TDMI_SYNTH_ANY_SCHEME;
        tdmi_synth_class_name(i, name);
        assert_true(strcmp(last_name, name) < 0);
        memcpy(last_name, name, sizeof name);
        for (int k = 0; k < i; k++) {
            /* A colourless class looks like each colour of the same form: it counts as equal. */
            bool is_same_colour = classes[k].scheme == classes[i].scheme || classes[k].scheme < 0 ||
                                  classes[i].scheme < 0;
            assert_false(classes[k].shape == classes[i].shape &&
                         classes[k].texture == classes[i].texture &&
                         classes[k].arrangement == classes[i].arrangement && is_same_colour);
        }
    }
    /* 1000 is no multiple of a block of six. */
    assert_in_range(n_colourless, TDMI_SYNTH_CLASSES / 2 - 1, TDMI_SYNTH_CLASSES / 2 + 1);
}

TEST(class_names_say_what_is_to_be_seen)
{
    static const struct {
        int index;
        const char *name;
    } cases[] = {
        {0, "000-striped-star"},         {1, "001-striped-disc"},
        {2, "002-red-dotted-disc"},      {3, "003-dotted-star"},
        {4, "004-green-dotted-disc"},    {5, "005-blue-dotted-disc"},
        {8, "008-yellow-ringed-square"}, {252, "252-striped-star-pair"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char name[TDMI_SYNTH_NAME_BYTES];
        tdmi_synth_class_name(cases[i].index, name);
        assert_string_equal(name, cases[i].name);
    }
}

/* ---- silhouettes and textures -------------------------------------------------------------- */

TEST(silhouettes_fit_their_table_and_have_true_distances)
{
    static struct tdmi_synth_shapes shapes;
    tdmi_synth_shapes_fill(&shapes);
    enum { SIDE = TDMI_SYNTH_SHAPE_SIDE };
    const float step = 2.0F * TDMI_SYNTH_SHAPE_EXTENT / (float)(SIDE - 1);
    for (int shape = 0; shape < TDMI_SYNTH_SHAPES; shape++) {
        const float *d = shapes.distance[shape];
        int n_inside = 0;
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++) {
                float here = d[y * SIDE + x];
                n_inside += here < 0.0F;
                if (x == 0 || y == 0 || x == SIDE - 1 || y == SIDE - 1)
                    assert_true(here > 0.14F);
                /* A distance never changes faster than the way. */
                if (x > 0)
                    assert_true(here - d[y * SIDE + x - 1] < 1.001F * step &&
                                d[y * SIDE + x - 1] - here < 1.001F * step);
            }
        assert_true(n_inside > SIDE * SIDE / 10);
        /* At the table's own points the sample is the table. */
        float u = 10.0F * step - TDMI_SYNTH_SHAPE_EXTENT,
              v = 20.0F * step - TDMI_SYNTH_SHAPE_EXTENT;
        float at, du, dv;
        tdmi_synth_shape_sample(&shapes, shape, 1, &u, &v, &at, &du, &dv);
        assert_true(at - d[20 * SIDE + 10] < 1e-4F && d[20 * SIDE + 10] - at < 1e-4F);
    }
}

TEST(textures_stay_in_range_and_show_both_colours)
{
    enum { SIDE = 48, POINTS = SIDE * SIDE };
    static float u[POINTS], v[POINTS], d[POINTS], mix[TDMI_SYNTH_TEXTURES][POINTS];
    for (int i = 0; i < POINTS; i++) {
        u[i] = (float)(i % SIDE) / 24.0F - 0.98F;
        v[i] = (float)(i / SIDE) / 24.0F - 0.98F;
        d[i] = (u[i] * u[i] > v[i] * v[i] ? (u[i] < 0 ? -u[i] : u[i]) : (v[i] < 0 ? -v[i] : v[i])) -
               1.0F; /* of a square */
    }
    for (int t = 0; t < TDMI_SYNTH_TEXTURES; t++) {
        struct tdmi_synth_surface surface = {
            .texture = t, .scale = 1.0F, .turn_x = 1.0F, .sharpness = 8.0F, .shift_v = 0.3F};
        tdmi_synth_texture(&surface, POINTS, u, v, d, mix[t]);
        float share = 0.0F;
        for (int i = 0; i < POINTS; i++) {
            assert_true(mix[t][i] >= 0.0F && mix[t][i] <= 1.0F);
            share += mix[t][i] / (float)POINTS;
        }
        if (strcmp(tdmi_synth_texture_name(t), "plain") == 0)
            assert_true(share == 0.0F);
        else
            assert_true(share > 0.1F && share < 0.6F);
        for (int other = 0; other < t; other++) {
            float apart = 0.0F;
            for (int i = 0; i < POINTS; i++)
                apart += (mix[t][i] > mix[other][i] ? mix[t][i] - mix[other][i]
                                                    : mix[other][i] - mix[t][i]) /
                         (float)POINTS;
            assert_true(apart > 0.1F);
        }
    }
}

/* ---- pictures ------------------------------------------------------------------------------ */

struct painter {
    struct tdmi_synth_tables *tables;
    struct tdmi_synth_canvas canvas;
    tdmi_image image;
    int quality;
};

static void draw(struct painter *painter, int class_index, int64_t number, int size)
{
    tdm_error err = {0};
    assert_ok(tdmi_synth_draw(painter->tables, 42, class_index, number, size, &painter->canvas,
                              &painter->image, &painter->quality, &err),
              &err);
}

static uint64_t pixel_hash(const struct painter *painter)
{
    size_t n = (size_t)painter->image.width * (size_t)painter->image.height * 3;
    return tdmi_xxh64_of(painter->image.pixels, n, 0);
}

static struct painter painter_new(void)
{
    struct painter painter = {0};
    tdm_error err = {0};
    assert_ok(tdmi_synth_tables_new(42, &painter.tables, &err), &err);
    return painter;
}

static void painter_free(struct painter *painter)
{
    tdmi_free(painter->tables);
    tdmi_synth_canvas_release(&painter->canvas);
    tdmi_image_release(&painter->image);
}

/* These hashes are the promise that a seed means the same data set on every machine and with every
 * compiler. A change of the generator changes data sets people compare results on: say so in the
 * change log. */
TEST(pictures_are_the_same_bits_everywhere)
{
    static const struct {
        int class_index, number, size, width, height, quality;
        uint64_t pixels, jpeg;
    } cases[] = {
        {0, 0, 160, 169, 136, 80, 0x27bba7fce24d0456U, 0xf430eb98f3adb840U},
        {2, 7, 96, 89, 118, 81, 0x1e75be50723d246eU, 0x2f63e7b00930381bU},
        {333, 12, 64, 65, 65, 89, 0x57dc0a7409fb629bU, 0x2b08f25b96c2a3d9U},
        {999, 999999, 31, 37, 30, 81, 0xce0875618c7013f1U, 0x9a53f93e34af8103U},
    };
    struct painter painter = painter_new();
    int n_wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        draw(&painter, cases[i].class_index, cases[i].number, cases[i].size);
        tdmi_text file = {0};
        tdm_error err = {0};
        uint64_t jpeg = cases[i].jpeg;
        if (tdmi_image_can_encode(TDMI_IMAGE_JPEG)) {
            assert_ok(
                tdmi_image_encode(&painter.image, TDMI_IMAGE_JPEG, painter.quality, &file, &err),
                &err);
            jpeg = tdmi_xxh64_of(file.bytes, file.length_bytes, 0);
        }
        tdmi_text_release(&file);
        if (painter.image.width != cases[i].width || painter.image.height != cases[i].height ||
            painter.quality != cases[i].quality || pixel_hash(&painter) != cases[i].pixels ||
            jpeg != cases[i].jpeg) {
            print_error("drawn now: {%d, %d, %d, %d, %d, %d, 0x%016llxU, 0x%016llxU},\n",
                        cases[i].class_index, cases[i].number, cases[i].size, painter.image.width,
                        painter.image.height, painter.quality,
                        (unsigned long long)pixel_hash(&painter), (unsigned long long)jpeg);
            n_wrong++;
        }
    }
    painter_free(&painter);
    assert_int_equal(n_wrong, 0);
}

TEST(a_picture_does_not_depend_on_what_was_drawn_before)
{
    struct painter used = painter_new();
    draw(&used, 3, 1, 100);
    uint64_t first = pixel_hash(&used);
    draw(&used, 500, 2, 220);
    assert_true(pixel_hash(&used) != first);
    draw(&used, 3, 1, 100);
    assert_true(pixel_hash(&used) == first);
    painter_free(&used);
}

TEST(sizes_and_aspects_vary_around_the_size_asked_for)
{
    static const int sizes[] = {16, 100, 161};
    struct painter painter = painter_new();
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        const int size = sizes[k], n = 150;
        int n_wide = 0, n_tall = 0;
        double area = 0.0;
        for (int i = 0; i < n; i++) {
            draw(&painter, i % 6, i, size);
            int width = painter.image.width, height = painter.image.height;
            assert_true((float)(width > height ? width : height) <=
                        TDMI_SYNTH_LONGEST * (float)size + 1.0F);
            n_wide += width > height;
            n_tall += width < height;
            area += (double)width * height / n;
        }
        assert_true(n_wide > n / 4 && n_tall > n / 4 && n_wide + n_tall < n * 9 / 10);
        assert_true(area > 0.9 * size * size && area < 1.1 * size * size);
    }
    painter_free(&painter);
}

TEST(the_largest_pictures_are_drawn_too)
{
    struct painter painter = painter_new();
    for (int number = 0; number < 3; number++) {
        draw(&painter, 700, number, 2048);
        assert_true(painter.image.width > 1400 && painter.image.height > 1400);
    }
    painter_free(&painter);
}

TEST_MAIN(NULL, NULL)
