/*
 * Run all cases of a program twice: with oneDNN held to AVX2, then with all that the CPU has.
 */
#pragma once

#include "unit.h"

#include <sys/wait.h>
#include <unistd.h>

/* In place of TEST_MAIN. oneDNN reads the limit once, so the first run is another process. */
#define ONEDNN_TEST_MAIN                                                                 \
    int main(void)                                                                       \
    {                                                                                    \
        const pid_t child = fork();                                                      \
        int status = 1;                                                                  \
        if (child == 0)                                                                  \
            setenv("DNNL_MAX_CPU_ISA", "AVX2", 1);                                       \
        else if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0) {           \
            fprintf(stderr, "the tests failed with DNNL_MAX_CPU_ISA=AVX2\\n");           \
            return 1;                                                                    \
        }                                                                                \
        return _cmocka_run_group_tests(TEST_NAME, unit_tests, unit_n_tests, NULL, NULL); \
    }
