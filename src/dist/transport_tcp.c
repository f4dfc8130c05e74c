/*
 * TCP: one connection for each pair of ranks. A message is a frame: a header, then its bytes, which
 * are read straight into the receiver's buffer. A header whose receiver has not come yet stays
 * where it is, and no more is read from that peer until then.
 *
 * Rank 0 listens on the address of the launch. The others greet it from where they listen, get the
 * list of all ranks and their addresses, and then greet each other: the higher rank calls the
 * lower.
 */
#include "base/clock.h"
#include "base/scope.h"
#include "dist/tcp_join.h"
#include "dist/transport.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { abort_channel = TDMI_CHANNELS, beat_channel, second_ns = 1000000000 };

struct header {
    uint32_t channel, magic;
    uint64_t n;
};
static const uint32_t magic = 0x6d646e74; /* "tndm" */

struct queue {
    struct tdmi_message *first, *last;
};

struct peer {
    int fd; /* -1: oneself */
    bool is_gone;
    char problem[80]; /* how it went */
    struct queue to_send, to_receive[TDMI_CHANNELS];
    size_t n_sent; /* bytes sent of the first message in the queue, header included */
    /* The bytes of a heartbeat that could not be written yet; they go before all messages. */
    char rest[sizeof(struct header) + TDMI_BEAT_BYTES];
    size_t n_rest;
    struct header header; /* that is being received */
    size_t n_header;      /* bytes of it */
    bool is_held;         /* nobody receives that frame yet */
    int64_t heard_ns;
    char said[TDMI_BEAT_BYTES], beat[TDMI_BEAT_BYTES]; /* beat: that is being received */
    size_t n_beat;
    char words[TDMI_ABORT_BYTES]; /* with which it has aborted */
    size_t n_words;
    bool has_aborted;
};

struct tcp {
    int rank, world;
    struct peer *peers;
    struct pollfd *polls;
    struct tdmi_tcp_host *hosts;
};

/* ---- queues ---------------------------------------------------------------------------------- */

static void append(struct queue *queue, struct tdmi_message *message)
{
    message->next = NULL;
    message->n_moved = 0;
    message->is_done = false;
    if (queue->first)
        queue->last->next = message;
    else
        queue->first = message;
    queue->last = message;
}

static void finish_first(struct queue *queue)
{
    struct tdmi_message *message = queue->first;
    queue->first = message->next;
    message->is_done = true;
}

/* ---- open and close -------------------------------------------------------------------------- */

static void close_tcp(tdmi_transport *transport)
{
    struct tcp *tcp = transport;
    if (!tcp)
        return;
    for (int i = 0; tcp->peers && i < tcp->world; i++)
        if (tcp->peers[i].fd >= 0)
            close(tcp->peers[i].fd);
    tdmi_free(tcp->peers);
    tdmi_free(tcp->polls);
    tdmi_free(tcp->hosts);
    tdmi_free(tcp);
}

static void close_at(struct tcp **tcp)
{
    close_tcp(*tcp);
}

static tdm_status open_tcp(const struct tdmi_launch *launch, tdmi_transport **transport,
                           tdm_error *err)
{
    TDMI_AT_END(close_at) struct tcp *made = NULL;
    TDMI_AT_END(tdmi_free_at) int *sockets = NULL;
    const int world = launch->world;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    TDMI_TRY(TDMI_NEW(sockets, world, err));
    made->rank = launch->rank;
    made->world = world;
    TDMI_TRY(TDMI_NEW(made->polls, world, err));
    TDMI_TRY(TDMI_NEW(made->hosts, world, err));
    TDMI_TRY(TDMI_NEW(made->peers, world, err));
    for (int i = 0; i < world; i++)
        made->peers[i].fd = -1;
    TDMI_TRY(tdmi_tcp_join(launch, sockets, made->hosts, err));
    for (int i = 0; i < world; i++)
        made->peers[i] = (struct peer){.fd = sockets[i], .heard_ns = tdmi_clock_ns()};
    *transport = tdmi_take(&made);
    return TDM_OK;
}

/* ---- messages -------------------------------------------------------------------------------- */

