/*
 * Events of long work, as one vocabulary for every listener: the terminal, the run record, the
 * report; and the request to stop it. The library calls a sink from one thread at a time; a sink
 * must not call back into the library's object that feeds it.
 */
#ifndef TANDEM_EVENT_H
#define TANDEM_EVENT_H

#include "tandem/api.h"
#include "tandem/json.h"
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Counts of n evaluated images. low and high are the 95 % Wilson interval of the distinct ones:
 * copies, images of equal content, say no more than one of them. */
typedef struct tdm_score {
    int64_t n, correct;
    int64_t n_distinct, correct_distinct;
    double accuracy; /* correct / n */
    double low, high;
    double loss; /* mean over the n images */
} tdm_score;

/* {"n", "n_distinct", "correct", "correct_distinct", "accuracy", "low", "high", "loss"} as an
 * object under key. */
TDM_API void tdm_score_to_json(const tdm_score *score, tdm_json_writer *writer, const char *key);
/* The same as members of the object that is open. */
TDM_API void tdm_score_members_to_json(const tdm_score *score, tdm_json_writer *writer);

struct tdm_metrics; /* tandem/metrics.h */

typedef enum tdm_event_kind {
    TDM_EVENT_NOTE,        /* text: a remark for people (a default chosen, an image skipped) */
    TDM_EVENT_PHASE_BEGIN, /* text names it ("reading", "training epoch 3"); total: images or 0 */
    TDM_EVENT_PROGRESS,    /* done of total images in this phase; step; loss: mean so far */
    TDM_EVENT_PHASE_END,
    /* epoch ended: train, val, learning_rate, seconds, is_best; the best weights are on disk by the
     * next CHECKPOINT, which comes within about a second */
    TDM_EVENT_EPOCH,
    TDM_EVENT_CHECKPOINT /* text: path of the file that is now complete */
} tdm_event_kind;

typedef struct tdm_event {
    tdm_event_kind kind;
    int epoch;    /* from 1; 0 before the first */
    int64_t step; /* optimiser steps taken since the start of training */
    int64_t done, total;
    double loss, learning_rate;
    double seconds; /* since the run began, earlier sittings of a resumed run included */
    int is_best;
    tdm_score train, val;
    const struct tdm_metrics *metrics; /* of EPOCH, where it was validated: all of val */
    const char *text;                  /* both live for the call */
    int is_detail;                     /* NOTE events: shown only with --verbose */
} tdm_event;

typedef struct tdm_sink {
    void *self;
    void (*event)(void *self, const tdm_event *event); /* NULL: nobody listens */
} tdm_sink;

/* ---- stop ------------------------------------------------------------------------------------ */

/* A request to end long work soon and cleanly, for a signal handler. Training writes a checkpoint
 * and returns TDM_E_STOPPED; everything else returns it after undoing what is half done. */
/* Safe in a signal handler. */
TDM_API void tdm_stop_request(void);
TDM_API bool tdm_stop_is_requested(void);
TDM_API void tdm_stop_clear(void);

#ifdef __cplusplus
}
#endif
#endif
