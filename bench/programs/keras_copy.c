/*
 * A Keras .h5 file read by our reader and written by our writer, for
 * bench/peers/checks/keras_check.py:
 *
 *     bench_keras_copy FROM TO      the same layers, weights and configuration in TO
 */
#include "base/arena.h"
#include "weights/keras/h5_write.h"
#include "weights/weights.h"
#include <stdio.h>
#include <string.h>

/* "layer/weight" is weight of layer; those of one layer follow each other. */
static tdm_status copy(const tdmi_weights *weights, tdmi_arena *arena, const char *to,
                       tdm_error *err)
{
    size_t n = tdmi_weights_count(weights), n_layers = 0;
    struct tdmi_keras_weight *all = tdmi_arena_alloc(arena, n + 1, sizeof *all);
    struct tdmi_keras_h5_layer *layers = tdmi_arena_alloc(arena, n + 1, sizeof *layers);
    for (size_t i = 0; all != NULL && layers != NULL && i < n; i++) {
        const struct tdmi_weights_tensor *tensor = tdmi_weights_at(weights, i);
        char *layer = tdmi_arena_copy(arena, tensor->name),
             *slash = layer ? strchr(layer, '/') : NULL;
        float *floats = tdmi_arena_alloc(arena, (size_t)tensor->n_values + 1, sizeof *floats);
        if (slash == NULL || floats == NULL)
            return TDM_FAIL(err, TDM_E_MEMORY, "no memory, or no layer in '%s'", tensor->name);
        TDM_TRY(tdmi_weights_floats(weights, tensor, floats, err), err, "copying");
        *slash = 0;
        if (n_layers == 0 || strcmp(layers[n_layers - 1].name, layer) != 0)
            layers[n_layers++] = (struct tdmi_keras_h5_layer){.name = layer, .weights = &all[i]};
        layers[n_layers - 1].n_weights++;
        all[i] = (struct tdmi_keras_weight){slash + 1, tensor->rank, tensor->shape, floats};
    }
    struct tdmi_keras_file file = {
        .layers = layers,
        .n_layers = n_layers,
        .keras_version = tdmi_weights_fact(weights, "keras_version"),
        .model_config = tdmi_weights_fact(weights, "model_config"),
    };
    if (file.keras_version == NULL)
        return TDM_FAIL(err, TDM_E_INPUT, "the file names no version of Keras");
    return tdmi_keras_h5_write(&file, to, err);
}

int main(int count, char **arguments)
{
    tdm_error err = {0};
    tdmi_weights *weights = NULL;
    tdmi_arena arena;
    if (count < 3)
        return 2;
    tdmi_arena_init(&arena, 0);
    tdm_status status = tdmi_weights_open(arguments[1], &weights, &err);
    if (status == TDM_OK)
        status = copy(weights, &arena, arguments[2], &err);
    for (int frame = err.n_frames - 1; frame >= 0; frame--)
        fprintf(stderr, "%s\n", tdm_error_sentence(&err, frame));
    tdmi_weights_close(weights);
    tdmi_arena_release(&arena);
    return tdm_status_exit(status);
}
