/*
 * One option value: what each type accepts, what it refuses, and the sentence it refuses with.
 */
#include "cli/option.h"
#include "unit.h"

#include <math.h>

struct values {
    bool flag;
    int integer;
    int64_t big;
    uint64_t seed;
    double number;
    const char *text;
    struct tdmi_fractions fractions;
};

static const struct tdmi_option rows[] = {
    [TDMI_OPTION_FLAG] = {.name = "flag", .offset = offsetof(struct values, flag)},
    [TDMI_OPTION_INTEGER] = {.name = "epochs",
                             .offset = offsetof(struct values, integer),
                             .low = 1,
                             .high = 100,
                             .unit = "epochs"},
    [TDMI_OPTION_LONG] = {.name = "steps",
                          .offset = offsetof(struct values, big),
                          .low = 0,
                          .high = INFINITY},
    [TDMI_OPTION_SEED] = {.name = "seed", .offset = offsetof(struct values, seed)},
    [TDMI_OPTION_NUMBER] = {.name = "lr",
                            .offset = offsetof(struct values, number),
                            .low = 0,
                            .high = 10},
    [TDMI_OPTION_SIZE] = {.name = "memory",
                          .offset = offsetof(struct values, big),
                          .low = 0x1p20,
                          .high = 0x1p40},
    [TDMI_OPTION_DURATION] = {.name = "deadline",
                              .offset = offsetof(struct values, number),
                              .low = 1,
                              .high = 7200},
    [TDMI_OPTION_TEXT] = {.name = "text", .offset = offsetof(struct values, text)},
    [TDMI_OPTION_PATH] = {.name = "path", .offset = offsetof(struct values, text)},
    [TDMI_OPTION_CHOICE] = {.name = "format",
                            .offset = offsetof(struct values, text),
                            .choices = "jpeg|png|bmp"},
    [TDMI_OPTION_FRACTIONS] = {.name = "split", .offset = offsetof(struct values, fractions)},
};

static struct tdmi_option row_of(enum tdmi_option_type type)
{
    struct tdmi_option row = rows[type];
    row.type = type;
    return row;
}

