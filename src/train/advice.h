/*
 * What to do after a training: one step, and the sentence of measured figures that it rests on. A
 * pure function of what the run counted and timed; docs/reference/json.md lists the rules.
 */
#pragma once

#include "tandem/train.h"

/* Why a frozen base was computed in every epoch. */
enum tdmi_advice_base {
    TDMI_BASE_IS_KEPT,      /* it was not; or nothing is frozen, or it cannot be kept */
    TDMI_BASE_IS_UNWANTED,  /* --features none */
    TDMI_BASE_HAS_NO_PLACE, /* the disk would not */
    TDMI_BASE_SEES_CHANGES, /* --views 0: pictures are changed anew */
};

/* Zeroed: nothing is known. */
struct tdmi_advice_facts {
    int64_t n_pictures; /* of the source */
    int64_t n_unusable; /* could not be read or decoded */
    int64_t n_torn;     /* stand under more than one class */

    bool is_scratch;      /* begun without weights */
    bool is_by_default;   /* … and nobody said with which network */
    const char *at_hand;  /* published weights that could have been begun with; NULL: none */
    const char *to_fetch; /* … that could be brought */
    const char *network;
    bool is_head_alone; /* all but the head stayed as it was, to the end */
    enum tdmi_advice_base base;
    bool has_norms;         /* batch norms */
    bool is_freeze_given;   /* --freeze */
    const char *unnamed;    /* the run's folder, where nobody named it; else NULL */
    int64_t steps_an_epoch; /* 0: not known */

    bool is_cut;          /* --fraction or --per-class left pictures unused */
    bool is_split_given;  /* by the source: --split decides nothing */
    double test_fraction; /* kept apart */
    int64_t n_train, n_val;
    bool is_changed;  /* pictures, by --augment */
    int crop_pixels;  /* that fit its size; 0: none do */
    bool is_prepared; /* the source is a table of small pictures already */

    int epochs, eval_every, best_epoch;
    int64_t steps;
    int epochs_limit;     /* --epochs, 0: none */
    int64_t steps_limit;  /* --steps, likewise */
    double rate;          /* that --lr gives with the same scaling */
    double last_loss;     /* of the last epoch's pictures that trained; 0: not known */
    double guess_loss;    /* of one who knows nothing and says so; 0: not known */
    const char *ended_by; /* as in tdm_train_result */
    int patience;
    double minutes; /* --minutes */
    struct tdm_after_best after_best;
    tdm_score train;         /* of the epoch with the most right */
    tdm_score val;           /* of the best epoch */
    int rise_epochs;         /* the last quarter of the validated ones; 0: too few */
    tdm_score before_rise;   /* the best of those before */
    double seconds;          /* all */
    double training_seconds; /* inside epochs */
    double fed_seconds;      /* of these, in which pictures were fed, this sitting's */
    double waited_seconds;   /* … in which training waited for them */
};

/* Exactly one; "none" with why where nothing measured asks for a change. */
struct tdm_next tdmi_advice(const struct tdmi_advice_facts *facts);
/* The step of that name, in static storage; NULL: there is none. */
const char *tdmi_advice_step(const char *name);
