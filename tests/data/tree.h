/*
 * Trees of small files below a fresh folder, for tests of what is read from disk.
 */
#pragma once

#include "tandem/error.h"
#include "unit.h"
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

struct tree {
    char root[64];
};

static inline struct tree tree_new(void)
{
    struct tree tree = {"/tmp/tandem-test-"};
    memset(tree.root + strlen(tree.root), 'X', 6); /* what mkdtemp replaces */
    assert_non_null(mkdtemp(tree.root));
    return tree;
}

static inline int tree_remove_one(const char *path, const struct stat *found, int kind,
                                  struct FTW *where)
{
    (void)found, (void)kind, (void)where;
    return remove(path);
}

static inline void tree_free(struct tree *tree)
{
    assert_int_equal(nftw(tree->root, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* The path below the root, its folders made; static storage, good until the next call. */
static inline const char *tree_path(const struct tree *tree, const char *name)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", tree->root, name);
    for (char *slash = path + strlen(tree->root) + 1; (slash = strchr(slash, '/')) != NULL;
         slash++) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
    return path;
}

static inline void tree_file(const struct tree *tree, const char *name, const void *bytes,
                             size_t length_bytes)
{
    FILE *file = fopen(tree_path(tree, name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length_bytes, file), length_bytes);
    assert_int_equal(fclose(file), 0);
}

static inline void tree_text(const struct tree *tree, const char *name, const char *text)
{
    tree_file(tree, name, text, strlen(text));
}

static inline void tree_folder(const struct tree *tree, const char *name)
{
    assert_int_equal(mkdir(tree_path(tree, name), 0777), 0);
}

/* A picture of 4 x 4 pixels that all hold the number, so that any resizing keeps it. */
static inline void tree_picture(const struct tree *tree, const char *name, uint32_t number)
{
    uint8_t bytes[11 + 4 * 4 * 3] = "P6\n4 4\n255\n";
    for (int i = 0; i < 16; i++)
        for (int c = 0; c < 3; c++)
            bytes[11 + 3 * i + c] = (uint8_t)(number >> 8 * c);
    tree_file(tree, name, bytes, sizeof bytes);
}

/* The failure is of this kind, and its sentences have the words. */
static inline void assert_failure(tdm_status status, tdm_status kind, const tdm_error *err,
                                  const char *words)
{
    char text[4096];
    tdm_error_format(err, text, sizeof text);
    assert_int_equal(status, kind);
    if (strstr(text, words) == NULL)
        fail_msg("'%s' is not in: %s", words, text);
}
