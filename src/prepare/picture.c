/* Images are decoded for every codec, "keep" too: a table holds only images that decode. */
#include "prepare/part.h"

#include "image/facts.h"
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLE_EVERY = 16 };

void tdmi_prepare_change_add(struct tdmi_prepare_change *total,
                             const struct tdmi_prepare_change *more)
{
    total->n_pictures += more->n_pictures;
    total->n_values += more->n_values;
    total->sum += more->sum;
    total->max = more->max > total->max ? more->max : total->max;
}

void tdmi_prepare_scratch_release(struct tdmi_prepare_scratch *scratch)
{
    tdmi_finding_scratch_release(&scratch->finding);
    tdmi_preprocess_scratch_release(&scratch->preprocess);
    tdmi_image_release(&scratch->fitted);
    tdmi_image_release(&scratch->again);
}

/* ---- the file's own bytes ----------------------------------------------------------------- */

/* A JPEG in the three usual colours, upright, of exactly the size, in a form that leaves such a
 * image as it is. */
static bool can_keep(const struct tdmi_prepare_form *form, const tdmi_text *bytes)
{
    struct tdmi_image_facts facts = {0};
    const struct tdmi_preprocess *target = &form->preprocess;
    const bool is_cropped = target->fit == TDMI_FIT_CROP && target->crop_fraction < 1;
    const char *file = tdmi_text_string(bytes);
    return form->codec == TDMI_PREPARE_JPEG && !is_cropped &&
           tdmi_image_is_jpeg_of(file, bytes->length_bytes, target->width, target->height) &&
           tdmi_image_describe(file, bytes->length_bytes, "", &facts, NULL) == TDM_OK &&
           facts.colours == TDMI_COLOURS_RGB && facts.orientation == 1;
}

static tdm_status keep(const struct tdmi_prepare_row *row, struct tdmi_prepare_scratch *scratch,
                       struct tdmi_prepare_picture *picture, tdm_error *err)
{
    const tdmi_text *bytes = &scratch->finding.bytes;
    TDMI_TRY(tdmi_image_decode(tdmi_text_string(bytes), bytes->length_bytes, row->path,
                               (struct tdmi_image_limits){0}, &scratch->finding.decoded, err));
    picture->width = scratch->finding.decoded.width;
    picture->height = scratch->finding.decoded.height;
    tdmi_text_add(&picture->bytes, tdmi_text_string(bytes), bytes->length_bytes);
    return TDM_OK;
}

/* ---- resized and encoded ------------------------------------------------------------------ */

static tdm_status fit(const struct tdmi_prepare_form *form, const struct tdmi_prepare_row *row,
                      struct tdmi_prepare_scratch *scratch, struct tdmi_prepare_picture *picture,
                      tdm_error *err)
{
    const tdmi_text *bytes = &scratch->finding.bytes;
    picture->width = form->preprocess.width;
    picture->height = form->preprocess.height;
    TDM_TRY(tdmi_image_reshape(&scratch->fitted, picture->width, picture->height, err), err,
            "cannot resize '%s'", row->path);
    return tdmi_preprocess_file(&form->preprocess, tdmi_text_string(bytes), bytes->length_bytes,
                                row->path, &scratch->preprocess, scratch->fitted.pixels, err);
}

static void compare_row(const uint8_t *before, const uint8_t *after, size_t n,
                        struct tdmi_prepare_change *change)
{
    int sum = 0, max = 0; /* local, so that compilers use vectors */
    for (size_t i = 0; i < n; i++) {
        const int difference = abs(before[i] - after[i]);
        sum += difference;
        max = difference > max ? difference : max;
    }
    change->sum += sum;
    change->max = max > change->max ? max : change->max;
}

static tdm_status measure(const struct tdmi_prepare_row *row, struct tdmi_prepare_scratch *scratch,
                          struct tdmi_prepare_picture *picture, tdm_error *err)
{
    struct tdmi_prepare_change *change = &picture->change;
    const tdmi_image *before = &scratch->fitted, *after = &scratch->again;
    TDM_TRY(tdmi_image_decode(picture->bytes.bytes, picture->bytes.length_bytes, row->path,
                              (struct tdmi_image_limits){0}, &scratch->again, err),
            err, "the encoded image of '%s' does not decode", row->path);
    if (after->width != before->width || after->height != before->height)
        return TDM_FAIL(err, TDM_E_BUG, "the encoded image of '%s' is %d x %d pixels large",
                        row->path, after->width, after->height);
    const size_t row_bytes = 3 * (size_t)before->width;
    change->n_values = (int64_t)row_bytes * before->height;
    for (size_t y = 0; y < (size_t)before->height; y++)
        compare_row(before->pixels + row_bytes * y, after->pixels + row_bytes * y, row_bytes,
                    change);
    return TDM_OK;
}

