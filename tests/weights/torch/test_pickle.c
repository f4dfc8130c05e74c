/* Pickles: what becomes of plain ones, which names and opcodes are refused, and that stack, memo
 * and memory hold whatever the bytes say. */
#include "weights/torch/pickle.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "unit.h"

/* The text of a pickle without its last zero; embedded ones count. */
#define READ(arena, text, pickle, err) \
    tdmi_pickle_read((const uint8_t *)(text), sizeof(text) - 1, "x.pkl", 0, arena, pickle, err)

static tdmi_pickle_value *value_of(tdmi_arena *arena, const char *bytes, size_t n)
{
    struct tdmi_pickle pickle = {0};
    tdm_error err = {0};
    if (tdmi_pickle_read((const uint8_t *)bytes, n, "x.pkl", 0, arena, &pickle, &err) != TDM_OK)
        fail_msg("%s", tdm_error_sentence(&err, 0));
    assert_int_equal(pickle.used_bytes, n);
    return pickle.value;
}
#define VALUE(arena, text) value_of(arena, text, sizeof(text) - 1)

static void assert_refused(const char *bytes, size_t n, const char *words)
{
    tdmi_arena arena;
    struct tdmi_pickle pickle = {0};
    tdm_error err = {0};
    tdmi_arena_init(&arena, 0);
    assert_int_equal(
        tdmi_pickle_read((const uint8_t *)bytes, n, "x.pkl", 100, &arena, &pickle, &err),
        TDM_E_INPUT);
    if (strstr(tdm_error_sentence(&err, 0), words) == NULL ||
        strncmp(tdm_error_sentence(&err, 0), "x.pkl: ", 7) != 0)
        fail_msg("'%s' is not in: %s", words, tdm_error_sentence(&err, 0));
    tdmi_arena_release(&arena);
}
#define REFUSED(text, words) assert_refused(text, sizeof(text) - 1, words)

TEST(numbers_and_texts_of_every_width_are_read)
{
    static const struct {
        const char *bytes;
        size_t n;
        int64_t wanted;
    } integers[] = {
        {"\x80\x02K\xff.", 5, 255},
        {"\x80\x02M\xff\xff.", 6, 65535},
        {"\x80\x02J\xff\xff\xff\xff.", 8, -1},
        {"\x80\x02\x8a\x00.", 5, 0},
        {"\x80\x02\x8a\x01\xfe.", 6, -2},
        {"\x80\x02\x8a\x05\x00\x00\x00\x00\x01.", 10, (int64_t)1 << 32},
        {"\x80\x02\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f.", 13, INT64_MAX},
        {"\x80\x02\x8b\x01\x00\x00\x00\x07.", 9, 7},
    };
    tdmi_arena arena;
    tdmi_arena_init(&arena, 0);
    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++) {
        const tdmi_pickle_value *value = value_of(&arena, integers[i].bytes, integers[i].n);
        assert_int_equal(value->kind, TDMI_PICKLE_INTEGER);
        assert_int_equal(value->integer, integers[i].wanted);
    }
    assert_int_equal(VALUE(&arena, "\x80\x02\x8a\x09\0\0\0\0\0\0\0\0\1.")->kind, TDMI_PICKLE_LONG);
    assert_true(VALUE(&arena, "\x80\x02G\x3f\xf8\0\0\0\0\0\0.")->real == 1.5);
    assert_int_equal(VALUE(&arena, "\x80\x02N.")->kind, TDMI_PICKLE_NONE);
    assert_int_equal(VALUE(&arena, "\x80\x02\x88.")->integer, 1);
    assert_int_equal(VALUE(&arena, "\x80\x02\x89.")->integer, 0);
    assert_true(tdmi_pickle_is_text(VALUE(&arena, "\x80\x02X\3\0\0\0abc."), "abc"));
    assert_true(tdmi_pickle_is_text(VALUE(&arena, "\x80\x04\x8c\3abc."), "abc"));
    assert_true(tdmi_pickle_is_text(VALUE(&arena, "\x80\x04\x8d\3\0\0\0\0\0\0\0abc."), "abc"));
    assert_true(tdmi_pickle_is_text(VALUE(&arena, "\x80\x02U\3abc."), "abc"));
    assert_false(tdmi_pickle_is_text(VALUE(&arena, "\x80\x03"
                                                   "C\3abc."),
                                     "abc"));
    tdmi_arena_release(&arena);
}

