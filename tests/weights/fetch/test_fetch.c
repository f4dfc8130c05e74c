/*
 * Weights from a server on loopback: whole, cut off and resumed, changed in between, missing, and
 * another file than the published one.
 */
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/memory.h"
#include "weights/fetch/digest.h"
#include "tandem/weights.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/folder.h"

enum { FILE_BYTES = 300000 };

/* One file under every name. Fields are set before a fetch and read after it. */
static struct server {
    int listener;
    int port;
    pthread_t thread;
    uint8_t bytes[FILE_BYTES];
    const char *tag; /* its ETag; NULL: none */
    int answer;      /* instead of the file: 404, 503; 0: the file */
    int past;        /* answer to a request of what follows the end: 416, or 200 with the file */
    long claim;      /* announced as its length instead; 0: the truth */
    int n_cut;       /* so many answers end after cut_at bytes of the body */
    size_t cut_at;
    int n_asked;    /* requests */
    size_t n_sent;  /* bytes of bodies */
    long last_from; /* where the last answer began */
    char last_path[200];
} server;

static void send_all(int to, const void *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t sent = send(to, (const char *)bytes + done, n - done, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        done += (size_t)sent;
    }
}

static void answer(int to, const char *request)
{
    char head[400], tag[100] = "";
    const char *range = strstr(request, "Range: bytes="), *only = strstr(request, "If-Range: ");
    long from = range ? strtol(range + 13, NULL, 10) : 0;
    size_t n;
    if (only && (server.tag == NULL || strncmp(only + 10, server.tag, strlen(server.tag)) != 0))
        from = 0; /* another file than the one that was begun */
    if (from == FILE_BYTES && server.past == 416) {
        server.n_asked++;
        n = (size_t)snprintf(head, sizeof head,
                             "HTTP/1.1 416 No\r\nContent-Range: bytes */%d\r\nContent-Length: 0\r\n"
                             "Connection: close\r\n\r\n",
                             FILE_BYTES);
        send_all(to, head, n);
        return;
    }
    if (from == FILE_BYTES)
        from = 0;
    if (server.tag)
        snprintf(tag, sizeof tag, "ETag: %s\r\n", server.tag);
    sscanf(request, "GET %199s", server.last_path);
    server.n_asked++;
    if (server.answer) {
        n = (size_t)snprintf(head, sizeof head, "HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n",
                             server.answer);
        send_all(to, head, n);
        return;
    }
    n = (size_t)snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Length: %ld\r\n%s",
                         from ? "206 Partial Content" : "200 OK",
                         server.claim ? server.claim : FILE_BYTES - from, tag);
    send_all(to, head, n);
    if (from) {
        n = (size_t)snprintf(head, sizeof head, "Content-Range: bytes %ld-%d/%d\r\n", from,
                             FILE_BYTES - 1, FILE_BYTES);
        send_all(to, head, n);
    }
    send_all(to, "Connection: close\r\n\r\n", 21);
    size_t body = (size_t)(FILE_BYTES - from);
    if (server.n_cut > 0) {
        server.n_cut--;
        body = body < server.cut_at ? body : server.cut_at;
    }
    /* Counted before it is sent: who has read it may look at once. */
    server.n_sent += body;
    server.last_from = from;
    send_all(to, server.bytes + from, body);
}

static void *serve(void *unused)
{
    (void)unused;
    for (;;) {
        char request[2000] = "";
        size_t n = 0;
        int to = accept(server.listener, NULL, NULL);
        if (to < 0)
            return NULL;
        while (n < sizeof request - 1 && strstr(request, "\r\n\r\n") == NULL) {
            ssize_t got = recv(to, request + n, sizeof request - 1 - n, 0);
            if (got <= 0)
                break;
            n += (size_t)got;
            request[n] = '\0';
        }
        if (n > 0)
            answer(to, request);
        shutdown(to, SHUT_RDWR);
        close(to);
    }
}

static struct folder home;
static char mirror[64];
static struct tdm_weights_fetched fetched; /* by the case, and its error */
static tdm_error err;

