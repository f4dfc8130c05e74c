/*
 * The network of a training: graph, freeze point, plans, and values on device and host.
 */
#pragma once

#include "graph/plan.h"
#include "models/network.h"
#include "train/freeze.h"
#include "train/session/data.h"

struct tdmi_session;

struct tdmi_train_network {
    struct tdmi_network definition; /* name, and defaults of group and learning rate */
    tdmi_graph *graph;
    int head;                      /* first node of the head */
    int first_trained;             /* first trained node; nodes before it are frozen */
    struct tdmi_unfreeze unfreeze; /* when first_trained moves */
    tdmi_plan *train_plan, *evaluation_plan;
    tdmi_plan *test_plan; /* in f32, of the model's self-test; NULL: evaluation_plan is in f32 */

    float *params, *states;           /* on the device */
    float *mean_params, *mean_states; /* averages of --ema, likewise; NULL: none */
    struct tdmi_model_file host;      /* copies on the host, and all else that a model file holds */
};

void tdmi_network_release(struct tdmi_session *session);

/* The values that are evaluated and kept: averages where there are any. */
struct tdmi_values tdmi_values_evaluated(const struct tdmi_train_network *network);
/* The values that steps change. */
struct tdmi_values tdmi_values_trained(const struct tdmi_train_network *network);

/* Copies params and states to the device, there to the averages or the trained values, and waits.
 */
tdm_status tdmi_values_upload(const struct tdmi_session *session, bool to_averages,
                              const float *params, const float *states,
                              tdm_error *err) TDM_MUST_USE;
/* Copies them to the host; the stream is to be waited for. */
tdm_status tdmi_values_download(const struct tdmi_session *session, struct tdmi_values from,
                                float *params, float *states, tdm_error *err) TDM_MUST_USE;

/* The head and the input that the options ask for. */
struct tdmi_head tdmi_network_head(const struct tdmi_session *session);
struct tdmi_import_input tdmi_network_input(const struct tdmi_train_config *config);

/* Takes over the graph of a checkpoint, so that the weights file is not needed. */
tdm_status tdmi_network_take_stored(struct tdmi_session *session, struct tdmi_model_file *stored,
                                    tdm_error *err) TDM_MUST_USE;

/* The first trained node in the last epoch that --epochs and --steps allow. */
int tdmi_network_final_freeze_point(const struct tdmi_session *session);
/* Layers that are to be unfrozen and are not yet. */
int tdmi_network_layers_left(const struct tdmi_train_network *network);
void tdmi_network_report_unfreezing(const struct tdmi_session *session);

/* Half of a running statistic is replaced after 70 steps. With the 0.001 of some Keras files (in
 * PyTorch's sense) it would be 700, more than many trainings have. */
#define TDMI_LEAST_MOMENTUM 0.01
/* Reports the batch norms: frozen, trained, with which statistics. */
void tdmi_network_report_norms(const struct tdmi_session *session);
/* Reports size, batch and rate; with the reason where the number of images decided the rate. */
void tdmi_network_report(const struct tdmi_session *session);
