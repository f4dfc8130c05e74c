/*
 * Gradients that are one. The gradient of a sum is the gradient of each of its operands, so an
 * operand's dy can be the sum's own buffer, if no reader of it changes what another still reads:
 *
 *     add ── writes dy of a and of b: nothing to do, all three are one buffer
 *      │
 *      a's readers below add to it … only after b's gradient has been read for the last time
 *
 * A batch norm that adds a residual is such a sum to the residual.
 */
#include "graph/plan.h"

static int backward_time(const tdmi_plan *plan, int node)
{
    return 2 * plan->graph->n_nodes - 1 - node;
}

/* Does a reader add to the gradient of this node in place, after time `from` and up to `to`? */
static bool is_added_to(const tdmi_plan *plan, int node, int from, int to)
{
    for (int j = plan->nodes[node].first_writer - 1; j > node; j--) {
        const struct tdmi_node_plan *it = &plan->nodes[j];
        if (!it->has_backward || it->is_virtual)
            continue;
        for (int k = 0; k < tdmi_plan_reads(plan, j); k++)
            if (tdmi_gradient_of(it->in[k]) == node && backward_time(plan, j) > from &&
                backward_time(plan, j) <= to)
                return true;
    }
    return false;
}

/* May node's dy lie in root's, from time `now` on? Against all that lie there already. */
static bool can_join(const tdmi_plan *plan, int root, int node, int now)
{
    int last = plan->nodes[node].dy.last;
    for (int i = 0; i < plan->graph->n_nodes; i++) {
        if (plan->nodes[i].dy_of != root || plan->nodes[i].first_writer < 0)
            continue;
        if (is_added_to(plan, node, now, plan->nodes[i].dy.last) || is_added_to(plan, i, now, last))
            return false;
    }
    return true;
}

static void share_at(tdmi_plan *plan, int node)
{
    const struct tdmi_node_plan *it = &plan->nodes[node];
    const bool is_sum = plan->graph->nodes[node].kind == TDMI_OP_ADD;
    for (int k = is_sum ? 0 : 1; k < tdmi_plan_reads(plan, node); k++) {
        int target = tdmi_gradient_of(it->in[k]);
        struct tdmi_node_plan *of = &plan->nodes[target];
        if (of->has_backward && of->first_writer == node && of->dy_of == target &&
            it->in[k].act == TDMI_ACT_NONE &&
            can_join(plan, it->dy_of, target, backward_time(plan, node)))
            of->dy_of = it->dy_of;
    }
}

/* Does it give an operand its own gradient as it is? A sum does, and a batch norm that adds a
 * residual and nothing behind it. */
static bool passes_on(const tdmi_plan *plan, int node)
{
    const struct tdmi_node_plan *it = &plan->nodes[node];
    const bool is_sum = plan->graph->nodes[node].kind == TDMI_OP_ADD;
    const bool adds = it->residual >= 0 && it->desc.fusion.act == TDMI_ACT_NONE;
    return it->has_backward && !it->is_virtual && (is_sum || adds);
}

void tdmi_share_gradients(tdmi_plan *plan)
{
    const tdmi_graph *graph = plan->graph;
    for (int i = 0; i < graph->n_nodes; i++)
        plan->nodes[i].dy_of = i;
    for (int i = graph->n_nodes - 1; i >= 0; i--)
        if (passes_on(plan, i))
            share_at(plan, i);
    for (int i = 0; i < graph->n_nodes; i++) {
        struct tdmi_node_plan *it = &plan->nodes[i], *root = &plan->nodes[it->dy_of];
        if (root == it)
            continue;
        root->dy.last = it->dy.last > root->dy.last ? it->dy.last : root->dy.last;
        it->dy.bytes = 0;
    }
}