static tdm_status encode(const struct tdmi_prepare_form *form, const struct tdmi_prepare_row *row,
                         struct tdmi_prepare_scratch *scratch, struct tdmi_prepare_picture *picture,
                         tdm_error *err)
{
    const tdmi_image *image = &scratch->fitted;
    if (form->codec == TDMI_PREPARE_RAW) {
        tdmi_text_add(&picture->bytes, image->pixels,
                      3 * (size_t)image->width * (size_t)image->height);
        return TDM_OK;
    }
    TDM_TRY(tdmi_image_encode(image,
                              form->codec == TDMI_PREPARE_PNG ? TDMI_IMAGE_PNG : TDMI_IMAGE_JPEG,
                              form->quality, &picture->bytes, err),
            err, "cannot encode '%s'", row->path);
    if (form->codec == TDMI_PREPARE_JPEG && row->hash % SAMPLE_EVERY == 0)
        return measure(row, scratch, picture, err);
    return TDM_OK;
}

/* ---- one image ----------------------------------------------------------------------------- */

/* The verdict is that of audit, so that both agree. */
static tdm_status find_verdict(const tdmi_source *source, const struct tdmi_prepare_row *row,
                               struct tdmi_prepare_scratch *scratch,
                               struct tdmi_prepare_picture *picture, const tdm_error *problem,
                               tdm_error *err)
{
    struct tdmi_finding finding;
    TDM_TRY(tdmi_finding_of(source, row->item, false, &scratch->finding, &finding, err), err,
            "cannot look at '%s'", row->path);
    const enum tdm_verdict verdict = tdmi_verdict_among(finding.remarks);
    const bool is_bad = tdm_verdict_is_bad(verdict); /* else it decodes, but not into this form */
    picture->verdict = is_bad ? verdict : TDM_VERDICT_CORRUPT;
    snprintf(picture->reason, sizeof picture->reason, "%s",
             is_bad ? finding.reason : tdm_error_sentence(problem, 0));
    return TDM_OK;
}

static tdm_status check_content(const tdmi_source *source, const struct tdmi_prepare_row *row,
                                const tdmi_text *bytes, tdm_error *err)
{
    /* A hash of the source may be that of the original bytes. */
    if (tdmi_source_hash(source, row->item) != 0 ||
        tdmi_contents_hash(tdmi_text_string(bytes), bytes->length_bytes) == row->hash)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_INPUT,
                    "'%s' was written to while it was being prepared: run it again when the images "
                    "of '%s' stay as they are",
                    row->path, tdmi_source_path(source));
}

tdm_status tdmi_prepare_picture_make(const tdmi_source *source,
                                     const struct tdmi_prepare_form *form,
                                     const struct tdmi_prepare_row *row,
                                     struct tdmi_prepare_scratch *scratch,
                                     struct tdmi_prepare_picture *picture, tdm_error *err)
{
    tdmi_text *bytes = &scratch->finding.bytes;
    tdm_error problem = {0};
    tdmi_text_clear(&picture->bytes);
    picture->verdict = TDM_VERDICT_OK;
    picture->change = (struct tdmi_prepare_change){.n_pictures = form->codec == TDMI_PREPARE_JPEG &&
                                                                 row->hash % SAMPLE_EVERY == 0};
    TDMI_TRY(tdmi_source_try(source, row->item, bytes, &problem, err));
    if (problem.code == TDM_OK)
        TDMI_TRY(check_content(source, row, bytes, err));
    const bool is_kept = form->codec == TDMI_PREPARE_KEEP || can_keep(form, bytes);
    tdm_status status = problem.code;
    if (status == TDM_OK)
        status = is_kept ? keep(row, scratch, picture, &problem)
                         : fit(form, row, scratch, picture, &problem);
    if (status == TDM_E_MEMORY)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to prepare '%s'", row->path);
    if (status != TDM_OK) {
        picture->change = (struct tdmi_prepare_change){0};
        return find_verdict(source, row, scratch, picture, &problem, err);
    }
    if (!is_kept)
        TDM_TRY(encode(form, row, scratch, picture, err), err, "cannot prepare '%s'", row->path);
    if (is_kept && picture->change.n_pictures > 0)
        picture->change.n_values = 3 * (int64_t)picture->width * picture->height;
    return tdmi_text_status(&picture->bytes, err);
}
