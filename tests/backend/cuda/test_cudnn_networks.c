/*
 * Every convolution of our networks that is not depthwise, asked of cuDNN itself, where that is
 * installed: no GPU is needed to plan for one that is only described. For each, forward (in f32
 * with all that may be behind it) and both gradients, in every type: the graph is taken; and for a
 * product alone there is an engine of the right kind, whose plan can be written down and taken
 * again. (Engines for what is behind a product are compiled when they are planned, which needs a
 * driver.)
 */
#include "backend/cuda/vendor/cudnn_plan.h"
#include "base/clock.h"
#include "base/memory.h"
#include "models/known_network.h"
#include "unit.h"

/* A GPU of compute capability 9.0 with 132 multiprocessors, as cuDNN writes one down. */
static const char gpu[] =
    "{\"deviceVer\":900,\"driverVer\":13000,\"cudaDeviceId\":0,"
    "\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
    "\"regsPerBlock\":65536,\"multiProcessorCount\":132,\"warpSize\":32,"
    "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":232448,"
    "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,"
    "\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"pciDeviceId\":0,\"isTccDriver\":0,"
    "\"supportCoopLaunch\":1,\"totalGlobalMem\":150000000000,\"smClockRateKHz\":1980000,"
    "\"memClockRateKHz\":3201000,\"l2CacheSize\":62914560,\"deviceName\":\"described\"}";

static const enum tdmi_dtype types[] = {TDMI_DTYPE_F32, TDMI_DTYPE_BF16, TDMI_DTYPE_F16};
enum { n_types = 3, most_shapes = 128 };

struct count {
    int graphs, plans, limited;
};
enum { little = 1 << 20 };

static void expect_graph(tdmi_cudnn *cudnn, const struct tdmi_cudnn_conv *it, const char *name,
                         struct count *count)
{
    struct tdmi_cudnn_builder builder = {.calls = tdmi_cudnn_calls_of(cudnn)};
    tdmi_cudnn_descriptor graph;
    tdm_error err = {0};
    if (tdmi_cudnn_graph_of(&builder, it, &graph, &err) != TDM_OK)
        fail_msg("%s, way %d, type %s: %s", name, it->direction, tdmi_dtype_name(it->type),
                 tdm_error_sentence(&err, 0));
    tdmi_cudnn_builder_release(&builder);
    count->graphs++;
}

/* Also of one that was taken from a file. */
static void expect_name(tdmi_cudnn *cudnn, const struct tdmi_cudnn_plan *plan)
{
    static const char begin[] = "cuDNN engine ";
    char name[56];
    tdmi_cudnn_plan_name(cudnn, plan, name, sizeof name);
    assert_memory_equal(name, begin, strlen(begin));
}

static void expect_plan(tdmi_cudnn *cudnn, const struct tdmi_cudnn_conv *it, const char *name,
                        struct count *count)
{
    struct tdmi_cudnn_plan plan, again;
    tdm_error err = {0};
    char *json = NULL;
    if (tdmi_cudnn_plan_find(cudnn, it, NULL, NULL, &plan, &err) != TDM_OK)
        fail_msg("%s, way %d, type %s: %s", name, it->direction, tdmi_dtype_name(it->type),
                 tdm_error_sentence(&err, 0));
    assert_int_equal(tdmi_cudnn_plan_write(cudnn, &plan, &json, NULL), TDM_OK);
    assert_int_equal(tdmi_cudnn_plan_read(cudnn, json, &again, NULL), TDM_OK);
    assert_int_equal(again.workspace_bytes, plan.workspace_bytes);
    expect_name(cudnn, &plan);
    expect_name(cudnn, &again);
    tdmi_cudnn_plan_release(cudnn, &again);
    if (count->plans == 0) {
        json[strlen(json) / 2] = '\1';
        assert_int_equal(tdmi_cudnn_plan_read(cudnn, json, &again, NULL), TDM_E_INPUT);
    }
    tdmi_cudnn_plan_release(cudnn, &plan);
    tdmi_free(json);
    count->plans++;
}

