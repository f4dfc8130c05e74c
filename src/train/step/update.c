/*
 * The optimizer step in pieces. A piece is a run of values of one tensor, so weight decay, which
 * biases and batch norms are exempt from, is one number for the whole piece. Up to three passes,
 * each over all pieces: squares of the gradient for clipping; measurements of the optimizer (LARS
 * and LAMB); the step. Results of pieces are added in their order.
 *
 * A backend that steps all tensors at once (backend/update.h) gets the pieces as one list and does
 * the passes itself.
 */
#include "train/step/update.h"
#include "base/scope.h"

#include <math.h>

/* few_values: too few for a second thread to gain anything. */
enum { piece_values = 64 * 1024, few_values = 64 * 1024 };

struct piece {
    int64_t offset, n;
    int tensor;     /* index in tensors; of parameters only */
    bool is_state;  /* blended, not stepped */
    float momentum; /* of states */
};

/* A trained tensor, and the call for its step, without the pointers of a piece. */
struct tensor {
    int param; /* index in the graph */
    bool has_decay;
    struct tdmi_update_call call;
};

enum pass { GRADIENT, MEASURE, STEP };

struct tdmi_update {
    const tdmi_graph *graph;
    const struct tdmi_backend *backend;
    tdmi_stream *stream;
    const struct tdmi_optimizer *optimizer;
    tdmi_pool *pool;
    float *params, *states, *slots[TDMI_OPTIMIZER_SLOTS];
    float *mean_params, *mean_states; /* averages; NULL: none are kept */
    struct piece *pieces;             /* parameters first */
    int n_pieces, n_param_pieces;
    struct tensor *tensors;
    int n_tensors;
    double (*squares)[2]; /* one row for each piece of parameters */
    struct tdmi_momenta momenta;
    const float *factors; /* on the rate, by the graph's parameters; NULL: all 1 */

    /* where all tensors are stepped at once */
    tdmi_device *device;
    tdmi_stream *own;                          /* NULL: `stream` is the own one */
    struct tdmi_update_method method;          /* of the last begin */
    int64_t n_lists;                           /* made so far */
    tdmi_update_list *list;                    /* NULL: to be made from the pieces */
    struct tdmi_step_facts *facts, host_facts; /* on the device, and on the host */
    struct tdmi_loss_scale *loss_scale;        /* NULL: 1 */

    /* of the current step */
    const float *sums;
    float scale;   /* of running statistics */
    float average; /* weight of the new values in averages */
    enum pass pass;
    int n_tasks;
};

static int64_t count_pieces(int64_t values)
{
    return (values + piece_values - 1) / piece_values;
}

static void cut(tdmi_update *update, const struct tdmi_tensor *tensor, struct piece kind)
{
    for (int64_t begin = 0; begin < tensor->n; begin += piece_values) {
        kind.offset = tensor->offset + begin;
        kind.n = tensor->n - begin < piece_values ? tensor->n - begin : piece_values;
        update->pieces[update->n_pieces++] = kind;
    }
}

static void cut_all(tdmi_update *update, int first_node)
{
    const tdmi_graph *graph = update->graph;
    for (int i = first_node; i < graph->n_nodes; i++) {
        const struct tdmi_node *node = &graph->nodes[i];
        for (int j = 0; j < node->n_params; j++) {
            const struct tdmi_tensor *param = &graph->params[node->first_param + j];
            cut(update, param, (struct piece){.tensor = update->n_tensors});
            update->tensors[update->n_tensors].param = node->first_param + j;
            update->tensors[update->n_tensors++].has_decay = param->spec.has_decay;
        }
    }
    update->n_param_pieces = update->n_pieces;
    for (int i = first_node; i < graph->n_nodes; i++) {
        const struct tdmi_node *node = &graph->nodes[i];
        for (int j = 0; j < node->n_states; j++)
            cut(update, &graph->states[node->first_state + j],
                (struct piece){.is_state = true, .momentum = (float)node->attrs.momentum});
    }
}

TDMI_POINTER_RELEASE(tdmi_update, tdmi_update_close)

