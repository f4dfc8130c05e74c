/*
 * Internals of the HDF5 reader: the file, bounded reads from it, the messages of an object, and the
 * functions of each part.
 *
 * Work is bounded by a budget. Each byte of structure that is read is paid for, and a file can pay
 * a few times for each of its bytes, which is more than any honest one needs: objects, groups and
 * heaps are kept once read. Circles and trees whose branches meet again run out of it.
 */
#pragma once

#include "weights/errors.h"
#include "weights/hdf5/hdf5.h"

#define TDMI_HDF5_NOWHERE UINT64_MAX /* an address that is not there yet */

enum tdmi_hdf5_message_type {
    TDMI_HDF5_DATASPACE = 0x01,
    TDMI_HDF5_LINK_INFO = 0x02,
    TDMI_HDF5_DATATYPE = 0x03,
    TDMI_HDF5_FILL = 0x05,
    TDMI_HDF5_LINK = 0x06,
    TDMI_HDF5_EXTERNAL = 0x07,
    TDMI_HDF5_LAYOUT = 0x08,
    TDMI_HDF5_GROUP_INFO = 0x0a,
    TDMI_HDF5_FILTERS = 0x0b,
    TDMI_HDF5_ATTRIBUTE = 0x0c,
    TDMI_HDF5_CONTINUATION = 0x10,
    TDMI_HDF5_SYMBOL_TABLE = 0x11,
    TDMI_HDF5_ATTRIBUTE_INFO = 0x15
};

struct tdmi_hdf5_message {
    uint16_t type;
    bool is_shared; /* the body says where the message is instead */
    uint32_t n_bytes;
    const uint8_t *body;
};

struct tdmi_hdf5_object {
    uint64_t address;
    struct tdmi_hdf5_message *messages;
    size_t n_messages, message_capacity;
    struct tdmi_hdf5_link *links; /* sorted */
    size_t n_links, link_capacity;
    bool has_links, is_marked;
};

/* Things by address: open addressing, a power of two of places, never more than half full. */
struct tdmi_hdf5_map {
    struct tdmi_hdf5_place {
        uint64_t address;
        void *what; /* NULL: free */
    } * places;
    size_t n, capacity;
};

struct tdmi_hdf5 {
    const char *name;
    const uint8_t *bytes; /* from the signature on, as all addresses count */
    size_t n_bytes;
    bool has_checks;
    uint64_t budget_bytes;   /* of structure still to be read */
    uint64_t stored_bytes;   /* of chunks and arrays still to be unpacked or byte-swapped */
    uint64_t unpacked_bytes; /* that may still come of it */
    struct tdmi_hdf5_object *root;
    struct tdmi_hdf5_map objects, heaps;
    tdmi_arena arena;
};

/* "NAME: HDF5: what is wrong" as TDM_E_INPUT. */
#define TDMI_HDF5_BAD(err, hdf5, ...) TDMI_BAD_FILE(err, (hdf5)->name, "HDF5: " __VA_ARGS__)

/* Texts, names and values stand at multiples of 8 bytes. */
static inline size_t tdmi_hdf5_padded(uint64_t n_bytes)
{
    return (size_t)((n_bytes + 7) / 8 * 8);
}

/* ---- hdf5/bytes.c ------------------------------------------------------------------------ */

tdm_status tdmi_hdf5_pay(tdmi_hdf5 *file, uint64_t n_bytes, tdm_error *err) TDM_MUST_USE;
/* n_bytes of structure at an address, paid for; what is for the sentence: "a B-tree". */
tdm_status tdmi_hdf5_take(tdmi_hdf5 *file, uint64_t address, uint64_t n_bytes, const char *what,
                          const uint8_t **bytes, tdm_error *err) TDM_MUST_USE;
/* The same with a signature and a version byte behind it. */
tdm_status tdmi_hdf5_take_signed(tdmi_hdf5 *file, uint64_t address, uint64_t n_bytes,
                                 const char *signature, int version, const uint8_t **bytes,
                                 tdm_error *err) TDM_MUST_USE;
