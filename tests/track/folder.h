/* A folder for one test: made before, removed with all that is in it. */
#pragma once

#include "tandem/log.h"
#include "unit.h"
#include <ftw.h>
#include <unistd.h>

/* Set-up of a program whose cases make the library warn. */
static inline int be_silent(void **state)
{
    (void)state;
    tdm_log_set_level(TDM_LOG_SILENT);
    return 0;
}

static inline int make_folder(void **state)
{
    const char *base = getenv("TMPDIR");
    char *path = malloc(512);
    if (path == NULL)
        return -1;
    snprintf(path, 512, "%s/track-XXXXXX", base != NULL && base[0] != '\0' ? base : "/tmp");
    *state = path;
    return mkdtemp(path) == NULL ? -1 : 0;
}

static inline int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *at)
{
    (void)facts;
    (void)kind;
    (void)at;
    return remove(path);
}

static inline void remove_tree(const char *path)
{
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline int remove_folder(void **state)
{
    remove_tree(*state);
    free(*state);
    return 0;
}

/* "FOLDER/name" in path, which is returned. */
static inline const char *in_folder(void **state, const char *name, char path[1024])
{
    snprintf(path, 1024, "%s/%s", (const char *)*state, name);
    return path;
}

static inline void put_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(text, 1, strlen(text), file) != strlen(text) || fclose(file) != 0)
        abort();
}

/* At most 64 KiB, terminated; "(none)" for a missing file. Freed by the caller. */
static inline char *text_of(const char *path)
{
    char *text = calloc(1, 65537);
    FILE *file = fopen(path, "rb");
    if (text == NULL)
        abort();
    if (file == NULL)
        memcpy(text, "(none)", 6);
    else
        text[fread(text, 1, 65536, file)] = '\0';
    if (file != NULL)
        fclose(file);
    return text;
}
