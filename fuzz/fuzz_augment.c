/*
 * Any text as a description of augmentation, in words or in JSON: it is refused with one sentence,
 * or what was understood is written, read and found to be the same.
 */
#include "image/augment/augment.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void survive(const struct tdmi_augment *augment)
{
    struct tdmi_augment again;
    tdmi_text text = {0};
    tdmi_augment_write(augment, &text);
    if (tdmi_augment_read(tdmi_text_string(&text), &again, NULL) != TDM_OK ||
        memcmp(again.is_on, augment->is_on, sizeof again.is_on) != 0 ||
        memcmp(again.arguments, augment->arguments, sizeof again.arguments) != 0)
        abort();
    tdmi_text_release(&text);

    tdm_json_document *document = NULL;
    tdm_json_writer *writer = tdm_json_writer_new(0);
    const char *json;
    size_t length;
    tdmi_augment_to_json(augment, writer, NULL);
    if (tdm_json_finish(writer, &json, &length, NULL) != TDM_OK ||
        tdm_json_read(json, length, "written", &document, NULL) != TDM_OK ||
        tdmi_augment_from_json(tdm_json_root(document), "written", &again, NULL) != TDM_OK ||
        memcmp(again.arguments, augment->arguments, sizeof again.arguments) != 0)
        abort();
    tdm_json_document_free(document);
    tdm_json_writer_free(writer);
}

/* Pictures of one pixel: nothing may be reached beyond them, whatever was asked for. */
static void use(const struct tdmi_augment *augment)
{
    uint8_t pixels[3] = {1, 2, 3}, spare[3];
    struct tdmi_box box;
    const struct tdmi_augment_key key = {.seed = 1, .epoch = 2, .sample = 3, .repeat = 4};
    tdmi_augment_picture(augment, key, (struct tdmi_augment_shape){1, 1, 3}, pixels, spare);
    if (tdmi_augment_box(augment, key, 3, 2, &box) &&
        !(box.x >= 0 && box.y >= 0 && box.x + box.width <= 3 && box.y + box.height <= 2))
        abort();
}

static void evaluator(tdm_status status, const struct tdmi_augment *augment, const tdm_error *err)
{
    if (status != TDM_OK && err->n_frames != 1)
        abort(); /* a refusal without its sentence */
    if (status == TDM_OK) {
        survive(augment);
        use(augment);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char *spec = malloc(length + 1);
    tdm_json_document *document = NULL;
    struct tdmi_augment augment;
    tdm_error err = {0};
    if (!spec)
        return 0;
    if (length > 0)
        memcpy(spec, bytes, length);
    spec[length] = '\0';
    evaluator(tdmi_augment_read(spec, &augment, &err), &augment, &err);
    if (tdm_json_read(spec, length, "fuzz", &document, NULL) == TDM_OK) {
        tdm_error_clear(&err);
        evaluator(tdmi_augment_from_json(tdm_json_root(document), "fuzz", &augment, &err), &augment,
                  &err);
    }
    tdm_json_document_free(document);
    free(spec);
    return 0;
}