tdm_status tdmi_update_open(const tdmi_graph *graph, int first_node,
                            const struct tdmi_backend *backend, tdmi_device *device,
                            const struct tdmi_optimizer *optimizer, tdmi_pool *pool, float *params,
                            float *states, float *const *slots, tdmi_update **update,
                            tdm_error *err)
{
    int64_t n_pieces = 0;
    for (int i = 0; i < graph->n_params; i++)
        n_pieces += count_pieces(graph->params[i].n);
    for (int i = 0; i < graph->n_states; i++)
        n_pieces += count_pieces(graph->states[i].n);
    TDMI_AT_END(tdmi_update_close_at) tdmi_update *made = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    *made = (tdmi_update){.graph = graph,
                          .backend = backend,
                          .device = device,
                          .optimizer = optimizer,
                          .pool = pool,
                          .params = params,
                          .states = states};
    for (int i = 0; i < optimizer->n_slots; i++)
        made->slots[i] = slots[i];
    TDMI_TRY(TDMI_NEW(made->pieces, n_pieces, err));
    TDMI_TRY(TDMI_NEW(made->tensors, graph->n_params, err));
    TDMI_TRY(TDMI_NEW(made->squares, n_pieces, err));
    cut_all(made, first_node);
    TDMI_TRY(backend->stream.open(device, &made->stream, err));
    if (backend->update->run) {
        made->facts = backend->memory.alloc(device, sizeof *made->facts);
        if (!made->facts)
            return TDM_FAIL(err, TDM_E_MEMORY, "no memory of the device for the facts of a step");
    }
    *update = tdmi_take(&made);
    return TDM_OK;
}

/* The list must be made again after a change of the update. */
static void forget_list(tdmi_update *update)
{
    if (update->list)
        update->backend->update->close(update->list);
    update->list = NULL;
}

void tdmi_update_close(tdmi_update *update)
{
    if (!update)
        return;
    forget_list(update);
    if (update->facts)
        update->backend->memory.free(update->device, update->facts);
    if (update->own ? update->own : update->stream)
        update->backend->stream.close(update->own ? update->own : update->stream);
    tdmi_free(update->pieces);
    tdmi_free(update->tensors);
    tdmi_free(update->squares);
    tdmi_free(update);
}

void tdmi_update_average(tdmi_update *update, float *params, float *states)
{
    update->mean_params = params;
    update->mean_states = states;
    forget_list(update);
}

void tdmi_update_loss_scale(tdmi_update *update, struct tdmi_loss_scale *loss_scale)
{
    update->loss_scale = loss_scale;
    forget_list(update);
}

void tdmi_update_keep_statistics(tdmi_update *update)
{
    update->n_pieces = update->n_param_pieces; /* pieces of states are the last */
    forget_list(update);
}

void tdmi_update_scale(tdmi_update *update, const float *factors)
{
    update->factors = factors;
    forget_list(update);
}

/* ---- pieces ----------------------------------------------------------------------------- */

static void blend_piece(const tdmi_update *update, const struct piece *piece)
{
    const struct tdmi_update_table *table = update->backend->update;
    float *states = update->states + piece->offset;
    const float *sums = update->sums + tdmi_graph_state_sums_at(update->graph) + piece->offset;
    table->blend(update->stream, states, sums, piece->n, update->scale, piece->momentum);
    if (update->mean_states)
        table->blend(update->stream, update->mean_states + piece->offset, states, piece->n, 1.0f,
                     update->average);
}

static void run_piece(tdmi_update *update, int index)
{
    const struct piece *piece = &update->pieces[index];
    if (piece->is_state) {
        blend_piece(update, piece);
        return;
    }
    struct tdmi_update_call call = update->tensors[piece->tensor].call;
    call.params = update->params + piece->offset;
    call.gradient_sums = update->sums + piece->offset;
    call.n = piece->n;
    for (int i = 0; i < update->optimizer->n_slots; i++)
        call.slots[i] = update->slots[i] + piece->offset;
    switch (update->pass) {
    case GRADIENT:
        update->backend->update->squares(update->stream, call.gradient_sums, call.n,
                                         &update->squares[index][0]);
        break;
    case MEASURE:
        update->optimizer->measure(update->backend, update->stream, &call, update->squares[index]);
        break;
    case STEP:
        tdmi_optimizer_step(update->optimizer, update->backend, update->stream, &call);
        if (update->mean_params)
            update->backend->update->blend(update->stream, update->mean_params + piece->offset,
                                           call.params, piece->n, 1.0f, update->average);
        break;
    }
}

