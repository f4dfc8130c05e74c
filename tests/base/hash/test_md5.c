/* MD5 against the digests that RFC 1321 lists, in one piece and in many. */
#include "base/hash/md5.h"
#include "unit.h"

static const struct {
    const char *text, *hex;
} known[] = {
    {"", "d41d8cd98f00b204e9800998ecf8427e"},
    {"a", "0cc175b9c0f1b6a831c399e269772661"},
    {"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
    {"abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"},
    {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
     "57edf4a22be3c955ac49da2e2107b67a"},
};

TEST(known_texts_have_their_published_digests)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        char hex[33];
        tdmi_md5 md5;
        tdmi_md5_init(&md5);
        tdmi_md5_add(&md5, known[i].text, strlen(known[i].text));
        tdmi_md5_result(&md5, hex);
        assert_string_equal(hex, known[i].hex);
    }
}

TEST(pieces_of_any_length_give_the_same_digest)
{
    uint8_t bytes[300];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(7 * i + 1);
    for (size_t n = 0; n <= sizeof bytes; n++) {
        char whole[33], pieces[33];
        tdmi_md5 md5;
        tdmi_md5_init(&md5);
        tdmi_md5_add(&md5, bytes, n);
        tdmi_md5_result(&md5, whole);
        tdmi_md5_init(&md5);
        for (size_t at = 0, step = 1; at < n; at += step, step = step % 70 + 1)
            tdmi_md5_add(&md5, bytes + at, step < n - at ? step : n - at);
        tdmi_md5_result(&md5, pieces);
        assert_string_equal(whole, pieces);
    }
}

TEST_MAIN(NULL, NULL)
