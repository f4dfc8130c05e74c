/*
 * Every connection begins with a greeting from the side that called. Whoever greets wrongly is told
 * why and sent away: a port scanner ends no job, but a rank of another version does, because nobody
 * else will come in its place.
 */
#include "dist/tcp_join.h"
#include "base/clock.h"
#include "tandem/log.h"
#include "tandem/api.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { second_ns = 1000000000, retry_ns = 50 * 1000000, backlog = 1024, most_port = 65535 };
static const int64_t greet_ns = 5 * (int64_t)second_ns; /* for a greeting, once connected */

struct greeting {
    char magic[16]; /* "tandem rank 1" */
    char version[32];
    char token[128];
    int32_t rank, world;
    struct tdmi_tcp_host host;
};
static const char magic[16] = "tandem rank 1";

struct join {
    const struct tdmi_launch *launch;
    int64_t until_ns;
    int listener;
    int *sockets;
    struct tdmi_tcp_host *hosts;
};

/* ---- bytes with a deadline ------------------------------------------------------------------- */

static bool is_ready(int fd, short events, int64_t until_ns)
{
    const int64_t left_ns = until_ns - tdmi_clock_ns();
    struct pollfd one = {.fd = fd, .events = events};
    if (left_ns <= 0)
        return false;
    return poll(&one, 1, (int)(left_ns / 1000000) + 1) > 0;
}

static bool write_all(int fd, const void *bytes, size_t n, int64_t until_ns)
{
    const char *at = bytes;
    while (n > 0 && is_ready(fd, POLLOUT, until_ns)) {
        const ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        at += sent;
        n -= (size_t)sent;
    }
    return n == 0;
}

static bool read_all(int fd, void *bytes, size_t n, int64_t until_ns)
{
    char *at = bytes;
    while (n > 0 && is_ready(fd, POLLIN, until_ns)) {
        const ssize_t got = recv(fd, at, n, 0);
        if (got <= 0)
            return false;
        at += got;
        n -= (size_t)got;
    }
    return n == 0;
}

/* ---- sockets --------------------------------------------------------------------------------- */

static void close_socket(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* A cut line is noticed within the deadline, and small messages leave at once. */
static void set_options(int fd, double deadline)
{
    const int yes = 1, ms = (int)(1000.0 * deadline);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
}

static tdm_status find_addresses(const char *host, int port, struct addrinfo **found,
                                 tdm_error *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    const int problem = getaddrinfo(host, service, &hints, found);
    if (problem != 0)
        return TDM_FAIL(err, TDM_E_PEER, "the host of rank 0, '%s': %s", host,
                        gai_strerror(problem));
    return TDM_OK;
}

/* An address with another port. */
static struct sockaddr_storage at_port(const struct sockaddr *of, socklen_t length, int port)
{
    struct sockaddr_storage address = {0};
    memcpy(&address, of, length);
    if (address.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)(void *)&address)->sin6_port = htons((uint16_t)port);
    else
        ((struct sockaddr_in *)(void *)&address)->sin_port = htons((uint16_t)port);
    return address;
}

/* Ports on which rank 0 may listen, as a number after the last one. */
static int end_of_ports(const struct tdmi_launch *launch)
{
    const int end = launch->port + (launch->n_ports > 0 ? launch->n_ports : 1);
    return end < most_port + 1 ? end : most_port + 1;
}

/* -1: errno says why. */
static int listen_on(const struct sockaddr *of, socklen_t length, int port)
{
    const struct sockaddr_storage address = at_port(of, length, port);
    const int yes = 1;
    int fd = socket(of->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, (const struct sockaddr *)&address, length) == 0 && listen(fd, backlog) == 0)
        return fd;
    const int problem = errno;
    close(fd);
    errno = problem;
    return -1;
}

/* On the address that the others were given, which is one of this host. */
static tdm_status listen_as_first(struct join *join, tdm_error *err)
{
    const struct tdmi_launch *launch = join->launch;
    struct addrinfo *found;
    int problem = 0;
    TDMI_TRY(find_addresses(launch->host, launch->port, &found, err));
    for (int port = launch->port; port < end_of_ports(launch); port++)
        for (const struct addrinfo *it = found; it && join->listener < 0; it = it->ai_next) {
            join->listener = listen_on(it->ai_addr, it->ai_addrlen, port);
            problem = errno;
        }
    freeaddrinfo(found);
    if (join->listener >= 0)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_SYSTEM,
                    "listening on %s, port %d, for the other ranks: %s; TANDEM_ADDRESS names a "
                    "free port on the host of rank 0",
                    launch->host, launch->port, strerror(problem));
}

