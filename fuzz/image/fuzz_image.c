/*
 * Any bytes as a picture: described, then decoded under small limits, turned, fingerprinted and
 * preprocessed in a way that the bytes' own length chooses, whole, row by row and as a draft. What
 * comes out must be a picture or a sentence, and a picture must be as large as its description
 * said.
 */
#include "fuzz.h"
#include "image/facts.h"
#include "image/fingerprint.h"
#include "image/preprocess.h"

/* libheif 1.15 forgets a picture of libdav1d when it refuses what that decoded. Its stack ends in
 * operator new; nothing else here is C++. The function is visible: a sanitizer that is a shared
 * library would not find it otherwise. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libdav1d.so\nleak:libheif.so\nleak:libstdc++.so\n";
}

static void check_sentence(const tdm_error *err)
{
    if (err->n_frames == 0 || tdm_error_sentence(err, 0)[0] == '\0')
        abort();
}

static void check_facts(const struct tdmi_image_facts *facts, const tdmi_image *image)
{
    const bool is_transposed = facts->orientation >= 5;
    if ((is_transposed ? facts->height : facts->width) != image->width ||
        (is_transposed ? facts->width : facts->height) != image->height || facts->n_frames < 1 ||
        facts->bits < 1 || facts->bits > 32 || facts->colours == TDMI_COLOURS_UNKNOWN)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    const int orientation = tdmi_exif_orientation(bytes, length_bytes);
    if (orientation < 1 || orientation > 8)
        abort();
    struct tdmi_preprocess_scratch scratch = {0};
    tdm_error err = {0}, facts_err = {0};
    struct tdmi_image_facts facts;
    const struct tdmi_image_limits limits = {.max_pixels = 1 << 16};
    const bool is_described =
        tdmi_image_describe(bytes, length_bytes, "input", &facts, &facts_err) == TDM_OK;
    if (!is_described)
        check_sentence(&facts_err);
    if (tdmi_image_decode(bytes, length_bytes, "input", limits, &scratch.decoded, &err) != TDM_OK) {
        check_sentence(&err);
        goto out;
    }
    if (!is_described)
        abort();
    check_facts(&facts, &scratch.decoded);
    uint64_t fingerprint;
    if (tdmi_image_fingerprint(&scratch.decoded, &scratch.resized, &fingerprint, &err) != TDM_OK)
        abort();
    uint8_t out[3 * 24 * 17], by_rows[sizeof out];
    struct tdmi_preprocess preprocess = {
        .width = 24,
        .height = 17,
        .channels = length_bytes % 2 == 0 ? 3 : 1,
        .fit = (enum tdmi_fit)(length_bytes % 3),
        .crop_fraction = 0.875,
        .filter = (enum tdmi_filter)(length_bytes / 3 % 3),
    };
    if (tdmi_preprocess_image(&preprocess, &scratch.decoded, &scratch, out, &err) != TDM_OK)
        abort();
    if (tdmi_preprocess_file(&preprocess, bytes, length_bytes, "input", &scratch, by_rows, &err) !=
            TDM_OK ||
        memcmp(out, by_rows, (size_t)(24 * 17 * preprocess.channels)) != 0)
        abort();
    preprocess.uses_draft = true;
    preprocess.width = 1 + (int)(length_bytes % 24);
    preprocess.height = 1 + (int)(length_bytes / 24 % 17);
    if (tdmi_preprocess_file(&preprocess, bytes, length_bytes, "input", &scratch, out, &err) !=
        TDM_OK)
        abort();
out:
    tdmi_preprocess_scratch_release(&scratch);
    return 0;
}
