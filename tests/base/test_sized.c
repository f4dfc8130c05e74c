/* Structs of programs that were compiled with an older or newer header than the library. */
#include "base/sized.h"
#include "tandem/event.h"
#include "tandem/train.h"
#include "unit.h"

/* One type in three versions; the library has the second. */
struct options_1 {
    size_t struct_bytes;
    long a;
};
struct options_2 {
    size_t struct_bytes;
    long a, b;
};
struct options_3 {
    size_t struct_bytes;
    long a, b, c[4];
};

static const struct options_2 usual = {.a = 1, .b = 2};

TEST(init_writes_the_defaults_that_fit)
{
    struct {
        struct options_1 options;
        unsigned char behind[8];
    } old;
    struct options_3 new;
    memset(&old, 0xee, sizeof old);
    memset(&new, 0xee, sizeof new);
    tdmi_options_init(&old.options, sizeof old.options, &usual, sizeof usual);
    tdmi_options_init(&new, sizeof new, &usual, sizeof usual);
    assert_int_equal(old.options.struct_bytes, sizeof old.options);
    assert_int_equal(old.options.a, 1);
    for (size_t i = 0; i < sizeof old.behind; i++)
        assert_int_equal(old.behind[i], 0xee);
    assert_true(new.struct_bytes == sizeof new &&new.a == 1 && new.b == 2);
    assert_true(new.c[0] == 0 && new.c[3] == 0);
}

TEST(members_that_a_program_lacks_keep_their_defaults)
{
    struct options_1 old = {sizeof old, 7};
    struct options_2 own = usual;
    assert_int_equal(tdmi_options_copy("options", &old, &own, sizeof own, NULL), TDM_OK);
    assert_true(own.struct_bytes == sizeof own && own.a == 7 && own.b == 2);
    assert_int_equal(tdmi_options_copy("options", NULL, &own, sizeof own, NULL), TDM_OK);
    assert_true(own.a == 7 && own.b == 2);
    /* A zeroed struct without a size is one of the first version. */
    own = usual;
    assert_int_equal(
        tdmi_options_copy("options", &(struct options_2){.a = 3}, &own, sizeof own, NULL), TDM_OK);
    assert_true(own.a == 3 && own.b == 0);
}

TEST(members_that_the_library_lacks_must_be_zero)
{
    struct options_3 new = {.struct_bytes = sizeof new, .a = 7, .b = 8};
    struct options_2 own = usual;
    tdm_error err = {0};
    assert_int_equal(tdmi_options_copy("options", &new, &own, sizeof own, &err), TDM_OK);
    assert_true(own.a == 7 && own.b == 8);
    new.c[1] = 1;
    assert_int_equal(tdmi_options_copy("options", &new, &own, sizeof own, &err), TDM_E_USAGE);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "struct options: a member at byte"));
    new.struct_bytes = SIZE_MAX;
    assert_int_equal(tdmi_options_copy("options", &new, &own, sizeof own, &err), TDM_E_USAGE);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "initialize the struct"));
}

static tdm_status compute(struct options_2 *result, tdm_error *err)
{
    TDMI_RESULT(options_2, result, err);
    result->a = 5;
    result->b = 6;
    return TDM_OK;
}

TEST(results_are_written_as_far_as_the_program_has_room)
{
    struct options_1 old[2] = {{sizeof old[0], 0}, {1234, 5678}};
    struct options_3 new = {.struct_bytes = sizeof new, .c = {9}};
    tdm_error err = {0};
    assert_int_equal(compute((void *)&old, &err), TDM_OK);
    assert_true(old[0].struct_bytes == sizeof old[0] && old[0].a == 5);
    assert_true(old[1].struct_bytes == 1234 && old[1].a == 5678);
    assert_int_equal(compute((void *)&new, &err), TDM_OK);
    assert_true(new.struct_bytes == sizeof new &&new.a == 5 && new.b == 6 && new.c[0] == 0);
    assert_int_equal(compute(NULL, &err), TDM_OK);
    new.struct_bytes = 0;
    assert_int_equal(compute((void *)&new, &err), TDM_E_USAGE);
    tdmi_result_clear(&old[0]);
    assert_true(old[0].struct_bytes == sizeof old[0] && old[0].a == 0 && old[1].a == 5678);
}

TEST(a_result_without_a_size_is_refused_before_the_work)
{
    struct tdm_train_options options = tdm_train_options_default();
    struct tdm_train_result result = {.struct_bytes = 0};
    tdm_error err = {0};
    options.source = "nowhere";
    assert_int_equal(tdm_train(&options, (tdm_sink){0}, &result, &err), TDM_E_USAGE);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "struct tdm_train_result: struct_bytes"));
}

TEST_MAIN(NULL, NULL)
