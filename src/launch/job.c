/*
 * One loop: what ranks write, whether they have ended, whether a stop was requested. Once a rank
 * has failed the others end by themselves, since they wait for it; whoever has not after the
 * deadline and a little is killed. Another launcher is one process here, whose ranks report their
 * ends on standard error.
 */
#include "launch/job.h"
#include "base/clock.h"
#include "base/text/rank_line.h"
#include "launch/ends.h"
#include "tandem/event.h"
#include "tandem/log.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { look_ms = 100, longest_line = 4000 };
static const double grace = 5.0; /* seconds after the deadline */

/* A stream of a rank, read through a pipe. */
struct stream {
    int fd; /* -1: closed, or not piped */
    FILE *to;
    tdmi_text line; /* its beginning */
};

struct rank {
    pid_t pid;
    bool has_ended;
    int64_t stopped_ns; /* when it was stopped (SIGSTOP); 0: it runs */
    int status;         /* of waitpid */
    struct stream streams[2];
};

struct job {
    const struct tdmi_job_options *options;
    struct rank *ranks;
    int n_started;
    struct tdmi_job_end end;
    struct tdmi_ends ends; /* of ranks that another launcher started */
    int64_t over_ns;       /* when the first rank failed, or rank 0 ended; 0: none has */
    int64_t left_ns;       /* when the last process ended */
    bool is_stopping;
    bool was_asked; /* the launcher, to end */
    int listener;   /* that rank 0 inherits; -1: closed */
    char address[64], token[40];
};

/* ---- what all ranks are given ---------------------------------------------------------------- */

/* Rank 0 inherits the socket: a port that is only known to be free may be taken before it binds. */
static tdm_status open_listener(struct job *job, tdm_error *err)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof any;
    job->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (job->listener < 0 || bind(job->listener, (struct sockaddr *)&any, sizeof any) != 0 ||
        getsockname(job->listener, (struct sockaddr *)&any, &length) != 0 ||
        listen(job->listener, SOMAXCONN) != 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "listening on this machine for its ranks: %s",
                        strerror(errno));
    snprintf(job->address, sizeof job->address, "127.0.0.1:%d", ntohs(any.sin_port));
    return TDM_OK;
}

