/*
 * libcurl's easy interface, which has not changed its binary form since 2006. Numbers of options
 * are part of that form; the ones used here stand below, so that no header is needed to build.
 */
#include "weights/fetch/transfer.h"
#include "base/system/plugin.h"
#include "tandem/event.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum option {
    OPT_LOW_SPEED_LIMIT = 19,
    OPT_LOW_SPEED_TIME = 20,
    OPT_NOPROGRESS = 43,
    OPT_FAILONERROR = 45,
    OPT_FOLLOWLOCATION = 52,
    OPT_MAXREDIRS = 68,
    OPT_CONNECTTIMEOUT = 78,
    OPT_NOSIGNAL = 99,
    OPT_PROTOCOLS = 181,
    OPT_REDIR_PROTOCOLS = 182,
    OPT_WRITEDATA = 10001,
    OPT_URL = 10002,
    OPT_ERRORBUFFER = 10010,
    OPT_USERAGENT = 10018,
    OPT_HTTPHEADER = 10023,
    OPT_HEADERDATA = 10029,
    OPT_WRITEFUNCTION = 20011,
    OPT_HEADERFUNCTION = 20079,
    OPT_XFERINFOFUNCTION = 20219,
    OPT_RESUME_FROM_LARGE = 30116
};

enum {
    INFO_RESPONSE_CODE = 0x200002,
    GLOBAL_DEFAULT = 3,
    PROTOCOLS_HTTP_AND_HTTPS = 3,
    CODE_OK = 0,
    CODE_HTTP_ERROR = 22,
    ERROR_BYTES = 256
};
/* Ends of a connection that may be had again: cut short, timed out, nothing or an error received.
 */
static const int broken_codes[] = {18, 28, 52, 55, 56, 92};

struct library {
    void *handle;
    int (*global_init)(long flags);
    void *(*easy_init)(void);
    int (*setopt)(void *easy, int option, ...);
    int (*perform)(void *easy);
    int (*getinfo)(void *easy, int info, ...);
    void (*cleanup)(void *easy);
    void *(*list_append)(void *list, const char *text);
    void (*list_free)(void *list);
};

struct run {
    const struct tdmi_transfer *transfer;
    struct library library;
    void *easy;
    tdm_error *err;
    tdm_status status; /* of a callback */
    bool has_begun;
    int64_t length, total; /* of this answer; of the file; -1: not said */
    int64_t from;
    char tag[256];
};

static tdm_status load(struct library *library, tdm_error *err)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.4.dylib"};
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !library->handle; i++)
        library->handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library->handle)
        return TDM_FAIL(
            err, TDM_E_ABSENT,
            "libcurl is not on this machine (libcurl.so.4; Debian: sudo apt-get install libcurl4)");
    void *handle = library->handle;
    if (!tdmi_plugin_symbol(handle, "curl_global_init", &library->global_init) ||
        !tdmi_plugin_symbol(handle, "curl_easy_init", &library->easy_init) ||
        !tdmi_plugin_symbol(handle, "curl_easy_setopt", &library->setopt) ||
        !tdmi_plugin_symbol(handle, "curl_easy_perform", &library->perform) ||
        !tdmi_plugin_symbol(handle, "curl_easy_getinfo", &library->getinfo) ||
        !tdmi_plugin_symbol(handle, "curl_easy_cleanup", &library->cleanup) ||
        !tdmi_plugin_symbol(handle, "curl_slist_append", &library->list_append) ||
        !tdmi_plugin_symbol(handle, "curl_slist_free_all", &library->list_free))
        return TDM_FAIL(err, TDM_E_ABSENT, "the libcurl of this machine lacks the easy interface");
    return TDM_OK;
}

/* ---- what libcurl calls ------------------------------------------------------------------- */

