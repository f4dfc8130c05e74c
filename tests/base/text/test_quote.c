/* Names of other people in messages for people. */
#include "base/text/quote.h"
#include "base/text/text.h"
#include "unit.h"

static void assert_quoted(const char *name, const char *quoted)
{
    char text[200];
    assert_int_equal(tdmi_quote_text(text, sizeof text, "%s", name), strlen(quoted));
    assert_string_equal(text, quoted);
    /* Once more changes nothing: messages are passed on inside messages. */
    char again[200];
    tdmi_quote_text(again, sizeof again, "%s", text);
    assert_string_equal(again, quoted);
}

TEST(every_kind_of_character_has_its_form)
{
    static const struct {
        const char *name, *quoted;
    } cases[] = {
        {"", ""},
        {"plain name.jpg", "plain name.jpg"},
        {"back\\slash", "back\\slash"},
        {"Gr\xc3\xbc\xc3\x9f"
         "e \xe7\x8c\xab \xf0\x9f\x98\x80",
         "Gr\xc3\xbc\xc3\x9f"
         "e \xe7\x8c\xab \xf0\x9f\x98\x80"},
        {"\xd7\x97\xd7\xaa\xd7\x95\xd7\x9c", "\xd7\x97\xd7\xaa\xd7\x95\xd7\x9c"}, /* Hebrew */
        {"family \xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9", /* U+200D joins, and steers nothing
                                                                 */
         "family \xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9"},
        /* C0 and DEL */
        {"\x1b[2J", "\\x1b[2J"},
        {"a\nb\tc\rd", "a\\x0ab\\x09c\\x0dd"},
        {"\x01\x1f\x7f", "\\x01\\x1f\\x7f"},
        /* C1 begins and ends; its neighbours are plain */
        {"\xc2\x80\xc2\x9b\xc2\x9f", "\\u0080\\u009b\\u009f"},
        {"\xc2\xa0\xc2\xad", "\xc2\xa0\xc2\xad"},
        /* marks that reverse what is read, each range with its neighbours */
        {"\xd8\x9b\xd8\x9c\xd8\x9d", "\xd8\x9b\\u061c\xd8\x9d"},
        {"\xe2\x80\x8d\xe2\x80\x8e\xe2\x80\x8f\xe2\x80\x90",
         "\xe2\x80\x8d\\u200e\\u200f\xe2\x80\x90"},
        {"\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa", "\xe2\x80\xa7\\u2028\\u2029\\u202a"},
        {"\xe2\x80\xab\xe2\x80\xac\xe2\x80\xad\xe2\x80\xae\xe2\x80\xaf",
         "\\u202b\\u202c\\u202d\\u202e\xe2\x80\xaf"},
        {"\xe2\x81\xa5\xe2\x81\xa6\xe2\x81\xa7\xe2\x81\xa8\xe2\x81\xa9\xe2\x81\xaa",
         "\xe2\x81\xa5\\u2066\\u2067\\u2068\\u2069\xe2\x81\xaa"},
        /* no UTF-8: alone, cut short, overlong, a surrogate, above U+10FFFF */
        {"\x9b"
         "2J\xff\xfe",
         "\\x9b2J\\xff\\xfe"},
        {"\xc3", "\\xc3"},
        {"\xe2\x82|", "\\xe2\\x82|"},
        {"\xf0\x9f\x98", "\\xf0\\x9f\\x98"},
        {"\xc0\x9b\xc1\xbf", "\\xc0\\x9b\\xc1\\xbf"},
        {"\xe0\x80\x9b", "\\xe0\\x80\\x9b"},
        {"\xf0\x80\x80\x9b", "\\xf0\\x80\\x80\\x9b"},
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
        {"\xf4\x90\x80\x80\xf5\x80\x80\x80", "\\xf4\\x90\\x80\\x80\\xf5\\x80\\x80\\x80"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_quoted(cases[i].name, cases[i].quoted);
}

/* Any two bytes of a name: the text is UTF-8 and controls no terminal. */
TEST(no_byte_gets_through)
{
    char text[64];
    for (unsigned pair = 1; pair < 0x10000; pair++) {
        const char name[] = {(char)(pair >> 8 ? pair >> 8 : 'x'), (char)pair, '\0'};
        const size_t length = tdmi_quote_text(text, sizeof text, "%s%c", name, (char)pair);
        for (size_t i = 0, n; i < length; i += n) {
            bool is_plain;
            n = tdmi_character(text + i, length - i, &is_plain);
            assert_true(is_plain && (unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
            assert_false((unsigned char)text[i] == 0xc2 && (unsigned char)text[i + 1] < 0xa0);
        }
    }
}

/* ---- the format ---------------------------------------------------------------------------- */

/* Names that need no quoting come out as from snprintf. */
#define ASSERT_AS_PRINTF(...)                                                       \
    do {                                                                            \
        char expected[300], text[300];                                              \
        int expected_length = snprintf(expected, 300, __VA_ARGS__);                 \
        assert_int_equal(tdmi_quote_text(text, 300, __VA_ARGS__), expected_length); \
        assert_string_equal(text, expected);                                        \
    } while (0)

TEST(conversions_are_those_of_printf)
{
    ASSERT_AS_PRINTF("%d %i %5d|%-5d|%05d|%+d|% d", 1, -2, 3, 4, -5, 6, 7);
    ASSERT_AS_PRINTF("%ld %lld %zd %jd %td", -1L, INT64_MIN + 0LL, (ssize_t)-3, (intmax_t)-4,
                     (ptrdiff_t)-5);
    ASSERT_AS_PRINTF("%u %lu %llu %zu %ju", 1u, ~0ul, ~0ull, SIZE_MAX, UINTMAX_MAX);
    ASSERT_AS_PRINTF("%x %X %#x %o %08x %016llx", 0xbeefu, 0xbeefu, 1u, 8u, 0xau, 0xffull);
    ASSERT_AS_PRINTF("%f %.0f %.3g %g %e %G %+.2f %8.3f|%-8.1f|", 1.5, 2.5, 1e10, 1e-5, 3.0, 1e20,
                     -1.0, 2.0, 3.0);
    ASSERT_AS_PRINTF("%*d|%-*d|%*d|%.*f|%0*d", 4, 1, 4, 2, -4, 3, 2, 1.005, 6, 7);
    ASSERT_AS_PRINTF("%s|%5s|%-5s|%.2s|%.*s|%*s|%-*s|%.*s", "a", "b", "c", "def", 1, "gh", 4, "i",
                     4, "j", -1, "all");
    ASSERT_AS_PRINTF("100%% %c %p", 'x', (void *)&state);
    ASSERT_AS_PRINTF("a line\nand\ta \xc2\x9b of our own");
}

TEST(widths_count_characters)
{
    char text[100];
    tdmi_quote_text(text, sizeof text, "%-6s|%6s|%-6s|", "Gr\xc3\xbcn", "\xe7\x8c\xab", "\x1b");
    assert_string_equal(text, "Gr\xc3\xbcn  |     \xe7\x8c\xab|\\x1b  |");
}

TEST(a_precision_leaves_no_character_in_half)
{
    char text[100];
    tdmi_quote_text(text, sizeof text, "%.3s|%.4s|%.2s|%.1s|%.1s", "ab\xc3\xbc", "ab\xc3\xbc",
                    "a\xff", "\xe7\x8c\xab", "\x9b");
    assert_string_equal(text, "ab|ab\xc3\xbc|a\\xff||\\x9b");
}

/* ---- length -------------------------------------------------------------------------------- */

TEST(a_name_of_megabytes_leaves_the_sentence_whole)
{
    enum { n = 5 << 20 };
    char *name = malloc(n + 1), text[1000];
    assert_non_null(name);
    memset(name, 'n', n);
    memcpy(name, "first", 5);
    memcpy(name + n - 4, "last", 5);
    const size_t length =
        tdmi_quote_text(text, sizeof text, "tensor '%s' of '%s': not known", name, "f");
    assert_int_equal(length, strlen(text));
    assert_true(length < sizeof text && length > 900);
    assert_memory_equal(text, "tensor 'firstnnn", 16);
    assert_non_null(strstr(text, "nnn…nnn"));
    assert_string_equal(text + length - 27, "nnnnlast' of 'f': not known");
    /* Two of them share the room, and bytes that are spelled take more of it. */
    memset(name, '\x9b', n);
    tdmi_quote_text(text, sizeof text, "'%s' and '%s' differ", name, name);
    assert_memory_equal(text, "'\\x9b", 5);
    assert_non_null(strstr(text, "\\x9b…\\x9b"));
    assert_string_equal(text + strlen(text) - 12, "\\x9b' differ");
    free(name);
}

TEST(every_room_holds_whole_characters)
{
    static const char name[] = "\xf0\x9f\x98\x80\x1b\xe7\x8c\xab\xc3\xbc-\xe2\x80\xae";
    char text[200], whole[200];
    const size_t needed = tdmi_quote_text(whole, sizeof whole, "<%s> %d", name, 12345);
    for (size_t room = 1; room < sizeof text; room++) {
        memset(text, '!', sizeof text);
        const size_t length = tdmi_quote_text(text, room, "<%s> %d", name, 12345);
        assert_int_equal(length, strlen(text));
        assert_true(length < room);
        for (size_t i = room; i < sizeof text; i++)
            assert_int_equal(text[i], '!');
        for (size_t i = 0; i < length; i += tdmi_utf8_length(text + i, length - i))
            assert_true(tdmi_utf8_length(text + i, length - i) > 0);
        if (room > needed)
            assert_string_equal(text, whole);
        else if (room > 3)
            assert_non_null(strstr(text, "…"));
        /* no escape in half */
        for (const char *at = strchr(text, '\\'); at; at = strchr(at + 1, '\\'))
            assert_true(strncmp(at, "\\x1b", 4) == 0 || strncmp(at, "\\u202e", 6) == 0);
    }
    assert_int_equal(tdmi_quote_text(NULL, 0, "%s", name), 0);
}

static void add_bytes(void *to, const char *piece, size_t n_bytes)
{
    tdmi_text_add(to, piece, n_bytes);
}

static void TDM_PRINTF(3, 4) add_pieces(tdmi_text *text, size_t most_bytes, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tdmi_quote_pieces(add_bytes, text, most_bytes, format, arguments);
    va_end(arguments);
}

TEST(a_limit_cuts_the_middle_out)
{
    tdmi_text text = {0};
    add_pieces(&text, 9, "%s %s %-9s|", "123456789", "1234567890",
               "1\xe7\x8c\xab\xe7\x8c\xab\xe7\x8c\xab");
    assert_string_equal(tdmi_text_string(&text),
                        "123456789 123456…890 1\xe7\x8c\xab…\xe7\x8c\xab     |");
    tdmi_text_release(&text);
}

TEST_MAIN(NULL, NULL)
