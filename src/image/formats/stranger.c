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

/* Pages need not be UTF-8, so behind '<' only control characters are none. */
static bool is_markup(const char *text, size_t n)
{
    const size_t end = n < TEXT_BYTES ? n : TEXT_BYTES;
    for (size_t at = 0; at < end; at++)
        if (((uint8_t)text[at] < ' ' && !is_blank(text[at])) || text[at] == 127)
            return false;
    return text[0] == '<';
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

/* The opening brace alone may as well begin a program or a template. */
static bool is_json(const char *text, size_t n)
{
    size_t at = 1;
    if (n == 0 || (text[0] != '{' && text[0] != '['))
        return false;
    while (at < n && is_blank(text[at]))
        at++;
    return at < n && memchr("\"{[}]", text[at], 5) != NULL;
}

/* The word within what is looked at: a drawing or page may begin with comments. */
static bool holds(const char *text, size_t n, const char *word)
{
    const size_t end = n < TEXT_BYTES ? n : TEXT_BYTES;
    for (size_t at = 0; at < end; at++)
        if (begins_with(text + at, end - at, word))
            return true;
    return false;
}

enum kind { PAGE, DRAWING, XML, JSON, PLAIN };

static enum kind kind_of(const char *text, size_t n)
{
    const bool is_xml = begins_with(text, n, "<?xml");
    const bool has_prologue = is_xml || begins_with(text, n, "<!--");
    if (begins_with(text, n, "<svg") || begins_with(text, n, "<!doctype svg") ||
        (has_prologue && holds(text, n, "<svg")))
        return DRAWING;
    if (begins_with(text, n, "<html") || begins_with(text, n, "<!doctype html") ||
        (has_prologue && holds(text, n, "<html")))
        return PAGE;
    return is_xml ? XML : is_json(text, n) ? JSON : PLAIN;
}

static tdm_status refuse_text(const char *text, size_t n, tdm_error *err)
{
    static const char *const words[] = {
        [PAGE] = "a web page: ",
        [DRAWING] = "an SVG drawing: ",
        [XML] = "XML: ",
        [JSON] = "JSON: ",
        [PLAIN] = "",
    };
    const size_t shown = shown_of(text, n);
    const enum kind kind = kind_of(text, n);
    return TDM_FAIL(
        err, TDM_E_INPUT, "it is %stext that begins with '%.*s'%s", words[kind], (int)shown, text,
        kind != DRAWING ? ", perhaps an error message that was saved in place of the image"
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
        (is_markup(text + margin, length_bytes - margin) || is_text(text, length_bytes)))
        return refuse_text(text + margin, length_bytes - margin, err);
    return refuse_bytes(bytes, length_bytes, stranger, err);
}
