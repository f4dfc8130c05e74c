/*
 * Fusion: which nodes need no pass over memory of their own, because the kernel before or after
 * them carries their work.
 *
 *     without training:  conv, batch norm, add and relu in a row are one call, the conv's; the
 *                        norm is folded into its packed weights. That is a group.
 *     training:          conv, batch norm, relu, conv2: the first conv stores raw y and its sums,
 *                        the norm makes scale and shift of them, conv2 reads
 *                        relu(scale * y + shift). Norm and relu are virtual.
 *                        conv, relu, max pool can be a group, too, if the conv's kernel knows how
 *                        to do with the gradients of winners alone; and norm, add, relu of a norm
 *                        that is not virtual: it writes what the last of them gives, and backward
 *                        it gives the residual its gradient, too.
 *
 * Training starts from the wish that every batch norm and activation were virtual and takes back
 * what some kernel cannot do, until nothing changes: each round makes at least one node real, so
 * it ends. A network that is trained from some node on has both: groups before that border, wishes
 * behind it, and nothing that reaches across.
 */
#include "graph/plan.h"

/* A node that is computed is found at itself. */
static struct tdmi_node_source source_of(const tdmi_plan *plan, int node)
{
    const struct tdmi_node_plan *it = &plan->nodes[node];
    struct tdmi_node_source source = {node, -1, TDMI_ACT_NONE};
    if (!it->is_virtual)
        return source;
    if (it->computed_by >= 0)
        return (struct tdmi_node_source){it->computed_by, -1, TDMI_ACT_NONE};
    source = source_of(plan, plan->graph->nodes[node].inputs[0]);
    if (plan->graph->nodes[node].kind == TDMI_OP_BATCH_NORM)
        source.norm = node;
    else
        source.act = tdmi_op_of(plan->graph->nodes[node].kind)->act;
    return source;
}

/* The only reader, or -1. */
static int sole_reader(const tdmi_graph *graph, int node)
{
    int reader = -1;
    for (int j = node + 1; j < graph->n_nodes; j++) {
        for (int k = 0; k < graph->nodes[j].n_inputs; k++) {
            if (graph->nodes[j].inputs[k] != node)
                continue;
            if (reader >= 0)
                return -1;
            reader = j;
        }
    }
    return reader;
}

/* ---- groups, without training ------------------------------------------------------------- */

struct group {
    struct tdmi_op_fusion fusion;
    int norm, residual, last;
};

enum { most_steps = 3 }; /* norm, add, activation */

/* Groups that begin at node, each one node longer than the one before. */
static int list_groups(const tdmi_plan *plan, int node, struct group groups[most_steps])
{
    const tdmi_graph *graph = plan->graph;
    struct group group = {.norm = -1, .residual = -1, .last = node};
    int n = 0;
    while (n < most_steps) {
        int next = sole_reader(graph, group.last);
        if (next < 0 || next >= plan->first_trained)
            return n;
        const struct tdmi_node *reader = &graph->nodes[next];
        enum tdmi_act act = tdmi_op_of(reader->kind)->act;
        if (reader->kind == TDMI_OP_BATCH_NORM && n == 0) {
            group.fusion.folds_norm = true;
            group.norm = next;
        } else if (reader->kind == TDMI_OP_ADD && group.residual < 0) {
            int other = reader->inputs[reader->inputs[0] == group.last];
            group.fusion.adds_residual = true;
            group.residual = source_of(plan, other).node;
            if (group.residual >= node)
                return n;
        } else if (act != TDMI_ACT_NONE) {
            group.fusion.act = act;
        } else {
            return n;
        }
        group.last = next;
        groups[n++] = group;
        if (act != TDMI_ACT_NONE)
            return n;
    }
    return n;
}

