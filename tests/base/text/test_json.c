/* The JSON reader and writer: what they accept, what they refuse and where, and that what is
 * written reads back the same. */
#include "tandem/json.h"

#include <locale.h>
#include <math.h>
#include "base/each_allocation.h"
#include "base/clock.h"
#include "base/text/text.h"
#include "unit.h"

/* ---- helpers ------------------------------------------------------------------------------ */

static tdm_json_document *read_text(const char *text)
{
    tdm_json_document *document = NULL;
    tdm_error err = {0};
    if (tdm_json_read(text, strlen(text), "test", &document, &err) != TDM_OK)
        fail_msg("%s: %s", text, tdm_error_sentence(&err, 0));
    return document;
}

static void write_value(tdm_json_writer *writer, const char *key, const tdm_json_value *value)
{
    switch (tdm_json_kind_of(value)) {
    case TDM_JSON_NULL:
        tdm_json_null(writer, key);
        break;
    case TDM_JSON_BOOL:
        tdm_json_bool(writer, key, tdm_json_as_bool(value, false));
        break;
    case TDM_JSON_NUMBER:
        tdm_json_number(writer, key, tdm_json_as_number(value, 0.0));
        break;
    case TDM_JSON_STRING:
        tdm_json_string(writer, key, tdm_json_as_string(value, NULL));
        break;
    case TDM_JSON_ARRAY:
        tdm_json_array_begin(writer, key);
        for (size_t i = 0; i < tdm_json_count(value); i++)
            write_value(writer, NULL, tdm_json_at(value, i));
        tdm_json_array_end(writer);
        break;
    case TDM_JSON_OBJECT:
        tdm_json_object_begin(writer, key);
        for (size_t i = 0; i < tdm_json_count(value); i++)
            write_value(writer, tdm_json_key_at(value, i), tdm_json_at(value, i));
        tdm_json_object_end(writer);
        break;
    }
}

/* ---- reading ------------------------------------------------------------------------------ */

TEST(a_document_answers_by_key_and_by_index)
{
    tdm_json_document *document = read_text(
        " {\"name\": \"lenet5\", \"n\": -12, \"rate\": 1.5e-3, \"on\": true, \"off\": false,"
        " \"none\": null, \"list\": [1, [2, 3], {\"deep\": \"x\"}], \"empty\": {} } ");
    const tdm_json_value *root = tdm_json_root(document);
    assert_int_equal(tdm_json_kind_of(root), TDM_JSON_OBJECT);
    assert_int_equal(tdm_json_count(root), 8);
    assert_string_equal(tdm_json_key_at(root, 0), "name");
    assert_string_equal(tdm_json_key_at(root, 7), "empty");
    assert_string_equal(tdm_json_as_string(tdm_json_member(root, "name"), "?"), "lenet5");
    assert_int_equal(tdm_json_as_integer(tdm_json_member(root, "n"), 0), -12);
    assert_true(tdm_json_as_number(tdm_json_member(root, "rate"), 0.0) == 1.5e-3);
    assert_true(tdm_json_as_bool(tdm_json_member(root, "on"), false));
    assert_false(tdm_json_as_bool(tdm_json_member(root, "off"), true));
    assert_int_equal(tdm_json_kind_of(tdm_json_member(root, "none")), TDM_JSON_NULL);
    const tdm_json_value *list = tdm_json_member(root, "list");
    assert_int_equal(tdm_json_count(list), 3);
    assert_int_equal(tdm_json_as_integer(tdm_json_at(tdm_json_at(list, 1), 1), 0), 3);
    assert_string_equal(tdm_json_as_string(tdm_json_member(tdm_json_at(list, 2), "deep"), "?"),
                        "x");
    assert_int_equal(tdm_json_count(tdm_json_member(root, "empty")), 0);
    tdm_json_document_free(document);
}

