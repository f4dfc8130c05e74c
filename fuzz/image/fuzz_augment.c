/*
 * Any text as a description of augmentation: it is refused with one sentence, or what was
 * understood is written, read and found to be the same.
 */
#include "fuzz.h"
#include "image/augment/augment.h"

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
}

/* Images of one pixel: nothing beyond them may be touched. */
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

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char *spec = malloc(length + 1);
    struct tdmi_augment augment;
    tdm_error err = {0};
    if (!spec)
        return 0;
    if (length > 0)
        memcpy(spec, bytes, length);
    spec[length] = '\0';
    if (tdmi_augment_read(spec, &augment, &err) == TDM_OK) {
        survive(&augment);
        use(&augment);
    } else if (err.n_frames != 1) {
        abort(); /* a refusal without its sentence */
    }
    free(spec);
    return 0;
}
