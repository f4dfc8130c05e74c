/* Layers as groups, and lists of their names, which give the order; read by form_keras_h5.c. */
#include "weights/keras/h5_write.h"
#include "weights/errors.h"
#include "weights/hdf5/write.h"

struct maker {
    const struct tdmi_keras_file *file;
    tdmi_hdf5_writer *writer;
    tdmi_arena *arena;
};

static tdm_status make_layer(struct maker *maker, const char *root,
                             const struct tdmi_keras_h5_layer *layer, tdm_error *err)
{
    const char *group = tdmi_arena_printf(maker->arena, "%s%s", root, layer->name);
    const char **names;
    TDMI_CHECK_MEMORY(group, err);
    TDMI_ARENA_NEW(maker->arena, names, layer->n_weights + 1, err);
    tdmi_hdf5_writer_group(maker->writer, group);
    for (size_t i = 0; i < layer->n_weights; i++) {
        const struct tdmi_keras_weight *weight = &layer->weights[i];
        const char *path = tdmi_arena_printf(maker->arena, "%s/%s", group, weight->name);
        TDMI_CHECK_MEMORY(path, err);
        names[i] = weight->name;
        tdmi_hdf5_writer_add(maker->writer, path, TDMI_DTYPE_F32, weight->rank, weight->shape,
                             weight->data);
    }
    tdmi_hdf5_writer_note_list(maker->writer, group, "weight_names", names, layer->n_weights);
    return TDM_OK;
}

static tdm_status make(struct maker *maker, tdm_error *err)
{
    const struct tdmi_keras_file *file = maker->file;
    const char *group = file->model_config ? "model_weights" : "";
    const char *root = file->model_config ? "model_weights/" : "";
    const char *backend = file->backend ? file->backend : "tensorflow";
    const char **names;
    TDMI_ARENA_NEW(maker->arena, names, file->n_layers + 1, err);
    tdmi_hdf5_writer_group(maker->writer, group);
    for (size_t i = 0; i < file->n_layers; i++) {
        TDMI_TRY(make_layer(maker, root, &file->layers[i], err));
        names[i] = file->layers[i].name;
    }
    tdmi_hdf5_writer_note_list(maker->writer, group, "layer_names", names, file->n_layers);
    tdmi_hdf5_writer_note(maker->writer, group, "backend", backend);
    tdmi_hdf5_writer_note(maker->writer, group, "keras_version", file->keras_version);
    if (file->model_config) {
        tdmi_hdf5_writer_note(maker->writer, "", "backend", backend);
        tdmi_hdf5_writer_note(maker->writer, "", "keras_version", file->keras_version);
        tdmi_hdf5_writer_note(maker->writer, "", "model_config", file->model_config);
    }
    for (size_t i = 0; i < file->n_notes; i++)
        tdmi_hdf5_writer_note(maker->writer, "", file->notes[i].key, file->notes[i].text);
    return TDM_OK;
}

tdm_status tdmi_keras_h5_write(const struct tdmi_keras_file *file, const char *path, tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    TDMI_AT_END(tdmi_hdf5_writer_free_at) tdmi_hdf5_writer *writer = tdmi_hdf5_writer_new();
    struct maker maker = {.file = file, .writer = writer, .arena = &arena};
    TDMI_TRY(make(&maker, err));
    return tdmi_hdf5_writer_finish(writer, path, err);
}
