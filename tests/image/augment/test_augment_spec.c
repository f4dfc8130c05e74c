/*
 * Descriptions of augmentation: what is written reads back, in words, and what is wrong
 * is answered by one sentence that says what would be right.
 */
#include "image/pictures.h"
#include "image/augment/augment.h"
#include "unit.h"

static struct tdmi_augment read_spec(const char *spec)
{
    struct tdmi_augment augment;
    tdm_error err = {0};
    if (tdmi_augment_read(spec, &augment, &err) != TDM_OK)
        fail_msg("%s", tdm_error_sentence(&err, 0));
    return augment;
}

static void assert_written(const char *spec, const char *written)
{
    struct tdmi_augment augment = read_spec(spec);
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    tdmi_augment_write(&augment, &text);
    assert_string_equal(tdmi_text_string(&text), written);
    struct tdmi_augment again = read_spec(tdmi_text_string(&text));
    assert_memory_equal(again.is_on, augment.is_on, sizeof again.is_on);
    assert_memory_equal(again.arguments, augment.arguments, sizeof again.arguments);
}

TEST(a_spec_is_completed_and_reads_back)
{
    assert_written("", "none");
    assert_written("none", "none");
    assert_written("flip", "flip:0.5");
    assert_written("jitter:0.2", "jitter:0.2:0.2:0.2:0");
    assert_written("jitter:0.2:0:0.3:0.05", "jitter:0.2:0:0.3:0.05");
    assert_written("jitter:-0", "jitter:0:0:0:0");
    assert_written("cutmix,mixup:0.4", "mixup:0.4,cutmix:1");
    assert_written("flip,crop:4,jitter:0.4,cutout:8,randaugment:2:9,mixup:0.2",
                   "crop:4:0,flip:0.5,randaugment:2:9,jitter:0.4:0.4:0.4:0,cutout:8:128,mixup:0.2");
    assert_written("flip,zoom:0.25", "zoom:0.25:1:1.1,flip:0.5");
    assert_written("rotate:7.5:255,resized-crop:0.35:0.9:1.5",
                   "resized-crop:0.35:0.9:1.5,rotate:7.5:255");
}

TEST(every_augmentation_is_read_by_its_name)
{
    for (int kind = 0; kind < TDMI_AUGMENTS; kind++) {
        const char *name = tdmi_augment_name((enum tdmi_augment_kind)kind);
        struct tdmi_augment augment = read_spec(name);
        assert_true(augment.is_on[kind]);
    }
}

TEST(a_wrong_spec_gets_one_sentence)
{
    static const struct {
        const char *spec, *words;
    } cases[] = {
        {"fliip", "'fliip' is no augmentation (known are resized-crop, zoom, crop, flip, "
                  "rotate, randaugment, jitter, cutout, mixup, cutmix); did you mean 'flip'?"},
        {"corp:4", "did you mean 'crop'?"},
        {"rand", "did you mean 'randaugment'?"},
        {"Flip", "did you mean 'flip'?"},
        {"cutmixup", "did you mean 'cutmix'?"},
        {"zebra", "'zebra' is no augmentation (known are resized-crop"},
        {"flip,,crop", "a name is missing"},
        {",", "a name is missing"},
        {"flip,", "a name is missing"},
        {":4", "a name is missing"},
        {"flip flip", "'flip flip' is no augmentation"},
        {"flip,none", "'none' is no augmentation"},
        {"flip,crop,flip", "'flip' is there twice; once is possible"},
        {"crop:", "'crop' has the pixels '' (up to so many in each direction), which is no number"},
        {"crop:four", "'four'"},
        {"crop:4.5", "'crop' has the pixels 4.5 (up to so many in each direction); whole numbers "
                     "from 1 to 1024 are possible"},
        {"crop:0", "whole numbers from 1 to 1024"},
        {"crop:4:256", "the fill 256"},
        {"crop:4:0:1", "a value too many, '1'; it takes 2"},
        {"flip:1.5", "'flip' has the chance 1.5 (of being mirrored); numbers from 0 to 1"},
        {"flip:nan", "the chance nan"},
        {"mixup:inf", "the alpha inf"},
        {"mixup:0", "numbers from 0.01 to 8"},
        {"randaugment:2:31", "the magnitude 31"},
        {"resized-crop:0.5:0.4", "smallest area 0.5 and the largest 0.4"},
        {"zoom:0.5:0.4", "'zoom' has the smallest area 0.5 and the largest 0.4"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "a"
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "aa",
         "is no augmentation"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tdmi_augment augment;
        tdm_error err = {0};
        assert_int_equal(tdmi_augment_read(cases[i].spec, &augment, &err), TDM_E_USAGE);
        assert_int_equal(err.n_frames, 1);
        assert_non_null(strstr(tdm_error_sentence(&err, 0), "cannot augment by '"));
        if (strstr(tdm_error_sentence(&err, 0), cases[i].words) == NULL)
            fail_msg("%s: %s", cases[i].spec, tdm_error_sentence(&err, 0));
        for (int kind = 0; kind < TDMI_AUGMENTS; kind++)
            assert_false(augment.is_on[kind]);
    }
}

TEST_MAIN(NULL, NULL)
