/* From the words of --freeze and --unfreeze to nodes of a graph. */
#include "train/freeze.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { most_layers = 100000 };

/* Number of layers that the word gives; -1: none. */
static int number_of(const char *word)
{
    char *end;
    if (*word < '0' || *word > '9')
        return -1;
    const long n = strtol(word, &end, 10);
    return *end == '\0' && n <= most_layers ? (int)n : -1;
}

tdm_status tdmi_freeze_check(const char *word, tdm_error *err)
{
    if (strcmp(word, "auto") != 0 && strcmp(word, "base") != 0 && strcmp(word, "none") != 0 &&
        number_of(word) < 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "cannot freeze '%s'; auto, base, none or a number of layers is accepted",
                        word);
    return TDM_OK;
}

tdm_status tdmi_freeze_check_unfreezing(const struct tdm_train_options *options, tdm_error *err)
{
    if (options->unfreeze == 0 && options->unfreeze_layers > 0)
        return TDM_FAIL(
            err, TDM_E_USAGE,
            "training: option --unfreeze-layers is %d, but nothing is unfrozen: --unfreeze N, the "
            "epochs between moves, is required with it",
            options->unfreeze_layers);
    if (options->unfreeze > 0 && strcmp(options->freeze, "base") == 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "training: option --unfreeze is %d, but --freeze base leaves nothing to "
                        "unfreeze; --freeze none, or a number of layers, is accepted with it",
                        options->unfreeze);
    if (options->epochs > 0 && options->unfreeze >= options->epochs)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "training: option --unfreeze is %d, but training ends after %d epoch%s, "
                        "before anything is unfrozen; raise --epochs above that, or use --freeze "
                        "base in place of --unfreeze",
                        options->unfreeze, options->epochs, options->epochs == 1 ? "" : "s");
    return TDM_OK;
}

static bool is_layer(const struct tdmi_node *node)
{
    return node->n_params > 0 && node->kind != TDMI_OP_BATCH_NORM;
}

/* Where the network's builder marked no head: the last layer, and the dropout before it. */
int tdmi_freeze_head(const tdmi_graph *graph)
{
    int head = graph->head;
    if (head > 0)
        return head;
    for (head = graph->n_nodes - 1; head > 0 && !is_layer(&graph->nodes[head]);)
        head--;
    if (head > 1 && graph->nodes[head - 1].kind == TDMI_OP_DROPOUT)
        head--;
    return head;
}

tdm_status tdmi_freeze_point(const tdmi_graph *graph, const char *word, int *first_trained,
                             tdm_error *err)
{
    const int wanted = number_of(word);
    int n_layers = 0;
    *first_trained = 0;
    if (strcmp(word, "base") == 0)
        *first_trained = tdmi_freeze_head(graph);
    for (int i = 0; i < graph->n_nodes && wanted > 0; i++)
        if (is_layer(&graph->nodes[i]) && n_layers++ == wanted)
            *first_trained = i;
    if (wanted > 0 && *first_trained == 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "freezing %d layers of a network that has %d leaves nothing to train; 0 to "
                        "%d are accepted",
                        wanted, n_layers, n_layers - 1);
    return TDM_OK;
}

bool tdmi_freeze_has_base(const tdmi_graph *graph, int first_trained)
{
    return first_trained > 0 && first_trained >= tdmi_freeze_head(graph);
}

static int layers_before(const tdmi_graph *graph, int node)
{
    int n = 0;
    for (int i = 0; i < node; i++)
        n += is_layer(&graph->nodes[i]);
    return n;
}

int tdmi_freeze_layers(const tdmi_graph *graph, int first, int end)
{
    return first < end ? layers_before(graph, end) - layers_before(graph, first) : 0;
}

int tdmi_unfreeze_point(const struct tdmi_unfreeze *schedule, const tdmi_graph *graph, int epoch)
{
    const int n_moves = schedule->every > 0 ? epoch / schedule->every : 0;
    const int layers = schedule->layers, all = layers_before(graph, schedule->first);
    int frozen = all - (layers > 0 && n_moves <= all / layers ? n_moves * layers : all);
    if (n_moves == 0)
        return schedule->first;
    if (layers == 0 || frozen <= layers_before(graph, schedule->last))
        return schedule->last;
    for (int i = 0; i < schedule->first; i++)
        if (is_layer(&graph->nodes[i]) && frozen-- == 0)
            return i;
    return schedule->first;
}

int tdmi_unfreeze_final_point(const struct tdmi_unfreeze *schedule, const tdmi_graph *graph,
                              double total_epochs)
{
    if (schedule->every > 0 && !(total_epochs > 0.0))
        return schedule->last;
    return tdmi_unfreeze_point(schedule, graph, (int)ceil(total_epochs) - 1);
}

int tdmi_unfreeze_began(const struct tdmi_unfreeze *schedule, const tdmi_graph *graph, int epoch,
                        int freeze_point)
{
    int began = schedule->every > 0 ? epoch : 0;
    while (began > 0 && tdmi_unfreeze_point(schedule, graph, began - 1) == freeze_point)
        began--;
    return began;
}

tdm_status tdmi_unfreeze_check_steps(const struct tdm_train_options *options,
                                     int64_t steps_per_epoch, tdm_error *err)
{
    const int64_t before = options->unfreeze * steps_per_epoch;
    if (options->unfreeze == 0 || options->steps == 0 || options->steps > before)
        return TDM_OK;
    return TDM_FAIL(
        err, TDM_E_USAGE,
        "option --unfreeze %d has no effect: training ends after %lld step%s and layers "
        "are unfrozen after step %lld (%lld an epoch); raise --steps above %lld, "
        "or use --freeze base in place of --unfreeze",
        options->unfreeze, (long long)options->steps, options->steps == 1 ? "" : "s",
        (long long)before, (long long)steps_per_epoch, (long long)before);
}

int tdmi_freeze_depth(const tdmi_graph *graph, int head, int node)
{
    if (node >= head)
        return 0;
    int before = layers_before(graph, node + 1); /* a batch norm belongs to the layer before it */
    return layers_before(graph, head) - (before > 0 ? before : 1) + 1;
}
