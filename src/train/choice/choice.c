/* The rule, and the probe where it is unsure. */
#include "train/choice/choice.h"
#include "base/clock.h"
#include "train/choice/probe.h"
#include "train/choice/speed.h"
#include "train/session/session.h"
#include "weights/fetch/catalogue.h"

#include <stdio.h>

/* Digits and letters of this size are what LeNet-5 is made for. */
enum { LENET_SIDE = 40, LEAST_PER_CLASS = 10 };

static int own_size(const char *name)
{
    struct tdmi_network network;
    return tdmi_network_find(name, &network, NULL) == TDM_OK ? network.preprocess.width : 0;
}

/* LeNet-5 is made for one size. */
static void find_candidates(const struct tdmi_look *look, const char *at_hand, int size_asked,
                            struct tdmi_candidates *them)
{
    const bool is_lenet = look->n_seen > 0 && look->is_grey && look->side <= LENET_SIDE;
    const struct tdm_weights_known *known;
    *them = (struct tdmi_candidates){.model = is_lenet ? "lenet5" : "convnet7",
                                     .weights = at_hand,
                                     .size = size_asked,
                                     .size_of_weights = size_asked};
    if (size_asked > 0 || look->n_seen == 0)
        return;
    if (!is_lenet)
        them->size = tdmi_size_from_scratch(look->large_side, own_size(them->model));
    if (at_hand && tdmi_catalogue_find(at_hand, &known, NULL) == TDM_OK)
        them->size_of_weights = tdmi_size_of_images(look->large_side, own_size(known->network));
}

/* ---- the probe ----------------------------------------------------------------------------- */

/* About how long a probe takes here, by a few images of noise in both networks. 0: not known. */
static double measure_probe(const struct tdmi_session *session, const struct tdmi_candidates *them)
{
    const struct tdmi_compute *compute = &session->compute;
    const struct tdmi_import_request request = {.head = tdmi_network_head(session),
                                                .ignores_head = true};
    const struct tdm_weights_known *known;
    struct tdmi_speed speed = {0};
    double scratch_second;
    char path[1024];
    bool is_here;
    if (tdmi_catalogue_find(them->weights, &known, NULL) != TDM_OK ||
        tdm_weights_place(known, path, sizeof path, &is_here, NULL) != TDM_OK ||
        tdmi_speed_measure(compute, path, &request, &speed, NULL) != TDM_OK ||
        tdmi_speed_of_new(compute, them->model, them->size, request.head.classes, &scratch_second,
                          NULL) != TDM_OK ||
        !(speed.network_second > 0.0))
        return 0.0;
    return tdmi_probe_seconds(tdmi_source_items(session->data.source), scratch_second,
                              tdmi_speed_seconds(&speed, 1, them->size_of_weights),
                              session->data.look.decode_second / tdmi_pool_threads(compute->pool));
}

/* The run is not open yet: the line goes to the listener, and to no record. */
static void announce_probe(const struct tdmi_session *session, const struct tdmi_candidates *them)
{
    const tdm_sink *sink = &session->record.sink;
    const int64_t n = tdmi_source_items(session->data.source);
    char text[300], time[TDMI_DURATION_BYTES], about[80] = "";
    if (!sink->event)
        return;
    const double seconds = measure_probe(session, them);
    if (seconds > 0.0)
        snprintf(about, sizeof about, ", which takes about %s", tdmi_estimate_words(seconds, time));
    snprintf(text, sizeof text,
             "a probe decides whether %s from scratch or %s suits these images: it trains both on "
             "%lld of them%s",
             them->model, them->weights, (long long)(n < TDMI_PROBE_IMAGES ? n : TDMI_PROBE_IMAGES),
             about);
    sink->event(sink->self, &(tdm_event){.kind = TDM_EVENT_NOTE, .text = text});
}

/* *pretrained: do the weights suit the images? */
static tdm_status probe(struct tdmi_session *session, const struct tdmi_candidates *them,
                        bool *pretrained, char reason[TDMI_REASON_BYTES], tdm_error *err)
{
    struct tdmi_probe found;
    tdm_error why = {0};
    const int64_t began_ns = tdmi_clock_ns();
    announce_probe(session, them);
    const tdm_status status =
        tdmi_probe_run(&session->config.options, tdmi_source_items(session->data.source), them,
                       session->record.sink, &found, &why);
    session->estimate.probe_seconds = tdmi_clock_seconds_since(began_ns);
    if (status == TDM_E_STOPPED)
        return TDM_FAIL(err, status, "stopped on request");
    *pretrained = status != TDM_OK || found.pretrained >= found.scratch;
    if (status != TDM_OK) /* it only advises */
        snprintf(reason, TDMI_REASON_BYTES,
                 "a probe failed (%s), so pretrained weights are used: %s",
                 tdm_error_sentence(&why, 0), them->weights);
    else
        snprintf(reason, TDMI_REASON_BYTES,
                 "a probe trained both on a part of the images: of %lld others %s from scratch has "
                 "%lld right, and %s %lld",
                 (long long)found.n, them->model, (long long)found.scratch, them->weights,
                 (long long)found.pretrained);
    return TDM_OK;
}

/* ---- the rule ------------------------------------------------------------------------------ */

tdm_status tdmi_choice_make(struct tdmi_session *session, const char *at_hand,
                            struct tdmi_choice *choice, tdm_error *err)
{
    const struct tdmi_look *look = &session->data.look;
    const enum tdmi_suits suits = tdmi_look_suits(look);
    const int64_t n_classes = tdmi_source_classes(session->data.source);
    const bool has_enough = LEAST_PER_CLASS * n_classes <= TDMI_PROBE_IMAGES;
    struct tdmi_candidates them;
    bool pretrained = at_hand != NULL;
    find_candidates(look, at_hand, session->config.options.size, &them);
    *choice = (struct tdmi_choice){.misses_weights = !at_hand && suits != TDMI_SUITS_SMALL};
    if (suits == TDMI_SUITS_SMALL) {
        pretrained = false;
        snprintf(choice->reason, sizeof choice->reason,
                 "the images are grey and small (%d pixels), which suits %s from scratch",
                 look->side, them.model);
    } else if (at_hand && suits == TDMI_SUITS_UNSURE && has_enough) {
        TDMI_TRY(probe(session, &them, &pretrained, choice->reason, err));
    } else if (at_hand) {
        snprintf(choice->reason, sizeof choice->reason,
                 "images of about %d pixels suit pretrained weights: %s", look->side, at_hand);
    }
    choice->model = pretrained ? NULL : them.model;
    choice->weights = pretrained ? at_hand : NULL;
    choice->size = pretrained ? them.size_of_weights : them.size;
    return TDM_OK;
}
