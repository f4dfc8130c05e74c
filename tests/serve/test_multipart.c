/* Forms as browsers, curl and Python write them, and bodies that are none. */
#include "unit.h"
#include "serve/multipart.h"

enum { MOST = 4 };

#define TYPE "multipart/form-data; boundary=XX"
#define HEAD(name) "Content-Disposition: form-data; name=\"" name "\"\r\n\r\n"

/* A copy that ends where its memory does, so that a sanitizer sees what is read behind it. */
static tdm_status read(const char *type, const char *body, size_t length,
                       struct tdmi_form_part *parts, int *n, char **copy, tdm_error *err)
{
    *copy = malloc(length ? length : 1);
    assert_non_null(*copy);
    memcpy(*copy, body, length);
    return tdmi_multipart_read(type, *copy, length, parts, MOST, n, err);
}

struct wanted {
    const char *name, *bytes;
};

static void reads(const char *type, const char *body, size_t length, int n_wanted,
                  const struct wanted *wanted)
{
    struct tdmi_form_part parts[MOST];
    tdm_error err = {0};
    char *copy;
    int n;
    assert_ok(read(type, body, length, parts, &n, &copy, &err), &err);
    assert_int_equal(n, n_wanted);
    for (int i = 0; i < n; i++) {
        assert_string_equal(parts[i].name, wanted[i].name);
        assert_int_equal(parts[i].length_bytes, strlen(wanted[i].bytes));
        assert_memory_equal(parts[i].bytes, wanted[i].bytes, parts[i].length_bytes);
    }
    free(copy);
}

#define READS(type, body, ...)                                                       \
    do {                                                                             \
        const struct wanted wanted[] = {__VA_ARGS__};                                \
        reads(type, body, sizeof(body) - 1, sizeof wanted / sizeof *wanted, wanted); \
    } while (0)

TEST(parts_come_out_in_order_with_their_names)
{
    READS(TYPE, "--XX\r\n" HEAD("a") "first\r\n--XX\r\n" HEAD("b") "second\r\n--XX--\r\n",
          {"a", "first"}, {"b", "second"});
    READS(TYPE, "--XX\r\n" HEAD("a") "\r\n--XX--", {"a", ""});
    READS(TYPE, "preamble\r\n--XX \t\r\n" HEAD("a") "x\r\n--XX--\r\nepilogue", {"a", "x"});
    READS(TYPE, "--XX\r\n" HEAD("a") "\r\n-\r\n--X\r\n\r\r\n--XX--", {"a", "\r\n-\r\n--X\r\n\r"});
    READS("Multipart/Form-Data; charset=utf-8; Boundary=\"a b'c\"; x=y",
          "--a b'c\r\nCONTENT-DISPOSITION: form-data; name=n\r\n\r\n--XX\r\n--a b'c--",
          {"n", "--XX"});
}

TEST(the_name_is_the_file_s_and_else_the_field_s)
{
    READS(TYPE,
          "--XX\r\nContent-Type: image/png\r\nContent-Disposition: form-data; name=\"f\"; "
          "filename=\"a %22b%22; name=c.png\"\r\n\r\nx\r\n--XX\r\n"
          "Content-Disposition: form-data; filename=plain.jpg; name=f\r\n\r\ny\r\n--XX\r\n"
          "Content-Disposition: form-data; name=\"f\"; filename=\"\"\r\n\r\nz\r\n--XX\r\n"
          "Content-Disposition: form-data\r\n\r\n\r\n--XX--",
          {"a \"b\"; name=c.png", "x"}, {"plain.jpg", "y"}, {"f", "z"}, {"", ""});
}

/* As HTML says, and as browsers, curl and Python do: three bytes are written as %22, %0D and %0A,
 * and everything else stands for itself. */
TEST(names_are_read_as_browsers_write_them)
{
#define FILE_NAMED(name) "--XX\r\nContent-Disposition: form-data; filename=\"" name "\"\r\n\r\n\r\n"
    READS(TYPE,
          FILE_NAMED("C:\\new\\a.png") FILE_NAMED("%22%0D%0A%22") FILE_NAMED("100%25%2%0d%")
              FILE_NAMED("a\\") "--XX--",
          {"C:\\new\\a.png", ""}, {"\"\r\n\"", ""}, {"100%25%2%0d%", ""}, {"a\\", ""});
    READS(TYPE,
          "--XX\r\nContent-Disposition: form-data; name=\"a\\\"; filename=\"b\"\r\n\r\n\r\n--XX--",
          {"b", ""});
}

TEST(a_form_in_a_form_is_bytes)
{
    READS(
        TYPE,
        "--XX\r\n" HEAD("a") "--YY\r\n" HEAD("b") "x\r\n--YY--\r\n--XX\r\n" HEAD("c") "\r\n--XX--",
        {"a", "--YY\r\n" HEAD("b") "x\r\n--YY--"}, {"c", ""});
}

