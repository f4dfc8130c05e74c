/* Headers that decide, and those that two programs would read in two ways. */
#include "unit.h"
#include "serve/headers.h"

struct line {
    const char *name, *value;
};

static struct tdmi_http_head evaluated(const struct line *lines, bool is_old)
{
    static struct tdmi_headers headers; /* a checked head borrows its problem */
    struct tdmi_http_head head = {0};
    headers = (struct tdmi_headers){0};
    for (int i = 0; lines[i].name; i++)
        tdmi_headers_add(&headers, lines[i].name, lines[i].value);
    tdmi_headers_check(&headers, is_old, &head);
    return head;
}

#define CHECKED(is_old, ...) evaluated((const struct line[]){__VA_ARGS__, {NULL, NULL}}, is_old)

TEST(headers_are_found_by_name_in_any_case)
{
    struct tdmi_http_head head =
        CHECKED(false, {"host", "h"}, {"ORIGIN", "o"}, {"Authorization", "a"}, {"X-Any", ""},
                {"content-type", "t"}, {"Content-Length", "17"}, {"expect", "100-Continue"});
    assert_null(head.problem);
    assert_int_equal(head.problem_status, 0);
    assert_string_equal(head.host, "h");
    assert_string_equal(head.origin, "o");
    assert_string_equal(head.authorization, "a");
    assert_string_equal(head.content_type, "t");
    assert_int_equal(head.length_bytes, 17);
    assert_true(head.wants_permission);
    head = CHECKED(false, {"Host", "h"});
    assert_null(head.problem);
    assert_int_equal(head.length_bytes, 0);
    assert_false(head.wants_permission);
    head = CHECKED(false, {"Host", "h"}, {"Transfer-Encoding", "Chunked"});
    assert_null(head.problem);
    assert_int_equal(head.length_bytes, -1);
    assert_null(CHECKED(true, {"X", "y"}, {"X", "y"}).problem); /* HTTP/1.0 has no Host */
}

#define REFUSED(status, is_old, ...)                                \
    do {                                                            \
        struct tdmi_http_head found = CHECKED(is_old, __VA_ARGS__); \
        assert_int_equal(found.problem_status, status);             \
        assert_non_null(found.problem);                             \
        assert_true(strlen(found.problem) > 10);                    \
    } while (0)

TEST(what_can_be_read_in_two_ways_is_refused)
{
#define HOST {"Host", "h"}
    REFUSED(400, false, HOST, {"Content-Length", "3"}, {"content-length", "5"});
    REFUSED(400, false, HOST, {"Content-Length", "3"}, {"Content-Length", "3"});
    REFUSED(400, false, HOST, {"Content-Length", "3"}, {"Transfer-Encoding", "chunked"});
    REFUSED(400, false, HOST, {"Transfer-Encoding", "chunked"}, {"Transfer-Encoding", "chunked"});
    REFUSED(400, false, HOST, {"host", "other"});
    REFUSED(400, false, HOST, {"Authorization", "a"}, {"Authorization", "b"});
    REFUSED(400, false, HOST, {"Content-Length ", "3"});
    REFUSED(400, false, HOST, {"Content-Length\t", "3"});
    REFUSED(400, false, HOST, {"", "3"});
    REFUSED(400, false, HOST, {"a(b)", "3"});
    REFUSED(400, false, HOST, {"na\xc3\xafve", "3"});
    REFUSED(400, false, {"Origin", "o"});
    REFUSED(400, true, {"Transfer-Encoding", "chunked"});
    REFUSED(501, false, HOST, {"Transfer-Encoding", "gzip"});
    REFUSED(501, false, HOST, {"Transfer-Encoding", "gzip, chunked"});
    REFUSED(501, false, HOST, {"Transfer-Encoding", "chunked "});
    REFUSED(501, false, HOST, {"Transfer-Encoding", ""});
}

TEST(a_target_with_a_control_character_is_odd)
{
    static const char *const odd[] = {"/model%00", "/%00", "/?top%00=5", "/?top=5%0A", "/%1f",
                                      "/%7f",      "/%7F", "/%",         "/%6",        "/%6g",
                                      "/%g6",      "/a b", "/\x01",      "/\x7f",      "/%%20"};
    static const char *const fine[] = {"/",    "",        "/%6dodel",     "/?top=5&logits=1",
                                       "/%20", "/%7e%Ff", "/na\xc3\xafve"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        assert_true(tdmi_headers_is_odd_target(odd[i]));
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        assert_false(tdmi_headers_is_odd_target(fine[i]));
    struct tdmi_headers headers = {.has_odd_target = true};
    struct tdmi_http_head head = {0};
    tdmi_headers_add(&headers, "Host", "h");
    tdmi_headers_check(&headers, false, &head);
    assert_int_equal(head.problem_status, 400);
    assert_non_null(strstr(head.problem, "control character"));
}

TEST_MAIN(NULL, NULL)
