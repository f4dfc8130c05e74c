/*
 * Every connection begins with a greeting from the side that called. A connection that greets
 * wrongly, or not at all, is closed, and holds up no other: a port scanner ends no job. A rank of
 * another version does, because nobody else will come in its place.
 *
 * Rank 0 answers a greeting at once with the magic, and later with the list of all ranks. Without
 * the magic somebody else listens there; where rank 0 may have another port, that is called next.
 */
#include "dist/tcp_join.h"
#include "base/clock.h"
#include "tandem/log.h"
#include "tandem/api.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { second_ns = 1000000000, retry_ns = 50 * 1000000, backlog = 1024, most_port = 65535 };
enum { most_callers = 64 }; /* that may be greeting at a time */
/* For a host to take a call; for a greeting, once connected. */
static const int64_t call_ns = 3 * (int64_t)second_ns, greet_ns = 5 * (int64_t)second_ns;

struct greeting {
    char magic[16]; /* "tandem rank 1" */
    char version[32];
    char token[128];
    int32_t rank, world;
    struct tdmi_tcp_host host;
};
static const char magic[16] = "tandem rank 1";

/* A connection whose greeting has not come yet; it may be anybody's. */
struct caller {
    int fd;
    int64_t until_ns;
    struct greeting greeting;
    size_t n; /* bytes of it */
};

struct join {
    const struct tdmi_launch *launch;
    int64_t until_ns;
    int listener;
    int *sockets;
    struct tdmi_tcp_host *hosts;
};

/* ---- bytes with a deadline ------------------------------------------------------------------- */

static bool is_later(int problem)
{
    return problem == EAGAIN || problem == EWOULDBLOCK || problem == EINTR;
}

/* False: the time is over. A signal may end the wait early. */
static bool wait_for(struct pollfd *polls, nfds_t n, int64_t until_ns)
{
    const int64_t left_ns = until_ns - tdmi_clock_ns();
    if (left_ns > 0)
        (void)poll(polls, n, (int)(left_ns / 1000000) + 1);
    return left_ns > 0;
}

static bool write_all(int fd, const void *bytes, size_t n, int64_t until_ns)
{
    const char *at = bytes;
    while (n > 0 && wait_for(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, until_ns)) {
        const ssize_t sent = send(fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && !is_later(errno))
            return false;
        at += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
    }
    return n == 0;
}

static bool read_all(int fd, void *bytes, size_t n, int64_t until_ns)
{
    char *at = bytes;
    while (n > 0 && wait_for(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, until_ns)) {
        const ssize_t got = recv(fd, at, n, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && !is_later(errno)))
            return false;
        at += got > 0 ? got : 0;
        n -= got > 0 ? (size_t)got : 0;
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

/* Small messages leave at once. A cut line is noticed by missing heartbeats: TCP_USER_TIMEOUT would
 * also end the connection to a rank that lives and reads nothing for a while. */
static void set_options(int fd)
{
    const int yes = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
}

static void wait_a_little(void)
{
    static const struct timespec retry = {.tv_nsec = retry_ns};
    (void)nanosleep(&retry, NULL);
}

/* A cluster may give the host its name after this process was started. */
static tdm_status find_addresses(const struct join *join, const char *host, int port,
                                 struct addrinfo **found, tdm_error *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    char service[16];
    int problem;
    snprintf(service, sizeof service, "%d", port);
    while ((problem = getaddrinfo(host, service, &hints, found)) != 0 &&
           tdmi_clock_ns() < join->until_ns)
        wait_a_little();
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

/* The socket of `tandem run`. */
static tdm_status take_listener(struct join *join, tdm_error *err)
{
    const int fd = join->launch->listener;
    int listens = 0;
    socklen_t length = sizeof listens;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || !listens)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "joining the other ranks: TANDEM_LISTENER is '%d', no socket that listens; "
                        "tandem run sets it for rank 0",
                        fd);
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    join->listener = fd;
    return TDM_OK;
}

