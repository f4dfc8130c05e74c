/* PyTorch's files, zip and legacy: every tensor as PyTorch has it, which dict of a checkpoint is
 * the model, and hostile files refused with nothing run. */
#include "base/text/text.h"
#include "data/pack.h"
#include "weights/weights_file.h"
#include "test_data.h"

static void assert_network(const tdmi_weights *weights, const char *prefix)
{
    static const char *const tensors[][2] = {{"0.weight", "3,2,2,2"}, {"0.bias", "3"},
                                             {"1.weight", "3"},       {"1.running_mean", "3"},
                                             {"1.running_var", "3"},  {"2.weight", "2,3"}};
    char name[100];
    assert_int_equal(tdmi_weights_count(weights), 9);
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        snprintf(name, sizeof name, "%s%s", prefix, tensors[i][0]);
        assert_counted(weights, name, tensors[i][1]);
    }
    snprintf(name, sizeof name, "%s0.weight", prefix);
    assert_string_equal(tdmi_weights_at(weights, 0)->name, name); /* the order of the file */
    snprintf(name, sizeof name, "%s1.num_batches_tracked", prefix);
    assert_int_equal(tdmi_weights_find(weights, name)->dtype, TDMI_DTYPE_I64);
}

TEST(a_state_dict_of_any_protocol_and_byte_order_is_read)
{
    static const char *const names[] = {"torch/state.pth", "torch/protocol4.pth",
                                        "torch/big-endian.pth", "torch/legacy-protocol4.pth"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        TDMI_AT_END(tdmi_weights_close_at) tdmi_weights *weights = open_fixture(names[i]);
        assert_string_equal(tdmi_weights_form_name(weights),
                            strstr(names[i], "legacy") ? "pytorch-legacy" : "pytorch");
        assert_network(weights, "");
        assert_int_equal(tdmi_weights_facts(weights), 0);
    }
}

TEST(of_a_checkpoint_the_model_is_read_and_the_rest_is_named)
{
    static const char *const names[] = {"torch/checkpoint.pth", "torch/legacy-checkpoint.pth"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        TDMI_AT_END(tdmi_weights_close_at) tdmi_weights *weights = open_fixture(names[i]);
        assert_network(weights, "module.");
        assert_fact(weights, "epoch", "7");
        assert_fact(weights, "arch", "tiny");
        assert_fact(weights, "best_prec1", "91.25");
        assert_fact(weights, "classes", "[\"cat\",\"dög\"]");
        assert_fact(weights, "class_to_idx", "{\"cat\":0,\"dög\":1}");
        assert_fact(weights, "args", "{\"lr\":0.1,\"nesterov\":false,\"size\":[2,3]}");
        assert_fact(weights, "counts", "{\"a\":1}");
        assert_fact(weights, "left_out",
                    "best_acc1 (1 tensor), ema (9 tensors), optimizer (6 tensors)");
        assert_fact(weights, "lr_scheduler", NULL);
        assert_fact(weights, "nothing", NULL);
    }
}

