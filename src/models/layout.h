/*
 * Where the boxes of a drawn network stand.
 *
 *     lane 0   lane 1                 the next column, when one is full
 *     ┌──────┐                        ┌──────┐
 *     │ conv │──────┐                 │ conv │──╮ past one or more boxes
 *     └──────┘   ┌──────┐             └──────┘  │
 *     ┌──────┐   │ conv │             ┌──────┐  │
 *     │ conv │   └──────┘             │ conv │  │
 *     └──────┘      │                 └──────┘  │
 *     ┌──────┐      │                 ┌──────┐  │
 *     │ add  │<─────┘                 │ add  │<─╯
 *     └──────┘                        └──────┘
 *
 * Lane 0 is the way from the last node up through first inputs; what is beside it stands in lane 1,
 * right above the box that reads it. Batch norms, activations and the like stand in the box of what
 * they follow, if no other box reads that. A column ends only where all lines into the next come
 * from its last box.
 */
#pragma once

#include "graph/graph.h"

struct tdmi_drawn_box {
    int first, last; /* nodes: what it does, what it gives */
    int lane, column, row;
};

struct tdmi_drawing_layout {
    struct tdmi_drawn_box *boxes;
    int n_boxes;
    int *box_of;           /* of every node */
    int n_columns, n_rows; /* rows of the highest column */
    int *lanes;            /* of every column: 1 or 2 */
};

/* All in the arena; false when out of memory. */
bool tdmi_layout_make(const tdmi_graph *graph, tdmi_arena *arena,
                      struct tdmi_drawing_layout *layout);
