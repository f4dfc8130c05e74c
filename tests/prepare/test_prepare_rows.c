/*
 * Rows that prepare writes: every form reads back, bad images are counted and named, given parts
 * are kept.
 */
#include "unit.h"
#include "prepare/prepare_sets.h"
#include "data/virtual_source.h"

#include "base/hash/hash.h"
#include "data/loaders.h"
#include "prepare/part.h"
#include <inttypes.h>

TEST_PREPARE(every_form_reads_back)
{
    static const char *const codecs[] = {"jpeg", "png", "raw", "keep"};
    static const char *const fits[] = {"pad", "crop", "stretch"};
    static const int sizes[] = {1, 7, 24, 41};
    TDMI_AT_END(tree_free) struct tree tree = pictures();
    const char *from = in(&tree, "in");
    for (int i = 0; i < 4 * 3 * 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "out%d", i);
        const char *out = in(&tree, name);
        struct tdm_prepare_options options = options_of(from, out);
        options.codec = codecs[i % 4];
        options.fit = fits[i / 4 % 3];
        options.size = sizes[i / 12];
        options.compression = i % 5 == 0 ? "snappy" : i % 5 == 1 ? "none" : NULL;
        const bool is_encoded = i % 4 < 2;
        if (!is_encoded || tdmi_image_can_decode(i % 4 == 0 ? TDMI_IMAGE_JPEG : TDMI_IMAGE_PNG)) {
            struct tdm_prepare_result result = prepared(&options);
            TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = open_source(out);
            TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
            TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
            int64_t n_val = 0;
            assert_int_equal(tdmi_source_items(source), result.images);
            assert_int_equal(tdmi_source_classes(source), N_CLASSES);
            assert_true((result.sampled > 0) == (i % 4 == 0));
            for (int64_t r = 0; r < result.images; r++) {
                const struct tdmi_item item = tdmi_source_item(source, r);
                n_val += item.part == TDMI_PART_VAL;
                assert_int_equal(item.path[5] - '0', item.label);
                assert_int_equal(tdmi_source_read(source, r, &bytes, NULL), TDM_OK);
                assert_int_equal(tdmi_image_decode(bytes.bytes, bytes.length_bytes, item.path,
                                                   (struct tdmi_image_limits){0}, &image, NULL),
                                 TDM_OK);
                assert_true(i % 4 == 3 ||
                            (image.width == options.size && image.height == options.size));
            }
            assert_int_equal(n_val, result.val);
        } else {
            refused(&options, TDM_E_ABSENT, "cannot write");
        }
    }
}

TEST_PREPARE(bad_pictures_are_counted_and_named)
{
    TDMI_AT_END(tree_free) struct tree tree = pictures();
    tree_text(&tree, "in/class0/cut.ppm", "P6\n40 40\n255\nabc");
    tree_text(&tree, "in/class1/words.jpg", "this is no picture");
    tree_text(&tree, "in/class1/notes.txt", "nor is this, and it does not say so");
    const char *from = in(&tree, "in"), *out = in(&tree, "out"), *list = in(&tree, "list.jsonl");
    struct tdm_prepare_options options = options_of(from, out);
    tree_text(&tree, "list.jsonl", "{\"path\":\"class2/p02.ppm\"}\n");
    options.how.quarantine = list;
    struct tdm_prepare_result result = prepared(&options);
    assert_int_equal(result.images, N_CLASSES * PER_CLASS - 1);
    assert_int_equal(result.quarantined, 3);
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    const char *dataset = in(&tree, "out/_dataset.json");
    read_all(dataset, &text);
    assert_non_null(strstr(text.bytes, "class0/cut.ppm"));
    assert_non_null(strstr(text.bytes, "truncated"));
    assert_non_null(strstr(text.bytes, "class1/words.jpg"));
    assert_non_null(strstr(text.bytes, "corrupt"));
}

