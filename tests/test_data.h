/*
 * The way to real pictures, weights and data sets, which do not live in this tree. tests/run sets
 * TANDEM_TEST_DATA; a case that needs a file that is not there is skipped by name, not passed.
 * Include it after cmocka.h.
 */
#pragma once

#include "unit.h"
#include <unistd.h>

/* The path of a file or folder below the test data; leaves the test as skipped when there is none.
 * The answer stays valid until the next call of the same thread. */
static inline const char *test_data(const char *relative)
{
    static _Thread_local char path[4096];
    const char *folder = getenv("TANDEM_TEST_DATA");
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "", relative);
    if (!folder || access(path, R_OK) != 0) {
        print_message("# needs %s below TANDEM_TEST_DATA\n", relative);
        skip();
    }
    return path;
}