TEST(tensors_of_any_layout_and_type_lie_without_gaps)
{
    static const char *const names[] = {"torch/layouts.pth", "torch/legacy-layouts.pth"};
    static const enum tdmi_dtype types[] = {TDMI_DTYPE_F64, TDMI_DTYPE_F16, TDMI_DTYPE_BF16,
                                            TDMI_DTYPE_I64, TDMI_DTYPE_I32, TDMI_DTYPE_I16,
                                            TDMI_DTYPE_I8,  TDMI_DTYPE_U8,  TDMI_DTYPE_BOOL};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        tdmi_weights *weights = open_fixture(names[i]);
        float values[12];
        assert_int_equal(
            tdmi_weights_floats(weights, tdmi_weights_find(weights, "turned"), values, NULL),
            TDM_OK);
        for (int k = 0; k < 12; k++) /* three rows of what were three columns */
            assert_true(values[k] == (float)(k % 4 * 3 + k / 4));
        assert_counted(weights, "last", "2,3,2,2");
        assert_counted(weights, "spread", "3,1");
        assert_counted(weights, "whole", "6,4");
        assert_counted(weights, "parameter", "2,2");
        assert_counted(weights, "empty", "0,4");
        assert_int_equal(
            tdmi_weights_floats(weights, tdmi_weights_find(weights, "row"), values, NULL), TDM_OK);
        assert_true(values[0] == 8 && values[3] == 11);
        assert_int_equal(
            tdmi_weights_floats(weights, tdmi_weights_find(weights, "column"), values, NULL),
            TDM_OK);
        assert_true(values[0] == 1 && values[5] == 21);
        assert_int_equal(tdmi_weights_find(weights, "single")->rank, 0);
        assert_int_equal(tdmi_weights_count(weights), 18);
        for (size_t k = 0; k < 9; k++) {
            const struct tdmi_weights_tensor *tensor = tdmi_weights_at(weights, 9 + k);
            assert_int_equal(tensor->dtype, types[k]);
            assert_int_equal(tensor->n_values, 2);
        }
        assert_counted(weights, "float64", "2");
        assert_counted(weights, "bfloat16", "2");
        tdmi_weights_close(weights);
    }
    tdmi_weights *weights = open_fixture("torch/newer-types.pth");
    assert_int_equal(tdmi_weights_find(weights, "uint16")->dtype, TDMI_DTYPE_U16);
    assert_int_equal(tdmi_weights_find(weights, "uint32")->dtype, TDMI_DTYPE_U32);
    assert_int_equal(tdmi_weights_find(weights, "uint64")->dtype, TDMI_DTYPE_U64);
    assert_int_equal(tdmi_weights_find(weights, "float8_e4m3fn")->dtype, TDMI_DTYPE_F8_E4M3);
    assert_int_equal(tdmi_weights_find(weights, "float8_e5m2")->dtype, TDMI_DTYPE_F8_E5M2);
    tdmi_weights_close(weights);
}

TEST(stored_tensors_are_used_where_they_lie_in_the_bytes)
{
    static const char *const names[] = {"torch/state.pth", "torch/legacy-protocol4.pth"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct bytes bytes = fixture(names[i]);
        tdmi_weights *weights = NULL;
        tdm_error err = {0};
        assert_int_equal(tdmi_weights_open_bytes(bytes.at, bytes.n, "x", &weights, &err), TDM_OK);
        const uint8_t *data = tdmi_weights_at(weights, 0)->data;
        assert_true(data > bytes.at && data < bytes.at + bytes.n);
        tdmi_weights_close(weights);
        tdmi_free(bytes.at);
    }
}

TEST(parts_of_a_model_keep_their_path)
{
    tdmi_weights *weights = open_fixture("torch/parts.pth");
    assert_int_equal(tdmi_weights_count(weights), 3);
    assert_counted(weights, "encoder.w", "2");
    assert_counted(weights, "decoder.0", "3");
    assert_counted(weights, "decoder.1.b", "1");
    tdmi_weights_close(weights);
    weights = open_fixture("torch/odd-names.pth"); /* like optimizers' and averages' */
    assert_int_equal(tdmi_weights_count(weights), 3);
    assert_counted(weights, "scaler.weight", "2");
    assert_counted(weights, "ema_w", "3");
    tdmi_weights_close(weights);
    weights = open_fixture("torch/single.pth");
    assert_counted(weights, "tensor", "2,2");
    tdmi_weights_close(weights);
}

TEST(programs_are_refused_and_not_run)
{
    assert_fixture_refused("torch/evil.pth", "'posix.system', which is not run");
    assert_fixture_refused("torch/legacy-evil.pth", "'posix.system', which is not run");
    assert_fixture_refused("torch/evil.pkl", "'posix.system', which is not run");
    assert_fixture_refused("torch/module.pth", "save model.state_dict() instead");
    assert_fixture_refused("torch/script.pt", "TorchScript");
    assert_int_not_equal(access("executed", F_OK), 0);
}

TEST(files_without_a_model_are_refused)
{
    assert_fixture_refused("torch/optimizer.pth", "an optimizer's state");
    assert_fixture_refused("torch/plain.pkl", "none of PyTorch's");
    assert_fixture_refused("torch/complex.pth", "'torch.ComplexFloatStorage'");
}

TEST(cut_files_are_refused)
{
    assert_refused_wherever_cut("torch/state.pth");
    assert_refused_wherever_cut("torch/checkpoint.pth");
    assert_refused_wherever_cut("torch/legacy-checkpoint.pth");
    assert_refused_wherever_cut("torch/legacy-layouts.pth");
}

