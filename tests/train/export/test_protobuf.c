/* Messages of Protocol Buffers as others read them: lengths, nesting, values lent and copied. */
#include "train/export/protobuf.h"
#include "base/file/file.h"
#include "data/tree.h"
#include "train/export/onnx_walk.h"

#include "base/each_allocation.h"
#include "unit.h"

static struct message written(const struct tree *tree, const tdmi_protobuf *message, void **bytes)
{
    size_t length;
    const char *path = tree_path(tree, "message");
    assert_int_equal(tdmi_protobuf_write(message, path, NULL), TDM_OK);
    assert_int_equal(tdmi_file_read(path, 1 << 20, bytes, &length, NULL), TDM_OK);
    assert_int_equal(length, tdmi_protobuf_length(message));
    return (struct message){*bytes, length};
}

TEST(numbers_and_strings_are_as_the_form_has_them)
{
    static const uint8_t expected[] = {8,   150, 1,  16, 255, 255, 255, 255, 255, 255, 255, 255,
                                       255, 1,   26, 2,  'h', 'i', 37,  0,   0,   192, 63};
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    TDMI_AT_END(tdmi_protobuf_release) tdmi_protobuf message = {0};
    TDMI_AT_END(tdmi_free_at) void *bytes = NULL;
    tdmi_protobuf_integer(&message, 1, 150);
    tdmi_protobuf_integer(&message, 2, -1);
    tdmi_protobuf_string(&message, 3, "hi");
    tdmi_protobuf_float(&message, 4, 1.5f);
    struct message read = written(&tree, &message, &bytes);
    assert_int_equal(read.length, sizeof expected);
    assert_memory_equal(read.at, expected, sizeof expected);
}

/* Lengths of one, two and three bytes, with lent values before, in and behind them. */
TEST(lengths_count_all_that_lies_between)
{
    static uint8_t large[20000];
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    TDMI_AT_END(tdmi_protobuf_release) tdmi_protobuf message = {0};
    TDMI_AT_END(tdmi_free_at) void *bytes = NULL;
    memset(large, 'x', sizeof large);
    tdmi_protobuf_bytes(&message, 1, large, 3);
    tdmi_protobuf_begin(&message, 2);
    tdmi_protobuf_integer(&message, 3, 4);
    tdmi_protobuf_begin(&message, 5);
    tdmi_protobuf_bytes(&message, 6, large, 200);
    tdmi_protobuf_string(&message, 7, "inside");
    tdmi_protobuf_begin(&message, 8);
    tdmi_protobuf_end(&message);
    tdmi_protobuf_end(&message);
    tdmi_protobuf_bytes(&message, 9, large, sizeof large);
    tdmi_protobuf_end(&message);
    tdmi_protobuf_bytes(&message, 10, large, 0);
    tdmi_protobuf_string(&message, 11, "behind");
    struct message all = written(&tree, &message, &bytes);
    assert_int_equal(field_of(all, 1).sub.length, 3);
    struct message outer = field_of(all, 2).sub, inner = field_of(outer, 5).sub;
    assert_int_equal(field_of(outer, 3).value, 4);
    assert_int_equal(field_of(inner, 6).sub.length, 200);
    assert_memory_equal(field_of(inner, 6).sub.at, large, 200);
    assert_true(says(field_of(inner, 7).sub, "inside"));
    assert_int_equal(field_of(inner, 8).sub.length, 0);
    assert_int_equal(field_of(outer, 9).sub.length, sizeof large);
    assert_memory_equal(field_of(outer, 9).sub.at, large, sizeof large);
    assert_int_equal(field_of(all, 10).sub.length, 0);
    assert_true(says(field_of(all, 11).sub, "behind"));
}

static tdm_status write_much(tdm_error *err)
{
    struct tree tree = tree_new();
    tdmi_protobuf message = {0};
    for (int i = 0; i < 100; i++) {
        tdmi_protobuf_begin(&message, 1);
        tdmi_protobuf_string(&message, 2, "a text of some length, so that the message has to grow");
        tdmi_protobuf_bytes(&message, 3, "lent", 4);
        tdmi_protobuf_end(&message);
    }
    tdm_status status = tdmi_protobuf_write(&message, tree_path(&tree, "message"), err);
    assert_int_equal(tdmi_file_kind_of(tree_path(&tree, "message")),
                     status == TDM_OK ? TDMI_FILE_REGULAR : TDMI_FILE_MISSING);
    tdmi_protobuf_release(&message);
    tree_free(&tree);
    return status;
}

TEST(without_memory_there_is_no_file)
{
    assert_true(fail_each_allocation(write_much) > 5);
}

TEST(misnested_messages_are_a_mistake_of_ours)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    TDMI_AT_END(tdmi_protobuf_release) tdmi_protobuf message = {0};
    for (int i = 0; i <= TDMI_PROTOBUF_DEPTH; i++)
        tdmi_protobuf_begin(&message, 1);
    for (int i = 0; i <= TDMI_PROTOBUF_DEPTH; i++)
        tdmi_protobuf_end(&message);
    assert_int_equal(tdmi_protobuf_write(&message, tree_path(&tree, "message"), NULL), TDM_E_BUG);
}

TEST_MAIN(NULL, NULL)
