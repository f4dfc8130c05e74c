/*
 * A reservation: disk space that a fill may still write, published to other processes by a file
 * beside the rows. The file's text is the number of bytes, and the filling process holds its lock.
 * So a reservation ends with its process: a file without a lock is stale, and the next process that
 * finds it removes it.
 */
#ifndef TANDEM_FEATURES_RESERVATION_H
#define TANDEM_FEATURES_RESERVATION_H

#include <stdbool.h>
#include <stdint.h>

struct tdmi_store_reservation { /* start from a zeroed object */
    char *path;                 /* NULL: none */
    int file;
};

/* Where it cannot be published (no memory, no locks, a full disk) there is none, and other
 * processes do not count it. */
void tdmi_store_reserve(struct tdmi_store_reservation *reservation, const char *folder,
                        int64_t bytes);
/* Lower it to the bytes still to be written. */
void tdmi_store_reservation_lower(const struct tdmi_store_reservation *reservation, int64_t bytes);
void tdmi_store_reservation_release(struct tdmi_store_reservation *reservation);

/* For counting. Is it the name of a reservation? */
bool tdmi_store_is_reservation_name(const char *name);
/* Bytes reserved by a living process; a stale file is removed and counts 0. */
int64_t tdmi_store_reserved_bytes(const char *path);

/* A lock held while space is counted and reserved, so that two processes do not reserve the same
 * space. -1: not available within a few seconds, or the file system has no locks. */
int tdmi_store_counting_begin(const char *root);
void tdmi_store_counting_end(int lock);

#endif
