/*
 * Arguments of a step of all tensors at once, for backends that queue work on a device and would
 * lose time with one launch a tensor. Part of backend/backend.h.
 *
 * Constants of a run are given when a list is opened; values that change from step to step lie in
 * device memory, so that a recorded step is replayed with new ones.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { TDMI_UPDATE_SLOTS = 2 };

/* Coefficients of steps that are divided by the root of a running mean of squares. */
struct tdmi_moments {
    float first, second;         /* how far the running means of g and of g · g move */
    float of_first, of_gradient; /* what the numerator has of the mean, and of g itself */
    float of_root;
    float epsilon; /* added to the root */
    float keep;    /* weights are multiplied by it first: decay that is no part of g */
};

/* Formulas: backend/ref/update.c. LARS is a step of SGD, LAMB one of Adam, each made longer or
 * shorter by the tensor that takes it (src/optim). */
enum tdmi_update_rule {
    TDMI_RULE_SGD,
    TDMI_RULE_RMSPROP,
    TDMI_RULE_ADAM,
    TDMI_RULE_LARS,
    TDMI_RULE_LAMB
};

/* A run of values of one tensor, or of running statistics. Pieces of a tensor follow each other,
 * tensors are counted from 0 in the order of their pieces, statistics are the last. */
struct tdmi_update_piece {
    int64_t offset, n; /* of params, sums, slots and averages alike */
    int tensor;
    float part;     /* of the rate */
    bool has_decay; /* and is adapted, where the rule does that */
    bool is_state;  /* blended, not stepped: offset is that of states */
    float momentum; /* of states */
};

/* Loss scaling for f16: the loss's gradient is multiplied by scale, a power of two, and so are the
 * sums of gradients. A step whose sums are not finite is skipped and halves it;
 * TDMI_LOSS_SCALE_STEPS good ones in a row double it. In device memory; the step changes it. */
struct tdmi_loss_scale {
    float scale;
    int32_t n_good; /* since it changed */
    int64_t n_left_out;
};

enum { TDMI_LOSS_SCALE_STEPS = 2000 };

/* The arrays of a list, all in device memory and lent for the life of the list. */
struct tdmi_update_arrays {
    float *params, *states, *slots[TDMI_UPDATE_SLOTS];
    float *mean_params, *mean_states;   /* averages of the weights; NULL: none are kept */
    int64_t state_sums_at;              /* of the sums: those of running statistics */
    struct tdmi_loss_scale *loss_scale; /* NULL: gradients are not scaled */
};

/* The parameters of one step, in device memory. */
struct tdmi_step_facts {
    float scale; /* 1 / samples: sums become means */
    float learning_rate, momentum, weight_decay;
    float beside;  /* decay that is no part of the gradient: weights lose rate · beside of them */
    float average; /* how far averages move */
    int32_t is_nesterov;
    struct tdmi_moments moments; /* keep is not read: it is 1 - rate · beside */
    double clip_norm;            /* read where method.clips */
    double trust, trust_epsilon; /* of LARS */
};

struct tdmi_update_method {
    enum tdmi_update_rule rule;
    bool clips;
};

typedef struct tdmi_update_list tdmi_update_list; /* pieces that lie on a device */
