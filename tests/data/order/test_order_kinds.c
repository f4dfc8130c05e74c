/*
 * Orders in groups and in shares of classes: every sample as often as promised, the same for every
 * world and thread, reached at once, as good a shuffle as said, and the same for ever.
 */
#include "unit.h"
#include "base/clock.h"
#include "base/thread.h"
#include "data/order/order.h"

#include "base/each_allocation.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static tdmi_order grouped(uint64_t seed, const int64_t *sizes, int64_t n, int64_t window)
{
    tdmi_order order;
    tdm_error err = {0};
    const struct tdmi_order_grouped options = {seed, true, sizes, n, window};
    assert_ok(tdmi_order_init_grouped(&order, &options, &err), &err);
    return order;
}

static tdmi_order balanced(uint64_t seed, const int *labels, int64_t n, int n_classes,
                           const double *weights, int64_t n_draws)
{
    tdmi_order order;
    tdm_error err = {0};
    const struct tdmi_order_balanced options = {seed, labels, n, n_classes, weights, n_draws};
    assert_ok(tdmi_order_init_balanced(&order, &options, &err), &err);
    return order;
}

static void assert_permutation(const tdmi_order *order, uint32_t epoch)
{
    unsigned char *seen = calloc((size_t)order->n, 1);
    assert_non_null(seen);
    for (int64_t p = 0; p < order->n; p++) {
        int64_t sample = tdmi_order_at(order, epoch, p);
        assert_in_range(sample, 0, order->n - 1);
        assert_int_equal(seen[sample]++, 0);
    }
    free(seen);
}

/* ---- every sample once --------------------------------------------------------------------- */

TEST(groups_of_any_size_and_window_give_every_sample_once)
{
    static const int64_t sizes[] = {5, 0, 3, 7, 1, 9, 4, 11, 0, 2, 1, 1, 64, 0};
    for (int64_t window = 0; window < 16; window++)
        for (int64_t n = 1; n <= (int64_t)COUNT(sizes); n++)
            for (uint32_t epoch = 0; epoch < 4; epoch++) {
                TDMI_AT_END(tdmi_order_release) tdmi_order order = grouped(17, sizes, n, window);
                assert_permutation(&order, epoch);
            }
}

/* Each rank takes a part of every batch by position. It has its own order object and starts at any
 * batch; ranks share nothing but the positions. */
static void run_world(const tdmi_order *orders, int world, int batch, uint32_t epoch, int64_t *met)
{
    const int64_t n = orders[0].n;
    for (int rank = world - 1; rank >= 0; rank--)
        for (int64_t first = 0; first < n; first += batch) {
            int64_t length = n - first < batch ? n - first : batch;
            for (int64_t p = length * rank / world; p < length * (rank + 1) / world; p++) {
                assert_int_equal(met[first + p], -1);
                met[first + p] = tdmi_order_at(&orders[rank], epoch, first + p);
            }
        }
}

enum { LARGEST_WORLD = 16, LARGEST_N = 401 };

static tdmi_order order_of(enum tdmi_order_kind kind, int64_t n)
{
    int64_t sizes[64] = {0};
    int labels[LARGEST_N];
    for (int64_t i = 0; i < n; i++) {
        sizes[i * i % 63]++;
        labels[i] = (int)(i * i % 7);
    }
    if (kind == TDMI_ORDER_GROUPED)
        return grouped(3, sizes, 64, 5);
    if (kind == TDMI_ORDER_BALANCED)
        return balanced(3, labels, n, 7, NULL, 0);
    return (tdmi_order){.seed = 3, .n = n, .is_shuffled = true};
}

