/* hswish and sigmoid have the bits of the reference in every instruction set. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/isa.h"
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

enum { most = 2000 };

static const struct {
    const char *name;
    const struct tdmi_kernel *ours, *reference;
} curves[] = {
    {"hswish", &tdmi_cpu_hswish, &tdmi_ref_hswish},
    {"sigmoid", &tdmi_cpu_sigmoid, &tdmi_ref_sigmoid},
};

static bool is_same(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static void run(const struct tdmi_kernel *kernel, int n, const float *x, const float *dy, float *y,
                float *dx)
{
    struct tdmi_op_desc desc = {
        .in = {{1, 1, n}}, .out = {1, 1, n}, .max_images = 1, .wants_dx = true};
    struct tdmi_op_call call = {.n = 1, .x = {x}, .y = y, .dy = dy, .dx = {dx}};
    kernel->forward(NULL, &desc, &call);
    kernel->backward(NULL, &desc, &call);
}

static void compare(int n, const float *x, const float *dy)
{
    static float y[2][most + 1], dx[2][most + 1];
    for (size_t k = 0; k < sizeof curves / sizeof curves[0]; k++)
        for (int isa = 0; isa <= (int)tdmi_isa_supported(); isa++) {
            chosen_isa = (enum tdmi_isa)isa;
            y[0][n] = y[1][n] = dx[0][n] = dx[1][n] = 7.0f; /* nothing behind is written */
            run(curves[k].ours, n, x, dy, y[0], dx[0]);
            run(curves[k].reference, n, x, dy, y[1], dx[1]);
            for (int i = 0; i <= n; i++)
                if (!is_same(y[0][i], y[1][i]) || !is_same(dx[0][i], dx[1][i]))
                    fail_msg("%s in %s, value %d of %d: %a and %a, wanted %a and %a",
                             curves[k].name, tdmi_isa_name(chosen_isa), i, n, (double)y[0][i],
                             (double)dx[0][i], (double)y[1][i], (double)dx[1][i]);
        }
}

TEST(every_set_has_the_bits_of_the_reference)
{
    static const int lengths[] = {1, 2, 3, 4, 7, 8, 15, 16, 17, 255, 257, most};
    static float x[most], dy[most];
    tdmi_rng rng = tdmi_rng_at(6, TDMI_RNG_TEST, 0, 0);
    for (int round = 0; round < 20; round++)
        for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
            const float reach = round % 4 ? 5.0f : 800.0f;
            for (int i = 0; i < lengths[k]; i++) {
                x[i] = tdmi_rng_uniform(&rng, -reach, reach);
                dy[i] = tdmi_rng_uniform(&rng, -1.0f, 1.0f);
            }
            compare(lengths[k], x, dy);
        }
}

TEST(values_at_the_bends_and_no_numbers_have_them_too)
{
    const float x[] = {-3.0f, 3.0f,     0.0f,      -0.0f,  -2.9999998f, 2.9999998f, -3.0000002f,
                       NAN,   INFINITY, -INFINITY, 1e-45f, -1e-45f,     3e38f,      -3e38f,
                       -1.5f, 512.0f,   -512.0f,   511.9f, -708.5f,     745.5f,     88.8f};
    enum { n = sizeof x / sizeof x[0] };
    float dy[n];
    for (int i = 0; i < n; i++)
        dy[i] = i % 2 ? -2.0f : 0.5f;
    compare(n, x, dy);
    dy[0] = -0.0f;
    dy[1] = INFINITY;
    dy[9] = NAN;
    compare(n, x, dy);
}

TEST_MAIN(NULL, NULL)
