/*
 * A quoted word, given to a shell, is the word again.
 */
#include "base/text/shell.h"
#include "unit.h"

#include <unistd.h>

TEST(plain_words_stay_as_they_are)
{
    static const char *const words[] = {"runs/first", "a-b_c.d",   "50%",
                                        "x=1,y:2",    "Übung/été", "@a+"};
    char text[100];
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        assert_string_equal(tdmi_shell_word(words[i], text, sizeof text), words[i]);
}

TEST(others_are_quoted)
{
    char text[100];
    assert_string_equal(tdmi_shell_word("my pictures", text, sizeof text), "'my pictures'");
    assert_string_equal(tdmi_shell_word("it's", text, sizeof text), "'it'\\''s'");
    assert_string_equal(tdmi_shell_word("", text, sizeof text), "''");
    assert_string_equal(tdmi_shell_word("-o", text, sizeof text), "./-o");
    assert_string_equal(tdmi_shell_word("~/a", text, sizeof text), "'~/a'");
    assert_string_equal(tdmi_shell_word("a\033[2J", text, sizeof text), "$'a\\033[2J'");
    assert_string_equal(tdmi_shell_word("a\xc2\x9b"
                                        "2J",
                                        text, sizeof text),
                        "$'a\\302\\2332J'");
    assert_string_equal(tdmi_shell_word("\xe2\x80\xaegpj.\xff", text, sizeof text),
                        "$'\\342\\200\\256gpj.\\377'");
}

/* Text that the shell prints for it, to its last byte. */
static void said_by(const char *shell, const char *word, char *said, size_t said_bytes)
{
    char quoted[200], command[400];
    snprintf(command, sizeof command, "exec %s <<'END'\nprintf %%s. %s\nEND\n", shell,
             tdmi_shell_word(word, quoted, sizeof quoted));
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    said[fread(said, 1, said_bytes - 1, pipe)] = '\0';
    assert_int_equal(pclose(pipe), 0);
}

TEST(a_shell_takes_them_for_one_word)
{
    static const char *const words[] = {
        "my pictures", "it's",  "a\"b",  "$HOME", "`id`",      "a\\b",
        "a;b|c&d>e",   "*?[a]", "{a,b}", "#x",    "!x",        "",
        "'",           "''",    "a\nb",  "\t'\\", "\001\1772", "\xe2\x80\xaegpj.\xff"};
    const bool has_bash = access("/bin/bash", X_OK) == 0;
    char said[100], wanted[100];
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const bool is_escaped = strpbrk(words[i], "\n\t\001\xff") != NULL;
        if (is_escaped && !has_bash)
            continue;
        said_by(is_escaped ? "/bin/bash" : "/bin/sh", words[i], said, sizeof said);
        snprintf(wanted, sizeof wanted, "%s.", words[i]);
        assert_string_equal(said, wanted);
    }
}

TEST(scripts_get_words_as_they_are)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    tdmi_shell_add(&text, "-o");
    tdmi_shell_add(&text, " it's");
    tdmi_shell_add(&text, "");
    tdmi_shell_add(&text, "\n'");
    assert_string_equal(tdmi_text_string(&text), "-o' it'\\''s'''$'\\012\\''");
}

TEST(what_does_not_fit_is_cut_between_characters)
{
    char text[64];
    for (size_t room = 8; room < 24; room++) {
        memset(text, 'x', sizeof text);
        tdmi_shell_word("ä ä ä ä ä ä ä ä ä ä ä ä", text, room);
        const size_t n = strlen(text);
        assert_true(n < room);
        assert_string_equal(text + n - 4, "…'");
        for (size_t i = 0; i + 1 < n; i++)
            if ((unsigned char)text[i] == 0xc3)
                assert_int_equal((unsigned char)text[i + 1], 0xa4);
    }
    text[0] = 'x';
    tdmi_shell_word("a", text, 0);
    assert_int_equal(text[0], 'x');
}

TEST_MAIN(NULL, NULL)