TEST(queries_of_nothing_or_the_wrong_kind_give_the_fallback)
{
    tdm_json_document *document = read_text("[\"text\", 1.5, 1e300]");
    const tdm_json_value *root = tdm_json_root(document);
    assert_null(tdm_json_member(root, "key"));
    assert_null(tdm_json_member(NULL, "key"));
    assert_null(tdm_json_member(tdm_json_at(root, 0), "key"));
    assert_null(tdm_json_at(root, 3));
    assert_null(tdm_json_at(tdm_json_at(root, 0), 0));
    assert_null(tdm_json_key_at(root, 0));
    assert_null(tdm_json_root(NULL));
    assert_int_equal(tdm_json_count(NULL), 0);
    assert_int_equal(tdm_json_kind_of(NULL), TDM_JSON_NULL);
    assert_string_equal(tdm_json_as_string(tdm_json_at(root, 1), "fallback"), "fallback");
    assert_true(tdm_json_as_number(tdm_json_at(root, 0), 7.0) == 7.0);
    assert_int_equal(tdm_json_as_integer(tdm_json_at(root, 1), 7), 7);
    assert_int_equal(tdm_json_as_integer(tdm_json_at(root, 2), 7), 7);
    assert_true(tdm_json_as_bool(tdm_json_at(root, 0), true));
    tdm_json_document_free(document);
    tdm_json_document_free(NULL);
}

