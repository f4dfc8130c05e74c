/* A network as SVG: boxes of layout.h, and lines between them. Whole pixels, no script, no fonts.
 */
#include "models/describe.h"
#include "models/layout.h"

#include <stdio.h>

enum {
    margin = 32,
    title = 72,
    box_width = 304,
    box_height = 40,
    row_height = 56,
    lane_gap = 36,   /* between the lanes, where lines past boxes go */
    column_gap = 72, /* between columns */
};

struct canvas {
    const struct tdm_network *network;
    struct tdmi_drawing_layout layout;
    tdmi_text *text;
};

static int left_of(const struct canvas *it, const struct tdmi_drawn_box *box)
{
    int x = margin + box->lane * (box_width + lane_gap);
    for (int column = 0; column < box->column; column++)
        x += it->layout.lanes[column] * (box_width + lane_gap) + column_gap - lane_gap;
    return x;
}

static int top_of(const struct tdmi_drawn_box *box)
{
    return margin + title + box->row * row_height;
}

/* Lines to the side leave a box a little lower than others come in. */
static int way_out(const struct tdmi_drawn_box *box)
{
    return top_of(box) + box_height / 2 + 8;
}

static int way_in(const struct tdmi_drawn_box *box)
{
    return top_of(box) + box_height / 2 - 8;
}

/* The middle of the gap before the box's column. */
static int gap_before(const struct canvas *it, const struct tdmi_drawn_box *box)
{
    struct tdmi_drawn_box first = {.column = box->column};
    return left_of(it, &first) - column_gap / 2;
}

/* ---- words -------------------------------------------------------------------------------- */

static void add_escaped(tdmi_text *text, const char *words)
{
    for (; *words; words++) {
        if (*words == '<' || *words == '>' || *words == '&')
            tdmi_text_printf(text, "&#%d;", *words);
        else
            tdmi_text_add(text, words, 1);
    }
}

/* "22.9 M" */
static const char *amount(double value, char text[16])
{
    static const struct {
        double of;
        const char *unit;
    } steps[] = {{1e9, " G"}, {1e6, " M"}, {1e3, " k"}, {1.0, ""}};
    int i = 0;
    while (i < 3 && value < steps[i].of)
        i++;
    double scaled = value / steps[i].of;
    snprintf(text, 16, "%.*f%s", i < 3 && scaled < 100.0 ? 1 : 0, scaled, steps[i].unit);
    return text;
}

static void add_op(tdmi_text *text, const struct tdmi_node *node)
{
    const struct tdmi_op_attrs *a = &node->attrs;
    switch (node->kind) {
    case TDMI_OP_CONV:
        tdmi_text_printf(text, "%s %d×%d",
                         a->groups > 1 && a->groups == node->in[0].c ? "depthwise" : "conv",
                         a->kernel, a->kernel);
        if (a->stride > 1)
            tdmi_text_printf(text, " stride %d", a->stride);
        break;
    case TDMI_OP_MAX_POOL:
    case TDMI_OP_AVG_POOL:
        tdmi_text_printf(text, "%s pool %d×%d", node->kind == TDMI_OP_MAX_POOL ? "max" : "mean",
                         a->kernel, a->kernel);
        if (a->stride > 1)
            tdmi_text_printf(text, " stride %d", a->stride);
        break;
    case TDMI_OP_GLOBAL_POOL:
        tdmi_text_printf(text, "mean of the image");
        break;
    case TDMI_OP_BATCH_NORM:
        tdmi_text_printf(text, "batch norm");
        break;
    case TDMI_OP_DROPOUT:
        tdmi_text_printf(text, "dropout %g", a->rate);
        break;
    default:
        tdmi_text_printf(text, "%s", tdmi_op_name(node->kind));
    }
}

/* ---- boxes -------------------------------------------------------------------------------- */

static const char *colour_of(const struct tdmi_node *node)
{
    switch (node->kind) {
    case TDMI_OP_CONV:
        return node->attrs.groups > 1 ? "#e2f2e4" : "#dfeaf8";
    case TDMI_OP_DENSE:
        return "#fbe7d6";
    case TDMI_OP_ADD:
        return "#fdf4c8";
    default:
        return "#f1f1f3";
    }
}

static void add_box(struct canvas *it, int index)
{
    const struct tdmi_drawn_box *box = &it->layout.boxes[index];
    const tdmi_graph *graph = it->network->graph;
    struct tdmi_shape out = graph->nodes[box->last].out;
    int x = left_of(it, box), y = top_of(box);
    double parameters = 0.0;
    char number[16];
    tdmi_text_printf(it->text,
                     "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"5\" fill=\"%s\"/>\n"
                     "<text x=\"%d\" y=\"%d\" class=\"n\">",
                     x, y, box_width, box_height, colour_of(&graph->nodes[box->first]), x + 10,
                     y + 17);
    add_escaped(it->text, graph->nodes[box->first].name);
    tdmi_text_printf(it->text, "</text><text x=\"%d\" y=\"%d\" class=\"d\">", x + 10, y + 32);
    for (int i = box->first; i <= box->last; i++) {
        if (it->layout.box_of[i] != index)
            continue;
        if (i > box->first)
            tdmi_text_printf(it->text, " · ");
        add_op(it->text, &graph->nodes[i]);
        parameters += (double)it->network->nodes[i].parameters;
    }
    tdmi_text_printf(it->text,
                     "</text><text x=\"%d\" y=\"%d\" class=\"r\">%d×%d×%d</text>"
                     "<text x=\"%d\" y=\"%d\" class=\"r\">%s</text>\n",
                     x + box_width - 10, y + 17, out.h, out.w, out.c, x + box_width - 10, y + 32,
                     parameters > 0.0 ? amount(parameters, number) : "");
}