static tdm_status choose_token(struct job *job, tdm_error *err)
{
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return TDM_FAIL(err, TDM_E_SYSTEM, "drawing a token for the ranks: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(job->token + 2 * i, 3, "%02x", bytes[i]);
    return TDM_OK;
}

/* ---- starting -------------------------------------------------------------------------------- */

enum { most_variables = 8, variable_bytes = 128 };

/* Made before the fork, because a thread that holds the lock of the environment has no copy in the
 * child. */
struct environment {
    char own[most_variables][variable_bytes];
    int n;
    char **all; /* this process's, and own in place of those of their names */
};

static void release_environment(struct environment *it)
{
    tdmi_free(it->all);
}

static void set_variable(struct environment *it, const char *format, ...) TDM_PRINTF(2, 3);
static void set_variable(struct environment *it, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(it->own[it->n++], variable_bytes, format, arguments);
    va_end(arguments);
}

static void set_variables(const struct job *job, int rank, struct environment *it)
{
    set_variable(it, "TANDEM_DEADLINE=%g", job->options->deadline);
    if (job->options->is_launcher) {
        set_variable(it, TDMI_REPORT_VARIABLE "=1");
        return;
    }
    set_variable(it, "TANDEM_RANK=%d", rank);
    set_variable(it, "TANDEM_WORLD=%d", job->options->ranks);
    set_variable(it, "TANDEM_LOCAL_RANK=%d", rank);
    set_variable(it, "TANDEM_LOCAL_SIZE=%d", job->options->ranks);
    set_variable(it, "TANDEM_ADDRESS=%s", job->address);
    set_variable(it, "TANDEM_TOKEN=%s", job->token);
    if (rank == 0)
        set_variable(it, "TANDEM_LISTENER=%d", job->listener);
}

static bool is_own(const struct environment *it, const char *variable)
{
    const size_t n = strcspn(variable, "=") + 1;
    for (int i = 0; i < it->n; i++)
        if (strncmp(it->own[i], variable, n) == 0)
            return true;
    return false;
}

static tdm_status make_environment(const struct job *job, int rank, struct environment *it,
                                   tdm_error *err)
{
    int n = 0, kept = 0;
    set_variables(job, rank, it);
    while (environ[n])
        n++;
    TDMI_TRY(TDMI_NEW(it->all, n + it->n + 1, err));
    for (int i = 0; i < n; i++)
        if (!is_own(it, environ[i]))
            it->all[kept++] = environ[i];
    for (int i = 0; i < it->n; i++)
        it->all[kept++] = it->own[i];
    return TDM_OK;
}

/* Its own process group: a terminal's ctrl-C reaches this process only, which passes it on once. */
_Noreturn static void become_rank(const struct job *job, int rank, pid_t parent, char **argv,
                                  char **environment, int pipes[2][2])
{
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(4); /* it ended before the line above */
    (void)setpgid(0, 0);
    for (int i = 0; i < 2; i++)
        if (pipes[i][1] >= 0)
            (void)dup2(pipes[i][1], STDOUT_FILENO + i);
    if (rank == 0 && !job->options->is_launcher)
        (void)fcntl(job->listener, F_SETFD, 0);
    (void)(job->options->is_launcher ? execvpe(argv[0], argv, environment)
                                     : execve(job->options->program, argv, environment));
    _exit(4);
}

static tdm_status open_pipe(int pipe_ends[2], tdm_error *err)
{
    if (pipe2(pipe_ends, O_CLOEXEC) == 0)
        return TDM_OK;
    pipe_ends[0] = pipe_ends[1] = -1;
    return TDM_FAIL(err, TDM_E_SYSTEM, "opening a pipe to a rank: %s", strerror(errno));
}

/* Rank 0 keeps the standard streams, so that its progress bar is one; its output may be kept.
 * Another launcher keeps only standard output. */
static tdm_status start(struct job *job, int number, char **argv, tdm_error *err)
{
    struct rank *rank = &job->ranks[number];
    int pipes[2][2] = {{-1, -1}, {-1, -1}};
    TDMI_AT_END(release_environment) struct environment environment = {.n = 0};
    tdm_status status = make_environment(job, number, &environment, err);
    if ((number > 0 || job->options->output) && status == TDM_OK)
        status = open_pipe(pipes[0], err);
    if ((number > 0 || job->options->is_launcher) && status == TDM_OK)
        status = open_pipe(pipes[1], err);
    const pid_t parent = getpid();
    if (status == TDM_OK)
        rank->pid = fork();
    if (status == TDM_OK && rank->pid == 0)
        become_rank(job, number, parent, argv, environment.all, pipes);
    if (status == TDM_OK && rank->pid < 0)
        status = TDM_FAIL(err, TDM_E_SYSTEM, "starting rank %d of %d: %s", number,
                          job->options->ranks, strerror(errno));
    for (int i = 0; i < 2; i++) {
        rank->streams[i].fd = pipes[i][0];
        rank->streams[i].to = i == 0 ? stdout : stderr;
        if (pipes[i][1] >= 0)
            close(pipes[i][1]);
    }
    job->n_started += status == TDM_OK;
    return status;
}

static tdm_status start_all(struct job *job, tdm_error *err)
{
    const struct tdmi_job_options *options = job->options;
    TDMI_AT_END(tdmi_free_at) char **argv = NULL;
    TDMI_TRY(TDMI_NEW(argv, options->n_arguments + 2, err));
    memcpy(&argv[0], &options->program, sizeof argv[0]); /* without its const */
    for (int i = 0; i < options->n_arguments; i++)
        memcpy(&argv[i + 1], &options->arguments[i], sizeof argv[0]);
    const int n = options->is_launcher ? 1 : options->ranks;
    for (int i = 0; i < n; i++)
        TDMI_TRY(start(job, i, argv, err));
    tdmi_close_at(&job->listener); /* calls fail once rank 0 has ended */
    job->listener = -1;
    return TDM_OK;
}

/* ---- what ranks write ------------------------------------------------------------------------ */

static void note_once(int64_t *when_ns)
{
    if (*when_ns == 0)
        *when_ns = tdmi_clock_ns();
}

/* A line of standard error of another launcher and its ranks. */
static void pass_launcher_line(struct job *job, tdmi_text *line)
{
    const bool is_report = line->bytes && tdmi_ends_take(&job->ends, line->bytes);
    if (job->ends.status > 0 || job->ends.has_result)
        note_once(&job->over_ns);
    if (!is_report)
        fprintf(stderr, "%s\n", tdmi_text_string(line));
    else if (line->bytes[0])
        fputs(line->bytes, stderr);
}

static void pass_line(struct job *job, int number, struct stream *stream)
{
    if (number > 0)
        fprintf(stream->to, "[%d] %s\n", number, tdmi_text_string(&stream->line));
    else if (stream->to == stdout)
        tdmi_text_printf(job->options->output, "%s\n", tdmi_text_string(&stream->line));
    else
        pass_launcher_line(job, &stream->line);
    tdmi_text_clear(&stream->line);
}

/* False: it has ended. A line that is longer than most is passed on in parts. */
static bool read_stream(struct job *job, int number, struct stream *stream)
{
    char bytes[4096];
    const ssize_t n = read(stream->fd, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR)
        return true;
    for (ssize_t i = 0; i < n; i++) {
        if (bytes[i] == '\n' ||
            (stream->line.length_bytes >= longest_line && (number > 0 || stream->to == stderr)))
            pass_line(job, number, stream);
        if (bytes[i] != '\n')
            tdmi_text_add(&stream->line, &bytes[i], 1);
    }
    if (n > 0)
        return true;
    if (stream->line.length_bytes > 0)
        pass_line(job, number, stream);
    close(stream->fd);
    stream->fd = -1;
    return false;
}

/* Reads what there is, or waits a moment. Returns the number of open streams. */
static int read_streams(struct job *job, struct pollfd *polls)
{
    int n = 0;
    for (int r = 0; r < job->n_started; r++)
        for (int i = 0; i < 2; i++)
            if (job->ranks[r].streams[i].fd >= 0)
                polls[n++] = (struct pollfd){.fd = job->ranks[r].streams[i].fd, .events = POLLIN};
    if (poll(polls, (nfds_t)n, look_ms) <= 0)
        return n;
    n = 0;
    for (int r = 0; r < job->n_started; r++)
        for (int i = 0; i < 2; i++) {
            struct stream *stream = &job->ranks[r].streams[i];
            if (stream->fd >= 0 && polls[n++].revents != 0)
                (void)read_stream(job, r, stream);
        }
    fflush(stdout);
    return n;
}

/* ---- ends ------------------------------------------------------------------------------------ */

/* The end of a rank that was killed may be seen after that of one that lost it. */
static void note_end(struct job *job, int number)
{
    const int status = job->ranks[number].status;
    const bool is_killed = WIFSIGNALED(status);
    if (is_killed && !job->is_stopping && job->end.lost_rank < 0) {
        job->end.lost_rank = number;
        job->end.lost_signal = WTERMSIG(status);
    }
    const bool has_failed = is_killed || WEXITSTATUS(status) != 0;
    if (has_failed || number == 0) /* the others have nothing to wait for */
        note_once(&job->over_ns);
    if (has_failed && job->end.exit_status == 0)
        job->end.exit_status = is_killed ? tdm_status_exit(TDM_E_PEER) : WEXITSTATUS(status);
}

static void look_at(struct job *job, int number)
{
    struct rank *rank = &job->ranks[number];
    if (waitpid(rank->pid, &rank->status, WNOHANG | WUNTRACED | WCONTINUED) != rank->pid)
        return;
    rank->has_ended = WIFEXITED(rank->status) || WIFSIGNALED(rank->status);
    rank->stopped_ns = WIFSTOPPED(rank->status) ? tdmi_clock_ns() : 0;
    if (rank->has_ended && !job->options->is_launcher)
        note_end(job, number);
}

static int count_living(struct job *job)
{
    int n = 0;
    for (int r = 0; r < job->n_started; r++) {
        if (!job->ranks[r].has_ended)
            look_at(job, r);
        n += !job->ranks[r].has_ended;
    }
    return n;
}

static void signal_all(const struct job *job, int number)
{
    for (int r = 0; r < job->n_started; r++)
        if (!job->ranks[r].has_ended)
            (void)kill(job->ranks[r].pid, number);
}

/* A launcher that waits for a host that is gone: it is asked to end, then killed with those of its
 * children that are in its group. */
static void kill_launcher(struct job *job, bool is_asked)
{
    const pid_t pid = job->ranks[0].pid;
    if (job->ranks[0].has_ended)
        return;
    if (!is_asked)
        (void)kill(-pid, SIGKILL);
    else if (!job->was_asked)
        (void)kill(pid, SIGTERM);
    job->was_asked = true;
}

/* A rank that all others have waited for in vain is the lost one. */
static void kill_late(struct job *job)
{
    const double since = tdmi_clock_seconds_since(job->over_ns);
    if (job->over_ns == 0 || since < job->options->deadline + grace)
        return;
    if (job->options->is_launcher) {
        kill_launcher(job, since < job->options->deadline + 2 * grace);
        return;
    }
    for (int r = 0; r < job->n_started; r++)
        if (!job->ranks[r].has_ended && job->end.lost_rank < 0 && !job->is_stopping) {
            job->end.lost_rank = r;
            job->end.lost_signal = 0;
        }
    signal_all(job, SIGKILL);
}

/* A rank that was left behind by others that lost a peer is stopped or hangs: it will not end. Rank
 * 0 may be the last because it saves the run: unless it is stopped, it has the time of kill_late.
 */
static void kill_stopped(struct job *job)
{
    const int lost = tdm_status_exit(TDM_E_PEER);
    int n_left = 0, last = -1;
    for (int r = 0; r < job->n_started; r++) {
        const struct rank *rank = &job->ranks[r];
        if (!rank->has_ended) {
            n_left++;
            last = r;
        } else if (!WIFEXITED(rank->status) || WEXITSTATUS(rank->status) != lost)
            return;
    }
    if (n_left != 1 || job->n_started == 1 || job->end.lost_rank >= 0 ||
        (last == 0 && job->ranks[0].stopped_ns == 0))
        return;
    job->end.lost_rank = last;
    signal_all(job, SIGKILL);
}

/* A stopped rank that nobody waits for any more, because the others have ended or all shall. */
static void kill_forgotten(struct job *job)
{
    bool has_left = job->is_stopping;
    for (int r = 0; r < job->n_started; r++)
        has_left = has_left || job->ranks[r].has_ended;
    for (int r = 0; r < job->n_started && has_left; r++) {
        const struct rank *rank = &job->ranks[r];
        if (rank->has_ended || rank->stopped_ns == 0 ||
            tdmi_clock_seconds_since(rank->stopped_ns) < job->options->deadline)
            continue;
        if (job->end.lost_rank < 0 && !job->is_stopping)
            job->end.lost_rank = r;
        (void)kill(rank->pid, SIGKILL);
    }
}

/* Children of a launcher that was killed may keep its streams. */
static bool is_left_open(struct job *job)
{
    note_once(&job->left_ns);
    return tdmi_clock_seconds_since(job->left_ns) > grace;
}

static tdm_status watch(struct job *job, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) struct pollfd *polls = NULL;
    TDMI_TRY(TDMI_NEW(polls, 2 * (size_t)job->n_started, err));
    int n_open = 1;
    while (count_living(job) > 0 || (n_open > 0 && !is_left_open(job))) {
        n_open = read_streams(job, polls);
        if (tdm_stop_is_requested() && !job->is_stopping) {
            job->is_stopping = true;
            /* mpirun passes SIGUSR1 on to its ranks, and ends them by SIGTERM */
            signal_all(job, job->options->is_launcher ? SIGUSR1 : SIGTERM);
        }
        kill_stopped(job);
        kill_forgotten(job);
        kill_late(job);
    }
    return TDM_OK;
}