/* The address and port of a socket, in digits. */
static tdm_status name_socket(int fd, struct sockaddr_storage *address, socklen_t *length,
                              struct tdmi_tcp_host *host, tdm_error *err)
{
    char port[16];
    *length = sizeof *address;
    if (getsockname(fd, (struct sockaddr *)address, length) != 0 ||
        getnameinfo((struct sockaddr *)address, *length, host->address, sizeof host->address, port,
                    sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "finding the own address: %s", strerror(errno));
    host->port = (int)strtol(port, NULL, 10);
    return TDM_OK;
}

/* On any port of the address that reaches rank 0. */
static tdm_status listen_as_other(struct join *join, struct tdmi_tcp_host *mine, tdm_error *err)
{
    struct sockaddr_storage address;
    socklen_t length;
    TDMI_TRY(name_socket(join->sockets[0], &address, &length, mine, err));
    join->listener = listen_on((struct sockaddr *)&address, length, 0);
    if (join->listener < 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "listening on %s for the other ranks: %s", mine->address,
                        strerror(errno));
    return name_socket(join->listener, &address, &length, mine, err);
}

static int call_once(const struct addrinfo *to, int port, int *problem)
{
    const struct sockaddr_storage address = at_port(to->ai_addr, to->ai_addrlen, port);
    const int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, to->ai_addrlen) == 0)
        return fd;
    *problem = errno;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* A rank may come before the one that it calls. end_port: after the last one to try. */
static tdm_status call(const struct join *join, int rank, const char *host, int port, int end_port,
                       int *fd, tdm_error *err)
{
    static const struct timespec retry = {.tv_nsec = retry_ns};
    struct addrinfo *found;
    int problem = 0;
    TDMI_TRY(find_addresses(host, port, &found, err));
    *fd = -1;
    while (*fd < 0) {
        for (int at = port; at < end_port; at++)
            for (const struct addrinfo *it = found; it && *fd < 0; it = it->ai_next)
                *fd = call_once(it, at, &problem);
        if (*fd >= 0 || tdmi_clock_ns() > join->until_ns)
            break;
        (void)nanosleep(&retry, NULL);
    }
    freeaddrinfo(found);
    if (*fd >= 0) {
        set_options(*fd, join->launch->deadline);
        return TDM_OK;
    }
    return TDM_FAIL(err, TDM_E_PEER, "calling rank %d at %s, port %d, for %g seconds: %s", rank,
                    host, port, join->launch->deadline, strerror(problem));
}

/* ---- greetings ------------------------------------------------------------------------------- */

static tdm_status greet(const struct join *join, int rank, int fd, const struct tdmi_tcp_host *mine,
                        tdm_error *err)
{
    struct greeting greeting = {.rank = join->launch->rank, .world = join->launch->world};
    memcpy(greeting.magic, magic, sizeof magic);
    snprintf(greeting.version, sizeof greeting.version, "%s", tdm_version());
    snprintf(greeting.token, sizeof greeting.token, "%s", join->launch->token);
    greeting.host = *mine;
    if (write_all(fd, &greeting, sizeof greeting, join->until_ns))
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_PEER, "rank %d did not take the greeting", rank);
}

/* Reason to refuse a greeting; NULL: none. is_fatal: it is one of this job. */
static const char *objection(const struct join *join, const struct greeting *it, bool *is_fatal)
{
    const struct tdmi_launch *launch = join->launch;
    *is_fatal = false;
    if (memcmp(it->magic, magic, sizeof magic) != 0)
        return "it is no rank of tandem";
    if (strncmp(it->token, launch->token, sizeof it->token) != 0)
        return "its TANDEM_TOKEN is another";
    *is_fatal = true;
    if (strncmp(it->version, tdm_version(), sizeof it->version) != 0)
        return "it is of another version of tandem";
    if (it->world != launch->world)
        return "it was started for another number of ranks";
    if (it->rank <= launch->rank || it->rank >= launch->world || join->sockets[it->rank] >= 0)
        return "its rank is taken, or was to be called from here";
    return NULL;
}

static int first_missing(const struct join *join, int first)
{
    while (first < join->launch->world && join->sockets[first] >= 0)
        first++;
    return first;
}

