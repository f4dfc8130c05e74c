/* Softmax and its cross-entropy have the bits of the reference in every instruction set, for any
 * number of classes, any targets and any logits. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/pointwise/softmax.h"
#include "backend/ref_kernels.h"
#include "base/hash/rng.h"
#include "unit.h"

#include <math.h>

/* In place of the library's: kernels run in this set. */
static enum tdmi_isa chosen_isa;

enum tdmi_isa tdmi_isa_best(void)
{
    return chosen_isa;
}

enum { images = 6, most = 1000 };

static const int all_classes[] = {1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 255, 256, 257, most};
enum { n_classes = sizeof all_classes / sizeof all_classes[0] };

/* Results of a kernel. */
struct written {
    float y[images * most], dx[images * most];
    struct tdmi_judgement judgements[images];
};

/* A call and its inputs. */
struct world {
    struct tdmi_op_desc desc;
    struct tdmi_op_call call;
    float x[images * most], class_weights[most];
    int32_t labels[images];
    struct tdmi_mixed_label mixed[images];
};

/* Logits as a network gives them, then far apart, then all equal in pairs. */
static float logit(tdmi_rng *rng, int image)
{
    float value = tdmi_rng_uniform(rng, -8.0f, 8.0f);
    return image % 3 == 1 ? value * 120.0f : image % 3 == 2 ? floorf(value) : value;
}

/* One label is no class; samples are mixed with another class, with their own, and wholly. */
static void make(struct world *it, int classes, double smoothing, bool is_weighted, bool is_mixed)
{
    tdmi_rng rng = tdmi_rng_at(3, TDMI_RNG_TEST, (uint32_t)classes, (uint64_t)(smoothing > 0.0));
    memset(it, 0, sizeof *it);
    for (int i = 0; i < images; i++) {
        for (int c = 0; c < classes; c++)
            it->x[i * classes + c] = logit(&rng, i);
        it->labels[i] = i == 4 ? -1 : (int)tdmi_rng_below(&rng, (uint32_t)classes);
        int other = i == 3 ? it->labels[i] : (int)tdmi_rng_below(&rng, (uint32_t)classes);
        it->mixed[i] = (struct tdmi_mixed_label){other, i == 0 ? 1.0f : i == 1 ? 0.0f : 0.3f};
    }
    for (int c = 0; c < classes; c++)
        it->class_weights[c] = tdmi_rng_uniform(&rng, 0.1f, 2.0f);
    it->desc = (struct tdmi_op_desc){.kind = TDMI_OP_SOFTMAX,
                                     .attrs.label_smoothing = smoothing,
                                     .in = {{1, 1, classes}},
                                     .out = {1, 1, classes},
                                     .max_images = images,
                                     .is_training = true,
                                     .wants_dx = true};
    it->call = (struct tdmi_op_call){.n = images,
                                     .x = {it->x},
                                     .labels = it->labels,
                                     .mixed = is_mixed ? it->mixed : NULL,
                                     .class_weights = is_weighted ? it->class_weights : NULL};
}

static void run(const struct tdmi_kernel *kernel, const struct world *it, struct written *out)
{
    struct tdmi_op_call call = it->call;
    memset(out, 0x5a, sizeof *out);
    call.y = out->y;
    call.dx[0] = out->dx;
    call.judgements = out->judgements;
    kernel->forward(NULL, &it->desc, &call);
    kernel->backward(NULL, &it->desc, &call);
}