static void release(struct job *job)
{
    signal_all(job, SIGKILL); /* only where a later rank could not be started */
    for (int r = 0; job->ranks && r < job->options->ranks; r++) {
        struct rank *rank = &job->ranks[r];
        if (r < job->n_started && !rank->has_ended)
            (void)waitpid(rank->pid, &rank->status, 0);
        for (int i = 0; i < 2; i++) {
            tdmi_close_at(&rank->streams[i].fd);
            tdmi_text_release(&rank->streams[i].line);
        }
    }
    tdmi_close_at(&job->listener);
    tdmi_free(job->ranks);
    tdmi_ends_release(&job->ends);
}

/* By another launcher. */
static void conclude(struct job *job)
{
    const int status = job->ranks[0].status;
    tdmi_ends_conclude(&job->ends, job->is_stopping, &job->end);
    if (job->end.is_unbegun)
        tdm_log(TDM_LOG_WARNING, "%s ended with status %d before a rank began",
                job->options->program,
                WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

tdm_status tdmi_job_run(const struct tdmi_job_options *options, struct tdmi_job_end *end,
                        tdm_error *err)
{
    TDMI_AT_END(release)
    struct job job = {.options = options, .end = {.lost_rank = -1}, .listener = -1};
    TDMI_TRY(TDMI_NEW(job.ranks, options->ranks, err));
    for (int r = 0; r < options->ranks; r++)
        job.ranks[r].streams[0].fd = job.ranks[r].streams[1].fd = -1;
    TDMI_TRY(tdmi_ends_begin(&job.ends, options->ranks, err));
    if (!options->is_launcher)
        TDMI_TRY(open_listener(&job, err));
    TDMI_TRY(choose_token(&job, err));
    TDMI_TRY(start_all(&job, err));
    TDMI_TRY(watch(&job, err));
    if (options->is_launcher)
        conclude(&job);
    *end = job.end;
    return TDM_OK;
}
