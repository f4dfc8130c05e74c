/*
 * Runs a fuzz target over stored inputs without libFuzzer, so that every corpus is an ordinary test
 * in every build. Each file is given whole and cut short at up to 64 places: most parser mistakes
 * that fuzzing found once show again at some length of a valid file. A finding is a crash or a
 * sanitizer's report; this program itself only fails when there is nothing to replay.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes);

enum { CUTS = 64 };

/* A copy of its exact length for every call: a read past the end then meets the sanitizer. */
static int run(const uint8_t *bytes, size_t length_bytes)
{
    uint8_t *copy = malloc(length_bytes ? length_bytes : 1);
    if (!copy)
        return -1;
    if (length_bytes)
        memcpy(copy, bytes, length_bytes);
    (void)LLVMFuzzerTestOneInput(copy, length_bytes);
    free(copy);
    return 0;
}

static int replay(const char *path)
{
    int result = -1;
    uint8_t *bytes = NULL;
    FILE *file = fopen(path, "rb");
    struct stat about;
    if (!file || fstat(fileno(file), &about) != 0)
        goto out;
    size_t length = (size_t)about.st_size;
    bytes = malloc(length ? length : 1);
    if (!bytes || fread(bytes, 1, length, file) != length)
        goto out;
    result = run(bytes, length);
    size_t step = length / CUTS + 1;
    for (size_t cut = 0; cut < length && result == 0; cut += step)
        result = run(bytes, cut);
out:
    free(bytes);
    if (file)
        fclose(file);
    if (result != 0)
        printf("not ok - cannot replay %s\n", path);
    return result;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* The number of files replayed; -1 after a failure. */
static int replay_folder(const char *folder)
{
    struct dirent **names = NULL;
    int n_names = scandir(folder, &names, NULL, by_name);
    int n_replayed = 0;
    for (int i = 0; i < n_names; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
        if (n_replayed >= 0 && names[i]->d_name[0] != '.')
            n_replayed = replay(path) == 0 ? n_replayed + 1 : -1;
        free(names[i]);
    }
    free(names);
    return n_names < 0 ? -1 : n_replayed;
}

int main(int n_arguments, char **arguments)
{
    if (n_arguments != 2) {
        fprintf(stderr, "usage: %s CORPUS-FOLDER\n", arguments[0]);
        return 2;
    }
    int n_replayed = replay_folder(arguments[1]);
    if (n_replayed <= 0) {
        printf("not ok - no input to replay in %s\n", arguments[1]);
        return 1;
    }
    printf("ok - replays %d inputs of %s\n", n_replayed, arguments[1]);
    return 0;
}
