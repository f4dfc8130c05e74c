/* RFC 9110 and 9112 leave a server the choice to be kind in most of this; it is not. */
#include "serve/headers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const names[TDMI_HEADERS] = {
    [TDMI_HEADER_HOST] = "Host",
    [TDMI_HEADER_ORIGIN] = "Origin",
    [TDMI_HEADER_AUTHORIZATION] = "Authorization",
    [TDMI_HEADER_TYPE] = "Content-Type",
    [TDMI_HEADER_LENGTH] = "Content-Length",
    [TDMI_HEADER_ENCODING] = "Transfer-Encoding",
    [TDMI_HEADER_EXPECT] = "Expect",
};

static bool is_name(const char *text)
{
    bool is_fine = *text != '\0';
    for (; *text; text++)
        is_fine &= *text > ' ' && *text <= '~' && !strchr("\"(),/:;<=>?@[\\]{}", *text);
    return is_fine;
}

static bool is_control(int byte)
{
    return byte < ' ' || byte == 0x7f;
}

static int hex_digit(char c)
{
    const char *digits = "0123456789abcdef0123456789ABCDEF", *at = c ? strchr(digits, c) : NULL;
    return at ? (int)((at - digits) % 16) : -1;
}

bool tdmi_headers_is_odd_target(const char *target)
{
    for (const char *at = target; *at; at++) {
        if (*at == ' ' || is_control((unsigned char)*at))
            return true;
        if (*at != '%')
            continue;
        const int high = hex_digit(at[1]), low = high < 0 ? -1 : hex_digit(at[2]);
        if (low < 0 || is_control(16 * high + low))
            return true;
        at += 2;
    }
    return false;
}

void tdmi_headers_add(struct tdmi_headers *headers, const char *name, const char *value)
{
    headers->has_odd_name |= !is_name(name);
    for (int i = 0; i < TDMI_HEADERS; i++) {
        if (strcasecmp(name, names[i]) != 0)
            continue;
        if (headers->values[i])
            headers->twice = names[i];
        headers->values[i] = value;
    }
}

/* 0, or the status that goes with the sentence in problem. */
static int find_problem(struct tdmi_headers *headers, bool is_old)
{
    const char *encoding = headers->values[TDMI_HEADER_ENCODING];
    char *problem = headers->problem;
    const size_t room = sizeof headers->problem;
    if (headers->has_odd_target)
        snprintf(problem, room,
                 "the path or an argument has a blank, a control character, or a %% without two "
                 "hexadecimal digits behind it");
    else if (headers->twice)
        snprintf(problem, room, "the header %s is there twice", headers->twice);
    else if (headers->has_odd_name)
        snprintf(problem, room, "the name of a header has a character that none may have");
    else if (!headers->values[TDMI_HEADER_HOST] && !is_old)
        snprintf(problem, room, "the header Host is missing");
    else if (encoding && headers->values[TDMI_HEADER_LENGTH])
        snprintf(problem, room, "Content-Length and Transfer-Encoding exclude each other");
    else if (encoding && is_old)
        snprintf(problem, room, "HTTP/1.0 has no Transfer-Encoding");
    else if (encoding && strcasecmp(encoding, "chunked") != 0) {
        snprintf(problem, room, "the body comes as '%.40s'; chunked is accepted", encoding);
        return 501;
    }
    return *problem ? 400 : 0;
}

/* The layer has refused lengths that are no numbers. */
static int64_t length_of(const struct tdmi_headers *headers)
{
    const char *length = headers->values[TDMI_HEADER_LENGTH];
    if (headers->values[TDMI_HEADER_ENCODING])
        return -1;
    return length ? strtoll(length, NULL, 10) : 0;
}

void tdmi_headers_check(struct tdmi_headers *headers, bool is_old, struct tdmi_http_head *head)
{
    const char *expect = headers->values[TDMI_HEADER_EXPECT];
    head->host = headers->values[TDMI_HEADER_HOST];
    head->origin = headers->values[TDMI_HEADER_ORIGIN];
    head->authorization = headers->values[TDMI_HEADER_AUTHORIZATION];
    head->content_type = headers->values[TDMI_HEADER_TYPE];
    head->length_bytes = length_of(headers);
    head->wants_permission = expect && strcasecmp(expect, "100-continue") == 0;
    head->problem_status = find_problem(headers, is_old);
    head->problem = head->problem_status ? headers->problem : NULL;
}
