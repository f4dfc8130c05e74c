/* Intervals and paired tests against numbers worked out apart, with 40-digit decimals. */
#include "tandem/metrics.h"
#include "unit.h"

#include <math.h>

static void assert_near(double value, double expected, double relative)
{
    if (fabs(value - expected) > relative * fmax(fabs(expected), 1e-300))
        fail_msg("%.17g is not %.17g within %g", value, expected, relative);
}

TEST(wilson_gives_the_numbers_of_the_formula)
{
    static const struct {
        int64_t correct, n;
        double low, high;
    } cases[] = {
        {0, 10, 0.0, 0.277532799862889},
        {10, 10, 0.722467200137111, 1.0},
        {5, 10, 0.236593090512564, 0.763406909487436},
        {0, 1, 0.0, 0.793450685622763},
        {1, 1, 0.206549314377237, 1.0},
        {211, 270, 0.728429544463132, 0.826636151778016},
        {212, 270, 0.732377774130002, 0.829991418114318},
        {263, 270, 0.947461584890462, 0.987385903515680},
        {9000, 10000, 0.893965631474089, 0.905727169829370},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdm_interval interval = tdm_wilson(cases[i].correct, cases[i].n);
        assert_near(interval.low, cases[i].low, 1e-12);
        assert_near(interval.high, cases[i].high, 1e-12);
    }
}

TEST(wilson_of_nothing_is_everything)
{
    tdm_interval interval = tdm_wilson(0, 0);
    assert_true(interval.low == 0.0 && interval.high == 1.0);
    interval = tdm_wilson(3, -1);
    assert_true(interval.low == 0.0 && interval.high == 1.0);
}

TEST(wilson_holds_the_rate_and_stays_within_bounds)
{
    for (int64_t n = 1; n < 200; n++)
        for (int64_t correct = 0; correct <= n; correct++) {
            tdm_interval interval = tdm_wilson(correct, n);
            double rate = (double)correct / (double)n;
            assert_true(0.0 <= interval.low && interval.low <= rate);
            assert_true(rate <= interval.high && interval.high <= 1.0);
            tdm_interval mirrored = tdm_wilson(n - correct, n);
            assert_near(1.0 - interval.low, mirrored.high, 1e-13);
        }
    /* Counts outside their range are the nearest ones inside. */
    assert_true(tdm_wilson(11, 10).low == tdm_wilson(10, 10).low);
    assert_true(tdm_wilson(-1, 10).high == tdm_wilson(0, 10).high);
}

TEST(mcnemar_gives_the_exact_probabilities)
{
    static const struct {
        int64_t only_a, only_b;
        double probability;
    } cases[] = {
        {0, 0, 1.0},
        {7, 7, 1.0},
        {0, 1, 1.0},
        {0, 5, 0.0625},                 /* 2 / 2^5 */
        {1, 9, 0.021484375},            /* 2 (1 + 10) / 2^10 */
        {3, 17, 0.0025768280029296875}, /* 2 (1 + 20 + 190 + 1140) / 2^20 */
        {10, 25, 0.016673847800120711},
        {400, 500, 0.0009564441369189461},
        {4000, 4200, 0.027972423571324383},
        /* Either side of where the formula for the largest term changes. */
        {4096, 4300, 0.026724044369557366},
        {4097, 4300, 0.027490688285093143},
        {5000, 5200, 0.048787963126822452},
        {49000, 50000, 0.0014980826229749737},
        {20000, 21000, 8.0585780267929587e-07},
        {999000, 1000000, 0.47982980530927716},
        {0, 900, 2.3661043723335494e-271},
        {0, 1100, 0.0}, /* below the smallest double */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_near(tdm_mcnemar_exact(cases[i].only_a, cases[i].only_b), cases[i].probability,
                    1e-10);
        assert_true(tdm_mcnemar_exact(cases[i].only_a, cases[i].only_b) ==
                    tdm_mcnemar_exact(cases[i].only_b, cases[i].only_a));
    }
}

