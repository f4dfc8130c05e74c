/*
 * Fingerprints: copies that were compressed again, resized or brightened are near, other pictures
 * are not. Of the photographs of the test data all pairs are compared.
 */
#include "image/pictures.h"
#include "image/fingerprint.h"
#include "test_data.h"
#include "unit.h"

static uint64_t fingerprint_of(const tdmi_image *image)
{
    tdmi_image scratch = {0};
    uint64_t found;
    assert_int_equal(tdmi_image_fingerprint(image, &scratch, &found, NULL), TDM_OK);
    tdmi_image_release(&scratch);
    return found;
}

/* The numbers are part of stored audits: the same on every machine, for ever. */
TEST(the_fingerprint_is_a_fixed_number)
{
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    draw_pattern(&image, 40, 25);
    assert_int_equal(fingerprint_of(&image), UINT64_C(0xd58fbca067634b48));
    draw_pattern(&image, 7, 300);
    assert_int_equal(fingerprint_of(&image), UINT64_C(0xf0e1144b99d4d89f));
}

TEST(plain_pictures_have_none)
{
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    static const int sizes[][2] = {{1, 1}, {31, 33}, {200, 3}};
    for (size_t i = 0; i < 3; i++)
        for (int value = 0; value <= 255; value += 51) {
            assert_int_equal(tdmi_image_reshape(&image, sizes[i][0], sizes[i][1], NULL), TDM_OK);
            memset(image.pixels, value, 3 * (size_t)image.width * (size_t)image.height);
            assert_int_equal(fingerprint_of(&image), 0);
            image.pixels[0] ^= 1;
            assert_int_equal(fingerprint_of(&image), 0);
        }
    /* Fine grain without any larger shape is plain too. */
    draw_pattern(&image, 150, 110);
    assert_int_equal(fingerprint_of(&image), 0);
    /* A soft slope of a few steps is a picture. */
    assert_int_equal(tdmi_image_reshape(&image, 64, 64, NULL), TDM_OK);
    for (int i = 0; i < 64 * 64 * 3; i++)
        image.pixels[i] = (uint8_t)(100 + i / 3 % 64 / 8);
    assert_int_not_equal(fingerprint_of(&image), 0);
}

TEST(the_distance_counts_bits)
{
    assert_int_equal(tdmi_fingerprint_distance(0, 0), 0);
    assert_int_equal(tdmi_fingerprint_distance(0, UINT64_MAX), 64);
    assert_int_equal(tdmi_fingerprint_distance(UINT64_C(1) << 63, 1), 2);
}

TEST(missing_memory_is_reported)
{
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0}, scratch = {0};
    uint64_t found;
    draw_pattern(&image, 100, 80);
    tdmi_memory_fail_from(1);
    tdm_status status = tdmi_image_fingerprint(&image, &scratch, &found, NULL);
    tdmi_memory_fail_from(0);
    assert_int_equal(status, TDM_E_MEMORY);
}

/* ---- photographs ----------------------------------------------------------------------------- */

enum { MOST_PHOTOS = 1000 };

struct photos {
    size_t n;
    uint64_t whole[MOST_PHOTOS];
    int worst[3], n_far[3]; /* of the copies below */
};

static uint64_t of_bytes(const void *bytes, size_t length, tdmi_image *image)
{
    tdm_error err = {0};
    if (tdmi_image_decode(bytes, length, "photo", (struct tdmi_image_limits){0}, image, &err) !=
        TDM_OK)
        fail_msg("%s", tdm_error_sentence(&err, 0));
    return fingerprint_of(image);
}