static void group_nodes(tdmi_plan *plan, int node)
{
    struct tdmi_node_plan *it = &plan->nodes[node];
    struct group groups[most_steps];
    int n = it->kernel->can_fuse ? list_groups(plan, node, groups) : 0;
    while (n-- > 0) {
        struct tdmi_op_desc desc = it->desc;
        desc.fusion = groups[n].fusion;
        if (!it->kernel->can_fuse(&desc))
            continue;
        it->desc = desc;
        it->norm = groups[n].norm;
        it->residual = groups[n].residual;
        for (int at = node; at != groups[n].last;) {
            at = sole_reader(plan->graph, at);
            plan->nodes[at].is_virtual = true;
            plan->nodes[at].computed_by = node;
        }
        return;
    }
}

/* An activation that no group took costs no pass where every reader can apply it as it reads. */
static void look_through(tdmi_plan *plan, int node)
{
    const tdmi_graph *graph = plan->graph;
    const enum tdmi_act act = tdmi_op_of(graph->nodes[node].kind)->act;
    if (act == TDMI_ACT_NONE || plan->nodes[node].is_virtual || node + 1 == graph->n_nodes ||
        source_of(plan, graph->nodes[node].inputs[0]).act != TDMI_ACT_NONE)
        return;
    for (int j = node + 1; j < graph->n_nodes; j++)
        for (int k = 0; k < graph->nodes[j].n_inputs; k++) {
            struct tdmi_op_desc desc = plan->nodes[j].desc;
            if (graph->nodes[j].inputs[k] != node)
                continue;
            desc.fusion.in[k].act = act;
            if (j >= plan->first_trained || plan->nodes[j].is_virtual ||
                !plan->nodes[j].kernel->can_fuse || !plan->nodes[j].kernel->can_fuse(&desc))
                return;
        }
    plan->nodes[node].is_virtual = true;
    for (int j = node + 1; j < graph->n_nodes; j++)
        for (int k = 0; k < graph->nodes[j].n_inputs; k++)
            if (graph->nodes[j].inputs[k] == node)
                plan->nodes[j].desc.fusion.in[k].act = act;
}

/* ---- virtual nodes, in training ----------------------------------------------------------- */

static bool is_activation(const tdmi_plan *plan, int node)
{
    return tdmi_op_of(plan->graph->nodes[node].kind)->act != TDMI_ACT_NONE;
}

static int at_least(int value, int least)
{
    return value < least ? least : value;
}

/* Let a conv give what the max pool behind it, perhaps with an activation between, makes of it. */
static void group_pool(tdmi_plan *plan, int node)
{
    const tdmi_graph *graph = plan->graph;
    struct tdmi_node_plan *it = &plan->nodes[node];
    struct tdmi_op_desc desc = it->desc;
    int act = -1, last = sole_reader(graph, node);
    if (last >= 0 && is_activation(plan, last)) {
        act = last;
        last = sole_reader(graph, act);
    }
    if (last < 0 || !it->kernel->can_fuse || graph->nodes[last].kind != TDMI_OP_MAX_POOL)
        return;
    const struct tdmi_op_attrs *pool = &graph->nodes[last].attrs;
    if (pool->kernel != pool->stride || pool->pad_top || pool->pad_bottom || pool->pad_left ||
        pool->pad_right)
        return;
    desc.fusion.pool = pool->kernel;
    if (act >= 0)
        desc.fusion.act = tdmi_op_of(graph->nodes[act].kind)->act;
    if (!it->kernel->can_fuse(&desc))
        return;
    it->desc = desc;
    for (int i = node + 1; i <= last; i++)
        if (i == act || i == last) {
            plan->nodes[i].is_virtual = true;
            plan->nodes[i].computed_by = node;
        }
}

/* Mark candidates for virtual nodes: a batch norm alone behind a computed tensor; an activation
 * with none before it. */