static int start(void **state)
{
    (void)state;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof at;
    server.listener = socket(AF_INET, SOCK_STREAM, 0);
    if (server.listener < 0 || bind(server.listener, (struct sockaddr *)&at, sizeof at) != 0 ||
        listen(server.listener, 8) != 0 ||
        getsockname(server.listener, (struct sockaddr *)&at, &length) != 0)
        return -1;
    server.port = ntohs(at.sin_port);
    snprintf(mirror, sizeof mirror, "http://127.0.0.1:%d/mirror/", server.port);
    for (size_t i = 0; i < FILE_BYTES; i++)
        server.bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    /* No proxy between a test and its own server. */
    setenv("no_proxy", "127.0.0.1", 1);
    return pthread_create(&server.thread, NULL, serve, NULL);
}

static int stop(void **state)
{
    (void)state;
    shutdown(server.listener, SHUT_RDWR);
    close(server.listener);
    return pthread_join(server.thread, NULL);
}

static int fresh_home(void **state)
{
    (void)state;
    home = folder_new();
    fetched = (struct tdm_weights_fetched){.struct_bytes = sizeof fetched};
    err = (tdm_error){0};
    setenv("TANDEM_HOME", home.path, 1);
    server.tag = "\"one\"";
    server.answer = server.past = server.n_cut = server.n_asked = 0;
    server.n_sent = server.cut_at = 0;
    server.last_from = server.claim = 0;
    return 0;
}

static int remove_home(void **state)
{
    (void)state;
    folder_remove(&home);
    return 0;
}

#define AT_HOME(name) TEST_WITH(name, fresh_home, remove_home)

static const char *const unhashed = "mobilenetv2-0.35-notop";

static void assert_fetch(const char *name, tdm_status expected)
{
    const tdm_status status = tdm_weights_fetch(name, mirror, (tdm_sink){0}, &fetched, &err);
    if (status == TDM_E_ABSENT)
        skip(); /* no libcurl on this machine */
    assert_int_equal(status, expected);
}

static void assert_is_the_file(void)
{
    void *bytes = NULL;
    size_t n = 0;
    assert_int_equal(tdmi_file_read(fetched.path, 1 << 20, &bytes, &n, &err), TDM_OK);
    assert_int_equal(n, FILE_BYTES);
    assert_memory_equal(bytes, server.bytes, FILE_BYTES);
    assert_int_equal(fetched.bytes, FILE_BYTES);
    tdmi_free(bytes);
}

static void assert_said(const char *words)
{
    char text[3000];
    tdm_error_format(&err, text, sizeof text);
    if (strstr(text, words) == NULL)
        fail_msg("'%s' is not in: %s", words, text);
}

AT_HOME(a_file_comes_whole_and_is_remembered)
{
    assert_fetch(unhashed, TDM_OK);
    assert_is_the_file();
    assert_true(fetched.is_new && !fetched.was_here && !fetched.is_published);
    assert_string_equal(server.last_path, "/mirror/mobilenet_v2_weights_tf_dim_ordering_tf_"
                                          "kernels_0.35_224_no_top.h5");
    assert_fetch(unhashed, TDM_OK);
    assert_true(!fetched.is_new && fetched.was_here);
    assert_int_equal(server.n_asked, 1);
}

AT_HOME(a_download_that_was_cut_off_is_resumed)
{
    server.n_cut = 1;
    server.cut_at = 100000;
    assert_fetch(unhashed, TDM_OK);
    assert_is_the_file();
    assert_int_equal(server.n_asked, 2);
    assert_true(server.last_from > 0 && server.n_sent == FILE_BYTES);
}

/* As if n bytes had come of a file that the server called tag. */
static void leave_part(const uint8_t *bytes, size_t n, const char *tag)
{
    static const char file[] = "mobilenet_v2_weights_tf_dim_ordering_tf_kernels_0.35_224_no_top.h5";
    char path[200];
    snprintf(path, sizeof path, "%s/weights/.%s.part", home.path, file);
    assert_int_equal(tdmi_file_write(path, bytes, n, &err), TDM_OK);
    snprintf(path, sizeof path, "%s/weights/.%s.tag", home.path, file);
    if (tag)
        assert_int_equal(tdmi_file_write(path, tag, strlen(tag), &err), TDM_OK);
}

AT_HOME(the_part_of_an_earlier_process_is_resumed)
{
    leave_part(server.bytes, 1000, "\"one\"");
    assert_fetch(unhashed, TDM_OK);
    assert_is_the_file();
    assert_int_equal(server.last_from, 1000);
}

