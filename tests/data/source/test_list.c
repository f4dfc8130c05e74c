/* CSV and JSONL lists: rows in all their spellings, and errors that name the line. */
#include "unit.h"
#include "data/sources.h"

#include "tandem/log.h"

TEST(rows_are_listed)
{
    static const struct {
        const char *name, *text, *classes, *items;
        int64_t n_ignored;
    } cases[] = {
        {"l.csv", "a.ppm,cat\nb.ppm,dog\n", "cat dog", "a.ppm 0 0, b.ppm 1 0", 0},
        {"l.csv", "a.ppm,10\nb.ppm,9\nc.ppm,-1", "-1 9 10", "a.ppm 2 0, b.ppm 1 0, c.ppm 0 0", 0},
        {"l.csv", "a.ppm,10\nb.ppm,09\n", "09 10", "a.ppm 1 0, b.ppm 0 0", 0},
        {"l.csv", "path,label\na.ppm,x\n", "x", "a.ppm 0 0", 0},
        {"l.csv", "\xef\xbb\xbfpath,label\r\na.ppm,x\r\n\r\n", "x", "a.ppm 0 0", 0},
        {"l.csv", "id,Label,Filename,split\n1,x,a.ppm,train\n2,y,b.ppm,TEST\n", "x y",
         "a.ppm 0 1, b.ppm 1 3", 0},
        {"l.csv", "a.ppm,x,train\nb.ppm,y,\n", "x y", "a.ppm 0 1, b.ppm 1 0", 0},
        /* One part alone says nothing about the others. */
        {"l.csv", "a.ppm,x,train\nb.ppm,y,train\n", "x y", "a.ppm 0 0, b.ppm 1 0", 0},
        {"l.csv", "\"a, b.ppm\",\"say \"\"x\"\"\"\n", "say \"x\"", "a, b.ppm 0 0", 0},
        {"l.csv", "\"a\nb.ppm\",x\nc.ppm,x\n", "x", "a\nb.ppm 0 0, c.ppm 0 0", 0},
        {"l.csv", "a.ppm\nb.ppm\n", "", "a.ppm -1 0, b.ppm -1 0", 0},
        {"l.csv", "a.ppm,x\nb.ppm,\n", "x", "a.ppm 0 0", 1},
        {"L.CSV", "a.ppm,x", "x", "a.ppm 0 0", 0},
        {"l.jsonl",
         "{\"path\": \"a.ppm\", \"label\": \"cat\"}\n\n{\"path\": \"b.ppm\", "
         "\"label\": \"dog\", \"split\": \"val\"}",
         "cat dog", "a.ppm 0 0, b.ppm 1 2", 0},
        {"l.ndjson",
         "{\"file_name\": \"a.ppm\", \"class\": 10}\r\n{\"image\": \"b.ppm\", "
         "\"class\": 9}\r\n",
         "9 10", "a.ppm 1 0, b.ppm 0 0", 0},
        {"l.jsonl", "{\"path\": \"a.ppm\", \"label\": null}\n{\"path\": \"b.ppm\"}\n", "",
         "a.ppm -1 0, b.ppm -1 0", 0},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        TDMI_AT_END(tree_free) struct tree tree = tree_new();
        tree_text(&tree, cases[c].name, cases[c].text);
        TDMI_AT_END(tdmi_source_close_at)
        tdmi_source *source = open_listed(tree_path(&tree, cases[c].name), "list", cases[c].classes,
                                          cases[c].items, cases[c].n_ignored);
    }
}

