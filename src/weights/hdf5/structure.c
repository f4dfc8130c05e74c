/*
 * The structure of an HDF5 file as bytes, members before the groups that name them, so that every
 * address is known when it is written:
 *
 *     superblock | all texts of variable length | (members, names, tree, header) of each group
 *
 * Sizes of nodes are those that the library writes: 8 members in a leaf, 32 children in a node.
 */
#include "weights/hdf5/tree.h"
#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

enum {
    LEAF_K = 4,
    NODE_K = 16,
    SYMBOL_BYTES = 40,
    NODE_BYTES = 24 + 2 * NODE_K * 8 + (2 * NODE_K + 1) * 8,
    HEAP_BYTES_MIN = 4096,
    NO_FREE_PLACE = 1
};

struct writer {
    tdmi_text *bytes;
    uint64_t texts;   /* the address of the global heap */
    unsigned n_texts; /* placed in attributes so far, in the order in which they lie there */
};

static void put(struct writer *writer, uint64_t number, int n_bytes)
{
    char bytes[8];
    tdmi_write_little(bytes, number, (size_t)n_bytes);
    tdmi_text_add(writer->bytes, bytes, (size_t)n_bytes);
}

static void put_zeros(struct writer *writer, size_t n_bytes)
{
    char *room = tdmi_text_room(writer->bytes, n_bytes);
    if (room != NULL)
        memset(room, 0, n_bytes);
}

static void put_padded(struct writer *writer, const void *bytes, size_t n_bytes)
{
    tdmi_text_add(writer->bytes, bytes, n_bytes);
    put_zeros(writer, tdmi_hdf5_padded(n_bytes) - n_bytes);
}

/* ---- texts of variable length ------------------------------------------------------------ */

/* In the order in which attributes are written: members first, sorted. */
static void put_texts(struct writer *writer, const struct tdmi_hdf5_node *node, unsigned *n)
{
    for (size_t i = 0; i < node->n_members; i++)
        put_texts(writer, node->members[i], n);
    for (const struct tdmi_hdf5_note *note = node->notes; note != NULL; note = note->next) {
        if (note->text == NULL || note->text[0] == 0)
            continue;
        put(writer, ++*n, 2);
        put_zeros(writer, 6);
        put(writer, strlen(note->text), 8);
        put_padded(writer, note->text, strlen(note->text));
    }
}

static void put_heap(struct writer *writer, const struct tdmi_hdf5_node *root)
{
    unsigned n = 0;
    size_t start = writer->bytes->length_bytes;
    writer->texts = start;
    tdmi_text_add(writer->bytes, "GCOL\1\0\0\0", 8);
    put(writer, 0, 8);
    put_texts(writer, root, &n);
    size_t n_bytes = writer->bytes->length_bytes - start;
    if (n_bytes < HEAP_BYTES_MIN) { /* what is free is object 0, its head counted */
        size_t free_bytes = HEAP_BYTES_MIN - n_bytes;
        put_zeros(writer, 8);
        if (free_bytes > 8)
            put(writer, free_bytes, 8);
        if (free_bytes > 16)
            put_zeros(writer, free_bytes - 16);
        n_bytes = HEAP_BYTES_MIN;
    }
    if (!writer->bytes->is_broken)
        tdmi_write_little(writer->bytes->bytes + start + 8, n_bytes, 8);
}

/* ---- messages ---------------------------------------------------------------------------- */

static void begin_message(struct writer *writer, enum tdmi_hdf5_message_type type, size_t n_bytes)
{
    put(writer, type, 2);
    put(writer, tdmi_hdf5_padded(n_bytes), 2);
    put_zeros(writer, 4);
}

static size_t shape_bytes(int rank)
{
    return 8 + 8 * (size_t)rank;
}

static void put_shape(struct writer *writer, int rank, const int64_t *shape)
{
    put(writer, 1, 1);
    put(writer, (uint64_t)rank, 1);
    put_zeros(writer, 6);
    for (int i = 0; i < rank; i++)
        put(writer, (uint64_t)shape[i], 8);
}

enum { FLOAT_BYTES = 20, FIXED_BYTES = 8, VARIABLE_BYTES = 20 };

/* Class 1; little-endian with an implied leading bit; place of the sign; offset, precision, place
 * and width of exponent and mantissa, bias. */
static void put_float(struct writer *writer, enum tdmi_dtype dtype)
{
    static const struct {
        uint8_t mantissa, exponent;
        uint16_t bias;
    } forms[3] = {{10, 5, 15}, {23, 8, 127}, {52, 11, 1023}};
    uint64_t n_bytes = tdmi_dtype_bytes(dtype);
    size_t form = n_bytes == 2 ? 0 : n_bytes == 4 ? 1 : 2;
    put(writer, 0x11, 1);
    put(writer, 0x20 | (8 * n_bytes - 1) << 8, 3);
    put(writer, n_bytes, 4);
    put(writer, 0, 2);
    put(writer, 8 * n_bytes, 2);
    put(writer, forms[form].mantissa, 1);
    put(writer, forms[form].exponent, 1);
    put(writer, 0, 1);
    put(writer, forms[form].mantissa, 1);
    put(writer, forms[form].bias, 4);
}

