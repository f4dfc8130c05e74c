/*
 * The content of a finished table, as an update needs it: its rows without their images, the
 * classes in the order of their labels, the dropped images, and the side of each content.
 */
#ifndef TANDEM_PREPARE_STORED_H
#define TANDEM_PREPARE_STORED_H

#include "base/arena.h"
#include "data/audit/split.h"
#include "tandem/json.h"

/* In the order of the rows. NONE: unlabelled. */
enum tdmi_prepare_split {
    TDMI_PREPARE_TRAIN,
    TDMI_PREPARE_VAL,
    TDMI_PREPARE_TEST,
    TDMI_PREPARE_NONE,
    TDMI_PREPARE_SPLITS
};
const char *tdmi_prepare_split_name(enum tdmi_prepare_split split); /* "train"; "" of NONE */

struct tdmi_prepare_stored_part {
    const char *name;
    int64_t n_rows, n_bytes;
    enum tdmi_prepare_split split;
};

struct tdmi_prepare_stored_row {
    uint64_t hash;
    const char *path;
    int label; /* -1: none */
    int part;
    enum tdmi_prepare_split split;
};

/* An image that was dropped while its part was made: dropped again as long as it is unchanged.
 */
struct tdmi_prepare_stored_drop {
    uint64_t hash;
    const char *path, *verdict, *reason;
};

typedef struct tdmi_prepare_stored { /* start from a zeroed object */
    tdmi_arena arena;
    bool is_there;
    const char **classes;
    int n_classes;
    struct tdmi_prepare_stored_part *parts;
    int n_parts, next_number; /* beyond that of every part */
    struct tdmi_prepare_stored_row *rows;
    int64_t n_rows;
    struct tdmi_prepare_stored_drop *drops;
    int64_t n_drops;
    struct tdmi_split_stored sides; /* in the arena */
} tdmi_prepare_stored;

/* dataset: _dataset.json of the table in folder. TDM_E_INPUT: a part differs from its record. */
tdm_status tdmi_prepare_stored_read(const char *folder, const tdm_json_value *dataset,
                                    tdmi_prepare_stored *stored, tdm_error *err) TDM_MUST_USE;
void tdmi_prepare_stored_release(tdmi_prepare_stored *stored);

#endif
