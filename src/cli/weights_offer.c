/* The question, its answer in the user's config file, and the download. */
#include "cli/weights_offer.h"
#include "base/scope.h"
#include "cli/user_config.h"
#include "cli/watch.h"
#include "tandem/log.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum answer { ANSWER_NONE, ANSWER_YES, ANSWER_NO };

/* ---- asking -------------------------------------------------------------------------------- */

/* A job in the background would be stopped where it reads from the terminal. */
static bool can_ask(const struct tdmi_call *call)
{
    return !call->json && !call->globals->quiet && isatty(STDIN_FILENO) && isatty(STDERR_FILENO) &&
           tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* One line of standard input, without its end; false at its end. A signal may reach another thread,
 * or come just before poll, so Ctrl-C is looked for every LOOK_MS. */
static bool read_line(char *line, size_t line_bytes)
{
    enum { LOOK_MS = 100 };
    size_t n = 0;
    for (;;) {
        struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
        char byte;
        const int ready = poll(&input, 1, LOOK_MS);
        if (tdm_stop_is_requested() || (ready < 0 && errno != EINTR))
            return false;
        if (ready <= 0)
            continue;
        if (read(STDIN_FILENO, &byte, 1) != 1)
            return false;
        if (byte == '\n')
            break;
        if (n + 1 < line_bytes)
            line[n++] = byte;
    }
    line[n] = '\0';
    return true;
}

static enum answer read_answer(void)
{
    static const char *const yes[] = {"", "y", "yes"}, *const no[] = {"n", "no"};
    char line[32];
    while (read_line(line, sizeof line)) {
        for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++)
            if (strcasecmp(line, yes[i]) == 0)
                return ANSWER_YES;
        for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
            if (strcasecmp(line, no[i]) == 0)
                return ANSWER_NO;
        fputs("Please answer y or n: ", stderr);
    }
    fputc('\n', stderr);
    return ANSWER_NONE;
}

/* The answer holds for later trainings too; an answer that cannot be kept still holds for this. A
 * yes is kept once a download has worked: where none can, it would be a warning every time. */
static void remember(enum answer answer)
{
    char path[1024], text[TDM_ERROR_TEXT_BYTES];
    tdm_error err = {0};
    if (tdmi_user_config_add("fetch", answer == ANSWER_YES ? "true" : "false", path, sizeof path,
                             &err) == TDM_OK) {
        fprintf(stderr, "remembered as \"fetch = %s\" in %s\n",
                answer == ANSWER_YES ? "true" : "false", path);
        return;
    }
    tdm_error_line(&err, text, sizeof text);
    tdm_log(TDM_LOG_WARNING, "the answer is not remembered: %s", text);
}

static enum answer ask(const struct tdm_weights_known *wanted)
{
    fprintf(stderr,
            "Pretrained weights are not on this machine. With them, most photos are classified "
            "far better.\nDownload %s now (%.1f MB, %s, %s)? The answer is remembered: yes also "
            "allows downloads that later trainings need. [Y/n] ",
            wanted->name, wanted->megabytes, wanted->origin, wanted->licence);
    fflush(stderr);
    return read_answer();
}

/* ---- fetching ------------------------------------------------------------------------------ */

const char *tdmi_weights_proof(const struct tdm_weights_fetched *fetched)
{
    if (fetched->is_published)
        return "it is the file its publisher describes";
    return fetched->is_new ? "its publisher names no hash: this one is remembered"
                           : "the same as when it was fetched first";
}

static tdm_status fetch(const struct tdmi_call *call, const struct tdm_weights_known *wanted,
                        const struct tdmi_weights_offer *offer, tdm_sink sink, bool *is_fetched,
                        tdm_error *err)
{
    struct tdm_weights_fetched fetched = {.struct_bytes = sizeof fetched};
    const char *unit = call->watch->unit;
    char text[TDM_ERROR_TEXT_BYTES];
    tdm_error own = {0};
    call->watch->unit = "bytes";
    const tdm_status status = tdm_weights_fetch(wanted->name, offer->mirror, sink, &fetched, &own);
    tdmi_watch_stop(call->watch);
    call->watch->unit = unit;
    *is_fetched = status == TDM_OK;
    if (*is_fetched) {
        tdm_log(TDM_LOG_INFO, "fetched %s, %.1f MB, SHA-256 %s: %s", fetched.path,
                (double)fetched.bytes / 1e6, fetched.sha256, tdmi_weights_proof(&fetched));
        return TDM_OK;
    }
    const char *named = offer->options->weights;
    const bool can_go_on = !named || !*named || strcmp(named, "auto") == 0;
    if (!can_go_on || (status != TDM_E_SYSTEM && status != TDM_E_ABSENT)) {
        *err = own;
        return status;
    }
    tdm_error_line(&own, text, sizeof text);
    tdm_log(TDM_LOG_WARNING,
            "pretrained weights cannot be downloaded, so training goes on without them: %s", text);
    return TDM_OK;
}

tdm_status tdmi_weights_offer(const struct tdmi_call *call, const struct tdmi_weights_offer *offer,
                              tdm_sink sink, tdm_error *err)
{
    const struct tdm_weights_known *wanted = NULL;
    bool is_fetched = false;
    if (!(offer->is_decided ? offer->is_allowed : can_ask(call)))
        return TDM_OK;
    TDMI_TRY(tdm_train_weights_wanted(offer->options, &wanted, err));
    if (!wanted)
        return TDM_OK;
    if (offer->is_decided)
        return fetch(call, wanted, offer, sink, &is_fetched, err);
    const enum answer answer = ask(wanted);
    if (tdm_stop_is_requested())
        return TDM_FAIL(err, TDM_E_STOPPED, "stopped on request before training began");
    if (answer == ANSWER_YES)
        TDMI_TRY(fetch(call, wanted, offer, sink, &is_fetched, err));
    if (answer == ANSWER_NO || is_fetched)
        remember(answer);
    return TDM_OK;
}
