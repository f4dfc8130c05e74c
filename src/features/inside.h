/* Internal state of an open store. */
#pragma once

#include "base/arena.h"
#include "features/file.h"
#include <stdatomic.h>

/* ---- key ---- */

/*
 * The folder of one key and the lock on it. A process that has the key open holds the lock shared;
 * one that removes keys, sweeps or merges holds it exclusively. The kernel releases it when its
 * owner dies. On a file system without locks nothing is removed, swept or merged, and all else
 * works.
 */

#define TDMI_STORE_LOCK "lock"
#define TDMI_STORE_TEXT "key.json"

enum { TDMI_STORE_KEY_DIGITS = 16 };

struct tdmi_store_key {
    const char *folder; /* root and name */
    char name[TDMI_STORE_KEY_DIGITS + 1];
    uint8_t sha256[32];
    const char *lock_path, *text_path;
    int lock; /* descriptor; -1: none */
    bool is_read_only;
};

/* Make the folder if needed, lock it shared, remove temporary files of killed processes, and
 * compare the text. A complete folder that may not be written (a read-only disk, another user's
 * folder) is opened read-only, with its lock if there is one. mends_text: a damaged text is written
 * again, with a warning; every file of rows names its key itself. Strings are of the arena. */
tdm_status tdmi_store_key_open(const char *root, const char *text, bool mends_text,
                               tdmi_arena *arena, struct tdmi_store_key *key,
                               tdm_error *err) TDM_MUST_USE;
void tdmi_store_key_close(struct tdmi_store_key *key);
/* flock without interruption by signals. */
int tdmi_store_lock_now(int descriptor, int how);
/* Record that it was used now. */
void tdmi_store_key_mark_used(const struct tdmi_store_key *key);
/* From shared to exclusive, without waiting. After false the key may only be closed. */
bool tdmi_store_key_take_alone(const struct tdmi_store_key *key);

/* For eviction. Is it the name of a key's folder? */
bool tdmi_store_is_key_name(const char *name);
/* The exclusive lock of a key that no process has open, or -1. Closing the descriptor releases it.
 */
int tdmi_store_lock_idle(const char *lock_path);
/* Remove the folder of a key whose lock is held exclusively, as far as possible. */
void tdmi_store_key_remove(const char *folder);

/* ---- reservation ---- */

/*
 * A reservation: disk space that a fill may still write, published to other processes by a file
 * beside the rows. The file's text is the number of bytes, and the filling process holds its lock.
 * So a reservation ends with its process: a file without a lock is stale, and the next process that
 * finds it removes it.
 */

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
void tdmi_store_counting_end(const int *lock);

/* ---- merge ---- */

/* Merge many small files of rows into few: opening a key takes a descriptor and some reads for
 * each. */

/* Fewest files that are merged. */
enum { TDMI_STORE_MANY_FILES = 64 };

/* Merge the files of a key whose lock is held exclusively. A merged file is durable before its
 * parts are removed. TDM_OK also where nothing is to be done or the disk has no room for both.
 * TDM_E_STOPPED on request. */
tdm_status tdmi_store_merge(const char *folder, const struct tdmi_store_form *form,
                            tdm_error *err) TDM_MUST_USE;

/* ---- table ---- */

/*
 * A hash table of the rows of all files of one key, by content and view, that only grows. One
 * thread adds while any number of threads search: a row is visible once its file is complete, and
 * its place stays valid.
 */

enum { TDMI_STORE_CHUNK_FILES = 256, TDMI_STORE_CHUNKS = 256 };

struct tdmi_store_table { /* start from a zeroed object */
    struct tdmi_store_file **chunks[TDMI_STORE_CHUNKS];
    int n_files;
    _Atomic uint64_t *slots; /* place + 1; 0: free */
    uint64_t n_slots;        /* a power of two, or 0 */
    _Atomic int64_t n_rows, size_bytes;
};

void tdmi_store_table_release(struct tdmi_store_table *table);
/* Make room for n_rows in total. No other thread may search meanwhile. */
tdm_status tdmi_store_table_reserve(struct tdmi_store_table *table, int64_t n_rows,
                                    tdm_error *err) TDM_MUST_USE;
/* Takes ownership of the file, even on failure. Of equal rows the first stays. */
tdm_status tdmi_store_table_add(struct tdmi_store_table *table, struct tdmi_store_file *file,
                                tdm_error *err) TDM_MUST_USE;

/* A place, or -1. */
int64_t tdmi_store_table_find(const struct tdmi_store_table *table, struct tdmi_store_row row);
/* The file of a place, and which row of it; NULL: no place of this table. */
const struct tdmi_store_file *tdmi_store_table_at(const struct tdmi_store_table *table,
                                                  int64_t place, int64_t *row);

/* ---- store ---- */

/* A fill: rows being written to disk. */
struct tdmi_store_fill {
    bool is_open;
    enum tdmi_dtype precision;
    int64_t n_reserved, n_added;     /* rows, including those found already */
    int64_t committed_bytes;         /* of this fill */
    int64_t begun_ns, file_begun_ns; /* of the clock */
    tdmi_store_writer *writer;       /* NULL: nothing to commit */
    struct tdmi_store_reservation reservation;
};

struct tdmi_store {
    tdmi_arena arena;
    const char *root;
    int64_t limit_bytes; /* of everything under root; 0: 32 GiB, at most half of what is free */
    bool drops_damaged;
    struct tdmi_store_key key;
    struct tdmi_store_form form;
    struct tdmi_store_table table;
    struct tdmi_store_fill fill;
    bool has_filled;
};

/* ---- evict ---- */

/*
 * Space for rows: the bytes of all keys of a store, the free bytes of the disk, and the keys to
 * evict.
 */

/* Evict keys that no process has open, the least recently used first and no more than needed for so
 * many bytes of the store's own key, which is never evicted. Where all of them are not enough none
 * is removed: TDM_E_SYSTEM. Bytes reserved by others count as used. End the reservation after use;
 * on failure there is none. */
tdm_status tdmi_store_make_room(const tdmi_store *store, int64_t bytes,
                                struct tdmi_store_reservation *reservation,
                                tdm_error *err) TDM_MUST_USE;
