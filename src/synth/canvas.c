/*
 * Canvas, background, things. Each row of a thing is worked on as whole arrays (coordinates, then
 * distance, then surface, then colour): short loops without branches that become vector code.
 */
#include "synth/canvas.h"
#include "base/scope.h"
#include "base/hash/rng.h"
#include <assert.h>
#include <float.h>
#include <string.h>

_Static_assert(FLT_EVAL_METHOD == 0, "images are promised bit for bit: f32 must round as f32");

/* ---- tables and memory --------------------------------------------------------------------- */

tdm_status tdmi_synth_tables_new(uint64_t seed, struct tdmi_synth_tables **tables, tdm_error *err)
{
    struct tdmi_synth_tables *made;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    tdmi_synth_shapes_fill(&made->shapes);
    /* Images take epoch 0 of the same purpose, so they are independent of the grain. */
    tdmi_rng rng = tdmi_rng_at(seed, TDMI_RNG_SYNTH, 1, 0);
    for (int i = 0; i < TDMI_SYNTH_GRAIN; i++) {
        /* The sum of three uniforms on (-1, 1) has variance 1 and looks normal enough. */
        float sum = 0.0F;
        for (int k = 0; k < 3; k++)
            sum += 2.0F * tdmi_rng_unit(&rng) - 1.0F;
        made->grain[i] = sum;
    }
    *tables = made;
    return TDM_OK;
}

tdm_status tdmi_synth_canvas_reshape(struct tdmi_synth_canvas *canvas, int width, int height,
                                     tdm_error *err)
{
    size_t plane = (size_t)width * (size_t)height;
    size_t needed = 3 * plane + TDMI_SYNTH_ROWS * (size_t)width;
    if (needed > canvas->capacity) {
        tdmi_synth_canvas_release(canvas);
        canvas->memory = tdmi_alloc_aligned(needed * sizeof(float));
        TDMI_CHECK_MEMORY(canvas->memory, err);
        canvas->capacity = needed;
    }
    canvas->width = width;
    canvas->height = height;
    canvas->side = (float)(width < height ? width : height);
    for (int c = 0; c < 3; c++)
        canvas->planes[c] = canvas->memory + (size_t)c * plane;
    for (int r = 0; r < TDMI_SYNTH_ROWS; r++)
        canvas->rows[r] = canvas->memory + 3 * plane + (size_t)r * (size_t)width;
    return TDM_OK;
}

void tdmi_synth_canvas_release(struct tdmi_synth_canvas *canvas)
{
    tdmi_free(canvas->memory);
    *canvas = (struct tdmi_synth_canvas){0};
}

/* ---- background ---------------------------------------------------------------------------- */

/* One row of a cloud: the lattice between two of its rows, then between columns. columns and
 * weights hold each pixel's column of the lattice and the smoothed way to the next, equal for all
 * rows. */
static void cloud_row(const float *lattice, int stride, float row_place, int width,
                      const float *columns, const float *weights, float *line, float *cloud)
{
    int row = (int)row_place;
    float f = row_place - (float)row;
    f = f * f * (3.0F - 2.0F * f);
    const float *above = lattice + (size_t)row * (size_t)stride;
    const float *below = above + stride;
    for (int k = 0; k < stride; k++)
        line[k] = above[k] + f * (below[k] - above[k]);
    for (int x = 0; x < width; x++) {
        int column = (int)columns[x];
        cloud[x] = line[column] + weights[x] * (line[column + 1] - line[column]);
    }
}