/* The value of "Name: value\r\n", or NULL when the line is of another name. */
static const char *value_of(const char *line, size_t n, const char *name, size_t *n_value)
{
    size_t at = strlen(name);
    if (n <= at || strncasecmp(line, name, at) != 0 || line[at] != ':')
        return NULL;
    for (at++; at < n && (line[at] == ' ' || line[at] == '\t');)
        at++;
    while (n > at && isspace((unsigned char)line[n - 1]))
        n--;
    *n_value = n - at;
    return line + at;
}

/* Digits; -1 when there are none. */
static int64_t number_of(const char *text, size_t n)
{
    int64_t number = -1;
    for (size_t i = 0; i < n && text[i] >= '0' && text[i] <= '9' && number < INT64_MAX / 16; i++)
        number = (number < 0 ? 0 : 10 * number) + (text[i] - '0');
    return number;
}

static void read_header(struct run *run, const char *line, size_t n)
{
    size_t n_value = 0;
    const char *value;
    if (n > 5 && memcmp(line, "HTTP/", 5) == 0) { /* of a redirection, too: begin anew */
        run->length = run->total = -1;
        run->from = 0;
        run->tag[0] = '\0';
    } else if ((value = value_of(line, n, "Content-Length", &n_value)) != NULL) {
        run->length = number_of(value, n_value);
    } else if ((value = value_of(line, n, "ETag", &n_value)) != NULL) {
        snprintf(run->tag, sizeof run->tag, "%.*s", (int)(n_value < 250 ? n_value : 0), value);
    } else if ((value = value_of(line, n, "Content-Range", &n_value)) != NULL && n_value > 6) {
        const char *slash = memchr(value, '/', n_value);
        run->from = number_of(value + 6, n_value - 6); /* "bytes 100-199/200" */
        if (slash != NULL)
            run->total = number_of(slash + 1, n_value - (size_t)(slash + 1 - value));
    }
}

static size_t on_header(char *line, size_t size, size_t n, void *self)
{
    read_header(self, line, size * n);
    return size * n;
}

static tdm_status begin(struct run *run)
{
    if (run->has_begun)
        return TDM_OK;
    run->has_begun = true;
    if (run->from != 0 && run->from != run->transfer->from)
        return TDM_FAIL(run->err, TDM_E_SYSTEM,
                        "the server sends from byte %lld where byte %lld was requested",
                        (long long)run->from, (long long)run->transfer->from);
    if (run->total < 0 && run->from == 0)
        run->total = run->length;
    return run->transfer->begin(run->transfer->self, run->from, run->total, run->tag, run->err);
}

static size_t on_bytes(char *bytes, size_t size, size_t n, void *self)
{
    struct run *run = self;
    run->status = begin(run);
    if (run->status == TDM_OK)
        run->status = run->transfer->bytes(run->transfer->self, bytes, size * n, run->err);
    return run->status == TDM_OK ? size * n : 0;
}

static int on_progress(void *self, int64_t total, int64_t now, int64_t up_total, int64_t up_now)
{
    (void)self, (void)total, (void)now, (void)up_total, (void)up_now;
    return tdm_stop_is_requested();
}

/* ---- run ---------------------------------------------------------------------------------- */

