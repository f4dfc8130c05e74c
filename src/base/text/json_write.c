/*
 * The JSON writer: text grows at the end, and a small stack remembers which containers are open.
 * The first mistake or failed allocation is kept and makes every later call do nothing.
 */
#include "tandem/json.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "base/text/quote.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { depth_limit = 128 };

struct level {
    bool is_object, has_items;
};

struct tdm_json_writer {
    tdmi_text text;
    int indent;
    int depth; /* containers open */
    struct level levels[depth_limit];
    bool is_complete;
    const char *mistake; /* the first one; static storage */
};

tdm_json_writer *tdm_json_writer_new(int indent)
{
    tdm_json_writer *writer = tdmi_alloc(1, sizeof *writer);
    if (writer)
        writer->indent = indent > 0 ? indent : 0;
    return writer;
}

void tdm_json_writer_free(tdm_json_writer *writer)
{
    if (!writer)
        return;
    tdmi_text_release(&writer->text);
    tdmi_free(writer);
}

static void add(tdm_json_writer *writer, const char *string)
{
    tdmi_text_add(&writer->text, string, strlen(string));
}

static void break_line(tdm_json_writer *writer)
{
    if (writer->indent == 0)
        return;
    add(writer, "\n");
    for (int i = 0; i < writer->depth * writer->indent; i++)
        add(writer, " ");
}

/* A character that cannot stand as it is. What is no UTF-8 becomes U+FFFD; controls, and what
 * reverses the text around it, are escaped, because a person may look at the file in a terminal. */
static void add_escaped(tdm_json_writer *writer, const char *at, size_t length)
{
    static const char names[] = "btnvfr"; /* of 8 to 13; there is no \v in JSON */
    const unsigned char byte = (unsigned char)*at;
    char spelled[TDMI_SPELLED_BYTES];
    if (byte == '"' || byte == '\\') {
        tdmi_text_printf(&writer->text, "\\%c", byte);
    } else if (byte >= 8 && byte <= 13 && byte != 11) {
        tdmi_text_printf(&writer->text, "\\%c", names[byte - 8]);
    } else if (byte < 0x80) {
        tdmi_text_printf(&writer->text, "\\u%04x", (unsigned)byte);
    } else if (length == 1) {
        add(writer, "\xef\xbf\xbd");
    } else {
        tdmi_spell(at, length, spelled);
        add(writer, spelled); /* \u202e */
    }
}

static void add_quoted(tdm_json_writer *writer, const char *string)
{
    size_t room = strlen(string);
    add(writer, "\"");
    while (room > 0) {
        /* As much as needs no change goes in one piece. */
        size_t n_plain = 0, length = 0;
        for (bool is_plain = true; n_plain < room; n_plain += length) {
            length = tdmi_character(string + n_plain, room - n_plain, &is_plain);
            if (!is_plain || string[n_plain] == '"' || string[n_plain] == '\\')
                break;
        }
        tdmi_text_add(&writer->text, string, n_plain);
        string += n_plain;
        room -= n_plain;
        if (room == 0)
            break;
        add_escaped(writer, string, length);
        string += length;
        room -= length;
    }
    add(writer, "\"");
}

/* Write what precedes a value: comma, line, key. False when no value is allowed here. */
static bool can_begin(tdm_json_writer *writer, const char *key)
{
    if (!writer || writer->mistake)
        return false;
    if (writer->depth == 0) {
        if (writer->is_complete)
            writer->mistake = "a second outermost value";
        else if (key)
            writer->mistake = "a key outside an object";
        writer->is_complete = true;
        return !writer->mistake;
    }
    struct level *level = &writer->levels[writer->depth - 1];
    if (level->is_object && !key)
        writer->mistake = "a value without a key in an object";
    else if (!level->is_object && key)
        writer->mistake = "a value with a key in an array";
    if (writer->mistake)
        return false;
    if (level->has_items)
        add(writer, ",");
    level->has_items = true;
    break_line(writer);
    if (key) {
        add_quoted(writer, key);
        add(writer, writer->indent ? ": " : ":");
    }
    return true;
}

static void begin(tdm_json_writer *writer, const char *key, bool is_object)
{
    if (!can_begin(writer, key))
        return;
    if (writer->depth == depth_limit) {
        writer->mistake = "more than 128 containers within each other";
        return;
    }
    add(writer, is_object ? "{" : "[");
    writer->levels[writer->depth++] = (struct level){.is_object = is_object};
}

static void end(tdm_json_writer *writer, bool is_object)
{
    if (!writer || writer->mistake)
        return;
    if (writer->depth == 0 || writer->levels[writer->depth - 1].is_object != is_object) {
        writer->mistake = is_object ? "the end of an object that is not open"
                                    : "the end of an array that is not open";
        return;
    }
    bool has_items = writer->levels[--writer->depth].has_items;
    if (has_items)
        break_line(writer);
    add(writer, is_object ? "}" : "]");
}

void tdm_json_object_begin(tdm_json_writer *writer, const char *key)
{
    begin(writer, key, true);
}

void tdm_json_object_end(tdm_json_writer *writer)
{
    end(writer, true);
}

void tdm_json_array_begin(tdm_json_writer *writer, const char *key)
{
    begin(writer, key, false);
}

void tdm_json_array_end(tdm_json_writer *writer)
{
    end(writer, false);
}

void tdm_json_string(tdm_json_writer *writer, const char *key, const char *value)
{
    if (!can_begin(writer, key))
        return;
    if (value)
        add_quoted(writer, value);
    else
        add(writer, "null");
}

void tdm_json_integer(tdm_json_writer *writer, const char *key, int64_t value)
{
    if (can_begin(writer, key))
        tdmi_text_printf(&writer->text, "%" PRId64, value);
}

void tdm_json_number(tdm_json_writer *writer, const char *key, double value)
{
    char text[32];
    if (!can_begin(writer, key))
        return;
    if (isfinite(value))
        tdmi_text_add(&writer->text, text, tdmi_number_write(value, text));
    else
        add(writer, "null");
}

void tdm_json_bool(tdm_json_writer *writer, const char *key, bool value)
{
    if (can_begin(writer, key))
        add(writer, value ? "true" : "false");
}

void tdm_json_null(tdm_json_writer *writer, const char *key)
{
    if (can_begin(writer, key))
        add(writer, "null");
}

tdm_status tdm_json_finish(tdm_json_writer *writer, const char **text, size_t *length_bytes,
                           tdm_error *err)
{
    *text = NULL;
    if (length_bytes)
        *length_bytes = 0;
    if (!writer || writer->text.is_broken)
        return TDM_FAIL(err, TDM_E_MEMORY, "cannot write JSON: no memory");
    if (writer->mistake)
        return TDM_FAIL(err, TDM_E_BUG, "cannot write JSON: %s", writer->mistake);
    if (writer->depth > 0 || !writer->is_complete)
        return TDM_FAIL(err, TDM_E_BUG,
                        "cannot write JSON: the value is not complete, %d containers are open",
                        writer->depth);
    *text = tdmi_text_string(&writer->text);
    if (length_bytes)
        *length_bytes = writer->text.length_bytes;
    return TDM_OK;
}
