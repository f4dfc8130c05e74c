/*
 * Ranks of a job as threads of a test, over the transport "thread" or over TCP on this machine.
 */
#pragma once

#include "base/text/text.h"
#include "dist/comm.h"
#include "dist/transport_thread.h"
#include "unit.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { most_ranks = 16 };

struct rank {
    struct tdmi_launch launch;
    void (*run)(tdmi_comm *comm, void *self);
    void *self;
    bool is_mute; /* it joins, and says nothing for three seconds */
    tdm_status status;
    tdm_error err;
};

/* A port that nobody listens on now. */
static int free_port(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof any;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&any, length), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&any, &length), 0);
    close(fd);
    return ntohs(any.sin_port);
}

static void be_mute(struct rank *rank)
{
    const struct timespec long_enough = {.tv_sec = 3};
    const struct tdmi_transport_table *table;
    tdmi_transport *transport = NULL;
    rank->status = tdmi_transport_find(rank->launch.transport, &table, &rank->err);
    if (rank->status == TDM_OK)
        rank->status = table->open(&rank->launch, &transport, &rank->err);
    nanosleep(&long_enough, NULL);
    if (transport)
        table->close(transport);
}

static void *run_rank(void *self)
{
    struct rank *rank = self;
    tdmi_comm *comm = NULL;
    if (rank->is_mute) {
        be_mute(rank);
        return NULL;
    }
    rank->status = tdmi_comm_open(&rank->launch, &comm, &rank->err);
    if (rank->status == TDM_OK)
        rank->run(comm, rank->self);
    tdmi_comm_close(comm);
    return NULL;
}

struct job {
    const char *transport;
    int world;
    double deadline;
    bool has_mute; /* the last rank */
};

/* run(comm, self + rank * self_bytes) on every rank. */
static inline void run_ranks(struct job job, void (*run)(tdmi_comm *comm, void *self), void *self,
                             size_t self_bytes)
{
    const int world = job.world;
    struct rank ranks[most_ranks] = {0};
    pthread_t threads[most_ranks];
    struct tdmi_thread_hub *hub = NULL;
    assert_int_equal(tdmi_thread_hub_new(world, &hub, NULL), TDM_OK);
    const int port = free_port();
    for (int r = 0; r < world; r++) {
        ranks[r] = (struct rank){.launch = {.transport = job.transport,
                                            .rank = r,
                                            .world = world,
                                            .host = "127.0.0.1",
                                            .port = port,
                                            .token = "of the test",
                                            .deadline = job.deadline,
                                            .patience = 1.5 * job.deadline,
                                            .hub = hub},
                                 .is_mute = job.has_mute && r == world - 1,
                                 .run = run,
                                 .self = (char *)self + (size_t)r * self_bytes};
        assert_int_equal(pthread_create(&threads[r], NULL, run_rank, &ranks[r]), 0);
    }
    for (int r = 0; r < world; r++) {
        pthread_join(threads[r], NULL);
        assert_int_equal(ranks[r].status, TDM_OK);
    }
    tdmi_thread_hub_free(hub);
}