/* On the address that the others were given, which is one of this host. */
static tdm_status listen_as_first(struct join *join, tdm_error *err)
{
    const struct tdmi_launch *launch = join->launch;
    struct addrinfo *found;
    int problem = 0;
    if (launch->listener > 0)
        return take_listener(join, err);
    TDMI_TRY(find_addresses(join, launch->host, launch->port, &found, err));
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

/* Linux limits the wait of connect by the time for sending. An address that nobody answers at would
 * otherwise hold the call for two minutes. */
static int call_once(const struct addrinfo *to, int port, int64_t until_ns, int *problem)
{
    const struct sockaddr_storage address = at_port(to->ai_addr, to->ai_addrlen, port);
    const int64_t left_ns = until_ns - tdmi_clock_ns();
    const int64_t most_ns = left_ns < call_ns ? left_ns : call_ns;
    const struct timeval most = {.tv_sec = most_ns > 0 ? most_ns / second_ns : 0,
                                 .tv_usec = most_ns > 0 ? most_ns % second_ns / 1000 + 1 : 1};
    const int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, to->ai_addrlen) == 0)
        return fd;
    *problem = errno == EINPROGRESS ? ETIMEDOUT : errno;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* A rank may come before the one that it calls, and where jobs follow each other a name may still
 * lead to the host of the last one: it is looked up again each time. Ports [first, first + n) are
 * tried in a circle. *port: the one to begin with, and then the one that took the call. */