/* ---- files made by hand -------------------------------------------------------------------- */

/* A zip with this pickle and a storage "0" of 16 bytes. */
static tdmi_text zip_of(const void *pickle, size_t n)
{
    static const float values[4] = {0, 1, 2, 3};
    struct pack_zip zip = {0};
    pack_zip_add(&zip, "x/data.pkl", pickle, n);
    pack_zip_add(&zip, "x/data/0", values, sizeof values);
    pack_zip_end(&zip, "");
    return zip.bytes;
}

/* A tensor: storage of n values from which first, size and stride are taken, as opcodes. */
#define STORAGE(n)                                      \
    "((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0" \
    "0X\3\0\0\0cpu" n "tQ"
#define TENSOR(n, place) "ctorch._utils\n_rebuild_tensor_v2\n" STORAGE(n) place "\x89NtR"

static void assert_pickle_refused(const void *pickle, size_t n, const char *words)
{
    tdmi_text zip = zip_of(pickle, n);
    assert_bytes_refused(zip.bytes, zip.length_bytes, words);
    tdmi_text_release(&zip);
}
#define REFUSED(text, words) assert_pickle_refused(text, sizeof(text) - 1, words)

TEST(tensors_outside_of_their_storage_are_refused)
{
    static const char good[] = "\x80\x02}X\1\0\0\0w" TENSOR("K\4", "K\0K\4\x85K\1\x85") "s.";
    tdmi_weights *weights = NULL;
    tdm_error err = {0};
    tdmi_text zip = zip_of(good, sizeof good - 1);
    assert_int_equal(tdmi_weights_open_bytes(zip.bytes, zip.length_bytes, "x", &weights, &err),
                     TDM_OK);
    assert_counted(weights, "w", "4");
    tdmi_weights_close(weights);
    tdmi_text_release(&zip);
    REFUSED("\x80\x02}X\1\0\0\0w" TENSOR("K\5", "K\0K\4\x85K\1\x85") "s.", "has 16 bytes");
    REFUSED("\x80\x02}X\1\0\0\0w" TENSOR("K\4", "K\1K\4\x85K\1\x85") "s.",
            "'w' ends at value 5 of a storage of 4");
    REFUSED("\x80\x02}X\1\0\0\0w" TENSOR("K\4", "K\0K\4\x85K\2\x85") "s.", "ends at value 7");
    REFUSED("\x80\x02}X\1\0\0\0w" TENSOR("K\4", "J\xff\xff\xff\xffK\4\x85K\1\x85") "s.",
            "no place and shape");
    REFUSED("\x80\x02}X\1\0\0\0w" TENSOR("K\4", "K\0K\4\x85J\xff\xff\xff\xff\x85") "s.",
            "axis 0 has no size or step");
    REFUSED("\x80\x02}X\1\0\0\0w" TENSOR("J\xff\xff\xff\xff", "K\0K\4\x85K\1\x85") "s.",
            "whose size is none");
    REFUSED("\x80\x02}X\1\0\0\0w" TENSOR("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f",
                                         "K\0K\4\x85K\1\x85") "s.",
            "whose size is none");
    /* 2 to the 62 values in each of two axes; a step that takes the sum around. */
    REFUSED("\x80\x02}X\1\0\0\0w" TENSOR("K\4",
                                         "K\0\x8a\x08\0\0\0\0\0\0\0\x40\x8a\x08\0\0\0\0\0\0\0"
                                         "\x40\x86K\0K\0\x86") "s.",
            "too many values");
    REFUSED("\x80\x02}X\1\0\0\0w" TENSOR("K\4", "K\0M\xff\xffK\2\x86\x8a\x08\xff\xff\xff\xff\xff"
                                                "\xff\xff\x7fK\1\x86") "s.",
            "too many values");
    /* One value, spread to 2 to the 40. */
    REFUSED("\x80\x02}X\1\0\0\0w" TENSOR("K\4", "K\0\x8a\x06\0\0\0\0\0\1\x85K\0\x85") "s.",
            "does not lie without gaps");
    REFUSED("\x80\x02}X\1\0\0\0w" TENSOR("K\4", "K\0(K\1K\1K\1K\1K\1K\1K\1K\1K\1t(K\1K\1K\1K\1K\1K"
                                                "\1K\1K\1K\1t") "s.",
            "at most 8 axes");
    REFUSED("\x80\x02}X\1\0\0\0wctorch._utils\n_rebuild_tensor_v2\n(K\1K\0K\1\x85K\1\x85tRs.",
            "not on a storage");
    REFUSED("\x80\x02}X\1\0\0\0wctorch._utils\n_rebuild_tensor_v2\n)Rs.", "not on a storage");
}

