/*
 * Parts of tandem that are libraries of their own, because the external libraries they link take
 * longer to load than most commands run: libtandem_<name>.so, opened on first use. Each exports one
 * table of functions; plugin_inside.c is linked into each.
 */
#pragma once

#include "tandem/error.h"
#include <stdbool.h>
#include <stddef.h>

/* Functions of libtandem that a plugin calls, because a process must have only one of each. */
struct tdmi_plugin_host {
    void *(*alloc)(size_t count, size_t item_bytes);
    void *(*alloc_aligned)(size_t bytes);
    void *(*realloc)(void *block, size_t count, size_t item_bytes);
    void (*free)(void *block);
    bool (*has_room)(size_t bytes);
    bool (*is_stop_requested)(void);
};

/* The plugin's one symbol, "tdmi_plugin": returns the table, its size (which differs between builds
 * of one version with other functions) and the version of tandem. */
typedef const void *tdmi_plugin_function(const struct tdmi_plugin_host *host, const char **made_by,
                                         size_t *table_bytes);

/* Open libtandem_<name>.so and return its table, which stays valid. table_bytes: the size that the
 * caller expects, 0: any (only test whether it opens). what is part of messages: "the part of
 * tandem that …". room_bytes: address space to check for before it is opened, 0: none. Any thread,
 * any number of times. TDM_E_ABSENT: it cannot be opened, or belongs to another build.
 * TDM_E_MEMORY: not open yet, and less than room_bytes of addresses are left. */
tdm_status tdmi_plugin_open(const char *name, const char *what, size_t table_bytes,
                            size_t room_bytes, const void **table, tdm_error *err) TDM_MUST_USE;

/* Let *function, a pointer to a function, be the one of that name in a library that dlopen gave.
 * False: the library has none. */
bool tdmi_plugin_symbol(void *library, const char *symbol, void *function);
