/*
 * The camera's effects on the painted scene: the lens blurs, the light falls off, the sensor adds
 * noise, and the image becomes 8 bits a channel.
 */
#include "synth/canvas.h"
#include "base/hash/rng.h"
#include "base/scope.h"
#include <string.h>

/* (w, 1 - 2w, w) along rows and then along columns; borders repeat. */
static void blur_plane(float *plane, int width, int height, float weight, float *before,
                       float *current)
{
    const float middle = 1.0F - 2.0F * weight;
    const size_t row_bytes = (size_t)width * sizeof(float);
    for (int y = 0; y < height; y++) {
        float *row = plane + (size_t)y * (size_t)width;
        memcpy(current, row, row_bytes);
        for (int x = 1; x < width - 1; x++)
            row[x] = middle * current[x] + weight * (current[x - 1] + current[x + 1]);
        row[0] = middle * current[0] + weight * (current[0] + current[1]);
        row[width - 1] =
            middle * current[width - 1] + weight * (current[width - 2] + current[width - 1]);
    }
    memcpy(before, plane, row_bytes);
    for (int y = 0; y < height; y++) {
        float *row = plane + (size_t)y * (size_t)width;
        const float *after = y + 1 < height ? row + width : current;
        memcpy(current, row, row_bytes);
        for (int x = 0; x < width; x++)
            row[x] = middle * current[x] + weight * (before[x] + after[x]);
        float *swap = before;
        before = current;
        current = swap;
    }
}

/* to[3 * x] = from[x] * gain * light[x] + noise, in 8 bits. */
static void develop_row(const float *from, int width, float gain, const float *light,
                        const float *grain, float noise, const float *colour_grain,
                        float colour_noise, uint8_t *to)
{
    for (int x = 0; x < width; x++) {
        float value = from[x] * gain * light[x] + noise * grain[x] + colour_noise * colour_grain[x];
        value = value * 255.0F + 0.5F;
        value = value < 0.0F ? 0.0F : value > 255.0F ? 255.0F : value;
        to[3 * x] = (uint8_t)(int)value;
    }
}

tdm_status tdmi_synth_develop(struct tdmi_synth_canvas *canvas,
                              const struct tdmi_synth_tables *tables,
                              const struct tdmi_synth_camera *camera, tdmi_image *image,
                              tdm_error *err)
{
    const int width = canvas->width, height = canvas->height;
    TDMI_TRY(tdmi_image_reshape(image, width, height, err));
    for (int pass = 0; pass < camera->blur_passes; pass++)
        for (int c = 0; c < 3; c++)
            blur_plane(canvas->planes[c], width, height, camera->blur, canvas->rows[0],
                       canvas->rows[1]);

    const float px = 1.0F / canvas->side;
    const float middle_x = 0.5F * (float)width, middle_y = 0.5F * (float)height;
    float *light = canvas->rows[0];
    /* Each row takes its noise from random places of the grain. */
    tdmi_rng rng = tdmi_rng_at(camera->grain_seed, TDMI_RNG_SYNTH, 2, 0);
    const uint32_t starts = (uint32_t)(TDMI_SYNTH_GRAIN - width);
    for (int y = 0; y < height; y++) {
        float dy = ((float)y + 0.5F - middle_y) * px;
        for (int x = 0; x < width; x++) {
            float dx = ((float)x + 0.5F - middle_x) * px;
            light[x] = 1.0F + camera->light_x * dx + camera->light_y * dy -
                       4.0F * camera->vignette * (dx * dx + dy * dy);
        }
        const float *grain = tables->grain + tdmi_rng_below(&rng, starts);
        for (int c = 0; c < 3; c++) {
            const float *colour_grain = tables->grain + tdmi_rng_below(&rng, starts);
            size_t at = (size_t)y * (size_t)width;
            develop_row(canvas->planes[c] + at, width, camera->gains[c], light, grain,
                        camera->noise, colour_grain, camera->colour_noise,
                        image->pixels + 3 * at + c);
        }
    }
    return TDM_OK;
}
