/*
 * The refusal of a file that is no image. Under the names of images lie failed downloads (a web
 * page, a message in JSON or XML), pointers of Git LFS and documents. They are refused by what they
 * are, all else by its first bytes.
 */
#include "base/text/quote.h"
#include "image/formats/codec.h"
#include <string.h>
#include <strings.h>

enum { TEXT_BYTES = 512, SHOWN_BYTES = 8, SHOWN_TEXT_BYTES = 40 };

#define ACCEPTED "JPEG, PNG, GIF, WebP, BMP, PPM, TIFF, HEIC, AVIF and JPEG XL images are read"

/* ---- text ------------------------------------------------------------------------------------ */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

/* Length of the byte order mark and the blanks before a text. */
static size_t margin_of(const char *bytes, size_t n)
{
    size_t at = n >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (at < n && is_blank(bytes[at]))
        at++;
    return at;
}

static bool begins_with(const char *bytes, size_t n, const char *word)
{
    return n >= strlen(word) && strncasecmp(bytes, word, strlen(word)) == 0;
}

/* UTF-8 without control characters, as far as is looked at, where a character may be cut. */
static bool is_text(const char *bytes, size_t n)
{
    const size_t end = n < TEXT_BYTES ? n : TEXT_BYTES;
    size_t at = 0;
    while (at < end) {
        bool is_plain;
        const size_t length = tdmi_character(bytes + at, n - at, &is_plain);
        if (!is_plain && !is_blank(bytes[at]))
            return false;
        at += length;
    }
    return true;
}

/* Length of the first line, or of its part that a message shows. */
static size_t shown_of(const char *text, size_t n)
{
    size_t at = 0;
    while (at < n && at < SHOWN_TEXT_BYTES && text[at] != '\n' && text[at] != '\r') {
        bool is_plain;
        at += tdmi_character(text + at, n - at, &is_plain);
    }
    return at;
}

static tdm_status refuse_text(const char *text, size_t n, tdm_error *err)
{
    static const struct {
        const char *begins, *words;
        bool is_message; /* a server may have sent it in place of the image */
    } kinds[] = {
        {"<!doctype html", "a web page: ", true},
        {"<html", "a web page: ", true},
        {"<svg", "an SVG drawing: ", false},
        {"<?xml", "XML: ", true},
        {"{", "JSON: ", true},
        {"", "", false},
    };
    const size_t shown = shown_of(text, n);
    size_t kind = 0;
    while (!begins_with(text, n, kinds[kind].begins))
        kind++;
    return TDM_FAIL(err, TDM_E_INPUT, "it is %stext that begins with '%.*s'%s", kinds[kind].words,
                    (int)shown, text,
                    kinds[kind].is_message
                        ? ", perhaps an error message that was saved in place of the image"
                        : "; " ACCEPTED);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Formats that are common in folders of images but not read. */
static const char *stranger_of(const char *bytes, size_t n)
{
    static const struct {
        const char *name, *bytes;
        size_t length;
    } strangers[] = {
        {"a JPEG 2000 image", "\0\0\0\x0cjP  ", 8},
        {"a Photoshop image", "8BPS", 4},
        {"an icon", "\0\0\1\0", 4},
        {"a PDF document", "%PDF", 4},
        {"a zip archive", "PK\3\4", 4},
    };
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++)
        if (n >= strangers[i].length && memcmp(bytes, strangers[i].bytes, strangers[i].length) == 0)
            return strangers[i].name;
    return NULL;
}

static tdm_status refuse_bytes(const uint8_t *bytes, size_t n, const char *stranger, tdm_error *err)
{
    static const char hex[] = "0123456789abcdef";
    char shown[3 * SHOWN_BYTES] = "";
    size_t length = 0;
    for (size_t i = 0; i < n && i < SHOWN_BYTES; i++) {
        shown[length++] = hex[bytes[i] >> 4];
        shown[length++] = hex[bytes[i] & 15];
        shown[length++] = ' ';
    }
    shown[length - 1] = '\0';
    return TDM_FAIL(err, TDM_E_INPUT, "it begins with the bytes %s%s%s%s; " ACCEPTED, shown,
                    stranger != NULL ? ", as " : "", stranger != NULL ? stranger : "",
                    stranger != NULL ? " does" : "");
}

/* ---- any ------------------------------------------------------------------------------------- */

tdm_status tdmi_codec_refuse_unknown(const uint8_t *bytes, size_t length_bytes, tdm_error *err)
{
    const char *text = (const char *)bytes;
    if (length_bytes == 0)
        return TDM_FAIL(err, TDM_E_INPUT, "there are no bytes in it");
    if (begins_with(text, length_bytes, "version https://git-lfs.github.com/spec/"))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it is a Git LFS pointer, not the image itself; git lfs pull in its "
                        "repository fetches the image");
    const char *stranger = stranger_of(text, length_bytes);
    const size_t margin = margin_of(text, length_bytes);
    if (stranger == NULL && margin < length_bytes &&
        (text[margin] == '<' || is_text(text, length_bytes)))
        return refuse_text(text + margin, length_bytes - margin, err);
    return refuse_bytes(bytes, length_bytes, stranger, err);
}
