/*
 * Where the command speaks. Results go to standard output and are checked: a full device or a
 * closed pipe is a failure like any other. Everything else goes to standard error.
 */
#pragma once

#include "tandem/error.h"
#include <stdbool.h>
#include <stdio.h>

struct tdmi_output {
    FILE *stream;
    int problem; /* errno of the first write that failed, 0 while all went well */
    bool has_color;
};

enum tdmi_style { TDMI_BOLD, TDMI_RED, TDMI_GREEN };

/* Does the stream show colours? Only a terminal that is not dumb does, and only where NO_COLOR is
 * unset or empty (no-color.org). */
bool tdmi_has_color(FILE *stream);
/* Escape sequences that begin a style and end it; "" without colours. */
const char *tdmi_style_begin(bool has_color, enum tdmi_style style);
const char *tdmi_style_end(bool has_color);

/* For people; nothing where out is NULL. %s is quoted as base/text/quote.h says, counts its width
 * in characters, and loses its middle beyond 1,000 bytes. The first failure is kept and later calls
 * do nothing, so callers may check once, at the end. */
void tdmi_print(struct tdmi_output *out, const char *format, ...) TDM_PRINTF(2, 3);
/* A field of CSV, as RFC 4180 quotes: in quotes where it has a comma, a quote (then doubled) or a
 * line end. A line feed stays; other controls are spelled as for people. */
void tdmi_print_field(struct tdmi_output *out, const char *text);
/* For programs: as it is. */
void tdmi_print_raw(struct tdmi_output *out, const char *text);
/* The text in a style; plain where the output has no colours. */
void tdmi_print_styled(struct tdmi_output *out, enum tdmi_style style, const char *text);
/* Print a word of a command that people copy (base/text/shell.h). */
void tdmi_print_word(struct tdmi_output *out, const char *word);
/* "next: COMMAND WORD". */
void tdmi_print_next(struct tdmi_output *out, const char *command, const char *word);
/* The larger of so_far and the columns of name in %s, which count up to most. */
int tdmi_widest(int so_far, const char *name, int most);
/* Flushes, too. TDM_E_FAILED naming the cause when anything written so far was lost. */
tdm_status tdmi_output_check(struct tdmi_output *out, tdm_error *err) TDM_MUST_USE;
/* The last check: what only closing tells (a full network disk). */
tdm_status tdmi_output_close(struct tdmi_output *out, tdm_error *err) TDM_MUST_USE;

/* The width to wrap at: of the terminal, at most 100 and at least 40; 80 elsewhere. */
int tdmi_output_width(const struct tdmi_output *out);
/* Words of text at column indent, wrapped before width. The first line is taken to stand at column
 * already; no newline at the end. */
void tdmi_print_wrapped(struct tdmi_output *out, const char *text, int column, int indent,
                        int width);

/* "12.3 GB", "640 MB" with a decimal prefix; unit may be "B", "B/s", "FLOP/s". */
const char *tdmi_format_amount(double amount, const char *unit, char *text, size_t text_bytes);
/* "32 MiB", "1.5 GiB" with a binary prefix. */
const char *tdmi_format_bytes(double bytes, char *text, size_t text_bytes);

/* The one function that prints an error: "tandem: outermost", causes indented below. At most three
 * lines: what lies between the outermost and the innermost sentence is one; is_whole: a line each.
 */
void tdmi_print_error(const tdm_error *err, bool is_whole);
