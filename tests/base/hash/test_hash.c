/* XXH64 and SHA-256 against published digests, whole and in pieces of every size. */
#include "base/hash/hash.h"
#include "unit.h"

enum { buffer_bytes = 2367 };

/* The buffer that the reference implementation of xxHash checks itself with. */
static void fill(uint8_t *buffer)
{
    uint64_t generator = 2654435761u;
    for (int i = 0; i < buffer_bytes; i++) {
        buffer[i] = (uint8_t)(generator >> 56);
        generator *= 11400714785074694797u;
    }
}

static const struct {
    size_t length;
    uint64_t with_zero, with_prime; /* XXH64, seeds 0 and 2654435761 */
    const char *sha256;
} digests[] = {
    {0, 0xef46db3751d8e999, 0xac75fda2929b17ef,
     "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {1, 0xe934a84adb052768, 0x5014607643a9b4c3,
     "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"},
    {4, 0x9136a0dca57457ee, 0xcaab286bd8e9fdb5,
     "d7f7f739acc413b79c7a67fa5bead69a3d9287adae6a94f92c7811ade3c932ca"},
    {14, 0x8282dcc4994e35c8, 0xc3bd6bf63deb6df0,
     "e057db837b3c8b8596e7f7a12a3c85efc817bc98fb23db3ae13b7e29471bbfc0"},
    {31, 0x299b39a290e6d783, 0xda673d5feb5c1d79,
     "59b2c9526753b6dfc19d240b9f7795deaa1ef9aa195605b21b04d5f3b8cb1ddc"},
    {32, 0x18b216492bb44b70, 0xb3f33bdf93ade409,
     "8cb3df2c0272183b1653aaea85a66b04f15e08dcffa709722b7d245e6434cb09"},
    {33, 0x55c8dc3e578f5b59, 0xe92c292f64bc3071,
     "4a0a8779e1338061ce70490366104393f0913400eb964feeddeee18c1198224c"},
    {63, 0xa9efbe0fa0f3f4e7, 0x6c911fadb05b6fc2,
     "1d26aea8a98b18978a7f73ba1da20b383d4c7fe481acac9e08307f57dfc40788"},
    {64, 0xef558f8acac2b5cd, 0xb5eeba99264cc44f,
     "151818c81c5d18649d637e2c3ad20e393d590a9fe65c6c72eb89f62b1738f940"},
    {222, 0xb641ae8cb691c174, 0x20cb8ab7ae10c14a,
     "fa084c1eadcbe45e31e29d1e23032ea0bc8b4bfe0ae35381cae7c8b227c724b2"},
    {2367, 0xa82418ddec0ea581, 0xa36a93c18052673a,
     "85a5351c0a28ced5fc3b3e060e1f4825558273baa6d2857bfe1f13c042fe71d2"},
};
enum { n_digests = sizeof digests / sizeof digests[0] };

static void sha256_of(const void *bytes, size_t length, size_t piece, char hex[65])
{
    tdmi_sha256 state;
    uint8_t digest[32];
    tdmi_sha256_init(&state);
    for (size_t at = 0; at < length; at += piece)
        tdmi_sha256_add(&state, (const uint8_t *)bytes + at,
                        piece < length - at ? piece : length - at);
    tdmi_sha256_result(&state, digest);
    tdmi_sha256_hex(digest, hex);
}

TEST(xxh64_gives_the_published_digests)
{
    uint8_t buffer[buffer_bytes];
    fill(buffer);
    for (int i = 0; i < n_digests; i++) {
        assert_true(tdmi_xxh64_of(buffer, digests[i].length, 0) == digests[i].with_zero);
        assert_true(tdmi_xxh64_of(buffer, digests[i].length, 2654435761u) == digests[i].with_prime);
    }
}

TEST(xxh64_does_not_depend_on_the_pieces)
{
    uint8_t buffer[buffer_bytes];
    fill(buffer);
    for (size_t piece = 1; piece < 100; piece++) {
        tdmi_xxh64 sum;
        tdmi_xxh64_init(&sum, 0);
        for (size_t at = 0; at < buffer_bytes; at += piece)
            tdmi_xxh64_add(&sum, buffer + at,
                           piece < buffer_bytes - at ? piece : buffer_bytes - at);
        assert_true(tdmi_xxh64_result(&sum) == digests[n_digests - 1].with_zero);
        assert_true(tdmi_xxh64_result(&sum) == digests[n_digests - 1].with_zero);
    }
}

TEST(sha256_gives_the_digests_of_the_standard)
{
    static const struct {
        const char *text, *hex;
    } cases[] = {
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    char hex[65];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sha256_of(cases[i].text, strlen(cases[i].text), 1000, hex);
        assert_string_equal(hex, cases[i].hex);
    }
    tdmi_sha256 million;
    uint8_t digest[32];
    char as[1000];
    memset(as, 'a', sizeof as);
    tdmi_sha256_init(&million);
    for (int i = 0; i < 1000; i++)
        tdmi_sha256_add(&million, as, sizeof as);
    tdmi_sha256_result(&million, digest);
    tdmi_sha256_hex(digest, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(sha256_does_not_depend_on_the_pieces)
{
    uint8_t buffer[buffer_bytes];
    char hex[65];
    fill(buffer);
    for (int i = 0; i < n_digests; i++) {
        for (size_t piece = 1; piece < 150; piece += 7) {
            sha256_of(buffer, digests[i].length, piece, hex);
            assert_string_equal(hex, digests[i].sha256);
        }
    }
}

TEST(a_set_of_hashes_knows_its_members)
{
    uint64_t hashes[] = {UINT64_MAX, 3, 0, 1ull << 63, 3, 77};
    enum { n = sizeof hashes / sizeof hashes[0] };
    tdmi_hashes_sort(hashes, n);
    for (int i = 1; i < n; i++)
        assert_true(hashes[i - 1] <= hashes[i]);
    assert_true(tdmi_hashes_have(hashes, n, UINT64_MAX) && tdmi_hashes_have(hashes, n, 0));
    assert_true(tdmi_hashes_have(hashes, n, 1ull << 63));
    assert_false(tdmi_hashes_have(hashes, n, 4));
    assert_false(tdmi_hashes_have(NULL, 0, 4));
}

TEST_MAIN(NULL, NULL)