/* Encoded, or the test ends as skipped. */
static tdmi_text encoded(enum tdmi_image_format format, int side)
{
    tdmi_text bytes = {0};
    tdmi_image image = {0};
    if (!tdmi_image_can_decode(format))
        skip();
    assert_int_equal(tdmi_image_reshape(&image, side, side, NULL), TDM_OK);
    for (int i = 0; i < 3 * side * side; i++)
        image.pixels[i] = (uint8_t)(i * i / 7 + i);
    assert_int_equal(tdmi_image_encode(&image, format, 90, &bytes, NULL), TDM_OK);
    tdmi_image_release(&image);
    return bytes;
}

TEST_PREPARE(damage_that_a_header_hides_is_dropped_later)
{
    tdmi_text bytes = encoded(TDMI_IMAGE_PNG, 40);
    TDMI_AT_END(tree_free) struct tree tree = pictures();
    bytes.bytes[bytes.length_bytes / 2] ^= 0x55;
    tree_file(&tree, "in/class1/hidden.png", bytes.bytes, bytes.length_bytes);
    tdmi_text_release(&bytes);
    const char *from = in(&tree, "in"), *out = in(&tree, "out"), *cut = in(&tree, "cut");
    const char *dataset = in(&tree, "out/_dataset.json");
    struct tdm_prepare_options options = options_of(from, out);
    options.codec = "keep"; /* even there */
    struct tdm_prepare_result result = prepared(&options);
    assert_int_equal(result.images, N_CLASSES * PER_CLASS);
    assert_int_equal(result.train + result.val, N_CLASSES * PER_CLASS);
    assert_int_equal(result.quarantined, 1);
    read_all(dataset, &bytes);
    assert_non_null(strstr(bytes.bytes, "class1/hidden.png"));
    tdmi_text_release(&bytes);
    struct tdm_prepare_result again = prepared(&options);
    assert_int_equal(again.images, result.images);
    assert_int_equal(again.quarantined, 1);
    options.folder = cut;
    for (int k = 0; k < 2; k++) {
        options.slice = k;
        options.slices = 2;
        prepared(&options);
    }
    options.slices = options.slice = 0;
    options.merge = true;
    prepared(&options);
    assert_equal_folders(out, cut);
}

TEST_PREPARE(a_file_that_fits_already_keeps_its_bytes)
{
    tdmi_text file = encoded(TDMI_IMAGE_JPEG, 24), row = {0};
    TDMI_AT_END(tree_free) struct tree tree = pictures();
    tree_file(&tree, "in/class1/fits.jpg", file.bytes, file.length_bytes);
    const char *from = in(&tree, "in");
    for (int i = 0; i < 3; i++) { /* 0: kept, 1: cut to a part, 2: of another size */
        char name[32];
        snprintf(name, sizeof name, "out%d", i);
        const char *out = in(&tree, name);
        struct tdm_prepare_options options = options_of(from, out);
        options.codec = "jpeg";
        options.fit = i == 1 ? "crop" : "pad";
        options.crop_fraction = i == 1 ? 0.5 : 1;
        options.size = i == 2 ? 23 : 24;
        prepared(&options);
        TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = open_source(out);
        int n_found = 0;
        for (int64_t r = 0; r < tdmi_source_items(source); r++) {
            if (strcmp(tdmi_source_item(source, r).path, "class1/fits.jpg") != 0)
                continue;
            assert_int_equal(tdmi_source_read(source, r, &row, NULL), TDM_OK);
            const bool is_kept = row.length_bytes == file.length_bytes &&
                                 memcmp(row.bytes, file.bytes, row.length_bytes) == 0;
            assert_true(is_kept == (i == 0));
            n_found++;
        }
        assert_int_equal(n_found, 1);
    }
    tdmi_text_release(&row);
    tdmi_text_release(&file);
}

