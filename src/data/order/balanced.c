/*
 * Classes in fixed shares, without a table of draws. Every count below is an integer formula of the
 * epoch, so any position of any epoch is answered alone.
 *
 * Shares. Class c has the whole weight v_c, V is their sum; of n draws its quota is n v_c / V =
 * base_c + rest_c / V. Each epoch draws base_c of it, and the n - sum of base_c = R draws that are
 * left go to classes by a comb: the rests lie one after the other on a line of length R V, and the
 * teeth u, u + V, u + 2V, … fall on the classes that draw once more. A rest is shorter than V, so
 * nobody gets two. The comb moves with the epoch, u = (epoch · step) mod V, step near V times the
 * golden section and prime to V: after V epochs, and nearly so after any number, each class has had
 * exactly its quota, however small.
 *
 *     rests   |──0──|────1────|2|───3───|        a tooth at u and every V further
 *     teeth      u          u+V       u+2V
 *
 * Draws. How often class c was drawn before an epoch is epoch · base_c + the teeth that fell on it,
 * a sum of floor((a i + b) / V) over the epochs i, which Euclid's algorithm adds in O(log V). The
 * d-th draw of a class of s samples is place d mod s of its permutation number d / s: everything
 * once before anything twice, across the ends of epochs too.
 *
 * Places. Slots of an epoch are sorted by class; position p takes the slot that the FULL
 * permutation of [0, n) gives it.
 *
 * Rejected: drawing a class for each position by a coin, then a sample of it by another. Shares are
 * then right on average only (a class of 10 in 1000 draws misses by 3), and a third of the samples
 * of an epoch-long draw with replacement are never seen.
 */
#include "data/order/order.h"

#include <assert.h>
#include <math.h>

/* Products of two weights, and of a weight and an epoch, must fit 64 bits. */
enum { WEIGHT_BITS = 30, MAX_CLASSES = 1 << 24 };

struct class
{
    int64_t base;  /* draws in each epoch … */
    int64_t rests; /* … and where its rest begins on the line of the comb */
    int64_t bases; /* sum of base of the classes before it */
    int64_t first; /* of its samples */
};

struct tdmi_order_classes {
    int n;
    uint64_t total, step;
    struct class *classes; /* (n + 1); the last one only ends the others */
    int64_t *samples;      /* (n_samples), class after class, each in file order */
};

void tdmi_order_classes_free(struct tdmi_order_classes *classes)
{
    if (classes == NULL)
        return;
    tdmi_free(classes->classes);
    tdmi_free(classes->samples);
    tdmi_free(classes);
}
TDMI_POINTER_RELEASE(struct tdmi_order_classes, tdmi_order_classes_free)

/* ---- whole weights ------------------------------------------------------------------------- */

static tdm_status check(const struct tdmi_order_balanced *options, tdm_error *err)
{
    if (options->n_classes < 1 || options->n_classes > MAX_CLASSES || options->n_samples < 1 ||
        options->n_draws < 0 || options->n_draws > (int64_t)1 << 62)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "cannot draw %lld times from %lld samples of %d classes: 1 or more samples "
                        "and 1 to %d classes are needed",
                        (long long)options->n_draws, (long long)options->n_samples,
                        options->n_classes, MAX_CLASSES);
    for (int64_t i = 0; i < options->n_samples; i++)
        if (options->labels[i] < 0 || options->labels[i] >= options->n_classes)
            return TDM_FAIL(err, TDM_E_USAGE,
                            "cannot balance classes: sample %lld has label %d, classes are 0 to %d",
                            (long long)i, options->labels[i], options->n_classes - 1);
    for (int c = 0; c < options->n_classes && options->weights != NULL; c++)
        if (!(options->weights[c] >= 0 && options->weights[c] <= 1e30))
            return TDM_FAIL(err, TDM_E_USAGE,
                            "cannot balance classes: class %d has the weight %g, 0 or more is "
                            "needed",
                            c, options->weights[c]);
    return TDM_OK;
}

static double weight_of(const struct tdmi_order_balanced *options,
                        const struct tdmi_order_classes *classes, int c)
{
    if (classes->classes[c].first == classes->classes[c + 1].first)
        return 0; /* nothing to draw */
    return options->weights != NULL ? options->weights[c] : 1;
}

/* Whole weights as they are while their sum fits 30 bits; others in parts of 2^30 of the sum, so to
 * nine digits, and at least 1. They are kept in base for the moment. */
static tdm_status weigh(const struct tdmi_order_balanced *options,
                        struct tdmi_order_classes *classes, tdm_error *err)
{
    const double limit = (double)((int64_t)1 << WEIGHT_BITS);
    double sum = 0;
    bool is_whole = true;
    for (int c = 0; c < classes->n; c++) {
        double weight = weight_of(options, classes, c);
        sum += weight;
        is_whole = is_whole && weight == floor(weight);
    }
    if (!(sum > 0))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "cannot balance classes: every class that has samples has the weight 0");
    const double scale = is_whole && sum <= limit ? 1 : limit / sum;
    for (int c = 0; c < classes->n; c++) {
        double weight = weight_of(options, classes, c);
        int64_t whole = (int64_t)floor(weight * scale + 0.5);
        if (whole == 0 && weight > 0)
            whole = 1;
        classes->classes[c].base = whole;
        classes->total += (uint64_t)whole;
    }
    return TDM_OK;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* ---- create -------------------------------------------------------------------------------- */