static void request(tdmi_plan *plan)
{
    const tdmi_graph *graph = plan->graph;
    for (int i = at_least(plan->first_trained, 1); i + 1 < graph->n_nodes; i++) {
        struct tdmi_node_plan *it = &plan->nodes[i];
        if (graph->nodes[i].kind == TDMI_OP_CONV) {
            group_pool(plan, i);
        } else if (it->computed_by >= 0) {
            continue;
        } else if (graph->nodes[i].kind == TDMI_OP_BATCH_NORM && it->kernel->can_fuse &&
                   it->has_backward) {
            struct tdmi_op_desc desc = it->desc;
            int input = graph->nodes[i].inputs[0];
            desc.fusion.is_virtual = true;
            it->is_virtual = !plan->nodes[input].is_virtual && plan->nodes[input].has_backward &&
                             sole_reader(graph, input) == i && it->kernel->can_fuse(&desc);
            it->desc.fusion.is_virtual = it->is_virtual;
        } else if (is_activation(plan, i)) {
            it->is_virtual = source_of(plan, graph->nodes[i].inputs[0]).act == TDMI_ACT_NONE;
        }
    }
}

/* The tensor that a norm would add in training: one that lies there as it is, before it, and whose
 * gradient is another than that of what the norm itself reads. -1: there is none. */
static int residual_of(const tdmi_plan *plan, int norm, int input)
{
    const struct tdmi_node_source source = source_of(plan, input);
    const struct tdmi_node_source own = source_of(plan, plan->graph->nodes[norm].inputs[0]);
    const bool is_plain = source.norm < 0 && source.act == TDMI_ACT_NONE;
    return is_plain && source.node < norm && source.node != tdmi_gradient_of(own) ? source.node
                                                                                  : -1;
}

/* Let a batch norm that is computed take an add and an activation behind it, as far as it can. */
static void group_norm(tdmi_plan *plan, int node)
{
    const tdmi_graph *graph = plan->graph;
    struct tdmi_node_plan *it = &plan->nodes[node];
    int last = node;
    while (it->desc.fusion.act == TDMI_ACT_NONE) {
        const int next = sole_reader(graph, last);
        struct tdmi_op_desc desc = it->desc;
        int residual = it->residual;
        if (next < 0)
            return;
        const struct tdmi_node *reader = &graph->nodes[next];
        if (reader->kind == TDMI_OP_ADD && residual < 0)
            residual = residual_of(plan, node, reader->inputs[reader->inputs[0] == last]);
        else
            desc.fusion.act = tdmi_op_of(reader->kind)->act;
        desc.fusion.adds_residual = residual >= 0;
        if ((residual == it->residual && desc.fusion.act == TDMI_ACT_NONE) ||
            !it->kernel->can_fuse(&desc))
            return;
        it->desc = desc;
        it->residual = residual;
        plan->nodes[next].is_virtual = true;
        plan->nodes[next].computed_by = node;
        last = next;
    }
}

static void make_real(tdmi_plan *plan, int node)
{
    plan->nodes[node].is_virtual = false;
    plan->nodes[node].desc.fusion.is_virtual = false;
}

/* The virtual batch norm whose source is this node, or -1. */
static int norm_behind(const tdmi_plan *plan, int node)
{
    int reader = sole_reader(plan->graph, node);
    bool is_norm = reader >= 0 && plan->nodes[reader].is_virtual &&
                   plan->graph->nodes[reader].kind == TDMI_OP_BATCH_NORM;
    return is_norm ? reader : -1;
}

/* Do both inputs lead to one tensor's gradient? A node writes each of its gradients once. */
static bool gradients_meet(const tdmi_plan *plan, const struct tdmi_node *node)
{
    return tdmi_gradient_of(source_of(plan, node->inputs[0])) ==
           tdmi_gradient_of(source_of(plan, node->inputs[1]));
}

