/* One question, one answer: the script runs anew before each start. */
#include "launch/hosts.h"
#include "base/clock.h"
#include "base/scope.h"
#include "base/text/text.h"
#include "tandem/event.h"
#include "tandem/log.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { longest_word = 512, most_slots = 4096, looks_a_deadline = 4, look_ms = 100 };

/* "host:slots" without blanks around it; an address of IPv6 is no name of a host for mpirun. */
static bool add_host(tdmi_text *list, char *line, int *slots)
{
    char *end, *colon = strchr(line, ':');
    long n = 1;
    if (colon) {
        n = strtol(colon + 1, &end, 10);
        if (!isdigit((unsigned char)colon[1]) || *end != '\0' || n < 1 || n > most_slots)
            return false;
        *colon = '\0';
    }
    if (!*line || line[strspn(line, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                    ".-_")])
        return false;
    tdmi_text_printf(list, "%s%s:%ld", list->length_bytes > 0 ? "," : "", line, n);
    *slots += (int)n;
    return *slots <= most_slots;
}

/* answer: what the script printed; its lines are cut into words. */
static tdm_status read_hosts(char *answer, const char *script, tdmi_text *list, int *slots,
                             tdm_error *err)
{
    char kept[longest_word];
    for (char *line = answer, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        char *word = line + strspn(line, " \t");
        word[strcspn(word, "#\r")] = '\0';
        for (size_t n = strlen(word); n > 0 && (word[n - 1] == ' ' || word[n - 1] == '\t'); n--)
            word[n - 1] = '\0';
        snprintf(kept, sizeof kept, "%s", word);
        if (*word && !add_host(list, word, slots))
            return TDM_FAIL(err, TDM_E_INPUT,
                            "'%s' printed '%s': lines like host:2 are accepted, with up to %d "
                            "slots in all",
                            script, kept, most_slots);
    }
    return TDM_OK;
}

/* ---- the script ------------------------------------------------------------------------------ */

/* In a process group of its own: a terminal's Ctrl-C reaches this process only, and a script that
 * hangs is ended with all that it started. */
static tdm_status begin_script(const char *script, pid_t *pid, int *output, tdm_error *err)
{
    char *const words[] = {"sh", "-c", (char *)(uintptr_t)script, NULL};
    int ends[2];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "starting '%s': %s", script, strerror(errno));
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    int problem = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    if (problem == 0)
        problem = posix_spawnp(pid, "sh", &actions, &attributes, words, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    close(ends[1]);
    *output = ends[0];
    if (problem == 0)
        return TDM_OK;
    close(ends[0]);
    return TDM_FAIL(err, TDM_E_SYSTEM, "starting '%s': %s", script, strerror(problem));
}

/* Until the script has ended; *end is of waitpid. */
static tdm_status read_output(int output, pid_t pid, const char *script, double deadline,
                              tdmi_text *answer, int *end, tdm_error *err)
{
    const int64_t began = tdmi_clock_ns();
    struct pollfd wanted = {.fd = output, .events = POLLIN};
    char bytes[4096];
    for (;;) {
        if (tdm_stop_is_requested())
            return TDM_FAIL(err, TDM_E_STOPPED, "stopped on request while '%s' ran", script);
        if (tdmi_clock_seconds_since(began) > deadline)
            return TDM_FAIL(err, TDM_E_PEER, "'%s' has not ended after %g seconds", script,
                            deadline);
        if (poll(&wanted, 1, look_ms) < 1)
            continue;
        const ssize_t n = read(output, bytes, sizeof bytes);
        if (n == 0 && waitpid(pid, end, WNOHANG) != 0)
            return tdmi_text_status(answer, err);
        if (n == 0) /* it has closed its output and runs on */
            (void)poll(NULL, 0, look_ms / 10);
        if (n > 0)
            tdmi_text_add(answer, bytes, (size_t)n);
    }
}

static tdm_status run_script(const char *script, double deadline, tdmi_text *answer, tdm_error *err)
{
    pid_t pid = 0;
    TDMI_AT_END(tdmi_close_at) int output = -1;
    int end = 0;
    TDMI_TRY(begin_script(script, &pid, &output, err));
    const tdm_status status = read_output(output, pid, script, deadline, answer, &end, err);
    if (status != TDM_OK) {
        (void)kill(-pid, SIGKILL);
        while (waitpid(pid, &end, 0) < 0 && errno == EINTR)
            ;
        return status;
    }
    if (!WIFEXITED(end) || WEXITSTATUS(end) != 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' failed (exit status %d): it should print the hosts that are there",
                        script, WIFEXITED(end) ? WEXITSTATUS(end) : 128 + WTERMSIG(end));
    return TDM_OK;
}

tdm_status tdmi_hosts_ask(const char *script, double deadline, tdmi_arena *arena,
                          struct tdmi_hosts *hosts, tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text answer = {0};
    TDMI_AT_END(tdmi_text_release) tdmi_text list = {0};
    *hosts = (struct tdmi_hosts){0};
    TDMI_TRY(run_script(script, deadline, &answer, err));
    if (answer.bytes)
        TDMI_TRY(read_hosts(answer.bytes, script, &list, &hosts->slots, err));
    TDMI_TRY(tdmi_text_status(&list, err));
    hosts->list = tdmi_arena_printf(arena, "%s", tdmi_text_string(&list));
    TDMI_CHECK_MEMORY(hosts->list, err);
    return TDM_OK;
}

tdm_status tdmi_hosts_pause(double deadline, tdm_error *err)
{
    const int64_t began = tdmi_clock_ns();
    while (tdmi_clock_seconds_since(began) < deadline / looks_a_deadline) {
        if (tdm_stop_is_requested())
            return TDM_FAIL(err, TDM_E_STOPPED, "stopped on request while waiting for hosts");
        (void)poll(NULL, 0, look_ms);
    }
    return TDM_OK;
}

tdm_status tdmi_hosts_wait(const char *script, int least, double deadline, tdmi_arena *arena,
                           struct tdmi_hosts *hosts, tdm_error *err)
{
    enum { deadlines = 10 };
    for (int look = 0;; look++) {
        TDMI_TRY(tdmi_hosts_ask(script, deadline, arena, hosts, err));
        if (hosts->slots >= least)
            return TDM_OK;
        if (look == looks_a_deadline * deadlines)
            return TDM_FAIL(err, TDM_E_PEER,
                            "'%s' names hosts with %d slots; at least %d are needed "
                            "(waited for %g seconds)",
                            script, hosts->slots, least, deadlines * deadline);
        if (look == 0)
            tdm_log(TDM_LOG_WARNING, "'%s' names hosts with %d slots; waiting for at least %d",
                    script, hosts->slots, least);
        TDMI_TRY(tdmi_hosts_pause(deadline, err));
    }
}
