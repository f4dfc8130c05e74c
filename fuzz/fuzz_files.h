/*
 * For parsers that open paths: a fresh folder for every input, and a source opened and read to its
 * end.
 */
#pragma once

#include "fuzz.h"
#include "data/source/source.h"

#include <stdio.h>
#include <unistd.h>

/* A failure here is no finding, but must not pass unseen. */
static inline void fuzz_folder(char folder[64])
{
    memset(folder, 0, 64);
    snprintf(folder, 64, "/tmp/tandem-fuzz-");
    memset(folder + strlen(folder), 'X', 6); /* what mkdtemp replaces */
    if (mkdtemp(folder) == NULL)
        abort();
}

static inline void fuzz_file(const char *folder, const char *name, const uint8_t *bytes,
                             size_t length_bytes)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, length_bytes, file) != length_bytes || fclose(file) != 0)
        abort();
}

static inline void fuzz_remove(const char *folder, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
}

static inline void fuzz_remove_folder(const char *folder)
{
    if (rmdir(folder) != 0)
        abort();
}

/* A picture that was listed must be read: nobody else touches the files. */
static inline void fuzz_source(const char *folder)
{
    tdmi_source *source = NULL;
    tdm_error err = {0};
    tdmi_text bytes = {0};
    if (tdmi_source_open(folder, NULL, &source, &err) != TDM_OK) {
        if (err.n_frames == 0)
            abort();
        return;
    }
    for (int64_t i = 0; i < tdmi_source_items(source); i++) {
        struct tdmi_item item = tdmi_source_item(source, i);
        if (item.label < 0 || item.label >= tdmi_source_classes(source) ||
            tdmi_source_read(source, i, &bytes, &err) != TDM_OK)
            abort();
    }
    tdmi_text_release(&bytes);
    tdmi_source_close(source);
}
