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

static const char *small_network(const struct tdmi_look *look)
{
    return look->n_seen > 0 && look->is_grey && look->side <= LENET_SIDE ? "lenet5" : "convnet7";
}

/* ---- the probe ----------------------------------------------------------------------------- */

/* About how long a probe takes here, by a few images of noise in both networks. 0: not known. */
static double measure_probe(const struct tdmi_session *session, const char *model,
                            const char *at_hand)
{
    const struct tdmi_compute *compute = &session->compute;
    const struct tdmi_import_request request = {.head = tdmi_network_head(session),
                                                .ignores_head = true};
    const struct tdm_weights_known *known;
    struct tdmi_speed speed;
    double scratch_second;
    char path[1024];
    bool is_here;
    if (tdmi_catalogue_find(at_hand, &known, NULL) != TDM_OK ||
        tdm_weights_place(known, path, sizeof path, &is_here, NULL) != TDM_OK ||
        tdmi_speed_measure(compute, path, &request, &speed, NULL) != TDM_OK ||
        tdmi_speed_of_new(compute, model, request.head.classes, &scratch_second, NULL) != TDM_OK ||
        !(speed.network_second > 0.0))
        return 0.0;
    return tdmi_probe_seconds(tdmi_source_items(session->data.source), scratch_second,
                              speed.network_second,
                              session->data.look.decode_second / tdmi_pool_threads(compute->pool));
}

/* The run is not open yet: the line goes to the listener, and to no record. */
static void announce_probe(const struct tdmi_session *session, const char *model,
                           const char *at_hand)
{
    const tdm_sink *sink = &session->record.sink;
    const int64_t n = tdmi_source_items(session->data.source);
    char text[300], time[TDMI_DURATION_BYTES], about[80] = "";
    if (!sink->event)
        return;
    const double seconds = measure_probe(session, model, at_hand);
    if (seconds > 0.0)
        snprintf(about, sizeof about, ", which takes about %s", tdmi_estimate_words(seconds, time));
    snprintf(text, sizeof text,
             "a probe decides whether %s from scratch or %s suits these images: it trains both on "
             "%lld of them%s",
             model, at_hand, (long long)(n < TDMI_PROBE_IMAGES ? n : TDMI_PROBE_IMAGES), about);
    sink->event(sink->self, &(tdm_event){.kind = TDM_EVENT_NOTE, .text = text});
}

static tdm_status probe(struct tdmi_session *session, const char *at_hand,
                        struct tdmi_choice *choice, tdm_error *err)
{
    struct tdmi_probe found;
    tdm_error why = {0};
    const int64_t began_ns = tdmi_clock_ns();
    announce_probe(session, choice->model, at_hand);
    const tdm_status status =
        tdmi_probe_run(&session->config.options, tdmi_source_items(session->data.source),
                       choice->model, at_hand, session->record.sink, &found, &why);
    session->estimate.probe_seconds = tdmi_clock_seconds_since(began_ns);
    if (status == TDM_E_STOPPED)
        return TDM_FAIL(err, status, "stopped on request");
    choice->weights = at_hand;
    if (status != TDM_OK) { /* it only advises */
        snprintf(choice->reason, sizeof choice->reason,
                 "a probe failed (%s), so pretrained weights are used: %s",
                 tdm_error_sentence(&why, 0), at_hand);
        return TDM_OK;
    }
    snprintf(choice->reason, sizeof choice->reason,
             "a probe trained both on a part of the images: of %lld others %s from scratch has "
             "%lld right, and %s %lld",
             (long long)found.n, choice->model, (long long)found.scratch, at_hand,
             (long long)found.pretrained);
    if (found.pretrained < found.scratch)
        choice->weights = NULL;
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
    *choice = (struct tdmi_choice){.model = small_network(look)};
    if (suits == TDMI_SUITS_SMALL) {
        snprintf(choice->reason, sizeof choice->reason,
                 "the images are grey and small (%d pixels), which suits %s from scratch",
                 look->side, choice->model);
        return TDM_OK;
    }
    choice->misses_weights = !at_hand;
    if (!at_hand)
        return TDM_OK;
    if (suits == TDMI_SUITS_UNSURE && has_enough) {
        TDMI_TRY(probe(session, at_hand, choice, err));
    } else {
        choice->weights = at_hand;
        snprintf(choice->reason, sizeof choice->reason,
                 "images of about %d pixels suit pretrained weights: %s", look->side, at_hand);
    }
    if (choice->weights)
        choice->model = NULL;
    return TDM_OK;
}