/* Several megabytes, so that neither pages nor parts end where the blocks do that are written. */
TEST_PREPARE(a_large_part_is_named_by_its_bytes)
{
    TDMI_AT_END(set_free) struct set set = set_of(pictures());
    set.options.size = 157;
    const struct tdm_prepare_result result = prepared(&set.options);
    const size_t picture_bytes = (size_t)3 * 157 * 157;
    DIR *list = opendir(set.out);
    assert_non_null(list);
    int64_t n_bytes = 0;
    for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
        char path[1024], end[32];
        TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
        if (strncmp(entry->d_name, "part-", 5) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", set.out, entry->d_name);
        read_all(path, &bytes);
        snprintf(end, sizeof end, "-%016" PRIx64 ".parquet",
                 tdmi_xxh64_of(bytes.bytes, bytes.length_bytes, 0));
        assert_non_null(strstr(entry->d_name, end));
        n_bytes += (int64_t)bytes.length_bytes;
    }
    closedir(list);
    assert_int_equal(n_bytes, result.bytes);
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = open_source(set.out);
    TDMI_AT_END(tdmi_text_release) tdmi_text row = {0};
    assert_int_equal(tdmi_source_items(source), N_CLASSES * PER_CLASS);
    for (int64_t r = 0; r < tdmi_source_items(source); r++) {
        assert_int_equal(tdmi_source_read(source, r, &row, NULL), TDM_OK);
        assert_true(row.length_bytes > picture_bytes); /* with a head; its page's sum is checked */
    }
}

TEST_PREPARE(a_set_of_bad_pictures_is_refused)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tree_text(&tree, "in/a/1.jpg", "no image");
    tree_text(&tree, "in/b/2.jpg", "nor this");
    const char *from = in(&tree, "in"), *out = in(&tree, "out"), *nowhere = in(&tree, "nowhere");
    struct tdm_prepare_options options = options_of(from, out);
    refused(&options, TDM_E_INPUT, "none of the 2 images can be decoded");
    assert_int_equal(access(out, F_OK), -1);
    options.source = nowhere;
    refused(&options, TDM_E_INPUT, "nowhere");
}

TEST_PREPARE(given_parts_are_kept_and_the_rest_is_test)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    for (int i = 0; i < 40; i++) {
        char name[64];
        snprintf(name, sizeof name, "in/%s/c%d/%d.ppm", i < 30 ? "train" : "test", i % 2, i);
        picture(&tree, name, 10, 10, (uint32_t)i);
    }
    picture(&tree, "in/train/c0/copy.ppm", 10, 10, 30); /* of a test picture */
    const char *from = in(&tree, "in"), *out = in(&tree, "out"), *flat = in(&tree, "in/train"),
               *three = in(&tree, "three");
    struct tdm_prepare_options options = options_of(from, out);
    options.train_fraction = 0.8;
    options.val_fraction = 0.2;
    struct tdm_prepare_result result = prepared(&options);
    assert_int_equal(result.test, 10);
    assert_int_equal(result.train, 24);
    assert_int_equal(result.val, 6);
    assert_int_equal(result.left_out, 1);
    options = options_of(flat, three);
    options.train_fraction = 0.6;
    options.val_fraction = 0.2;
    result = prepared(&options);
    assert_int_equal(result.images, 31);
    assert_int_equal(result.val, 6);
    assert_in_range(result.test, 5, 7);
    assert_int_equal(result.left_out, 0);
}

/* All pixels that a network of width x height is given, in one number. */
static uint64_t loaded(const char *folder, int width, int height, int channels, bool has_box)
{
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = open_source(folder);
    const tdmi_order order = {.n = tdmi_source_items(source)};
    struct tdmi_loader_options options = {.source = source,
                                          .preprocess = {.width = width,
                                                         .height = height,
                                                         .channels = channels,
                                                         .fit = TDMI_FIT_CROP,
                                                         .crop_fraction = 1,
                                                         .filter = TDMI_FILTER_BILINEAR},
                                          .delivery = TDMI_DELIVER_U8,
                                          .order = &order,
                                          .batch = 8,
                                          .threads = 2};
    const size_t bytes = (size_t)(width * height * channels);
    tdmi_xxh64 hash;
    tdmi_xxh64_init(&hash, 0);
    if (has_box)
        assert_int_equal(tdmi_augment_read("resized-crop", &options.augment, NULL), TDM_OK);
    TDMI_AT_END(tdmi_loader_close_at) tdmi_loader *loader = open_loader(&options);
    seek(loader, 0, 0);
    for (const struct tdmi_batch *batch; (batch = next(loader)) != NULL;)
        tdmi_xxh64_add(&hash, batch->values, (size_t)batch->n * bytes);
    assert_int_equal(loader_skips(loader), 0);
    return tdmi_xxh64_result(&hash);
}

