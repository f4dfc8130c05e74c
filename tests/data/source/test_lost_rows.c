/* Files that lost more than half of their rows: counted file by file, each row once. */
#include "unit.h"
#include "data/parquet/parquet_files.h"

#include "data/audit/contents.h"
#include "data/source/source.h"
#include "io/storage/storage.h"

/* The first 7 of the 12 rows of the one are in a damaged page, the last 5 of the other. */
static const char *const names[] = {"most_rows_damaged.parquet", "some_rows_damaged.parquet"};
enum { ROWS = 12, GROUP = 7 };

static tdm_status read_contents(const tdmi_source *source, tdmi_contents *contents, char text[8000])
{
    tdmi_pool *pool = NULL;
    tdm_error err = {0};
    assert_int_equal(tdmi_pool_new(2, NULL, &pool, &err), TDM_OK);
    const tdm_status status =
        tdmi_contents_read(source, pool, "reading", (tdm_sink){0}, contents, &err);
    tdm_error_format(&err, text, 8000);
    tdmi_pool_free(pool);
    return status;
}

/* Both files in one folder: the rows of each are counted for themselves. */
static tdmi_source *open_both(struct tree *tree, const char *list)
{
    const struct tdm_source_options options = {.quarantine = list};
    tdmi_source *source = NULL;
    tdm_error err = {0};
    *tree = tree_new();
    for (int i = 0; i < 2; i++) {
        char name[100];
        TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
        assert_int_equal(tdmi_storage_read_file(parquet_fixture(names[i]), 1 << 20, &bytes, &err),
                         TDM_OK);
        snprintf(name, sizeof name, "t/%s", names[i]);
        tree_file(tree, name, bytes.bytes, bytes.length_bytes);
    }
    assert_ok(tdmi_source_open(tree_path(tree, "t"), &options, &source, &err), &err);
    return source;
}

TEST(a_file_without_most_of_its_rows_is_an_error)
{
    char text[8000];
    for (int i = 0; i < 2; i++) {
        tdmi_contents contents = {0};
        tdmi_source *source = open_source(parquet_fixture(names[i]));
        const tdm_status status = read_contents(source, &contents, text);
        assert_int_equal(status, i == 0 ? TDM_E_INPUT : TDM_OK);
        if (i == 0)
            assert_non_null(strstr(text, "more than half of the 12 rows of '"));
        else
            assert_int_equal(contents.n_unreadable, ROWS - GROUP);
        tdmi_contents_release(&contents);
        tdmi_source_close(source);
    }
}

TEST(each_file_is_counted_for_itself)
{
    struct tree tree;
    tdmi_source *source = open_both(&tree, NULL);
    assert_int_equal(tdmi_source_items(source), 2 * ROWS);
    for (int64_t i = 0; i < 2 * ROWS; i++) {
        int64_t first, end;
        const char *path = tdmi_source_row_file(source, i, &first, &end);
        assert_non_null(strstr(path, names[i / ROWS]));
        assert_int_equal(first, i / ROWS * ROWS);
        assert_int_equal(end, first + ROWS);
    }
    tdmi_lost_rows lost = {0};
    tdm_error err = {0};
    for (int64_t i = 0; i < ROWS / 2; i++) { /* half of each, twice */
        assert_int_equal(tdmi_lost_rows_add(&lost, source, i, NULL, &err), TDM_OK);
        assert_int_equal(tdmi_lost_rows_add(&lost, source, ROWS + i, NULL, &err), TDM_OK);
        assert_int_equal(tdmi_lost_rows_add(&lost, source, i, NULL, &err), TDM_OK);
    }
    for (int again = 0; again < 2; again++) {
        assert_int_equal(tdmi_lost_rows_add(&lost, source, ROWS + 6, "it is odd", &err),
                         TDM_E_INPUT);
        assert_non_null(strstr(tdm_error_sentence(&err, 0), names[1]));
        assert_non_null(strstr(tdm_error_sentence(&err, 0), "(it is odd)"));
    }
    tdmi_lost_rows_release(&lost);
    tdmi_source_close(source);
    tree_free(&tree);
}

/* Files that a list leaves out have no row. */
TEST(rows_that_are_left_out_are_not_counted)
{
    struct tree tree;
    char text[8000], list[2000] = "", path[2000];
    tdmi_source_close(open_both(&tree, NULL));
    for (int i = 0; i < GROUP; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "{\"path\":\"%s#%d\"}\n",
                 names[0], i);
    snprintf(path, sizeof path, "%s", tree_path(&tree, "list.jsonl"));
    tree_text(&tree, "list.jsonl", list);
    struct tree second;
    tdmi_source *source = open_both(&second, path);
    tdmi_contents contents = {0};
    int64_t first, end;
    assert_int_equal(tdmi_source_items(source), 2 * ROWS - GROUP);
    (void)tdmi_source_row_file(source, ROWS - GROUP, &first, &end);
    assert_int_equal(first, ROWS - GROUP);
    assert_int_equal(end, 2 * ROWS - GROUP);
    assert_int_equal(read_contents(source, &contents, text), TDM_OK);
    assert_int_equal(contents.n_unreadable, ROWS - GROUP);
    tdmi_contents_release(&contents);
    tdmi_source_close(source);
    tree_free(&tree);
    tree_free(&second);
}

TEST(pictures_that_are_files_are_not_counted)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tdmi_lost_rows lost = {0};
    tree_picture(&tree, "a/0.ppm", 0);
    tree_picture(&tree, "b/1.ppm", 1);
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = open_source(tree_path(&tree, ""));
    for (int64_t i = 0; i < 2; i++)
        assert_int_equal(tdmi_lost_rows_add(&lost, source, i, NULL, NULL), TDM_OK);
    assert_int_equal(lost.n_files, 0);
    tdmi_lost_rows_release(&lost);
}

TEST_MAIN(NULL, NULL)