TEST(containers_keep_their_order_and_memo_shares_values)
{
    tdmi_arena arena;
    tdmi_arena_init(&arena, 0);
    /* {"a": [1, 2], "b": (1, [1, 2])} with the list in the memo */
    tdmi_pickle_value *dict = VALUE(&arena, "\x80\x02}q\0(X\1\0\0\0a]q\1(K\1K\2eX\1\0\0\0bK\1h\1"
                                            "\x86u.");
    assert_int_equal(dict->kind, TDMI_PICKLE_DICT);
    assert_int_equal(dict->count, 2);
    tdmi_pickle_value *list = tdmi_pickle_member(dict, "a");
    assert_int_equal(list->count, 2);
    assert_int_equal(tdmi_pickle_item(list, 1)->integer, 2);
    assert_null(tdmi_pickle_item(list, 2));
    assert_ptr_equal(tdmi_pickle_item(tdmi_pickle_member(dict, "b"), 1), list);
    assert_null(tdmi_pickle_member(dict, "c"));
    /* The last of equal keys counts, as in Python. */
    dict = VALUE(&arena, "\x80\x02}(X\1\0\0\0aK\1X\1\0\0\0aK\2u.");
    assert_int_equal(tdmi_pickle_member(dict, "a")->integer, 2);
    /* A set, a frozen one, and what MEMOIZE numbers. */
    assert_int_equal(VALUE(&arena, "\x80\x04\x8f\x94(K\1K\2\x90.")->count, 2);
    assert_int_equal(VALUE(&arena, "\x80\x04(K\1\x91\x94h\0\x85.")->count, 1);
    assert_int_equal(VALUE(&arena, "(t.")->count, 0);
    /* Nothing is lost in a long list. */
    tdmi_text text = {0};
    tdmi_text_add(&text, "\x80\x02](", 4);
    for (int i = 0; i < 10000; i++)
        tdmi_text_add(&text, i % 100 == 99 ? "K\1e(" : "K\1", i % 100 == 99 ? 4 : 2);
    tdmi_text_add(&text, "e.", 2);
    assert_int_equal(value_of(&arena, text.bytes, text.length_bytes)->count, 10000);
    tdmi_text_release(&text);
    tdmi_arena_release(&arena);
}

