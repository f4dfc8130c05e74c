/* CRC-32: published values, and equal results for every length, alignment and way of cutting. */

#include "base/hash/crc32.h"
#include "unit.h"

/* The definition: a bit at a time. */
static uint32_t by_bits(const uint8_t *bytes, size_t n)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int b = 0; b < 8; b++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

TEST(the_check_value_of_the_catalogue_comes_out)
{
    assert_int_equal(tdmi_crc32(0, "123456789", 9), 0xcbf43926);
    assert_int_equal(tdmi_crc32(0, "", 0), 0);
}

TEST(every_length_and_alignment_agrees_with_the_definition)
{
    uint8_t bytes[1700]; /* the widest way takes 512 and more, in steps of 256 */
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * i * 31 + i / 7);
    for (size_t start = 0; start < 17; start++)
        for (size_t n = 0; start + n <= sizeof bytes; n += n < 300 ? 1 : 31)
            assert_int_equal(tdmi_crc32(0, bytes + start, n), by_bits(bytes + start, n));
}

TEST(parts_in_turn_give_the_whole)
{
    uint8_t bytes[1000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7 + 3);
    uint32_t whole = by_bits(bytes, sizeof bytes);
    for (size_t cut = 0; cut <= sizeof bytes; cut += 37)
        assert_int_equal(tdmi_crc32(tdmi_crc32(0, bytes, cut), bytes + cut, sizeof bytes - cut),
                         whole);
}

TEST_MAIN(NULL, NULL)