static void refuses(const char *type, const char *body, const char *says)
{
    struct tdmi_form_part parts[MOST];
    tdm_error err = {0};
    char *copy;
    int n;
    assert_int_equal(read(type, body, strlen(body), parts, &n, &copy, &err), TDM_E_INPUT);
    if (!strstr(tdm_error_sentence(&err, 0), says))
        fail_msg("'%s' is wanted in: %s", says, tdm_error_sentence(&err, 0));
    free(copy);
}

TEST(what_is_no_form_is_refused_in_a_sentence)
{
    static const char whole[] = "--XX\r\n" HEAD("a") "x\r\n--XX--";
    refuses("multipart/form-data", whole, "no boundary");
    refuses("multipart/form-data; boundary=", whole, "no boundary");
    refuses("multipart/form-data; boundary=\"a\"\"", "", "is not in the body");
    refuses("multipart/form-data; boundary=a<b", whole, "no boundary");
    refuses(
        "multipart/form-data; boundary=012345678901234567890123456789012345678901234567890123456"
        "78901234567890",
        whole, "1 to 70 characters");
    refuses(TYPE, "", "is not in the body");
    refuses(TYPE, "--X", "is not in the body");
    refuses(TYPE, "--XX", "continues behind boundary 1");
    refuses(TYPE, "--XXY\r\n" HEAD("a") "x\r\n--XX--", "continues behind boundary 1");
    refuses(TYPE, "--XX\r\n" HEAD("a") "x\r\n--XXY--", "continues behind boundary 2");
    refuses(TYPE, "--XX\r\n" HEAD("a") "x\r\n--X", "does not end with the boundary");
    refuses(TYPE, "--XX\r\nContent-Disposition: form-data", "ends before its head does");
    refuses(TYPE, "--XX\r\nContent-Type: image/png\r\n\r\nx\r\n--XX--", "no Content-Disposition");
    refuses(TYPE, "--XX\r\nContent-Transfer-Encoding: base64\r\n" HEAD("a") "x\r\n--XX--",
            "'base64'");
    refuses(TYPE,
            "--XX\r\n" HEAD("a") "\r\n--XX\r\n" HEAD("a") "\r\n--XX\r\n" HEAD(
                "a") "\r\n--XX\r\n" HEAD("a") "\r\n--XX\r\n" HEAD("a") "\r\n--XX--",
            "more than 4 parts");
}

TEST(what_is_there_once_is_not_there_twice)
{
#define DISPOSITION "Content-Disposition: form-data"
#define BINARY "Content-Transfer-Encoding: binary\r\n"
    refuses(TYPE "; boundary=XX", "--XX\r\n" HEAD("a") "\r\n--XX--", "or two");
    refuses(TYPE, "--XX\r\n" DISPOSITION "\r\n" HEAD("a") "\r\n--XX--", "twice");
    refuses(TYPE, "--XX\r\n" DISPOSITION "; name=a; NAME=b\r\n\r\n\r\n--XX--", "twice");
    refuses(TYPE, "--XX\r\n" DISPOSITION "; filename=a; name=b; filename=\"a\"\r\n\r\n\r\n--XX--",
            "twice");
    refuses(TYPE, "--XX\r\n" BINARY BINARY HEAD("a") "\r\n--XX--", "twice");
    READS(TYPE, "--XX\r\n" BINARY DISPOSITION "; name=\"; name=\"; x=y\r\n\r\n\r\n--XX--",
          {"; name=", ""});
    READS(TYPE, "--XX\r\n" HEAD("a") "\r\n--XX\r\n" HEAD("a") "\r\n--XX--", {"a", ""}, {"a", ""});
}

TEST(a_nul_in_the_head_of_a_part_is_refused)
{
    static const char body[] = "--XX\r\n" HEAD("a\0b") "\r\n--XX--";
    struct tdmi_form_part parts[MOST];
    tdm_error err = {0};
    char *copy;
    int n;
    assert_int_equal(read(TYPE, body, sizeof body - 1, parts, &n, &copy, &err), TDM_E_INPUT);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "has a NUL in it"));
    free(copy);
}

/* Cut anywhere, it is refused or has fewer parts, and nothing behind its end is looked at. */
TEST(a_form_cut_anywhere_does_no_harm)
{
    static const char whole[] =
        "--XX\r\n" HEAD("a") "first\r\n--XX\r\n"
                             "Content-Disposition: form-data; name=\"b\"; filename=\"%22c\"\r\n"
                             "Content-Transfer-Encoding: binary\r\n\r\nsecond\r\n--XX--";
    for (size_t length = 0; length < sizeof whole; length++) {
        struct tdmi_form_part parts[MOST];
        char *copy;
        int n;
        tdm_status status = read(TYPE, whole, length, parts, &n, &copy, NULL);
        assert_int_equal(status, length < sizeof whole - 1 ? TDM_E_INPUT : TDM_OK);
        free(copy);
    }
}

TEST_MAIN(NULL, NULL)
