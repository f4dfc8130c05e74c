/*
 * Rules are pairs of patterns. In both, "<n>" stands for one number, and in theirs "<n+1>" for the
 * one after it, so that a pair can be read in either direction.
 */
#include "weights/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rule {
    const char *ours, *theirs;
};

/* Names of torchvision's ResNets and AlexNet are ours; so are those of the usual CIFAR files. */
static const struct rule torch_mobilenetv2[] = {
    {"Conv1", "features.0.0"},
    {"bn_Conv1", "features.0.1"},
    {"expanded_conv_depthwise", "features.1.conv.0.0"},
    {"expanded_conv_depthwise_BN", "features.1.conv.0.1"},
    {"expanded_conv_project", "features.1.conv.1"},
    {"expanded_conv_project_BN", "features.1.conv.2"},
    {"block_<n>_expand", "features.<n+1>.conv.0.0"},
    {"block_<n>_expand_BN", "features.<n+1>.conv.0.1"},
    {"block_<n>_depthwise", "features.<n+1>.conv.1.0"},
    {"block_<n>_depthwise_BN", "features.<n+1>.conv.1.1"},
    {"block_<n>_project", "features.<n+1>.conv.2"},
    {"block_<n>_project_BN", "features.<n+1>.conv.3"},
    {"Conv_1", "features.18.0"},
    {"Conv_1_bn", "features.18.1"},
    {"predictions", "classifier.1"},
    {NULL, NULL},
};

static const struct rule keras_xception[] = {
    {"block<n>_sepconv1.depthwise", "block<n>_sepconv1"},
    {"block<n>_sepconv2.depthwise", "block<n>_sepconv2"},
    {"block<n>_sepconv3.depthwise", "block<n>_sepconv3"},
    {"block<n>_sepconv1.pointwise", "block<n>_sepconv1"},
    {"block<n>_sepconv2.pointwise", "block<n>_sepconv2"},
    {"block<n>_sepconv3.pointwise", "block<n>_sepconv3"},
    {"block2_shortcut", "conv2d"},
    {"block3_shortcut", "conv2d_1"},
    {"block4_shortcut", "conv2d_2"},
    {"block13_shortcut", "conv2d_3"},
    {"block2_shortcut_bn", "batch_normalization"},
    {"block3_shortcut_bn", "batch_normalization_1"},
    {"block4_shortcut_bn", "batch_normalization_2"},
    {"block13_shortcut_bn", "batch_normalization_3"},
    {NULL, NULL},
};

static const struct network {
    const char *stem; /* "mobilenetv2": that name, and those with a dash behind it */
    bool is_of_torchvision;
    const struct rule *torch, *keras;
} networks[] = {
    {"mobilenetv2", true, torch_mobilenetv2, NULL},
    {"resnet18", true, NULL, NULL},
    {"resnet50", true, NULL, NULL},
    {"alexnet", true, NULL, NULL},
    {"xception", false, NULL, keras_xception},
};

/* A network that nobody else has: no rules. "resnet50-cifar" is no width of resnet50. */
static const struct network *network_of(const char *name)
{
    static const struct network ours = {0};
    static const char cifar[] = "-cifar";
    if (tdmi_ends_with(name, cifar))
        return &ours;
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        size_t stem = strlen(networks[i].stem);
        if (strncmp(name, networks[i].stem, stem) == 0 && (name[stem] == '\0' || name[stem] == '-'))
            return &networks[i];
    }
    return &ours;
}

bool tdmi_is_of_torchvision(const char *network)
{
    return network_of(network)->is_of_torchvision;
}

/* ---- patterns --------------------------------------------------------------------------- */

/* "<n>" or "<n+1>" at the beginning of pattern: its length and what it adds; else 0. */
static size_t number_at(const char *pattern, long *adds)
{
    static const struct {
        const char *text;
        long adds;
    } forms[] = {{"<n>", 0}, {"<n+1>", 1}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        size_t length = strlen(forms[i].text);
        if (strncmp(pattern, forms[i].text, length) == 0) {
            *adds = forms[i].adds;
            return length;
        }
    }
    return 0;
}