/* N prime, small, and of whole batches; every world of 1 to 16 and batch of 1 to 64. */
TEST(every_world_and_batch_sees_the_same_sequence)
{
    static const int64_t sizes[] = {1, 2, 7, 64, 97, LARGEST_N};
    for (int kind = TDMI_ORDER_FULL; kind <= TDMI_ORDER_BALANCED; kind++)
        for (size_t s = 0; s < COUNT(sizes); s++) {
            const int64_t n = sizes[s];
            tdmi_order orders[LARGEST_WORLD];
            int64_t sequence[LARGEST_N], met[LARGEST_N];
            for (int rank = 0; rank < LARGEST_WORLD; rank++)
                orders[rank] = order_of((enum tdmi_order_kind)kind, n);
            if (kind != TDMI_ORDER_BALANCED)
                assert_permutation(&orders[0], 2);
            for (int64_t p = 0; p < n; p++)
                sequence[p] = tdmi_order_at(&orders[0], 2, p);
            for (int world = 1; world <= LARGEST_WORLD; world++)
                for (int batch = 1; batch <= 64; batch++) {
                    memset(met, 0xff, sizeof met);
                    run_world(orders, world, batch, 2, met);
                    assert_memory_equal(met, sequence, (size_t)n * sizeof *met);
                }
            for (int rank = 0; rank < LARGEST_WORLD; rank++)
                tdmi_order_release(&orders[rank]);
        }
}

/* Threads that ask about more epochs than are kept replace each other's tables. */
struct crowd {
    const tdmi_order *order;
    const int64_t *expected; /* (epochs, n) */
    int64_t n_wrong[8];
};

static tdm_status ask(void *self, int index, int worker, tdm_error *err)
{
    struct crowd *crowd = self;
    (void)worker;
    (void)err;
    const int64_t n = crowd->order->n;
    for (int64_t i = 0; i < 4 * n; i++) {
        int64_t epoch = (i + index) % 5, p = (i * 7 + index) % n;
        crowd->n_wrong[index] +=
            tdmi_order_at(crowd->order, (uint32_t)epoch, p) != crowd->expected[epoch * n + p];
    }
    return TDM_OK;
}

TEST(threads_that_ask_about_many_epochs_agree)
{
    tdmi_order order = order_of(TDMI_ORDER_GROUPED, LARGEST_N);
    int64_t *expected = calloc(5 * LARGEST_N, sizeof *expected);
    assert_non_null(expected);
    for (uint32_t epoch = 0; epoch < 5; epoch++)
        for (int64_t p = 0; p < LARGEST_N; p++)
            expected[epoch * LARGEST_N + p] = tdmi_order_at(&order, epoch, p);
    struct crowd crowd = {.order = &order, .expected = expected};
    TDMI_AT_END(tdmi_pool_free_at) tdmi_pool *pool = NULL;
    assert_int_equal(tdmi_pool_new(4, NULL, &pool, NULL), TDM_OK);
    assert_int_equal(tdmi_pool_run(pool, 8, ask, &crowd, NULL), TDM_OK);
    for (int i = 0; i < 8; i++)
        assert_int_equal(crowd.n_wrong[i], 0);
    free(expected);
    tdmi_order_release(&order);
}

/* ---- windows ------------------------------------------------------------------------------- */

/* Samples come from at most 4 groups until these have given all of theirs. */
TEST(a_window_holds_whole_groups_and_only_its_own)
{
    enum { WINDOW = 4 };
    static const int64_t sizes[] = {5, 0, 3, 7, 1, 9, 4, 11, 6, 2};
    TDMI_AT_END(tdmi_order_release) tdmi_order order = grouped(5, sizes, COUNT(sizes), WINDOW);
    int n_met[COUNT(sizes)] = {0}, n_windows = 0, n_groups = 0;
    bool is_open[COUNT(sizes)] = {false};
    int64_t n_missing = 0;
    for (int64_t p = 0; p < order.n; p++) {
        int64_t sample = tdmi_order_at(&order, 6, p);
        size_t group = 0;
        for (int64_t first = 0; first + sizes[group] <= sample; group++)
            first += sizes[group];
        if (!is_open[group]) {
            assert_true(n_groups < WINDOW);
            is_open[group] = true;
            n_groups++;
            n_met[group]++;
            n_missing += sizes[group];
        }
        n_missing--;
        if (n_missing == 0 && (n_groups == WINDOW || p == order.n - 1)) {
            n_windows++;
            n_groups = 0;
            memset(is_open, 0, sizeof is_open);
        }
    }
    assert_int_equal(n_windows, 3); /* 9 groups hold something */
    for (size_t g = 0; g < COUNT(sizes); g++)
        assert_int_equal(n_met[g], sizes[g] > 0);
}

