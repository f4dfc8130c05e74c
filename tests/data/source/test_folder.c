/* Folders of pictures: classes, parts, what is passed over, and what is refused by name. */
#include "unit.h"
#include "data/sources.h"
#include "tandem/log.h"

#include <fcntl.h>

/* Each tree: files ("name" pictures; "name=text" others; "name/" folders) and what opens. */
TEST(trees_are_listed)
{
    static const struct {
        const char *files[12];
        const char *classes, *items;
        int64_t n_ignored;
    } cases[] = {
        {{"dog/b.ppm", "dog/a.ppm", "cat/z.PPM"},
         "cat dog",
         "cat/z.PPM 0 0, dog/a.ppm 1 0, dog/b.ppm 1 0",
         0},
        {{"cat/2024/may/a.ppm", "cat/b.ppm", "dog/c.ppm"},
         "cat dog",
         "cat/2024/may/a.ppm 0 0, cat/b.ppm 0 0, dog/c.ppm 1 0",
         0},
        {{"Äpfel/a.ppm", "zebra/a.ppm", "猫/a.ppm", "with space/a b.ppm"},
         "with space zebra Äpfel 猫",
         "with space/a b.ppm 0 0, zebra/a.ppm 1 0, Äpfel/a.ppm 2 0, 猫/a.ppm 3 0",
         0},
        {{"train/cat/a.ppm", "train/dog/a.ppm", "val/cat/b.ppm", "test/cat/c.ppm"},
         "cat dog",
         "test/cat/c.ppm 0 3, train/cat/a.ppm 0 1, train/dog/a.ppm 1 1, val/cat/b.ppm 0 2",
         0},
        {{"Train/cat/a.ppm", "valid/cat/b.ppm", "readme.txt=x"},
         "cat",
         "Train/cat/a.ppm 0 1, valid/cat/b.ppm 0 2",
         1},
        {{"train/cat/a.ppm", "validation/cat/b.ppm", "test/1.ppm"},
         "cat",
         "test/1.ppm -1 3, train/cat/a.ppm 0 1, validation/cat/b.ppm 0 2",
         0},
        {{"train/cat/a.ppm", "train/dog/b.ppm"},
         "cat dog",
         "train/cat/a.ppm 0 0, train/dog/b.ppm 1 0",
         0},
        {{"train/a.ppm", "car/a.ppm"}, "car train", "car/a.ppm 0 0, train/a.ppm 1 0", 0},
        {{"b.ppm", "a.ppm", "notes.txt=x"}, "", "a.ppm -1 0, b.ppm -1 0", 1},
        {{"a.ppm", "empty/"}, "", "a.ppm -1 0", 0},
        {{"cat/a.ppm", "dog/", "loose.ppm", "more.txt=x"}, "cat dog", "cat/a.ppm 0 0", 2},
        {{"cat/a.ppm", "cat/.hidden.ppm", "cat/_x.ppm", ".git/a.ppm", "_log/a.ppm", "cat/.d/a.ppm"},
         "cat",
         "cat/a.ppm 0 0",
         0},
        /* A run written among the pictures is no class, nor are the pictures in it. */
        {{"cat/a.ppm", "run/run.json={}", "run/plots/a.ppm", "run/a.ppm", "runs/b.ppm"},
         "cat runs",
         "cat/a.ppm 0 0, runs/b.ppm 1 0",
         0},
        {{"cat/a.ppm", "cat/run-1/run.json={}", "cat/run-1/a.ppm", "cat/run-10.ppm"},
         "cat",
         "cat/a.ppm 0 0, cat/run-10.ppm 0 0",
         0},
        /* Nor is a folder that holds nothing but runs. */
        {{"cat/a.ppm", "runs/1/run.json={}", "runs/1/plots/a.ppm", "runs/2/run.json={}"},
         "cat",
         "cat/a.ppm 0 0",
         0},
        {{"cat/a.ppm", "old/runs/1/run.json={}", "zebra/a.ppm"},
         "cat zebra",
         "cat/a.ppm 0 0, zebra/a.ppm 1 0",
         0},
        {{"cat/a.ppm", "runs/1/run.json={}", "runs/2/"}, "cat runs", "cat/a.ppm 0 0", 0},
        {{"train/cat/a.ppm", "val/cat/b.ppm", "runs/1/run.json={}"},
         "cat",
         "train/cat/a.ppm 0 1, val/cat/b.ppm 0 2",
         0},
        {{"run.json={}", "cat/a.ppm"}, "cat", "cat/a.ppm 0 0", 1},
        {{"cat/a.ppm", "cat/Thumbs.db=x", "cat/list.csv=x", "cat/sub/more.json=x"},
         "cat",
         "cat/a.ppm 0 0",
         3},
        {{"cat/noending", "cat/image.0001", "cat/text=words", "cat/pixels.dat"},
         "cat",
         "cat/image.0001 0 0, cat/noending 0 0",
         2},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        TDMI_AT_END(tree_free) struct tree tree = tree_new();
        for (int f = 0; f < 12 && cases[c].files[f] != NULL; f++) {
            char name[200];
            snprintf(name, sizeof name, "%s", cases[c].files[f]);
            char *text = strchr(name, '=');
            if (text != NULL) {
                *text = '\0';
                tree_text(&tree, name, text + 1);
            } else if (name[strlen(name) - 1] == '/') {
                tree_path(&tree, name); /* makes the folder */
            } else {
                tree_picture(&tree, name, 1);
            }
        }
        TDMI_AT_END(tdmi_source_close_at)
        tdmi_source *source =
            open_listed(tree.root, "folder", cases[c].classes, cases[c].items, cases[c].n_ignored);
        assert_string_equal(tdmi_source_path(source), tree.root);
    }
}

