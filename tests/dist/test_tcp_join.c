/* Joining over TCP: hosts without a name or an answer, strangers, other tokens and other jobs. */
#include "base/clock.h"
#include "dist/ranks.h"

struct join_case {
    struct tdmi_launch launch;
    pthread_t thread;
    tdm_status status;
    tdm_error err;
    double seconds;
};

static void *join_alone(void *self)
{
    struct join_case *it = self;
    const int64_t began = tdmi_clock_ns();
    tdmi_comm *comm = NULL;
    it->status = tdmi_comm_open(&it->launch, &comm, &it->err);
    it->seconds = tdmi_clock_seconds_since(began);
    tdmi_comm_close(comm);
    return NULL;
}

static void begin_join(struct join_case *it, const char *host, int port, int rank, double deadline)
{
    it->launch.transport = "tcp";
    it->launch.rank = rank;
    it->launch.port = port;
    it->launch.deadline = deadline;
    snprintf(it->launch.host, sizeof it->launch.host, "%s", host);
    assert_int_equal(pthread_create(&it->thread, NULL, join_alone, it), 0);
}

static void join_two(struct join_case cases[2])
{
    const int port = free_port();
    for (int r = 0; r < 2; r++)
        begin_join(&cases[r], "127.0.0.1", port, r, 1.0);
    for (int r = 0; r < 2; r++)
        pthread_join(cases[r].thread, NULL);
}

/* A connection to the port, once somebody listens there. */
static int connect_to(int port)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((in_port_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timespec retry = {.tv_nsec = 10000000};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    while (connect(fd, (const struct sockaddr *)&to, sizeof to) != 0)
        nanosleep(&retry, NULL);
    return fd;
}

TEST(strangers_hold_up_no_rank)
{
    enum { n_strangers = 70, n_garbage = 1000 };
    struct join_case cases[2] = {{.launch = {.world = 2}}, {.launch = {.world = 2}}};
    const int port = free_port();
    const char garbage[n_garbage] = "GET / HTTP/1.1";
    int strangers[n_strangers];
    begin_join(&cases[0], "127.0.0.1", port, 0, 20.0);
    for (int i = 0; i < n_strangers; i++) { /* most say nothing */
        strangers[i] = connect_to(port);
        if (i % 8 == 0)
            assert_true(send(strangers[i], garbage, sizeof garbage, MSG_NOSIGNAL) > 0);
    }
    begin_join(&cases[1], "127.0.0.1", port, 1, 20.0);
    for (int r = 0; r < 2; r++) {
        pthread_join(cases[r].thread, NULL);
        assert_int_equal(cases[r].status, TDM_OK);
        assert_true(cases[r].seconds < 4.0);
    }
    for (int i = 0; i < n_strangers; i++)
        close(strangers[i]);
}

/* A full queue of connections drops calls, like a host that is off or behind a firewall. */
TEST(a_host_that_does_not_answer_is_called_no_longer_than_the_deadline)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof any;
    struct join_case it = {.launch = {.world = 2}};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&any, length), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&any, &length), 0);
    assert_int_equal(listen(fd, 0), 0);
    const int filling = connect_to(ntohs(any.sin_port));
    begin_join(&it, "127.0.0.1", ntohs(any.sin_port), 1, 1.0);
    pthread_join(it.thread, NULL);
    assert_int_equal(it.status, TDM_E_PEER);
    assert_says(&it.err, "calling rank 0 at 127.0.0.1");
    assert_says(&it.err, "timed out");
    assert_true(it.seconds < 2.0);
    close(filling);
    close(fd);
}

/* In Kubernetes a host has a name only once its pod runs. */
TEST(a_host_without_a_name_yet_is_waited_for)
{
    struct join_case it = {.launch = {.world = 2}};
    begin_join(&it, "rank-0.invalid", 29500, 1, 1.0);
    pthread_join(it.thread, NULL);
    assert_int_equal(it.status, TDM_E_PEER);
    assert_says(&it.err, "the host of rank 0, 'rank-0.invalid'");
    assert_true(it.seconds >= 1.0);
}

/* Another program's server: takes a call and answers in its own words. */
struct stranger {
    int fd, port;
    _Atomic int n_calls;
    pthread_t thread;
};

