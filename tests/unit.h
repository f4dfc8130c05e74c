/*
 * Test programs: `TEST(name) { … }` defines a case, which adds itself to the program's list before
 * main() runs, in the order of the file. A program ends with TEST_MAIN(set_up, tear_down), where
 * both functions may be NULL.
 */
#pragma once

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/scope.h"

TDMI_POINTER_RELEASE(char, free)

/* The call succeeds; else the case fails with the reason. */
#define assert_ok(call, err)                            \
    do {                                                \
        if ((call) != TDM_OK)                           \
            fail_msg("%s", tdm_error_sentence(err, 0)); \
    } while (0)

/* Some sentence of the error holds the word. */
static inline void assert_says(const tdm_error *err, const char *word)
{
    char text[8000] = "";
    tdm_error_format(err, text, sizeof text);
    if (strstr(text, word) == NULL)
        fail_msg("'%s' is not in: %s", word, text);
}

enum { UNIT_MOST_TESTS = 128 };
static struct CMUnitTest unit_tests[UNIT_MOST_TESTS];
static size_t unit_n_tests;

static inline void unit_add(struct CMUnitTest test)
{
    if (unit_n_tests == UNIT_MOST_TESTS)
        abort();
    unit_tests[unit_n_tests++] = test;
}

/* A case that is there only under a condition, with its own set-up and tear-down, which share
 * *state with it. */
#define TEST_CASE(condition, name, set_up, tear_down)                            \
    static void name(void **state);                                              \
    __attribute__((constructor)) static void add_##name(void)                    \
    {                                                                            \
        if (condition)                                                           \
            unit_add((struct CMUnitTest){#name, name, set_up, tear_down, NULL}); \
    }                                                                            \
    static void name(void **state __attribute__((unused)))
#define TEST(name) TEST_CASE(true, name, NULL, NULL)
#define TEST_IF(condition, name) TEST_CASE(condition, name, NULL, NULL)
#define TEST_WITH(name, set_up, tear_down) TEST_CASE(true, name, set_up, tear_down)

#define TEST_MAIN(set_up, tear_down)                                                            \
    int main(void)                                                                              \
    {                                                                                           \
        return _cmocka_run_group_tests(TEST_NAME, unit_tests, unit_n_tests, set_up, tear_down); \
    }
