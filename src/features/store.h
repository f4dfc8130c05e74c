/*
 * Rows of floats kept on disk, found by the content they were computed from. A store knows no
 * network: its key, a text, says everything that the rows depend on but the picture, and rows of
 * another key are never seen.
 *
 *     FOLDER/0123456789abcdef/        one key: the first digits of the SHA-256 of its text
 *         key.json                    the text, compared whenever the key is opened
 *         lock                        held shared while open; its time of change: when last used
 *         fedcba9876543210.rows       files of rows, never changed once they are there
 *
 * Any number of processes may read and fill one key at once: each writes files of its own, and of
 * equal rows the first counts. What was committed survives a kill and a power failure; what was not
 * leaves a temporary file, removed when the key is next opened by one process alone. Everything
 * below FOLDER is held under a limit: keys that nobody has open give way, the least recently used
 * first. docs/reference/files.md has the form of the files.
 */
#ifndef TANDEM_DATA_STORE_H
#define TANDEM_DATA_STORE_H

#include "tandem/error.h"
#include "tensor/dtype.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct tdmi_store tdmi_store;

struct tdmi_store_options {
    const char *folder; /* NULL: TANDEM_HOME/features */
    const char *key; /* a JSON text: weights, graph, preprocessing, precision, ISA, version … */
    int width;       /* floats a row, at most 2^24 */
    int64_t limit_bytes; /* of everything under folder; 0: 32 GiB, at most half of what is free */
    bool drops_damaged;  /* files that are damaged are removed, with a warning, and not refused */
};

struct tdmi_store_row {
    uint64_t content; /* hash of the picture */
    uint32_t view; /* which augmented view of it; 0: the plain one, where the key says no other */
};

/* Another text under the key's hash, a damaged file and rows of another width are TDM_E_INPUT that
 * names the file; a folder that cannot be made or locked is TDM_E_SYSTEM. A key that is there and
 * cannot be written is opened for reading: it takes a fill of 0 rows and no other. */
tdm_status tdmi_store_open(const struct tdmi_store_options *options, tdmi_store **store,
                           tdm_error *err) TDM_MUST_USE;
/* What was added and not committed is dropped. After a fill that left many files they are merged,
 * where nobody else has the key open. Accepts NULL. */
void tdmi_store_close(tdmi_store *store);

/* ---- reading: any thread, while another one fills too ---------------------------------------- */

/* The place of the row, good until close; -1: not there. No lock, two cache misses. */
int64_t tdmi_store_find(const tdmi_store *store, struct tdmi_store_row row);
/* width floats. A row that is damaged on disk is TDM_E_INPUT with the name of the file, which is to
 * be removed (tdmi_store_discard): its rows are computed again. One that the system fails to read
 * is TDM_E_SYSTEM, and may be whole. */
tdm_status tdmi_store_read(const tdmi_store *store, int64_t place, float *values,
                           tdm_error *err) TDM_MUST_USE;

/* Removes the file that the row at this place is in, whose rows are not found again by who opens
 * the key from now on; here they are. No failure where it is gone already. */
tdm_status tdmi_store_discard(const tdmi_store *store, int64_t place, tdm_error *err) TDM_MUST_USE;

/* ---- filling: one thread at a time ----------------------------------------------------------- */

/* Makes room for n_rows more, by removing other keys if it must. Where they do not fit even so
 * nothing is removed, and TDM_E_SYSTEM says how much is wanted and how much there is. precision is
 * F32 or F16. No other thread may find or read meanwhile. */
tdm_status tdmi_store_fill_begin(tdmi_store *store, int64_t n_rows, enum tdmi_dtype precision,
                                 tdm_error *err) TDM_MUST_USE;
/* Of n_rows at most. A row that can be found already is passed over. A finite value beyond the f16
 * range is TDM_E_INPUT. Commits by itself now and then: after 64 MiB or 20 s, or a 32nd of what the
 * fill has written or taken so far if that is more. A failure ends the fill; what was committed
 * stays. */
tdm_status tdmi_store_fill_add(tdmi_store *store, struct tdmi_store_row row, const float *values,
                               tdm_error *err) TDM_MUST_USE;
/* What was added is on disk, can be found here, and by whoever opens the key from now on. The fill
 * goes on. */
tdm_status tdmi_store_fill_commit(tdmi_store *store, tdm_error *err) TDM_MUST_USE;
/* Ends the fill; what was added since the last commit is dropped. Nothing to do after the last
 * commit, and harmless without a fill. */
void tdmi_store_fill_abandon(tdmi_store *store);

/* ---- queries --------------------------------------------------------------------------------- */

/* That can be found: rows of equal content and view count once. */
int64_t tdmi_store_rows(const tdmi_store *store);
/* Of this key's files of rows, as far as this process knows. */
int64_t tdmi_store_bytes(const tdmi_store *store);
/* Of the key, for people. */
const char *tdmi_store_folder(const tdmi_store *store);

/* Takes out of the text of an error of this store what its reader was to do about it: for who does
 * it himself, and tells. */
void tdmi_store_drop_remedy(char *text);

#endif