static void *answer_calls(void *self)
{
    static const char words[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
    struct stranger *it = self;
    for (;;) {
        const int fd = accept(it->fd, NULL, NULL);
        if (fd < 0)
            return NULL; /* it was shut down */
        char greeting[1000];
        it->n_calls++;
        (void)recv(fd, greeting, sizeof greeting, 0); /* unread bytes would reset the connection */
        (void)send(fd, words, sizeof words - 1, MSG_NOSIGNAL);
        close(fd);
    }
}

static void open_stranger(struct stranger *it)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof any;
    it->fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(it->fd, (struct sockaddr *)&any, length), 0);
    assert_int_equal(getsockname(it->fd, (struct sockaddr *)&any, &length), 0);
    assert_int_equal(listen(it->fd, 8), 0);
    it->port = ntohs(any.sin_port);
    assert_int_equal(pthread_create(&it->thread, NULL, answer_calls, it), 0);
}

static void close_stranger(struct stranger *it)
{
    shutdown(it->fd, SHUT_RDWR);
    pthread_join(it->thread, NULL);
    close(it->fd);
}

TEST(a_stranger_on_the_port_of_rank_0_is_named)
{
    struct stranger stranger = {0};
    struct join_case it = {.launch = {.world = 2}};
    open_stranger(&stranger);
    begin_join(&it, "127.0.0.1", stranger.port, 1, 10.0);
    pthread_join(it.thread, NULL);
    assert_int_equal(it.status, TDM_E_PEER);
    assert_says(&it.err, "another program than rank 0 of tandem listens at 127.0.0.1, port");
    assert_true(it.seconds < 5.0);
    close_stranger(&stranger);
}

/* Under torchrun's store rank 0 takes the first free one of several ports. */
TEST(a_rank_looks_behind_a_stranger_for_rank_0)
{
    struct stranger stranger = {0};
    struct join_case cases[2] = {{.launch = {.world = 2, .n_ports = 16}},
                                 {.launch = {.world = 2, .n_ports = 16}}};
    open_stranger(&stranger);
    begin_join(&cases[1], "127.0.0.1", stranger.port, 1, 20.0);
    while (stranger.n_calls < 2) /* once before rank 0 is there */
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    begin_join(&cases[0], "127.0.0.1", stranger.port, 0, 20.0);
    for (int r = 0; r < 2; r++) {
        pthread_join(cases[r].thread, NULL);
        assert_int_equal(cases[r].status, TDM_OK);
        assert_true(cases[r].seconds < 10.0);
    }
    close_stranger(&stranger);
}

/* Rank 0 of tandem run binds no port, which another program might have taken meanwhile. */
TEST(rank_0_listens_on_a_socket_that_it_inherits)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof any;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct join_case cases[2] = {{.launch = {.world = 2, .listener = fd}},
                                 {.launch = {.world = 2}}};
    assert_int_equal(bind(fd, (struct sockaddr *)&any, length), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&any, &length), 0);
    begin_join(&cases[0], "127.0.0.1", ntohs(any.sin_port), 0, 10.0);
    pthread_join(cases[0].thread, NULL);
    assert_int_equal(cases[0].status, TDM_E_USAGE);
    assert_says(&cases[0].err, "no socket that listens");
    assert_int_equal(listen(fd, 8), 0);
    for (int r = 0; r < 2; r++)
        begin_join(&cases[r], "127.0.0.1", ntohs(any.sin_port), r, 10.0);
    for (int r = 0; r < 2; r++) {
        pthread_join(cases[r].thread, NULL);
        assert_int_equal(cases[r].status, TDM_OK);
    }
}

TEST(a_rank_with_another_token_is_sent_away)
{
    struct join_case cases[2] = {{.launch = {.world = 2, .token = "right"}},
                                 {.launch = {.world = 2, .token = "wrong"}}};
    join_two(cases);
    assert_int_equal(cases[0].status, TDM_E_PEER);
    assert_says(&cases[0].err, "rank 1 of 2 did not come within 1 seconds");
    assert_int_equal(cases[1].status, TDM_E_PEER);
    assert_says(&cases[1].err, "did not answer the greeting");
    assert_int_equal(cases[1].err.rank, 1); /* it prints this itself */
}

TEST(ranks_of_two_jobs_do_not_mix)
{
    struct join_case cases[2] = {{.launch = {.world = 2}}, {.launch = {.world = 3}}};
    join_two(cases);
    assert_int_equal(cases[0].status, TDM_E_PEER);
    assert_says(&cases[0].err, "another number of ranks");
    assert_int_equal(cases[1].status, TDM_E_PEER);
}

TEST_MAIN(NULL, NULL)
