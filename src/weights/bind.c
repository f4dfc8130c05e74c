/*
 * Bindings and the complaint about them. Shapes are compared as the publisher lays tensors out, so
 * that a message shows what the file has beside what it should have.
 */
#include "weights/bind.h"
#include "weights/layouts.h"
#include "tandem/log.h"
#include "base/text/quote.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Lines of one kind in a complaint. */
enum { most_lines = 10 };

tdm_status tdmi_bindings_init(struct tdmi_bindings *bindings, const tdmi_graph *graph,
                              const char *network, const tdmi_weights *weights,
                              enum tdmi_publisher layout, tdmi_arena *arena, tdm_error *err)
{
    *bindings = (struct tdmi_bindings){
        .graph = graph, .network = network, .weights = weights, .layout = layout, .arena = arena};
    TDMI_ARENA_NEW(arena, bindings->params, graph->n_params + 1, err);
    TDMI_ARENA_NEW(arena, bindings->states, graph->n_states + 1, err);
    TDMI_ARENA_NEW(arena, bindings->is_taken, tdmi_weights_count(weights) + 1, err);
    return TDM_OK;
}

struct tdmi_binding *tdmi_binding_of(const struct tdmi_bindings *bindings, int node, int i)
{
    const struct tdmi_node *of = &bindings->graph->nodes[node];
    if (i < of->n_params)
        return &bindings->params[of->first_param + i];
    return i < of->n_params + of->n_states ? &bindings->states[of->first_state + i - of->n_params]
                                           : NULL;
}

const struct tdmi_tensor *tdmi_binding_tensor(const struct tdmi_bindings *bindings, int node, int i)
{
    const struct tdmi_node *of = &bindings->graph->nodes[node];
    return i < of->n_params ? &bindings->graph->params[of->first_param + i]
                            : &bindings->graph->states[of->first_state + i - of->n_params];
}

void tdmi_bindings_take(struct tdmi_bindings *bindings, const struct tdmi_weights_tensor *tensor)
{
    bindings->is_taken[tensor - tdmi_weights_at(bindings->weights, 0)] = true;
}

tdm_status tdmi_bind(struct tdmi_bindings *bindings, struct tdmi_binding *binding,
                     const struct tdmi_weights_tensor *from, const char *name, tdm_error *err)
{
    TDMI_ARENA_COPY(bindings->arena, binding->name, name, err);
    binding->from = from;
    if (from)
        tdmi_bindings_take(bindings, from);
    return TDM_OK;
}

/* ---- shapes ------------------------------------------------------------------------------ */

static struct tdmi_layout layout_of(const struct tdmi_bindings *bindings, int node, int i)
{
    const struct tdmi_tensor *tensor = tdmi_binding_tensor(bindings, node, i);
    if (bindings->layout == TDMI_PUBLISHER_OURS)
        return tdmi_layout_of_ours(tensor);
    return bindings->layout == TDMI_PUBLISHER_TORCH
               ? tdmi_layout_of_torch(&bindings->graph->nodes[node], tensor)
               : tdmi_layout_of_keras(&bindings->graph->nodes[node], tensor);
}

static bool fits(const struct tdmi_binding *binding, const struct tdmi_layout *layout)
{
    bool is_equal = binding->from && binding->from->rank == layout->rank;
    for (int i = 0; i < layout->rank && is_equal; i++)
        is_equal = binding->from->shape[i] == layout->shape[i];
    return is_equal || binding->is_fresh;
}

/* "32×3×3×3" */
static struct tdmi_name shape_text(const int64_t *dims, int rank)
{
    struct tdmi_name text = {"one number"};
    size_t n = 0;
    for (int i = 0; i < rank && n < sizeof text.text; i++)
        n += (size_t)snprintf(text.text + n, sizeof text.text - n, "%s%lld", i ? "×" : "",
                              (long long)dims[i]);
    return text;
}

bool tdmi_bindings_fit(const struct tdmi_bindings *bindings, int node)
{
    const struct tdmi_binding *binding;
    for (int i = 0; (binding = tdmi_binding_of(bindings, node, i)) != NULL; i++) {
        const struct tdmi_layout layout = layout_of(bindings, node, i);
        if (!fits(binding, &layout))
            return false;
    }
    return true;
}

/* ---- what does not fit --------------------------------------------------------------------- */

enum complaint { MISSING, MISSHAPED, EXTRA, COMPLAINTS };

