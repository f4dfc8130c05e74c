/*
 * A body is boundary, part, boundary, part, …, boundary and "--". A boundary stands at the start of
 * a line; the line end before it belongs to it. A part is lines of headers, an empty line, bytes.
 */
#include "serve/multipart.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

enum { boundary_most = 70 }; /* RFC 2046 */

struct delimiter {
    char text[boundary_most + 5]; /* "\r\n--" and the boundary */
    size_t length;
};

struct rest { /* what is not read yet */
    char *at, *end;
};

/* ---- the boundary --------------------------------------------------------------------------- */

static bool is_boundary_character(char c)
{
    return c != '\0' && (strchr("'()+_,-./:=? ", c) || (c >= '0' && c <= '9') ||
                         (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'));
}

/* Behind "boundary=" of the next parameter of that name; NULL: there is none. */
static const char *next_boundary(const char *at)
{
    static const char name[] = "boundary=";
    while ((at = strchr(at, ';')) != NULL) {
        at += 1 + strspn(at + 1, " \t");
        if (strncasecmp(at, name, sizeof name - 1) == 0)
            return at + sizeof name - 1;
    }
    return NULL;
}

/* The parameter's value, quoted or not, up to room - 1 bytes; 0: there is none, there are two, or
 * it is too long. */
static size_t find_boundary(const char *content_type, char *text, size_t room)
{
    const char *at = next_boundary(content_type);
    size_t length = 0;
    if (!at || next_boundary(at))
        return 0;
    const bool is_quoted = *at == '"';
    at += is_quoted;
    while (*at && (is_quoted ? *at != '"' : !strchr("; \t", *at)) && length < room)
        text[length++] = *at++;
    return length == room ? 0 : length;
}

static tdm_status read_boundary(const char *content_type, struct delimiter *delimiter,
                                tdm_error *err)
{
    memcpy(delimiter->text, "\r\n--", 4);
    char *text = delimiter->text + 4;
    const size_t length = find_boundary(content_type, text, boundary_most + 1);
    bool is_fine = length > 0 && text[length - 1] != ' ';
    for (size_t i = 0; i < length; i++)
        is_fine &= is_boundary_character(text[i]);
    if (!is_fine)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the multipart body has no boundary of 1 to %d characters in its "
                        "Content-Type, or two",
                        boundary_most);
    delimiter->length = length + 4;
    return TDM_OK;
}

/* ---- headers of a part ----------------------------------------------------------------------- */

/* The next line without its end, terminated in place; NULL: there is no whole one. */
static char *take_line(struct rest *rest)
{
    char *line = rest->at;
    char *stop =
        rest->at < rest->end ? memmem(rest->at, (size_t)(rest->end - rest->at), "\r\n", 2) : NULL;
    if (!stop)
        return NULL;
    *stop = '\0';
    rest->at = stop + 2;
    return line;
}

/* A parameter of a header's line, unquoted in place behind itself; NULL: not there. */
static char *find_parameter(char *line, const char *name)
{
    const size_t length = strlen(name);
    for (char *at = line; *at; at++) {
        if (*at == '"') { /* a quoted value: not to be searched */
            at = strchr(at + 1, '"');
            if (!at)
                return NULL;
            continue;
        }
        if (*at != ';')
            continue;
        char *found = at + 1 + strspn(at + 1, " \t");
        if (strncasecmp(found, name, length) != 0 || found[length] != '=')
            continue;
        return found + length + 1;
    }
    return NULL;
}

static bool has_twice(char *line, const char *name)
{
    char *first = find_parameter(line, name);
    return first && find_parameter(first, name);
}

/* Undo the browsers' escapes of the three bytes that a quoted name cannot have (HTML, "multipart
 * form data"); any other % is literal, and so is a backslash. */
static char escaped(const char *at)
{
    static const struct {
        char text[4], byte;
    } escapes[] = {{"%22", '"'}, {"%0D", '\r'}, {"%0A", '\n'}};
    for (int i = 0; i < 3; i++) {
        if (strncmp(at, escapes[i].text, 3) == 0)
            return escapes[i].byte;
    }
    return '\0';
}

static char *unquote(char *value)
{
    if (!value)
        return NULL;
    if (*value != '"') {
        value[strcspn(value, "; \t")] = '\0';
        return value;
    }
    char *from = value + 1, *to = value;
    while (*from && *from != '"') {
        const char byte = escaped(from);
        *to++ = byte ? byte : *from;
        from += byte ? 3 : 1;
    }
    *to = '\0';
    return value;
}

static tdm_status read_head(struct rest *rest, struct tdmi_form_part *part, int number,
                            tdm_error *err)
{
    static const char disposition[] = "content-disposition:";
    static const char encoding[] = "content-transfer-encoding:";
    bool has_disposition = false, has_encoding = false;
    part->name = "";
    for (;;) {
        char *line = take_line(rest);
        if (!line)
            return TDM_FAIL(err, TDM_E_INPUT, "part %d of the body ends before its head does",
                            number);
        if (strlen(line) != (size_t)(rest->at - 2 - line))
            return TDM_FAIL(err, TDM_E_INPUT, "the head of part %d of the body has a NUL in it",
                            number);
        if (*line == '\0') {
            *line = '\r'; /* an empty part's delimiter begins with this line's end */
            break;
        }
        const bool is_encoding = strncasecmp(line, encoding, sizeof encoding - 1) == 0;
        const bool is_disposition = strncasecmp(line, disposition, sizeof disposition - 1) == 0;
        if ((is_encoding && has_encoding) || (is_disposition && has_disposition) ||
            (is_disposition && (has_twice(line, "name") || has_twice(line, "filename"))))
            return TDM_FAIL(err, TDM_E_INPUT,
                            "part %d of the body has its name, its encoding or its "
                            "Content-Disposition twice",
                            number);
        has_encoding |= is_encoding;
        has_disposition |= is_disposition;
        if (is_encoding) {
            const char *how = line + sizeof encoding - 1;
            how += strspn(how, " \t");
            if (strcasecmp(how, "binary") != 0 && strcasecmp(how, "8bit") != 0 &&
                strcasecmp(how, "7bit") != 0)
                return TDM_FAIL(err, TDM_E_INPUT,
                                "part %d of the body is encoded as '%.40s'; bytes as they are are "
                                "accepted",
                                number, how);
        }
        if (!is_disposition)
            continue;
        char *file = find_parameter(line, "filename"), *field = find_parameter(line, "name");
        file = unquote(file);
        part->name = file && *file ? file : field ? unquote(field) : "";
    }
    if (!has_disposition)
        return TDM_FAIL(err, TDM_E_INPUT, "part %d of the body has no Content-Disposition", number);
    return TDM_OK;
}

/* ---- parts ------------------------------------------------------------------------------------
 */

/* The next delimiter, or NULL. */
static char *find_delimiter(const struct rest *rest, const struct delimiter *delimiter)
{
    return memmem(rest->at, (size_t)(rest->end - rest->at), delimiter->text, delimiter->length);
}

/* Behind a delimiter: "--" ends the body, else blanks and the end of the line. */
static bool pass_delimiter(struct rest *rest, bool *is_last)
{
    *is_last = rest->end - rest->at >= 2 && memcmp(rest->at, "--", 2) == 0;
    if (*is_last)
        return true;
    while (rest->at < rest->end && (*rest->at == ' ' || *rest->at == '\t'))
        rest->at++;
    if (rest->end - rest->at < 2 || memcmp(rest->at, "\r\n", 2) != 0)
        return false;
    rest->at += 2;
    return true;
}

/* The first one may begin the body, without a line end before it. */
static bool find_first(struct rest *rest, const struct delimiter *delimiter)
{
    const size_t length = delimiter->length - 2;
    if ((size_t)(rest->end - rest->at) >= length &&
        memcmp(rest->at, delimiter->text + 2, length) == 0) {
        rest->at += length;
        return true;
    }
    char *found = find_delimiter(rest, delimiter);
    if (!found)
        return false;
    rest->at = found + delimiter->length;
    return true;
}

/* From behind the delimiter to behind the next. */
static tdm_status read_part(struct rest *rest, const struct delimiter *delimiter, int number,
                            struct tdmi_form_part *part, tdm_error *err)
{
    TDM_TRY(read_head(rest, part, number, err), err, "reading the body");
    struct rest from = {rest->at - 2, rest->end};
    char *stop = find_delimiter(&from, delimiter);
    if (!stop)
        return TDM_FAIL(err, TDM_E_INPUT, "part %d of the body does not end with the boundary",
                        number);
    part->bytes = rest->at;
    part->length_bytes = stop < rest->at ? 0 : (size_t)(stop - rest->at);
    rest->at = stop + delimiter->length;
    return TDM_OK;
}

tdm_status tdmi_multipart_read(const char *content_type, char *body, size_t length_bytes,
                               struct tdmi_form_part *parts, int room, int *n_parts, tdm_error *err)
{
    struct delimiter delimiter;
    struct rest rest = {body, body + length_bytes};
    bool is_last = false;
    *n_parts = 0;
    TDM_TRY(read_boundary(content_type, &delimiter, err), err, "reading the body");
    if (!find_first(&rest, &delimiter))
        return TDM_FAIL(err, TDM_E_INPUT, "the boundary of the Content-Type is not in the body");
    for (;;) {
        if (!pass_delimiter(&rest, &is_last))
            return TDM_FAIL(err, TDM_E_INPUT,
                            "the body continues behind boundary %d where a line should end",
                            *n_parts + 1);
        if (is_last)
            return TDM_OK;
        if (*n_parts == room)
            return TDM_FAIL(err, TDM_E_INPUT, "the body has more than %d parts", room);
        TDM_TRY(read_part(&rest, &delimiter, *n_parts + 1, &parts[*n_parts], err), err,
                "reading the body");
        ++*n_parts;
    }
}