void tdmi_synth_paint_background(struct tdmi_synth_canvas *canvas,
                                 const struct tdmi_synth_tables *tables,
                                 const struct tdmi_synth_background *background)
{
    enum { CLOUDS = TDMI_SYNTH_CLOUDS, MAX_STRIDE = 64 };
    const int width = canvas->width;
    const float px = 1.0F / canvas->side;
    float *clouds[CLOUDS], *columns[CLOUDS], *weights[CLOUDS], line[MAX_STRIDE];
    int strides[CLOUDS];
    for (int k = 0; k < CLOUDS; k++) {
        assert(background->clouds[k].cells <= (float)TDMI_SYNTH_MAX_CELLS);
        assert(background->clouds[k].from < TDMI_SYNTH_CLOUD_STARTS);
        float cells_per_px = background->clouds[k].cells * px;
        clouds[k] = canvas->rows[k];
        columns[k] = canvas->rows[CLOUDS + k];
        weights[k] = canvas->rows[2 * CLOUDS + k];
        strides[k] = (int)((float)width * cells_per_px) + 2;
        for (int x = 0; x < width; x++) {
            float place = (float)x * cells_per_px;
            int column = (int)place;
            float f = place - (float)column;
            columns[k][x] = (float)column;
            weights[k][x] = f * f * (3.0F - 2.0F * f);
        }
    }
    for (int y = 0; y < canvas->height; y++) {
        for (int k = 0; k < CLOUDS; k++)
            cloud_row(tables->grain + background->clouds[k].from, strides[k],
                      (float)y * (background->clouds[k].cells * px), width, columns[k], weights[k],
                      line, clouds[k]);
        float from = 0.5F + background->slope_y * ((float)y * px - 0.5F);
        for (int x = 0; x < width; x++) {
            clouds[0][x] = tdmi_synth_limit(from + background->slope_x * ((float)x * px - 0.5F) +
                                            background->clouds[0].strength * clouds[0][x]);
            clouds[1][x] = tdmi_synth_limit(background->clouds[1].strength * clouds[1][x]);
            clouds[2][x] = 1.0F + background->clouds[2].strength * clouds[2][x];
        }
        for (int c = 0; c < 3; c++) {
            float *row = canvas->planes[c] + (size_t)y * (size_t)width;
            const float first = background->colours[0].c[c], second = background->colours[1].c[c];
            const float third = background->colours[2].c[c];
            for (int x = 0; x < width; x++) {
                float colour = first + clouds[0][x] * (second - first);
                row[x] = (colour + clouds[1][x] * (third - colour)) * clouds[2][x];
            }
        }
    }
}

/* ---- things -------------------------------------------------------------------------------- */

enum { ROW_U, ROW_V, ROW_D, ROW_DU, ROW_DV, ROW_MIX, ROW_SHADE, ROW_COVER, ROW_GLOSS };

/* Keep of [*first, *last) the pixels where |at_zero + step * x| <= EXTENT. */
static void narrow(float at_zero, float step, int *first, int *last)
{
    const float extent = TDMI_SYNTH_SHAPE_EXTENT;
    if (step < 1e-6F && step > -1e-6F)
        return; /* as good as constant: leave the decision to the other coordinate */
    float low = (-extent - at_zero) / step, high = (extent - at_zero) / step;
    if (low > high) {
        float swap = low;
        low = high;
        high = swap;
    }
    if (low > (float)*first)
        *first = low < (float)*last ? (int)low : *last;
    if (high < (float)(*last - 1))
        *last = high > (float)*first ? (int)high + 1 : *first;
}

/* Coordinates and distances of the pixels of row y that the thing can reach, at the scratch rows'
 * beginning; the number of pixels, *from is the first. */
static int outline_row(struct tdmi_synth_canvas *canvas, const struct tdmi_synth_tables *tables,
                       const struct tdmi_synth_thing *thing, const struct tdmi_synth_place *place,
                       int y, int *from)
{
    float *u = canvas->rows[ROW_U], *v = canvas->rows[ROW_V], *d = canvas->rows[ROW_D];
    float *du = canvas->rows[ROW_DU], *dv = canvas->rows[ROW_DV];
    float dy = (float)y + 0.5F - place->y, dx = 0.5F - place->x;
    float u_zero = place->ux * dx + place->uy * dy, v_zero = place->vx * dx + place->vy * dy;
    int first = 0, last = canvas->width;
    narrow(u_zero, place->ux, &first, &last);
    narrow(v_zero, place->vx, &first, &last);
    int n = last - first;
    *from = first;
    for (int i = 0; i < n; i++) {
        u[i] = u_zero + place->ux * (float)(first + i);
        v[i] = v_zero + place->vx * (float)(first + i);
    }
    switch (thing->outline) {
    case TDMI_SYNTH_SILHOUETTE:
        tdmi_synth_shape_sample(&tables->shapes, thing->shape, n, u, v, d, du, dv);
        break;
    case TDMI_SYNTH_ELLIPSE:
        for (int i = 0; i < n; i++) {
            d[i] = 0.5F * (u[i] * u[i] + v[i] * v[i] - 1.0F); /* right at the outline */
            du[i] = u[i];
            dv[i] = v[i];
        }
        break;
    case TDMI_SYNTH_BAR:
        for (int i = 0; i < n; i++) {
            float au = u[i] < 0.0F ? -u[i] : u[i], av = v[i] < 0.0F ? -v[i] : v[i];
            d[i] = (au > av ? au : av) - 1.0F;
            du[i] = au > av ? u[i] : 0.0F;
            dv[i] = au > av ? 0.0F : v[i];
        }
        break;
    }
    return n;
}

