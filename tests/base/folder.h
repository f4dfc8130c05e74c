/*
 * A fresh folder for a test, small files in it, and their removal. Include it after cmocka.h.
 */
#pragma once

#include "unit.h"
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

struct folder {
    char path[64];
};

/* A path below the folder; good until the fourth call after it. */
static inline const char *folder_path(const struct folder *folder, const char *name)
{
    static _Thread_local char paths[4][512];
    static _Thread_local int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder->path, name);
    return path;
}

static inline struct folder folder_new(void)
{
    struct folder folder = {.path = "/tmp/tandem-base-XXXXXX"};
    assert_non_null(mkdtemp(folder.path));
    return folder;
}

static inline int folder_remove_one(const char *path, const struct stat *facts, int flag,
                                    struct FTW *where)
{
    (void)facts;
    (void)flag;
    (void)where;
    return remove(path);
}

static inline void folder_remove(struct folder *folder)
{
    nftw(folder->path, folder_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A file with text, and the folders on the way to it. */
static inline void folder_put(struct folder *folder, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s", folder_path(folder, name));
    for (char *at = path + strlen(folder->path) + 1; *at; at++)
        if (*at == '/') {
            *at = '\0';
            mkdir(path, 0777);
            *at = '/';
        }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}
