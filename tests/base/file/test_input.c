/* Input from files and standard input: bytes, and lists of paths. */
#include "base/memory.h"
#include "base/file/input.h"
#include "data/tree.h"
#include "base/file/input.h"
#include "tandem/event.h"
#include "unit.h"

#include <unistd.h>

static void cut(const char *bytes, size_t length_bytes, int n_wanted, const char *const *wanted)
{
    char copy[200];
    const char **paths;
    size_t n;
    memcpy(copy, bytes, length_bytes);
    copy[length_bytes] = '\0';
    assert_int_equal(tdmi_path_list_cut(copy, length_bytes, "list", &paths, &n, NULL), TDM_OK);
    assert_int_equal(n, n_wanted);
    for (int i = 0; i < n_wanted; i++)
        assert_string_equal(paths[i], wanted[i]);
    tdmi_free(paths);
}

#define CUT(text, ...)                                                       \
    do {                                                                     \
        const char *const wanted[] = {__VA_ARGS__};                          \
        cut(text, sizeof(text) - 1, sizeof wanted / sizeof *wanted, wanted); \
    } while (0)

TEST(lists_are_cut_at_lines_or_at_zeros)
{
    CUT("a.jpg\nb c.jpg\n", "a.jpg", "b c.jpg");
    CUT("a.jpg\nlast", "a.jpg", "last");
    CUT("\n\na\r\n\r\nb\r\n", "a", "b");
    CUT(" blank \n\ttab", " blank ", "\ttab");
    CUT("a\nb\0c\r\0", "a\nb", "c\r");
    CUT("a\0b", "a", "b");
    CUT("\0\0a\0\0", "a");
}

TEST(a_list_without_a_path_is_refused)
{
    static const char *const texts[] = {"", "\n", "\r\n\r\n", "\0"};
    static const size_t lengths[] = {0, 1, 4, 1};
    for (int i = 0; i < 4; i++) {
        char copy[8];
        const char **paths;
        size_t n;
        tdm_error err = {0};
        memcpy(copy, texts[i], lengths[i] + 1);
        assert_int_equal(tdmi_path_list_cut(copy, lengths[i], "the list", &paths, &n, &err),
                         TDM_E_INPUT);
        assert_non_null(strstr(tdm_error_sentence(&err, 0), "no path in the list"));
    }
}

TEST(files_are_read_whole)
{
    struct tree tree = tree_new();
    char path[300];
    tdmi_input *input;
    size_t n;
    const char *const *paths;
    char *large = calloc(300000, 1);
    memset(large, 'x', 300000);
    tree_file(&tree, "large", large, 300000);
    snprintf(path, sizeof path, "%s/large", tree.root);
    assert_int_equal(tdmi_input_open(path, &input, NULL), TDM_OK);
    assert_memory_equal(tdmi_input_bytes(input, &n), large, 300000);
    assert_int_equal(n, 300000);
    assert_int_equal(tdmi_input_paths(input, &paths, &n, NULL), TDM_OK);
    assert_int_equal(n, 1);
    assert_int_equal(strlen(paths[0]), 300000);
    tdmi_input_close(input);
    assert_int_equal(tdmi_input_open(tree.root, &input, NULL), TDM_E_INPUT);
    snprintf(path, sizeof path, "%s/nothing", tree.root);
    assert_int_equal(tdmi_input_open(path, &input, NULL), TDM_E_INPUT);
    tdmi_input_close(NULL);
    tree_free(&tree);
    free(large);
}

/* Standard input is a pipe that nobody writes to. */
TEST(waiting_for_a_pipe_ends_on_request)
{
    int ends[2];
    tdmi_input *input;
    const int before = dup(STDIN_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    tdm_stop_request();
    assert_int_equal(tdmi_input_open("-", &input, NULL), TDM_E_STOPPED);
    tdm_stop_clear();
    assert_int_equal(write(ends[1], "one\ntwo", 7), 7);
    close(ends[1]);
    size_t n;
    const char *const *paths;
    assert_int_equal(tdmi_input_open("-", &input, NULL), TDM_OK);
    assert_int_equal(tdmi_input_paths(input, &paths, &n, NULL), TDM_OK);
    assert_int_equal(n, 2);
    assert_string_equal(paths[1], "two");
    tdmi_input_close(input);
    close(ends[0]);
    dup2(before, STDIN_FILENO);
    close(before);
}

TEST_MAIN(NULL, NULL)