/* ---- lines -------------------------------------------------------------------------------- */

static void add_line(struct canvas *it, const struct tdmi_drawn_box *from,
                     const struct tdmi_drawn_box *to)
{
    int from_x = left_of(it, from), to_x = left_of(it, to), half = box_width / 2;
    int from_bottom = top_of(from) + box_height, right = to_x + box_width;
    tdmi_text_printf(it->text, "<path d=\"");
    if (from->column != to->column && to->lane == 0 && to->row > 0) /* in from the left */
        tdmi_text_printf(it->text, "M%d %dV%dH%dV%dH%d", from_x + half, from_bottom,
                         from_bottom + 12, gap_before(it, to), way_in(to), to_x - 2);
    else if (from->column != to->column) /* over the top of the next column */
        tdmi_text_printf(it->text, "M%d %dV%dH%dV%dH%dV%d", from_x + half, from_bottom,
                         from_bottom + 12, gap_before(it, to), margin + title - 14, to_x + half,
                         top_of(to) - 2);
    else if (from->lane == to->lane && to->row == from->row + 1)
        tdmi_text_printf(it->text, "M%d %dV%d", from_x + half, from_bottom, top_of(to) - 2);
    else if (from->lane == to->lane) /* past the boxes between */
        tdmi_text_printf(it->text, "M%d %dh10q12 0 12 12V%dq0 12 -12 12H%d", right, way_out(from),
                         way_in(to) - 12, right + 2);
    else if (from->lane < to->lane) /* out to the side, down */
        tdmi_text_printf(it->text, "M%d %dH%dV%d", from_x + box_width, way_out(from), to_x + half,
                         top_of(to) - 2);
    else /* and back */
        tdmi_text_printf(it->text, "M%d %dV%dH%d", from_x + half, from_bottom, way_in(to),
                         right + 2);
    tdmi_text_printf(it->text, "\"/>\n");
}

static void add_lines(struct canvas *it)
{
    const tdmi_graph *graph = it->network->graph;
    tdmi_text_printf(it->text, "<g fill=\"none\" stroke=\"#8a8f98\" stroke-width=\"1.4\" "
                               "marker-end=\"url(#tip)\" class=\"l\">\n");
    for (int b = 0; b < it->layout.n_boxes; b++) {
        const struct tdmi_node *node = &graph->nodes[it->layout.boxes[b].first];
        for (int k = 0; k < node->n_inputs; k++)
            add_line(it, &it->layout.boxes[it->layout.box_of[node->inputs[k]]],
                     &it->layout.boxes[b]);
    }
    tdmi_text_printf(it->text, "</g>\n");
}

static void add_head(struct canvas *it)
{
    const struct tdm_network_totals *totals = &it->network->totals;
    struct tdmi_drawn_box end = {.lane = it->layout.lanes[it->layout.n_columns - 1] - 1,
                                 .column = it->layout.n_columns - 1,
                                 .row = it->layout.n_rows};
    char parameters[16], multiplications[16];
    int width = left_of(it, &end) + box_width + margin, height = top_of(&end) + margin;
    tdmi_text_printf(
        it->text,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
        "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\">\n"
        "<style>.n{font-size:12px;font-weight:600;fill:#22262e}.d{font-size:11px;fill:#565c66}"
        ".r{font-size:11px;fill:#22262e;text-anchor:end}.l path{marker-end:url(#tip)}</style>\n"
        "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"6\" "
        "markerHeight=\"6\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#8a8f98\"/></marker>"
        "</defs>\n<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n"
        "<text x=\"%d\" y=\"%d\" font-size=\"20\" font-weight=\"600\" fill=\"#22262e\">",
        width, height, width, height, width, height, margin, margin + 18);
    add_escaped(it->text, totals->name);
    tdmi_text_printf(it->text,
                     "</text>\n<text x=\"%d\" y=\"%d\" font-size=\"13\" fill=\"#565c66\">"
                     "%d×%d×%d to %d classes · %s parameters · %s multiplications</text>\n",
                     margin, margin + 38, totals->height, totals->width, totals->channels,
                     totals->classes, amount((double)totals->parameters, parameters),
                     amount(totals->multiplications, multiplications));
}

tdm_status tdmi_network_svg(const struct tdm_network *network, tdmi_text *text, tdm_error *err)
{
    struct canvas it = {.network = network, .text = text};
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena;
    tdmi_arena_init(&arena, 0);
    if (!tdmi_layout_make(network->graph, &arena, &it.layout))
        return TDM_FAIL(err, TDM_E_MEMORY, "drawing %d nodes: out of memory",
                        network->totals.nodes);
    add_head(&it);
    add_lines(&it);
    for (int b = 0; b < it.layout.n_boxes; b++)
        add_box(&it, b);
    tdmi_text_printf(text, "</svg>\n");
    if (text->is_broken)
        return TDM_FAIL(err, TDM_E_MEMORY, "drawing %d nodes: out of memory",
                        network->totals.nodes);
    return TDM_OK;
}