TEST(without_shuffling_groups_come_as_in_the_file)
{
    static const int64_t sizes[] = {3, 4, 5};
    const struct tdmi_order_grouped options = {1, false, sizes, 3, 2};
    tdmi_order order;
    assert_int_equal(tdmi_order_init_grouped(&order, &options, NULL), TDM_OK);
    for (int64_t p = 0; p < 12; p++)
        assert_int_equal(tdmi_order_at(&order, 3, p), p);
    tdmi_order_release(&order);
}

/* Where a sample stands, over many epochs, against the uniform law (5 standard deviations). */
TEST(a_sample_of_groups_stands_everywhere_equally_often)
{
    const int64_t sizes[] = {4, 4, 4, 4, 4, 4};
    TDMI_AT_END(tdmi_order_release) tdmi_order order = grouped(99, sizes, 6, 2);
    double counts[24] = {0}, chi_square = 0;
    for (uint32_t epoch = 0; epoch < 20000; epoch++)
        counts[tdmi_order_at(&order, epoch, 13)]++;
    for (int i = 0; i < 24; i++)
        chi_square += (counts[i] - 20000.0 / 24) * (counts[i] - 20000.0 / 24) / (20000.0 / 24);
    assert_true((chi_square - 23) * (chi_square - 23) < 25 * 2 * 23);
}

/* ---- quality ------------------------------------------------------------------------------- */

static double quality_of(const tdmi_order *order, int batch)
{
    double quality = -1;
    tdm_error err = {0};
    assert_ok(tdmi_order_quality(order, 1, batch, &quality, &err), &err);
    return quality;
}

TEST(quality_is_0_for_the_file_1_for_a_full_shuffle_and_between_for_windows)
{
    enum { GROUPS = 500, ROWS = 2000 };
    static int64_t sizes[GROUPS];
    for (int g = 0; g < GROUPS; g++)
        sizes[g] = ROWS;
    tdmi_order order = {.seed = 4, .n = (int64_t)GROUPS * ROWS, .is_shuffled = true};
    assert_true(quality_of(&order, 64) == 1);
    order.is_shuffled = false;
    assert_true(quality_of(&order, 64) == 0);
    double before = -1;
    static const int64_t windows[] = {1, 2, 4, 8, 16, 500};
    for (size_t w = 0; w < COUNT(windows); w++) {
        TDMI_AT_END(tdmi_order_release) tdmi_order mixed = grouped(4, sizes, GROUPS, windows[w]);
        double quality = quality_of(&mixed, 64), expected = 1 - 1 / (double)windows[w];
        assert_true(quality > before);
        assert_true(quality > expected - 0.02 && quality < expected + 0.02);
        before = quality;
    }
}

TEST(quality_has_an_answer_for_tiny_epochs_and_a_sentence_for_shares)
{
    for (int64_t n = 1; n < 40; n++)
        for (int batch = 1; batch < 10; batch++) {
            tdmi_order order = {.seed = 4, .n = n, .is_shuffled = n % 2 == 0};
            double quality = quality_of(&order, batch);
            assert_true(quality >= 0 && quality <= 1);
        }
    tdmi_order order = order_of(TDMI_ORDER_BALANCED, 97);
    double quality;
    tdm_error err = {0};
    assert_int_equal(tdmi_order_quality(&order, 0, 8, &quality, &err), TDM_E_USAGE);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "more than once"));
    tdmi_order_release(&order);
    order = (tdmi_order){.n = 10};
    assert_int_equal(tdmi_order_quality(&order, 0, 0, &quality, &err), TDM_E_USAGE);
}

/* ---- shares of classes --------------------------------------------------------------------- */

enum { CLASSES = 5, SAMPLES = 300 };

/* Sizes 150, 75, 50, 24, 1, mixed. */
static void label_samples(int labels[SAMPLES])
{
    for (int i = 0; i < SAMPLES; i++) {
        int number = i * 77 % SAMPLES; /* 77 and 300 have no common divisor */
        labels[i] = number < 150 ? 0 : number < 225 ? 1 : number < 275 ? 2 : number < 299 ? 3 : 4;
    }
}