static int pieces_of(const tdmi_update *update, enum pass pass)
{
    return pass == STEP ? update->n_pieces : update->n_param_pieces;
}

/* Task `index` runs pieces index, index + n_tasks, … */
static tdm_status run_pieces(void *self, int index, int worker, tdm_error *err)
{
    tdmi_update *update = self;
    (void)worker;
    (void)err;
    for (int i = index; i < pieces_of(update, update->pass); i += update->n_tasks)
        run_piece(update, i);
    return TDM_OK;
}

static tdm_status run_pass(tdmi_update *update, enum pass pass, tdm_error *err)
{
    const bool is_small = update->graph->param_values + update->graph->state_values <= few_values;
    update->pass = pass;
    /* One thread queues on a device. */
    update->n_tasks = is_small || !update->backend->device.is_host ? 1 : pieces_of(update, pass);
    TDM_TRY(tdmi_pool_run(update->pool, update->n_tasks, run_pieces, update, err), err,
            "updating parameters");
    return update->backend->stream.wait(update->stream, err);
}

/* ---- a step ----------------------------------------------------------------------------- */

/* Clips the norm of the mean gradient of all tensors together, as torch.nn.utils.clip_grad_norm_
 * does. */
static tdm_status clip(tdmi_update *update, double clip_norm, float *scale, tdm_error *err)
{
    double sum = 0.0;
    TDM_TRY(run_pass(update, GRADIENT, err), err, "measuring the gradient");
    for (int i = 0; i < update->n_param_pieces; i++)
        sum += update->squares[i][0];
    const double norm = sqrt(sum) * (double)*scale;
    const double part = clip_norm / (norm + 1e-6);
    if (part < 1.0)
        *scale = (float)(part * (double)*scale);
    return TDM_OK;
}

static tdm_status adapt(tdmi_update *update, const double *values, tdm_error *err)
{
    TDM_TRY(run_pass(update, MEASURE, err), err, "measuring tensors");
    for (int i = 0; i < update->n_param_pieces;) {
        const int at = update->pieces[i].tensor;
        struct tensor *tensor = &update->tensors[at];
        double lengths[2] = {0.0, 0.0};
        for (; i < update->n_param_pieces && update->pieces[i].tensor == at; i++)
            for (int k = 0; k < 2; k++)
                lengths[k] += update->squares[i][k];
        for (int k = 0; k < 2; k++)
            lengths[k] = sqrt(lengths[k]);
        if (tensor->has_decay)
            update->optimizer->adapt(values, lengths, &tensor->call);
    }
    return TDM_OK;
}

/* Prepares the call of every tensor; where rates differ, all start from the same momenta. */
static void prepare(tdmi_update *update, const double *values, int64_t step,
                    const struct tdmi_update_call *requested)
{
    const struct tdmi_momenta before = update->momenta;
    struct tdmi_update_call call = *requested;
    update->optimizer->prepare(values, step, &update->momenta, &call);
    for (int i = 0; i < update->n_tensors; i++) {
        struct tensor *tensor = &update->tensors[i];
        tensor->call = call;
        if (update->factors) {
            struct tdmi_momenta again = before;
            tensor->call = *requested;
            tensor->call.learning_rate *= update->factors[tensor->param];
            update->optimizer->prepare(values, step, &again, &tensor->call);
        }
        if (!tensor->has_decay) {
            tensor->call.weight_decay = 0.0f;
            tensor->call.moments.keep = 1.0f;
        }
    }
}

/* ---- all at once ------------------------------------------------------------------------ */

static tdm_status make_list(tdmi_update *update, tdm_error *err)
{
    const struct tdmi_update_arrays arrays = {
        .params = update->params,
        .states = update->states,
        .slots = {update->slots[0], update->slots[1]},
        .mean_params = update->mean_params,
        .mean_states = update->mean_states,
        .state_sums_at = tdmi_graph_state_sums_at(update->graph),
        .loss_scale = update->loss_scale,
    };
    TDMI_AT_END(tdmi_free_at) struct tdmi_update_piece *pieces = NULL;
    TDMI_TRY(TDMI_NEW(pieces, update->n_pieces, err));
    for (int i = 0; i < update->n_pieces; i++) {
        const struct piece *piece = &update->pieces[i];
        const struct tensor *tensor = piece->is_state ? NULL : &update->tensors[piece->tensor];
        pieces[i] = (struct tdmi_update_piece){
            .offset = piece->offset,
            .n = piece->n,
            .tensor = piece->tensor,
            .part = tensor && update->factors ? update->factors[tensor->param] : 1.0f,
            .has_decay = tensor && tensor->has_decay,
            .is_state = piece->is_state,
            .momentum = piece->momentum,
        };
    }
    update->n_lists++;
    return update->backend->update->open(update->stream, &arrays, pieces, update->n_pieces,
                                         &update->list, err);
}