TEST(containers_that_hold_themselves_or_each_other_are_refused)
{
    tdmi_text text = {0};
    REFUSED("\x80\x02}q\0X\1\0\0\0wh\0s.", "holds itself");
    REFUSED("\x80\x02]q\0h\0a.", "holds itself");
    tdmi_text_add(&text, "\x80\x02", 2);
    for (int i = 0; i < 100000; i++)
        tdmi_text_add(&text, "]", 1);
    for (int i = 0; i < 99999; i++)
        tdmi_text_add(&text, "a", 1);
    tdmi_text_add(&text, ".", 1);
    assert_pickle_refused(text.bytes, text.length_bytes, "nested deeper than");
    /* Ten to the 40 names of one tensor. */
    static const char tensor[] = "\x80\x02]" TENSOR("K\4", "K\0K\4\x85K\1\x85") "aq\0";
    tdmi_text_clear(&text);
    tdmi_text_add(&text, tensor, sizeof tensor - 1);
    for (uint8_t i = 0; i < 40; i++) {
        uint8_t get[2] = {'h', i}, put[2] = {'q', (uint8_t)(i + 1)};
        tdmi_text_add(&text, "](", 2);
        for (int j = 0; j < 10; j++)
            tdmi_text_add(&text, get, 2);
        tdmi_text_add(&text, "e", 1);
        tdmi_text_add(&text, put, 2);
    }
    tdmi_text_add(&text, ".", 1);
    assert_pickle_refused(text.bytes, text.length_bytes, "a bomb");
    tdmi_text_release(&text);
}

TEST(long_names_and_many_facts_have_limits)
{
    static const char tensor[] = TENSOR("K\4", "K\0K\4\x85K\1\x85");
    tdmi_text text = {0};
    tdmi_weights *weights = NULL;
    tdm_error err = {0};
    tdmi_text_add(&text, "\x80\x02}", 3);
    for (int i = 0; i < 3000; i++) {
        tdmi_text_printf(&text, "X%c%c", 4, 0);
        tdmi_text_add(&text, "\0\0", 2);
        tdmi_text_printf(&text, "%04dK%cs", i, 1);
    }
    tdmi_text_add(&text, "X\1\0\0\0w", 6);
    tdmi_text_add(&text, tensor, sizeof tensor - 1);
    tdmi_text_add(&text, "s.", 2);
    tdmi_text zip = zip_of(text.bytes, text.length_bytes);
    if (tdmi_weights_open_bytes(zip.bytes, zip.length_bytes, "x", &weights, &err) != TDM_OK)
        fail_with(&err);
    assert_int_equal(tdmi_weights_count(weights), 1);
    assert_int_equal(tdmi_weights_facts(weights), 1000);
    tdmi_weights_close(weights);
    tdmi_text_release(&zip);
    /* Dicts in dicts whose keys make a name of 2,702 bytes. */
    tdmi_text_clear(&text);
    tdmi_text_add(&text, "\x80\x02}X\1\0\0\0w", 9);
    tdmi_text_add(&text, tensor, sizeof tensor - 1);
    tdmi_text_add(&text, "s", 1);
    for (int i = 0; i < 3; i++) {
        tdmi_text_add(&text, i == 0 ? "X\x84\3\0\0" : "}X\x84\3\0\0", i == 0 ? 5 : 6);
        for (int k = 0; k < 900; k++)
            tdmi_text_add(&text, "k", 1);
    }
    tdmi_text_add(&text, tensor, sizeof tensor - 1);
    tdmi_text_add(&text, "sss.", 4);
    assert_pickle_refused(text.bytes, text.length_bytes, "of a tensor has more than 2000 bytes");
    tdmi_text_release(&text);
}

