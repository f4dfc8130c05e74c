/*
 * The JSON form of a preprocessing reads back, and any other says what is wrong and what would do.
 */
#include "image/pictures.h"
#include "image/preprocess.h"
#include "unit.h"

TEST(the_json_form_reads_back)
{
    for (int i = 0; i < 4; i++) {
        const struct tdmi_preprocess written = {.width = 224 + i,
                                                .height = 192,
                                                .channels = i % 2 == 0 ? 3 : 1,
                                                .fit = (enum tdmi_fit)(i % 3),
                                                .crop_fraction = 0.875,
                                                .filter = (enum tdmi_filter)(i % 3),
                                                .scale = (enum tdmi_scale)i,
                                                .uses_draft = i > 1};
        tdm_json_writer *writer = tdm_json_writer_new(0);
        const char *text = NULL;
        size_t length = 0;
        tdmi_preprocess_to_json(&written, writer, NULL);
        assert_int_equal(tdm_json_finish(writer, &text, &length, NULL), TDM_OK);
        tdm_json_document *document = NULL;
        assert_int_equal(tdm_json_read(text, length, "test", &document, NULL), TDM_OK);
        struct tdmi_preprocess read = {0};
        assert_int_equal(tdmi_preprocess_from_json(tdm_json_root(document), "test", &read, NULL),
                         TDM_OK);
        assert_int_equal(read.width, written.width);
        assert_int_equal(read.height, written.height);
        assert_int_equal(read.channels, written.channels);
        assert_int_equal(read.fit, written.fit);
        assert_int_equal(read.filter, written.filter);
        assert_int_equal(read.scale, written.scale);
        assert_int_equal(read.uses_draft, written.uses_draft);
        assert_true(read.crop_fraction == written.crop_fraction);
        tdm_json_document_free(document);
        tdm_json_writer_free(writer);
    }
}

TEST(a_file_from_before_drafts_has_none)
{
    static const char text[] = "{\"width\": 5, \"height\": 5, \"channels\": 3, \"fit\": \"pad\", "
                               "\"crop_fraction\": 1, \"filter\": \"lanczos\", \"scale\": \"tf\"}";
    tdm_json_document *document = NULL;
    struct tdmi_preprocess read = {.uses_draft = true};
    assert_int_equal(tdm_json_read(text, sizeof text - 1, "test", &document, NULL), TDM_OK);
    assert_int_equal(tdmi_preprocess_from_json(tdm_json_root(document), "test", &read, NULL),
                     TDM_OK);
    assert_int_equal(read.width, 5);
    assert_false(read.uses_draft);
    tdm_json_document_free(document);
}

#define REST ", \"fit\": \"pad\", \"crop_fraction\": 1, \"filter\": \"lanczos\", \"scale\": \"tf\"}"

TEST(other_json_says_what_is_wrong)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"[]", "no object"},
        {"{}", "\"width\""},
        {"{\"width\": 0, \"height\": 5, \"channels\": 3" REST, "\"width\""},
        {"{\"width\": 5, \"height\": 1e6, \"channels\": 3" REST, "\"height\""},
        {"{\"width\": 5, \"height\": 5.5, \"channels\": 3" REST, "\"height\""},
        {"{\"width\": 5, \"height\": 5, \"channels\": 4" REST, "\"channels\" is 4"},
        {"{\"width\": 5, \"height\": 5, \"channels\": 3, \"colour\": 1" REST, "\"colour\""},
        {"{\"width\": 5, \"height\": 5, \"channels\": 3, \"fit\": \"padd\"}",
         "\"padd\"; possible are: pad, crop, stretch"},
        {"{\"width\": 5, \"height\": 5, \"channels\": 3, \"draft\": 1" REST,
         "\"draft\" is neither true nor false"},
        {"{\"width\": 5, \"height\": 5, \"channels\": 3, \"fit\": 1}", "missing or no string"},
        {"{\"width\": 5, \"height\": 5, \"channels\": 3, \"fit\": \"pad\", \"filter\": \"x\"}",
         "lanczos, bicubic, bilinear"},
        {"{\"width\": 5, \"height\": 5, \"channels\": 3, \"fit\": \"pad\", \"filter\": "
         "\"lanczos\", \"scale\": \"\"}",
         "tf, torch, unit, raw"},
        {"{\"width\": 5, \"height\": 5, \"channels\": 3, \"fit\": \"pad\", \"filter\": "
         "\"lanczos\", \"scale\": \"tf\", \"crop_fraction\": 2}",
         "\"crop_fraction\""},
        {"{\"width\": 5, \"height\": 5, \"channels\": 3, \"fit\": \"pad\", \"filter\": "
         "\"lanczos\", \"scale\": \"tf\"}",
         "\"crop_fraction\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tdm_json_document *document = NULL;
        tdm_error err = {0};
        struct tdmi_preprocess read = {.width = 77};
        assert_int_equal(
            tdm_json_read(cases[i].text, strlen(cases[i].text), "test", &document, NULL), TDM_OK);
        assert_int_equal(tdmi_preprocess_from_json(tdm_json_root(document), "model.x", &read, &err),
                         TDM_E_INPUT);
        if (strstr(tdm_error_sentence(&err, 0), cases[i].words) == NULL)
            fail_msg("\"%s\" does not say %s", tdm_error_sentence(&err, 0), cases[i].words);
        assert_non_null(strstr(tdm_error_sentence(&err, 1), "model.x"));
        assert_int_equal(read.width, 77);
        tdm_json_document_free(document);
    }
    assert_int_equal(tdmi_preprocess_from_json(NULL, "x", &(struct tdmi_preprocess){0}, NULL),
                     TDM_E_INPUT);
}

TEST_MAIN(NULL, NULL)