/* Where memory is short: an engine that stays below, if there is one. */
static void expect_limited(tdmi_cudnn *cudnn, struct tdmi_cudnn_conv it, struct count *count)
{
    struct tdmi_cudnn_plan plan;
    it.most_workspace = little;
    if (tdmi_cudnn_plan_find(cudnn, &it, NULL, NULL, &plan, NULL) != TDM_OK)
        return;
    assert_true(plan.workspace_bytes <= little);
    tdmi_cudnn_plan_release(cudnn, &plan);
    count->limited++;
}

static void ask(tdmi_cudnn *cudnn, const struct tdmi_node *node, enum tdmi_dtype type,
                struct count *count)
{
    const struct tdmi_op_attrs *attrs = &node->attrs;
    struct tdmi_cudnn_conv it = {
        .type = type,
        .in = node->in[0],
        .out = node->out,
        .n = 32,
        .kernel = attrs->kernel,
        .stride = attrs->stride,
        .dilation = attrs->dilation,
        .groups = attrs->groups,
        .top = attrs->pad_top,
        .bottom = attrs->pad_bottom,
        .left = attrs->pad_left,
        .right = attrs->pad_right,
    };
    for (int way = TDMI_CUDNN_FORWARD; way <= TDMI_CUDNN_OF_WEIGHTS; way++) {
        it.direction = (enum tdmi_cudnn_direction)way;
        expect_graph(cudnn, &it, node->name, count);
        expect_plan(cudnn, &it, node->name, count);
        expect_limited(cudnn, it, count);
    }
    if (type != TDMI_DTYPE_F32) /* only f32 has fused graphs (vendor/plans.c) */
        return;
    it.direction = TDMI_CUDNN_FORWARD;
    it.has_bias = true;
    expect_graph(cudnn, &it, node->name, count);
    it.act = TDMI_ACT_RELU6;
    expect_graph(cudnn, &it, node->name, count);
    it.act = TDMI_ACT_RELU;
    it.adds = true;
    expect_graph(cudnn, &it, node->name, count);
}

/* Asked before, of another node? */
static bool is_known(const struct tdmi_node *const *known, int n, const struct tdmi_node *node)
{
    for (int i = 0; i < n; i++)
        if (memcmp(&known[i]->attrs, &node->attrs, sizeof node->attrs) == 0 &&
            memcmp(known[i]->in, node->in, sizeof node->in) == 0)
            return true;
    return false;
}

static void ask_network(tdmi_cudnn *cudnn, const char *name, int size)
{
    tdmi_graph *graph = network_new(name, size, 10);
    const struct tdmi_node *known[most_shapes];
    const int64_t begin = tdmi_clock_ns();
    struct count count = {0};
    int n = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct tdmi_node *node = &graph->nodes[i];
        if (node->kind != TDMI_OP_CONV || node->attrs.groups > 1 || is_known(known, n, node))
            continue;
        assert_true(n < most_shapes);
        known[n++] = node;
        for (int t = 0; t < n_types; t++)
            ask(cudnn, node, types[t], &count);
    }
    assert_true(n > 1 && count.graphs == n * 12 && count.plans == n * 9);
    assert_true(count.limited > 0);
    print_message("%s: %d shapes, %d graphs, %d plans of a product, %d of them with a MiB of "
                  "workspace, %.1f s\n",
                  name, n, count.graphs, count.plans, count.limited,
                  tdmi_clock_seconds_since(begin));
    tdmi_graph_free(graph);
}

TEST(cudnn_plans_every_convolution_of_our_networks)
{
    tdmi_cudnn *cudnn;
    tdm_error err = {0};
    if (tdmi_cudnn_open(NULL, gpu, &cudnn, &err) != TDM_OK) {
        print_message("cuDNN is not asked: %s\n", tdm_error_sentence(&err, 0));
        skip();
    }
    ask_network(cudnn, "lenet5", 28);
    ask_network(cudnn, "resnet20-cifar", 32);
    ask_network(cudnn, "resnet50", 224);
    ask_network(cudnn, "mobilenetv2", 224);
    ask_network(cudnn, "xception", 299);
    tdmi_cudnn_close(cudnn);
}

TEST_MAIN(NULL, NULL)