TEST(errors_name_the_line)
{
    static const struct {
        const char *name, *text, *word;
    } cases[] = {
        {"l.csv", "a.ppm,x\nb.ppm,y,train,more\n", "line 2 of"},
        {"l.csv", "path,label\na.ppm,x\nb.ppm\n", "line 3 of"},
        {"l.csv", "path,label\na.ppm,x\nb.ppm\n", "has 1 fields; 2 are expected"},
        {"l.csv", "a.ppm,x\n,y\n", "line 2 of"},
        {"l.csv", "a.ppm,x,trian\n", "has 'trian' for the part; train, val or test"},
        {"l.csv", "a.ppm,x\n\"b.ppm,y\nc.ppm,z\n", "a quote in the row at line 2"},
        {"l.csv", "\"a\n.ppm\"x,y\n", "line 2 of"},
        {"l.csv", "a\".ppm,y\n", "quote inside a field"},
        {"l.csv", "path,label\n", "no image"},
        {"l.csv", "id,img.1,label,split\na.ppm,x\n", "path, label, part, as no line names"},
        {"l.jsonl", "{\"path\": \"a\"}\n{\"path\": \n", "line 2 of"},
        {"l.jsonl", "{\"path\": \"a\"}\n[1]\n", "line 2 of"},
        {"l.jsonl", "\n\n{\"label\": 1}\n", "line 3 of"},
        {"l.jsonl", "{\"path\": 7}\n", "has no \"path\""},
        {"l.jsonl", "{\"path\": \"a\", \"label\": 1.5}\n", "neither a string nor a whole number"},
        {"l.jsonl", "{\"path\": \"a\", \"label\": true}\n", "neither a string nor a whole number"},
        {"l.jsonl", "{\"path\": \"a\", \"split\": \"x\"}\n", "is 'x'; train, val or test"},
        {"l.jsonl", "{\"path\": \"a\", \"split\": 1}\n", "train, val or test is expected"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        TDMI_AT_END(tree_free) struct tree tree = tree_new();
        tree_text(&tree, cases[c].name, cases[c].text);
        assert_refused(tree_path(&tree, cases[c].name), TDM_E_INPUT, cases[c].word);
    }
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tree_file(&tree, "l.csv", "a.ppm,x\nb\0.ppm,y\n", 17);
    assert_refused(tree_path(&tree, "l.csv"), TDM_E_INPUT, "line 2 of");
}

TEST(paths_are_relative_to_the_list)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    char text[1024];
    tree_picture(&tree, "data/in/a.ppm", 1);
    tree_picture(&tree, "b.ppm", 2);
    snprintf(text, sizeof text, "in/a.ppm,x\n../b.ppm,x\n%s/b.ppm,y\nnone.ppm,y\n", tree.root);
    tree_text(&tree, "data/l.csv", text);
    TDMI_AT_END(tdmi_source_close_at)
    tdmi_source *source = open_source(tree_path(&tree, "data/l.csv"));
    TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
    tdm_error err = {0};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tdmi_source_read(source, i, &bytes, &err), TDM_OK);
        assert_int_equal(bytes.length_bytes, 11 + 48);
        assert_int_equal(bytes.bytes[11], i == 0 ? 1 : 2);
    }
    assert_unreadable(source, 3, "data/none.ppm");
}

/* Naming files of this machine is what lists are for; asking others is for who allows it. */
TEST(remote_places_need_follow)
{
    static const char *const texts[][2] = {
        {"l.csv", "path,label\na.ppm,x\ns3://bucket/b.ppm,y\n"},
        {"l.csv", "path,label\na.ppm,x\ngs://bucket/b.ppm,y\n"},
        {"l.csv", "path,label\na.ppm,x\nhttp://host/b.ppm,y\n"},
        {"l.jsonl", "{\"path\": \"a.ppm\", \"label\": \"x\"}\n\n"
                    "{\"path\": \"hdfs://host/b.ppm\", \"label\": \"y\"}\n"},
    };
    for (size_t c = 0; c < sizeof texts / sizeof texts[0]; c++) {
        TDMI_AT_END(tree_free) struct tree tree = tree_new();
        TDMI_AT_END(tdmi_source_close_at) tdmi_source *source = NULL;
        tdm_error err = {0};
        tree_picture(&tree, "a.ppm", 1);
        tree_text(&tree, texts[c][0], texts[c][1]);
        const char *path = tree_path(&tree, texts[c][0]);
        assert_refused(path, TDM_E_INPUT, "line 3 of");
        assert_refused(path, TDM_E_INPUT,
                       "/b.ppm', and the list itself lies on this machine: --follow reads it");
        assert_int_equal(
            tdmi_source_open(path, &(struct tdm_source_options){.follow = true}, &source, &err),
            TDM_OK);
        assert_classes(source, "x y");
        assert_int_equal(tdmi_source_items(source), 2);
    }
}

TEST(compressed_lists_are_read)
{
    if (tdmi_inflate_best() == NULL)
        skip();
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tree_text(&tree, "l.csv", "a.ppm,x\n");
    tree_gzip(&tree, "l.csv");
    TDMI_AT_END(tdmi_source_close_at)
    tdmi_source *source = open_source(tree_path(&tree, "l.csv.gz"));
    assert_items(source, "a.ppm 0 0");
}

TEST(running_out_of_memory_is_an_error)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    tree_picture(&tree, "a.ppm", 1);
    tree_text(&tree, "l.csv", "path,label\na.ppm,x\na.ppm,y\n");
    tree_text(&tree, "l.jsonl", "{\"path\": \"a.ppm\", \"label\": 1}\n");
    assert_survives_lack_of_memory(tree_path(&tree, "l.csv"));
    assert_survives_lack_of_memory(tree_path(&tree, "l.jsonl"));
}

TEST_MAIN(NULL, NULL)
