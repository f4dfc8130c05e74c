/* Addresses as people write them, and sockets that listen there. */
#include "serve/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { waiting_most = 128 };

static bool read_port(const char *text, in_port_t *port)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    long number = strtol(text, &end, 10);
    *port = htons((uint16_t)number);
    return *end == '\0' && number <= 65535;
}

/* host is "127.0.0.1", "::1" (out of its brackets) or "localhost". */
static bool read_host(const char *host, struct tdmi_address *address)
{
    if (strcmp(host, "localhost") == 0)
        host = "127.0.0.1";
    if (inet_pton(AF_INET, host, &address->socket.v4.sin_addr) == 1) {
        address->socket.v4.sin_family = AF_INET;
        address->socket_bytes = sizeof address->socket.v4;
        address->is_loopback = ntohl(address->socket.v4.sin_addr.s_addr) >> 24 == 127;
        return true;
    }
    if (inet_pton(AF_INET6, host, &address->socket.v6.sin6_addr) == 1) {
        address->socket.v6.sin6_family = AF_INET6;
        address->socket_bytes = sizeof address->socket.v6;
        address->is_loopback = IN6_IS_ADDR_LOOPBACK(&address->socket.v6.sin6_addr);
        return true;
    }
    return false;
}

tdm_status tdmi_address_read(const char *text, struct tdmi_address *address, tdm_error *err)
{
    char host[64] = "127.0.0.1";
    const char *colon = strrchr(text, ':'), *port_text = colon ? colon + 1 : text;
    in_port_t port = 0;
    bool is_fine = true;
    if (colon) {
        const bool has_brackets = text[0] == '[' && colon > text + 1 && colon[-1] == ']';
        const char *from = text + has_brackets;
        const size_t length = (size_t)(colon - from) - has_brackets;
        is_fine = length > 0 && length < sizeof host &&
                  (has_brackets || memchr(from, ':', length) == NULL);
        if (is_fine)
            snprintf(host, sizeof host, "%.*s", (int)length, from);
    }
    *address = (struct tdmi_address){0};
    if (!is_fine || !read_port(port_text, &port) || !read_host(host, address))
        return TDM_FAIL(
            err, TDM_E_USAGE,
            "'%.100s' is no address to listen at; PORT, ADDRESS:PORT or [ADDRESS]:PORT "
            "with a port up to 65535 is accepted, as in 8080, 127.0.0.1:8080 or [::1]:0",
            text);
    if (address->socket.any.sa_family == AF_INET)
        address->socket.v4.sin_port = port;
    else
        address->socket.v6.sin6_port = port;
    return TDM_OK;
}

void tdmi_address_url(const struct tdmi_address *address, char *url, size_t url_bytes)
{
    char host[INET6_ADDRSTRLEN] = "";
    if (address->socket.any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &address->socket.v4.sin_addr, host, sizeof host);
        snprintf(url, url_bytes, "http://%s:%d/", host, ntohs(address->socket.v4.sin_port));
    } else {
        inet_ntop(AF_INET6, &address->socket.v6.sin6_addr, host, sizeof host);
        snprintf(url, url_bytes, "http://[%s]:%d/", host, ntohs(address->socket.v6.sin6_port));
    }
}

tdm_status tdmi_address_listen(struct tdmi_address *address, int *listener, tdm_error *err)
{
    const int on = 1, family = address->socket.any.sa_family;
    char url[80];
    tdmi_address_url(address, url, sizeof url);
    int made = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made < 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "listening at %s: %s", url, strerror(errno));
    /* A server that is started again must not wait for connections of the last one to be forgotten.
     */
    bool is_fine = setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0;
    if (family == AF_INET6)
        is_fine &= setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) == 0;
    if (!is_fine || bind(made, &address->socket.any, address->socket_bytes) != 0 ||
        listen(made, waiting_most) != 0 ||
        getsockname(made, &address->socket.any, &address->socket_bytes) != 0) {
        const int problem = errno;
        close(made);
        return TDM_FAIL(err, TDM_E_SYSTEM, "listening at %s: %s%s", url, strerror(problem),
                        problem == EADDRINUSE ? "; port 0 takes any that is free" : "");
    }
    *listener = made;
    return TDM_OK;
}
