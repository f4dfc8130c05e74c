/*
 * Forms: the first line is the Content-Type, the rest the body. Every part lies in the body, behind
 * the one before it, and its name ends there too.
 */
#include "fuzz.h"
#include "serve/multipart.h"

enum { MOST = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    char type[256];
    const uint8_t *line = length_bytes ? memchr(bytes, '\n', length_bytes) : NULL;
    const size_t type_bytes = line ? (size_t)(line - bytes) : 0;
    if (!line || type_bytes >= sizeof type)
        return 0;
    memcpy(type, bytes, type_bytes);
    type[type_bytes] = '\0';
    const size_t body_bytes = length_bytes - type_bytes - 1;
    char *body = malloc(body_bytes ? body_bytes : 1);
    if (!body)
        return 0;
    memcpy(body, line + 1, body_bytes);
    struct tdmi_form_part parts[MOST];
    tdm_error err = {0};
    int n = 0;
    if (tdmi_multipart_read(type, body, body_bytes, parts, MOST, &n, &err) == TDM_OK) {
        const char *behind = body;
        for (int i = 0; i < n; i++) {
            if (parts[i].bytes < behind || parts[i].bytes > body + body_bytes)
                abort();
            behind = parts[i].bytes + parts[i].length_bytes;
            if (behind > body + body_bytes || strlen(parts[i].name) > body_bytes)
                abort();
        }
    } else if (tdm_error_sentence(&err, 0)[0] == '\0') {
        abort();
    }
    free(body);
    return 0;
}
