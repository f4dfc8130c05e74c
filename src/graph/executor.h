/*
 * An executor: one plan bound to memory, running one group of images at a time, by one thread or by
 * a team (base/team.h), whose members then all call forward_part and backward_part. Executors share
 * the parameters, which they only read, and each writes its own sums, so groups run side by side.
 */
#pragma once

#include "base/team.h"
#include "base/trace.h"
#include "graph/feature_table.h"
#include "graph/plan.h"

/* The images of one run: a group in training, a piece (train/evaluate/cut.h) in inference. */
struct tdmi_group {
    int n;                        /* 1 to as many as the executor is opened for */
    const uint8_t *const *pixels; /* n images; or rows of floats: plan->first_node */
    /* On a device: start of the images or rows that were prefetched last (tdmi_executor_prefetch)
     * and that pixels point into; NULL: they are copied when the group begins */
    const uint8_t *prefetched;
    bool is_on_device; /* pixels are addresses on the device, and no image is uploaded */
    /* n row numbers in the feature table on the device (tdmi_executor_keep), and pixels are
     * ignored; or NULL */
    const int64_t *rows;
    const void *changes;   /* n, of tdmi_backend.changes; NULL: images are not changed */
    const int32_t *labels; /* n, or NULL: compute only probabilities */
    const struct tdmi_mixed_label *mixed; /* n, or NULL: none was mixed with another */
    /* n, written when there are labels; on a device, when they are downloaded, and never in
     * training, where they are only added to the tail */
    struct tdmi_judgement *judgements;
    const float *class_weights;               /* training: one a class, or NULL: all 1 */
    struct tdmi_draws draws;                  /* training, where the network has dropout */
    const struct tdmi_loss_scale *loss_scale; /* training, of the device; NULL: 1 */
};

/* Values on the backend's memory, laid out as the graph says. */
struct tdmi_values {
    const float *params, *states;
};

/* Seconds by node: every run of an executor adds the mean time of `in_a_row` runs of the node
 * between two waits, which cost time on a device that queues. Results are meaningless when in_a_row
 * is above 1. */
struct tdmi_profile {
    double *forward_s, *backward_s;
    int in_a_row; /* 0: 1 */
};

typedef struct tdmi_executor tdmi_executor;

/* The message of TDM_E_MEMORY has the size. */
tdm_status tdmi_executor_open(const tdmi_plan *plan, tdmi_device *device, tdmi_executor **executor,
                              tdm_error *err) TDM_MUST_USE;
/* The same for groups of n images at most, up to the plan's max_images. */
tdm_status tdmi_executor_open_for(const tdmi_plan *plan, tdmi_device *device, int n,
                                  tdmi_executor **executor, tdm_error *err) TDM_MUST_USE;
void tdmi_executor_close(tdmi_executor *executor);
TDMI_POINTER_RELEASE(tdmi_executor, tdmi_executor_close)
/* Set the packed weights (graph/packed.h), lent; required before a run unless the plan has none. */
void tdmi_executor_use(tdmi_executor *executor, const void *packed);
tdmi_stream *tdmi_executor_stream(const tdmi_executor *executor);
/* Start (NULL: stop) timing nodes. Waits for the stream after each node, and after the separate
 * sums of a batch norm in training, which count as its own. */
void tdmi_executor_profile(tdmi_executor *executor, const struct tdmi_profile *profile);

/* From the next run on every member of the team records its layers in lanes[its index]; one thread
 * alone in lanes[0]. Lent; NULL: none. One thread calls it; a team waits for it. */
void tdmi_executor_trace(tdmi_executor *executor, tdmi_lane *const *lanes);

/* Prefetch n consecutive images or rows to a device with memory of its own while the stream
 * computes. They are lent until tdmi_executor_await_prefetch has returned; the next group may then
 * use them (group.prefetched). The group before the one that was started last must have been waited
 * for. tdmi_executor_can_prefetch: false on the host. */
bool tdmi_executor_can_prefetch(const tdmi_executor *executor);
tdm_status tdmi_executor_prefetch(tdmi_executor *executor, const uint8_t *pictures, int n,
                                  tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_executor_await_prefetch(tdmi_executor *executor, tdm_error *err) TDM_MUST_USE;

/* Set the feature table (lent) for groups that name their rows by number. Call it once, before the
 * first such group, because recordings hold its address. */
void tdmi_executor_keep(tdmi_executor *executor, const tdmi_feature_table *kept);

/* Forward; when training, sums gets state sums and the tail. group's arrays must stay until
 * backward has run, and the stream must have been waited for since the previous group. A failed
 * upload shows at the stream's next wait. */
void tdmi_executor_forward(tdmi_executor *executor, struct tdmi_values values,
                           const struct tdmi_group *group, float *sums);
/* Backward of one segment, in the order 0, 1, …, after forward of the same group. member NULL: one
 * thread; it has waited for the others when it returns. */
void tdmi_executor_backward(tdmi_executor *executor, struct tdmi_values values, int segment,
                            float *sums, const struct tdmi_member *member);

/* Forward without training of an unfused plan (is_apart), which also adds to sums the statistics of
 * the input x of every batch norm from node `first` on: Σ(x - running mean) and its square, 2 ·
 * channels each, one norm after the other. On the host. */
void tdmi_executor_measure(tdmi_executor *executor, struct tdmi_values values,
                           const struct tdmi_group *group, int first, double *sums);

/* ---- statistics of batch norms shared among executors -----------------------------------------
 *
 * The same work in parts, each up to the next point where sums of several executors must be added:
 * a part takes the sums of the batch norm that follows it, and the next part begins with that norm.
 *
 *     begin, then  forward_part(0, a - 1)  exchange at norm a  forward_part(a, b - 1)  …
 */

/* Start a batch of total_images over all executors (0: the group has statistics of its own); its
 * arrays must stay until backward has run. One thread calls it; a team waits for it. */
void tdmi_executor_begin(tdmi_executor *executor, const struct tdmi_group *group, int total_images);
/* The last node of the part that begins at `node`. Forward parts end before a batch norm or at the
 * last node; backward ones, going down to `lowest`, after which one is next, or there. */
int tdmi_executor_forward_end(const tdmi_plan *plan, int node);
int tdmi_executor_backward_end(const tdmi_plan *plan, int node, int lowest);
void tdmi_executor_forward_part(tdmi_executor *executor, struct tdmi_values values, int first,
                                int last, float *sums, const struct tdmi_member *member);
void tdmi_executor_backward_part(tdmi_executor *executor, struct tdmi_values values, int first,
                                 int last, float *sums, const struct tdmi_member *member);
/* Sums of the batch norm at node, 2 · channels values to be added over executors, and the array
 * that the totals are written to. */
const double *tdmi_executor_norm_sums(const tdmi_executor *executor, int node);
double *tdmi_executor_norm_total(const tdmi_executor *executor, int node);

/* Download loss and prediction of a group with labels, after forward without training; they are
 * complete once the stream is waited for. */
tdm_status tdmi_executor_fetch_evaluations(const tdmi_executor *executor,
                                           tdm_error *err) TDM_MUST_USE;
/* Download the last node's output after forward without training, (n, its shape), or the logits
 * that probabilities are made of. As floats, in ordinary memory: waits for the stream. */
tdm_status tdmi_executor_fetch_output(const tdmi_executor *executor, int n, float *to,
                                      tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_executor_fetch_logits(const tdmi_executor *executor, int n, float *to,
                                      tdm_error *err) TDM_MUST_USE;
/* The logits in the plan's memory and storage type: (n, tdmi_graph_logits). */
const float *tdmi_executor_logits(const tdmi_executor *executor);
