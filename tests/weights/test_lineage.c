/* Origin of weights as a model file records it; SHA-256 of a file. */
#include "weights/lineage.h"
#include "weights/fetch/digest.h"
#include "base/file/file.h"
#include "unit.h"

TEST(known_facts_come_back)
{
    const struct tdmi_lineage lineage = {.file = "a.pth",
                                         .sha256 = "00ff",
                                         .form = "pytorch",
                                         .origin = "PyTorch",
                                         .network = "resnet18"};
    struct tdmi_lineage back;
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdm_json_document *document = NULL;
    tdmi_arena arena;
    const char *text;
    tdmi_arena_init(&arena, 0);
    tdm_json_object_begin(writer, NULL);
    tdmi_lineage_to_json(&lineage, writer, "lineage");
    tdmi_lineage_to_json(&(struct tdmi_lineage){0}, writer, "none");
    tdm_json_object_end(writer);
    assert_int_equal(tdm_json_finish(writer, &text, NULL, NULL), TDM_OK);
    assert_string_equal(text, "{\"lineage\":{\"file\":\"a.pth\",\"sha256\":\"00ff\",\"form\":"
                              "\"pytorch\",\"origin\":\"PyTorch\",\"network\":\"resnet18\"}}");
    assert_int_equal(tdm_json_read(text, strlen(text), "lineage", &document, NULL), TDM_OK);
    const tdm_json_value *root = tdm_json_root(document);
    assert_int_equal(tdmi_lineage_from_json(tdm_json_member(root, "lineage"), &arena, &back, NULL),
                     TDM_OK);
    tdm_json_document_free(document);
    tdm_json_writer_free(writer);
    assert_string_equal(back.file, "a.pth");
    assert_string_equal(back.network, "resnet18");
    assert_null(back.licence);
    assert_int_equal(tdmi_lineage_from_json(NULL, &arena, &back, NULL), TDM_OK);
    assert_null(back.file);
    tdmi_arena_release(&arena);
}

TEST(a_file_is_hashed_whole)
{
    struct tdmi_digest digest;
    tdm_error err = {0};
    assert_int_equal(tdmi_file_write("abc", "abc", 3, &err), TDM_OK);
    assert_int_equal(tdmi_digest_file("abc", &digest, &err), TDM_OK);
    assert_string_equal(digest.sha256,
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_int_equal(tdmi_digest_file("nowhere", &digest, &err), TDM_E_INPUT);
}

TEST_MAIN(NULL, NULL)