/* Version 1 of an attribute: sizes, name, type, shape, each padded, then the data. */
static void put_attribute(struct writer *writer, const struct tdmi_hdf5_note *note)
{
    size_t name_bytes = strlen(note->key) + 1;
    bool is_text = note->text != NULL;
    int64_t extent = (int64_t)note->n_items;
    size_t type_bytes = is_text ? VARIABLE_BYTES : FIXED_BYTES,
           rank_bytes = shape_bytes(is_text ? 0 : 1);
    size_t data_bytes = is_text ? 16 : note->n_items * note->item_bytes;
    begin_message(writer, TDMI_HDF5_ATTRIBUTE,
                  8 + tdmi_hdf5_padded(name_bytes) + tdmi_hdf5_padded(type_bytes) + rank_bytes +
                      data_bytes);
    put(writer, 1, 2);
    put(writer, name_bytes, 2);
    put(writer, type_bytes, 2);
    put(writer, rank_bytes, 2);
    put_padded(writer, note->key, name_bytes);
    if (is_text) {
        /* Variable length, text in UTF-8, of whole numbers of a byte. */
        put(writer, 0x19 | 1 << 8 | UINT64_C(1) << 16 | UINT64_C(16) << 32, 8);
        put(writer, 0x10 | UINT64_C(1) << 32, 8);
        put(writer, UINT64_C(8) << 16, 8);
        put_shape(writer, 0, NULL);
        size_t length = strlen(note->text);
        put(writer, length, 4);
        put(writer, length ? writer->texts : 0, 8);
        put(writer, length ? ++writer->n_texts : 0, 4);
    } else {
        put(writer, 0x13 | 1 << 8 | (uint64_t)note->item_bytes << 32, 8);
        put_shape(writer, 1, &extent);
        put_padded(writer, note->items, data_bytes);
    }
}

/* ---- headers ----------------------------------------------------------------------------- */

/* The two sizes in the head are known at its end. */
static size_t begin_header(struct writer *writer, struct tdmi_hdf5_node *node)
{
    node->address = writer->bytes->length_bytes;
    put(writer, 1, 2);
    put(writer, 0, 2); /* messages */
    put(writer, 1, 4); /* one link leads here */
    put_zeros(writer, 8);
    return writer->bytes->length_bytes;
}

static void end_header(struct writer *writer, const struct tdmi_hdf5_node *node, size_t start,
                       uint64_t n_messages)
{
    for (const struct tdmi_hdf5_note *note = node->notes; note != NULL; note = note->next) {
        put_attribute(writer, note);
        n_messages++;
    }
    if (writer->bytes->is_broken)
        return;
    tdmi_write_little(writer->bytes->bytes + start - 14, n_messages, 2);
    tdmi_write_little(writer->bytes->bytes + start - 8, writer->bytes->length_bytes - start, 4);
}

static void put_array(struct writer *writer, struct tdmi_hdf5_node *node)
{
    size_t start = begin_header(writer, node);
    begin_message(writer, TDMI_HDF5_DATASPACE, shape_bytes(node->rank));
    put_shape(writer, node->rank, node->shape);
    begin_message(writer, TDMI_HDF5_DATATYPE, FLOAT_BYTES);
    put_float(writer, node->dtype);
    put_zeros(writer, tdmi_hdf5_padded(FLOAT_BYTES) - FLOAT_BYTES);
    begin_message(writer, TDMI_HDF5_FILL, 8);
    put(writer, 0x01020202, 8); /* version 2, room late, written if set; the fill value is 0 */
    begin_message(writer, TDMI_HDF5_LAYOUT, 18);
    put(writer, 0x0103, 2);
    node->address_at = writer->bytes->length_bytes;
    put(writer, TDMI_HDF5_NOWHERE, 8);
    put(writer, node->n_bytes, 8);
    put_zeros(writer, 6);
    end_header(writer, node, start, 4);
}

/* ---- groups ------------------------------------------------------------------------------ */

/* A child in a tree: its address, and the greatest name below it. */
struct child {
    uint64_t address, greatest;
};

/* One level of a tree over n children; they are replaced by the level's nodes. */
static size_t put_level(struct writer *writer, struct child *children, size_t n, int level)
{
    size_t n_nodes = 0, per_node = 2 * NODE_K;
    uint64_t greatest = 0, start = writer->bytes->length_bytes;
    size_t n_all = n == 0 ? 1 : (n + per_node - 1) / per_node;
    for (size_t first = 0; n_nodes < n_all; first += per_node, n_nodes++) {
        size_t used = n - first < per_node ? n - first : per_node;
        uint64_t address = start + n_nodes * NODE_BYTES;
        tdmi_text_add(writer->bytes, "TREE", 4);
        put(writer, 0, 1);
        put(writer, (uint64_t)level, 1);
        put(writer, used, 2);
        put(writer, n_nodes == 0 ? TDMI_HDF5_NOWHERE : address - NODE_BYTES, 8);
        put(writer, n_nodes + 1 == n_all ? TDMI_HDF5_NOWHERE : address + NODE_BYTES, 8);
        put(writer, greatest, 8);
        for (size_t i = 0; i < used; i++) {
            put(writer, children[first + i].address, 8);
            greatest = children[first + i].greatest;
            put(writer, greatest, 8);
        }
        put_zeros(writer, (size_t)(2 * NODE_K - used) * 16);
        children[n_nodes] = (struct child){.address = address, .greatest = greatest};
    }
    return n_nodes;
}