/* Draws of each class and sample in epochs [0, n_epochs). Checks each epoch's shares and, at the
 * end of each, that the samples of a class were drawn equally often up to one. */
static void draw_epochs(const tdmi_order *order, const int *labels, const double *weights,
                        uint32_t n_epochs, double class_draws[CLASSES])
{
    int64_t draws[SAMPLES] = {0};
    double sum = 0;
    for (int c = 0; c < CLASSES; c++)
        sum += weights[c];
    for (uint32_t epoch = 0; epoch < n_epochs; epoch++) {
        double in_epoch[CLASSES] = {0};
        int64_t least[CLASSES], most[CLASSES] = {0};
        for (int64_t p = 0; p < order->n; p++) {
            int64_t sample = tdmi_order_at(order, epoch, p);
            assert_in_range(sample, 0, SAMPLES - 1);
            draws[sample]++;
            in_epoch[labels[sample]]++;
        }
        memset(least, 0x7f, sizeof least);
        for (int i = 0; i < SAMPLES; i++) {
            int c = labels[i];
            least[c] = draws[i] < least[c] ? draws[i] : least[c];
            most[c] = draws[i] > most[c] ? draws[i] : most[c];
        }
        for (int c = 0; c < CLASSES; c++) {
            double quota = (double)order->n * weights[c] / sum;
            assert_true(in_epoch[c] > quota - 1 && in_epoch[c] < quota + 1);
            assert_true(most[c] - least[c] <= 1);
            class_draws[c] += in_epoch[c];
        }
    }
}

TEST(every_class_gets_its_share_and_every_sample_of_it_its_turn)
{
    static const double weights[][CLASSES] = {
        {1, 1, 1, 1, 1}, {1, 2, 3, 4, 5}, {0.001, 0.1, 1, 10, 0.3}, {1, 0, 0, 0, 0.25}};
    static const int64_t draws[] = {1, 7, 97, SAMPLES, 1009};
    int labels[SAMPLES];
    label_samples(labels);
    for (size_t w = 0; w < COUNT(weights); w++)
        for (size_t d = 0; d < COUNT(draws); d++) {
            double class_draws[CLASSES] = {0}, sum = 0;
            tdmi_order order = balanced(w, labels, SAMPLES, CLASSES, weights[w], draws[d]);
            draw_epochs(&order, labels, weights[w], 60, class_draws);
            for (int c = 0; c < CLASSES; c++)
                sum += weights[w][c];
            for (int c = 0; c < CLASSES; c++) { /* the rests even out over epochs */
                double quota = 60.0 * (double)draws[d] * weights[w][c] / sum;
                assert_true(class_draws[c] > quota - 3 && class_draws[c] < quota + 3);
            }
            tdmi_order_release(&order);
        }
}

TEST(a_sample_and_its_repeat_never_come_twice)
{
    int labels[SAMPLES];
    label_samples(labels);
    tdmi_order order = balanced(8, labels, SAMPLES, CLASSES, NULL, 0);
    static unsigned char seen[SAMPLES][1024];
    int64_t largest = 0;
    for (uint32_t epoch = 0; epoch < 10; epoch++)
        for (int64_t p = 0; p < order.n; p++) {
            int64_t sample = tdmi_order_at(&order, epoch, p);
            int64_t repeat = tdmi_order_repeat(&order, epoch, p);
            assert_int_equal(tdmi_order_view(&order, epoch, p, 3), repeat % 3);
            assert_in_range(repeat, 0, 1023);
            assert_int_equal(seen[sample][repeat]++, 0);
            largest = repeat > largest ? repeat : largest;
        }
    assert_int_equal(largest, 599); /* the class of one sample: 60 draws an epoch */
    tdmi_order_release(&order);
    order = (tdmi_order){.n = 5};
    assert_int_equal(tdmi_order_repeat(&order, 3, 2), 0);
    assert_int_equal(tdmi_order_view(&order, 11, 2, 4), 3); /* of an epoch, all the same */
}

