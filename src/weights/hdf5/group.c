/*
 * Members of HDF5 groups. Old groups keep their names in a heap and their addresses in a tree of
 * nodes; new ones keep a message for each link, as long as these are few.
 */
#include "weights/hdf5/internal.h"
#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

/* ---- order ------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The digits from *at on without leading zeros; *at moves behind them. */
static struct tdmi_hdf5_text digits_at(struct tdmi_hdf5_text text, size_t *at)
{
    while (*at < text.length_bytes && text.bytes[*at] == '0')
        ++*at;
    struct tdmi_hdf5_text digits = {.bytes = text.bytes + *at};
    for (; *at < text.length_bytes && is_digit(text.bytes[*at]); ++*at)
        digits.length_bytes++;
    return digits;
}

static int compare_bytes(struct tdmi_hdf5_text a, struct tdmi_hdf5_text b)
{
    size_t n = a.length_bytes < b.length_bytes ? a.length_bytes : b.length_bytes;
    int order = n == 0 ? 0 : memcmp(a.bytes, b.bytes, n);
    if (order != 0)
        return order;
    return (a.length_bytes > b.length_bytes) - (a.length_bytes < b.length_bytes);
}

/* Runs of digits by their value, all else byte by byte; equal only when all bytes are. */
static int compare(struct tdmi_hdf5_text a, struct tdmi_hdf5_text b)
{
    size_t i = 0, j = 0;
    while (i < a.length_bytes && j < b.length_bytes) {
        if (is_digit(a.bytes[i]) && is_digit(b.bytes[j])) {
            struct tdmi_hdf5_text left = digits_at(a, &i), right = digits_at(b, &j);
            if (left.length_bytes != right.length_bytes)
                return left.length_bytes < right.length_bytes ? -1 : 1;
            int order = compare_bytes(left, right);
            if (order != 0)
                return order;
        } else if (a.bytes[i] != b.bytes[j]) {
            return (unsigned char)a.bytes[i] < (unsigned char)b.bytes[j] ? -1 : 1;
        } else {
            i++;
            j++;
        }
    }
    if (i < a.length_bytes || j < b.length_bytes)
        return i < a.length_bytes ? 1 : -1;
    return compare_bytes(a, b);
}

static int by_name(const void *a, const void *b)
{
    const struct tdmi_hdf5_link *left = a, *right = b;
    return compare(left->name, right->name);
}

static tdm_status add_link(tdmi_hdf5 *file, tdmi_hdf5_object *group,
                           const struct tdmi_hdf5_link *link, tdm_error *err)
{
    TDMI_TRY(tdmi_hdf5_pay(file, link->name.length_bytes, err));
    TDMI_ARENA_ROOM(&file->arena, group->links, group->link_capacity, group->n_links, err);
    group->links[group->n_links++] = *link;
    return TDM_OK;
}

/* ---- old groups -------------------------------------------------------------------------- */

struct names {
    const char *bytes;
    uint64_t n_bytes;
};

/* "HEAP", version, 3 bytes of nothing, size, first free place, address of the names. */
static tdm_status read_names(tdmi_hdf5 *file, uint64_t address, struct names *names, tdm_error *err)
{
    const uint8_t *head, *bytes;
    TDMI_TRY(tdmi_hdf5_take_signed(file, address, 32, "HEAP", 0, &head, err));
    names->n_bytes = tdmi_read_little(head + 8, 8);
    TDMI_TRY(tdmi_hdf5_take(file, tdmi_read_little(head + 24, 8), names->n_bytes,
                            "the names of a group", &bytes, err));
    names->bytes = (const char *)bytes;
    return TDM_OK;
}

enum { SYMBOL_BYTES = 40, SYMBOL_IS_SOFT = 2 };