TEST(known_calls_become_dicts_lists_bytes_or_are_written_down)
{
    tdmi_arena arena;
    tdmi_arena_init(&arena, 0);
    const tdmi_pickle_value *value =
        VALUE(&arena, "\x80\x02"
                      "ccollections\nOrderedDict\n)R(X\1\0\0\0aK\1u}X\1\0\0\0mNsb.");
    assert_int_equal(value->kind, TDMI_PICKLE_DICT);
    assert_int_equal(tdmi_pickle_member(value, "a")->integer, 1);
    value = VALUE(&arena, "\x80\x02"
                          "ccollections\nOrderedDict\n](](X\1\0\0\0aK\1ee\x85R.");
    assert_int_equal(value->kind, TDMI_PICKLE_DICT); /* Python 2 wrote lists of pairs */
    value = VALUE(&arena, "\x80\x02"
                          "ccollections\ndefaultdict\nc__builtin__\nint\n\x85R(X\1\0\0\0aK\1u.");
    assert_int_equal(tdmi_pickle_member(value, "a")->integer, 1);
    value = VALUE(&arena, "\x80\x04\x8c\5torch\x8c\4Size\x93K\2K\3\x86\x85R.");
    assert_int_equal(value->kind, TDMI_PICKLE_TUPLE);
    assert_int_equal(tdmi_pickle_item(value, 1)->integer, 3);
    value = VALUE(&arena, "\x80\x02"
                          "c_codecs\nencode\nX\3\0\0\0a\xc3\xbfX\6\0\0\0latin1\x86R.");
    assert_int_equal(value->kind, TDMI_PICKLE_BYTES);
    assert_int_equal(value->count, 2);
    assert_memory_equal(value->bytes, "a\xff", 2);
    value = VALUE(&arena, "\x80\x02"
                          "ctorch._utils\n_rebuild_tensor_v2\n(X\1\0\0\0sQK\0tR.");
    assert_string_equal(tdmi_pickle_name_of(value), "_rebuild_tensor_v2");
    value = tdmi_pickle_item(value->call.arguments, 0);
    assert_int_equal(value->kind, TDMI_PICKLE_PERSISTENT);
    assert_true(tdmi_pickle_is_text(value->id, "s"));
    value = VALUE(&arena, "\x80\x02"
                          "cargparse\nNamespace\n)\x81}X\2\0\0\0lrK\1sb.");
    assert_int_equal(tdmi_pickle_member(value->call.state, "lr")->integer, 1);
    tdmi_arena_release(&arena);
}

TEST(other_names_are_refused_by_name)
{
    REFUSED("cposix\nsystem\nX\2\0\0\0id\x85R.", "byte 100 of its pickle: it names 'posix.system'");
    REFUSED("\x80\x04\x8c\5posix\x8c\6system\x93\x8c\2id\x85R.", "'posix.system'");
    REFUSED("\x80\x02"
            "c__builtin__\neval\n.",
            "'__builtin__.eval'");
    REFUSED("\x80\x02"
            "cbuiltins\ngetattr\n.",
            "'builtins.getattr'");
    REFUSED("\x80\x02"
            "ctorch.nn.modules.linear\nLinear\n)\x81.",
            "save model.state_dict() instead");
    REFUSED("\x80\x02"
            "ctorch\nFloatStorage2\n.",
            "'torch.FloatStorage2'");
    REFUSED("\x80\x02"
            "ctorc\nhFloatStorage\n.",
            "'torc.hFloatStorage'");
    REFUSED("\x80\x02"
            "ctorch\nFloatStorage\n)R.",
            "it calls 'torch.FloatStorage'");
    REFUSED("\x80\x04K\1K\2\x93.", "no text");
    REFUSED("\x80\x02K\1)R.", "calls something that is no name");
    REFUSED("\x80\x02"
            "ccollections\nOrderedDict",
            "does not end");
}

TEST(other_opcodes_are_refused_by_opcode)
{
    REFUSED("(iposix\nsystem\n.", "opcode 'i' is not one");
    REFUSED("(cos\nsystem\no.", "'os.system'");
    REFUSED("\x80\x02S'x'\n.", "opcode 'S'");
    REFUSED("\x80\x02\x82\1.", "opcode 82"); /* an extension's code */
    REFUSED("\x80\x05\x97.", "opcode 97");   /* a buffer from elsewhere */
    REFUSED("\x80\x04\x92.", "opcode 92");   /* NEWOBJ_EX */
    REFUSED("P1\n.", "opcode 'P'");
    REFUSED("\x80\x06N.", "its protocol is 6");
}

