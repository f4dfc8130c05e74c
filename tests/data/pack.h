/* Writers of archives, small and plain, so that tests and fuzz corpora need no packed files. What
 * is deflated stands in stored blocks, which every reader of deflate takes. */
#pragma once

#include "base/hash/crc32.h"
#include "base/text/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline void pack_number(tdmi_text *text, uint64_t value, int n_bytes)
{
    uint8_t bytes[8];
    for (int i = 0; i < n_bytes; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
    tdmi_text_add(text, bytes, (size_t)n_bytes);
}

static inline void pack_deflate(tdmi_text *text, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    do {
        size_t step = length > 65535 ? 65535 : length;
        pack_number(text, step == length, 1);
        pack_number(text, step, 2);
        pack_number(text, ~step, 2);
        tdmi_text_add(text, at, step);
        at += step;
        length -= step;
    } while (length > 0);
}

static inline void pack_gzip(tdmi_text *text, const void *bytes, size_t length)
{
    tdmi_text_add(text, "\x1f\x8b\x08\0\0\0\0\0\0\xff", 10);
    pack_deflate(text, bytes, length);
    pack_number(text, tdmi_crc32(0, bytes, length), 4);
    pack_number(text, length, 4);
}

/* ---- zip ------------------------------------------------------------------------------------- */

struct pack_zip { /* start from a zeroed object; bytes is the archive after pack_zip_end */
    tdmi_text bytes, directory;
    int n;
    /* How the entries that follow are written. */
    int method, flags;
    bool has_descriptor, is_64;
    uint32_t mode; /* of Unix; 0: made by DOS */
};

static inline void pack_zip_release(struct pack_zip *zip)
{
    tdmi_text_release(&zip->bytes);
}

static inline void pack_zip_add(struct pack_zip *zip, const char *name, const void *bytes,
                                size_t length)
{
    tdmi_text stored = {0};
    size_t offset = zip->bytes.length_bytes;
    uint32_t crc = tdmi_crc32(0, bytes, length);
    if (zip->method == 8)
        pack_deflate(&stored, bytes, length);
    else
        tdmi_text_add(&stored, bytes, length);
    int flags = zip->flags | (zip->has_descriptor ? 8 : 0);
    pack_number(&zip->bytes, 0x04034b50, 4);
    pack_number(&zip->bytes, 20, 2);
    pack_number(&zip->bytes, (uint64_t)flags, 2);
    pack_number(&zip->bytes, (uint64_t)zip->method, 2);
    pack_number(&zip->bytes, 0, 4);
    pack_number(&zip->bytes, zip->has_descriptor ? 0 : crc, 4);
    pack_number(&zip->bytes, zip->has_descriptor ? 0 : stored.length_bytes, 4);
    pack_number(&zip->bytes, zip->has_descriptor ? 0 : length, 4);
    pack_number(&zip->bytes, strlen(name), 2);
    pack_number(&zip->bytes, zip->has_descriptor ? 100 : 0, 2); /* extras longer than usual */
    tdmi_text_add(&zip->bytes, name, strlen(name));
    for (int i = 0; zip->has_descriptor && i < 100; i++)
        pack_number(&zip->bytes, 0, 1);
    if (stored.length_bytes > 0)
        tdmi_text_add(&zip->bytes, stored.bytes, stored.length_bytes);
    if (zip->has_descriptor) {
        pack_number(&zip->bytes, 0x08074b50, 4);
        pack_number(&zip->bytes, crc, 4);
        pack_number(&zip->bytes, stored.length_bytes, 4);
        pack_number(&zip->bytes, length, 4);
    }
    tdmi_text *head = &zip->directory;
    pack_number(head, 0x02014b50, 4);
    pack_number(head, zip->mode != 0 ? 3 << 8 | 20 : 20, 2);
    pack_number(head, 20, 2);
    pack_number(head, (uint64_t)flags, 2);
    pack_number(head, (uint64_t)zip->method, 2);
    pack_number(head, 0, 4);
    pack_number(head, crc, 4);
    pack_number(head, zip->is_64 ? UINT32_MAX : stored.length_bytes, 4);
    pack_number(head, zip->is_64 ? UINT32_MAX : length, 4);
    pack_number(head, strlen(name), 2);
    pack_number(head, zip->is_64 ? 28 : 0, 2);
    pack_number(head, 0, 2);
    pack_number(head, 0, 4);
    pack_number(head, (uint64_t)zip->mode << 16, 4);
    pack_number(head, zip->is_64 ? UINT32_MAX : offset, 4);
    tdmi_text_add(head, name, strlen(name));
    if (zip->is_64) {
        pack_number(head, 1, 2);
        pack_number(head, 24, 2);
        pack_number(head, length, 8);
        pack_number(head, stored.length_bytes, 8);
        pack_number(head, offset, 8);
    }
    zip->n++;
    tdmi_text_release(&stored);
}

static inline void pack_zip_end(struct pack_zip *zip, const char *comment)
{
    size_t offset = zip->bytes.length_bytes, length = zip->directory.length_bytes;
    if (length > 0)
        tdmi_text_add(&zip->bytes, zip->directory.bytes, length);
    if (zip->is_64) {
        size_t end = zip->bytes.length_bytes;
        pack_number(&zip->bytes, 0x06064b50, 4);
        pack_number(&zip->bytes, 44, 8);
        pack_number(&zip->bytes, 45 | 45 << 16, 4);
        pack_number(&zip->bytes, 0, 8);
        pack_number(&zip->bytes, (uint64_t)zip->n, 8);
        pack_number(&zip->bytes, (uint64_t)zip->n, 8);
        pack_number(&zip->bytes, length, 8);
        pack_number(&zip->bytes, offset, 8);
        pack_number(&zip->bytes, 0x07064b50, 4);
        pack_number(&zip->bytes, 0, 4);
        pack_number(&zip->bytes, end, 8);
        pack_number(&zip->bytes, 1, 4);
    }
    pack_number(&zip->bytes, 0x06054b50, 4);
    pack_number(&zip->bytes, 0, 4);
    pack_number(&zip->bytes, zip->is_64 ? 0xffff : (uint64_t)zip->n, 2);
    pack_number(&zip->bytes, zip->is_64 ? 0xffff : (uint64_t)zip->n, 2);
    pack_number(&zip->bytes, zip->is_64 ? UINT32_MAX : length, 4);
    pack_number(&zip->bytes, zip->is_64 ? UINT32_MAX : offset, 4);
    pack_number(&zip->bytes, strlen(comment), 2);
    tdmi_text_add(&zip->bytes, comment, strlen(comment));
    tdmi_text_release(&zip->directory);
}

/* ---- tar ------------------------------------------------------------------------------------- */

static inline void pack_tar_sum(uint8_t head[512])
{
    unsigned sum = 0;
    memset(head + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += head[i];
    for (int i = 0; i < 6; i++)
        head[153 - i] = (uint8_t)('0' + (sum >> 3 * i & 7));
    head[154] = '\0';
}

static inline void pack_tar_field(uint8_t *field, size_t room, const char *text)
{
    size_t length = strlen(text);
    memcpy(field, text, length < room ? length : room);
}

/* type '0' a file, '5' a folder, '1' a hard link to target, 'L' a long name, 'x' a pax head, …; a
 * prefix makes it ustar, and is_256 writes the size as GNU does for large files. */
static inline void pack_tar_head(tdmi_text *tar, const char *prefix, const char *name, char type,
                                 const char *target, size_t length, bool is_256)
{
    uint8_t head[512] = {0};
    pack_tar_field(head, 100, name);
    memcpy(head + 100, "0000644", 8);
    if (is_256) {
        head[124] = 0x80;
        for (int i = 0; i < 8; i++)
            head[135 - i] = (uint8_t)((uint64_t)length >> 8 * i);
    } else {
        for (int i = 0; i < 11; i++)
            head[134 - i] = (uint8_t)('0' + ((uint64_t)length >> 3 * i & 7));
    }
    head[156] = (uint8_t)type;
    pack_tar_field(head + 157, 100, target);
    memcpy(head + 257, prefix[0] != '\0' ? "ustar\0" : "ustar ", 6);
    memcpy(head + 263, prefix[0] != '\0' ? "00" : " \0", 2);
    pack_tar_field(head + 345, 155, prefix);
    pack_tar_sum(head);
    tdmi_text_add(tar, head, sizeof head);
}

static inline void pack_tar_bytes(tdmi_text *tar, const void *bytes, size_t length)
{
    static const uint8_t zeros[512] = {0};
    tdmi_text_add(tar, bytes, length);
    tdmi_text_add(tar, zeros, (512 - length % 512) % 512);
}

static inline void pack_tar_add(tdmi_text *tar, const char *name, const void *bytes, size_t length)
{
    pack_tar_head(tar, "", name, '0', "", length, false);
    pack_tar_bytes(tar, bytes, length);
}

static inline void pack_tar_end(tdmi_text *tar)
{
    static const uint8_t zeros[1024] = {0};
    tdmi_text_add(tar, zeros, sizeof zeros);
}
