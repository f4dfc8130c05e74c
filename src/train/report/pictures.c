/* Some of the pictures themselves: numbers say how often, pictures say why. */
#include "base/file/file.h"
#include "train/report/html.h"
#include "train/report/review.h"
#include "train/evaluate/samples.h"

static void put_picture(tdmi_text *out, const tdmi_outcomes *outcomes,
                        const struct tdmi_sample *sample)
{
    const int64_t e = sample->entry;
    const bool is_right = outcomes->predicted[e] == outcomes->labels[e];
    tdmi_text_printf(out, "<figure%s><img alt=\"", is_right ? "" : " class=\"wrong\"");
    tdmi_html_text(out, sample->name);
    tdmi_text_printf(out, "\" title=\"");
    tdmi_html_text(out, sample->name);
    tdmi_text_printf(out, "\" src=\"data:image/jpeg;base64,");
    tdmi_html_base64(out, sample->jpeg, sample->jpeg_bytes);
    tdmi_text_printf(out, "\"><figcaption>");
    tdmi_html_text(out, outcomes->classes[outcomes->predicted[e]]);
    tdmi_text_printf(out, ", %.1f&nbsp;%%", 100.0 * (double)outcomes->confidences[e]);
    if (!is_right) {
        tdmi_text_printf(out, "<br><b>is ");
        tdmi_html_text(out, outcomes->classes[outcomes->labels[e]]);
        tdmi_text_printf(out, "</b>, %.1f&nbsp;%%", 100.0 * (double)outcomes->probabilities[e]);
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
    tdmi_samples samples;
    tdmi_arena scratch;
    tdmi_arena_init(&scratch, 0);
    const char *path = tdmi_path_join(&scratch, run->told.path, TDMI_SAMPLES_NAME);
    tdm_status status = TDM_OK;
    if (!path)
        status = TDM_FAIL(err, TDM_E_MEMORY, "looking for sample pictures: out of memory");
    else if (tdmi_file_kind_of(path) != TDMI_FILE_MISSING) {
        if (tdmi_samples_load(path, &run->outcomes, &samples, &why) == TDM_OK) {
            put_kind(out, &run->outcomes, &samples, true, "The surest mistakes");
            put_kind(out, &run->outcomes, &samples, false, "Pictures drawn by chance");
            tdmi_samples_release(&samples);
        } else {
            char text[TDM_ERROR_TEXT_BYTES];
            tdm_error_line(&why, text, sizeof text);
            tdmi_text_printf(out, "<p>The sample pictures cannot be shown: ");
            tdmi_html_text(out, text);
            tdmi_text_printf(out, ".</p>\n");
        }
    }
    tdmi_arena_release(&scratch);
    return status;
}