static tdm_status lost(const struct tcp *tcp, int rank, tdm_error *err)
{
    const struct peer *peer = &tcp->peers[rank];
    if (peer->has_aborted)
        return tdmi_transport_ended(rank, tcp->hosts[rank].name, peer->words, err);
    return TDM_FAIL(err, TDM_E_PEER, "rank %d on %s was lost: %s", rank, tcp->hosts[rank].name,
                    peer->problem);
}

static tdm_status send_tcp(tdmi_transport *transport, struct tdmi_message *message, tdm_error *err)
{
    struct tcp *tcp = transport;
    (void)err;
    message->is_done = message->n == 0;
    if (!message->is_done)
        append(&tcp->peers[message->peer].to_send, message);
    return TDM_OK;
}

static tdm_status receive_tcp(tdmi_transport *transport, struct tdmi_message *message,
                              tdm_error *err)
{
    struct tcp *tcp = transport;
    struct peer *peer = &tcp->peers[message->peer];
    (void)err;
    message->is_done = message->n == 0;
    if (message->is_done)
        return TDM_OK;
    append(&peer->to_receive[message->channel], message);
    peer->is_held = false;
    return TDM_OK;
}

/* ---- moving bytes ---------------------------------------------------------------------------- */

static bool is_later(int problem)
{
    return problem == EAGAIN || problem == EWOULDBLOCK || problem == EINTR;
}

static void part_with(struct peer *peer, const char *problem)
{
    peer->is_gone = true;
    snprintf(peer->problem, sizeof peer->problem, "%s", problem);
}

/* False: not all of it could be written. */
static bool write_rest(struct peer *peer)
{
    while (peer->n_rest > 0) {
        const ssize_t sent = send(peer->fd, peer->rest, peer->n_rest, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && !is_later(errno))
            part_with(peer, strerror(errno));
        if (sent <= 0)
            return false;
        peer->n_rest -= (size_t)sent;
        memmove(peer->rest, peer->rest + sent, peer->n_rest);
    }
    return true;
}

static void write_some(struct peer *peer)
{
    if (!write_rest(peer))
        return;
    while (peer->to_send.first && !peer->is_gone) {
        struct tdmi_message *message = peer->to_send.first;
        struct header header = {(uint32_t)message->channel, magic, message->n};
        const size_t at = peer->n_sent;
        struct iovec parts[2];
        int n = 0;
        if (at < sizeof header)
            parts[n++] = (struct iovec){(char *)&header + at, sizeof header - at};
        const size_t done = at < sizeof header ? 0 : at - sizeof header;
        parts[n++] = (struct iovec){(char *)message->bytes + done, message->n - done};
        struct msghdr call = {.msg_iov = parts, .msg_iovlen = (size_t)n};
        const ssize_t sent = sendmsg(peer->fd, &call, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && is_later(errno))
            return;
        if (sent < 0) {
            part_with(peer, strerror(errno));
            return;
        }
        peer->n_sent += (size_t)sent;
        message->n_moved = peer->n_sent;
        if (peer->n_sent < sizeof header + message->n)
            continue;
        peer->n_sent = 0;
        finish_first(&peer->to_send);
    }
}

/* Bytes read; 0: none now, or the peer is gone. */
static size_t read_into(struct peer *peer, void *bytes, size_t n)
{
    const ssize_t got = recv(peer->fd, bytes, n, MSG_DONTWAIT);
    if (got > 0) {
        peer->heard_ns = tdmi_clock_ns();
        return (size_t)got;
    }
    if (got == 0)
        part_with(peer, "it closed its connection");
    else if (!is_later(errno))
        part_with(peer, strerror(errno));
    return 0;
}

static bool read_words(struct peer *peer)
{
    const size_t most = sizeof peer->words - 1;
    const size_t n = peer->header.n < most ? (size_t)peer->header.n : most;
    const size_t got = read_into(peer, peer->words + peer->n_words, n - peer->n_words);
    peer->n_words += got;
    peer->has_aborted = peer->n_words == n;
    peer->is_gone = peer->is_gone || peer->has_aborted;
    return got > 0 && !peer->has_aborted;
}

