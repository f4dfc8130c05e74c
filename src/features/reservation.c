/*
 * One small file for each reservation. Its name is that of a temporary file, so that it is swept
 * like one.
 */

#include "base/file/file.h"
#include "base/text/text.h"
#include "features/inside.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define BEGINNING ".room-"
#define ENDING ".tmp"

enum { most_tries = 1000, text_bytes = 24 };

/* Always of one length, so that a smaller number overwrites a larger one. */
static bool write_bytes(int file, int64_t bytes)
{
    char text[text_bytes + 1];
    snprintf(text, sizeof text, "%*lld\n", text_bytes - 1, (long long)bytes);
    return pwrite(file, text, text_bytes, 0) == text_bytes;
}

/* A unique name, even where a process of another machine has the same id. */
static int create(const char *folder, char **path)
{
    const size_t path_bytes = strlen(folder) + 64;
    int file = -1;
    *path = tdmi_alloc(path_bytes, 1);
    for (int i = 0; *path != NULL && file < 0 && i < most_tries; i++) {
        snprintf(*path, path_bytes, "%s/" BEGINNING "%ld-%d" ENDING, folder, (long)getpid(), i);
        file = open(*path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file < 0 && errno != EEXIST)
            break;
    }
    return file;
}

void tdmi_store_reserve(struct tdmi_store_reservation *reservation, const char *folder,
                        int64_t bytes)
{
    char *path;
    const int file = create(folder, &path);
    if (file >= 0 && tdmi_store_lock_now(file, LOCK_EX | LOCK_NB) == 0 &&
        write_bytes(file, bytes)) {
        *reservation = (struct tdmi_store_reservation){.path = path, .file = file};
        return;
    }
    if (file >= 0) {
        (void)unlink(path);
        close(file);
    }
    tdmi_free(path);
}

void tdmi_store_reservation_lower(const struct tdmi_store_reservation *reservation, int64_t bytes)
{
    if (reservation->path != NULL)
        (void)write_bytes(reservation->file, bytes); /* on failure others count a little too much */
}

void tdmi_store_reservation_release(struct tdmi_store_reservation *reservation)
{
    if (reservation->path == NULL)
        return;
    (void)unlink(reservation->path);
    close(reservation->file);
    tdmi_free(reservation->path);
    *reservation = (struct tdmi_store_reservation){0};
}

bool tdmi_store_is_reservation_name(const char *name)
{
    return strncmp(name, BEGINNING, strlen(BEGINNING)) == 0 && tdmi_ends_with(name, ENDING);
}

int64_t tdmi_store_reserved_bytes(const char *path)
{
    char text[text_bytes + 1] = "";
    const int file = open(path, O_RDWR | O_CLOEXEC);
    int64_t bytes = 0;
    if (file < 0)
        return 0;
    const bool is_alive = tdmi_store_lock_now(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (is_alive && pread(file, text, text_bytes, 0) > 0)
        bytes = strtoll(text, NULL, 10);
    else if (!is_alive)
        (void)unlink(path);
    close(file);
    return bytes > 0 ? bytes : 0;
}

int tdmi_store_counting_begin(const char *root)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    const char *path = tdmi_path_join(&arena, root, TDMI_STORE_LOCK);
    int lock = path == NULL ? -1 : open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    /* Counting takes a moment; a process that holds the lock for longer is suspended. */
    for (int i = 0; lock >= 0 && tdmi_store_lock_now(lock, LOCK_EX | LOCK_NB) != 0; i++) {
        if (errno == EWOULDBLOCK && i < most_tries) {
            nanosleep(&pause, NULL);
            continue;
        }
        close(lock);
        lock = -1;
    }
    return lock;
}

void tdmi_store_counting_end(const int *lock)
{
    if (*lock >= 0)
        close(*lock);
}