TEST(integers_are_exact_to_the_last_bit)
{
    static const struct {
        const char *text;
        int64_t value;
        bool is_integer;
    } cases[] = {
        {"9007199254740993", 9007199254740993, true},
        {"9223372036854775807", INT64_MAX, true},
        {"-9223372036854775808", INT64_MIN, true},
        {"9223372036854775808", 0, false},
        {"-9223372036854775809", 0, false},
        {"9223372036854775808.0", 0, false},
        {"-0", 0, true},
        {"1.0", 1, true},
        {"12e2", 1200, true},
        {"0.5", 0, false},
        {"1e30", 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdm_json_document *document = read_text(cases[i].text);
        const tdm_json_value *value = tdm_json_root(document);
        assert_int_equal(tdm_json_kind_of(value), TDM_JSON_NUMBER);
        assert_true(tdm_json_as_integer(value, -77) ==
                    (cases[i].is_integer ? cases[i].value : -77));
        tdm_json_document_free(document);
    }
}

TEST(strings_are_unescaped)
{
    static const struct {
        const char *text, *value;
    } cases[] = {
        {"\"\"", ""},
        {"\"a\\\"b\\\\c\\/d\\b\\f\\n\\r\\t\"", "a\"b\\c/d\b\f\n\r\t"},
        {"\"\\u0041\\u00e9\\u20AC\\ud83d\\uDE00\"", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\"\\u0001\\u001f\"", "\x01\x1f"},
        {"\"\xc3\xa9\xf4\x8f\xbf\xbf\x7f\"", "\xc3\xa9\xf4\x8f\xbf\xbf\x7f"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdm_json_document *document = read_text(cases[i].text);
        assert_string_equal(tdm_json_as_string(tdm_json_root(document), "?"), cases[i].value);
        tdm_json_document_free(document);
    }
}

TEST(what_is_not_json_is_refused_with_its_place)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "at byte 0: expected a value, found the end of the text"},
        {"  ", "at byte 2: expected a value, found the end of the text"},
        {"\xef\xbb\xbf{}", "at byte 0: expected a value, found byte 0xef"},
        {"{} x", "at byte 3: expected the end of the text, found 'x'"},
        {"nul", "at byte 0: expected a value, found 'n'"},
        {"nulls", "at byte 4: expected the end of the text, found 's'"},
        {"True", "at byte 0: expected a value, found 'T'"},
        {"NaN", "at byte 0: expected a value, found 'N'"},
        {"-Infinity", "at byte 1: expected a digit, found 'I'"},
        {"[1,]", "at byte 3: expected a value, found ']'"},
        {"[1 2]", "at byte 3: expected ',' or ']', found '2'"},
        {"[1", "at byte 2: expected ',' or ']', found the end of the text"},
        {"{\"a\":1,}", "at byte 7: expected \" at the start of a key, found '}'"},
        {"{a:1}", "at byte 1: expected \" at the start of a key, found 'a'"},
        {"{\"a\" 1}", "at byte 5: expected ':' after a key, found '1'"},
        {"{\"a\":1]", "at byte 6: expected ',' or '}', found ']'"},
        {"01", "at byte 1: expected the end of the text, found '1'"},
        {"+1", "at byte 0: expected a value, found '+'"},
        {".5", "at byte 0: expected a value, found '.'"},
        {"5.", "at byte 2: expected a digit after the point, found the end of the text"},
        {"1e", "at byte 2: expected a digit in the exponent, found the end of the text"},
        {"-", "at byte 1: expected a digit, found the end of the text"},
        {"0x10", "at byte 1: expected the end of the text, found 'x'"},
        {"1e999", "at byte 0: the number is too large for a double"},
        {"'a'", "at byte 0: expected a value, found '''"},
        {"\"a", "at byte 2: expected \" at the end of a string, found the end of the text"},
        {"\"a\\", "at byte 3: expected \" at the end of a string, found the end of the text"},
        {"\"\\x41\"",
         "at byte 2: expected one of \" \\ / b f n r t u after a backslash, found 'x'"},
        {"\"\\u12g4\"", "at byte 1: \\u must be followed by four hex digits"},
        {"\"\\u0000\"", "at byte 1: \\u0000 is not accepted: strings here end at a zero"},
        {"\"\\ud800\"", "at byte 1: half of a surrogate pair without the other half"},
        {"\"\\ud800\\n\"", "at byte 1: half of a surrogate pair without the other half"},
        {"\"\\ud800\\ud800\"", "at byte 1: half of a surrogate pair without the other half"},
        {"\"\\udc00\\ud800\"", "at byte 1: half of a surrogate pair without the other half"},
        {"\"a\nb\"", "at byte 2: expected an escape such as \\n instead of a control character, "
                     "found byte 0x0a"},
        {"\"\x80\"", "at byte 1: expected UTF-8, found byte 0x80"},
        {"\"\xc0\xaf\"", "at byte 1: expected UTF-8, found byte 0xc0"},
        {"\"\xe0\x80\xaf\"", "at byte 1: expected UTF-8, found byte 0xe0"},
        {"\"\xed\xa0\x80\"", "at byte 1: expected UTF-8, found byte 0xed"},
        {"\"\xf4\x90\x80\x80\"", "at byte 1: expected UTF-8, found byte 0xf4"},
        {"\"\xe2\x82\"", "at byte 1: expected UTF-8, found byte 0xe2"},
        {"[1, /* no */ 2]", "at byte 4: expected a value, found '/'"},
        {" {\"a\":1,\"b\":2,\"\\u0061\":3}",
         "in the object at byte 1: the key \"a\" is there twice"},
        {"\f1", "at byte 0: expected a value, found byte 0x0c"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdm_json_document *document = NULL;
        tdm_error err = {0};
        char expected[200];
        /* A copy of the exact size, so that a sanitizer sees a step beyond its end. */
        size_t length = strlen(cases[i].text);
        char *copy = malloc(length + 1);
        memcpy(copy, cases[i].text, length);
        copy = realloc(copy, length ? length : 1);
        assert_int_equal(tdm_json_read(copy, length, "t.json", &document, &err), TDM_E_INPUT);
        free(copy);
        assert_null(document);
        snprintf(expected, sizeof expected, "cannot read t.json as JSON: %s", cases[i].message);
        assert_string_equal(tdm_error_sentence(&err, 0), expected);
    }
}

TEST(a_zero_byte_in_the_text_is_refused)
{
    static const struct {
        const char *text;
        size_t length;
    } cases[] = {{"\0", 1}, {"[1\0]", 4}, {"\"a\0b\"", 5}, {"1\0", 2}, {"\"\\\0\"", 4}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdm_json_document *document = NULL;
        tdm_error err = {0};
        assert_int_equal(tdm_json_read(cases[i].text, cases[i].length, "t", &document, &err),
                         TDM_E_INPUT);
    }
}