static void set_up(struct run *run, void **headers, char error[ERROR_BYTES])
{
    const struct library *lib = &run->library;
    const struct tdmi_transfer *transfer = run->transfer;
    static const struct {
        int option;
        long value;
    } numbers[] = {{OPT_NOSIGNAL, 1},        {OPT_FAILONERROR, 1},
                   {OPT_FOLLOWLOCATION, 1},  {OPT_MAXREDIRS, 10},
                   {OPT_CONNECTTIMEOUT, 30}, {OPT_LOW_SPEED_LIMIT, 1},
                   {OPT_LOW_SPEED_TIME, 60}, {OPT_PROTOCOLS, PROTOCOLS_HTTP_AND_HTTPS},
                   {OPT_NOPROGRESS, 0},      {OPT_REDIR_PROTOCOLS, PROTOCOLS_HTTP_AND_HTTPS}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        (void)lib->setopt(run->easy, numbers[i].option, numbers[i].value);
    (void)lib->setopt(run->easy, OPT_URL, transfer->url);
    (void)lib->setopt(run->easy, OPT_USERAGENT, "tandem");
    (void)lib->setopt(run->easy, OPT_ERRORBUFFER, error);
    (void)lib->setopt(run->easy, OPT_WRITEFUNCTION, on_bytes);
    (void)lib->setopt(run->easy, OPT_WRITEDATA, (void *)run);
    (void)lib->setopt(run->easy, OPT_HEADERFUNCTION, on_header);
    (void)lib->setopt(run->easy, OPT_HEADERDATA, (void *)run);
    (void)lib->setopt(run->easy, OPT_XFERINFOFUNCTION, on_progress);
    if (transfer->from == 0)
        return;
    (void)lib->setopt(run->easy, OPT_RESUME_FROM_LARGE, transfer->from);
    if (transfer->tag && *transfer->tag) {
        char line[300];
        snprintf(line, sizeof line, "If-Range: %s", transfer->tag);
        *headers = lib->list_append(NULL, line);
        (void)lib->setopt(run->easy, OPT_HTTPHEADER, *headers);
    }
}

static enum tdmi_transfer_end end_of(struct run *run, int code, const char *error)
{
    long answer = 0;
    bool is_broken = false;
    if (run->status != TDM_OK)
        return TDMI_TRANSFER_ENDED;
    if (tdm_stop_is_requested()) {
        (void)TDM_FAIL(run->err, TDM_E_STOPPED, "stopped on request");
        return TDMI_TRANSFER_ENDED;
    }
    /* A server without bytes after those that are here, which libcurl calls a success. */
    if (code == CODE_OK && !run->has_begun && run->transfer->from > 0) {
        (void)TDM_FAIL(run->err, TDM_E_SYSTEM, "the server sends nothing from byte %lld on",
                       (long long)run->transfer->from);
        return TDMI_TRANSFER_REFUSED;
    }
    if (code == CODE_OK) {
        run->status = begin(run); /* of an empty file */
        return run->status == TDM_OK ? TDMI_TRANSFER_DONE : TDMI_TRANSFER_ENDED;
    }
    (void)run->library.getinfo(run->easy, INFO_RESPONSE_CODE, &answer);
    for (size_t i = 0; i < sizeof broken_codes / sizeof broken_codes[0]; i++)
        is_broken = is_broken || code == broken_codes[i];
    if (code == CODE_HTTP_ERROR) {
        (void)TDM_FAIL(run->err, TDM_E_SYSTEM, "the server answers %ld", answer);
        is_broken = answer == 408 || answer == 429 || answer >= 500;
    } else {
        (void)TDM_FAIL(run->err, TDM_E_SYSTEM, "%s (libcurl's code %d)",
                       *error ? error : "the transfer failed", code);
    }
    return is_broken ? TDMI_TRANSFER_BROKE : TDMI_TRANSFER_REFUSED;
}

enum tdmi_transfer_end tdmi_transfer_run(const struct tdmi_transfer *transfer, tdm_error *err)
{
    struct run run = {.transfer = transfer, .err = err, .length = -1, .total = -1};
    char error[ERROR_BYTES] = "";
    void *headers = NULL;
    /* Never closed again: libraries that libcurl loads do not survive it. */
    if (load(&run.library, err) != TDM_OK)
        return TDMI_TRANSFER_REFUSED;
    if (run.library.global_init(GLOBAL_DEFAULT) != CODE_OK ||
        (run.easy = run.library.easy_init()) == NULL) {
        (void)TDM_FAIL(err, TDM_E_SYSTEM, "libcurl does not start");
        return TDMI_TRANSFER_REFUSED;
    }
    set_up(&run, &headers, error);
    enum tdmi_transfer_end end = end_of(&run, run.library.perform(run.easy), error);
    run.library.cleanup(run.easy);
    if (headers)
        run.library.list_free(headers);
    return end;
}
