/* Any JSON text as the network description of a file with one tensor, as a model_config or node by
 * node as files of ours do: refused, or a network that plans. */
#include "fuzz.h"
#include "graph/plan.h"
#include "weights/import/import.h"
#include "weights/safetensors/safetensors.h"
#include "base/memory.h"
#include "tandem/log.h"

/* One tensor, so that most networks that build lack theirs, and those without weights do not. */
static tdmi_weights *file_with(const char *key, const char *config, void **file)
{
    static const float value = 1.0F;
    static const int64_t one = 1;
    size_t n_bytes = 0;
    tdmi_weights *weights = NULL;
    tdmi_safetensors_writer *writer = tdmi_safetensors_writer_new();
    tdmi_safetensors_note(writer, key, config);
    tdmi_safetensors_add(writer, "optimizer/vars/0", TDMI_DTYPE_F32, 1, &one, &value);
    if (tdmi_safetensors_finish_bytes(writer, file, &n_bytes, NULL) == TDM_OK &&
        tdmi_weights_open_bytes(*file, n_bytes, "fuzzed", &weights, NULL) != TDM_OK)
        weights = NULL;
    tdmi_safetensors_writer_free(writer);
    return weights;
}

static void import_with(const tdmi_weights *weights, int classes)
{
    const struct tdmi_import_request request = {.head.classes = classes};
    struct tdmi_import import;
    tdmi_plan *plan = NULL;
    if (tdmi_import(weights, &request, &import, NULL) != TDM_OK)
        return;
    if (import.graph->param_values < (1 << 20) &&
        tdmi_plan_new(import.graph, &tdmi_backend_ref, 1, false, &plan, NULL) != TDM_OK)
        abort();
    tdmi_plan_free(plan);
    tdmi_import_release(&import);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    static const char *const keys[] = {"model_config", "graph", "tandem"};
    char *config = malloc(length_bytes + 1);
    if (!config)
        abort();
    memcpy(config, bytes, length_bytes);
    config[length_bytes] = '\0';
    tdm_log_set_level(TDM_LOG_SILENT);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        void *file = NULL;
        tdmi_weights *weights = file_with(keys[i], config, &file);
        if (weights) {
            import_with(weights, 0);
            import_with(weights, 3);
        }
        tdmi_weights_close(weights);
        tdmi_free(file);
    }
    free(config);
    return 0;
}