enum { LINE_BYTES = 300 }; /* of one tensor: longer names lose their middle */

struct complaints {
    int n[COMPLAINTS];
    size_t length;
    char text[TDM_ERROR_TEXT_BYTES / 2]; /* the first few */
};

static void TDM_PRINTF(3, 4)
    complain(struct complaints *all, enum complaint kind, const char *format, ...)
{
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    const size_t length = tdmi_quote(line, sizeof line, format, arguments);
    va_end(arguments);
    if (all->n[kind]++ < most_lines)
        tdm_log(TDM_LOG_ERROR, "%s", line);
    const size_t room = sizeof all->text - all->length;
    if (length + 3 < room)
        all->length +=
            (size_t)snprintf(all->text + all->length, room, "%s%s", all->length ? "; " : "", line);
}

static void check_node(const struct tdmi_bindings *bindings, int node, struct complaints *all)
{
    const struct tdmi_binding *binding;
    for (int i = 0; (binding = tdmi_binding_of(bindings, node, i)) != NULL; i++) {
        const struct tdmi_layout layout = layout_of(bindings, node, i);
        const struct tdmi_name shape = shape_text(layout.shape, layout.rank);
        const struct tdmi_weights_tensor *from = binding->from;
        if (fits(binding, &layout))
            continue;
        if (from)
            complain(all, MISSHAPED, "of another shape: %s is %s, not %s", from->name,
                     shape_text(from->shape, from->rank).text, shape.text);
        else
            complain(all, MISSING, "missing: %s of %s",
                     binding->name ? binding->name : tdmi_binding_tensor(bindings, node, i)->name,
                     shape.text);
    }
}

tdm_status tdmi_bindings_check(const struct tdmi_bindings *bindings, tdm_error *err)
{
    struct complaints all = {{0}, 0, ""};
    for (int i = 0; i < bindings->graph->n_nodes; i++)
        check_node(bindings, i, &all);
    for (size_t i = 0; i < tdmi_weights_count(bindings->weights); i++) {
        const struct tdmi_weights_tensor *tensor = tdmi_weights_at(bindings->weights, i);
        if (!bindings->is_taken[i])
            complain(&all, EXTRA, "of no use: %s of %s", tensor->name,
                     shape_text(tensor->shape, tensor->rank).text);
    }
    if (all.n[MISSING] + all.n[MISSHAPED] + all.n[EXTRA] == 0)
        return TDM_OK;
    for (int kind = 0; kind < COMPLAINTS; kind++)
        if (all.n[kind] > most_lines)
            tdm_log(TDM_LOG_ERROR, "and %d more of this kind", all.n[kind] - most_lines);
    return TDM_FAIL(err, TDM_E_INPUT,
                    "the weights %s do not fit the network %s; of their tensors %d are missing, %d "
                    "of another shape, %d of no use (%s)",
                    tdmi_weights_path(bindings->weights), bindings->network, all.n[MISSING],
                    all.n[MISSHAPED], all.n[EXTRA], all.text);
}

/* ---- values -------------------------------------------------------------------------------- */

/* All ones in the exponent: a NaN or an infinity. */
static bool is_finite(const float *values, int64_t n)
{
    const uint32_t exponent = 0x7f800000;
    uint32_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        found |= (bits & exponent) == exponent;
    }
    return found == 0;
}

/* A batch norm divides by the root of variance + epsilon. Return the first variance for which
 * there is no such root, or NULL. */
static const float *first_without_root(const struct tdmi_node *node,
                                       const struct tdmi_tensor *tensor, const float *values)
{
    if (node->kind != TDMI_OP_BATCH_NORM || strcmp(tensor->spec.name, "running_var") != 0)
        return NULL;
    for (int64_t i = 0; i < tensor->n; i++)
        if (!((double)values[i] + node->attrs.epsilon > 0.0))
            return &values[i];
    return NULL;
}