static bool read_beat(struct peer *peer, bool *is_wrong)
{
    *is_wrong = peer->header.n != sizeof peer->beat;
    if (*is_wrong)
        return false;
    const size_t got = read_into(peer, peer->beat + peer->n_beat, sizeof peer->beat - peer->n_beat);
    peer->n_beat += got;
    if (peer->n_beat == sizeof peer->beat) {
        memcpy(peer->said, peer->beat, sizeof peer->said - 1);
        peer->n_beat = peer->n_header = 0;
    }
    return got > 0;
}

/* Bytes of the message whose header has been read. False: nothing more can be read now. */
static bool read_message(struct peer *peer, bool *is_wrong)
{
    struct queue *queue = &peer->to_receive[peer->header.channel];
    struct tdmi_message *message = queue->first;
    peer->is_held = !message;
    if (!message)
        return false;
    *is_wrong = message->n != peer->header.n;
    if (*is_wrong)
        return false;
    const size_t got =
        read_into(peer, (char *)message->bytes + message->n_moved, message->n - message->n_moved);
    message->n_moved += got;
    if (message->n_moved == message->n) {
        peer->n_header = 0;
        finish_first(queue);
    }
    return got > 0;
}

static bool read_once(struct peer *peer, bool *is_wrong)
{
    if (peer->n_header < sizeof peer->header) {
        const size_t got = read_into(peer, (char *)&peer->header + peer->n_header,
                                     sizeof peer->header - peer->n_header);
        peer->n_header += got;
        return got > 0;
    }
    *is_wrong = peer->header.magic != magic || peer->header.channel > beat_channel;
    if (*is_wrong)
        return false;
    if (peer->header.channel == beat_channel)
        return read_beat(peer, is_wrong);
    return peer->header.channel == abort_channel ? read_words(peer) : read_message(peer, is_wrong);
}

static tdm_status read_some(struct tcp *tcp, int rank, tdm_error *err)
{
    struct peer *peer = &tcp->peers[rank];
    bool is_wrong = false;
    while (!peer->is_gone && read_once(peer, &is_wrong)) {}
    if (!is_wrong)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_BUG,
                    "rank %d sent %llu bytes on channel %u, which nobody waits for here", rank,
                    (unsigned long long)peer->header.n, peer->header.channel);
}

static bool is_waited_for(const struct peer *peer)
{
    bool is = peer->to_send.first != NULL;
    for (int c = 0; c < TDMI_CHANNELS; c++)
        is = is || peer->to_receive[c].first;
    return is;
}

/* A peer that has gone matters once something is waited for, because ranks end one after another;
 * one that failed matters at once. */
static tdm_status progress_tcp(tdmi_transport *transport, bool needs_all, tdm_error *err)
{
    struct tcp *tcp = transport;
    for (int rank = 0; rank < tcp->world; rank++) {
        struct peer *peer = &tcp->peers[rank];
        if (rank == tcp->rank)
            continue;
        if (!peer->is_gone) {
            TDMI_TRY(read_some(tcp, rank, err));
            write_some(peer);
        }
        if (peer->has_aborted || (peer->is_gone && (needs_all || is_waited_for(peer))))
            return lost(tcp, rank, err);
    }
    return TDM_OK;
}

static void sleep_tcp(tdmi_transport *transport, int64_t ns)
{
    struct tcp *tcp = transport;
    const struct timespec most = {ns / second_ns, ns % second_ns};
    nfds_t n = 0;
    for (int rank = 0; rank < tcp->world; rank++) {
        const struct peer *peer = &tcp->peers[rank];
        if (peer->fd < 0 || peer->is_gone)
            continue;
        short events = peer->is_held ? 0 : POLLIN;
        events = (short)(events | (peer->to_send.first || peer->n_rest > 0 ? POLLOUT : 0));
        tcp->polls[n++] = (struct pollfd){.fd = peer->fd, .events = events};
    }
    (void)ppoll(tcp->polls, n, &most, NULL);
}

static const char *host_of_tcp(const tdmi_transport *transport, int rank)
{
    const struct tcp *tcp = transport;
    return tcp->hosts[rank].name;
}

