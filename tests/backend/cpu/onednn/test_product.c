/*
 * Products of dense layers by oneDNN against a double loop, over every small size, both ways of
 * storing each side; with oneDNN held to AVX2 too.
 */
#include "tandem_features.h"

#include "backend/cpu/onednn/twice.h"

#if TDM_HAVE_ONEDNN

#include "backend/backend.h"
#include "backend/cpu/onednn/library.h"
#include "base/hash/rng.h"
#include "base/memory.h"

#include <math.h>
#include <signal.h>
#include <sys/time.h>

enum { guard = 16 };

static float *filled(int n, uint64_t stream)
{
    float *values = malloc(sizeof *values * (size_t)(n + guard));
    assert_non_null(values);
    tdmi_rng rng = tdmi_rng_at(7, TDMI_RNG_TEST, 0, stream);
    for (int i = 0; i < n + guard; i++)
        values[i] = tdmi_rng_uniform(&rng, -1.0f, 1.0f);
    return values;
}

static bool multiply(const struct tdmi_onednn_product *product)
{
    const struct tdmi_onednn_table *onednn;
    tdm_error err = {0};
    assert_ok(tdmi_onednn_load(&onednn, &err), &err);
    return onednn->multiply(product);
}

static double wanted(const struct tdmi_onednn_product *p, const float *before, int m, int n)
{
    double sum = p->adds ? (double)before[m * p->columns + n] : 0.0;
    for (int k = 0; k < p->depth; k++)
        sum += (double)p->a[p->is_a_transposed ? k * p->rows + m : m * p->depth + k] *
               (double)p->b[p->is_b_transposed ? n * p->depth + k : k * p->columns + n];
    return sum;
}

static void check(int rows, int columns, int depth, bool is_a_transposed, bool is_b_transposed,
                  bool adds)
{
    float *a = filled(rows * depth, 1), *b = filled(depth * columns, 2);
    float *c = filled(rows * columns, 3), *before = filled(rows * columns, 3);
    struct tdmi_onednn_product p = {
        rows, columns, depth, is_a_transposed, is_b_transposed, adds, false, a, b, c, NULL};
    for (int i = 0; !adds && i < rows * columns; i++)
        c[i] = NAN;
    assert_true(multiply(&p));
    for (int m = 0; m < rows; m++)
        for (int n = 0; n < columns; n++)
            if (!(fabs((double)c[m * columns + n] - wanted(&p, before, m, n)) <= 1e-6 * depth))
                fail_msg("%d x %d x %d, transposed %d %d, adds %d: c[%d][%d] is %.9g, wanted %.9g",
                         rows, columns, depth, is_a_transposed, is_b_transposed, adds, m, n,
                         (double)c[m * columns + n], wanted(&p, before, m, n));
    for (int i = rows * columns; i < rows * columns + guard; i++)
        assert_true(c[i] == before[i]);
    free(a);
    free(b);
    free(c);
    free(before);
}

static void count_signal(int number)
{
    (void)number;
}

/* Without care a handler writes into the heap, where oneDNN's product has the stack pointer. */
TEST(signals_do_not_write_into_memory)
{
    enum { rows = 8, columns = 61, depth = 400, times = 30000 };
    struct sigaction before, action = {.sa_handler = count_signal, .sa_flags = SA_RESTART};
    const struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    float *a = filled(rows * depth, 1), *b = filled(depth * columns, 2);
    float *c = filled(rows * columns, 3);
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    for (int i = 0; i < times; i++) {
        struct tdmi_onednn_product p = {rows,  columns, depth, i % 2 == 1, i % 4 > 1, false,
                                        false, a,       b,     c,          NULL};
        assert_true(multiply(&p));
    }
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    free(a);
    free(b);
    free(c);
}

TEST(products_follow_their_formula)
{
    static const int sizes[] = {1, 2, 3, 7, 8, 10, 16, 17, 33, 100};
    enum { n_sizes = sizeof sizes / sizeof sizes[0] };
    for (int i = 0; i < n_sizes * n_sizes * n_sizes; i++)
        check(sizes[i % n_sizes], sizes[i / n_sizes % n_sizes], sizes[i / n_sizes / n_sizes],
              i % 2 == 0, i % 3 == 0, i % 5 == 0);
    check(8, 1000, 1280, false, false, true);
    check(7, 1280, 1000, false, true, false);
    check(1280, 1000, 5, true, false, false);
}

TEST(a_product_without_memory_is_nan_and_reported)
{
    float *a = filled(16 * 8, 1), *b = filled(8 * 10, 2), *c = filled(16 * 10, 3);
    const struct tdmi_onednn_table *onednn;
    tdm_error err = {0};
    _Atomic int64_t made_for = 0;
    const struct tdmi_onednn_product p = {16,    10, 8, false, false,    false,
                                          false, a,  b, c,     &made_for};
    assert_ok(tdmi_onednn_load(&onednn, &err), &err);
    tdmi_memory_fail_from(1);
    const bool has_run = onednn->multiply(&p) || onednn->multiply(&p);
    tdmi_memory_fail_from(0);
    assert_false(has_run);
    assert_true(isnan(c[0]) && isnan(c[16 * 10 - 1]) && !isnan(c[16 * 10]));
    assert_true(made_for == 0);
    assert_true(onednn->multiply(&p));
    assert_true(c[0] == c[0] && made_for != 0);
    free(a);
    free(b);
    free(c);
}

TEST(the_next_wait_of_a_stream_reports_what_was_not_run_once)
{
    const struct tdmi_stream_table *streams = &tdmi_backend_cpu.stream;
    tdmi_stream *stream = NULL;
    tdm_error err = {0};
    assert_int_equal(streams->open(NULL, &stream, &err), TDM_OK);
    tdmi_onednn_note(stream, false);
    tdmi_onednn_note(stream, true);
    assert_int_equal(streams->wait(stream, &err), TDM_E_MEMORY);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "oneDNN: out of memory"));
    assert_int_equal(streams->wait(stream, &err), TDM_OK);
    tdmi_onednn_note(stream, true);
    assert_int_equal(streams->wait(stream, &err), TDM_OK);
    streams->close(stream);
}

ONEDNN_TEST_MAIN

#else

int main(void)
{
    return 0;
}

#endif
