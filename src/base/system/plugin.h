/*
 * Parts of tandem that are libraries of their own, because the outside libraries they link take
 * longer to load than most commands run: libtandem_<name>.so, opened when first asked for. What
 * one gives out is a table of functions; its side of this header is plugin_inside.c.
 */
#ifndef TANDEM_BASE_SYSTEM_PLUGIN_H
#define TANDEM_BASE_SYSTEM_PLUGIN_H

#include "tandem/error.h"
#include <stdbool.h>
#include <stddef.h>

/* What such a library uses of ours that there must be one of in a process. */
struct tdmi_plugin_host {
    void *(*alloc)(size_t count, size_t item_bytes);
    void *(*realloc)(void *block, size_t count, size_t item_bytes);
    void (*free)(void *block);
    bool (*is_stop_requested)(void);
};

/* Its one symbol, "tdmi_plugin": the table, its size, which tells builds of one version apart that
 * have other functions, and the version of tandem that it is of. */
typedef const void *tdmi_plugin_function(const struct tdmi_plugin_host *host, const char **made_by,
                                         size_t *table_bytes);

/* The table of libtandem_<name>.so, valid for ever, of table_bytes as the caller knows it, 0: who
 * only asks whether it can be opened; any thread, again and again. what is for the sentence: "the
 * part of tandem that …". TDM_E_ABSENT: it cannot be opened here, or is of another build.
 * TDM_E_MEMORY: it is not open yet, and there are not room_bytes of addresses for it, 0: the loader
 * finds out. */
tdm_status tdmi_plugin_open(const char *name, const char *what, size_t table_bytes,
                            size_t room_bytes, const void **table, tdm_error *err) TDM_MUST_USE;

#endif
