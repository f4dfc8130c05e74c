/*
 * Checked printing, wrapping and the one place that prints errors.
 */
#include "cli/output.h"
#include "base/text/quote.h"
#include "base/text/shell.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { longest_name = 1000 }; /* bytes; a message is not longer either */

/* ---- colours ---------------------------------------------------------------------------- */

bool tdmi_has_color(FILE *stream)
{
    const char *forbidden = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return !(forbidden && *forbidden) && terminal && strcmp(terminal, "dumb") != 0 &&
           isatty(fileno(stream));
}

const char *tdmi_style_begin(bool has_color, enum tdmi_style style)
{
    static const char *const codes[] = {
        [TDMI_BOLD] = "\033[1m", [TDMI_RED] = "\033[1;31m", [TDMI_GREEN] = "\033[32m"};
    return has_color ? codes[style] : "";
}

const char *tdmi_style_end(bool has_color)
{
    return has_color ? "\033[0m" : "";
}

/* ---- printing --------------------------------------------------------------------------- */

/* Pieces on their way to a stream, a block at a time. */
struct block {
    struct tdmi_output *out;
    size_t length;
    char bytes[512];
};

static void flush_block(struct block *block)
{
    errno = 0;
    if (!block->out->problem &&
        fwrite(block->bytes, 1, block->length, block->out->stream) != block->length)
        block->out->problem = errno ? errno : EIO;
    block->length = 0;
}

static void put_piece(void *to, const char *piece, size_t n_bytes)
{
    struct block *block = to;
    if (block->length + n_bytes > sizeof block->bytes)
        flush_block(block);
    memcpy(block->bytes + block->length, piece, n_bytes);
    block->length += n_bytes;
}

static void print(struct tdmi_output *out, size_t most_bytes, const char *format, va_list arguments)
{
    struct block block = {.out = out};
    if (!out || out->problem)
        return;
    tdmi_quote_pieces(put_piece, &block, most_bytes, format, arguments);
    flush_block(&block);
}

void tdmi_print(struct tdmi_output *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print(out, longest_name, format, arguments);
    va_end(arguments);
}

void tdmi_print_raw(struct tdmi_output *out, const char *text)
{
    if (!out || out->problem)
        return;
    errno = 0;
    if (fputs(text, out->stream) == EOF)
        out->problem = errno ? errno : EIO;
}

void tdmi_print_styled(struct tdmi_output *out, enum tdmi_style style, const char *text)
{
    tdmi_print_raw(out, tdmi_style_begin(out && out->has_color, style));
    tdmi_print(out, "%s", text);
    tdmi_print_raw(out, tdmi_style_end(out && out->has_color));
}

static void TDM_PRINTF(2, 3) print_whole(struct tdmi_output *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print(out, SIZE_MAX, format, arguments);
    va_end(arguments);
}

void tdmi_print_field(struct tdmi_output *out, const char *text)
{
    const bool is_quoted = strpbrk(text, ",\"\r\n") != NULL;
    tdmi_print_raw(out, is_quoted ? "\"" : "");
    while (*text) {
        const size_t n = strcspn(text, "\"\n");
        print_whole(out, "%.*s", (int)n, text);
        text += n;
        if (*text)
            tdmi_print_raw(out, *text++ == '"' ? "\"\"" : "\n");
    }
    tdmi_print_raw(out, is_quoted ? "\"" : "");
}

static void count_columns(void *to, const char *piece, size_t n_bytes)
{
    int *columns = to;
    for (size_t i = 0; i < n_bytes; i++)
        *columns += ((unsigned char)piece[i] & 0xc0) != 0x80;
}

static int TDM_PRINTF(1, 2) columns_of(const char *format, ...)
{
    int columns = 0;
    va_list arguments;
    va_start(arguments, format);
    tdmi_quote_pieces(count_columns, &columns, longest_name, format, arguments);
    va_end(arguments);
    return columns;
}

int tdmi_widest(int so_far, const char *name, int most)
{
    const int columns = columns_of("%s", name);
    return columns <= so_far ? so_far : columns < most ? columns : most;
}

void tdmi_print_word(struct tdmi_output *out, const char *word)
{
    char text[TDMI_SHELL_WORD_BYTES];
    tdmi_print_raw(out, tdmi_shell_word(word, text, sizeof text));
}

void tdmi_print_next(struct tdmi_output *out, const char *command, const char *word)
{
    tdmi_print_styled(out, TDMI_BOLD, "next:");
    tdmi_print(out, " %s ", command);
    tdmi_print_word(out, word);
    tdmi_print(out, "\n");
}

static tdm_status explain(const struct tdmi_output *out, tdm_error *err)
{
    if (!out || !out->problem)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_FAILED, "the result could not be written to standard output: %s",
                    strerror(out->problem));
}

tdm_status tdmi_output_check(struct tdmi_output *out, tdm_error *err)
{
    if (out && !out->problem && fflush(out->stream) != 0)
        out->problem = errno;
    return explain(out, err);
}

tdm_status tdmi_output_close(struct tdmi_output *out, tdm_error *err)
{
    /* fclose reports a failed flush of what is left; the first problem is the one reported. */
    if (fclose(out->stream) != 0 && !out->problem)
        out->problem = errno;
    return explain(out, err);
}

int tdmi_output_width(const struct tdmi_output *out)
{
    struct winsize window;
    if (!out || ioctl(fileno(out->stream), TIOCGWINSZ, &window) != 0 || window.ws_col == 0)
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

void tdmi_print_error(const tdm_error *err, bool is_whole)
{
    const bool has_color = tdmi_has_color(stderr);
    const int n = err->n_frames;
    char text[TDM_ERROR_TEXT_BYTES + TDM_ERROR_FRAMES * 40];
    size_t used = 0;
    for (int i = n - 1, depth = 0; i >= 0 && used < sizeof text; i--) {
        /* All between the outermost and the innermost sentence stands in one line. */
        const bool is_joined = !is_whole && n > 3 && i > 1 && i < n - 1;
        const bool is_line_begun = !is_whole && n > 3 && i > 0 && i < n - 2;
        used += (size_t)snprintf(text + used, sizeof text - used, "%*s%s%s%s",
                                 is_line_begun ? 0 : 2 * depth, "",
                                 depth && !is_line_begun ? "because: " : "",
                                 tdm_error_sentence(err, i), is_joined ? ": " : "\n");
        depth += !is_joined;
    }
    /* In one call, so that the errors of several processes do not mix. */
    fprintf(stderr, "%standem:%s %s", tdmi_style_begin(has_color, TDMI_RED),
            tdmi_style_end(has_color), n > 0 ? text : "failed without saying why\n");
}
