/*
 * The headers of a request that decide something: who is asked, by whom, and how long the body is.
 * Each may be there once. What a proxy before this server may read in another way than the library
 * that speaks HTTP is refused: the two would not agree where the next request begins, or for whom
 * it is (request smuggling).
 */
#pragma once

#include "serve/http.h"

enum tdmi_header {
    TDMI_HEADER_HOST,
    TDMI_HEADER_ORIGIN,
    TDMI_HEADER_AUTHORIZATION,
    TDMI_HEADER_TYPE,
    TDMI_HEADER_LENGTH,
    TDMI_HEADER_ENCODING,
    TDMI_HEADER_EXPECT,
    TDMI_HEADERS
};

struct tdmi_headers { /* start from a zeroed object; strings are lent */
    const char *values[TDMI_HEADERS];
    const char *twice; /* the name of one that came again */
    bool has_odd_name; /* "Content-Length : 3" is a header to some programs */
    bool has_odd_target;
    char problem[160];
};

/* Does the path or its query, as it came, hold a blank, a control character (also as %00 to %1F and
 * %7F), or a % that begins no escape? Unescaped, "/model%00" would be the string "/model". */
bool tdmi_headers_is_odd_target(const char *target);
/* One after the other, all of a request. */
void tdmi_headers_add(struct tdmi_headers *headers, const char *name, const char *value);
/* Fills what of the head they say; its problem is lent, too. is_old: HTTP/1.0. */
void tdmi_headers_check(struct tdmi_headers *headers, bool is_old, struct tdmi_http_head *head);