/* Files kept in their own size give a network what the same pictures give that were made to size.
 */
TEST_PREPARE(kept_files_are_loaded_in_the_size_of_the_table)
{
    static const char *const fits[] = {"pad", "crop", "stretch"};
    static const int networks[][3] = {{24, 24, 3}, {24, 24, 1}, {17, 17, 3}, {40, 31, 3}};
    TDMI_AT_END(tree_free) struct tree tree = pictures();
    const char *from = in(&tree, "in");
    uint64_t before = 0;
    for (int f = 0; f < 3; f++) {
        const char *kept = in(&tree, (const char *[]){"kept0", "kept1", "kept2"}[f]);
        const char *made = in(&tree, (const char *[]){"made0", "made1", "made2"}[f]);
        struct tdm_prepare_options options = options_of(from, kept);
        options.fit = fits[f];
        options.codec = "keep";
        prepared(&options);
        options.folder = made;
        options.codec = "raw";
        prepared(&options);
        for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
            const int *n = networks[i];
            for (int has_box = 0; has_box < 2; has_box++)
                assert_int_equal(loaded(kept, n[0], n[1], n[2], has_box),
                                 loaded(made, n[0], n[1], n[2], has_box));
        }
        assert_int_not_equal(loaded(kept, 24, 24, 3, false), before);
        before = loaded(kept, 24, 24, 3, false);
    }
}

TEST_PREPARE(tables_of_two_sizes_are_not_read_as_one)
{
    TDMI_AT_END(tree_free) struct tree tree = pictures();
    const char *from = in(&tree, "in"), *both = in(&tree, "both");
    tree_folder(&tree, "both");
    for (int i = 0; i < 2; i++) {
        const char *out = in(&tree, i == 0 ? "small" : "large");
        struct tdm_prepare_options options = options_of(from, out);
        options.codec = "keep";
        options.size = 24 + i;
        prepared(&options);
        DIR *folder = opendir(out);
        assert_non_null(folder);
        for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
            char old[4096], name[4096];
            if (strstr(entry->d_name, ".parquet") == NULL)
                continue;
            snprintf(old, sizeof old, "%s/%s", out, entry->d_name);
            snprintf(name, sizeof name, "%s/%d.parquet", both, i);
            assert_int_equal(rename(old, name), 0);
        }
        closedir(folder);
    }
    assert_refused(both, TDM_E_INPUT, "another size or form");
}

/* A store that is away for the length of one read: the next run finds the picture again. */
TEST(a_read_that_is_lost_ends_the_work_and_drops_nothing)
{
    TDMI_AT_END(virtual_close) struct virtual_source virtual = {.n = 1, .shape = {20, 20, 3}};
    virtual_open(&virtual);
    const struct tdm_prepare_options options = options_of("virtual", "nowhere");
    struct tdmi_prepare_form form;
    struct tdmi_prepare_scratch scratch = {0};
    struct tdmi_prepare_picture picture = {0};
    TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
    tdm_error err = {0};
    assert_int_equal(tdmi_prepare_form_of(&options, &form, &err), TDM_OK);
    assert_int_equal(tdmi_source_read(virtual.source, 0, &bytes, &err), TDM_OK);
    const struct tdmi_prepare_row row = {.hash = tdmi_xxh64_of(bytes.bytes, bytes.length_bytes, 0),
                                         .path = "virtual"};
    atomic_store(&virtual.n_lost, 1);
    assert_int_equal(
        tdmi_prepare_picture_make(virtual.source, &form, &row, &scratch, &picture, &err),
        TDM_E_SYSTEM);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "the store of item 0 is away"));
    err = (tdm_error){0};
    assert_int_equal(
        tdmi_prepare_picture_make(virtual.source, &form, &row, &scratch, &picture, &err), TDM_OK);
    assert_int_equal(picture.verdict, TDM_VERDICT_OK);
    tdmi_text_release(&picture.bytes);
    tdmi_prepare_scratch_release(&scratch);
}

TEST_MAIN(NULL, NULL)
