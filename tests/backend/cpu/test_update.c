/* Optimizer steps in every instruction set have the bits of the reference, for any length and
 * alignment. */
#include "backend/cpu/pointwise/update.h"
#include "backend/ref_kernels.h"
#include "base/hash/rng.h"
#include "unit.h"

enum { most = 3000, n_arrays = 4 };

/* Parameters, gradients and two slots, the squares among them not below 0. */
struct world {
    float values[n_arrays][most];
};

static void make(struct world *it, uint64_t stream)
{
    tdmi_rng rng = tdmi_rng_at(5, TDMI_RNG_TEST, 0, stream);
    for (int k = 0; k < n_arrays; k++)
        for (int i = 0; i < most; i++)
            it->values[k][i] = tdmi_rng_uniform(&rng, k == 3 ? 0.0f : -1.0f, 1.0f);
}

static struct tdmi_update_call call_on(struct world *it, int64_t at, int64_t n)
{
    return (struct tdmi_update_call){
        .params = it->values[0] + at,
        .gradient_sums = it->values[1] + at,
        .slots = {it->values[2] + at, it->values[3] + at},
        .n = n,
        .gradient_scale = 1.0f / 7,
        .learning_rate = 0.1f,
        .momentum = 0.9f,
        .weight_decay = 1e-3f,
        .moments = {0.1f, 0.01f, 1.7f, 0.3f, 2.5f, 1e-7f, 0.999f},
    };
}

typedef void act(const struct tdmi_update_table *table, struct tdmi_update_call *call,
                 double *numbers);

static void plain_sgd(const struct tdmi_update_table *table, struct tdmi_update_call *call,
                      double *numbers)
{
    (void)numbers;
    table->sgd(NULL, call);
}

static void nesterov_sgd(const struct tdmi_update_table *table, struct tdmi_update_call *call,
                         double *numbers)
{
    (void)numbers;
    call->is_nesterov = true;
    table->sgd(NULL, call);
}

/* Its squares are the first slot. */
static void rmsprop(const struct tdmi_update_table *table, struct tdmi_update_call *call,
                    double *numbers)
{
    float *squares = call->slots[1];
    (void)numbers;
    call->slots[1] = call->slots[0];
    call->slots[0] = squares;
    table->rmsprop(NULL, call);
}

static void adam(const struct tdmi_update_table *table, struct tdmi_update_call *call,
                 double *numbers)
{
    (void)numbers;
    table->adam(NULL, call);
}

static void lamb(const struct tdmi_update_table *table, struct tdmi_update_call *call,
                 double *numbers)
{
    table->lamb_measure(NULL, call, numbers);
    table->lamb_step(NULL, call);
}

/* Without epsilon nothing that lies behind the last value may be divided. */
static void lamb_without_epsilon(const struct tdmi_update_table *table,
                                 struct tdmi_update_call *call, double *numbers)
{
    call->moments.epsilon = 0.0f;
    lamb(table, call, numbers);
}

static void squares(const struct tdmi_update_table *table, struct tdmi_update_call *call,
                    double *numbers)
{
    table->squares(NULL, call->params, call->n, numbers);
}

static void blend(const struct tdmi_update_table *table, struct tdmi_update_call *call,
                  double *numbers)
{
    (void)numbers;
    table->blend(NULL, call->params, call->gradient_sums, call->n, 1.0f / 7, 0.1f);
}

static void accumulate(const struct tdmi_update_table *table, struct tdmi_update_call *call,
                       double *numbers)
{
    (void)numbers;
    table->accumulate(NULL, TDMI_DTYPE_F32, call->params, call->gradient_sums, call->n);
}

TEST(every_set_has_the_bits_of_the_reference)
{
    static const struct {
        const char *name;
        act *run;
    } acts[] = {
        {"plain sgd", plain_sgd},
        {"nesterov sgd", nesterov_sgd},
        {"rmsprop", rmsprop},
        {"adam", adam},
        {"lamb", lamb},
        {"lamb without epsilon", lamb_without_epsilon},
        {"squares", squares},
        {"blend", blend},
        {"accumulate", accumulate},
    };
    static const int lengths[] = {1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 100, 1023, 2990};
    static struct world ours, theirs;
    for (size_t a = 0; a < sizeof acts / sizeof acts[0]; a++)
        for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++)
            for (int isa = 0; isa <= (int)tdmi_isa_best(); isa++) {
                double numbers[2][2] = {{0.0}};
                make(&ours, k);
                make(&theirs, k);
                struct tdmi_update_call call = call_on(&ours, (int64_t)k % 5, lengths[k]);
                acts[a].run(tdmi_cpu_updates((enum tdmi_isa)isa), &call, numbers[0]);
                call = call_on(&theirs, (int64_t)k % 5, lengths[k]);
                acts[a].run(&tdmi_ref_update, &call, numbers[1]);
                if (memcmp(&ours, &theirs, sizeof ours) != 0 ||
                    memcmp(numbers[0], numbers[1], sizeof numbers[0]) != 0)
                    fail_msg("%s of %d values differs in %s", acts[a].name, lengths[k],
                             tdmi_isa_name((enum tdmi_isa)isa));
            }
}

TEST(squares_are_added_in_double)
{
    static float values[most];
    double sum = 0.0;
    for (int i = 0; i < most; i++)
        values[i] = i == 0 ? 1e15f : 3e10f;
    tdmi_cpu_updates(tdmi_isa_best())->squares(NULL, values, most, &sum);
    const double wanted =
        (double)1e15f * (double)1e15f + (most - 1) * (double)3e10f * (double)3e10f;
    assert_true(sum > wanted * (1.0 - 1e-14) && sum < wanted * (1.0 + 1e-14));
    tdmi_cpu_updates(tdmi_isa_best())->squares(NULL, values, 0, &sum);
    assert_true(sum == 0.0);
}

TEST_MAIN(NULL, NULL)