/* A frame between two others. Where the connection is full the peer hears of this one anyway. */
static void beat_tcp(tdmi_transport *transport, const char words[TDMI_BEAT_BYTES])
{
    struct tcp *tcp = transport;
    char frame[sizeof(struct header) + TDMI_BEAT_BYTES];
    const struct header header = {beat_channel, magic, TDMI_BEAT_BYTES};
    memcpy(frame, &header, sizeof header);
    memcpy(frame + sizeof header, words, TDMI_BEAT_BYTES);
    for (int rank = 0; rank < tcp->world; rank++) {
        struct peer *peer = &tcp->peers[rank];
        if (peer->fd < 0 || peer->is_gone || peer->to_send.first || peer->n_rest > 0)
            continue;
        const ssize_t sent = send(peer->fd, frame, sizeof frame, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent <= 0 || sent == (ssize_t)sizeof frame)
            continue;
        peer->n_rest = sizeof frame - (size_t)sent;
        memcpy(peer->rest, frame + sent, peer->n_rest);
    }
}

static int64_t heard_ns_tcp(const tdmi_transport *transport, int rank)
{
    const struct tcp *tcp = transport;
    return tcp->peers[rank].heard_ns;
}

static const char *said_tcp(const tdmi_transport *transport, int rank)
{
    const struct tcp *tcp = transport;
    return tcp->peers[rank].said;
}

static int ended_by_tcp(const tdmi_transport *transport)
{
    const struct tcp *tcp = transport;
    for (int rank = 0; rank < tcp->world; rank++)
        if (tcp->peers[rank].has_aborted)
            return rank;
    return -1;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* The words are the next message, or the one after a message that is half sent. */
static void queue_words(struct peer *peer, struct tdmi_message *message, bool has_bytes)
{
    struct tdmi_message *half = peer->n_sent > 0 ? peer->to_send.first : NULL;
    if (half && !has_bytes) {
        part_with(peer, "it is left in the middle of a message");
        return;
    }
    peer->to_send = (struct queue){message, message};
    if (half) {
        half->next = message;
        peer->to_send.first = half;
    }
}

static int write_words(struct tcp *tcp, const struct tdmi_message *messages)
{
    int n_open = 0;
    for (int rank = 0; rank < tcp->world; rank++) {
        struct peer *peer = &tcp->peers[rank];
        if (peer->fd < 0 || peer->is_gone)
            continue;
        write_some(peer);
        n_open += !messages[rank].is_done && !peer->is_gone;
    }
    return n_open;
}

/* Whoever does not read for a second is left without them. */
static void abandon_tcp(tdmi_transport *transport, const char *words, bool has_bytes)
{
    struct tcp *tcp = transport;
    enum { nap_ns = 10000000 };
    const int64_t until_ns = tdmi_clock_ns() + second_ns;
    TDMI_AT_END(tdmi_free_at) struct tdmi_message *messages = NULL;
    if (TDMI_NEW(messages, tcp->world, NULL) != TDM_OK)
        return;
    for (int rank = 0; rank < tcp->world; rank++) {
        messages[rank] = (struct tdmi_message){.channel = abort_channel, .n = strlen(words)};
        memcpy(&messages[rank].bytes, &words, sizeof words); /* without its const */
        queue_words(&tcp->peers[rank], &messages[rank], has_bytes);
    }
    while (write_words(tcp, messages) > 0 && tdmi_clock_ns() < until_ns)
        sleep_tcp(transport, nap_ns);
    for (int rank = 0; rank < tcp->world; rank++)
        tcp->peers[rank].to_send = (struct queue){0};
}

const struct tdmi_transport_table tdmi_transport_tcp = {
    .name = "tcp",
    .open = open_tcp,
    .close = close_tcp,
    .send = send_tcp,
    .receive = receive_tcp,
    .progress = progress_tcp,
    .sleep = sleep_tcp,
    .host_of = host_of_tcp,
    .beat = beat_tcp,
    .heard_ns = heard_ns_tcp,
    .said = said_tcp,
    .ended_by = ended_by_tcp,
    .abandon = abandon_tcp,
};
