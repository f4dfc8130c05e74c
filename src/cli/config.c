/*
 * One pass over the lines, in place. Everything that is not understood is refused with its line: a
 * setting that is silently dropped costs its owner more than one that is complained about.
 */
#include "cli/config.h"
#include "base/scope.h"

#include <stdbool.h>
#include <string.h>

struct reader {
    const char *name;
    struct tdmi_config_visitor visitor;
    const char *section;
    int line;
};

static tdm_status refuse(const struct reader *reader, tdm_error *err, const char *found,
                         const char *accepted)
{
    return TDM_FAIL(err, TDM_E_INPUT, "%s, line %d: found %s where %s belongs", reader->name,
                    reader->line, found, accepted);
}

static bool is_key_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '_' || byte == '-';
}

static char *skip_blanks(char *at)
{
    return at + strspn(at, " \t");
}

static bool is_end(const char *at)
{
    return *at == '\0' || *at == '#';
}

/* Ends the key that starts at *at and moves *at behind it; NULL when there is none. */
static char *take_key(char **at)
{
    char *key = *at, *end = key;
    while (is_key_byte(*end))
        end++;
    if (end == key)
        return NULL;
    *at = end;
    return key;
}

/* "…": unescaped in place. at is behind the opening quote; returns behind the closing one. */
static char *take_basic_string(char *at, char **value)
{
    static const char escapes[] = "\"\\tnr", meanings[] = "\"\\\t\n\r";
    char *to = at;
    *value = at;
    for (; *at != '"'; at++) {
        if (*at == '\\') {
            const char *escape = at[1] ? strchr(escapes, at[1]) : NULL;
            if (!escape)
                return NULL;
            *to++ = meanings[escape - escapes];
            at++;
        } else if (*at == '\0') {
            return NULL;
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
    return at + 1;
}

/* Text up to the closing byte, as it stands. */
static char *take_until(char *at, char closing, char **value)
{
    char *end = strchr(at, closing);
    if (!end)
        return NULL;
    *value = at;
    *end = '\0';
    return end + 1;
}

/* A number or true/false: up to a blank or a comment. */
static char *take_bare(char *at, char **value, char *terminator)
{
    char *end = at;
    while (is_key_byte(*end) || *end == '.' || *end == '+')
        end++;
    *value = at;
    *terminator = *end;
    return end == at ? NULL : end;
}

static tdm_status read_value(struct reader *reader, const char *key, char *at, tdm_error *err)
{
    static const char accepted[] = "a \"text\", a number, true, false or a [list of numbers]";
    char *value = NULL, *end, terminator = '\0';
    if (is_end(at))
        return refuse(reader, err, "nothing", accepted);
    if (*at == '"')
        end = take_basic_string(at + 1, &value);
    else if (*at == '\'')
        end = take_until(at + 1, '\'', &value);
    else if (*at == '[')
        end = take_until(at + 1, ']', &value);
    else
        end = take_bare(at, &value, &terminator);
    if (!end)
        return refuse(reader, err,
                      *at == '"' ? "a text without end or with an unknown \\ escape"
                                 : "a value of another form",
                      accepted);
    /* The terminator of a bare value is still in place: look at what follows, then end it. */
    if (!is_end(skip_blanks(end)))
        return refuse(reader, err, "more after the value", "the end of the line");
    if (terminator)
        *end = '\0';
    return reader->visitor.entry(
        reader->visitor.self,
        &(struct tdmi_config_entry){reader->section, key, value, reader->line}, err);
}

static tdm_status read_section(struct reader *reader, char *at, tdm_error *err)
{
    static const char accepted[] = "[command]";
    at = skip_blanks(at);
    char *section = take_key(&at);
    char *close = skip_blanks(at);
    if (!section || *close != ']' || !is_end(skip_blanks(close + 1)))
        return refuse(reader, err, "a section of another form", accepted);
    *at = '\0';
    reader->section = section;
    return reader->visitor.entry(
        reader->visitor.self, &(struct tdmi_config_entry){section, NULL, NULL, reader->line}, err);
}

static tdm_status read_line(struct reader *reader, char *at, tdm_error *err)
{
    at = skip_blanks(at);
    if (is_end(at))
        return TDM_OK;
    if (*at == '[')
        return read_section(reader, at + 1, err);
    char *key = take_key(&at);
    char *equals = skip_blanks(at);
    if (!key || *equals != '=')
        return refuse(reader, err, "a line of another form", "name = value or [command]");
    *at = '\0';
    return read_value(reader, key, skip_blanks(equals + 1), err);
}

tdm_status tdmi_config_read(char *text, size_t length, const char *name,
                            struct tdmi_config_visitor visitor, tdm_error *err)
{
    struct reader reader = {.name = name, .visitor = visitor, .section = "", .line = 1};
    char *end = text + length;
    *end = '\0';
    for (char *line = text; line < end; reader.line++) {
        char *line_end = memchr(line, '\n', (size_t)(end - line));
        char *next = line_end ? line_end + 1 : end;
        if (!line_end)
            line_end = end;
        if (memchr(line, '\0', (size_t)(line_end - line)))
            return refuse(&reader, err, "a zero byte", "text");
        *line_end = '\0';
        if (line_end > line && line_end[-1] == '\r')
            line_end[-1] = '\0';
        TDMI_TRY(read_line(&reader, line, err));
        line = next;
    }
    return TDM_OK;
}
