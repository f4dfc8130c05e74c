/* The address of a server: "8080", "127.0.0.1:8080", "[::1]:0", "0.0.0.0:80". */
#pragma once

#include "tandem/error.h"
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

struct tdmi_address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } socket;
    socklen_t socket_bytes;
    bool is_loopback; /* reachable from this machine only */
};

/* A port alone is 127.0.0.1's; "localhost" is that, too. Other names are TDM_E_USAGE,
 * because what they resolve to may change. */
tdm_status tdmi_address_read(const char *text, struct tdmi_address *address,
                             tdm_error *err) TDM_MUST_USE;
/* "http://127.0.0.1:8080/" */
void tdmi_address_url(const struct tdmi_address *address, char *url, size_t url_bytes);

/* Binds and listens; a port of 0 becomes the one that the system chose. */
tdm_status tdmi_address_listen(struct tdmi_address *address, int *listener,
                               tdm_error *err) TDM_MUST_USE;