/* First and one past the last row that a place reaches. */
static void rows_of(const struct tdmi_synth_canvas *canvas, const struct tdmi_synth_place *place,
                    int *first, int *last)
{
    float low = place->y - place->reach, high = place->y + place->reach + 1.0F;
    *first = low > 0.0F ? low < (float)canvas->height ? (int)low : canvas->height : 0;
    *last = high < (float)canvas->height ? high > 0.0F ? (int)high : 0 : canvas->height;
}

void tdmi_synth_paint_thing(struct tdmi_synth_canvas *canvas,
                            const struct tdmi_synth_tables *tables,
                            const struct tdmi_synth_thing *thing)
{
    const float *u = canvas->rows[ROW_U], *v = canvas->rows[ROW_V], *d = canvas->rows[ROW_D];
    const float *du = canvas->rows[ROW_DU], *dv = canvas->rows[ROW_DV];
    float *mix = canvas->rows[ROW_MIX], *shade = canvas->rows[ROW_SHADE];
    float *cover = canvas->rows[ROW_COVER], *gloss = canvas->rows[ROW_GLOSS];
    const float light_u = thing->light_u, light_v = thing->light_v;
    int first, last, from;
    rows_of(canvas, &thing->place, &first, &last);
    for (int y = first; y < last; y++) {
        int n = outline_row(canvas, tables, thing, &thing->place, y, &from);
        tdmi_synth_texture(&thing->surface, n, u, v, d, mix);
        for (int i = 0; i < n; i++) {
            /* The surface is flat inside and bends down over the outer third: lit on one side. */
            float bend = tdmi_synth_limit(1.0F + 3.0F * d[i]);
            float gu = u[i] - 0.4F * light_u, gv = v[i] - 0.4F * light_v;
            shade[i] = 1.0F + thing->relief * bend * (du[i] * light_u + dv[i] * light_v) +
                       thing->slope * (u[i] * light_u + v[i] * light_v);
            gloss[i] = thing->gloss * tdmi_synth_limit(1.0F - 5.0F * (gu * gu + gv * gv));
            cover[i] = tdmi_synth_limit(0.5F - d[i] * thing->place.unit_px);
        }
        for (int c = 0; c < 3; c++) {
            float *row = canvas->planes[c] + (size_t)y * (size_t)canvas->width + from;
            const float base = thing->colours[0].c[c], other = thing->colours[1].c[c] - base;
            for (int i = 0; i < n; i++)
                row[i] += cover[i] * ((base + mix[i] * other) * shade[i] + gloss[i] - row[i]);
        }
    }
}

void tdmi_synth_paint_shadow(struct tdmi_synth_canvas *canvas,
                             const struct tdmi_synth_tables *tables,
                             const struct tdmi_synth_thing *thing, float dx, float dy,
                             float softness, float strength)
{
    const float *d = canvas->rows[ROW_D];
    float *cover = canvas->rows[ROW_COVER];
    struct tdmi_synth_place place = thing->place;
    place.x += dx;
    place.y += dy;
    const float sharpness = 1.0F / softness;
    int first, last, from;
    rows_of(canvas, &place, &first, &last);
    for (int y = first; y < last; y++) {
        int n = outline_row(canvas, tables, thing, &place, y, &from);
        /* Nothing is left of it at the edge of the table, 0.15 or more outside of any outline. */
        for (int i = 0; i < n; i++)
            cover[i] = 1.0F - strength * tdmi_synth_limit(0.4F - d[i] * sharpness);
        for (int c = 0; c < 3; c++) {
            float *row = canvas->planes[c] + (size_t)y * (size_t)canvas->width + from;
            for (int i = 0; i < n; i++)
                row[i] *= cover[i];
        }
    }
}

/* ---- the camera ---------------------------------------------------------------------------- */

/* The lens blurs, the light falls off, the sensor adds noise, and the image becomes 8 bits a
 * channel. */

/* (w, 1 - 2w, w) along rows and then along columns; edges repeat. */
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