static struct tdmi_step_facts facts_of(tdmi_update *update, const double *values, int64_t step,
                                       const struct tdmi_update_call *requested)
{
    struct tdmi_update_call call = *requested;
    update->optimizer->prepare(values, step, &update->momenta, &call);
    struct tdmi_step_facts facts = {
        .scale = requested->gradient_scale,
        .learning_rate = call.learning_rate,
        .momentum = call.momentum,
        .weight_decay = call.weight_decay,
        .average = update->average,
        .is_nesterov = call.is_nesterov,
        .moments = call.moments,
    };
    if (update->optimizer->set_facts)
        update->optimizer->set_facts(values, requested, &facts);
    return facts;
}

static struct tdmi_update_call requested_call(float n, const struct tdmi_update_rates *rates)
{
    return (struct tdmi_update_call){
        .gradient_scale = 1.0f / n,
        .learning_rate = rates->learning_rate,
        .momentum = rates->momentum,
        .weight_decay = rates->weight_decay,
        .moments = {.keep = 1.0f},
    };
}

void tdmi_update_use_stream(tdmi_update *update, tdmi_stream *stream)
{
    update->own = update->own ? update->own : update->stream;
    update->stream = stream;
}

tdm_status tdmi_update_begin(tdmi_update *update, float n, struct tdmi_update_rates rates,
                             tdm_error *err)
{
    double usual[TDMI_PARAMETERS];
    const struct tdmi_update_call call = requested_call(n, &rates);
    tdmi_parameters_usual(update->optimizer->parameters, usual);
    if (!update->list)
        TDM_TRY(make_list(update, err), err, "preparing optimizer steps");
    update->method = (struct tdmi_update_method){update->optimizer->rule, rates.clip_norm > 0.0};
    update->average = (float)(1.0 - rates.average);
    update->host_facts = facts_of(update, rates.values ? rates.values : usual,
                                  rates.step > 0 ? rates.step : 1, &call);
    update->host_facts.clip_norm = rates.clip_norm;
    return TDM_WRAP(err,
                    update->backend->memory.upload(update->stream, update->facts,
                                                   &update->host_facts, sizeof update->host_facts,
                                                   err),
                    "uploading the facts of a step");
}

static void queue_step(void *self, const float *sums)
{
    tdmi_update *update = self;
    update->backend->update->run(update->stream, update->list, update->method, sums, update->facts);
}

struct tdmi_step_next tdmi_update_next(tdmi_update *update)
{
    return (struct tdmi_step_next){queue_step, update, 2 * update->n_lists + update->method.clips};
}

tdm_status tdmi_update_run(tdmi_update *update, const float *sums, float n,
                           struct tdmi_update_rates rates, tdm_error *err)
{
    double usual[TDMI_PARAMETERS];
    const double *values = rates.values ? rates.values : usual;
    struct tdmi_update_call call = requested_call(n, &rates);
    if (update->backend->update->run) {
        TDM_TRY(tdmi_update_begin(update, n, rates, err), err, "updating parameters");
        queue_step(update, sums);
        return update->backend->stream.wait(update->stream, err);
    }
    update->sums = sums;
    update->scale = 1.0f / n;
    update->average = (float)(1.0 - rates.average);
    tdmi_parameters_usual(update->optimizer->parameters, usual);
    if (rates.clip_norm > 0.0)
        TDM_TRY(clip(update, rates.clip_norm, &call.gradient_scale, err), err,
                "clipping the gradient");
    prepare(update, values, rates.step > 0 ? rates.step : 1, &call);
    if (update->optimizer->measure)
        TDM_TRY(adapt(update, values, err), err, "adapting the step to tensors");
    return run_pass(update, STEP, err);
}