static tdm_status call(const struct join *join, int rank, const char *host, int first, int n,
                       int *port, int *fd, tdm_error *err)
{
    const int begin = *port - first;
    int problem = 0;
    for (*fd = -1; *fd < 0;) {
        struct addrinfo *found;
        TDMI_TRY(find_addresses(join, host, first, &found, err));
        for (int i = 0; i < n && *fd < 0; i++) {
            *port = first + (begin + i) % n;
            for (const struct addrinfo *it = found; it && *fd < 0; it = it->ai_next)
                *fd = call_once(it, *port, join->until_ns, &problem);
        }
        freeaddrinfo(found);
        if (*fd >= 0 || tdmi_clock_ns() > join->until_ns)
            break;
        wait_a_little();
    }
    if (*fd >= 0) {
        set_options(*fd);
        return TDM_OK;
    }
    return TDM_FAIL(err, TDM_E_PEER, "calling rank %d at %s, port %d, for %g seconds: %s", rank,
                    host, first, join->launch->deadline, strerror(problem));
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

/* A host comes over the network: its texts may have no end. */
static void end_texts(struct tdmi_tcp_host *host)
{
    host->name[sizeof host->name - 1] = '\0';
    host->address[sizeof host->address - 1] = '\0';
}

static int first_missing(const struct join *join, int first)
{
    while (first < join->launch->world && join->sockets[first] >= 0)
        first++;
    return first;
}

static void refuse(struct caller *caller, const char *why)
{
    close_socket(&caller->fd);
    tdm_log(TDM_LOG_WARNING, "a connection for the ranks of this job was refused: %s", why);
}

/* Its greeting is complete. */
static tdm_status admit(struct join *join, struct caller *caller, tdm_error *err)
{
    struct greeting *greeting = &caller->greeting;
    bool is_fatal;
    const char *why = objection(join, greeting, &is_fatal);
    if (why && is_fatal)
        return TDM_FAIL(err, TDM_E_PEER, "rank %d (tandem %.*s) cannot join: %s", greeting->rank,
                        (int)sizeof greeting->version, greeting->version, why);
    if (why) {
        refuse(caller, why);
        return TDM_OK;
    }
    if (join->launch->rank == 0 && !write_all(caller->fd, magic, sizeof magic, join->until_ns)) {
        refuse(caller, "it took no answer");
        return TDM_OK;
    }
    end_texts(&greeting->host);
    join->hosts[greeting->rank] = greeting->host;
    join->sockets[greeting->rank] = caller->fd;
    caller->fd = -1;
    set_options(join->sockets[greeting->rank]);
    return TDM_OK;
}

static tdm_status hear(struct join *join, struct caller *caller, tdm_error *err)
{
    const ssize_t got = recv(caller->fd, (char *)&caller->greeting + caller->n,
                             sizeof caller->greeting - caller->n, MSG_DONTWAIT);
    const bool has_ended = got == 0 || (got < 0 && !is_later(errno));
    caller->n += got > 0 ? (size_t)got : 0;
    if (caller->n == sizeof caller->greeting)
        return admit(join, caller, err);
    if (has_ended || tdmi_clock_ns() >= caller->until_ns)
        refuse(caller, "it did not greet");
    return TDM_OK;
}

/* A new one takes the place of the oldest where too many are greeting; those are in the order in
 * which they called. */
static void take_call(const struct join *join, struct caller *callers, int *n)
{
    const int fd = accept4(join->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (*n == most_callers) {
        refuse(&callers[0], "it did not greet, and others call");
        memmove(callers, callers + 1, sizeof *callers * (size_t)-- * n);
    }
    callers[(*n)++] = (struct caller){.fd = fd, .until_ns = tdmi_clock_ns() + greet_ns};
}

/* Hears who calls and who greets, for a moment or until something comes. */
static tdm_status listen_once(struct join *join, struct caller *callers, int *n, tdm_error *err)
{
    struct pollfd polls[most_callers + 1] = {{.fd = join->listener, .events = POLLIN}};
    const int64_t soon_ns = tdmi_clock_ns() + second_ns;
    int n_left = 0;
    for (int i = 0; i < *n; i++)
        polls[i + 1] = (struct pollfd){.fd = callers[i].fd, .events = POLLIN};
    (void)wait_for(polls, (nfds_t)*n + 1, soon_ns < join->until_ns ? soon_ns : join->until_ns);
    for (int i = 0; i < *n; i++)
        TDMI_TRY(hear(join, &callers[i], err));
    for (int i = 0; i < *n; i++)
        if (callers[i].fd >= 0)
            callers[n_left++] = callers[i];
    *n = n_left;
    if (polls[0].revents != 0)
        take_call(join, callers, n);
    return TDM_OK;
}

/* Until the ranks from `first` on have called. */
static tdm_status admit_all(struct join *join, int first, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) struct caller *callers = NULL;
    tdm_status status = TDMI_NEW(callers, most_callers, err);
    int missing, n = 0;
    while (status == TDM_OK && (missing = first_missing(join, first)) < join->launch->world)
        status = tdmi_clock_ns() < join->until_ns
                     ? listen_once(join, callers, &n, err)
                     : TDM_FAIL(err, TDM_E_PEER,
                                "rank %d of %d did not come within %g seconds (TANDEM_DEADLINE)",
                                missing, join->launch->world, join->launch->deadline);
    for (int i = 0; i < n; i++)
        close_socket(&callers[i].fd);
    return status;
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

/* Greets what took the call, and hears whether it is rank 0. */
static tdm_status meet_first(struct join *join, struct tdmi_tcp_host *mine, int port,
                             int64_t until_ns, tdm_error *err)
{
    const char *host = join->launch->host;
    char answer[sizeof magic];
    TDMI_TRY(listen_as_other(join, mine, err));
    TDMI_TRY(greet(join, 0, join->sockets[0], mine, err));
    if (!read_all(join->sockets[0], answer, sizeof answer, until_ns))
        return TDM_FAIL(err, TDM_E_PEER,
                        "rank 0 at %s, port %d, did not answer the greeting: it ended, or refused "
                        "this rank, and says why",
                        host, port);
    if (memcmp(answer, magic, sizeof magic) != 0)
        return TDM_FAIL(err, TDM_E_PEER,
                        "another program than rank 0 of tandem listens at %s, port %d; "
                        "TANDEM_ADDRESS names a free port on the host of rank 0",
                        host, port);
    return TDM_OK;
}

/* Rank 0 is on one of several ports at most; a stranger on another may say nothing at all. */
static tdm_status find_first(struct join *join, struct tdmi_tcp_host *mine, tdm_error *err)
{
    const struct tdmi_launch *launch = join->launch;
    const int first = launch->port, n = end_of_ports(launch) - first;
    for (int port = first;;) {
        TDMI_TRY(call(join, 0, launch->host, first, n, &port, &join->sockets[0], err));
        const int64_t soon_ns = tdmi_clock_ns() + greet_ns;
        const bool is_soon = n > 1 && soon_ns < join->until_ns;
        const tdm_status status =
            meet_first(join, mine, port, is_soon ? soon_ns : join->until_ns, err);
        if (status != TDM_E_PEER || n == 1 || tdmi_clock_ns() >= join->until_ns)
            return status;
        close_socket(&join->sockets[0]);
        close_socket(&join->listener);
        port = first + (port + 1 - first) % n;
        wait_a_little();
    }
}

static tdm_status join_as_other(struct join *join, struct tdmi_tcp_host *mine, tdm_error *err)
{
    const int world = join->launch->world, rank = join->launch->rank;
    TDMI_TRY(find_first(join, mine, err));
    if (!read_all(join->sockets[0], join->hosts, sizeof *join->hosts * (size_t)world,
                  join->until_ns))
        return TDM_FAIL(err, TDM_E_PEER,
                        "rank 0 at %s sent no list of ranks: it ended, or not all ranks came "
                        "within %g seconds, and says why",
                        join->launch->host, join->launch->deadline);
    for (int other = 0; other < world; other++)
        end_texts(&join->hosts[other]);
    for (int lower = 1; lower < rank; lower++) {
        const struct tdmi_tcp_host *host = &join->hosts[lower];
        int port = host->port;
        TDMI_TRY(call(join, lower, host->address, port, 1, &port, &join->sockets[lower], err));
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
    if (status != TDM_OK && err) /* it says so itself: the others may know nothing of it */
        err->rank = launch->rank;
    for (int i = 0; status != TDM_OK && i < launch->world; i++)
        close_socket(&sockets[i]);
    return status;
}