/* "SNOD", version, nothing, count; then symbols: name, address, kind, 4 + 16 bytes. */
static tdm_status read_symbols(tdmi_hdf5 *file, tdmi_hdf5_object *group, const struct names *names,
                               uint64_t address, tdm_error *err)
{
    const uint8_t *symbol;
    TDMI_TRY(tdmi_hdf5_take_signed(file, address, 8, "SNOD", 1, &symbol, err));
    size_t n = (size_t)tdmi_read_little(symbol + 6, 2);
    TDMI_TRY(tdmi_hdf5_take(file, address + 8, n * SYMBOL_BYTES, "the members of a group", &symbol,
                            err));
    for (size_t i = 0; i < n; i++, symbol += SYMBOL_BYTES) {
        uint64_t at = tdmi_read_little(symbol, 8);
        if (at >= names->n_bytes ||
            memchr(names->bytes + at, 0, (size_t)(names->n_bytes - at)) == NULL)
            return TDMI_HDF5_BAD(
                err, file,
                "the name of a member of the group at byte %zu lies outside of the group's names",
                (size_t)group->address);
        const char *name = names->bytes + at;
        struct tdmi_hdf5_link link = {
            .name = {.bytes = name, .length_bytes = strlen(name)},
            .address = tdmi_read_little(symbol + 8, 8),
            .is_hard = tdmi_read_little(symbol + 16, 4) != SYMBOL_IS_SOFT,
        };
        TDMI_TRY(add_link(file, group, &link, err));
    }
    return TDM_OK;
}

/* "TREE", kind 0, level, count, two neighbours; then key, child, key, … key. Levels go down by one,
 * so that a tree ends. */
static tdm_status read_tree(tdmi_hdf5 *file, tdmi_hdf5_object *group, const struct names *names,
                            uint64_t address, int level, tdm_error *err)
{
    const uint8_t *node;
    TDMI_TRY(tdmi_hdf5_take_signed(file, address, 24, "TREE", 0, &node, err));
    if (level >= 0 && node[5] != level)
        return TDMI_HDF5_BAD(err, file, "the node at byte %zu is at level %d of its tree, not %d",
                             (size_t)address, node[5], level);
    level = node[5];
    size_t n = (size_t)tdmi_read_little(node + 6, 2);
    TDMI_TRY(tdmi_hdf5_take(file, address + 24, 16 * n + 8, "a node of a tree", &node, err));
    for (size_t i = 0; i < n; i++) {
        uint64_t child = tdmi_read_little(node + 16 * i + 8, 8);
        TDMI_TRY(level == 0 ? read_symbols(file, group, names, child, err)
                            : read_tree(file, group, names, child, level - 1, err));
    }
    return TDM_OK;
}

static tdm_status read_old(tdmi_hdf5 *file, tdmi_hdf5_object *group,
                           const struct tdmi_hdf5_message *table, tdm_error *err)
{
    struct names names = {0};
    if (table->n_bytes < 16 || table->is_shared)
        return TDMI_HDF5_BAD(err, file, "the group at byte %zu has a damaged symbol table",
                             (size_t)group->address);
    TDMI_TRY(read_names(file, tdmi_read_little(table->body + 8, 8), &names, err));
    return read_tree(file, group, &names, tdmi_read_little(table->body, 8), -1, err);
}

/* ---- new groups -------------------------------------------------------------------------- */

/* Version, flags, [kind], [order], [character set], length of the name, name, address. */
static tdm_status read_link(tdmi_hdf5 *file, tdmi_hdf5_object *group,
                            const struct tdmi_hdf5_message *message, tdm_error *err)
{
    struct tdmi_hdf5_cursor cursor = {.at = message->body, .left = message->n_bytes};
    unsigned version = (unsigned)tdmi_hdf5_next(&cursor, 1);
    unsigned flags = (unsigned)tdmi_hdf5_next(&cursor, 1);
    uint64_t kind = flags & 8u ? tdmi_hdf5_next(&cursor, 1) : 0;
    tdmi_hdf5_skip(&cursor, (flags & 4u ? 8 : 0) + (flags & 16u ? 1 : 0));
    uint64_t length = tdmi_hdf5_next(&cursor, 1 << (flags & 3u));
    struct tdmi_hdf5_link link = {.is_hard = kind == 0};
    link.name.bytes = (const char *)tdmi_hdf5_skip(&cursor, length);
    link.name.length_bytes = (size_t)length;
    if (link.is_hard)
        link.address = tdmi_hdf5_next(&cursor, 8);
    if (version != 1 || cursor.is_short || message->is_shared)
        return TDMI_HDF5_BAD(err, file, "the group at byte %zu has a damaged link",
                             (size_t)group->address);
    return add_link(file, group, &link, err);
}

