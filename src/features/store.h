/*
 * Cached features: rows of floats on disk, found by the content they were computed from. A store
 * knows no network: its key, a text, names everything that the rows depend on except the image, and
 * rows of other keys are invisible.
 *
 *     FOLDER/0123456789abcdef/        one key: the first digits of the SHA-256 of its text
 *         key.json                    the text, compared whenever the key is opened
 *         lock                        held shared while open; its modification time: when last used
 *         fedcba9876543210.rows       files of rows, never changed once committed
 *
 * Any number of processes may read and fill one key at once: each writes files of its own, and of
 * equal rows the first counts. Committed rows survive a kill and a power failure; others leave a
 * temporary file, which is removed when one process alone next opens the key. The size of FOLDER is
 * limited: keys that no process has open are evicted, the least recently used first.
 * docs/reference/files.md has the format of the files.
 */
#pragma once

#include "base/scope.h"
#include "tensor/dtype.h"

typedef struct tdmi_store tdmi_store;

struct tdmi_store_options {
    const char *folder; /* NULL: TANDEM_HOME/features */
    const char *key; /* a JSON text: weights, graph, preprocessing, precision, ISA, version … */
    int width;       /* floats a row, at most 2^24 */
    int64_t limit_bytes; /* of everything under folder; 0: 32 GiB, at most half of what is free */
    bool drops_damaged;  /* remove damaged files with a warning instead of refusing them */
};

struct tdmi_store_row {
    uint64_t content; /* hash of the image */
    uint32_t
        view; /* index of its augmented view; 0: the plain image, unless the key names another */
};

/* Another text under the key's hash, a damaged file and rows of another width are TDM_E_INPUT that
 * names the file; a folder that cannot be made or locked is TDM_E_SYSTEM. A key that is there and
 * cannot be written is opened for reading: it takes a fill of 0 rows and no other. */
tdm_status tdmi_store_open(const struct tdmi_store_options *options, tdmi_store **store,
                           tdm_error *err) TDM_MUST_USE;
/* Drops uncommitted rows. After a fill that left many files they are merged, unless another process
 * has the key open. Accepts NULL. */
void tdmi_store_close(tdmi_store *store);
TDMI_POINTER_RELEASE(tdmi_store, tdmi_store_close)

/* ---- reading: any thread, while another one fills too ---------------------------------------- */

/* The place of the row, good until close; -1: not there. No lock, two cache misses. */
int64_t tdmi_store_find(const tdmi_store *store, struct tdmi_store_row row);
/* width floats. A row that is damaged on disk is TDM_E_INPUT with the name of the file, which is to
 * be removed (tdmi_store_discard): its rows are computed again. One that the system fails to read
 * is TDM_E_SYSTEM, and may be whole. */
tdm_status tdmi_store_read(const tdmi_store *store, int64_t place, float *values,
                           tdm_error *err) TDM_MUST_USE;

/* Remove the file with the row at this place. Processes that open the key from now on do not find
 * its rows; this one does. A file that is gone already is no failure. */
tdm_status tdmi_store_discard(const tdmi_store *store, int64_t place, tdm_error *err) TDM_MUST_USE;

/* ---- filling: one thread at a time ----------------------------------------------------------- */

/* Reserve space for n_rows more, evicting other keys if needed. Where they do not fit even so,
 * nothing is removed, and TDM_E_SYSTEM gives the bytes needed and available. precision is F32 or
 * F16. No other thread may find or read meanwhile. */
tdm_status tdmi_store_fill_begin(tdmi_store *store, int64_t n_rows, enum tdmi_dtype precision,
                                 tdm_error *err) TDM_MUST_USE;
/* Add one of at most n_rows rows. A row that can be found already is skipped. A finite value beyond
 * the f16 range is TDM_E_INPUT. Commits by itself after 64 MiB or 20 s, or a 32nd of the bytes or
 * time of the fill so far if that is more. A failure ends the fill; committed rows stay. */
tdm_status tdmi_store_fill_add(tdmi_store *store, struct tdmi_store_row row, const float *values,
                               tdm_error *err) TDM_MUST_USE;
/* Make the added rows durable and visible, here and to processes that open the key from now on. The
 * fill continues. */
tdm_status tdmi_store_fill_commit(tdmi_store *store, tdm_error *err) TDM_MUST_USE;
/* End the fill and drop uncommitted rows. Not needed after the last commit, and harmless without a
 * fill. */
void tdmi_store_fill_abandon(tdmi_store *store);

/* ---- queries --------------------------------------------------------------------------------- */

/* Number of rows that can be found: equal content and view count once. */
int64_t tdmi_store_rows(const tdmi_store *store);
/* Folder of the key, for messages. */
const char *tdmi_store_folder(const tdmi_store *store);

/* Remove the advice from the text of an error of this store: for a caller that acts on it itself
 * and reports that. */
void tdmi_store_drop_remedy(char *text);
