/*
 * EXIF orientation: the number is found where cameras put it, nothing is believed of damaged data,
 * and each of the eight turns moves every pixel to its place.
 */
#include "image/pictures.h"
#include "unit.h"

/* ---- reading the number ---------------------------------------------------------------------- */

#define EXIF_JPEG(length, tiff) "\xff\xd8\xff\xe1" length "Exif\0\0" tiff "\xff\xda\x00\x02"
#define LITTLE "II*\0\x08\0\0\0"
#define BIG "MM\0*\0\0\0\x08"
#define BYTES(text) text, sizeof text - 1

TEST(the_number_is_found_or_1)
{
    static const struct {
        const char *what, *bytes;
        size_t length;
        int orientation;
    } cases[] = {
        {"little end first",
         BYTES(EXIF_JPEG("\0\x22", LITTLE "\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0")), 6},
        {"big end first",
         BYTES(EXIF_JPEG("\0\x22", BIG "\0\x01\x01\x12\0\x03\0\0\0\x01\0\x03\0\0\0\0\0\0")), 3},
        {"second entry",
         BYTES(EXIF_JPEG("\0\x2a", LITTLE "\x02\0\x0f\x01\x02\0\x01\0\0\0x\0\0\0"
                                          "\x12\x01\x03\0\x01\0\0\0\x08\0\0\0")),
         8},
        {"behind another segment",
         BYTES("\xff\xd8\xff\xe0\0\x04"
               "ab\xff\xff\xe1\0\x22"
               "Exif\0\0" LITTLE "\x01\0\x12\x01\x03\0\x01\0\0\0\x05\0\0\0\0\0\0\0"),
         5},
        {"BigTIFF",
         BYTES("II+\0\x08\0\0\0\x10\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0"
               "\x12\x01\x03\0\x01\0\0\0\0\0\0\0\x06\0\0\0\0\0\0\0"),
         6},
        {"BigTIFF, big end first",
         BYTES("MM\0+\0\x08\0\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\x01"
               "\x01\x12\0\x03\0\0\0\0\0\0\0\x01\0\x08\0\0\0\0\0\0"),
         8},
        {"BigTIFF with a directory beyond its end",
         BYTES("II+\0\x08\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x01\0\0\0\0\0\0\0"), 1},
        {"BigTIFF of the first ten bytes", BYTES("II+\0\x08\0\0\0\x10\0"), 1},
        {"value 0",
         BYTES(EXIF_JPEG("\0\x22", LITTLE "\x01\0\x12\x01\x03\0\x01\0\0\0\0\0\0\0\0\0\0\0")), 1},
        {"value 9",
         BYTES(EXIF_JPEG("\0\x22", LITTLE "\x01\0\x12\x01\x03\0\x01\0\0\0\x09\0\0\0\0\0\0\0")), 1},
        {"value of another type",
         BYTES(EXIF_JPEG("\0\x22", LITTLE "\x01\0\x12\x01\x04\0\x01\0\0\0\x06\0\0\0\0\0\0\0")), 1},
        {"two values",
         BYTES(EXIF_JPEG("\0\x22", LITTLE "\x01\0\x12\x01\x03\0\x02\0\0\0\x06\0\0\0\0\0\0\0")), 1},
        {"no such entry",
         BYTES(EXIF_JPEG("\0\x22", LITTLE "\x01\0\x13\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0")), 1},
        {"a count beyond the block",
         BYTES(EXIF_JPEG("\0\x1a", LITTLE "\xff\xff\x13\x01\x03\0\x01\0\0\0")), 1},
        {"an entry cut by the block's end",
         BYTES(EXIF_JPEG("\0\x1c", LITTLE "\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0")), 1},
        {"a directory beyond the block",
         BYTES(EXIF_JPEG("\0\x22", "II*\0\xff\xff\xff\xff\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"
                                   "\0\0\0\0")),
         1},
        {"a directory at the block's last byte", BYTES(EXIF_JPEG("\0\x11", "II*\0\x08\0\0\0\x01")),
         1},
        {"neither end first",
         BYTES(EXIF_JPEG("\0\x22",
                         "IM*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0")),
         1},
        {"a block of seven bytes", BYTES(EXIF_JPEG("\0\x0f", "II*\0\x08\0\0")), 1},
        {"a segment longer than the file",
         BYTES("\xff\xd8\xff\xe1\xff\xff"
               "Exif\0\0" LITTLE),
         1},
        {"a segment of length 1",
         BYTES("\xff\xd8\xff\xe1\0\x01"
               "Exif\0\0" LITTLE),
         1},
        {"another APP1", BYTES("\xff\xd8\xff\xe1\0\x08http:/\xff\xda\0\x02"), 1},
        {"only the first bytes", BYTES("\xff\xd8\xff"), 1},
        {"only marker fill", BYTES("\xff\xd8\xff\xff\xff\xff"), 1},
        {"PNG",
         BYTES("\x89PNG\r\n\x1a\n\0\0\0\x01"
               "abcdxCRC-\0\0\0\x1a"
               "eXIf" LITTLE "\x01\0\x12\x01\x03\0\x01\0\0\0\x07\0\0\0\0\0\0\0CRC-"),
         7},
        {"PNG with a chunk beyond its end",
         BYTES("\x89PNG\r\n\x1a\n\xff\xff\xff\xff"
               "eXIfCRC-"),
         1},
        {"PNG without chunks", BYTES("\x89PNG\r\n\x1a\n"), 1},
        {"a format without EXIF", BYTES("P6 1 1 255 abc"), 1},
        {"no picture", BYTES("hello"), 1},
        {"nothing", BYTES(""), 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *copy = malloc(cases[i].length + (cases[i].length == 0));
        assert_non_null(copy);
        memcpy(copy, cases[i].bytes, cases[i].length);
        int found = tdmi_exif_orientation(copy, cases[i].length);
        free(copy);
        if (found != cases[i].orientation)
            fail_msg("%s: %d, not %d", cases[i].what, found, cases[i].orientation);
    }
}

/* ---- turning --------------------------------------------------------------------------------- */

/* The stored picture is "abc / def"; by the EXIF standard, row 0 and column 0 of what is stored are
 * these sides of what was seen: 1 top left, 2 top right, 3 bottom right, 4 bottom left, 5 left top,
 * 6 right top, 7 right bottom, 8 left bottom. */
TEST(every_orientation_moves_pixels_to_their_place)
{
    static const char *const seen[] = {NULL,       "abc/def",  "cba/fed",  "fed/cba", "def/abc",
                                       "ad/be/cf", "da/eb/fc", "fc/eb/da", "cf/be/ad"};
    for (int orientation = 1; orientation <= 8; orientation++) {
        tdmi_image image = {0};
        assert_int_equal(tdmi_image_reshape(&image, 3, 2, NULL), TDM_OK);
        for (int i = 0; i < 6 * 3; i++)
            image.pixels[i] = (uint8_t)("abcdef"[i / 3] + 10 * (i % 3));
        assert_int_equal(tdmi_image_orient(&image, orientation, NULL), TDM_OK);
        char found[20] = "";
        size_t n = 0;
        for (int y = 0; y < image.height; y++) {
            for (int x = 0; x < image.width; x++) {
                const uint8_t *pixel = image.pixels + 3 * (y * image.width + x);
                assert_int_equal(pixel[1], pixel[0] + 10);
                assert_int_equal(pixel[2], pixel[0] + 20);
                found[n++] = (char)pixel[0];
            }
            found[n++] = '/';
        }
        found[n - 1] = '\0';
        assert_string_equal(found, seen[orientation]);
        tdmi_image_release(&image);
    }
}

TEST(turning_there_and_back_changes_nothing)
{
    static const int back[] = {0, 1, 2, 3, 4, 5, 8, 7, 6};
    static const int sizes[][2] = {{1, 1}, {1, 9}, {9, 1}, {70, 33}, {64, 64}, {31, 100}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int orientation = 1; orientation <= 8; orientation++) {
            tdmi_image image = {0};
            char before[65], after[65];
            draw_pattern(&image, sizes[i][0], sizes[i][1]);
            digest_image(&image, before);
            assert_int_equal(tdmi_image_orient(&image, orientation, NULL), TDM_OK);
            assert_int_equal(image.width, sizes[i][orientation > 4]);
            assert_int_equal(tdmi_image_orient(&image, back[orientation], NULL), TDM_OK);
            digest_image(&image, after);
            assert_string_equal(before, after);
            tdmi_image_release(&image);
        }
}

TEST(other_numbers_and_missing_memory_are_reported)
{
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    tdm_error err = {0};
    draw_pattern(&image, 5, 4);
    assert_int_equal(tdmi_image_orient(&image, 0, &err), TDM_E_USAGE);
    assert_int_equal(tdmi_image_orient(&image, 9, &err), TDM_E_USAGE);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "1 to 8"));
    tdmi_memory_fail_from(1);
    tdm_status status = tdmi_image_orient(&image, 6, &err);
    tdmi_memory_fail_from(0);
    assert_int_equal(status, TDM_E_MEMORY);
    assert_int_equal(image.width, 5);
}

TEST_MAIN(NULL, NULL)
