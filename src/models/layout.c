/* Placing the boxes of a drawn network. */
#include "models/layout.h"

enum { most_rows = 26 };

/* Is the op drawn in the box of the node before it? */
static bool is_small(enum tdmi_op_kind kind)
{
    return kind == TDMI_OP_BATCH_NORM || kind == TDMI_OP_DROPOUT ||
           tdmi_op_of(kind)->act != TDMI_ACT_NONE || tdmi_op_of(kind)->is_output;
}

static int readers_of(const tdmi_graph *graph, int node)
{
    int readers = 0;
    for (int i = node + 1; i < graph->n_nodes; i++)
        for (int k = 0; k < graph->nodes[i].n_inputs; k++)
            readers += graph->nodes[i].inputs[k] == node;
    return readers;
}

static void make_boxes(const tdmi_graph *graph, struct tdmi_drawing_layout *layout)
{
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct tdmi_node *node = &graph->nodes[i];
        if (is_small(node->kind) && node->n_inputs == 1 && node->inputs[0] > 0 &&
            readers_of(graph, node->inputs[0]) == 1) {
            layout->box_of[i] = layout->box_of[node->inputs[0]];
            layout->boxes[layout->box_of[i]].last = i;
        } else {
            layout->box_of[i] = layout->n_boxes;
            layout->boxes[layout->n_boxes++] =
                (struct tdmi_drawn_box){.first = i, .last = i, .lane = 1};
        }
    }
}

/* Any box that reads what this one gives; -1: none. */
static int reader_of(const tdmi_graph *graph, const struct tdmi_drawing_layout *layout, int box)
{
    for (int b = box + 1; b < layout->n_boxes; b++) {
        const struct tdmi_node *node = &graph->nodes[layout->boxes[b].first];
        for (int k = 0; k < node->n_inputs; k++)
            if (layout->box_of[node->inputs[k]] == box)
                return b;
    }
    return -1;
}

/* Rows counted through all columns, from 0. */
static void place_rows(const tdmi_graph *graph, struct tdmi_drawing_layout *layout)
{
    int node = graph->n_nodes - 1;
    for (;;) {
        struct tdmi_drawn_box *box = &layout->boxes[layout->box_of[node]];
        box->lane = 0;
        if (graph->nodes[box->first].n_inputs == 0)
            break;
        node = graph->nodes[box->first].inputs[0];
    }
    for (int b = 0; b < layout->n_boxes; b++)
        if (layout->boxes[b].lane == 0)
            layout->boxes[b].row = layout->n_rows++;
    for (int b = layout->n_boxes - 1; b >= 0; b--) {
        struct tdmi_drawn_box *box = &layout->boxes[b];
        int reader = reader_of(graph, layout, b);
        if (box->lane == 0 || reader < 0)
            continue;
        box->row = layout->boxes[reader].row > 0 ? layout->boxes[reader].row - 1 : 0;
    }
}

/* Do all lines that cross the end of this row come from the box that stands in it? */
static bool can_break(const tdmi_graph *graph, const struct tdmi_drawing_layout *layout, int row)
{
    for (int b = 0; b < layout->n_boxes; b++) {
        const struct tdmi_node *node = &graph->nodes[layout->boxes[b].first];
        for (int k = 0; k < node->n_inputs; k++) {
            const struct tdmi_drawn_box *from = &layout->boxes[layout->box_of[node->inputs[k]]];
            if (layout->boxes[b].row > row &&
                (from->row < row || (from->row == row && from->lane != 0)))
                return false;
        }
    }
    return true;
}

/* From rows through all columns to columns of nearly equal heights. */
static void break_columns(const tdmi_graph *graph, struct tdmi_drawing_layout *layout,
                          int *column_of, int *row_in)
{
    int columns = (layout->n_rows + most_rows - 1) / most_rows;
    int wanted = (layout->n_rows + columns - 1) / columns, column = 0, first = 0, highest = 0;
    for (int row = 0; row < layout->n_rows; row++) {
        column_of[row] = column;
        row_in[row] = row - first;
        highest = row_in[row] + 1 > highest ? row_in[row] + 1 : highest;
        if (row_in[row] + 1 >= wanted && row + 1 < layout->n_rows &&
            can_break(graph, layout, row)) {
            column++;
            first = row + 1;
        }
    }
    for (int b = 0; b < layout->n_boxes; b++) {
        struct tdmi_drawn_box *box = &layout->boxes[b];
        box->column = column_of[box->row];
        box->row = row_in[box->row];
        if (layout->lanes[box->column] < box->lane + 1)
            layout->lanes[box->column] = box->lane + 1;
    }
    layout->n_columns = column + 1;
    layout->n_rows = highest;
}

bool tdmi_layout_make(const tdmi_graph *graph, tdmi_arena *arena,
                      struct tdmi_drawing_layout *layout)
{
    size_t n = (size_t)graph->n_nodes;
    *layout = (struct tdmi_drawing_layout){
        .boxes = tdmi_arena_alloc(arena, n, sizeof *layout->boxes),
        .box_of = tdmi_arena_alloc(arena, n, sizeof *layout->box_of),
        .lanes = tdmi_arena_alloc(arena, n, sizeof *layout->lanes),
    };
    int *column_of = tdmi_arena_alloc(arena, n, sizeof *column_of);
    int *row_in = tdmi_arena_alloc(arena, n, sizeof *row_in);
    if (!layout->boxes || !layout->box_of || !layout->lanes || !column_of || !row_in)
        return false;
    make_boxes(graph, layout);
    place_rows(graph, layout);
    break_columns(graph, layout, column_of, row_in);
    return true;
}
