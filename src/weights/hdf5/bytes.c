/*
 * Bytes of an HDF5 file: bounded reads that are paid for, numbers, checksums, and a map of what was
 * read by its address.
 */
#include "weights/hdf5/internal.h"
#include "base/bytes.h"

#include <string.h>

tdm_status tdmi_hdf5_pay(tdmi_hdf5 *file, uint64_t n_bytes, tdm_error *err)
{
    if (n_bytes > file->budget_bytes)
        return TDMI_HDF5_BAD(
            err, file, "its parts lead to each other again and again, or claim each other's bytes");
    file->budget_bytes -= n_bytes;
    return TDM_OK;
}

tdm_status tdmi_hdf5_take(tdmi_hdf5 *file, uint64_t address, uint64_t n_bytes, const char *what,
                          const uint8_t **bytes, tdm_error *err)
{
    if (address > file->n_bytes || n_bytes > file->n_bytes - address)
        return TDMI_HDF5_BAD(
            err, file,
            "%s at byte %zu needs %zu bytes and reaches past the end of the file (%zu bytes)", what,
            (size_t)address, (size_t)n_bytes, file->n_bytes);
    *bytes = file->bytes + address;
    return tdmi_hdf5_pay(file, n_bytes, err);
}

tdm_status tdmi_hdf5_take_signed(tdmi_hdf5 *file, uint64_t address, uint64_t n_bytes,
                                 const char *signature, int version, const uint8_t **bytes,
                                 tdm_error *err)
{
    TDMI_TRY(tdmi_hdf5_take(file, address, n_bytes, signature, bytes, err));
    if (memcmp(*bytes, signature, 4) != 0)
        return TDMI_HDF5_BAD(err, file, "byte %zu does not begin with '%s'", (size_t)address,
                             signature);
    if ((*bytes)[4] != version)
        return TDMI_HDF5_BAD(err, file, "'%s' at byte %zu is of version %d; %d is read", signature,
                             (size_t)address, (*bytes)[4], version);
    return TDM_OK;
}

const uint8_t *tdmi_hdf5_skip(struct tdmi_hdf5_cursor *cursor, uint64_t n_bytes)
{
    if (n_bytes > cursor->left) {
        cursor->is_short = true;
        cursor->left = 0;
        return NULL;
    }
    const uint8_t *at = cursor->at;
    cursor->at += n_bytes;
    cursor->left -= (size_t)n_bytes;
    return at;
}

uint64_t tdmi_hdf5_next(struct tdmi_hdf5_cursor *cursor, int n_bytes)
{
    const uint8_t *at = tdmi_hdf5_skip(cursor, (uint64_t)n_bytes);
    return at == NULL ? 0 : tdmi_read_little(at, (size_t)n_bytes);
}

/* ---- checksums --------------------------------------------------------------------------- */

static uint32_t rotated(uint32_t word, unsigned bits)
{
    return word << bits | word >> (32 - bits);
}

/* Three words are stirred with each other, six times between blocks of 12 bytes and seven times at
 * the end (Jenkins 2006, "lookup3"). */
static void stir(uint32_t w[3])
{
    static const unsigned bits[6] = {4, 6, 8, 16, 19, 4};
    for (int i = 0; i < 6; i++) {
        uint32_t *a = &w[i % 3], *b = &w[(i + 1) % 3], *c = &w[(i + 2) % 3];
        *a = (*a - *c) ^ rotated(*c, bits[i]);
        *c += *b;
    }
}

static void stir_last(uint32_t w[3])
{
    static const unsigned bits[7] = {14, 11, 25, 16, 4, 14, 24};
    for (int i = 0; i < 7; i++) {
        uint32_t *to = &w[(i + 2) % 3], *from = &w[(i + 1) % 3];
        *to = (*to ^ *from) - rotated(*from, bits[i]);
    }
}

static uint32_t checksum(const uint8_t *bytes, size_t n_bytes)
{
    uint32_t start = 0xdeadbeefU + (uint32_t)n_bytes, w[3] = {start, start, start};
    if (n_bytes == 0)
        return start;
    for (; n_bytes > 12; n_bytes -= 12, bytes += 12) {
        for (int i = 0; i < 3; i++)
            w[i] += (uint32_t)tdmi_read_little(bytes + (ptrdiff_t)4 * i, 4);
        stir(w);
    }
    for (size_t i = 0; i < n_bytes; i++)
        w[i / 4] += (uint32_t)bytes[i] << 8 * (i % 4);
    stir_last(w);
    return w[2];
}

tdm_status tdmi_hdf5_check(const tdmi_hdf5 *file, const uint8_t *bytes, size_t n_bytes,
                           const char *what, tdm_error *err)
{
    uint32_t stored = (uint32_t)tdmi_read_little(bytes + n_bytes - 4, 4);
    if (file->has_checks && checksum(bytes, n_bytes - 4) != stored)
        return TDMI_HDF5_BAD(err, file, "the checksum of %s at byte %zu is wrong: it is damaged",
                             what, (size_t)(bytes - file->bytes));
    return TDM_OK;
}

/* ---- by address -------------------------------------------------------------------------- */

static struct tdmi_hdf5_place *place_of(const struct tdmi_hdf5_map *map, uint64_t address)
{
    /* An odd factor: neighbouring addresses go apart, and a multiple of 8 is no worse than any. */
    size_t at = (size_t)((address * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (map->capacity - 1);
    while (map->places[at].what != NULL && map->places[at].address != address)
        at = (at + 1) & (map->capacity - 1);
    return &map->places[at];
}

void *tdmi_hdf5_map_find(const struct tdmi_hdf5_map *map, uint64_t address)
{
    return map->capacity == 0 ? NULL : place_of(map, address)->what;
}

tdm_status tdmi_hdf5_map_add(tdmi_hdf5 *file, struct tdmi_hdf5_map *map, uint64_t address,
                             void *what, tdm_error *err)
{
    if (2 * map->n >= map->capacity) {
        struct tdmi_hdf5_map larger = {.capacity = map->capacity ? 2 * map->capacity : 64,
                                       .n = map->n};
        TDMI_ARENA_NEW(&file->arena, larger.places, larger.capacity, err);
        for (size_t i = 0; i < map->capacity; i++)
            if (map->places[i].what != NULL)
                *place_of(&larger, map->places[i].address) = map->places[i];
        *map = larger;
    }
    *place_of(map, address) = (struct tdmi_hdf5_place){.address = address, .what = what};
    map->n++;
    return TDM_OK;
}
