/*
 * Resizing equals Pillow's bit by bit (tests/fixtures/image/resize.txt), whole or in part.
 */
#include "pictures.h"
#include "image/resize.h"
#include <math.h>

static void sizes_filters_and_boxes_give_pillows_pixels(void **state)
{
    (void)state;
    struct bytes table = read_checkout("tests/fixtures/image/resize.txt");
    char *rest = table.bytes, *line;
    tdmi_image source = {0}, target = {0};
    int n = 0;
    while ((line = next_line(&rest)) != NULL) {
        int width, height, target_width, target_height;
        struct tdmi_box box;
        char filter[20], wanted[20], found[65];
        assert_int_equal(sscanf(line, "%d %d %lf %lf %lf %lf %d %d %19s %19s", &width, &height,
                                &box.x, &box.y, &box.width, &box.height, &target_width,
                                &target_height, filter, wanted),
                         10);
        draw_pattern(&source, width, height);
        assert_int_equal(tdmi_image_resize(&source, box, target_width, target_height,
                                           filter_named(filter), &target, NULL),
                         TDM_OK);
        assert_int_equal(target.width, target_width);
        assert_int_equal(target.height, target_height);
        digest_image(&target, found);
        if (strcmp(found, wanted) != 0)
            fail_msg("%s: %s", line, found);
        n++;
    }
    assert_in_range(n, 50, 1000);
    tdmi_image_release(&source);
    tdmi_image_release(&target);
    tdmi_free(table.bytes);
}

static void a_part_equals_the_same_part_of_the_whole(void **state)
{
    (void)state;
    static const struct {
        int width, height, x, y, part_width, part_height;
    } cases[] = {
        {50, 40, 0, 0, 50, 40}, {50, 40, 7, 9, 20, 30},    {50, 40, 49, 39, 1, 1},
        {83, 40, 3, 0, 80, 40}, {50, 61, 0, 20, 50, 40},   {83, 61, 0, 0, 83, 61},
        {83, 61, 5, 6, 70, 50}, {200, 150, 90, 0, 9, 150}, {83, 30, 10, 0, 20, 30},
        {40, 61, 0, 17, 40, 9}, {90, 20, 30, 3, 50, 15},   {83, 20, 11, 0, 60, 20},
        {80, 7, 1, 1, 5, 4},
    };
    tdmi_image source = {0}, whole = {0}, part = {0};
    draw_pattern(&source, 83, 61);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int filter = TDMI_FILTER_LANCZOS; filter <= TDMI_FILTER_BILINEAR; filter++) {
            struct tdmi_resize how = {.box = {0, 0, 83, 61},
                                      .width = cases[i].width,
                                      .height = cases[i].height,
                                      .filter = (enum tdmi_filter)filter,
                                      .part_x = cases[i].x,
                                      .part_y = cases[i].y,
                                      .part_width = cases[i].part_width,
                                      .part_height = cases[i].part_height};
            assert_int_equal(tdmi_image_resize(&source, how.box, how.width, how.height, how.filter,
                                               &whole, NULL),
                             TDM_OK);
            assert_int_equal(tdmi_image_resize_part(&source, &how, &part, NULL), TDM_OK);
            assert_int_equal(part.width, how.part_width);
            assert_int_equal(part.height, how.part_height);
            for (int y = 0; y < part.height; y++)
                assert_memory_equal(part.pixels + 3 * y * part.width,
                                    whole.pixels +
                                        3 * ((how.part_y + y) * whole.width + how.part_x),
                                    3 * (size_t)part.width);
        }
    tdmi_image_release(&source);
    tdmi_image_release(&whole);
    tdmi_image_release(&part);
}

static void one_colour_stays_that_colour(void **state)
{
    (void)state;
    tdmi_image source = {0}, target = {0};
    for (int value = 0; value < 256; value += 15)
        for (int filter = TDMI_FILTER_LANCZOS; filter <= TDMI_FILTER_BILINEAR; filter++) {
            assert_int_equal(tdmi_image_reshape(&source, 41, 29, NULL), TDM_OK);
            memset(source.pixels, value, 3 * 41 * 29);
            struct tdmi_box box = {0.3, 1.7, 39.9, 26.1};
            assert_int_equal(
                tdmi_image_resize(&source, box, 17, 53, (enum tdmi_filter)filter, &target, NULL),
                TDM_OK);
            for (size_t i = 0; i < 3 * 17 * 53; i++)
                assert_int_equal(target.pixels[i], value);
        }
    tdmi_image_release(&source);
    tdmi_image_release(&target);
}

static void a_used_target_takes_no_new_memory(void **state)
{
    (void)state;
    tdmi_image source = {0}, target = {0};
    draw_pattern(&source, 200, 150);
    const struct tdmi_box box = {0, 0, 200, 150};
    assert_int_equal(tdmi_image_resize(&source, box, 64, 48, TDMI_FILTER_LANCZOS, &target, NULL),
                     TDM_OK);
    int64_t before = tdmi_memory_calls();
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            tdmi_image_resize(&source, box, 64 - i, 48, TDMI_FILTER_BICUBIC, &target, NULL),
            TDM_OK);
    assert_int_equal(tdmi_memory_calls(), before);
    tdmi_image_release(&source);
    tdmi_image_release(&target);
}

static void impossible_wishes_are_refused(void **state)
{
    (void)state;
    static const struct {
        struct tdmi_box box;
        int width, height;
        const char *words;
    } cases[] = {
        {{0, 0, 10, 8}, 0, 5, "1 or more"},
        {{0, 0, 10, 8}, 5, -1, "1 or more"},
        {{-0.5, 0, 9, 8}, 5, 5, "not inside"},
        {{0, 0, 10.5, 8}, 5, 5, "not inside"},
        {{3, 0, 7.01, 8}, 5, 5, "not inside"},
        {{0, 0, 0, 8}, 5, 5, "not inside"},
        {{0, 0, 10, (double)NAN}, 5, 5, "not inside"},
    };
    tdmi_image source = {0}, target = {0}, empty = {0};
    draw_pattern(&source, 10, 8);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tdm_error err = {0};
        assert_int_equal(tdmi_image_resize(&source, cases[i].box, cases[i].width, cases[i].height,
                                           TDMI_FILTER_BILINEAR, &target, &err),
                         TDM_E_USAGE);
        if (strstr(err.frames[0].text, cases[i].words) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", err.frames[0].text, cases[i].words);
    }
    assert_int_equal(tdmi_image_resize(&empty, (struct tdmi_box){0, 0, 1, 1}, 2, 2,
                                       TDMI_FILTER_BILINEAR, &target, NULL),
                     TDM_E_USAGE);
    struct tdmi_resize how = {.box = {0, 0, 10, 8}, .width = 5, .height = 4, .part_x = 3};
    how.part_width = 3;
    how.part_height = 4;
    assert_int_equal(tdmi_image_resize_part(&source, &how, &target, NULL), TDM_E_USAGE);
    tdmi_memory_fail_from(1);
    tdm_status status = tdmi_image_resize(&source, (struct tdmi_box){0, 0, 10, 8}, 5, 4,
                                          TDMI_FILTER_BILINEAR, &target, NULL);
    tdmi_memory_fail_from(0);
    assert_int_equal(status, TDM_E_MEMORY);
    tdmi_image_release(&source);
    tdmi_image_release(&target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_filters_and_boxes_give_pillows_pixels),
        cmocka_unit_test(a_part_equals_the_same_part_of_the_whole),
        cmocka_unit_test(one_colour_stays_that_colour),
        cmocka_unit_test(a_used_target_takes_no_new_memory),
        cmocka_unit_test(impossible_wishes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
