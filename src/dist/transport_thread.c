/*
 * A hub holds what was sent and not yet received. Who comes second, sender or receiver, copies the
 * bytes and marks both messages; each side sees its own mark with its next progress.
 */
#include "dist/transport_thread.h"
#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

/* A started message. */
struct letter {
    struct tdmi_message *message;
    struct letter *next;
    int from, to;
    bool is_sent, is_matched;
};

struct tdmi_thread_hub {
    pthread_mutex_t lock;
    pthread_cond_t has_changed;
    struct letter *first; /* of all ranks, in the order in which they were started */
    int64_t n_changes;
    int64_t *heard_ns; /* by rank, like what it was at */
    char (*said)[TDMI_BEAT_BYTES];
    int aborted; /* rank; -1: none */
    char words[TDMI_ABORT_BYTES];
};

struct thread_rank {
    struct tdmi_thread_hub *hub;
    int rank;
    int64_t seen;               /* the hub's n_changes when this rank last looked */
    char said[TDMI_BEAT_BYTES]; /* copy of another rank's words */
};

tdm_status tdmi_thread_hub_new(int world, struct tdmi_thread_hub **hub, tdm_error *err)
{
    pthread_condattr_t steady;
    TDMI_TRY(TDMI_NEW(*hub, 1, err));
    TDMI_TRY(TDMI_NEW((*hub)->heard_ns, world, err));
    TDMI_TRY(TDMI_NEW((*hub)->said, world, err));
    (*hub)->aborted = -1;
    pthread_mutex_init(&(*hub)->lock, NULL);
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&(*hub)->has_changed, &steady);
    pthread_condattr_destroy(&steady);
    return TDM_OK;
}

void tdmi_thread_hub_free(struct tdmi_thread_hub *hub)
{
    if (!hub)
        return;
    while (hub->first) { /* of an aborted job */
        struct letter *letter = hub->first;
        hub->first = letter->next;
        tdmi_free(letter);
    }
    pthread_cond_destroy(&hub->has_changed);
    pthread_mutex_destroy(&hub->lock);
    tdmi_free(hub->heard_ns);
    tdmi_free(hub->said);
    tdmi_free(hub);
}

static tdm_status open_thread(const struct tdmi_launch *launch, tdmi_transport **transport,
                              tdm_error *err)
{
    struct thread_rank *made;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    *made = (struct thread_rank){.hub = launch->hub, .rank = launch->rank};
    *transport = made;
    return TDM_OK;
}

/* With the lock held. */
static void announce(struct tdmi_thread_hub *hub)
{
    hub->n_changes++;
    pthread_cond_broadcast(&hub->has_changed);
}

static bool do_match(const struct letter *a, const struct letter *b)
{
    return !a->is_matched && a->is_sent != b->is_sent && a->from == b->from && a->to == b->to &&
           a->message->channel == b->message->channel;
}

static tdm_status match(struct tdmi_thread_hub *hub, struct letter *mine, tdm_error *err)
{
    struct letter *other = hub->first;
    while (other && !do_match(other, mine))
        other = other->next;
    if (!other)
        return TDM_OK;
    const struct letter *sent = mine->is_sent ? mine : other;
    const struct letter *received = mine->is_sent ? other : mine;
    if (sent->message->n != received->message->n)
        return TDM_FAIL(err, TDM_E_BUG, "rank %d sent %zu bytes, and rank %d waits for %zu",
                        sent->from, sent->message->n, sent->to, received->message->n);
    memcpy(received->message->bytes, sent->message->bytes, sent->message->n);
    mine->is_matched = other->is_matched = true;
    announce(hub);
    return TDM_OK;
}

static tdm_status start(const struct thread_rank *own, struct tdmi_message *message, bool is_sent,
                        tdm_error *err)
{
    struct tdmi_thread_hub *hub = own->hub;
    struct letter *letter;
    message->is_done = message->n == 0;
    if (message->is_done)
        return TDM_OK;
    TDMI_TRY(TDMI_NEW(letter, 1, err));
    *letter = (struct letter){.message = message,
                              .from = is_sent ? own->rank : message->peer,
                              .to = is_sent ? message->peer : own->rank,
                              .is_sent = is_sent};
    pthread_mutex_lock(&hub->lock);
    const tdm_status status = match(hub, letter, err);
    struct letter **end = &hub->first;
    while (*end)
        end = &(*end)->next;
    *end = letter;
    pthread_mutex_unlock(&hub->lock);
    return status;
}

static tdm_status send_thread(tdmi_transport *transport, struct tdmi_message *message,
                              tdm_error *err)
{
    return start(transport, message, true, err);
}

static tdm_status receive_thread(tdmi_transport *transport, struct tdmi_message *message,
                                 tdm_error *err)
{
    return start(transport, message, false, err);
}