TEST(depth_ends_at_128)
{
    tdmi_text text = {0};
    for (int depth = 128; depth <= 129; depth++) {
        tdm_json_document *document = NULL;
        tdm_error err = {0};
        tdmi_text_clear(&text);
        for (int i = 0; i < depth; i++)
            tdmi_text_add(&text, i % 2 ? "{\"a\":" : "[", i % 2 ? 5 : 1);
        tdmi_text_add(&text, "0", 1);
        for (int i = depth; i-- > 0;)
            tdmi_text_add(&text, i % 2 ? "}" : "]", 1);
        tdm_status status = tdm_json_read(text.bytes, text.length_bytes, "deep", &document, &err);
        assert_int_equal(status, depth == 128 ? TDM_OK : TDM_E_INPUT);
        tdm_json_document_free(document);
    }
    assert_true(text.length_bytes > 128);
    tdmi_text_release(&text);
}

/* Quadratic work on 200,000 keys would take minutes. */
TEST(many_keys_take_time_in_proportion)
{
    enum { n_keys = 200000 };
    tdmi_text text = {0};
    tdm_json_document *document = NULL;
    tdm_error err = {0};
    char key[32];
    for (int i = 0; i < n_keys; i++)
        tdmi_text_printf(&text, "%c\"key %d\":%d", i ? ',' : '{', i * 7919 % n_keys, i);
    tdmi_text_add(&text, "}", 1);
    int64_t start_ns = tdmi_clock_ns();
    assert_int_equal(tdm_json_read(text.bytes, text.length_bytes, "keys", &document, &err), TDM_OK);
    const tdm_json_value *root = tdm_json_root(document);
    for (int i = 0; i < n_keys; i++) {
        snprintf(key, sizeof key, "key %d", i * 7919 % n_keys);
        assert_int_equal(tdm_json_as_integer(tdm_json_member(root, key), -1), i);
    }
    assert_null(tdm_json_member(root, "key"));
    assert_true(tdmi_clock_seconds_since(start_ns) < 20.0);
    tdm_json_document_free(document);
    tdmi_text_release(&text);
}

/* ---- writing ------------------------------------------------------------------------------ */

static void write_sample(tdm_json_writer *writer)
{
    tdm_json_object_begin(writer, NULL);
    tdm_json_string(writer, "text", "a\"\\\b\t\n\x01\x7f");
    tdm_json_integer(writer, "least", INT64_MIN);
    tdm_json_array_begin(writer, "list");
    tdm_json_bool(writer, NULL, true);
    tdm_json_null(writer, NULL);
    tdm_json_object_begin(writer, NULL);
    tdm_json_object_end(writer);
    tdm_json_array_end(writer);
    tdm_json_array_begin(writer, "empty");
    tdm_json_array_end(writer);
    tdm_json_string(writer, "absent", NULL);
    tdm_json_object_end(writer);
}

