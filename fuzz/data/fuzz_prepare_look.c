/*
 * Prepare's stored first look at the images. The checksum is put right here, so that the
 * parser behind it is reached; what is taken is in order, and writes back to the same bytes or to
 * bytes that read the same.
 */
#include "fuzz.h"
#include "base/hash/hash.h"
#include "base/memory.h"
#include "prepare/look.h"

static void check(const tdmi_prepare_look *look, int64_t n_items)
{
    if (look->contents.n_items != n_items)
        abort();
    for (int64_t i = 0; i < look->n_bad; i++)
        if (look->bad[i].item < 0 || look->bad[i].item >= n_items || look->bad[i].reason == NULL ||
            (i > 0 && look->bad[i].item <= look->bad[i - 1].item))
            abort();
}

/* The first byte is the number of images it is meant for. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    enum { HASH_BYTES = 8 };
    if (length < 1 + HASH_BYTES)
        return 0;
    const int64_t n_items = bytes[0];
    const size_t n = length - 1;
    tdmi_prepare_look look = {0}, again = {0};
    tdmi_text text = {0};
    tdm_error err = {0};
    uint8_t *copy = tdmi_alloc(n, 1);
    if (copy == NULL)
        return 0;
    memcpy(copy, bytes + 1, n);
    const uint64_t hash = tdmi_xxh64_of(copy, n - HASH_BYTES, 0);
    for (int i = 0; i < HASH_BYTES; i++)
        copy[n - HASH_BYTES + (size_t)i] = (uint8_t)(hash >> 8 * i);
    if (tdmi_prepare_look_parse(copy, n, "input", n_items, &look, &err) == TDM_OK) {
        check(&look, n_items);
        if (tdmi_prepare_look_write(&look, &text, &err) != TDM_OK ||
            tdmi_prepare_look_parse(text.bytes, text.length_bytes, "output", n_items, &again,
                                    &err) != TDM_OK ||
            again.n_bad != look.n_bad || again.listing != look.listing)
            abort();
    } else if (err.n_frames == 0 || err.code != TDM_E_INPUT) {
        abort();
    }
    tdmi_prepare_look_release(&look);
    tdmi_prepare_look_release(&again);
    tdmi_text_release(&text);
    tdmi_free(copy);
    return 0;
}
