/*
 * Chains, without training: an expansion, the depthwise convolution behind it and the projection
 * behind that are one call of the last of them where its kernel says that it can and should. What
 * lies between them has no other reader and no memory. Fusion has already put norms, activations
 * and residuals into the links (graph/fuse.c).
 */
#include "graph/plan.h"

static bool runs(const tdmi_plan *plan, int node)
{
    return !tdmi_plan_is_silent(plan, node);
}

/* How often what runs reads the node's y. */
static int count_reads(const tdmi_plan *plan, int node)
{
    const tdmi_graph *graph = plan->graph;
    int n = 0;
    for (int j = node + 1; j < graph->n_nodes; j++) {
        if (!runs(plan, j))
            continue;
        n += plan->nodes[j].residual == node;
        for (int k = 0; k < graph->nodes[j].n_inputs; k++)
            n += plan->nodes[j].in[k].node == node;
    }
    return n;
}

int tdmi_chain_links(const tdmi_plan *plan, int last, int links[TDMI_CHAIN_LINKS])
{
    const int n = plan->nodes[last].n_links;
    for (int i = n - 1; i >= 0; i--) {
        links[i] = last;
        last = plan->nodes[last].in[0].node;
    }
    return n;
}

/* The nodes from n - 1 before `last` to it, if each only feeds the next and kernels agree. */
static bool can_chain(const tdmi_plan *plan, int last, int n)
{
    const struct tdmi_kernel *kernel = plan->nodes[last].kernel;
    const struct tdmi_op_desc *descs[TDMI_CHAIN_LINKS];
    int node = last;
    for (int i = n - 1; i >= 0; i--) {
        const struct tdmi_node_plan *it = &plan->nodes[node];
        if (it->kernel != kernel || it->chained_by >= 0 || it->n_links > 1 ||
            plan->graph->nodes[node].n_inputs != 1 ||
            (i < n - 1 && (it->residual >= 0 || count_reads(plan, node) != 1)))
            return false;
        descs[i] = &it->desc;
        node = it->in[0].node;
    }
    return kernel->chain->can_run(descs, n);
}

static void chain_nodes(tdmi_plan *plan, int last)
{
    int links[TDMI_CHAIN_LINKS], n = TDMI_CHAIN_LINKS;
    while (n > 1 && !can_chain(plan, last, n))
        n--;
    plan->nodes[last].n_links = n;
    tdmi_chain_links(plan, last, links);
    for (int i = 0; i + 1 < n; i++)
        plan->nodes[links[i]].chained_by = last;
}

void tdmi_chain(tdmi_plan *plan)
{
    for (int i = 0; i < plan->graph->n_nodes; i++) {
        plan->nodes[i].n_links = 1;
        plan->nodes[i].chained_by = -1;
    }
    if (plan->is_apart)
        return;
    for (int i = 0; i < plan->first_trained; i++)
        if (runs(plan, i) && plan->nodes[i].kernel->chain)
            chain_nodes(plan, i);
}
