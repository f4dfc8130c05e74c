/*
 * Words to a border.
 */
#include "train/freeze.h"

#include <stdlib.h>
#include <string.h>

enum { most_layers = 100000 };

/* -1: it is no number of layers. */
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
                        "'%s' does not say what is to be frozen; auto, base, none or a number of "
                        "layers is accepted",
                        word);
    return TDM_OK;
}

static bool is_layer(const struct tdmi_node *node)
{
    return node->n_params > 0 && node->kind != TDMI_OP_BATCH_NORM;
}

/* Of a network whose builder did not say: the last layer, and the dropout before it. */
static int head_of(const tdmi_graph *graph)
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

tdm_status tdmi_freeze_border(const tdmi_graph *graph, const char *word, int *first_trained,
                              tdm_error *err)
{
    const int wanted = number_of(word);
    int n_layers = 0;
    *first_trained = 0;
    if (strcmp(word, "base") == 0)
        *first_trained = head_of(graph);
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
    return first_trained > 0 && first_trained >= head_of(graph);
}
