/*
 * Checked printing, wrapping and the one place that prints errors.
 */
#include "output.h"
#include "tandem/shell.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void tdmi_print(struct tdmi_output *out, const char *format, ...)
{
    va_list arguments;
    if (out->problem)
        return;
    va_start(arguments, format);
    errno = 0;
    if (vfprintf(out->stream, format, arguments) < 0)
        out->problem = errno ? errno : EIO;
    va_end(arguments);
}

static bool is_control(unsigned char byte)
{
    return byte < 0x20 || byte == 0x7f;
}

/* U+0080 to U+009F: in UTF-8 c2 and a second byte. */
static bool is_high_control(const char *at)
{
    return (unsigned char)at[0] == 0xc2 && (unsigned char)at[1] >= 0x80 &&
           (unsigned char)at[1] < 0xa0;
}

void tdmi_blank_controls(char *text)
{
    for (char *at = text; *at; at++) {
        if (is_high_control(at))
            at[0] = at[1] = ' ';
        else if (is_control((unsigned char)*at))
            *at = ' ';
    }
}

int tdmi_columns(const char *name)
{
    int columns = 0;
    for (const char *at = name; *at; at++)
        columns += ((unsigned char)*at & 0xc0) != 0x80;
    return columns;
}

void tdmi_print_name(struct tdmi_output *out, const char *name, int width)
{
    const int columns = tdmi_columns(name);
    while (*name) {
        char piece[256];
        size_t length = strnlen(name, sizeof piece - 1);
        /* Whole characters only, so that a pair is never judged by its half. */
        while (name[length] && length > 1 && ((unsigned char)name[length] & 0xc0) == 0x80)
            length--;
        memcpy(piece, name, length);
        piece[length] = '\0';
        tdmi_blank_controls(piece);
        tdmi_print(out, "%s", piece);
        name += length;
    }
    if (columns < width)
        tdmi_print(out, "%*s", width - columns, "");
}

void tdmi_print_word(struct tdmi_output *out, const char *word)
{
    char text[TDM_SHELL_WORD_BYTES];
    tdmi_print(out, "%s", tdm_shell_word(word, text, sizeof text));
}

void tdmi_print_next(struct tdmi_output *out, const char *command, const char *word)
{
    tdmi_print(out, "next: %s ", command);
    tdmi_print_word(out, word);
    tdmi_print(out, "\n");
}

static tdm_status explain(const struct tdmi_output *out, tdm_error *err)
{
    if (!out->problem)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_FAILED, "the result could not be written to standard output: %s",
                    strerror(out->problem));
}

tdm_status tdmi_output_check(struct tdmi_output *out, tdm_error *err)
{
    if (!out->problem && fflush(out->stream) != 0)
        out->problem = errno;
    return explain(out, err);
}

tdm_status tdmi_output_close(struct tdmi_output *out, tdm_error *err)
{
    /* fclose reports a failed flush of what is left; the first problem stays the one told. */
    if (fclose(out->stream) != 0 && !out->problem)
        out->problem = errno;
    return explain(out, err);
}

int tdmi_output_width(FILE *stream)
{
    struct winsize window;
    if (!isatty(fileno(stream)) || ioctl(fileno(stream), TIOCGWINSZ, &window) != 0 ||
        window.ws_col == 0)
        return 80;
    return window.ws_col < 40 ? 40 : window.ws_col > 100 ? 100 : window.ws_col;
}

void tdmi_print_wrapped(struct tdmi_output *out, const char *text, int column, int indent,
                        int width)
{
    bool is_line_start = true;
    while (*text) {
        int length = (int)strcspn(text, " ");
        if (!is_line_start && column + 1 + length > width) {
            tdmi_print(out, "\n%*s", indent, "");
            column = indent;
            is_line_start = true;
        }
        tdmi_print(out, "%s%.*s", is_line_start ? "" : " ", length, text);
        column += length + !is_line_start;
        is_line_start = false;
        text += length;
        text += strspn(text, " ");
    }
}

static const char *format_scaled(double amount, double step, const char *const *prefixes,
                                 const char *unit, char *text, size_t text_bytes)
{
    int at = 0;
    while (amount >= step * 0.9995 && prefixes[at + 1]) {
        amount /= step;
        at++;
    }
    snprintf(text, text_bytes, "%.*f %s%s",
             at == 0 || amount >= 100 ? 0
             : amount >= 10           ? 1
                                      : 2,
             amount, prefixes[at], unit);
    return text;
}

const char *tdmi_format_amount(double amount, const char *unit, char *text, size_t text_bytes)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", NULL};
    return format_scaled(amount, 1000, prefixes, unit, text, text_bytes);
}

const char *tdmi_format_bytes(double bytes, char *text, size_t text_bytes)
{
    static const char *const prefixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", NULL};
    return format_scaled(bytes, 1024, prefixes, "B", text, text_bytes);
}

void tdmi_print_error(const tdm_error *err)
{
    char text[TDM_ERROR_FRAMES * (TDM_ERROR_TEXT_BYTES + 64)];
    tdm_error clean = *err;
    for (int i = 0; i < clean.n_frames; i++)
        tdmi_blank_controls(clean.frames[i].text);
    tdm_error_format(&clean, text, sizeof text);
    fprintf(stderr, "tandem: %s", *text ? text : "failed without saying why\n");
}
