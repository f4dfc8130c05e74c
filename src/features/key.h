/*
 * The folder of one key and the lock on it. Who has the key open holds the lock shared; who removes
 * keys, sweeps or merges holds it alone. The kernel gives it back when its owner dies. On a file
 * system without locks nothing is removed, swept or merged, and all else works.
 */
#ifndef TANDEM_DATA_STORE_KEY_H
#define TANDEM_DATA_STORE_KEY_H

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

/* Makes the folder if need be, locks it shared, sweeps what the killed have left, and compares the
 * text. Where all that is there but may not be written (a disk for reading only, another's folder)
 * it is taken as it is, with the lock if there is one. mends_text: a text that is damaged is
 * written again, with a warning; every file of rows says itself of which key it is. Strings are of
 * the arena. */
tdm_status tdmi_store_key_open(const char *root, const char *text, bool mends_text,
                               tdmi_arena *arena, struct tdmi_store_key *key,
                               tdm_error *err) TDM_MUST_USE;
void tdmi_store_key_close(struct tdmi_store_key *key);
/* Remembers that it was used now. */
void tdmi_store_key_mark_used(const struct tdmi_store_key *key);
/* From shared to alone, without waiting. After false the key may only be closed. */
bool tdmi_store_key_take_alone(const struct tdmi_store_key *key);

/* For who removes keys. Is it the name of a key's folder? */
bool tdmi_store_is_key_name(const char *name);
/* The lock of a key that nobody has open, or -1. Closing the descriptor gives it back. */
int tdmi_store_lock_idle(const char *lock_path);
/* Removes the folder of a key whose lock is held alone. What cannot be removed stays. */
void tdmi_store_key_remove(const char *folder);

#endif
