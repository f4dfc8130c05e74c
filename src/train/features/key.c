/*
 * The key of a feature store: everything that a row depends on except the image and its view:
 * values, nodes, geometry, decoders, backend, versions, and for views how images are changed. A
 * dependency that is missing here shows as rows that differ when they are computed again.
 */
#include "base/system/cpu.h"
#include "base/hash/hash.h"
#include "base/text/json.h"
#include "train/session/session.h"

#include <stdio.h>

enum { rows_version = 1 };

static void write_values(const struct tdmi_session *session, tdm_json_writer *writer)
{
    const tdmi_graph *base = session->cache.base;
    const struct tdmi_model_file *host = &session->network.host;
    char values[40];
    snprintf(values, sizeof values, "%016llx%016llx",
             (unsigned long long)tdmi_xxh64_of(host->params,
                                               sizeof(float) * (size_t)base->param_values, 0),
             (unsigned long long)tdmi_xxh64_of(host->states,
                                               sizeof(float) * (size_t)base->state_values, 0));
    tdm_json_string(writer, "values", values);
}

/* Program, decoders and device, with versions. */
static void write_makers(const struct tdmi_session *session, tdm_json_writer *writer)
{
    const struct tdmi_compute *compute = &session->compute;
    struct tdmi_cpu cpu;
    char device[200];
    bool formats[TDMI_IMAGE_FORMATS];
    tdmi_text decoders = {0};
    tdmi_cpu_describe(&cpu);
    compute->backend->device.describe(compute->device, device, sizeof device);
    tdmi_source_formats(session->data.source, formats);
    tdmi_image_write_decoders(formats, &decoders);
    tdm_json_string(writer, "tandem", tdm_version());
    tdm_json_string(writer, "decoders", tdmi_text_string(&decoders));
    if (compute->decoder) /* of the files that the device decodes */
        tdm_json_string(writer, "decoder", tdmi_compute_decoder_name(compute));
    tdm_json_string(writer, "backend", compute->backend->name);
    tdm_json_string(writer, "device", device);
    tdm_json_string(writer, "isa", cpu.isa);
    tdmi_text_release(&decoders);
}

static void write_changes(const struct tdmi_train_config *config, tdm_json_writer *writer)
{
    tdmi_text spec = {0};
    tdmi_augment_write(&config->augment, &spec);
    tdm_json_string(writer, "augment", tdmi_text_string(&spec));
    tdm_json_integer(writer, "seed", (int64_t)config->options.seed);
    tdmi_text_release(&spec);
}

static void write_key(const struct tdmi_session *session, const char *precision, bool is_changed,
                      tdm_json_writer *writer)
{
    struct tdmi_preprocess geometry;
    tdm_json_object_begin(writer, NULL);
    tdm_json_integer(writer, "version", rows_version);
    write_makers(session, writer);
    tdm_json_string(writer, "precision", precision);
    if (session->config.storage != TDMI_DTYPE_F32) /* storage of activations */
        tdm_json_string(writer, "computed_in", tdmi_dtype_name(session->config.storage));
    tdm_json_integer(writer, "shard", tdmi_features_images(session->config.shard));
    write_values(session, writer);
    if (session->config.options.strict) /* rows of damaged images would hide them */
        tdm_json_bool(writer, "strict", true);
    if (is_changed)
        write_changes(&session->config, writer);
    if (tdmi_source_geometry(session->data.source, &geometry))
        tdmi_preprocess_to_json(&geometry, writer, "geometry");
    tdmi_graph_to_json(session->cache.base, writer, "nodes");
    tdm_json_object_end(writer);
}

tdm_status tdmi_features_open_store(const struct tdmi_session *session, const char *precision,
                                    bool is_changed, tdmi_store **store, tdm_error *err)
{
    const char *text;
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *writer = tdm_json_writer_new(0);
    write_key(session, precision, is_changed, writer);
    TDMI_TRY(tdm_json_finish(writer, &text, NULL, err));
    return tdmi_store_open(&(struct tdmi_store_options){.key = text,
                                                        .width = session->cache.width,
                                                        .drops_damaged = true},
                           store, err);
}

struct tdmi_store_row tdmi_features_row(const struct tdmi_train_data *data, int64_t item,
                                        uint32_t view)
{
    const struct tdmi_bytes_key key =
        tdmi_source_bytes_key(data->source, item, data->contents.hashes);
    return (struct tdmi_store_row){.content = key.number, .view = view};
}