/* Killed between the last byte and the new name: libcurl takes both answers for a success. */
AT_HOME(a_part_with_all_bytes_is_fetched_once_more)
{
    leave_part(server.bytes, FILE_BYTES, "\"one\"");
    server.past = 416;
    assert_fetch(unhashed, TDM_OK);
    assert_is_the_file();
    assert_int_equal(server.n_asked, 2);
}

AT_HOME(a_part_with_all_bytes_is_fetched_once_more_from_a_server_without_ranges)
{
    leave_part(server.bytes, FILE_BYTES, "\"one\"");
    server.past = 200;
    assert_fetch(unhashed, TDM_OK);
    assert_is_the_file();
}

AT_HOME(nothing_of_a_longer_part_that_is_not_trusted_is_left)
{
    static uint8_t longer[FILE_BYTES + 1000];
    server.tag = NULL;
    leave_part(longer, sizeof longer, NULL);
    assert_fetch(unhashed, TDM_OK);
    assert_is_the_file();
}

AT_HOME(a_busy_server_gets_more_requests_and_is_then_named)
{
    server.answer = 503;
    assert_fetch(unhashed, TDM_E_SYSTEM);
    assert_said("the server answers 503");
    assert_said("by hand: put the file at");
    assert_int_equal(server.n_asked, 4);
}

AT_HOME(a_file_that_changed_in_between_is_begun_anew)
{
    leave_part(server.bytes + 5000, 1000, "\"zero\"");
    assert_fetch(unhashed, TDM_OK);
    assert_is_the_file();
    assert_int_equal(server.last_from, 0);
}

AT_HOME(a_rest_of_no_known_file_is_not_trusted)
{
    server.tag = NULL;
    leave_part(server.bytes + 5000, 1000, NULL);
    assert_fetch(unhashed, TDM_OK);
    assert_is_the_file();
}

AT_HOME(another_file_than_the_published_one_is_removed)
{
    const char *const hashed[] = {"resnet18", "xception-notop"};
    for (int i = 0; i < 2; i++) {
        assert_fetch(hashed[i], TDM_E_INPUT);
        assert_said(i ? "md5:b0042744" : "sha256:f37072fd");
        assert_int_equal(tdmi_file_kind_of(fetched.path), TDMI_FILE_MISSING);
    }
}

AT_HOME(a_file_that_changed_here_is_refused)
{
    assert_fetch(unhashed, TDM_OK);
    assert_int_equal(tdmi_file_write(fetched.path, "other", 5, &err), TDM_OK);
    assert_fetch(unhashed, TDM_E_INPUT);
    assert_said("is not the file that was fetched");
}

AT_HOME(a_refusal_of_the_server_is_reported_at_once)
{
    server.answer = 404;
    assert_fetch(unhashed, TDM_E_SYSTEM);
    assert_said("the server answers 404");
    assert_said("--mirror");
    assert_int_equal(server.n_asked, 1);
}

AT_HOME(a_file_much_larger_than_published_is_not_taken)
{
    server.claim = 100000000;
    assert_fetch(unhashed, TDM_E_INPUT);
    assert_said("twice what was published (2.0 MB)");
    assert_int_equal(server.n_asked, 1);
}

AT_HOME(a_name_that_nobody_published_is_wrong_usage)
{
    assert_fetch("xceptoin", TDM_E_USAGE);
    assert_said("xception");
}

AT_HOME(digests_are_compared_as_publishers_write_them)
{
    struct tdmi_digest digest, same;
    char path[200];
    snprintf(path, sizeof path, "%s/abc", home.path);
    assert_int_equal(tdmi_file_write(path, "abc", 3, &err), TDM_OK);
    assert_int_equal(tdmi_digest_file(path, &digest, &err), TDM_OK);
    tdmi_digest_bytes("abc", 3, &same);
    assert_string_equal(same.sha256, digest.sha256);
    assert_string_equal(same.md5, digest.md5);
    assert_true(tdmi_digest_is(&digest, "sha256:ba7816bf"));
    assert_true(tdmi_digest_is(&digest, "md5:900150983cd24fb0d6963f7d28e17f72"));
    assert_false(tdmi_digest_is(&digest, "sha256:ba7816be"));
    assert_false(tdmi_digest_is(&digest, "md5:900150983cd24fb0d6963f7d28e17f7"));
    assert_false(tdmi_digest_is(&digest, ""));
}

TEST_MAIN(start, stop)
