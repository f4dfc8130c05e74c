/*
 * The tuning of the loader on numbers: more while the caller waits, fewer while threads idle, and
 * an end to it.
 */
#include "unit.h"
#include "data/loader/internal.h"

TEST(each_measurement_has_its_answer)
{
    static const struct {
        struct tdmi_tuning before;
        struct tdmi_tuning_sample sample;
        int threads, depth;
    } cases[] = {
        {{.threads = 1, .depth = 2}, {1, 0.5, 0}, 2, 2},    /* waited for, all busy */
        {{.threads = 4, .depth = 2}, {1, 0.5, 0}, 4, 2},    /* no more to be had */
        {{.threads = 2, .depth = 2}, {1, 0.1, 0.9}, 2, 3},  /* in bursts */
        {{.threads = 2, .depth = 3}, {1, 0.1, 0.9}, 3, 3},  /* in bursts, all slots taken */
        {{.threads = 3, .depth = 2}, {1, 0.0, 1.5}, 2, 2},  /* one thread too many */
        {{.threads = 3, .depth = 2}, {2, 0.0, 1.5}, 3, 2},  /* less than one */
        {{.threads = 1, .depth = 2}, {1, 0.0, 1.0}, 1, 2},  /* the last one stays */
        {{.threads = 3, .depth = 2}, {1, 0.01, 1.5}, 3, 2}, /* waited a little: let be */
        {{.threads = 3, .depth = 2}, {0, 0, 0}, 3, 2},      /* no time, no answer */
        {{.threads = 3, .depth = 2, .floor = 3}, {1, 0.0, 2}, 3, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tdmi_tuning tuning = cases[i].before;
        tuning.most_threads = 4;
        tuning.most_depth = 3;
        const char *why = tdmi_tuning_step(&tuning, &cases[i].sample);
        assert_int_equal(tuning.threads, cases[i].threads);
        assert_int_equal(tuning.depth, cases[i].depth);
        bool has_changed =
            tuning.threads != cases[i].before.threads || tuning.depth != cases[i].before.depth;
        assert_int_equal(why != NULL, has_changed);
    }
}

/* A caller that takes what 2.5 threads can make: whatever the start, it ends at 3 and stays. */
TEST(it_comes_to_rest)
{
    for (int start = 1; start <= 8; start++) {
        struct tdmi_tuning tuning = {
            .threads = start, .depth = 3, .most_threads = 8, .most_depth = 3};
        for (int step = 0; step < 40; step++) {
            double work = 2.5, idle = tuning.threads - work;
            struct tdmi_tuning_sample sample = {.seconds = 1,
                                                .consumer_waits =
                                                    idle < 0 ? 1 - tuning.threads / work : 0,
                                                .ring_waits = idle > 0 ? idle : 0};
            const char *why = tdmi_tuning_step(&tuning, &sample);
            assert_true(step < 20 || why == NULL);
        }
        assert_int_equal(tuning.threads, 3);
    }
}

TEST_MAIN(NULL, NULL)
