/* The list of pictures to leave out: read, honoured by every source, refused where it is no list.
 */
#include "unit.h"
#include "base/each_allocation.h"
#include "data/audit/quarantine.h"
#include "data/sources.h"

TEST(listed_pictures_are_left_out_of_a_source)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    const char *names[] = {"cat/a.ppm", "cat/b.ppm", "dog/c.ppm", "dog/\xff.ppm"};
    for (uint32_t i = 0; i < 4; i++)
        tree_picture(&tree, names[i], i);
    tree_text(&tree, "bad.txt",
              "{\"path\":\"cat/b.ppm\",\"verdict\":\"corrupt\"}\n\n"
              "{\"path\":\"dog/gone.ppm\"}\r\n{\"path\":\"dog/\xef\xbf\xbd.ppm\"}");
    char list[1024];
    snprintf(list, sizeof list, "%s", tree_path(&tree, "bad.txt"));
    tdm_error err = {0};
    tdmi_source *source = NULL;
    const struct tdm_source_options options = {.quarantine = list};
    assert_int_equal(tdmi_source_open(tree.root, &options, &source, &err), TDM_OK);
    assert_items(source, "cat/a.ppm 0 0, dog/c.ppm 1 0");
    assert_int_equal(tdmi_source_quarantined(source), 2);
    TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
    assert_int_equal(tdmi_source_read(source, 1, &bytes, &err), TDM_OK);
    assert_int_equal(bytes.bytes[11], 2); /* the third image, not the second */
    tdmi_source_close(source);

    tree_text(&tree, "all.txt",
              "{\"path\":\"cat/a.ppm\"}\n{\"path\":\"cat/b.ppm\"}\n{\"path\":\"dog/c.ppm\"}\n"
              "{\"path\":\"dog/\xef\xbf\xbd.ppm\"}\n");
    snprintf(list, sizeof list, "%s", tree_path(&tree, "all.txt"));
    assert_int_equal(tdmi_source_open(tree.root, &options, &source, &err), TDM_E_INPUT);
    assert_null(source);
}

TEST(what_is_no_list_is_refused_with_its_line)
{
    static const struct {
        const char *text, *word;
    } cases[] = {
        {"{\"path\":\"a\"}\ncat/b.ppm\n", "line 2"},
        {"{\"path\":\"\"}\n", "line 1"},
        {"\n\n{\"file\":\"a\"}\n", "line 3"},
        {"[\"a\"]", "\"path\""},
        {"{\"path\":7}", "line 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        TDMI_AT_END(tree_free) struct tree tree = tree_new();
        tree_text(&tree, "list", cases[i].text);
        tdm_error err = {0};
        tdmi_quarantine *quarantine = NULL;
        assert_int_equal(tdmi_quarantine_read(tree_path(&tree, "list"), &quarantine, &err),
                         TDM_E_INPUT);
        assert_null(quarantine);
        assert_says(&err, cases[i].word);
    }
    tdm_error err = {0};
    tdmi_quarantine *quarantine = NULL;
    assert_int_equal(tdmi_quarantine_read("/nowhere/list", &quarantine, &err), TDM_E_INPUT);
}

TEST(the_bad_files_of_an_audit_read_back)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    struct tdm_audit_file files[] = {
        {.path = "a \"quoted\"\n.jpg", .verdict = TDM_VERDICT_CORRUPT, .reason = "why\\not"},
        {.path = "fine.jpg", .verdict = TDM_VERDICT_OK, .reason = ""},
        {.path = "turned.jpg", .verdict = TDM_VERDICT_ROTATED, .reason = ""},
        {.path = "cut.jpg", .verdict = TDM_VERDICT_TRUNCATED, .reason = "ends early"},
    };
    const struct tdm_audit audit = {.files = files, .images = 4, .bad = 2};
    tdm_error err = {0};
    TDMI_AT_END(tdmi_quarantine_free_at) tdmi_quarantine *list = NULL;
    const char *path = tree_path(&tree, "out/list");
    assert_int_equal(tdmi_quarantine_write(path, &audit, false, &err), TDM_OK);
    assert_int_equal(tdmi_quarantine_read(path, &list, &err), TDM_OK);
    assert_true(tdmi_quarantine_has(list, files[0].path));
    assert_false(tdmi_quarantine_has(list, files[1].path));
    assert_false(tdmi_quarantine_has(list, files[2].path));
    assert_true(tdmi_quarantine_has(list, files[3].path));
}

static const char *list_path;

static tdm_status read_list(tdm_error *err)
{
    TDMI_AT_END(tdmi_quarantine_free_at) tdmi_quarantine *list = NULL;
    return tdmi_quarantine_read(list_path, &list, err);
}

TEST(every_failing_allocation_is_an_ordinary_error)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tree_text(&tree, "list", "{\"path\":\"a\"}\n{\"path\":\"b\"}\n");
    list_path = tree_path(&tree, "list");
    assert_true(fail_each_allocation(read_list) > 0);
}

TEST_MAIN(NULL, NULL)
