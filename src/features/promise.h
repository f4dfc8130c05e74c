/*
 * Room that a fill was promised and has not written yet, told to other processes by a file beside
 * the rows: its text is the bytes, and who promised them holds its lock. So a promise ends with its
 * fill, however that ends: the file of one who died has no lock, and who finds it removes it.
 */
#ifndef TANDEM_DATA_STORE_PROMISE_H
#define TANDEM_DATA_STORE_PROMISE_H

#include <stdbool.h>
#include <stdint.h>

struct tdmi_store_promise { /* start from a zeroed object */
    char *path;             /* NULL: none */
    int file;
};

/* Where it cannot be told (no memory, no locks, a disk that is full) there is none, and rooms are
 * counted as if nobody else filled. */
void tdmi_store_promise_make(struct tdmi_store_promise *promise, const char *folder, int64_t bytes);
/* So much is still to come. */
void tdmi_store_promise_lower(const struct tdmi_store_promise *promise, int64_t bytes);
void tdmi_store_promise_end(struct tdmi_store_promise *promise);

/* For who counts. Is it the name of one? */
bool tdmi_store_is_promise_name(const char *name);
/* Bytes that somebody alive was promised. The file of one who is gone is removed: 0. */
int64_t tdmi_store_promised_bytes(const char *path);

/* Held while room is counted and promised, so that two who ask at once are answered one after the
 * other. -1: it could not be had in a few seconds, or the file system has no locks. */
int tdmi_store_counting_begin(const char *root);
void tdmi_store_counting_end(int lock);

#endif