TEST(bytes_are_those_of_the_file)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    size_t length = 300000;
    TDMI_AT_END(free_at) char *content = malloc(length);
    assert_non_null(content);
    for (size_t i = 0; i < length; i++)
        content[i] = (char)(i * 31 % 251);
    tree_file(&tree, "cat/large.ppm", content, length);
    tree_text(&tree, "cat/small.ppm", "few");
    tree_text(&tree, "cat/zero.ppm", "");
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = open_source(tree.root);
    assert_bytes(source, 0, content, length);
    assert_bytes(source, 1, "few", 3);
    assert_bytes(source, 2, "", 0);
}

TEST(links_are_followed_but_not_in_circles)
{
    struct tree tree = tree_new(), elsewhere = tree_new();
    tree_picture(&elsewhere, "deep/x.ppm", 1);
    tree_picture(&tree, "cat/a.ppm", 2);
    assert_int_equal(symlink("..", tree_path(&tree, "cat/up")), 0);
    assert_int_equal(symlink(".", tree_path(&tree, "cat/self")), 0);
    assert_int_equal(symlink(elsewhere.root, tree_path(&tree, "dog")), 0);
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = open_quietly(tree.root);
    assert_classes(source, "cat dog");
    assert_items(source, "cat/a.ppm 0 0, dog/deep/x.ppm 1 0");
    tree_free(&tree);
    tree_free(&elsewhere);
}

/* A class without a picture ends training; one that holds only circles is none. */
TEST(links_in_circles_are_left_out_and_counted)
{
    static const char *const links[][2] = {
        {"cat/self", "self"},    {"cat/b.ppm", "b.ppm"},      {"cat/up", ".."},       {"all", "."},
        {"fox/again", "../fox"}, {"owl/deep/round", "round"}, {"owl/x.ppm", "x.ppm"},
    };
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tree_picture(&tree, "cat/a.ppm", 1);
    tree_picture(&tree, "dog/a.ppm", 2);
    tree_path(&tree, "empty/");
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++)
        assert_int_equal(symlink(links[i][1], tree_path(&tree, links[i][0])), 0);
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = open_quietly(tree.root);
    assert_classes(source, "cat dog empty");
    assert_items(source, "cat/a.ppm 0 0, dog/a.ppm 1 0");
    assert_int_equal(tdmi_source_ignored(source), 7);
}

