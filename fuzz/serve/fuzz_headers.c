/*
 * Headers: the first byte says HTTP/1.0 or 1.1, then lines of name, colon, value. What is let
 * through has one host, one length and one encoding at most; what is not has a sentence.
 */
#include "fuzz.h"
#include "serve/headers.h"

#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    struct tdmi_headers headers = {0};
    struct tdmi_http_head head = {0};
    int n_lengths = 0, n_encodings = 0, n_hosts = 0;
    if (length_bytes == 0)
        return 0;
    char *text = malloc(length_bytes);
    if (!text)
        return 0;
    memcpy(text, bytes + 1, length_bytes - 1);
    text[length_bytes - 1] = '\0';
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if (!tdmi_headers_is_odd_target(line) && strpbrk(line, " \t\r\v\x1f\x7f"))
            abort();
        char *value = strchr(line, ':');
        if (value)
            *value++ = '\0';
        tdmi_headers_add(&headers, line, value ? value : "");
        n_hosts += strcasecmp(line, "Host") == 0;
        n_lengths += strcasecmp(line, "Content-Length") == 0;
        n_encodings += strcasecmp(line, "Transfer-Encoding") == 0;
    }
    const bool is_old = bytes[0] == '0';
    tdmi_headers_check(&headers, is_old, &head);
    if ((head.problem_status == 0) != (head.problem == NULL))
        abort();
    if (head.problem && *head.problem == '\0')
        abort();
    if (!head.problem && (n_lengths + n_encodings > 1 || n_hosts > 1 || (n_hosts == 0 && !is_old) ||
                          (n_encodings == 1) != (head.length_bytes == -1)))
        abort();
    free(text);
    return 0;
}