/* One caller, who may be anybody. */
static tdm_status admit(struct join *join, int fd, tdm_error *err)
{
    struct greeting greeting;
    const int64_t soon_ns = tdmi_clock_ns() + greet_ns;
    bool is_fatal = false;
    const char *why = "it did not greet";
    if (read_all(fd, &greeting, sizeof greeting,
                 soon_ns < join->until_ns ? soon_ns : join->until_ns))
        why = objection(join, &greeting, &is_fatal);
    if (!why) {
        greeting.host.name[sizeof greeting.host.name - 1] = '\0';
        greeting.host.address[sizeof greeting.host.address - 1] = '\0';
        join->hosts[greeting.rank] = greeting.host;
        join->sockets[greeting.rank] = fd;
        set_options(fd, join->launch->deadline);
        return TDM_OK;
    }
    close(fd);
    if (is_fatal)
        return TDM_FAIL(err, TDM_E_PEER, "rank %d (tandem %.*s) cannot join: %s", greeting.rank,
                        (int)sizeof greeting.version, greeting.version, why);
    tdm_log(TDM_LOG_WARNING, "a connection for the ranks of this job was refused: %s", why);
    return TDM_OK;
}

/* Until the ranks from `first` on have called. */
static tdm_status admit_all(struct join *join, int first, tdm_error *err)
{
    for (int missing = first_missing(join, first); missing < join->launch->world;
         missing = first_missing(join, first)) {
        const int fd = is_ready(join->listener, POLLIN, join->until_ns)
                           ? accept(join->listener, NULL, NULL)
                           : -1;
        if (fd >= 0)
            TDMI_TRY(admit(join, fd, err));
        else if (tdmi_clock_ns() >= join->until_ns)
            return TDM_FAIL(err, TDM_E_PEER,
                            "rank %d of %d did not come within %g seconds (TANDEM_DEADLINE)",
                            missing, join->launch->world, join->launch->deadline);
    }
    return TDM_OK;
}

/* ---- joining --------------------------------------------------------------------------------- */

static tdm_status join_as_first(struct join *join, struct tdmi_tcp_host *mine, tdm_error *err)
{
    const int world = join->launch->world;
    TDMI_TRY(listen_as_first(join, err));
    join->hosts[0] = *mine;
    TDMI_TRY(admit_all(join, 1, err));
    for (int rank = 1; rank < world; rank++)
        if (!write_all(join->sockets[rank], join->hosts, sizeof *join->hosts * (size_t)world,
                       join->until_ns))
            return TDM_FAIL(err, TDM_E_PEER, "rank %d on %s was lost while the ranks joined", rank,
                            join->hosts[rank].name);
    return TDM_OK;
}

static tdm_status join_as_other(struct join *join, struct tdmi_tcp_host *mine, tdm_error *err)
{
    const struct tdmi_launch *launch = join->launch;
    const int world = launch->world, rank = launch->rank;
    TDMI_TRY(
        call(join, 0, launch->host, launch->port, end_of_ports(launch), &join->sockets[0], err));
    TDMI_TRY(listen_as_other(join, mine, err));
    TDMI_TRY(greet(join, 0, join->sockets[0], mine, err));
    if (!read_all(join->sockets[0], join->hosts, sizeof *join->hosts * (size_t)world,
                  join->until_ns))
        return TDM_FAIL(err, TDM_E_PEER,
                        "rank 0 at %s, port %d, did not answer the greeting: it ended, or refused "
                        "this rank, and says why",
                        launch->host, launch->port);
    for (int lower = 1; lower < rank; lower++) {
        const struct tdmi_tcp_host *host = &join->hosts[lower];
        TDMI_TRY(call(join, lower, host->address, host->port, host->port + 1, &join->sockets[lower],
                      err));
        TDMI_TRY(greet(join, lower, join->sockets[lower], mine, err));
    }
    return admit_all(join, rank + 1, err);
}

tdm_status tdmi_tcp_join(const struct tdmi_launch *launch, int *sockets,
                         struct tdmi_tcp_host *hosts, tdm_error *err)
{
    struct join join = {.launch = launch,
                        .until_ns = tdmi_clock_ns() + (int64_t)(launch->deadline * second_ns),
                        .listener = -1,
                        .sockets = sockets,
                        .hosts = hosts};
    struct tdmi_tcp_host mine = {.name = "this host"};
    for (int i = 0; i < launch->world; i++)
        sockets[i] = -1;
    (void)gethostname(mine.name, sizeof mine.name - 1);
    const tdm_status status =
        launch->rank == 0 ? join_as_first(&join, &mine, err) : join_as_other(&join, &mine, err);
    close_socket(&join.listener);
    for (int i = 0; status != TDM_OK && i < launch->world; i++)
        close_socket(&sockets[i]);
    return status;
}
