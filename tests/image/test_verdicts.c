/*
 * The collected pictures of the test data: every file has the verdict that verdicts.txt gives, and
 * where no reason stands there Pillow's verdict is the same.
 */
#include "image/pictures.h"
#include "unit.h"

static char *data_path(const char *name, char *buffer, size_t buffer_bytes)
{
    const char *data = getenv("TANDEM_TEST_DATA");
    if (data == NULL)
        skip();
    snprintf(buffer, buffer_bytes, "%s/images/%s", data, name);
    return buffer;
}

static void check_ok(const char *name, const char *rest, tdm_status status, const tdm_error *err,
                     const tdmi_image *image)
{
    int width, height;
    char wanted[20], found[65];
    assert_int_equal(sscanf(rest, "%dx%d %19s", &width, &height, wanted), 3);
    if (status != TDM_OK)
        fail_msg("%s is refused: %s", name, tdm_error_sentence(err, 0));
    digest_image(image, found);
    if (image->width != width || image->height != height || strcmp(found, wanted) != 0)
        fail_msg("%s: %d x %d %s, not %d x %d %s", name, image->width, image->height, found, width,
                 height, wanted);
}

static void check_refused(const char *name, const char *words, tdm_status status,
                          const tdm_error *err)
{
    if (status != TDM_E_INPUT)
        fail_msg("%s is not refused as bad input but: %s", name, tdm_status_text(status));
    if (strstr(tdm_error_sentence(err, 0), words) == NULL)
        fail_msg("%s: \"%s\" does not say \"%s\"", name, tdm_error_sentence(err, 0), words);
}

/* The second column of FOLDER/pillow_result.csv. */
static void pillow_says(const char *name, char *verdict, size_t verdict_bytes)
{
    char path[1000], folder[200];
    size_t folder_length = strcspn(name, "/");
    const char *file = name + folder_length + 1;
    snprintf(folder, sizeof folder, "%.*s/pillow_result.csv", (int)folder_length, name);
    struct bytes table = read_path(data_path(folder, path, sizeof path));
    char *rest = table.bytes, *line;
    verdict[0] = '\0';
    while ((line = next_line(&rest)) != NULL)
        if (strncmp(line, file, strlen(file)) == 0 && line[strlen(file)] == ',')
            snprintf(verdict, verdict_bytes, "%.*s", (int)strcspn(line + strlen(file) + 1, ","),
                     line + strlen(file) + 1);
    tdmi_free(table.bytes);
}

TEST(every_file_has_its_verdict)
{
    char path[1000];
    data_path("", path, sizeof path);
    if (!tdmi_image_can_decode(TDMI_IMAGE_JPEG) || !tdmi_image_can_decode(TDMI_IMAGE_PNG))
        skip();
    struct bytes table = read_checkout("tests/image/verdicts.txt");
    char *rest = table.bytes, *line;
    tdmi_image image = {0};
    int n = 0;
    while ((line = next_line(&rest)) != NULL) {
        char name[200], verdict[20], second[20];
        int used = 0;
        char *reason = strstr(line, " | ");
        if (reason != NULL)
            *reason = '\0';
        assert_int_equal(sscanf(line, "%199s %19s %n", name, verdict, &used), 2);
        struct bytes file = read_path(data_path(name, path, sizeof path));
        tdm_error err = {0};
        tdm_status status = tdmi_image_decode(file.bytes, file.length, name,
                                              (struct tdmi_image_limits){0}, &image, &err);
        const bool is_ok = strcmp(verdict, "ok") == 0;
        if (is_ok)
            check_ok(name, line + used, status, &err, &image);
        else
            check_refused(name, line + used, status, &err);
        pillow_says(name, second, sizeof second);
        if (reason == NULL && is_ok != (strcmp(second, "ok") == 0))
            fail_msg("%s is \"%s\", Pillow says \"%s\", and no reason is given", name, verdict,
                     second);
        tdmi_free(file.bytes);
        n++;
    }
    assert_int_equal(n, 190);
    tdmi_image_release(&image);
    tdmi_free(table.bytes);
}

TEST(every_file_stands_in_the_table)
{
    static const char *const folders[] = {"exif", "jpeg-broken", "jpeg-corner", "other-formats"};
    char path[1000], wanted[400];
    data_path("", path, sizeof path);
    struct bytes table = read_checkout("tests/image/verdicts.txt");
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        tdmi_arena arena;
        tdmi_arena_init(&arena, 0);
        struct tdmi_folder_entry *entries = NULL;
        size_t n = 0;
        assert_int_equal(
            tdmi_folder_list(data_path(folders[i], path, sizeof path), &arena, &entries, &n, NULL),
            TDM_OK);
        for (size_t k = 0; k < n; k++) {
            snprintf(wanted, sizeof wanted, "\n%s/%s ", folders[i], entries[k].name);
            if (tdmi_image_has_extension(entries[k].name) && strstr(table.bytes, wanted) == NULL)
                fail_msg("%s/%s has no verdict", folders[i], entries[k].name);
        }
        tdmi_arena_release(&arena);
    }
    tdmi_free(table.bytes);
}

/* Nine shots of one scene, held in eight ways: upright, they differ by compression only. */
TEST(turned_photographs_all_come_out_upright)
{
    TDMI_AT_END(tdmi_image_release) tdmi_image first = {0}, other = {0};
    char name[100], path[1000];
    data_path("", path, sizeof path);
    if (!tdmi_image_can_decode(TDMI_IMAGE_JPEG))
        skip();
    for (int i = 0; i <= 8; i++) {
        snprintf(name, sizeof name, "exif/Landscape_%d.jpg", i);
        struct bytes file = read_path(data_path(name, path, sizeof path));
        assert_int_equal(tdmi_exif_orientation(file.bytes, file.length), i == 0 ? 1 : i);
        tdmi_image *image = i == 0 ? &first : &other;
        assert_int_equal(tdmi_image_decode(file.bytes, file.length, name,
                                           (struct tdmi_image_limits){0}, image, NULL),
                         TDM_OK);
        tdmi_free(file.bytes);
        /* Compared at 6 × 4 pixels: sides and corners of the scene differ far more than this. */
        tdmi_image small = {0}, small_first = {0};
        struct tdmi_box box = {0, 0, image->width, image->height};
        struct tdmi_box first_box = {0, 0, first.width, first.height};
        assert_int_equal(image->width > image->height, first.width > first.height);
        assert_int_equal(tdmi_image_resize(image, box, 6, 4, TDMI_FILTER_BILINEAR, &small, NULL),
                         TDM_OK);
        assert_int_equal(
            tdmi_image_resize(&first, first_box, 6, 4, TDMI_FILTER_BILINEAR, &small_first, NULL),
            TDM_OK);
        for (int k = 0; k < 6 * 4 * 3; k++)
            if (abs(small.pixels[k] - small_first.pixels[k]) > 25)
                fail_msg("%s: value %d is %d, not %d", name, k, small.pixels[k],
                         small_first.pixels[k]);
        tdmi_image_release(&small);
        tdmi_image_release(&small_first);
    }
}

TEST_MAIN(NULL, NULL)