static tdm_status read_new(tdmi_hdf5 *file, tdmi_hdf5_object *group, tdm_error *err)
{
    const struct tdmi_hdf5_message *info = tdmi_hdf5_message(group, TDMI_HDF5_LINK_INFO);
    if (info != NULL) {
        struct tdmi_hdf5_cursor cursor = {.at = info->body, .left = info->n_bytes};
        unsigned flags = (unsigned)(tdmi_hdf5_next(&cursor, 2) >> 8);
        tdmi_hdf5_skip(&cursor, flags & 1u ? 8 : 0);
        uint64_t heap = tdmi_hdf5_next(&cursor, 8);
        if (cursor.is_short || info->is_shared)
            return TDMI_HDF5_BAD(err, file, "the group at byte %zu has damaged facts on its links",
                                 (size_t)group->address);
        if (heap != TDMI_HDF5_NOWHERE)
            return TDMI_HDF5_BAD(
                err, file,
                "the group at byte %zu keeps its links in a fractal heap, which is not read: write "
                "the file with h5py's libver='earliest' and without track_order",
                (size_t)group->address);
    }
    for (size_t i = 0; i < group->n_messages; i++)
        if (group->messages[i].type == TDMI_HDF5_LINK)
            TDMI_TRY(read_link(file, group, &group->messages[i], err));
    return TDM_OK;
}

/* ---- queries ----------------------------------------------------------------------------- */

tdm_status tdmi_hdf5_links(tdmi_hdf5 *file, tdmi_hdf5_object *group,
                           const struct tdmi_hdf5_link **links, size_t *n_links, tdm_error *err)
{
    if (!group->has_links) {
        const struct tdmi_hdf5_message *table = tdmi_hdf5_message(group, TDMI_HDF5_SYMBOL_TABLE);
        TDMI_TRY(table == NULL ? read_new(file, group, err) : read_old(file, group, table, err));
        if (group->n_links > 1)
            qsort(group->links, group->n_links, sizeof *group->links, by_name);
        for (size_t i = 1; i < group->n_links; i++)
            if (by_name(&group->links[i - 1], &group->links[i]) == 0)
                return TDMI_HDF5_BAD(err, file, "'%.*s' is twice in one group",
                                     tdmi_precision(group->links[i].name.length_bytes),
                                     group->links[i].name.bytes);
        group->has_links = true;
    }
    *links = group->links;
    *n_links = group->n_links;
    return TDM_OK;
}

tdm_status tdmi_hdf5_follow(tdmi_hdf5 *file, const struct tdmi_hdf5_link *link,
                            tdmi_hdf5_object **object, tdm_error *err)
{
    const int length = tdmi_precision(link->name.length_bytes);
    if (!link->is_hard)
        return TDMI_HDF5_BAD(err, file,
                             "'%.*s' is a soft or external link; only things of this file are read",
                             length, link->name.bytes);
    return TDM_WRAP(err, tdmi_hdf5_object_at(file, link->address, object, err), "reading '%.*s'",
                    length, link->name.bytes);
}

tdm_status tdmi_hdf5_find(tdmi_hdf5 *file, tdmi_hdf5_object *group, struct tdmi_hdf5_text path,
                          tdmi_hdf5_object **object, tdm_error *err)
{
    const char *at = path.bytes, *end = path.bytes + path.length_bytes;
    *object = group;
    while (at < end && *object != NULL) {
        const char *slash = memchr(at, '/', (size_t)(end - at));
        const char *stop = slash == NULL ? end : slash;
        const struct tdmi_hdf5_link *links;
        size_t n_links = 0;
        struct tdmi_hdf5_link sought = {.name = {at, (size_t)(stop - at)}};
        at = stop + 1;
        if (sought.name.length_bytes == 0)
            continue;
        TDMI_TRY(tdmi_hdf5_links(file, *object, &links, &n_links, err));
        const struct tdmi_hdf5_link *link =
            n_links == 0 ? NULL : bsearch(&sought, links, n_links, sizeof *links, by_name);
        *object = NULL;
        if (link != NULL)
            TDMI_TRY(tdmi_hdf5_follow(file, link, object, err));
    }
    return TDM_OK;
}
