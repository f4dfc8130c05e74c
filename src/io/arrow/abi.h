/*
 * The C data and stream interfaces of Arrow, as its specification lays them out: the form in which
 * columns are exchanged with Arrow. The guards are those of the specification, so that this header
 * and Arrow's own may meet in one file.
 *
 * The receiver of a struct calls its release when it is not NULL, once. Children are released by
 * their parents. tdmi_arrow_…_release() do that and accept zeroed structs.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out); /* released: the end */
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

#endif

static inline void tdmi_arrow_schema_release(struct ArrowSchema *schema)
{
    if (schema->release)
        schema->release(schema);
    schema->release = 0;
}

static inline void tdmi_arrow_array_release(struct ArrowArray *array)
{
    if (array->release)
        array->release(array);
    array->release = 0;
}

static inline void tdmi_arrow_stream_release(struct ArrowArrayStream *stream)
{
    if (stream->release)
        stream->release(stream);
    stream->release = 0;
}

#ifdef __cplusplus
}
#endif
