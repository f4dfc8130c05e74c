/*
 * EXIF orientation, read by ourselves: which way up a camera was held is one 16-bit number in the
 * first directory of a TIFF block, and a library for all of EXIF would be a large attack surface
 * for untrusted bytes. Every read is checked against the block's end; whatever is odd means
 * "upright".
 */
#include "base/bytes.h"
#include "image/formats/codec.h"
#include <string.h>

/* Bytes of the header, of the number of entries, of an entry, and where its value is. */
struct block {
    size_t header, count, entry, value;
};

/* A TIFF block: "II*\0" or "MM\0*", the offset of directory 0, there a count and entries: tag,
 * type, number of values, value. BigTIFF, "II+\0" or "MM\0+", has the same with longer numbers. */
int tdmi_exif_orientation_in(const uint8_t *tiff, size_t length_bytes)
{
    enum { ORIENTATION_TAG = 0x112, TYPE_SHORT = 3 };
    static const struct block classic = {8, 2, 12, 8}, big = {16, 8, 20, 12};
    if (length_bytes < classic.header)
        return 1;
    const bool is_motorola = tiff[0] == 'M';
    const bool is_big = memcmp(tiff, is_motorola ? "MM\0+" : "II+\0", 4) == 0;
    const struct block *block = is_big ? &big : &classic;
    uint64_t (*read)(const uint8_t *at, size_t n_bytes) =
        is_motorola ? tdmi_read_big : tdmi_read_little;
    if (length_bytes < block->header ||
        (!is_big && memcmp(tiff, is_motorola ? "MM\0*" : "II*\0", 4) != 0))
        return 1;
    const size_t word = block->header / 2; /* bytes of an offset */
    const uint64_t first = read(tiff + word, word);
    if (first > length_bytes - block->count)
        return 1;
    size_t at = (size_t)first + block->count;
    const uint64_t n_entries = read(tiff + first, block->count);
    for (uint64_t i = 0; i < n_entries && length_bytes - at >= block->entry; i++) {
        const uint8_t *entry = tiff + at;
        if (read(entry, 2) == ORIENTATION_TAG) {
            const uint64_t value = read(entry + block->value, 2);
            const bool is_sound = read(entry + 2, 2) == TYPE_SHORT && read(entry + 4, word) == 1 &&
                                  value >= 1 && value <= 8;
            return is_sound ? (int)value : 1;
        }
        at += block->entry;
    }
    return 1;
}

/* Segments are FF, a marker, and a length that counts its own two bytes. The entropy-coded data
 * begins at SOS; what follows is not looked at. */
const uint8_t *tdmi_exif_in_jpeg(const uint8_t *bytes, size_t length_bytes, size_t *exif_bytes)
{
    enum { SOS = 0xda, EOI = 0xd9, APP1 = 0xe1 };
    size_t at = 2;
    while (at < length_bytes) {
        if (bytes[at] != 0xff) { /* stray bytes between segments, skipped as decoders do */
            at++;
            continue;
        }
        while (at < length_bytes && bytes[at] == 0xff)
            at++;
        if (length_bytes - at < 3)
            return NULL;
        uint8_t marker = bytes[at++];
        if (marker == SOS || marker == EOI)
            return NULL;
        if (marker <= 0x01 || (marker >= 0xd0 && marker <= 0xd8)) /* have no length */
            continue;
        size_t segment_bytes = tdmi_read_big(bytes + at, 2);
        if (segment_bytes < 2 || segment_bytes > length_bytes - at)
            return NULL;
        if (marker == APP1 && segment_bytes >= 8 && memcmp(bytes + at + 2, "Exif\0\0", 6) == 0) {
            *exif_bytes = segment_bytes - 8;
            return bytes + at + 8;
        }
        at += segment_bytes;
    }
    return NULL;
}

/* Chunks are a length, a type, that many bytes and a checksum; eXIf holds a bare TIFF block and may
 * stand before or after the pixels. */
const uint8_t *tdmi_exif_in_png(const uint8_t *bytes, size_t length_bytes, size_t *exif_bytes)
{
    size_t at = 8;
    while (at < length_bytes && length_bytes - at >= 12) {
        size_t chunk_bytes = tdmi_read_big(bytes + at, 4);
        if (chunk_bytes > length_bytes - at - 12)
            return NULL;
        if (memcmp(bytes + at + 4, "eXIf", 4) == 0) {
            *exif_bytes = chunk_bytes;
            return bytes + at + 8;
        }
        at += 12 + chunk_bytes;
    }
    return NULL;
}
