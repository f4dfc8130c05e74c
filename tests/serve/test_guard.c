/* Access control, and where a server listens. */
#include "unit.h"
#include "serve/address.h"
#include "serve/guard.h"

#include <unistd.h>

TEST(without_a_token_only_loopback_names_are_answered)
{
    static const struct tdmi_guard open = {0};
    static const char *const fine[] = {"localhost", "localhost:1",    "LocalHost:8080",
                                       "127.0.0.1", "127.0.0.1:8080", "127.8.0.1:80",
                                       "[::1]",     "[::1]:8080"};
    static const char *const wrong[] = {"",
                                        "example.org",
                                        "localhost.example.org",
                                        "localhostile",
                                        "127.0.0.1.example.org",
                                        "127.0.0.1@example.org",
                                        "[::1].example.org",
                                        "[::2]:80",
                                        "10.0.0.1:8080",
                                        "0.0.0.0:8080",
                                        "my.localhost:80"};
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        assert_null(tdmi_guard_refuses(&open, fine[i], NULL));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_non_null(tdmi_guard_refuses(&open, wrong[i], NULL));
    assert_null(tdmi_guard_refuses(&open, NULL, NULL)); /* no browser */
}

TEST(without_a_token_pages_of_other_sites_are_not_answered)
{
    static const struct tdmi_guard open = {0};
    assert_null(tdmi_guard_refuses(&open, "localhost:80", "http://localhost:80"));
    assert_non_null(tdmi_guard_refuses(&open, "localhost:80", "http://localhost:81"));
    assert_non_null(tdmi_guard_refuses(&open, "localhost:80", "https://localhost:80"));
    assert_non_null(tdmi_guard_refuses(&open, "localhost:80", "http://example.org"));
    assert_non_null(tdmi_guard_refuses(&open, "localhost:80", "null"));
    assert_non_null(tdmi_guard_refuses(&open, NULL, "http://localhost"));
}

TEST(a_token_opens_and_nothing_else_does)
{
    struct tdmi_guard guard = {0};
    assert_true(tdmi_guard_lets_in(&guard, NULL));
    assert_int_equal(tdmi_guard_set(&guard, "0123456789abcdef", "here", NULL), TDM_OK);
    assert_true(tdmi_guard_lets_in(&guard, "Bearer 0123456789abcdef"));
    assert_true(tdmi_guard_lets_in(&guard, "bearer   0123456789abcdef"));
    static const char *const wrong[] = {"",
                                        "Bearer",
                                        "Bearer ",
                                        "0123456789abcdef",
                                        "Bearer 0123456789abcde",
                                        "Bearer 0123456789abcdef0",
                                        "Bearer 0123456789abcdef ",
                                        "Bearer 0123456789Abcdef",
                                        "Basic 0123456789abcdef"};
    assert_false(tdmi_guard_lets_in(&guard, NULL));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(tdmi_guard_lets_in(&guard, wrong[i]));
    assert_null(tdmi_guard_refuses(&guard, "example.org", "http://example.org"));
}

TEST(tokens_that_are_easy_to_guess_or_to_mistype_are_refused)
{
    struct tdmi_guard guard = {0};
    char most[TDMI_TOKEN_MOST + 2];
    memset(most, 'x', sizeof most);
    most[TDMI_TOKEN_MOST + 1] = '\0';
    assert_int_equal(tdmi_guard_set(&guard, "", "here", NULL), TDM_E_USAGE);
    assert_int_equal(tdmi_guard_set(&guard, "0123456789abcde", "here", NULL), TDM_E_USAGE);
    assert_int_equal(tdmi_guard_set(&guard, "01234567 9abcdef", "here", NULL), TDM_E_USAGE);
    assert_int_equal(tdmi_guard_set(&guard, "01234567\xc3\xa4 9abcdef", "here", NULL), TDM_E_USAGE);
    assert_int_equal(tdmi_guard_set(&guard, most, "here", NULL), TDM_E_USAGE);
    assert_false(guard.has_token);
    most[TDMI_TOKEN_MOST] = '\0';
    assert_int_equal(tdmi_guard_set(&guard, most, "here", NULL), TDM_OK);
}

TEST(addresses_are_read_as_they_are_written)
{
    static const struct {
        const char *text, *url;
        bool is_loopback;
    } fine[] = {
        {"8080", "http://127.0.0.1:8080/", true},
        {"127.1.2.3:80", "http://127.1.2.3:80/", true},
        {"localhost:1", "http://127.0.0.1:1/", true},
        {"[::1]:65535", "http://[::1]:65535/", true},
        {"0.0.0.0:80", "http://0.0.0.0:80/", false},
        {"10.1.2.3:80", "http://10.1.2.3:80/", false},
        {"[::]:80", "http://[::]:80/", false},
        {"[fe80::1]:80", "http://[fe80::1]:80/", false},
    };
    static const char *const wrong[] = {"",
                                        ":",
                                        "65536",
                                        "-1",
                                        " 80",
                                        "80 ",
                                        "8a",
                                        "::1:80",
                                        "[::1]",
                                        "[]:80",
                                        "example.org:80",
                                        "127.1:80",
                                        "1.2.3.4.5:80",
                                        ":80",
                                        "[::1:80",
                                        "99999999999999999999"};
    struct tdmi_address address;
    char url[80];
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        assert_int_equal(tdmi_address_read(fine[i].text, &address, NULL), TDM_OK);
        tdmi_address_url(&address, url, sizeof url);
        assert_string_equal(url, fine[i].url);
        assert_int_equal(address.is_loopback, fine[i].is_loopback);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (tdmi_address_read(wrong[i], &address, NULL) != TDM_E_USAGE)
            fail_msg("'%s' was taken", wrong[i]);
    }
}

TEST(port_zero_becomes_one_that_is_free_and_is_then_taken)
{
    struct tdmi_address address, again;
    tdm_error err = {0};
    int listener, other;
    assert_int_equal(tdmi_address_read("0", &address, NULL), TDM_OK);
    assert_int_equal(tdmi_address_listen(&address, &listener, NULL), TDM_OK);
    assert_true(ntohs(address.socket.v4.sin_port) > 0);
    again = address;
    assert_int_equal(tdmi_address_listen(&again, &other, &err), TDM_E_SYSTEM);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "port 0 takes any that is free"));
    close(listener);
}

TEST_MAIN(NULL, NULL)