/* scratch has room for the largest tensor that is transposed. */
static tdm_status fill_tensor(const struct tdmi_bindings *bindings, const struct tdmi_node *node,
                              const struct tdmi_tensor *tensor,
                              const struct tdmi_weights_tensor *from, float *scratch, float *at,
                              tdm_error *err)
{
    const bool is_transposed = bindings->layout == TDMI_PUBLISHER_TORCH && tensor->spec.n_dims > 1;
    float *to = is_transposed ? scratch : at;
    TDM_TRY(tdmi_weights_floats(bindings->weights, from, to, err), err, "filling the network");
    if (!is_finite(to, tensor->n))
        return TDMI_WEIGHTS_BAD(err, bindings->weights,
                                "tensor '%s' has a NaN or an infinity; weights are finite numbers",
                                from->name);
    const float *wrong = first_without_root(node, tensor, to);
    if (wrong)
        return TDMI_WEIGHTS_BAD(err, bindings->weights,
                                "tensor '%s' has the variance %g; with the batch norm's epsilon of "
                                "%g, more than 0 is accepted",
                                from->name, (double)*wrong, node->attrs.epsilon);
    if (is_transposed)
        tdmi_values_from_torch(node, tensor, to, at);
    return TDM_OK;
}

tdm_status tdmi_bindings_fill(const struct tdmi_bindings *bindings, uint64_t seed, float *params,
                              float *states, tdm_error *err)
{
    const tdmi_graph *graph = bindings->graph;
    const struct tdmi_binding *binding;
    TDMI_AT_END(tdmi_free_at) float *scratch = NULL;
    int64_t most = 0;
    for (int i = 0; i < graph->n_params; i++)
        if (graph->params[i].spec.n_dims > 1 && graph->params[i].n > most)
            most = graph->params[i].n;
    if (bindings->layout == TDMI_PUBLISHER_TORCH && most > 0)
        TDMI_TRY(TDMI_NEW(scratch, most, err));
    for (int n = 0; n < graph->n_nodes; n++)
        for (int i = 0; (binding = tdmi_binding_of(bindings, n, i)) != NULL; i++) {
            const struct tdmi_node *node = &graph->nodes[n];
            const struct tdmi_tensor *tensor = tdmi_binding_tensor(bindings, n, i);
            const bool is_param = i < node->n_params;
            const int index =
                is_param ? node->first_param + i : node->first_state + i - node->n_params;
            float *at = (is_param ? params : states) + tensor->offset;
            if (binding->is_fresh)
                tdmi_tensor_init_on_known(tensor, seed, index, at);
            else
                TDMI_TRY(fill_tensor(bindings, node, tensor, binding->from, scratch, at, err));
        }
    return TDM_OK;
}

/* ---- whose names the tensors have -------------------------------------------------------- */

static bool ends_with(const char *name, size_t length, const char *end)
{
    size_t n = strlen(end);
    if (length < n || memcmp(name + length - n, end, n) != 0)
        return false;
    return length == n || name[length - n - 1] == '/' || name[length - n - 1] == '.';
}

enum tdmi_publisher tdmi_origin_of(const tdmi_weights *weights)
{
    static const char *const of_keras[] = {
        "kernel",      "gamma",           "beta",  "depthwise_kernel", "pointwise_kernel",
        "moving_mean", "moving_variance", "vars/0"};
    static const char *const of_torch[] = {"weight", "running_mean", "running_var"};
    size_t keras = 0, torch = 0;
    if (tdmi_weights_fact(weights, "tandem"))
        return TDMI_PUBLISHER_OURS;
    for (size_t i = 0; i < tdmi_weights_count(weights); i++) {
        const char *name = tdmi_weights_at(weights, i)->name;
        size_t length = strcspn(name, ":");
        for (size_t k = 0; k < sizeof of_keras / sizeof of_keras[0]; k++)
            keras += ends_with(name, length, of_keras[k]);
        for (size_t k = 0; k < sizeof of_torch / sizeof of_torch[0]; k++)
            torch += ends_with(name, length, of_torch[k]);
    }
    if (keras == 0 && torch == 0)
        return TDMI_PUBLISHER_OURS;
    return keras > torch ? TDMI_PUBLISHER_KERAS : TDMI_PUBLISHER_TORCH;
}

const char *tdmi_origin_name(enum tdmi_publisher publisher)
{
    static const char *const names[] = {[TDMI_PUBLISHER_OURS] = "tandem",
                                        [TDMI_PUBLISHER_KERAS] = "Keras",
                                        [TDMI_PUBLISHER_TORCH] = "PyTorch"};
    return names[publisher];
}

tdm_status tdmi_origin_bind(struct tdmi_bindings *bindings, tdm_error *err)
{
    return bindings->layout == TDMI_PUBLISHER_KERAS ? tdmi_origin_bind_keras(bindings, err)
                                                    : tdmi_origin_bind_torch(bindings, err);
}
