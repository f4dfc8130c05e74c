/*
 * A look at the images of a source, and the network that suits them.
 */
#include "train/choice/look.h"
#include "train/pictures.h"

TEST(small_drawings_suit_a_small_network_and_photos_pretrained_weights)
{
    static const struct {
        struct tdmi_look look;
        enum tdmi_suits suits;
    } cases[] = {{{.n_seen = 64, .side = 28, .is_grey = true}, TDMI_SUITS_SMALL},
                 {{.n_seen = 64, .side = 64, .is_grey = true}, TDMI_SUITS_SMALL},
                 {{.n_seen = 64, .side = 65, .is_grey = true}, TDMI_SUITS_PRETRAINED},
                 {{.n_seen = 64, .side = 32}, TDMI_SUITS_UNSURE},
                 {{.n_seen = 64, .side = 500}, TDMI_SUITS_PRETRAINED},
                 {{.n_seen = 0}, TDMI_SUITS_PRETRAINED}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(tdmi_look_suits(&cases[i].look), cases[i].suits);
}

/* An image of one value, or of two colours. */
static void write_image(const struct tree *tree, const char *path, int side, bool is_grey)
{
    char pixels[3 * 40 * 40];
    char text[sizeof pixels + 40];
    const int n = snprintf(text, sizeof text, "P6 %d %d 255\n", side, side);
    for (int i = 0; i < 3 * side * side; i++)
        text[n + i] = (char)(is_grey ? 77 : i % 3 ? 20 : 200);
    tree_file(tree, path, text, (size_t)(n + 3 * side * side));
}

TEST(a_look_finds_size_and_colour_and_passes_over_what_cannot_be_read)
{
    for (int is_grey = 0; is_grey < 2; is_grey++) {
        struct tree tree = tree_new();
        tdmi_source *source = NULL;
        struct tdmi_look look;
        tdm_error err = {0};
        for (int i = 0; i < 20; i++) {
            char path[40];
            snprintf(path, sizeof path, "pictures/%s/%d.ppm", i % 2 ? "a" : "b", i);
            write_image(&tree, path, i == 4 ? 40 : 16, is_grey || i == 7);
        }
        tree_file(&tree, "pictures/a/broken.ppm", "P6 9 9 255\n", 11);
        assert_int_equal(tdmi_source_open(below(&tree, "pictures"), NULL, &source, &err), TDM_OK);
        assert_int_equal(tdmi_look_at(source, &look, &err), TDM_OK);
        assert_int_equal(look.n_seen, 20);
        assert_int_equal(look.side, 16);
        assert_int_equal(look.is_grey, is_grey);
        tdmi_source_close(source);
        tree_free(&tree);
    }
}

/* Ink on paper: most of the edge is paper. */
TEST(a_look_finds_the_background_of_small_drawings)
{
    struct tree tree = tree_new();
    tdmi_source *source = NULL;
    struct tdmi_look look;
    tdm_error err = {0};
    for (int i = 0; i < 3; i++) {
        char path[40], text[3 * 16 * 16 + 40];
        snprintf(path, sizeof path, "pictures/%d/%d.ppm", i, i);
        const int n = snprintf(text, sizeof text, "P6 16 16 255\n");
        for (int k = 0; k < 3 * 16 * 16; k++)
            text[n + k] = (char)(k / 3 % 16 == i || k / 3 / 16 > 12 ? 30 : 230);
        tree_file(&tree, path, text, (size_t)(n + 3 * 16 * 16));
    }
    assert_int_equal(tdmi_source_open(below(&tree, "pictures"), NULL, &source, &err), TDM_OK);
    assert_int_equal(tdmi_look_at(source, &look, &err), TDM_OK);
    assert_true(look.is_grey);
    assert_int_equal(look.background, 230);
    tdmi_source_close(source);
    tree_free(&tree);
}

/* One of a place is decoded, for the time that takes; of the others the header is enough, and this
 * one has nothing else. */
TEST(few_large_images_are_decoded)
{
    enum { WIDTH = 300, HEIGHT = 20 };
    struct tree tree = tree_new();
    tdmi_source *source = NULL;
    struct tdmi_look look;
    tdm_error err = {0};
    char text[3 * WIDTH * HEIGHT + 40] = "";
    const int n = snprintf(text, sizeof text, "P6 %d %d 255\n", WIDTH, HEIGHT);
    tree_file(&tree, "pictures/a/0.ppm", text, (size_t)(n + 3 * WIDTH * HEIGHT));
    tree_text(&tree, "pictures/a/1.ppm", "P6 300 200 255\n");
    assert_int_equal(tdmi_source_open(below(&tree, "pictures"), NULL, &source, &err), TDM_OK);
    assert_int_equal(tdmi_look_at(source, &look, &err), TDM_OK);
    assert_int_equal(look.n_seen, 2);
    assert_int_equal(look.side, 300);
    assert_false(look.is_grey);
    assert_true(look.decode_second > 0.0);
    tdmi_source_close(source);
    tree_free(&tree);
}

TEST_MAIN(NULL, NULL)
