/* Drawn networks: where their boxes stand, and that the picture is whole. */
#include "models/known_network.h"
#include "models/describe.h"
#include "models/layout.h"

#include "base/each_allocation.h"
#include "unit.h"

static const char *const models[] = {"xception", "mobilenetv2",    "resnet18", "resnet50",
                                     "alexnet",  "resnet56-cifar", "lenet5",   "convnet7"};

enum { n_models = sizeof models / sizeof models[0] };

static const struct tdmi_drawn_box *source_of(const struct tdmi_drawing_layout *layout,
                                              const tdmi_graph *graph, int box, int input)
{
    return &layout->boxes[layout->box_of[graph->nodes[layout->boxes[box].first].inputs[input]]];
}

static void check_places(const struct tdmi_drawing_layout *layout)
{
    for (int a = 0; a < layout->n_boxes; a++) {
        const struct tdmi_drawn_box *box = &layout->boxes[a];
        assert_true(box->column >= 0 && box->column < layout->n_columns);
        assert_true(box->row >= 0 && box->row < layout->n_rows);
        assert_true(box->lane >= 0 && box->lane < layout->lanes[box->column]);
        for (int b = 0; b < a; b++)
            assert_false(box->column == layout->boxes[b].column &&
                         box->row == layout->boxes[b].row && box->lane == layout->boxes[b].lane);
    }
}

/* Lines go down, or from the last box of a column into the next. */
static void check_lines(const struct tdmi_drawing_layout *layout, const tdmi_graph *graph)
{
    for (int b = 0; b < layout->n_boxes; b++) {
        const struct tdmi_drawn_box *box = &layout->boxes[b];
        for (int k = 0; k < graph->nodes[box->first].n_inputs; k++) {
            const struct tdmi_drawn_box *from = source_of(layout, graph, b, k);
            assert_true(from->column == box->column || from->column == box->column - 1);
            if (from->column == box->column)
                assert_true(from->row < box->row);
            else
                assert_int_equal(from->lane, 0);
            for (int c = 0; from->column != box->column && c < layout->n_boxes; c++)
                assert_true(layout->boxes[c].column != from->column ||
                            layout->boxes[c].row <= from->row);
        }
    }
}

TEST(boxes_of_every_network_have_places_of_their_own_and_lines_lead_down)
{
    for (int i = 0; i < n_models; i++) {
        struct tdmi_network network;
        assert_int_equal(tdmi_network_find(models[i], &network, NULL), TDM_OK);
        tdmi_graph *graph = network_new(models[i], network.preprocess.width, 10);
        struct tdmi_drawing_layout layout;
        tdmi_arena arena;
        tdmi_arena_init(&arena, 0);
        assert_true(tdmi_layout_make(graph, &arena, &layout));
        assert_true(layout.n_rows <= 40);
        check_places(&layout);
        check_lines(&layout, graph);
        tdmi_arena_release(&arena);
        tdmi_graph_free(graph);
    }
}

TEST(what_follows_alone_stands_in_the_same_box)
{
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = network_new("resnet20-cifar", 32, 10);
    struct tdmi_drawing_layout layout;
    tdmi_arena arena;
    tdmi_arena_init(&arena, 0);
    assert_true(tdmi_layout_make(graph, &arena, &layout));
    /* input, stem, three stages of three blocks of three, four for two shortcuts, pool, head */
    assert_int_equal(layout.n_boxes, 1 + 1 + 27 + 4 + 1 + 1);
    for (int i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i].kind == TDMI_OP_BATCH_NORM)
            assert_int_equal(layout.box_of[i], layout.box_of[i - 1]);
    tdmi_arena_release(&arena);
}

static int times(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
        n++;
    return n;
}

TEST(a_drawing_has_every_box_and_every_line)
{
    for (int i = 0; i < n_models; i++) {
        tdm_network *network = NULL;
        tdmi_text text = {0};
        struct tdmi_drawing_layout layout;
        tdmi_arena arena;
        int lines = 0;
        assert_int_equal(
            tdm_network_open(&(struct tdm_network_options){.model = models[i]}, &network, NULL),
            TDM_OK);
        assert_int_equal(tdmi_network_svg(network, &text, NULL), TDM_OK);
        tdmi_arena_init(&arena, 0);
        assert_true(tdmi_layout_make(network->graph, &arena, &layout));
        for (int b = 0; b < layout.n_boxes; b++)
            lines += network->graph->nodes[layout.boxes[b].first].n_inputs;
        const char *svg = tdmi_text_string(&text);
        assert_int_equal(strncmp(svg, "<svg ", 5), 0);
        assert_int_equal(times(svg, "</svg>\n"), 1);
        assert_int_equal(times(svg, "<rect "), layout.n_boxes + 1);
        assert_int_equal(times(svg, "<path "), lines + 1); /* and the tip of the arrows */
        assert_int_equal(times(svg, "<text "), times(svg, "</text>"));
        tdmi_arena_release(&arena);
        tdmi_text_release(&text);
        tdm_network_close(network);
    }
}

static tdm_status describe_and_draw(tdm_error *err)
{
    tdm_network *network = NULL;
    tdmi_text text = {0};
    tdm_status status =
        tdm_network_open(&(struct tdm_network_options){.model = "resnet8-cifar"}, &network, err);
    if (status == TDM_OK)
        status = tdmi_network_svg(network, &text, err);
    tdmi_text_release(&text);
    tdm_network_close(network);
    return status;
}

TEST(running_out_of_memory_anywhere_is_an_ordinary_error)
{
    assert_true(fail_each_allocation(describe_and_draw) > 5);
}

TEST_MAIN(NULL, NULL)