TEST(accepts_and_describes_every_type)
{
    static const struct {
        enum tdmi_option_type type;
        const char *typed, *described;
    } cases[] = {
        {TDMI_OPTION_FLAG, "true", "true"},
        {TDMI_OPTION_FLAG, "On", "true"},
        {TDMI_OPTION_FLAG, "0", "false"},
        {TDMI_OPTION_INTEGER, "1", "1"},
        {TDMI_OPTION_INTEGER, "100", "100"},
        {TDMI_OPTION_INTEGER, "+7", "7"},
        {TDMI_OPTION_LONG, "9007199254740993", "9007199254740993"},
        {TDMI_OPTION_SEED, "18446744073709551615", "18446744073709551615"},
        {TDMI_OPTION_NUMBER, "1e-3", "0.001"},
        {TDMI_OPTION_NUMBER, ".5", "0.5"},
        {TDMI_OPTION_SIZE, "512M", "512M"},
        {TDMI_OPTION_SIZE, "1.5g", "1.5G"},
        {TDMI_OPTION_SIZE, "2GiB", "2G"},
        {TDMI_OPTION_SIZE, "1048577", "1048577"},
        {TDMI_OPTION_DURATION, "90", "90s"},
        {TDMI_OPTION_DURATION, "5m", "300s"},
        {TDMI_OPTION_DURATION, "2h", "7200s"},
        {TDMI_OPTION_DURATION, "1500ms", "1.5s"},
        {TDMI_OPTION_TEXT, "any text", "any text"},
        {TDMI_OPTION_PATH, "-", "-"},
        {TDMI_OPTION_CHOICE, "jpeg", "jpeg"},
        {TDMI_OPTION_CHOICE, "bmp", "bmp"},
        {TDMI_OPTION_FRACTIONS, "0.9,0.1", "0.9,0.1"},
        {TDMI_OPTION_FRACTIONS, " 0.7 , 0.2,0.1 ", "0.7,0.2,0.1"},
        {TDMI_OPTION_FRACTIONS, "1", "1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tdmi_option row = row_of(cases[i].type);
        struct tdmi_option_value value;
        struct values values = {0};
        tdm_error err = {0};
        char text[64];
        print_message("# %s\n", cases[i].typed);
        assert_int_equal(tdmi_option_parse(&row, "--x", cases[i].typed, &value, &err), TDM_OK);
        tdmi_option_store(&row, &value, &values);
        tdmi_option_describe_value(&row, &values, text, sizeof text);
        assert_string_equal(text, cases[i].described);
    }
}

TEST(refuses_with_what_is_accepted_and_what_was_found)
{
    static const struct {
        enum tdmi_option_type type;
        const char *typed, *sentence;
    } cases[] = {
        {TDMI_OPTION_FLAG, "maybe", "--x takes true or false; found 'maybe'"},
        {TDMI_OPTION_FLAG, "", "--x takes true or false; found ''"},
        {TDMI_OPTION_INTEGER, "0", "--x takes an integer from 1 to 100 epochs; found '0'"},
        {TDMI_OPTION_INTEGER, "101", "--x takes an integer from 1 to 100 epochs; found '101'"},
        {TDMI_OPTION_INTEGER, "3.5", "--x takes an integer from 1 to 100 epochs; found '3.5'"},
        {TDMI_OPTION_INTEGER, "3 ", "--x takes an integer from 1 to 100 epochs; found '3 '"},
        {TDMI_OPTION_INTEGER, " 3", "--x takes an integer from 1 to 100 epochs; found ' 3'"},
        {TDMI_OPTION_INTEGER, "4294967297",
         "--x takes an integer from 1 to 100 epochs; found '4294967297'"},
        {TDMI_OPTION_LONG, "-1", "--x takes an integer of at least 0; found '-1'"},
        {TDMI_OPTION_LONG, "9223372036854775808",
         "--x takes an integer of at least 0; found '9223372036854775808'"},
        {TDMI_OPTION_SEED, "-1", "--x takes an integer from 0 to 18446744073709551615; found '-1'"},
        {TDMI_OPTION_NUMBER, "nan", "--x takes a number from 0 to 10; found 'nan'"},
        {TDMI_OPTION_NUMBER, "inf", "--x takes a number from 0 to 10; found 'inf'"},
        {TDMI_OPTION_NUMBER, "0x10", "--x takes a number from 0 to 10; found '0x10'"},
        {TDMI_OPTION_NUMBER, "1e999", "--x takes a number from 0 to 10; found '1e999'"},
        {TDMI_OPTION_NUMBER, "1,5", "--x takes a number from 0 to 10; found '1,5'"},
        {TDMI_OPTION_SIZE, "12X", "--x takes a size such as 512M or 2G from 1M to 1T; found '12X'"},
        {TDMI_OPTION_SIZE, "1K", "--x takes a size such as 512M or 2G from 1M to 1T; found '1K'"},
        {TDMI_OPTION_DURATION, "3w",
         "--x takes a duration such as 90s, 5m or 2h from 1s to 7200s; found '3w'"},
        {TDMI_OPTION_TEXT, "", "--x takes a text that is not empty; found ''"},
        {TDMI_OPTION_CHOICE, "jpe", "--x takes one of jpeg, png, bmp; found 'jpe'"},
        {TDMI_OPTION_CHOICE, "jpeg|png", "--x takes one of jpeg, png, bmp; found 'jpeg|png'"},
        {TDMI_OPTION_CHOICE, "", "--x takes one of jpeg, png, bmp; found ''"},
        {TDMI_OPTION_FRACTIONS, "0.9,0.2",
         "--x takes fractions such as 0.9,0.1, each from 0 to 1, that sum to at most "
         "1; found '0.9,0.2'"},
        {TDMI_OPTION_FRACTIONS, "0.9,",
         "--x takes fractions such as 0.9,0.1, each from 0 to 1, that sum to at most "
         "1; found '0.9,'"},
        {TDMI_OPTION_FRACTIONS, "0.1,0.1,0.1,0.1",
         "--x takes fractions such as 0.9,0.1, each from 0 to 1, that sum to at most "
         "1; found '0.1,0.1,0.1,0.1'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tdmi_option row = row_of(cases[i].type);
        struct tdmi_option_value value;
        tdm_error err = {0};
        assert_int_equal(tdmi_option_parse(&row, "--x", cases[i].typed, &value, &err), TDM_E_USAGE);
        assert_string_equal(tdm_error_sentence(&err, 0), cases[i].sentence);
    }
}

TEST(writes_every_type_to_json)
{
    struct values values = {.flag = true,
                            .integer = 3,
                            .big = 4,
                            .seed = UINT64_MAX,
                            .number = 0.5,
                            .fractions = {{0.9, 0.1}, 2}};
    tdm_json_writer *json = tdm_json_writer_new(0);
    const char *text;
    tdm_error err = {0};
    tdm_json_object_begin(json, NULL);
    for (int type = 0; type < (int)(sizeof rows / sizeof rows[0]); type++) {
        struct tdmi_option row = row_of((enum tdmi_option_type)type);
        tdmi_option_write_json(&row, &values, json);
    }
    tdm_json_object_end(json);
    assert_int_equal(tdm_json_finish(json, &text, NULL, &err), TDM_OK);
    assert_non_null(strstr(text, "\"epochs\":3"));
    assert_non_null(strstr(text, "\"seed\":\"18446744073709551615\""));
    assert_non_null(strstr(text, "\"format\":null"));
    assert_non_null(strstr(text, "\"split\":[0.9,0.1]"));
    tdm_json_writer_free(json);
}

TEST(an_integer_may_have_a_word_for_zero)
{
    struct tdmi_option row = row_of(TDMI_OPTION_INTEGER);
    struct tdmi_option_value value;
    struct values values = {.integer = 7};
    tdm_error err = {0};
    char text[64];
    assert_int_equal(tdmi_option_parse(&row, "--epochs", "any", &value, NULL), TDM_E_USAGE);
    row.zero = "any";
    assert_int_equal(tdmi_option_parse(&row, "--epochs", "any", &value, NULL), TDM_OK);
    tdmi_option_store(&row, &value, &values);
    assert_int_equal(values.integer, 0);
    tdmi_option_describe_value(&row, &values, text, sizeof text);
    assert_string_equal(text, "any");
    assert_int_equal(tdmi_option_parse(&row, "--epochs", "0", &value, &err), TDM_E_USAGE);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "from 1 to 100 epochs, or any; found '0'"));
    assert_int_equal(tdmi_option_parse(&row, "--epochs", "12", &value, NULL), TDM_OK);
    tdmi_option_store(&row, &value, &values);
    tdmi_option_describe_value(&row, &values, text, sizeof text);
    assert_string_equal(text, "12");
}

TEST_MAIN(NULL, NULL)