/* Counting sort of the samples by class. */
static void sort_samples(const struct tdmi_order_balanced *options,
                         struct tdmi_order_classes *classes)
{
    for (int64_t i = 0; i < options->n_samples; i++)
        classes->classes[options->labels[i] + 1].first++;
    for (int c = 0; c < classes->n; c++)
        classes->classes[c + 1].first += classes->classes[c].first;
    for (int64_t i = 0; i < options->n_samples; i++)
        classes->samples[classes->classes[options->labels[i]].first++] = i;
    for (int c = classes->n; c > 0; c--) /* each was moved to where the next one begins */
        classes->classes[c].first = classes->classes[c - 1].first;
    classes->classes[0].first = 0;
}

/* From weights to bases and rests. n v / V without a product of more than 62 bits. */
static void share(struct tdmi_order_classes *classes, int64_t n)
{
    const int64_t total = (int64_t)classes->total;
    int64_t bases = 0, rests = 0;
    for (int c = 0; c <= classes->n; c++) {
        struct class *class = &classes->classes[c];
        const int64_t weight = class->base, product = n % total * weight;
        class->base = n / total * weight + product / total;
        class->bases = bases;
        class->rests = rests;
        bases += class->base;
        rests += product % total;
    }
    classes->step = (uint64_t)((double)total * 0.6180339887498949);
    while (classes->step == 0 || common_divisor(classes->step, classes->total) != 1)
        classes->step++;
}

tdm_status tdmi_order_init_balanced(tdmi_order *order, const struct tdmi_order_balanced *options,
                                    tdm_error *err)
{
    TDMI_AT_END(tdmi_order_classes_free_at) struct tdmi_order_classes *classes = NULL;
    *order = (tdmi_order){0};
    TDMI_TRY(check(options, err));
    TDMI_TRY(TDMI_NEW(classes, 1, err));
    classes->n = options->n_classes;
    TDMI_TRY(TDMI_NEW(classes->classes, options->n_classes + 1, err));
    TDMI_TRY(TDMI_NEW(classes->samples, options->n_samples, err));
    sort_samples(options, classes);
    TDMI_TRY(weigh(options, classes, err));
    const int64_t n = options->n_draws > 0 ? options->n_draws : options->n_samples;
    share(classes, n);
    *order = (tdmi_order){.seed = options->seed,
                          .n = n,
                          .is_shuffled = true,
                          .kind = TDMI_ORDER_BALANCED,
                          .classes = tdmi_take(&classes)};
    return TDM_OK;
}

/* ---- use ----------------------------------------------------------------------------------- */

/* Teeth of the epoch below a point of the line. u < V. */
static int64_t teeth_below(const struct tdmi_order_classes *classes, uint64_t u, int64_t point)
{
    return (int64_t)(((uint64_t)point + classes->total - 1 - u) / classes->total);
}

/* The first slot of a class in an epoch. */
static int64_t slot_of(const struct tdmi_order_classes *classes, uint64_t u, int c)
{
    const struct class *class = &classes->classes[c];
    return class->bases + teeth_below(classes, u, class->rests);
}

/* The sum of floor((a i + b) / m) over i in [0, n), modulo 2^64: differences are exact. a < m <
 * 2^31 or so and n < 2^32 keep a n + b below 2^64. */
static uint64_t sum_of_floors(uint64_t n, uint64_t m, uint64_t a, uint64_t b)
{
    uint64_t sum = 0;
    while (n > 0) {
        uint64_t pairs = n % 2 == 0 ? n / 2 * (n - 1) : (n - 1) / 2 * n;
        sum += pairs * (a / m) + n * (b / m);
        a %= m;
        b %= m;
        uint64_t top = a * n + b;
        if (top < m)
            break;
        n = top / m;
        b = top % m;
        uint64_t other = m;
        m = a;
        a = other;
    }
    return sum;
}

/* Teeth that fell below a point in the epochs before this one, plus a number that is the same for
 * every point: floor((point + V - 1 - u_i) / V) with -u_i = (V - step) i modulo V. */
static uint64_t teeth_before(const struct tdmi_order_classes *classes, uint32_t epoch,
                             int64_t point)
{
    uint64_t total = classes->total;
    return sum_of_floors(epoch, total, (total - classes->step % total) % total,
                         (uint64_t)point + total - 1);
}

int64_t tdmi_order_balanced_at(const tdmi_order *order, uint32_t epoch, int64_t position,
                               int64_t *repeat)
{
    const struct tdmi_order_classes *classes = order->classes;
    const struct tdmi_order_key places = {.seed = order->seed, .epoch = epoch};
    const int64_t slot = tdmi_order_permute(places, order->n, position);
    const uint64_t u = epoch * (classes->step % classes->total) % classes->total;
    int low = 0, high = classes->n; /* the last class that begins at or before the slot */
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (slot_of(classes, u, middle) <= slot)
            low = middle;
        else
            high = middle;
    }
    const struct class *class = &classes->classes[low];
    const int64_t size = class[1].first - class->first;
    const uint64_t draw = epoch * (uint64_t) class->base +
                          (teeth_before(classes, epoch, class[1].rests) -
                           teeth_before(classes, epoch, class->rests)) +
                          (uint64_t)(slot - slot_of(classes, u, low));
    assert(size > 0 && slot < slot_of(classes, u, low + 1));
    *repeat = (int64_t)(draw / (uint64_t)size);
    const struct tdmi_order_key inside = {order->seed, (uint32_t)*repeat,
                                          TDMI_ORDER_STREAM_BALANCED, (uint64_t)low};
    return classes->samples[class->first +
                            tdmi_order_permute(inside, size, (int64_t)(draw % (uint64_t)size))];
}
