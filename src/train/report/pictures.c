/* Some of the validation images: numbers say how often, images say why. */
#include "base/file/file.h"
#include "base/scope.h"
#include "train/report/html.h"
#include "train/report/review.h"
#include "train/evaluate/samples.h"

static void put_picture(tdmi_text *out, const tdmi_outcomes *outcomes,
                        const struct tdmi_sample *sample)
{
    const int64_t e = sample->entry;
    const bool is_right = outcomes->predicted[e] == outcomes->labels[e];
    tdmi_text_printf(out, "<figure%s><img", is_right ? "" : " class=\"wrong\"");
    tdmi_html_put(out, " alt=\"", sample->name, "\"");
    tdmi_html_put(out, " title=\"", sample->name, "\" src=\"data:image/jpeg;base64,");
    tdmi_html_base64(out, sample->jpeg, sample->jpeg_bytes);
    tdmi_html_put(out, "\"><figcaption>", outcomes->classes[outcomes->predicted[e]], "");
    tdmi_text_printf(out, ", %.1f&nbsp;%%", 100.0 * (double)outcomes->confidences[e]);
    if (!is_right) {
        tdmi_html_put(out, "<br><b>is ", outcomes->classes[outcomes->labels[e]], "</b>");
        tdmi_text_printf(out, ", %.1f&nbsp;%%", 100.0 * (double)outcomes->probabilities[e]);
    }
    tdmi_text_printf(out, "</figcaption></figure>\n");
}

static void put_kind(tdmi_text *out, const tdmi_outcomes *outcomes, const tdmi_samples *samples,
                     bool is_mistake, const char *title)
{
    int n = 0;
    for (int i = 0; i < samples->n; i++) {
        if (samples->samples[i].is_mistake != is_mistake)
            continue;
        if (n++ == 0)
            tdmi_text_printf(out, "<h3>%s</h3>\n<div class=\"pictures\">\n", title);
        put_picture(out, outcomes, &samples->samples[i]);
    }
    if (n > 0)
        tdmi_text_printf(out, "</div>\n");
}

tdm_status tdmi_review_pictures(tdmi_text *out, const struct tdmi_review_run *run, tdm_error *err)
{
    tdm_error why = {0};
    char text[TDM_ERROR_TEXT_BYTES];
    TDMI_AT_END(tdmi_samples_release) tdmi_samples samples = {0};
    TDMI_AT_END(tdmi_arena_release) tdmi_arena scratch = {0};
    const char *path = tdmi_path_join(&scratch, run->summary.path, TDMI_SAMPLES_NAME);
    if (!path)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the path of the sample images");
    if (tdmi_file_kind_of(path) == TDMI_FILE_MISSING)
        return TDM_OK;
    if (tdmi_samples_load(path, &run->outcomes, &samples, &why) != TDM_OK) {
        tdm_error_line(&why, text, sizeof text);
        tdmi_html_put(out, "<p>The sample images cannot be shown: ", text, ".</p>\n");
        return TDM_OK;
    }
    put_kind(out, &run->outcomes, &samples, true, "The surest mistakes");
    put_kind(out, &run->outcomes, &samples, false, "Images drawn at random");
    return TDM_OK;
}
