/* One question, one answer: the script runs anew before each start. */
#include "launch/hosts.h"
#include "base/clock.h"
#include "base/scope.h"
#include "base/text/text.h"
#include "tandem/event.h"
#include "tandem/log.h"

#include <ctype.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { longest_line = 512, most_slots = 4096, looks_a_deadline = 4 };

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

static tdm_status read_hosts(FILE *pipe, const char *script, tdmi_text *list, int *slots,
                             tdm_error *err)
{
    char line[longest_line], kept[longest_line];
    while (fgets(line, sizeof line, pipe)) {
        char *word = line + strspn(line, " \t");
        word[strcspn(word, "#\r\n")] = '\0';
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

tdm_status tdmi_hosts_ask(const char *script, tdmi_arena *arena, struct tdmi_hosts *hosts,
                          tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text list = {0};
    *hosts = (struct tdmi_hosts){0};
    FILE *pipe = popen(script, "r");
    TDMI_CHECK_MEMORY(pipe, err);
    tdm_status status = read_hosts(pipe, script, &list, &hosts->slots, err);
    const int end = pclose(pipe);
    if (status == TDM_OK && (!WIFEXITED(end) || WEXITSTATUS(end) != 0))
        status = TDM_FAIL(err, TDM_E_INPUT,
                          "'%s' failed (exit status %d): it should print the hosts that are there",
                          script, WIFEXITED(end) ? WEXITSTATUS(end) : 128 + WTERMSIG(end));
    TDMI_TRY(status);
    TDMI_TRY(tdmi_text_status(&list, err));
    hosts->list = tdmi_arena_printf(arena, "%s", tdmi_text_string(&list));
    TDMI_CHECK_MEMORY(hosts->list, err);
    return TDM_OK;
}

tdm_status tdmi_hosts_pause(double deadline, tdm_error *err)
{
    enum { look_ms = 100 };
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
        TDMI_TRY(tdmi_hosts_ask(script, arena, hosts, err));
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
