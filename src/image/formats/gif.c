/*
 * The first frame of a GIF through giflib, laid on its canvas as Pillow does: a frame that sticks
 * out makes the canvas larger, a clear pixel is white, and canvas that the frame does not cover has
 * colour 0 of the palette, or is white when the frame has a transparent colour. Indices past the
 * palette's end are black; without any palette they are grey levels.
 */
#include "base/scope.h"
#include "image/formats/codec.h"
#include <gif_lib.h>
#include <string.h>

struct reader {
    const uint8_t *at, *end;
    bool is_short; /* a read went beyond the end */
};

static int pass_bytes(GifFileType *gif, GifByteType *to, int wanted)
{
    struct reader *reader = gif->UserData;
    ptrdiff_t n = reader->end - reader->at;
    if (n < wanted)
        reader->is_short = true;
    else
        n = wanted;
    memcpy(to, reader->at, (size_t)n);
    reader->at += n;
    return (int)n;
}

static tdm_status refuse(const struct reader *reader, int code, const char *where, tdm_error *err)
{
    if (code == D_GIF_ERR_NOT_ENOUGH_MEM)
        return TDM_FAIL(err, TDM_E_MEMORY, "giflib ran out of memory");
    const char *text = GifErrorString(code);
    return TDM_FAIL(err, TDM_E_INPUT, "it is %s in %s: %s",
                    reader->is_short ? "truncated" : "damaged", where,
                    text != NULL ? text : "no error of giflib");
}

/* Walks to the first frame; *clear is its transparent index or -1. */
static tdm_status find_frame(GifFileType *gif, int *clear, tdm_error *err)
{
    const struct reader *reader = gif->UserData;
    *clear = NO_TRANSPARENT_COLOR;
    for (;;) {
        GifRecordType kind;
        if (DGifGetRecordType(gif, &kind) != GIF_OK)
            return refuse(reader, gif->Error, "the blocks before its image", err);
        if (kind == IMAGE_DESC_RECORD_TYPE)
            break;
        if (kind == TERMINATE_RECORD_TYPE)
            return TDM_FAIL(err, TDM_E_INPUT, "it is damaged: it ends without an image");
        int label;
        GifByteType *block; /* a length and that many bytes */
        int code = DGifGetExtension(gif, &label, &block);
        while (code == GIF_OK && block != NULL) {
            GraphicsControlBlock control;
            if (label == GRAPHICS_EXT_FUNC_CODE &&
                DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK)
                *clear = control.TransparentColor;
            code = DGifGetExtensionNext(gif, &block);
        }
        if (code != GIF_OK)
            return refuse(reader, gif->Error, "the blocks before its image", err);
    }
    if (DGifGetImageDesc(gif) != GIF_OK)
        return refuse(reader, gif->Error, "the header of its image", err);
    return TDM_OK;
}

static void read_palette(const GifFileType *gif, int clear, uint8_t palette[256][3])
{
    const ColorMapObject *map = gif->Image.ColorMap != NULL ? gif->Image.ColorMap : gif->SColorMap;
    for (int i = 0; i < 256; i++) {
        if (map == NULL)
            memset(palette[i], i, 3);
        else if (i >= map->ColorCount)
            memset(palette[i], 0, 3);
        else
            memcpy(
                palette[i],
                (const uint8_t[3]){map->Colors[i].Red, map->Colors[i].Green, map->Colors[i].Blue},
                3);
    }
    if (clear != NO_TRANSPARENT_COLOR)
        memset(palette[clear], 255, 3);
}

static tdm_status read_rows(GifFileType *gif, const struct tdmi_codec_source *source,
                            uint8_t palette[256][3], tdmi_image *image, tdm_error *err)
{
    static const int starts[] = {0, 4, 2, 1}, steps[] = {8, 8, 4, 2}; /* of interlaced rows */
    const GifImageDesc *frame = &gif->Image;
    const size_t left = (size_t)frame->Left, width = (size_t)frame->Width;
    const int n_passes = frame->Interlace ? 4 : 1;
    TDMI_AT_END(tdmi_free_at) uint8_t *indices = NULL;
    TDMI_TRY(TDMI_NEW(indices, width, err));
    for (int pass = 0; pass < n_passes; pass++) {
        const int step = frame->Interlace ? steps[pass] : 1;
        int y = frame->Interlace ? starts[pass] : 0;
        for (; y < frame->Height; y += step) {
            size_t row = (size_t)(frame->Top + y);
            uint8_t *pixels = image->pixels + 3 * (row * (size_t)image->width + left);
            if (DGifGetLine(gif, indices, frame->Width) != GIF_OK)
                return refuse(gif->UserData, gif->Error, "the rows of its image", err);
            TDMI_TRY(tdmi_codec_check_time(source, err));
            for (size_t x = 0; x < width; x++)
                memcpy(pixels + 3 * x, palette[indices[x]], 3);
        }
    }
    return TDM_OK;
}

static tdm_status decode_with(GifFileType *gif, const struct tdmi_codec_source *source,
                              tdmi_image *image, tdm_error *err)
{
    int clear;
    TDMI_TRY(find_frame(gif, &clear, err));
    const GifImageDesc *frame = &gif->Image;
    if (frame->Width < 1 || frame->Height < 1)
        return TDM_FAIL(err, TDM_E_INPUT, "it is damaged: its first frame has %d x %d pixels",
                        frame->Width, frame->Height);
    const int right = frame->Left + frame->Width, bottom = frame->Top + frame->Height;
    TDMI_TRY(tdmi_codec_shape(source, gif->SWidth > right ? gif->SWidth : right,
                              gif->SHeight > bottom ? gif->SHeight : bottom, image, err));
    uint8_t palette[256][3];
    read_palette(gif, clear, palette);
    const bool is_covered = frame->Width == image->width && frame->Height == image->height;
    const uint8_t *behind = palette[clear != NO_TRANSPARENT_COLOR ? clear : 0];
    for (size_t i = 0; !is_covered && i < (size_t)image->width * (size_t)image->height; i++)
        memcpy(image->pixels + 3 * i, behind, 3);
    return read_rows(gif, source, palette, image, err);
}

tdm_status tdmi_gif_decode(const struct tdmi_codec_source *source, tdmi_image *image,
                           tdm_error *err)
{
    struct reader reader = {source->bytes, source->bytes + source->length_bytes, false};
    int code = 0;
    GifFileType *gif = DGifOpen(&reader, pass_bytes, &code);
    if (gif == NULL)
        return refuse(&reader, code, "its header", err);
    tdm_status status = decode_with(gif, source, image, err);
    (void)DGifCloseFile(gif, &code);
    return status;
}

/* giflib has no version function. */
void tdmi_gif_write_decoder(tdmi_text *text)
{
    tdmi_text_printf(text, "giflib %d.%d.%d", GIFLIB_MAJOR, GIFLIB_MINOR, GIFLIB_RELEASE);
}