TEST(stacks_that_do_not_fit_are_refused)
{
    REFUSED(".", "none is left");
    REFUSED("0.", "none is left");
    REFUSED("K\1(.", "none is left"); /* not through a mark */
    REFUSED("t.", "a mark that was not set");
    REFUSED("K\1\x86.", "none is left");
    REFUSED("K\1(K\2u.", "a key without a value");
    REFUSED("K\1(K\2K\2u.", "no dict");
    REFUSED("K\1K\2s.", "none is left");
    REFUSED("K\1K\2K\2s.", "no dict");
    REFUSED("K\1K\2a.", "no list");
    REFUSED("h\0.", "recalls value 0");
    REFUSED("K\1r\xff\xff\xff\xff.", "under 4294967295");
    REFUSED("K\1}b.", "a state to something that has none");
    REFUSED("X\xff\xff\xff\xff"
            "abc",
            "4294967295 bytes should follow and 3 do");
    REFUSED("\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", "18446744073709551615 bytes should follow");
    REFUSED("\x8b\xff\xff\xff\x7f.", "2147483647 bytes should follow");
    REFUSED("ccollections\nOrderedDict\n](K\1e\x85R.", "no pairs");
    REFUSED("c__builtin__\nset\nK\1\x85R.", "of something that is none");
    REFUSED("c_codecs\nencode\nX\3\0\0\0\xe2\x82\xac\x85R.", "other characters");
}

TEST(bombs_stay_as_small_as_their_bytes)
{
    tdmi_arena arena;
    tdmi_text text = {0};
    struct tdmi_pickle pickle = {0};
    tdm_error err = {0};
    tdmi_arena_init(&arena, 0);
    /* Lists of ten of the list before: 10 to the 100 items for who would walk them. */
    tdmi_text_add(&text, "\x80\x02]q\0", 5);
    for (uint8_t i = 0; i < 100; i++) {
        uint8_t get[2] = {'h', i}, put[2] = {'q', (uint8_t)(i + 1)};
        tdmi_text_add(&text, "](", 2);
        for (int j = 0; j < 10; j++)
            tdmi_text_add(&text, get, 2);
        tdmi_text_add(&text, "e", 1);
        tdmi_text_add(&text, put, 2);
    }
    tdmi_text_add(&text, ".", 1);
    assert_int_equal(value_of(&arena, text.bytes, text.length_bytes)->count, 10);
    /* A list that holds itself, and a very deep one. */
    assert_int_equal(VALUE(&arena, "]q\0h\0a.")->count, 1);
    tdmi_text_clear(&text);
    for (int i = 0; i < 100000; i++)
        tdmi_text_add(&text, "]", 1);
    for (int i = 0; i < 99999; i++)
        tdmi_text_add(&text, "a", 1);
    tdmi_text_add(&text, ".", 1);
    assert_int_equal(value_of(&arena, text.bytes, text.length_bytes)->count, 1);
    /* One dict, copied again and again. */
    tdmi_text_clear(&text);
    tdmi_text_add(&text, "ccollections\nCounter\nq\0}q\1(", 27);
    for (int i = 0; i < 1000; i++)
        tdmi_text_add(&text, "K\1K\1", 4);
    tdmi_text_add(&text, "u0", 2);
    for (int i = 0; i < 1000; i++)
        tdmi_text_add(&text, "h\0h\1\x85R", 6);
    tdmi_text_add(&text, ".", 1);
    assert_int_equal(tdmi_pickle_read((const uint8_t *)text.bytes, text.length_bytes, "x", 0,
                                      &arena, &pickle, &err),
                     TDM_E_INPUT);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "a bomb"));
    tdmi_text_release(&text);
    tdmi_arena_release(&arena);
}

TEST(without_memory_reading_fails_cleanly)
{
    for (int64_t n = 1;; n++) {
        tdmi_arena arena;
        struct tdmi_pickle pickle = {0};
        tdm_error err = {0};
        tdmi_arena_init(&arena, 256);
        tdmi_memory_fail_from(n);
        tdm_status status = READ(&arena,
                                 "\x80\x02}q\0(X\1\0\0\0a]q\1(K\1K\2eX\1\0\0\0bc_codecs\nencode\n"
                                 "X\1\0\0\0a\x85Ru.",
                                 &pickle, &err);
        tdmi_memory_fail_from(0);
        tdmi_arena_release(&arena);
        if (status == TDM_OK)
            break;
        assert_int_equal(status, TDM_E_MEMORY);
        assert_true(n < 100);
    }
}

TEST_MAIN(NULL, NULL)