static void compare_copies(const tdmi_image *image, struct photos *photos)
{
    const uint64_t whole = photos->whole[photos->n];
    uint64_t copies[3];
    TDMI_AT_END(tdmi_image_release) tdmi_image other = {0};
    tdmi_text file = {0};
    assert_int_equal(tdmi_image_encode(image, TDMI_IMAGE_JPEG, 60, &file, NULL), TDM_OK);
    copies[0] = of_bytes(file.bytes, file.length_bytes, &other);
    tdmi_text_release(&file);

    struct tdmi_box box = {0, 0, image->width, image->height};
    assert_int_equal(tdmi_image_resize(image, box, image->width / 2, image->height / 2,
                                       TDMI_FILTER_LANCZOS, &other, NULL),
                     TDM_OK);
    copies[1] = fingerprint_of(&other);

    assert_int_equal(tdmi_image_reshape(&other, image->width, image->height, NULL), TDM_OK);
    for (size_t i = 0; i < 3 * (size_t)image->width * (size_t)image->height; i++)
        other.pixels[i] = image->pixels[i] > 240 ? 255 : (uint8_t)(image->pixels[i] + 15);
    copies[2] = fingerprint_of(&other);
    for (int i = 0; i < 3; i++) {
        int distance = tdmi_fingerprint_distance(whole, copies[i]);
        if (distance > photos->worst[i])
            photos->worst[i] = distance;
        photos->n_far[i] += distance > TDMI_FINGERPRINT_NEAR;
    }
}

static void add_folder(const char *folder, struct photos *photos)
{
    tdmi_arena arena;
    tdmi_arena_init(&arena, 0);
    struct tdmi_folder_entry *entries = NULL;
    size_t n = 0;
    tdmi_image image = {0};
    assert_int_equal(tdmi_folder_list(folder, &arena, &entries, &n, NULL), TDM_OK);
    for (size_t i = 0; i < n && photos->n < MOST_PHOTOS; i++) {
        if (!tdmi_image_has_extension(entries[i].name))
            continue;
        char path[5000];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i].name);
        struct bytes file = read_path(path);
        photos->whole[photos->n] = of_bytes(file.bytes, file.length, &image);
        if (photos->n % 5 == 0)
            compare_copies(&image, photos);
        tdmi_free(file.bytes);
        photos->n++;
    }
    tdmi_image_release(&image);
    tdmi_arena_release(&arena);
}

TEST(photographs_are_near_their_copies_and_far_from_others)
{
    if (!tdmi_image_can_decode(TDMI_IMAGE_JPEG))
        skip();
    static const char *const classes[] = {"butterfly", "grand_piano", "helicopter", "ibis",
                                          "kangaroo",  "laptop",      "scorpion",   "starfish",
                                          "sunflower", "umbrella"};
    static struct photos photos;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        char folder[200];
        snprintf(folder, sizeof folder, "datasets/caltech101_10/%s", classes[i]);
        add_folder(test_data(folder), &photos);
    }
    size_t at_distance[65] = {0}, n_pairs = 0;
    for (size_t a = 0; a < photos.n; a++)
        for (size_t b = a + 1; b < photos.n; b++, n_pairs++)
            at_distance[tdmi_fingerprint_distance(photos.whole[a], photos.whole[b])]++;
    size_t n_near = 0;
    for (int i = 0; i <= 64; i++) {
        if (i <= TDMI_FINGERPRINT_NEAR)
            n_near += at_distance[i];
        if (at_distance[i] > 0 && i <= 16)
            print_message("# distance %d: %zu pairs\n", i, at_distance[i]);
    }
    print_message(
        "# %zu photographs, %zu of %zu pairs near; copies: worst %d %d %d, far %d %d %d\n",
        photos.n, n_near, n_pairs, photos.worst[0], photos.worst[1], photos.worst[2],
        photos.n_far[0], photos.n_far[1], photos.n_far[2]);
    assert_in_range(photos.n, 800, MOST_PHOTOS);
    /* Seen: 9, of which 8 are two copies of one photograph indeed. */
    assert_in_range(n_near, 5, 12);
    assert_int_equal(photos.n_far[0] + photos.n_far[1], 0);
    assert_in_range(photos.n_far[2], 0, 2); /* where white clips, the picture is another */
}

TEST_MAIN(NULL, NULL)
