/*
 * Any bytes as a .safetensors file: refused or opened, and what was opened is written and opened
 * again with every tensor and every note equal.
 */
#include "fuzz.h"
#include "weights/safetensors/safetensors.h"
#include "base/memory.h"

static const char checksum[] = "tandem.checksum";

static void compare(const tdmi_safetensors *a, const tdmi_safetensors *b)
{
    require(tdmi_safetensors_metadata(b, "tandem.checksum") != NULL);
    require(tdmi_safetensors_count(a) == tdmi_safetensors_count(b));
    for (size_t i = 0; i < tdmi_safetensors_count(a); i++) {
        const struct tdmi_safetensors_tensor *left = tdmi_safetensors_at(a, i);
        const struct tdmi_safetensors_tensor *right = tdmi_safetensors_find(b, left->name);
        require(right != NULL && left->dtype == right->dtype && left->rank == right->rank);
        require(memcmp(left->shape, right->shape, sizeof left->shape) == 0);
        require(left->n_values == right->n_values && left->bytes == right->bytes);
        require(left->bytes == 0 || memcmp(left->data, right->data, left->bytes) == 0);
    }
    for (size_t i = 0; i < tdmi_safetensors_metadata_count(a); i++) {
        const char *key = tdmi_safetensors_metadata_key(a, i);
        if (strcmp(key, checksum) != 0) {
            const char *value = tdmi_safetensors_metadata(b, key);
            require(value != NULL && strcmp(value, tdmi_safetensors_metadata(a, key)) == 0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    tdmi_safetensors *file = NULL, *again = NULL;
    tdm_error err = {0};
    void *written = NULL;
    size_t n_written = 0;
    if (tdmi_safetensors_open_bytes(bytes, length_bytes, "fuzz", &file, &err) != TDM_OK) {
        require(err.n_frames > 0);
        return 0;
    }
    tdmi_safetensors_writer *writer = tdmi_safetensors_writer_new();
    for (size_t i = 0; i < tdmi_safetensors_metadata_count(file); i++) {
        const char *key = tdmi_safetensors_metadata_key(file, i);
        if (strcmp(key, checksum) != 0)
            tdmi_safetensors_note(writer, key, tdmi_safetensors_metadata(file, key));
    }
    for (size_t i = 0; i < tdmi_safetensors_count(file); i++) {
        const struct tdmi_safetensors_tensor *tensor = tdmi_safetensors_at(file, i);
        tdmi_safetensors_add(writer, tensor->name, tensor->dtype, tensor->rank, tensor->shape,
                             tensor->data);
    }
    require(tdmi_safetensors_finish_bytes(writer, &written, &n_written, &err) == TDM_OK);
    require(tdmi_safetensors_open_bytes(written, n_written, "again", &again, &err) == TDM_OK);
    compare(file, again);
    tdmi_safetensors_close(again);
    tdmi_free(written);
    tdmi_safetensors_writer_free(writer);
    tdmi_safetensors_close(file);
    return 0;
}