/* Fill in what the node is asked to carry; false when some node had to be made real for it. */
static bool settle(tdmi_plan *plan, int node)
{
    const struct tdmi_node *of = &plan->graph->nodes[node];
    struct tdmi_node_plan *it = &plan->nodes[node];
    struct tdmi_op_fusion fusion = {.is_virtual = it->is_virtual,
                                    .pool = it->desc.fusion.pool,
                                    .act = it->desc.fusion.act,
                                    .adds_residual = it->desc.fusion.adds_residual};
    bool has_form = false;
    int viewed = -1;
    for (int k = 0; k < of->n_inputs; k++) {
        struct tdmi_node_source source = source_of(plan, of->inputs[k]);
        fusion.in[k].has_norm = source.norm >= 0;
        fusion.in[k].act = source.act;
        if (source.norm >= 0 || source.act != TDMI_ACT_NONE) {
            has_form = true;
            viewed = of->inputs[k];
        }
    }
    int norm = norm_behind(plan, node);
    if (it->is_virtual && of->kind != TDMI_OP_BATCH_NORM)
        return true; /* an activation, or a pool in a group: nothing runs */
    if (it->is_virtual)
        has_form = false; /* a batch norm: its source is read as it is */
    if (of->n_inputs == 2 && gradients_meet(plan, of)) {
        make_real(plan, viewed); /* two different nodes: at least one was looked through */
        return false;
    }
    fusion.reads_gradient_form = norm >= 0;
    it->desc.fusion = fusion;
    it->norm = norm;
    if (!has_form && norm < 0)
        return true;
    it->desc.fusion.gives_sums = norm >= 0 && !plan->keeps_statistics;
    if (it->kernel->can_fuse && it->kernel->can_fuse(&it->desc))
        return true;
    it->desc.fusion.gives_sums = false;
    if (it->kernel->can_fuse && it->kernel->can_fuse(&it->desc))
        return true;
    if (norm >= 0) {
        it->desc.fusion.reads_gradient_form = false;
        if (!has_form || (it->kernel->can_fuse && it->kernel->can_fuse(&it->desc))) {
            make_real(plan, norm);
            return false;
        }
    }
    make_real(plan, viewed);
    return false;
}

static void settle_all(tdmi_plan *plan)
{
    for (bool is_settled = false; !is_settled;) {
        is_settled = true;
        for (int i = plan->first_trained; i < plan->graph->n_nodes; i++)
            is_settled = settle(plan, i) && is_settled;
    }
}

/* Batch norms that did not become virtual, first to last: a residual may be an earlier one's
 * output. */
static void group_norms(tdmi_plan *plan)
{
    for (int i = plan->first_trained; i < plan->graph->n_nodes; i++)
        if (plan->graph->nodes[i].kind == TDMI_OP_BATCH_NORM && !plan->nodes[i].is_virtual &&
            plan->nodes[i].kernel->can_fuse)
            group_norm(plan, i);
}

void tdmi_fuse(tdmi_plan *plan)
{
    const tdmi_graph *graph = plan->graph;
    for (int i = 0; i < graph->n_nodes; i++) {
        struct tdmi_node_plan *it = &plan->nodes[i];
        it->is_virtual = false;
        it->computed_by = it->norm = it->residual = -1;
    }
    for (int i = plan->first_node; i < plan->first_trained && !plan->is_apart; i++)
        if (!plan->nodes[i].is_virtual)
            group_nodes(plan, i);
    for (int i = plan->first_node; i < plan->first_trained && !plan->is_apart; i++)
        look_through(plan, i);
    if (!plan->is_apart)
        request(plan);
    settle_all(plan);
    if (!plan->is_apart) {
        group_norms(plan);
        settle_all(plan); /* who reads a group reads it as it is */
    }
    for (int i = 0; i < graph->n_nodes; i++) {
        struct tdmi_node_plan *it = &plan->nodes[i];
        for (int k = 0; k < graph->nodes[i].n_inputs; k++)
            it->in[k] = source_of(plan, graph->nodes[i].inputs[k]);
        if (it->desc.is_training && it->residual >= 0)
            it->in[1] = (struct tdmi_node_source){it->residual, -1, TDMI_ACT_NONE};
    }
}