/* Does name look like pattern, and with which number? */
static bool is_like(const char *pattern, const char *name, long *number)
{
    enum { most_digits = 4 };
    while (*pattern) {
        long adds = 0;
        size_t length = number_at(pattern, &adds);
        if (length == 0) {
            if (*pattern++ != *name++)
                return false;
            continue;
        }
        char *end;
        if (*name < '0' || *name > '9')
            return false;
        long found = strtol(name, &end, 10);
        if (end - name > most_digits || (*name == '0' && end - name > 1) || found < adds)
            return false;
        *number = found - adds;
        pattern += length;
        name = end;
    }
    return *name == '\0';
}

static bool write_like(const char *pattern, long number, char *out)
{
    size_t length = 0;
    while (*pattern) {
        long adds = 0;
        size_t token = number_at(pattern, &adds);
        int written = token ? snprintf(out + length, TDMI_NAME_BYTES - length, "%ld", number + adds)
                            : snprintf(out + length, TDMI_NAME_BYTES - length, "%c", *pattern);
        length += (size_t)written;
        if (length >= TDMI_NAME_BYTES)
            return false;
        pattern += token ? token : 1;
    }
    out[length] = '\0';
    return true;
}

static bool translate(const struct rule *rules, const char *name, char *out)
{
    for (const struct rule *rule = rules; rule && rule->ours; rule++) {
        long number = 0;
        if (is_like(rule->ours, name, &number))
            return write_like(rule->theirs, number, out);
    }
    return snprintf(out, TDMI_NAME_BYTES, "%s", name) < TDMI_NAME_BYTES;
}

/* ---- PyTorch ---------------------------------------------------------------------------- */

bool tdmi_torch_layer(const char *network, const char *node, char *out)
{
    return translate(network_of(network)->torch, node, out);
}

/* Our ops call their tensors as PyTorch does. */
bool tdmi_torch_name(const char *network, const struct tdmi_node *node,
                     const struct tdmi_tensor *tensor, char *out)
{
    if (!tdmi_torch_layer(network, node->name, out))
        return false;
    size_t length = strlen(out);
    int written = snprintf(out + length, TDMI_NAME_BYTES - length, ".%s", tensor->spec.name);
    return (size_t)written < TDMI_NAME_BYTES - length;
}

/* ---- Keras ------------------------------------------------------------------------------ */

bool tdmi_keras_layer(const char *network, const char *node, char *out)
{
    return translate(network_of(network)->keras, node, out);
}

bool tdmi_keras_is_numbered(const char *network, const char *node)
{
    char layer[TDMI_NAME_BYTES];
    return tdmi_keras_layer(network, node, layer) &&
           (strncmp(layer, "conv2d", 6) == 0 || strncmp(layer, "batch_normalization", 19) == 0);
}

const char *tdmi_keras_variable(const struct tdmi_node *node, const struct tdmi_tensor *tensor)
{
    static const struct rule norm[] = {{"weight", "gamma"},
                                       {"bias", "beta"},
                                       {"running_mean", "moving_mean"},
                                       {"running_var", "moving_variance"}};
    for (size_t i = 0; node->kind == TDMI_OP_BATCH_NORM && i < sizeof norm / sizeof norm[0]; i++)
        if (strcmp(tensor->spec.name, norm[i].ours) == 0)
            return norm[i].theirs;
    if (strcmp(tensor->spec.name, "weight") != 0)
        return tensor->spec.name;
    if (node->kind != TDMI_OP_CONV)
        return "kernel";
    /* The second half of a separable convolution, whose first is depthwise. */
    if (tdmi_ends_with(node->name, ".pointwise"))
        return "pointwise_kernel";
    bool is_depthwise = node->attrs.groups == node->in[0].c && node->attrs.groups > 1;
    return is_depthwise ? "depthwise_kernel" : "kernel";
}