/* 211 and 212 right of the same 270: whatever the overlap, one picture proves nothing. */
TEST(one_image_of_270_is_no_difference)
{
    for (int64_t only_a = 0; only_a <= 58; only_a++)
        assert_true(tdm_mcnemar_exact(only_a, only_a + 1) > 0.9);
    tdm_interval a = tdm_wilson(211, 270), b = tdm_wilson(212, 270);
    assert_true(a.high > b.low);
}

TEST(mcnemar_falls_as_the_split_grows_uneven)
{
    for (int64_t n = 1; n < 400; n++) {
        double before = 1.0;
        for (int64_t k = n / 2; k >= 0; k--) {
            double now = tdm_mcnemar_exact(k, n - k);
            assert_true(now > 0.0 && now <= before);
            before = now;
        }
    }
}

TEST(moments_stay_exact_far_from_zero)
{
    tdm_moments moments = {0};
    assert_true(tdm_moments_variance(&moments) == 0.0);
    tdm_moments_add(&moments, 1e9 + 4.0);
    assert_true(moments.mean == 1e9 + 4.0);
    assert_true(tdm_moments_variance(&moments) == 0.0);
    tdm_moments_add(&moments, 1e9 + 7.0);
    tdm_moments_add(&moments, 1e9 + 13.0);
    tdm_moments_add(&moments, 1e9 + 16.0);
    assert_int_equal(moments.n, 4);
    assert_near(moments.mean, 1e9 + 10.0, 1e-15);
    assert_near(tdm_moments_variance(&moments), 30.0, 1e-9);
}

/* Apart: the likelihood maximised by golden section at each difference, ends by bisection. */
TEST(the_paired_interval_is_that_of_the_profile_likelihood)
{
    static const struct {
        int64_t only_a, only_b, n;
        double low, high;
    } cases[] = {
        {0, 1, 44, -0.059393231, 0.118077097},    {86, 150, 1600, 0.021361565, 0.058998033},
        {10, 4, 2000, -0.007412891, 0.000766896}, {30, 20, 5000, -0.004940200, 0.000801715},
        {3, 9, 270, -0.003428876, 0.052555583},   {0, 20, 100, 0.133366933, 0.288829166},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tdm_interval interval = tdm_paired_interval(cases[i].only_a, cases[i].only_b, cases[i].n);
        assert_true(fabs(interval.low - cases[i].low) < 2e-9);
        assert_true(fabs(interval.high - cases[i].high) < 2e-9);
        tdm_interval turned = tdm_paired_interval(cases[i].only_b, cases[i].only_a, cases[i].n);
        assert_true(fabs(interval.low + turned.high) < 1e-12);
        assert_true(fabs(interval.high + turned.low) < 1e-12);
    }
}

/* Where no image differs both ends solve n d² = z² d (1 - d). */
TEST(the_paired_interval_without_differences_is_z2_by_n_and_z2)
{
    static const int64_t n[] = {1, 10, 1000, 50000};
    const double z2 = 3.841458820694124;
    for (size_t i = 0; i < sizeof n / sizeof n[0]; i++) {
        tdm_interval interval = tdm_paired_interval(0, 0, n[i]);
        assert_near(interval.high, z2 / ((double)n[i] + z2), 1e-12);
        assert_near(-interval.low, z2 / ((double)n[i] + z2), 1e-12);
    }
}

TEST(the_paired_interval_holds_the_difference_and_stays_within_bounds)
{
    for (int64_t n = 0; n < 24; n++)
        for (int64_t a = 0; a <= n; a++)
            for (int64_t b = 0; a + b <= n; b++) {
                tdm_interval interval = tdm_paired_interval(a, b, n);
                double difference = n ? (double)(b - a) / (double)n : 0.0;
                assert_true(-1.0 <= interval.low && interval.low <= difference);
                assert_true(difference <= interval.high && interval.high <= 1.0);
                assert_true(interval.low < interval.high);
            }
}

TEST_MAIN(NULL, NULL)
