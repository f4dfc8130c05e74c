/*
 * Reading tests/fixtures/<name>: lines of a word and numbers, in the order in which the test asks
 * for them; '#' begins a comment line. They lie beside this file in the source tree, so a test
 * needs no path told.
 */
#pragma once

#include "unit.h"

struct fixture {
    FILE *file;
    char name[64];
};

static inline struct fixture *fixture_open(const char *name)
{
    char path[4096];
    struct fixture *fixture = malloc(sizeof *fixture);
    assert_non_null(fixture);
    snprintf(path, sizeof path, CHECKOUT "/tests/fixtures/%s", name);
    snprintf(fixture->name, sizeof fixture->name, "%s", name);
    fixture->file = fopen(path, "r");
    if (!fixture->file)
        fail_msg("the fixture %s is missing", path);
    return fixture;
}

static inline void fixture_close(struct fixture *fixture)
{
    fclose(fixture->file);
    free(fixture);
}

/* Go to the next line's word, which must be this one; a text after it is copied when wanted. */
static inline void fixture_word(struct fixture *fixture, const char *word, char *text,
                                size_t text_bytes)
{
    char found[64] = "", value[64] = "";
    do {
        if (found[0] == '#') {
            int c;
            while ((c = fgetc(fixture->file)) != '\n' && c != EOF) {}
        }
        if (fscanf(fixture->file, "%63s", found) != 1)
            fail_msg("%s ends before '%s'", fixture->name, word);
    } while (found[0] == '#');
    if (strcmp(found, word) != 0)
        fail_msg("%s: '%s' where '%s' is expected", fixture->name, found, word);
    if (text) {
        assert_int_equal(fscanf(fixture->file, "%63s", value), 1);
        snprintf(text, text_bytes, "%s", value);
    }
}

static inline void fixture_numbers(struct fixture *fixture, const char *word, double *numbers,
                                   int n)
{
    fixture_word(fixture, word, NULL, 0);
    for (int i = 0; i < n; i++)
        if (fscanf(fixture->file, "%lf", &numbers[i]) != 1)
            fail_msg("%s: '%s' has %d numbers, %d are expected", fixture->name, word, i, n);
}

static inline double fixture_number(struct fixture *fixture, const char *word)
{
    double number;
    fixture_numbers(fixture, word, &number, 1);
    return number;
}