/* A text or key of less than 256 bytes, as an opcode. */
static void add_key(tdmi_text *pickle, const char *key)
{
    tdmi_text_printf(pickle, "X%c", (int)strlen(key));
    tdmi_text_add(pickle, "\0\0\0", 3);
    tdmi_text_add(pickle, key, strlen(key));
}

static tdmi_weights *open_pickle(const tdmi_text *pickle, tdmi_text *zip)
{
    tdmi_weights *weights = NULL;
    tdm_error err = {0};
    *zip = zip_of(pickle->bytes, pickle->length_bytes);
    if (tdmi_weights_open_bytes(zip->bytes, zip->length_bytes, "x", &weights, &err) != TDM_OK)
        fail_with(&err);
    return weights;
}

/* Many keys for a list that was made once, one key before them and one after. */
static tdmi_text recalling(const char *item, int n_items, int n_keys)
{
    static const char tensor[] = TENSOR("K\4", "K\0K\4\x85K\1\x85");
    tdmi_text pickle = {0};
    char key[16];
    tdmi_text_add(&pickle, "\x80\x02}X\1\0\0\0w", 9);
    tdmi_text_add(&pickle, tensor, sizeof tensor - 1);
    tdmi_text_add(&pickle, "s", 1);
    add_key(&pickle, "before");
    tdmi_text_add(&pickle, "K\1s", 3);
    for (int i = 0; i < n_keys; i++) {
        snprintf(key, sizeof key, "k%d", i);
        add_key(&pickle, key);
        if (i == 0) {
            tdmi_text_add(&pickle, "](", 2);
            for (int k = 0; k < n_items; k++)
                tdmi_text_add(&pickle, item, strlen(item));
            tdmi_text_add(&pickle, "eq\0", 3);
        } else {
            tdmi_text_add(&pickle, "h\0", 2);
        }
        tdmi_text_add(&pickle, "s", 1);
    }
    add_key(&pickle, "after");
    tdmi_text_add(&pickle, "K\1s.", 4);
    return pickle;
}

TEST(one_list_under_many_keys_is_not_written_again_and_again)
{
    tdmi_text zip;
    tdmi_text pickle = recalling("K\1", 10, 1);
    tdmi_weights *weights = open_pickle(&pickle, &zip);
    assert_fact(weights, "before", "1");
    assert_fact(weights, "after", "1");
    assert_non_null(tdmi_weights_fact(weights, "k0"));
    tdmi_weights_close(weights);
    tdmi_text_release(&zip);
    tdmi_text_release(&pickle);
    /* 380 kB of JSON, of which a file's facts may hold two. */
    pickle = recalling("G\xbf\xd5UUUUUU", 19000, 1500);
    weights = open_pickle(&pickle, &zip);
    assert_fact(weights, "before", "1");
    assert_non_null(tdmi_weights_fact(weights, "k0"));
    assert_non_null(tdmi_weights_fact(weights, "k1"));
    assert_null(tdmi_weights_fact(weights, "k2"));
    assert_fact(weights, "after", NULL); /* nothing is noted once as much was tried */
    tdmi_weights_close(weights);
    tdmi_text_release(&zip);
    tdmi_text_release(&pickle);
}

TEST(one_list_that_is_no_fact_is_not_gone_through_again_and_again)
{
    tdmi_text zip;
    tdmi_text pickle = recalling("K\1", 25000, 1000);
    tdmi_weights *weights = open_pickle(&pickle, &zip);
    assert_fact(weights, "before", "1");
    assert_fact(weights, "after", NULL);
    tdmi_weights_close(weights);
    tdmi_text_release(&zip);
    tdmi_text_release(&pickle);
}