/* The last 4 of n_bytes against those before. */
tdm_status tdmi_hdf5_check(const tdmi_hdf5 *file, const uint8_t *bytes, size_t n_bytes,
                           const char *what, tdm_error *err) TDM_MUST_USE;

/* Reads on until there is nothing left: then is_short, and numbers are 0. */
struct tdmi_hdf5_cursor {
    const uint8_t *at;
    size_t left;
    bool is_short;
};
uint64_t tdmi_hdf5_next(struct tdmi_hdf5_cursor *cursor, int n_bytes);
const uint8_t *tdmi_hdf5_skip(struct tdmi_hdf5_cursor *cursor, uint64_t n_bytes);

void *tdmi_hdf5_map_find(const struct tdmi_hdf5_map *map, uint64_t address);
tdm_status tdmi_hdf5_map_add(tdmi_hdf5 *file, struct tdmi_hdf5_map *map, uint64_t address,
                             void *what, tdm_error *err) TDM_MUST_USE;

/* ---- hdf5/object.c ----------------------------------------------------------------------- */

tdm_status tdmi_hdf5_object_at(tdmi_hdf5 *file, uint64_t address, tdmi_hdf5_object **object,
                               tdm_error *err) TDM_MUST_USE;
/* The first message of a type, or NULL. */
const struct tdmi_hdf5_message *tdmi_hdf5_message(const tdmi_hdf5_object *object,
                                                  enum tdmi_hdf5_message_type type);

/* ---- hdf5/type.c ------------------------------------------------------------------------- */

/* Fill in the type and the shape of values from the bodies of their messages. */
tdm_status tdmi_hdf5_read_type(const tdmi_hdf5 *file, const uint8_t *body, size_t n_bytes,
                               struct tdmi_hdf5_values *values, tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_hdf5_read_shape(const tdmi_hdf5 *file, const uint8_t *body, size_t n_bytes,
                                struct tdmi_hdf5_values *values, tdm_error *err) TDM_MUST_USE;
/* n_values * item_bytes; false when that is more than memory can hold. */
bool tdmi_hdf5_size(const struct tdmi_hdf5_values *values, size_t *n_bytes);
/* Copy numbers of the other byte order, byte-swapped. */
tdm_status tdmi_hdf5_swap_bytes(tdmi_hdf5 *file, struct tdmi_hdf5_values *values,
                                tdm_error *err) TDM_MUST_USE;

/* ---- hdf5/chunks.c, hdf5/filters.c ------------------------------------------------------- */

struct tdmi_hdf5_chunk {
    const uint8_t *bytes; /* NULL: not there */
    size_t n_bytes;
    uint32_t skips; /* bit i: filter i was not used */
};

enum { TDMI_HDF5_FILTERS_MAX = 8 };

struct tdmi_hdf5_pipeline {
    int n;
    struct tdmi_hdf5_filter {
        unsigned id;
        uint32_t item_bytes; /* of a shuffle */
    } filters[TDMI_HDF5_FILTERS_MAX];
    bool has_deflate;
};

tdm_status tdmi_hdf5_read_pipeline(const tdmi_hdf5 *file, const struct tdmi_hdf5_message *message,
                                   struct tdmi_hdf5_pipeline *pipeline,
                                   tdm_error *err) TDM_MUST_USE;
/* A chunk unpacked: *unpacked points into the file or one of two rooms, each of chunk_bytes and
 * TDMI_HDF5_ROOM more. */
enum { TDMI_HDF5_ROOM = 4 * TDMI_HDF5_FILTERS_MAX };
tdm_status tdmi_hdf5_unpack(const tdmi_hdf5 *file, const struct tdmi_hdf5_pipeline *pipeline,
                            const struct tdmi_hdf5_chunk *chunk, size_t chunk_bytes,
                            uint8_t *rooms[2], const uint8_t **unpacked,
                            tdm_error *err) TDM_MUST_USE;
/* Reads all chunks into values->data. layout is the body of a layout message of that version. */
tdm_status tdmi_hdf5_read_chunked(tdmi_hdf5 *file, const tdmi_hdf5_object *object,
                                  struct tdmi_hdf5_cursor layout, int version,
                                  struct tdmi_hdf5_values *values, tdm_error *err) TDM_MUST_USE;