static bool is_same(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static void compare(const struct world *it)
{
    static struct written ours, theirs;
    const int classes = it->desc.out.c;
    run(&tdmi_ref_softmax, it, &theirs);
    for (int isa = 0; isa <= (int)tdmi_isa_supported(); isa++) {
        chosen_isa = (enum tdmi_isa)isa;
        run(&tdmi_cpu_softmax, it, &ours);
        for (int i = 0; i < images * most; i++)
            if (!is_same(ours.y[i], theirs.y[i]) || !is_same(ours.dx[i], theirs.dx[i]))
                fail_msg("%d classes in %s: y[%d] %a and dx %a, wanted %a and %a", classes,
                         tdmi_isa_name(chosen_isa), i, (double)ours.y[i], (double)ours.dx[i],
                         (double)theirs.y[i], (double)theirs.dx[i]);
        for (int i = 0; i < images; i++)
            if (!is_same(ours.judgements[i].loss, theirs.judgements[i].loss) ||
                ours.judgements[i].predicted != theirs.judgements[i].predicted)
                fail_msg("%d classes in %s: sample %d has loss %a and class %d, wanted %a and %d",
                         classes, tdmi_isa_name(chosen_isa), i, (double)ours.judgements[i].loss,
                         ours.judgements[i].predicted, (double)theirs.judgements[i].loss,
                         theirs.judgements[i].predicted);
    }
}

TEST(every_set_has_the_bits_of_the_reference)
{
    static struct world it;
    for (int k = 0; k < n_classes; k++)
        for (int which = 0; which < 16; which++) {
            make(&it, all_classes[k], which & 1 ? 0.1 : 0.0, which & 2, which & 4);
            it.desc.is_training = !(which & 8);
            compare(&it);
        }
}

TEST(smoothing_that_leaves_nothing_of_the_label_has_them_too)
{
    static struct world it;
    make(&it, 17, 1.0, true, true);
    compare(&it);
}

/* Each image has one odd logit, at the start, in the middle and at the end of its row. */
TEST(logits_that_are_no_numbers_are_treated_as_by_the_reference)
{
    static const float odd[] = {NAN, -NAN, INFINITY, -INFINITY, -0.0f, 3e38f, -3e38f, 1e-45f};
    static struct world it;
    for (int k = 0; k < n_classes; k++)
        for (size_t o = 0; o < sizeof odd / sizeof odd[0]; o++) {
            const int classes = all_classes[k];
            make(&it, classes, 0.0, false, true);
            for (int i = 0; i < images; i++)
                it.x[i * classes + (classes - 1) * (i % 3) / 2] = odd[o];
            compare(&it);
        }
}

TEST(the_first_of_the_largest_logits_is_predicted)
{
    static struct world it;
    static struct written out;
    for (int isa = 0; isa <= (int)tdmi_isa_supported(); isa++)
        for (int first = 0; first < 40; first++) {
            chosen_isa = (enum tdmi_isa)isa;
            make(&it, 100, 0.0, false, false);
            for (int c = 0; c < 100; c++)
                it.x[c] = c >= first && (c - first) % 7 == 0 ? 9.0f : -9.0f;
            run(&tdmi_cpu_softmax, &it, &out);
            assert_int_equal(out.judgements[0].predicted, first);
        }
}

/* Millions of differences, most of them as a network gives them. */
TEST(the_powers_are_those_of_libm)
{
    static float x[most], y[most];
    tdmi_rng rng = tdmi_rng_at(4, TDMI_RNG_TEST, 0, 0);
    for (int isa = 0; isa <= (int)tdmi_isa_supported(); isa++)
        for (int row = 0; row < 3000; row++) {
            const float reach = row % 4 ? 20.0f : row % 8 ? 200.0f : 900.0f;
            double sum = 0.0, got;
            int guess = 0;
            for (int c = 0; c < most; c++) {
                x[c] = tdmi_rng_uniform(&rng, -reach, 0.0f);
                guess = x[c] > x[guess] ? c : guess;
            }
            for (int c = 0; c < most; c++)
                sum += exp((double)x[c] - (double)x[guess]);
            tdmi_softmax_kernels((enum tdmi_isa)isa)->forward(x, most, y, &got);
            if (got != sum)
                fail_msg("row %d in %s: %a, wanted %a", row, tdmi_isa_name((enum tdmi_isa)isa), got,
                         sum);
        }
}

TEST_MAIN(NULL, NULL)
