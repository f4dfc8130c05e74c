/* A step as step.c and queued.c see it. */
#pragma once

#include "dist/device_sum.h"
#include "graph/packed.h"
#include "train/step/division.h"
#include "train/step/recorder.h"
#include "train/step/step.h"
#include "train/step/sums.h"

struct tdmi_step {
    const tdmi_plan *plan;
    tdmi_pool *pool;
    tdmi_device *device;
    int max_groups, n_executors;
    tdmi_executor **executors;
    tdmi_sums *sums;
    tdmi_team **teams; /* one for each executor; NULL where one thread queues */
    int *wave;         /* the group that a team computes, -1: none is left; by executor */
    tdmi_packed *packed;
    bool has_packed;                   /* the weights of frozen nodes, which do not change */
    tdmi_recorder *recorder;           /* NULL where memory is the host's */
    tdmi_comm *comm;                   /* the other ranks; NULL: none */
    struct tdmi_device_sum device_sum; /* with these, on a device; else all 0 */
    bool rounds;                       /* gradients, on their way to the others */
    const float *class_weights;
    const struct tdmi_loss_scale *loss_scale;
    double *exchange; /* a batch norm's sums, a row for each group of all ranks; NULL: not shared */
    int *counts;      /* images of all ranks; NULL: statistics are not shared, or there is one */
    tdmi_mixer **mixers;       /* one for each executor; NULL: no augmentation here */
    const uint8_t *prefetched; /* first image of the prefetched group; NULL: none */

    /* Samples of the batch that are not skipped; those of group s begin at s * max_images. */
    int *group_images;
    const uint8_t **pixels; /* unused where the batch has rows */
    int64_t *rows;          /* indices of cached feature rows on the device */
    int32_t *labels;
    int64_t *items;
    struct tdmi_augment_key *keys; /* of augmentation on the device, where the batch has keys */
    struct tdmi_judgement *judgements;

    /* of the current batch */
    struct tdmi_values values;
    struct tdmi_mixing mixing; /* augment NULL: none */
    bool has_rest;             /* some changes are left to the device */
    struct tdmi_augment rest;
    bool is_kept;         /* the batch names feature rows by number */
    bool is_on_device;    /* its images lie on the device */
    const uint8_t *batch; /* its images, side by side */
    int n;
    struct tdmi_draw_key draws;
    int n_groups;
    struct tdmi_sums_groups groups; /* the same within the whole batch */
    struct tdmi_division division;
    struct tdmi_team_log *log; /* lent; NULL: nothing is measured */
    tdmi_lane *const *lanes;   /* of the pool's threads; NULL: not traced */
    _Atomic int n_begun;       /* of division.n_by_teams */
    int segment;               /* that tasks run now */
    int first_node, last_node; /* … and the part of it, where statistics are shared */
    bool is_backward;          /* that part */
    int n_images;              /* that are not left out */
    int n_all_images;          /* of all ranks, where statistics are shared */
};

/* Gives a group to an executor and returns its number of images. Without images there is nothing to
 * run; its sums are cleared. */
int tdmi_step_give(tdmi_step *step, int executor, int group);

/* From here on the executor is run by this thread of the pool and, in a team, those after it. */
static inline void tdmi_step_trace(const tdmi_step *step, int executor, int thread)
{
    if (step->lanes)
        tdmi_executor_trace(step->executors[executor], step->lanes + thread);
}

/* A thread as a member of its team. */
struct tdmi_seat {
    int team;
    struct tdmi_member member;
    const struct tdmi_member *or_alone; /* the member, or NULL where there is no other */
};
void tdmi_step_take_seat(const tdmi_step *step, int thread, struct tdmi_seat *seat);
/* Threads that form teams in this step; 0: none do. */
int tdmi_step_team_threads(const tdmi_step *step);
tdm_status tdmi_step_wait_for(const tdmi_step *step, int executor, tdm_error *err) TDM_MUST_USE;
/* together.c: counts the images of all ranks; then the current segment, and forward before the
 * first. */
tdm_status tdmi_step_count_images(tdmi_step *step, tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_step_run_together(tdmi_step *step, tdm_error *err) TDM_MUST_USE;

/* add_ranks.c: reserves what sums over ranks need, of a step with so many arrays of sums, and
 * starts the sum of the current segment; after the last one waits until all are done. */
tdm_status tdmi_step_reserve_ranks(tdmi_step *step, const struct tdmi_step_options *options,
                                   int n_arrays, tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_step_add_ranks(tdmi_step *step, tdm_error *err) TDM_MUST_USE;
