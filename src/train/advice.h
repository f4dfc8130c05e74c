/*
 * The advice after a training: one next step, and a sentence with the measured figures that it
 * rests on. A pure function of what the run counted and timed; docs/reference/json.md lists the
 * rules.
 */
#pragma once

#include "tandem/train.h"

/* Why the frozen layers were computed in every epoch. */
enum tdmi_advice_base {
    TDMI_BASE_IS_KEPT,      /* they were not; or nothing is frozen, or features cannot be cached */
    TDMI_BASE_IS_UNWANTED,  /* --features none */
    TDMI_BASE_HAS_NO_PLACE, /* the disk failed */
    TDMI_BASE_SEES_CHANGES, /* --views 0: each epoch changes images anew */
};

/* A zeroed member is not known. */
struct tdmi_advice_facts {
    int64_t n_pictures; /* of the source */
    int64_t n_unusable; /* could not be read or decoded */
    int64_t n_torn;     /* are in more than one class */

    bool is_scratch;      /* started without weights, which would suit the images */
    bool is_by_default;   /* … and without --model */
    const char *at_hand;  /* installed weights that could have been used; NULL: none */
    const char *to_fetch; /* … that could be fetched */
    const char *network;
    bool is_head_alone; /* only the head was trained, to the end */
    enum tdmi_advice_base base;
    bool has_norms;         /* batch norms */
    bool is_freeze_given;   /* --freeze */
    const char *unnamed;    /* the run's folder where -o was not given; else NULL */
    int64_t steps_an_epoch; /* 0: not known */

    /* The rare class with most validation images among those of which none is right; NULL: none. */
    const char *missed;
    int64_t n_missed;      /* its number of validation images */
    int missed_classes;    /* rare classes of which none is right */
    int validated_classes; /* classes that have validation images */
    const char *commonest; /* class with most validation images */
    double commonest_part; /* its part of all validation images */
    bool is_balanced;      /* --balance or class weights */

    bool is_cut;          /* --fraction or --per-class left images unused */
    bool is_split_given;  /* by the source: --split has no effect */
    double test_fraction; /* of the images, kept for the test */
    int64_t n_train, n_val;
    bool is_unchanged; /* --augment none, and auto would have changed images */
    bool is_prepared;  /* the source is a table of resized images already */

    int epochs, eval_every, best_epoch;
    int64_t steps;
    int epochs_limit;     /* --epochs, 0: none */
    int64_t steps_limit;  /* --steps, likewise */
    double rate;          /* --lr that gives the rate in effect with the same scaling */
    double last_loss;     /* of the training images in the last epoch; 0: not known */
    double guess_loss;    /* when all classes are equally probable; 0: not known */
    const char *ended_by; /* as in tdm_train_result */
    int patience;
    double minutes; /* --minutes */
    struct tdm_after_best after_best;
    tdm_score train;         /* of the epoch with the most right */
    tdm_score val;           /* of the best epoch */
    int rise_epochs;         /* the last quarter of the validated epochs; 0: too few */
    tdm_score before_rise;   /* the best of the epochs before */
    double seconds;          /* of the whole run */
    double training_seconds; /* inside epochs */
    double fed_seconds;      /* inside epochs, since the run was last resumed */
    double waited_seconds;   /* … of which training waited for images */
};

/* Exactly one; "none" with why where nothing measured asks for a change. */
struct tdm_next tdmi_advice(const struct tdmi_advice_facts *facts);
/* The step of that name, in static storage; NULL: unknown. */
const char *tdmi_advice_step(const char *name);
