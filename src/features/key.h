/*
 * The folder of one key and the lock on it. A process that has the key open holds the lock shared;
 * one that removes keys, sweeps or merges holds it exclusively. The kernel releases it when its
 * owner dies. On a file system without locks nothing is removed, swept or merged, and all else
 * works.
 */
#ifndef TANDEM_FEATURES_KEY_H
#define TANDEM_FEATURES_KEY_H

#include "base/arena.h"
#include "tandem/error.h"
#include <stdbool.h>
#include <stdint.h>

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

#endif
