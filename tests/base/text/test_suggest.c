/* Known names that are suggested for mistyped ones. */
#include "base/text/suggest.h"
#include "unit.h"

TEST(a_mistyped_name_is_answered_with_the_nearest)
{
    static const struct {
        const char *typed, *known, *other;
        bool is_near;
    } cases[] = {
        {"trian", "train", "doctor", true},
        {"docter", "doctor", "train", true},
        {"epoch", "epochs", "steps", true},
        {"weight-decy", "weight-decay", "warmup", true},
        {"check", "checkpoint-every", "x", true},
        {"lr", "model", "seed", false},
        {"SGD", "sgd", "adam", true},
        {"Adam", "adam", "adamw", true},
        {"zebra", "train", "doctor", false},
        {"", "train", "doctor", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdmi_suggestion suggestion = {.typed = cases[i].typed};
        char text[80], expected[80] = "";
        tdmi_suggest_consider(&suggestion, cases[i].other);
        tdmi_suggest_consider(&suggestion, cases[i].known);
        if (cases[i].is_near)
            snprintf(expected, sizeof expected, "; did you mean '--%s'?", cases[i].known);
        assert_string_equal(tdmi_suggest_words(&suggestion, "--", text, sizeof text), expected);
    }
}

/* Tables of settings may be mistyped at any length. */
TEST(a_name_longer_than_any_is_near_to_none)
{
    char typed[400], text[80];
    memset(typed, 'x', sizeof typed - 1);
    typed[sizeof typed - 1] = '\0';
    tdmi_suggestion suggestion = {.typed = typed};
    tdmi_suggest_consider(&suggestion, "xxxxxxxx");
    assert_string_equal(tdmi_suggest_words(&suggestion, "", text, sizeof text), "");
}

TEST_MAIN(NULL, NULL)
