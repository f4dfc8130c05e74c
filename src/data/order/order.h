/*
 * The order: which sample stands at a position of an epoch, as a pure function of (seed, epoch,
 * position). Batches, threads, ranks and restarts all call the same function, so none of them can
 * change the result, and any place of any epoch is reached without a replay.
 *
 *   FULL      every sample once: a keyed permutation of [0, n) by a Feistel network with cycle
 *             walking, O(1), nothing stored. Plain data: {.seed = …, .n = …, .is_shuffled = …}.
 *   GROUPED   every sample once, but few groups (row groups, tar shards) at a time: groups are
 *             permuted, then the samples of each window of W groups. O(log window).
 *   BALANCED  classes in equal or weighted shares, exact in each epoch; inside a class everything
 *             is drawn once before anything is drawn again. O(log classes).
 *
 * The values are part of the format of a run: tests hold them against second implementations.
 */
#pragma once

#include "data/source/source.h"

enum tdmi_order_kind { TDMI_ORDER_FULL, TDMI_ORDER_GROUPED, TDMI_ORDER_BALANCED };

typedef struct tdmi_order {
    uint64_t seed;
    int64_t n;                 /* positions of an epoch; at least 1 */
    bool is_shuffled;          /* FULL and GROUPED; false: position p is sample p */
    enum tdmi_order_kind kind; /* 0 is FULL, which needs no init and no release */
    struct tdmi_order_groups *groups;
    struct tdmi_order_classes *classes;
} tdmi_order;

/* ---- create, release ----------------------------------------------------------------------- */

struct tdmi_order_grouped {
    uint64_t seed;
    bool is_shuffled;
    const int64_t *group_samples; /* (n_groups), samples of each; 0 is allowed; copied */
    int64_t n_groups;
    int64_t window; /* groups that are mixed with each other; 0: 8 */
};
/* Samples are numbered through the groups: group 0 has samples 0, 1, …, then comes group 1. */
tdm_status tdmi_order_init_grouped(tdmi_order *order, const struct tdmi_order_grouped *options,
                                   tdm_error *err) TDM_MUST_USE;

struct tdmi_order_balanced {
    uint64_t seed;
    const int *labels; /* (n_samples), each in [0, n_classes); copied */
    int64_t n_samples;
    int n_classes; /* a class is any division: weights of samples are classes of equal weight */
    const double *weights; /* (n_classes), share of the draws, 0 or more; NULL: equal shares */
    int64_t n_draws;       /* positions of an epoch; 0: n_samples */
};
/* A class without a sample takes no share. TDM_E_USAGE names the label or weight that is wrong. */
tdm_status tdmi_order_init_balanced(tdmi_order *order, const struct tdmi_order_balanced *options,
                                    tdm_error *err) TDM_MUST_USE;
/* Frees what init took; nothing to do for a FULL or zeroed one. */
void tdmi_order_release(tdmi_order *order);

/* ---- use ----------------------------------------------------------------------------------- */

/* position in [0, n) -> sample. FULL and GROUPED are one to one for each (seed, epoch). Any thread,
 * never fails, allocates nothing. The first call for an epoch of a GROUPED order costs O(groups);
 * the tables of the last two epochs are kept. */
int64_t tdmi_order_at(const tdmi_order *order, uint32_t epoch, int64_t position);

/* The number of the pass through its class that the position belongs to, over all epochs: BALANCED
 * orders draw a sample several times an epoch, but once a pass, so (sample, repeat) identifies a
 * draw and gives it its own augmentation. 0 for the other kinds: there (sample, epoch) does. */
int64_t tdmi_order_repeat(const tdmi_order *order, uint32_t epoch, int64_t position);

/* Which of n views of its sample a position takes: the epoch's, and of BALANCED orders the pass's,
 * so that a sample which comes several times an epoch goes through its views. n >= 1. */
uint32_t tdmi_order_view(const tdmi_order *order, uint32_t epoch, int64_t position, uint32_t n);

/* ---- quality ------------------------------------------------------------------------------- */

/* Similarity of an epoch's batches to a full shuffle: 1 like a full shuffle, 0 like the file.
 *
 * A pair of positions of one batch has a distance |a - b| between its samples. In a full shuffle
 * P(distance <= k) = k (2n - k - 1) / (n (n - 1)). D is the largest difference (Kolmogorov's)
 * between that and the distances of a fixed sample of pairs: 16 from each of at most 4096 batches,
 * evenly spread. The quality is (D of file order - D) / (D of file order - D of FULL with this
 * seed), each over the same pairs, cut to [0, 1]; 1 when an epoch is one batch. A window of W equal
 * groups gives about 1 - 1/W. TDM_E_USAGE for a BALANCED order: it is no permutation. */
tdm_status tdmi_order_quality(const tdmi_order *order, uint32_t epoch, int batch, double *quality,
                              tdm_error *err) TDM_MUST_USE;

/* ---- of a source ---- */

/* Does the source have groups that an order should stay in? */
bool tdmi_order_has_groups(const tdmi_source *source);
/* GROUPED over a subset of the source (items ascending; NULL: all n of them). */
tdm_status tdmi_order_init_source(tdmi_order *order, const tdmi_source *source,
                                  const int64_t *items, int64_t n, uint64_t seed,
                                  tdm_error *err) TDM_MUST_USE;

/* ---- shared by the kinds of order: keyed permutations, and the entries of <kind>.c ---- */

/* Which of an order's permutations: streams never share keys. */
enum tdmi_order_stream {
    TDMI_ORDER_STREAM_FULL,    /* index 0 */
    TDMI_ORDER_STREAM_GROUPS,  /* index 0 */
    TDMI_ORDER_STREAM_WINDOW,  /* index: the window */
    TDMI_ORDER_STREAM_BALANCED /* index: the class; epoch 0 */
};

struct tdmi_order_key {
    uint64_t seed;
    uint32_t epoch;
    enum tdmi_order_stream stream;
    uint64_t index;
};

/* The keyed permutation of [0, n). */
int64_t tdmi_order_permute(struct tdmi_order_key key, int64_t n, int64_t value);

int64_t tdmi_order_grouped_at(const tdmi_order *order, uint32_t epoch, int64_t position);
void tdmi_order_groups_free(struct tdmi_order_groups *groups);

int64_t tdmi_order_balanced_at(const tdmi_order *order, uint32_t epoch, int64_t position,
                               int64_t *repeat);
void tdmi_order_classes_free(struct tdmi_order_classes *classes);