static bool is_mine(const struct thread_rank *own, const struct letter *letter)
{
    return (letter->is_sent ? letter->from : letter->to) == own->rank;
}

static tdm_status progress_thread(tdmi_transport *transport, bool needs_all, tdm_error *err)
{
    struct thread_rank *own = transport;
    (void)needs_all; /* a thread is never lost */
    struct tdmi_thread_hub *hub = own->hub;
    tdm_status status = TDM_OK;
    pthread_mutex_lock(&hub->lock);
    for (struct letter **at = &hub->first; *at;) {
        struct letter *letter = *at;
        if (is_mine(own, letter) && letter->is_matched) {
            letter->message->is_done = true;
            *at = letter->next;
            tdmi_free(letter);
        } else
            at = &letter->next;
    }
    own->seen = hub->n_changes;
    if (hub->aborted >= 0 && hub->aborted != own->rank)
        status = tdmi_transport_ended(hub->aborted, "this machine", hub->words, err);
    pthread_mutex_unlock(&hub->lock);
    return status;
}

/* Letters that a rank has left open, after a failure, lie in its memory. */
static void close_thread(tdmi_transport *transport)
{
    const struct thread_rank *own = transport;
    pthread_mutex_lock(&own->hub->lock);
    for (struct letter **at = &own->hub->first; *at;) {
        struct letter *letter = *at;
        if (is_mine(own, letter)) {
            *at = letter->next;
            tdmi_free(letter);
        } else
            at = &letter->next;
    }
    pthread_mutex_unlock(&own->hub->lock);
    tdmi_free(transport);
}

static void sleep_thread(tdmi_transport *transport, int64_t ns)
{
    struct thread_rank *own = transport;
    enum { second_ns = 1000000000 };
    struct tdmi_thread_hub *hub = own->hub;
    const int64_t until_ns = tdmi_clock_ns() + ns;
    const struct timespec until = {until_ns / second_ns, until_ns % second_ns};
    pthread_mutex_lock(&hub->lock);
    if (own->seen == hub->n_changes)
        pthread_cond_timedwait(&hub->has_changed, &hub->lock, &until);
    pthread_mutex_unlock(&hub->lock);
}

static const char *host_of_thread(const tdmi_transport *transport, int rank)
{
    (void)transport;
    (void)rank;
    return "this machine";
}

static void beat_thread(tdmi_transport *transport, const char words[TDMI_BEAT_BYTES])
{
    struct thread_rank *own = transport;
    pthread_mutex_lock(&own->hub->lock);
    own->hub->heard_ns[own->rank] = tdmi_clock_ns();
    memcpy(own->hub->said[own->rank], words, TDMI_BEAT_BYTES);
    pthread_mutex_unlock(&own->hub->lock);
}

static const char *said_thread(const tdmi_transport *transport, int rank)
{
    struct thread_rank *own = (struct thread_rank *)transport;
    pthread_mutex_lock(&own->hub->lock);
    memcpy(own->said, own->hub->said[rank], sizeof own->said);
    pthread_mutex_unlock(&own->hub->lock);
    return own->said;
}

static int64_t heard_ns_thread(const tdmi_transport *transport, int rank)
{
    const struct thread_rank *own = transport;
    pthread_mutex_lock(&own->hub->lock);
    const int64_t heard_ns = own->hub->heard_ns[rank];
    pthread_mutex_unlock(&own->hub->lock);
    return heard_ns;
}

static int ended_by_thread(const tdmi_transport *transport)
{
    const struct thread_rank *own = transport;
    pthread_mutex_lock(&own->hub->lock);
    const int rank = own->hub->aborted;
    pthread_mutex_unlock(&own->hub->lock);
    return rank;
}

static void abandon_thread(tdmi_transport *transport, const char *words, bool has_bytes)
{
    struct thread_rank *own = transport;
    (void)has_bytes;
    struct tdmi_thread_hub *hub = own->hub;
    pthread_mutex_lock(&hub->lock);
    if (hub->aborted < 0) {
        hub->aborted = own->rank;
        snprintf(hub->words, sizeof hub->words, "%s", words);
    }
    announce(hub);
    pthread_mutex_unlock(&hub->lock);
}

const struct tdmi_transport_table tdmi_transport_thread = {
    .name = "thread",
    .open = open_thread,
    .close = close_thread,
    .send = send_thread,
    .receive = receive_thread,
    .progress = progress_thread,
    .sleep = sleep_thread,
    .host_of = host_of_thread,
    .beat = beat_thread,
    .heard_ns = heard_ns_thread,
    .said = said_thread,
    .ended_by = ended_by_thread,
    .abandon = abandon_thread,
};