TEST(of_facts_with_one_key_the_last_counts_where_the_first_was)
{
    static const char tensor[] = TENSOR("K\4", "K\0K\4\x85K\1\x85");
    static const char *const keys[] = {"rate", "epoch", "best", "rate", "epoch"};
    tdmi_text pickle = {0}, zip;
    tdmi_text_add(&pickle, "\x80\x02}X\1\0\0\0w", 9);
    tdmi_text_add(&pickle, tensor, sizeof tensor - 1);
    tdmi_text_add(&pickle, "s", 1);
    for (int i = 0; i < 5; i++) {
        add_key(&pickle, keys[i]);
        tdmi_text_printf(&pickle, "K%cs", i + 1);
    }
    tdmi_text_add(&pickle, ".", 1);
    tdmi_weights *weights = open_pickle(&pickle, &zip);
    assert_int_equal(tdmi_weights_facts(weights), 3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(tdmi_weights_fact_key(weights, i), keys[i]);
    assert_fact(weights, "rate", "4");
    assert_fact(weights, "epoch", "5");
    assert_fact(weights, "best", "3");
    tdmi_weights_close(weights);
    tdmi_text_release(&zip);
    tdmi_text_release(&pickle);
}

TEST(damaged_zips_are_refused)
{
    static const char good[] = "\x80\x02}X\1\0\0\0w" TENSOR("K\4", "K\0K\4\x85K\1\x85") "s.";
    static const uint8_t zeros[16];
    struct pack_zip zip = {0};
    /* A storage that is not there; a byte order that is none; a bit that was turned. */
    pack_zip_add(&zip, "x/data.pkl", good, sizeof good - 1);
    pack_zip_end(&zip, "");
    assert_bytes_refused(zip.bytes.bytes, zip.bytes.length_bytes, "no member 'x/data/0'");
    tdmi_text_release(&zip.bytes);
    zip = (struct pack_zip){0};
    pack_zip_add(&zip, "x/data.pkl", good, sizeof good - 1);
    pack_zip_add(&zip, "x/data/0", zeros, 16);
    pack_zip_add(&zip, "x/byteorder", "middle", 6);
    pack_zip_end(&zip, "");
    assert_bytes_refused(zip.bytes.bytes, zip.bytes.length_bytes, "its byteorder is 'middle'");
    tdmi_text_release(&zip.bytes);
    tdmi_text flipped = zip_of(good, sizeof good - 1);
    flipped.bytes[60] ^= 1; /* inside of the pickle */
    assert_bytes_refused(flipped.bytes, flipped.length_bytes, "checksum");
    tdmi_text_release(&flipped);
    /* Members that share their bytes. */
    tdmi_text bomb = zip_of(good, sizeof good - 1);
    uint8_t *end = (uint8_t *)bomb.bytes + bomb.length_bytes - 22;
    size_t directory_bytes = end[12] | (size_t)end[13] << 8;
    tdmi_text many = {0};
    tdmi_text_add(&many, bomb.bytes, bomb.length_bytes - 22 - directory_bytes);
    for (int i = 0; i < 40; i++)
        tdmi_text_add(&many, end - directory_bytes, directory_bytes);
    size_t all = 40 * directory_bytes;
    end[8] = end[10] = 80;
    end[12] = (uint8_t)all;
    end[13] = (uint8_t)(all >> 8);
    tdmi_text_add(&many, end, 22);
    assert_bytes_refused(many.bytes, many.length_bytes, "its members overlap");
    tdmi_text_release(&many);
    tdmi_text_release(&bomb);
}

TEST(without_memory_reading_fails_cleanly)
{
    assert_lives_without_memory("torch/layouts.pth");
    assert_lives_without_memory("torch/big-endian.pth");
    assert_lives_without_memory("torch/legacy-checkpoint.pth");
}

TEST(published_files_are_read)
{
    tdm_error err = {0};
    tdmi_weights *weights = NULL;
    const char *path = test_data("weights/resnet20-cifar10-12fca82f.th");
    if (tdmi_weights_open(path, &weights, &err) != TDM_OK)
        fail_with(&err);
    assert_string_equal(tdmi_weights_form_name(weights), "pytorch-legacy");
    assert_int_equal(tdmi_weights_count(weights), 97);
    assert_fact(weights, "best_prec1", "91.78000183105469");
    assert_int_equal(tdmi_weights_find(weights, "module.conv1.weight")->n_values, 432);
    tdmi_weights_close(weights);
    if (tdmi_weights_open(test_data("weights/cifar_net_lenet.pth"), &weights, &err) != TDM_OK)
        fail_with(&err);
    assert_string_equal(tdmi_weights_form_name(weights), "pytorch");
    assert_int_equal(tdmi_weights_count(weights), 10);
    assert_int_equal(tdmi_weights_find(weights, "fc1.weight")->shape[1], 400);
    tdmi_weights_close(weights);
}

TEST_MAIN(NULL, NULL)