/* Leaves over the sorted members; name_at gives each name's place among the names. */
static size_t put_leaves(struct writer *writer, const struct tdmi_hdf5_node *group,
                         const uint64_t *name_at, struct child *children)
{
    size_t n_leaves = 0, per_leaf = 2 * LEAF_K;
    for (size_t first = 0; first < group->n_members; first += per_leaf) {
        size_t used = group->n_members - first < per_leaf ? group->n_members - first : per_leaf;
        children[n_leaves++] = (struct child){.address = writer->bytes->length_bytes,
                                              .greatest = name_at[first + used - 1]};
        tdmi_text_add(writer->bytes, "SNOD\1\0", 6);
        put(writer, used, 2);
        for (size_t i = first; i < first + used; i++) {
            put(writer, name_at[i], 8);
            put(writer, group->members[i]->address, 8);
            put_zeros(writer, SYMBOL_BYTES - 16);
        }
        put_zeros(writer, (per_leaf - used) * SYMBOL_BYTES);
    }
    return n_leaves;
}

/* The empty name stands first, so that it is below every other. */
static uint64_t put_names(struct writer *writer, const struct tdmi_hdf5_node *group,
                          uint64_t *name_at)
{
    size_t n_bytes = 8;
    uint64_t address = writer->bytes->length_bytes;
    for (size_t i = 0; i < group->n_members; i++) {
        name_at[i] = n_bytes;
        n_bytes += tdmi_hdf5_padded(strlen(group->members[i]->name) + 1);
    }
    tdmi_text_add(writer->bytes, "HEAP\0\0\0\0", 8);
    put(writer, n_bytes, 8);
    put(writer, NO_FREE_PLACE, 8);
    put(writer, address + 32, 8);
    put_zeros(writer, 8);
    for (size_t i = 0; i < group->n_members; i++)
        put_padded(writer, group->members[i]->name, strlen(group->members[i]->name) + 1);
    return address;
}

static void put_node(struct writer *writer, struct tdmi_hdf5_node *node)
{
    const size_t n = node->n_members;
    if (node->is_array) {
        put_array(writer, node);
        return;
    }
    for (size_t i = 0; i < n; i++)
        put_node(writer, node->members[i]);
    TDMI_AT_END(tdmi_free_at) uint64_t *name_at = tdmi_alloc(n + 1, sizeof *name_at);
    TDMI_AT_END(tdmi_free_at) struct child *children = tdmi_alloc(n + 1, sizeof *children);
    if (name_at == NULL || children == NULL) {
        writer->bytes->is_broken = true;
        return;
    }
    node->names = put_names(writer, node, name_at);
    size_t n_children = put_leaves(writer, node, name_at, children);
    for (int level = 0; level == 0 || n_children > 1; level++)
        n_children = put_level(writer, children, n_children, level);
    node->tree = children[0].address;
    size_t start = begin_header(writer, node);
    begin_message(writer, TDMI_HDF5_SYMBOL_TABLE, 16);
    put(writer, node->tree, 8);
    put(writer, node->names, 8);
    end_header(writer, node, start, 1);
}

/* ---- all --------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const struct tdmi_hdf5_node *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

static void sort(struct tdmi_hdf5_node *node)
{
    if (node->n_members > 1)
        qsort(node->members, node->n_members, sizeof *node->members, by_name);
    for (size_t i = 0; i < node->n_members; i++)
        sort(node->members[i]);
}

void tdmi_hdf5_write_structure(struct tdmi_hdf5_node *root, tdmi_text *bytes)
{
    struct writer writer = {.bytes = bytes};
    sort(root);
    tdmi_text_add(bytes, "\x89HDF\r\n\x1a\n", 8);
    put(&writer, 0, 5); /* versions of this and of its parts */
    put(&writer, 0x0808, 3);
    put(&writer, LEAF_K, 2);
    put(&writer, NODE_K, 2);
    put(&writer, 0, 4);
    put(&writer, 0, 8); /* addresses count from here */
    put(&writer, TDMI_HDF5_NOWHERE, 8);
    put(&writer, 0, 8); /* the end */
    put(&writer, TDMI_HDF5_NOWHERE, 8);
    put_zeros(&writer, 40); /* the root as a member */
    put_heap(&writer, root);
    put_node(&writer, root);
    if (bytes->is_broken)
        return;
    tdmi_write_little(bytes->bytes + 64, root->address, 8);
    tdmi_write_little(bytes->bytes + 72, 1, 4); /* its tree and names follow */
    tdmi_write_little(bytes->bytes + 80, root->tree, 8);
    tdmi_write_little(bytes->bytes + 88, root->names, 8);
}