TEST(the_writer_writes_one_line_or_indents)
{
    static const struct {
        int indent;
        const char *text;
    } cases[] = {
        {0, "{\"text\":\"a\\\"\\\\\\b\\t\\n\\u0001\\u007f\",\"least\":-9223372036854775808,"
            "\"list\":[true,null,{}],\"empty\":[],\"absent\":null}"},
        {2,
         "{\n  \"text\": \"a\\\"\\\\\\b\\t\\n\\u0001\\u007f\",\n"
         "  \"least\": -9223372036854775808,\n  \"list\": [\n    true,\n    null,\n    {}\n  ],\n"
         "  \"empty\": [],\n  \"absent\": null\n}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdm_json_writer *writer = tdm_json_writer_new(cases[i].indent);
        const char *text = NULL;
        size_t length = 0;
        tdm_error err = {0};
        write_sample(writer);
        assert_int_equal(tdm_json_finish(writer, &text, &length, &err), TDM_OK);
        assert_string_equal(text, cases[i].text);
        assert_int_equal(length, strlen(text));
        tdm_json_writer_free(writer);
    }
}

TEST(odd_text_becomes_valid_and_harmless)
{
    tdm_json_writer *writer = tdm_json_writer_new(0);
    const char *text = NULL;
    tdm_error err = {0};
    tdm_json_string(writer, NULL,
                    "\xc3\xa9|\xff|\xe2\x82|\xed\xa0\x80|\xc2\x9b|\xe2\x80\xae|\xd8\x9c");
    assert_int_equal(tdm_json_finish(writer, &text, NULL, &err), TDM_OK);
#define MARK "\xef\xbf\xbd"
    assert_string_equal(text, "\"\xc3\xa9|" MARK "|" MARK MARK "|" MARK MARK MARK
                              "|\\u009b|\\u202e|\\u061c\"");
    tdm_json_writer_free(writer);
}

TEST(misuse_of_the_writer_is_a_bug_reported_once)
{
    static const struct {
        const char *calls, *message;
    } cases[] = {
        {"", "the value is not complete, 0 containers are open"},
        {"{", "the value is not complete, 1 containers are open"},
        {"nn", "a second outermost value"},
        {"{}n", "a second outermost value"},
        {"k", "a key outside an object"},
        {"{n}", "a value without a key in an object"},
        {"[k]", "a value with a key in an array"},
        {"[}", "the end of an object that is not open"},
        {"{]", "the end of an array that is not open"},
        {"]", "the end of an array that is not open"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdm_json_writer *writer = tdm_json_writer_new(0);
        const char *text = "";
        tdm_error err = {0};
        for (const char *call = cases[i].calls; *call; call++) {
            switch (*call) {
            case '{':
                tdm_json_object_begin(writer, NULL);
                break;
            case '}':
                tdm_json_object_end(writer);
                break;
            case '[':
                tdm_json_array_begin(writer, NULL);
                break;
            case ']':
                tdm_json_array_end(writer);
                break;
            default:
                tdm_json_null(writer, *call == 'k' ? "key" : NULL);
            }
        }
        char expected[100];
        snprintf(expected, sizeof expected, "cannot write JSON: %s", cases[i].message);
        assert_int_equal(tdm_json_finish(writer, &text, NULL, &err), TDM_E_BUG);
        assert_null(text);
        assert_string_equal(tdm_error_sentence(&err, 0), expected);
        tdm_json_writer_free(writer);
    }
    tdm_json_writer *writer = tdm_json_writer_new(0);
    const char *text = NULL;
    tdm_error err = {0};
    for (int i = 0; i < 129; i++)
        tdm_json_array_begin(writer, NULL);
    assert_int_equal(tdm_json_finish(writer, &text, NULL, &err), TDM_E_BUG);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "more than 128"));
    tdm_json_writer_free(writer);
}

TEST(numbers_read_back_to_the_same_double)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0.0, "0"},
        {-0.0, "-0"},
        {0.1, "0.1"},
        {1.0 / 3.0, "0.3333333333333333"},
        {5e-324, "4.94065645841247e-324"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {123456789012345680.0, "1.2345678901234568e+17"},
        {100.0, "100"},
        {NAN, "null"},
        {INFINITY, "null"},
        {-INFINITY, "null"},
    };
    uint64_t bits = 88172645463325252u;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdm_json_writer *writer = tdm_json_writer_new(0);
        const char *text = NULL;
        tdm_error err = {0};
        tdm_json_number(writer, NULL, cases[i].value);
        assert_int_equal(tdm_json_finish(writer, &text, NULL, &err), TDM_OK);
        assert_string_equal(text, cases[i].text);
        tdm_json_writer_free(writer);
    }
    for (int i = 0; i < 20000; i++) {
        char text[32];
        double value, back;
        bits ^= bits << 13; /* Marsaglia's xorshift: any doubles will do */
        bits ^= bits >> 7;
        bits ^= bits << 17;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        size_t length = tdmi_number_write(value, text);
        assert_int_equal(length, strlen(text));
        assert_true(tdmi_number_read(text, &back));
        assert_memory_equal(&back, &value, sizeof value);
    }
}

/* A locale of our own, because the ones with a decimal comma are rarely installed. Even its
 * character map is ours: a plain system comes with localedef and nothing for it to read. */
