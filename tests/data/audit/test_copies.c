/* Copies: the banded search finds exactly the pairs that comparing each with each finds. */
#include "unit.h"
#include "base/memory.h"
#include "data/audit/finding.h"
#include "image/fingerprint.h"

enum { N = 600 };

static uint32_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

/* Families of fingerprints that differ in up to 7 bits, some equal, some without one. */
static void make(uint64_t *fingerprints, struct tdm_audit_file *files, uint64_t seed)
{
    uint64_t state = seed;
    memset(files, 0, N * sizeof *files);
    for (int i = 0; i < N; i++) {
        uint64_t parent = (uint64_t)next_random(&state) << 32 | next_random(&state);
        if (i > 20 && next_random(&state) % 3 > 0)
            parent = fingerprints[next_random(&state) % (uint32_t)i];
        for (uint32_t flips = next_random(&state) % 8; flips > 0; flips--)
            parent ^= UINT64_C(1) << next_random(&state) % 64;
        fingerprints[i] = next_random(&state) % 50 == 0 ? 0 : parent;
        files[i].label = (int)(next_random(&state) % 3);
        files[i].part = (int)(next_random(&state) % 2);
        files[i].hash = i > 0 && next_random(&state) % 10 == 0
                            ? files[next_random(&state) % (uint32_t)i].hash
                            : (uint64_t)i + 1;
        files[i].path = "";
        files[i].reason = "";
    }
    /* Equal bytes have equal fingerprints. */
    for (int i = 0; i < N; i++)
        for (int k = 0; k < i; k++)
            if (files[k].hash == files[i].hash) {
                fingerprints[i] = fingerprints[k];
                break;
            }
}

static bool is_first(const struct tdm_audit_file *files, int i)
{
    for (int k = 0; k < i; k++)
        if (files[k].hash == files[i].hash)
            return false;
    return true;
}

static bool has_pair(const struct tdm_audit *copies, int first, int second, int distance)
{
    int n = 0;
    for (int64_t p = 0; p < copies->n_pairs; p++)
        n += copies->pairs[p].first == first && copies->pairs[p].second == second &&
             copies->pairs[p].distance == distance;
    assert_true(n <= 1);
    return n == 1;
}

TEST(every_near_pair_is_found_once_and_no_other)
{
    static uint64_t fingerprints[N];
    static struct tdm_audit_file files[N];
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct tdm_audit copies = {.files = files, .images = N};
        int64_t n_expected = 0;
        tdm_error err = {0};
        make(fingerprints, files, seed);
        assert_int_equal(tdmi_copies_find(&copies, fingerprints, &err), TDM_OK);
        assert_false(copies.is_near_cut);
        for (int i = 0; i < N; i++)
            for (int k = i + 1; k < N; k++) {
                const int distance = tdmi_fingerprint_distance(fingerprints[i], fingerprints[k]);
                if (files[i].hash == files[k].hash && is_first(files, i)) {
                    assert_true(has_pair(&copies, i, k, -1));
                    n_expected++;
                }
                if (files[i].hash != files[k].hash && is_first(files, i) && is_first(files, k) &&
                    fingerprints[i] != 0 && fingerprints[k] != 0 &&
                    distance <= TDMI_FINGERPRINT_NEAR) {
                    assert_true(has_pair(&copies, i, k, distance));
                    n_expected++;
                }
            }
        assert_int_equal(copies.n_pairs, n_expected);
        assert_true(n_expected > 100);
        for (int64_t p = 1; p < copies.n_pairs; p++)
            assert_true(copies.pairs[p - 1].first <= copies.pairs[p].first);
        tdmi_free(copies.pairs);
    }
}

TEST(remarks_say_where_the_copy_stands)
{
    static const struct {
        int labels[2], parts[2];
        uint64_t hashes[2];
        uint32_t first, second;
    } cases[] = {
#define BIT(name) (1u << TDM_VERDICT_##name)
        {{0, 0}, {0, 0}, {5, 5}, 0, BIT(COPY)},
        {{0, 1}, {0, 0}, {5, 5}, BIT(CONFLICT), BIT(CONFLICT)},
        {{0, 0}, {1, 2}, {5, 5}, BIT(LEAK), BIT(LEAK)},
        {{0, 1}, {1, 2}, {5, 5}, BIT(LEAK) | BIT(CONFLICT), BIT(LEAK) | BIT(CONFLICT)},
        {{0, 0}, {0, 0}, {5, 6}, 0, BIT(NEAR_COPY)},
        {{0, 1}, {0, 0}, {5, 6}, BIT(NEAR_CONFLICT), BIT(NEAR_CONFLICT)},
        {{0, 0}, {1, 3}, {5, 6}, BIT(NEAR_LEAK), BIT(NEAR_LEAK)},
        {{0, 0}, {0, 0}, {5, 0}, 0, 0}, /* the second could not be read */
#undef BIT
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct tdm_audit_file files[2] = {0};
        struct tdm_audit copies = {.files = files, .images = 2};
        const uint64_t fingerprints[2] = {0xf0f0f0f0, 0xf0f0f0f1};
        tdm_error err = {0};
        for (int i = 0; i < 2; i++)
            files[i] = (struct tdm_audit_file){
                .label = cases[c].labels[i], .part = cases[c].parts[i], .hash = cases[c].hashes[i]};
        assert_int_equal(tdmi_copies_find(&copies, fingerprints, &err), TDM_OK);
        assert_int_equal(files[0].remarks, cases[c].first);
        assert_int_equal(files[1].remarks, cases[c].second);
        tdmi_free(copies.pairs);
    }
}

TEST(a_set_of_one_picture_ends)
{
    static struct tdm_audit_file files[20000];
    static uint64_t fingerprints[20000];
    struct tdm_audit copies = {.files = files, .images = 20000};
    tdm_error err = {0};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        files[i].hash = i + 1;
        fingerprints[i] = 77;
    }
    assert_int_equal(tdmi_copies_find(&copies, fingerprints, &err), TDM_OK);
    assert_true(copies.is_near_cut);
    assert_true(copies.n_pairs <= 1000000);
    tdmi_free(copies.pairs);
}

TEST(every_failing_allocation_is_an_ordinary_error)
{
    static uint64_t fingerprints[N];
    static struct tdm_audit_file files[N];
    for (int64_t n = 1;; n++) {
        struct tdm_audit copies = {.files = files, .images = N};
        tdm_error err = {0};
        make(fingerprints, files, 9);
        tdmi_memory_fail_from(n);
        tdm_status status = tdmi_copies_find(&copies, fingerprints, &err);
        tdmi_memory_fail_from(0);
        tdmi_free(copies.pairs);
        if (status == TDM_OK)
            break;
        assert_int_equal(status, TDM_E_MEMORY);
        assert_true(n < 100);
    }
}

TEST_MAIN(NULL, NULL)