/* Only calls relative to a folder can make such paths. */
TEST(paths_beyond_what_the_system_takes_are_left_out_and_counted)
{
    enum { STEP = 100, STEPS = 40, END = 55 };
    char name[STEP + 1], last[END + 1];
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tree_picture(&tree, "cat/a.ppm", 1);
    tree_picture(&tree, "dog/a.ppm", 2);
    int folder = open(tree_path(&tree, "cat"), O_RDONLY | O_DIRECTORY);
    memset(name, 'd', STEP);
    memset(last, 'e', END);
    name[STEP] = last[END] = '\0';
    memcpy(last + END - 4, ".ppm", 4);
    for (int i = 0; i < STEPS; i++) {
        int below;
        assert_int_equal(mkdirat(folder, name, 0777), 0);
        assert_true((below = openat(folder, name, O_RDONLY | O_DIRECTORY)) >= 0);
        close(folder);
        folder = below;
    }
    /* The folder's own path is short enough. */
    assert_int_equal(mkdirat(folder, name, 0777), 0);
    assert_int_equal(mkdirat(folder, "short", 0777), 0);
    close(openat(folder, last, O_CREAT | O_WRONLY, 0666));
    tdmi_source *source = open_quietly(tree.root);
    assert_classes(source, "cat dog");
    assert_items(source, "cat/a.ppm 0 0, dog/a.ppm 1 0");
    assert_int_equal(tdmi_source_ignored(source), 2);
    tdmi_source_close(source);
    assert_int_equal(unlinkat(folder, name, AT_REMOVEDIR), 0);
    assert_int_equal(unlinkat(folder, last, 0), 0);
    close(folder);
}

TEST(a_dangling_link_is_listed_and_fails_when_read)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tree_path(&tree, "cat/");
    assert_int_equal(symlink("nowhere", tree_path(&tree, "cat/a.ppm")), 0);
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = open_source(tree.root);
    assert_items(source, "cat/a.ppm 0 0");
    assert_unreadable(source, 0, "cat/a.ppm");
}

/* A pipe without a writer would block whoever opens it. */
TEST(pipes_are_never_opened)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tree_picture(&tree, "cat/a.ppm", 2);
    assert_int_equal(mkfifo(tree_path(&tree, "cat/pipe"), 0666), 0);
    assert_int_equal(mkfifo(tree_path(&tree, "cat/pipe.ppm"), 0666), 0);
    TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = open_source(tree.root);
    assert_items(source, "cat/a.ppm 0 0");
    assert_int_equal(tdmi_source_ignored(source), 2);
}

TEST(what_is_no_data_set_is_refused_by_name)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    assert_refused("/nowhere/at/all", TDM_E_INPUT, "/nowhere/at/all");
    assert_refused(tree.root, TDM_E_INPUT, "no image");
    tree_text(&tree, "cat/words.txt", "x");
    assert_refused(tree.root, TDM_E_INPUT, "1 other file");
    tree_text(&tree, "file.txt", "x");
    assert_refused(tree_path(&tree, "file.txt"), TDM_E_INPUT, "folder of class folders");
}

TEST(an_unreadable_folder_is_an_error_that_names_it)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tree_picture(&tree, "cat/a.ppm", 2);
    tree_picture(&tree, "cat/locked/b.ppm", 2);
    assert_int_equal(chmod(tree.root, 0755), 0);
    assert_int_equal(chmod(tree_path(&tree, "cat/locked"), 0), 0);
    /* The superuser may read everything, so it steps down for the while. */
    uid_t user = geteuid();
    if (user == 0)
        assert_int_equal(seteuid(65534), 0);
    assert_refused(tree.root, TDM_E_INPUT, "cat/locked");
    assert_int_equal(seteuid(user), 0);
    assert_int_equal(chmod(tree_path(&tree, "cat/locked"), 0777), 0);
}

TEST(a_real_collection_opens)
{
    TDMI_AT_END(tdmi_source_close_at)
    tdmi_source *source = open_source(test_data("datasets/caltech101_10"));
    assert_int_equal(tdmi_source_items(source), 845);
    assert_classes(source,
                   "butterfly grand_piano helicopter ibis kangaroo laptop scorpion starfish "
                   "sunflower umbrella");
}

TEST(running_out_of_memory_is_an_error)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tree_picture(&tree, "train/cat/a.ppm", 1);
    tree_picture(&tree, "val/cat/deep/b.ppm", 1);
    tree_picture(&tree, "val/dog/c.ppm", 1);
    assert_survives_lack_of_memory(tree.root);
}

TEST_MAIN(NULL, NULL)
