/* Internal state of an open store. */
#ifndef TANDEM_FEATURES_INSIDE_H
#define TANDEM_FEATURES_INSIDE_H

#include "base/arena.h"
#include "features/key.h"
#include "features/reservation.h"
#include "features/table.h"

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
    int64_t limit_bytes;
    bool drops_damaged;
    struct tdmi_store_key key;
    struct tdmi_store_form form;
    struct tdmi_store_table table;
    struct tdmi_store_fill fill;
    bool has_filled;
};

#endif