static bool enter_locale_with_comma(void)
{
    char folder[] = "/tmp/tandem-locale-XXXXXX", text[512];
    if (!mkdtemp(folder))
        return false;
    snprintf(text, sizeof text, "%s/source", folder);
    FILE *source = fopen(text, "w");
    snprintf(text, sizeof text, "%s/map", folder);
    FILE *map = fopen(text, "w");
    if (source && map) {
        fputs("comment_char %\nescape_char /\nLC_NUMERIC\ndecimal_point \",\"\n"
              "thousands_sep \"\"\ngrouping -1\nEND LC_NUMERIC\n",
              source);
        fputs("<code_set_name> PLAIN\n<comment_char> %\n<escape_char> /\nCHARMAP\n", map);
        for (int i = 0; i < 128; i++)
            fprintf(map, "<U%04X> /x%02x byte\n", (unsigned)i, (unsigned)i);
        fputs("END CHARMAP\n", map);
    }
    if (source)
        fclose(source);
    if (map)
        fclose(map);
    /* It warns that all other categories are missing, and says so in its exit status. */
    snprintf(text, sizeof text, "localedef -c -f %s/map -i %s/source %s/comma >/dev/null 2>&1",
             folder, folder, folder);
    int built = system(text);
    setenv("LOCPATH", folder, 1);
    bool is_set = built >= 0 && setlocale(LC_NUMERIC, "comma") != NULL;
    unsetenv("LOCPATH");
    snprintf(text, sizeof text, "rm -rf %s", folder);
    return system(text) == 0 && is_set;
}

/* Skipped by name on systems without localedef. */
TEST(numbers_do_not_follow_the_locale)
{
    char text[32], local[32];
    double value = 0.0;
    if (!enter_locale_with_comma()) {
        print_message("# needs localedef\n");
        skip();
    }
    snprintf(local, sizeof local, "%g", 2.5);
    size_t length = tdmi_number_write(2.5, text);
    bool is_read = tdmi_number_read("1.25", &value);
    setlocale(LC_ALL, "C");
    assert_string_equal(local, "2,5");
    assert_int_equal(length, 3);
    assert_string_equal(text, "2.5");
    assert_true(is_read && value == 1.25);
}

TEST(what_is_written_reads_back_and_writes_the_same)
{
    tdm_json_document *document = read_text(
        "{\"\":[],\"a\":{\"b\":[1,2.5,-3e-7,\"\\u00e9\\n\"]},\"c\":[[[]],{}],\"d\":null}");
    for (int indent = 0; indent < 5; indent += 2) {
        tdm_json_writer *first = tdm_json_writer_new(indent), *second = tdm_json_writer_new(indent);
        const char *once = NULL, *twice = NULL;
        tdm_error err = {0};
        write_value(first, NULL, tdm_json_root(document));
        assert_int_equal(tdm_json_finish(first, &once, NULL, &err), TDM_OK);
        tdm_json_document *again = read_text(once);
        write_value(second, NULL, tdm_json_root(again));
        assert_int_equal(tdm_json_finish(second, &twice, NULL, &err), TDM_OK);
        assert_string_equal(once, twice);
        tdm_json_document_free(again);
        tdm_json_writer_free(first);
        tdm_json_writer_free(second);
    }
    tdm_json_document_free(document);
}

/* ---- memory ------------------------------------------------------------------------------- */

static tdm_status write_scene(tdm_error *err)
{
    const char *text = NULL;
    tdm_json_writer *writer = tdm_json_writer_new(2);
    write_sample(writer);
    tdm_status status = tdm_json_finish(writer, &text, NULL, err);
    tdm_json_writer_free(writer);
    return status;
}

static tdm_status read_scene(tdm_error *err)
{
    static tdmi_text text; /* made before allocations fail */
    tdm_json_document *document = NULL;
    if (!text.bytes) {
        tdmi_memory_fail_from(0);
        for (int i = 0; i < 3000; i++)
            tdmi_text_printf(&text, "%s{\"name\":\"number %d\",\"list\":[%d,{}]}", i ? "," : "[", i,
                             i);
        tdmi_text_add(&text, "]", 1);
        tdmi_memory_fail_from(1);
    }
    tdm_status status = tdm_json_read(text.bytes, text.length_bytes, "scene", &document, err);
    tdm_json_document_free(document);
    if (status == TDM_OK)
        tdmi_text_release(&text);
    return status;
}

TEST(every_failed_allocation_is_reported)
{
    assert_true(fail_each_allocation(write_scene) >= 3);
    assert_true(fail_each_allocation(read_scene) >= 10);
}

TEST_MAIN(NULL, NULL)