/* Pairs of classes at neighbouring positions are as independent draws would be. */
TEST(classes_come_mixed)
{
    int labels[SAMPLES];
    label_samples(labels);
    tdmi_order order = balanced(21, labels, SAMPLES, CLASSES, NULL, 50000);
    double pairs[CLASSES * CLASSES] = {0}, chi_square = 0;
    for (int64_t p = 0; p < order.n; p += 2)
        pairs[labels[tdmi_order_at(&order, 0, p)] * CLASSES +
              labels[tdmi_order_at(&order, 0, p + 1)]]++;
    for (int i = 0; i < CLASSES * CLASSES; i++)
        chi_square += (pairs[i] - 1000) * (pairs[i] - 1000) / 1000;
    assert_true(chi_square < 24 + 5 * 6.93);
    tdmi_order_release(&order);
}

TEST(wrong_groups_labels_and_weights_are_named)
{
    tdmi_order order;
    tdm_error err = {0};
    const int64_t negative[] = {3, -1}, none[] = {0, 0}, huge[] = {(int64_t)1 << 62, 1};
    const int labels[] = {0, 1, 2, 1};
    const double minus[] = {1, -1, 1}, nan[] = {1, 0.0 / 0.0, 1}, zero[] = {0, 0, 0};
    const struct {
        struct tdmi_order_grouped options;
        const char *words;
    } groups[] = {{{1, true, negative, 2, 1}, "group 1 has -1 samples"},
                  {{1, true, none, 2, 1}, "there is none"},
                  {{1, true, NULL, 0, 1}, "0 groups"},
                  {{1, true, huge, 2, 1}, "group 1"},
                  {{1, true, huge, 1, -1}, "windows of -1"}};
    for (size_t i = 0; i < COUNT(groups); i++) {
        assert_int_equal(tdmi_order_init_grouped(&order, &groups[i].options, &err), TDM_E_USAGE);
        assert_non_null(strstr(tdm_error_sentence(&err, 0), groups[i].words));
    }
    const struct {
        struct tdmi_order_balanced options;
        const char *words;
    } shares[] = {{{1, labels, 4, 2, NULL, 0}, "sample 2 has label 2, classes are 0 to 1"},
                  {{1, labels, 0, 2, NULL, 0}, "0 samples"},
                  {{1, labels, 4, 0, NULL, 0}, "0 classes"},
                  {{1, labels, 4, 3, minus, 0}, "class 1 has the weight -1"},
                  {{1, labels, 4, 3, nan, 0}, "class 1"},
                  {{1, labels, 4, 3, zero, 0}, "weight 0"}};
    for (size_t i = 0; i < COUNT(shares); i++) {
        assert_int_equal(tdmi_order_init_balanced(&order, &shares[i].options, &err), TDM_E_USAGE);
        assert_non_null(strstr(tdm_error_sentence(&err, 0), shares[i].words));
    }
    tdmi_order_release(&order); /* what a failed init leaves */
    tdmi_order_release(NULL);
}

/* ---- cost, memory, format ------------------------------------------------------------------ */

/* The first question of a resumed run: 90 % into an epoch of 10^7, nothing asked before. */
TEST(a_resume_late_in_a_large_epoch_is_immediate)
{
    enum { N = 10000000, GROUPS = 10000 };
    int64_t *sizes = calloc(GROUPS, sizeof *sizes);
    int *labels = calloc(N, sizeof *labels);
    assert_true(sizes != NULL && labels != NULL);
    for (int g = 0; g < GROUPS; g++)
        sizes[g] = N / GROUPS;
    for (int i = 0; i < N; i++)
        labels[i] = i % 1000;
    tdmi_order orders[] = {{.seed = 1, .n = N, .is_shuffled = true},
                           grouped(1, sizes, GROUPS, 8),
                           balanced(1, labels, N, 1000, NULL, 0)};
    for (int i = 0; i < 3; i++) {
        int64_t start = tdmi_clock_ns();
        int64_t sample = tdmi_order_at(&orders[i], 50, N / 10 * 9);
        int64_t first_ns = tdmi_clock_ns() - start;
        assert_in_range(sample, 0, N - 1);
        assert_true(first_ns < 50 * 1000000);
        start = tdmi_clock_ns();
        for (int64_t p = N / 10 * 9; p < N / 10 * 9 + 100000; p++)
            sample += tdmi_order_at(&orders[i], 50, p);
        assert_true(sample > 0);
        print_message("# kind %d: first after %.1f us, then %.0f ns each\n", (int)orders[i].kind,
                      (double)first_ns / 1e3, (double)(tdmi_clock_ns() - start) / 1e5);
        tdmi_order_release(&orders[i]);
    }
    free(sizes);
    free(labels);
}

