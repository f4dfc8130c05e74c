/*
 * Files of remote images, kept on a local disk by content: FOLDER/ab/abcdef0123456789 holds the
 * bytes whose XXH64 is its name, so an entry proves itself each time it is read, is shared by all
 * runs and sources that have the same image, and can never be out of date. Bytes that are known
 * by a name only (rows of prepared tables) lie in FOLDER/ab/abcdef0123456789.row, their XXH64,
 * seeded with the name, behind them.
 *
 * Bounded: the least recently used files go first, but none that was used since this cache was
 * opened: a set larger than the limit would else evict each image just before it is needed again.
 * A GiB of the disk (a tenth of a small one) stays free. A cache that is full warns once. Safe for
 * any number of processes: files appear whole by rename, and one that vanishes or is damaged is
 * read from its source again.
 */
#pragma once

#include "data/source/source.h"

typedef struct tdmi_disk_cache tdmi_disk_cache;

/* folder NULL: TANDEM_HOME/pictures. limit_bytes 0: 8 GiB. TDM_E_SYSTEM where it cannot be made. */
tdm_status tdmi_disk_cache_open(const char *folder, int64_t limit_bytes, tdmi_disk_cache **cache,
                                tdm_error *err) TDM_MUST_USE;
void tdmi_disk_cache_close(tdmi_disk_cache *cache);
TDMI_POINTER_RELEASE(tdmi_disk_cache, tdmi_disk_cache_close)
const char *tdmi_disk_cache_folder(const tdmi_disk_cache *cache);

/* The bytes with this key replace what text held; false: not here. Out of memory is TDM_E_MEMORY
 * in the text's is_broken. Any thread. */
bool tdmi_disk_cache_get(tdmi_disk_cache *cache, struct tdmi_bytes_key key, tdmi_text *bytes);
/* Keeps them if there is room and, where the key is their hash, they have it. What goes wrong is
 * logged once and costs only time. Any thread. */
void tdmi_disk_cache_put(tdmi_disk_cache *cache, struct tdmi_bytes_key key, const tdmi_text *bytes);