static tdm_status init_and_evaluate(tdm_error *err)
{
    static const int64_t sizes[] = {4, 5, 6};
    static const int labels[] = {0, 1, 1};
    const struct tdmi_order_grouped groups = {1, true, sizes, 3, 2};
    const struct tdmi_order_balanced shares = {1, labels, 3, 2, NULL, 0};
    tdmi_order order;
    double quality;
    tdm_status status = tdmi_order_init_grouped(&order, &groups, err);
    if (status == TDM_OK)
        status = tdmi_order_quality(&order, 0, 4, &quality, err);
    tdmi_order_release(&order);
    if (status == TDM_OK)
        status = tdmi_order_init_balanced(&order, &shares, err);
    tdmi_order_release(&order);
    return status;
}

TEST(running_out_of_memory_is_an_error)
{
    assert_true(fail_each_allocation(init_and_evaluate) == 10);
}

/* By a second implementation that counts instead of computing. A change is a change of format. */
TEST(orders_never_change)
{
    static const int64_t sizes[] = {5, 0, 3, 7, 1, 9, 4, 11};
    static const int64_t epoch_0[] = {31, 30, 34, 39, 2, 33, 4, 1, 38, 37, 36, 29, 15, 3};
    static const int64_t epoch_9[] = {39, 30, 34, 22, 17, 31, 16, 20, 19, 23, 36, 24, 33, 18};
    tdmi_order order = grouped(42, sizes, 8, 3);
    for (int64_t p = 0; p < 14; p++) {
        assert_int_equal(tdmi_order_at(&order, 0, p), epoch_0[p]);
        assert_int_equal(tdmi_order_at(&order, 9, p), epoch_9[p]);
    }
    tdmi_order_release(&order);

    int64_t many[100];
    for (int i = 0; i < 100; i++)
        many[i] = 10 + i % 7;
    static const int64_t late[] = {448, 608, 618, 447, 606, 619, 560, 751};
    order = grouped(UINT64_MAX, many, 100, 8);
    for (int64_t p = 0; p < 8; p++)
        assert_int_equal(tdmi_order_at(&order, 4000000000u, p), late[p]);
    tdmi_order_release(&order);

    int labels[60]; /* class 2 has no sample */
    for (int i = 0; i < 60; i++)
        labels[i] = i * i % 11 % 5;
    static const int64_t equal_0[] = {38, 37, 3, 22, 45, 48, 43, 13, 55, 40, 30, 21};
    static const int64_t equal_59[] = {39, 57, 59, 42, 53, 14, 44, 10, 27, 13, 43, 2};
    order = balanced(42, labels, 60, 5, NULL, 23);
    for (int64_t p = 0; p < 12; p++) {
        assert_int_equal(tdmi_order_at(&order, 0, p), equal_0[p]);
        assert_int_equal(tdmi_order_at(&order, 59, p), equal_59[p]);
    }
    tdmi_order_release(&order);
    static const double weights[] = {1, 2, 3, 0, 50};
    static const int64_t weighted_7[] = {3, 53, 24, 41, 53, 58, 31, 35, 24, 52, 8, 14};
    order = balanced(7, labels, 60, 5, weights, 100);
    for (int64_t p = 0; p < 12; p++)
        assert_int_equal(tdmi_order_at(&order, 7, p), weighted_7[p]);
    tdmi_order_release(&order);
}

TEST_MAIN(NULL, NULL)
