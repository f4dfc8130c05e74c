/*
 * Messages of Protocol Buffers, written only: a stack of open messages over one growing text. Large
 * values are noted and streamed when the file is written, so a message with all weights of a
 * network costs no copy of them.
 *
 * Lengths stand before what they count. A message is written behind the place where its length
 * will be, and moved on by the few bytes of it when it ends.
 */
#pragma once

#include "base/text/text.h"
#include "tandem/error.h"

enum { TDMI_PROTOBUF_DEPTH = 12 };

struct tdmi_protobuf_lent {
    size_t at; /* in the text: these bytes come before */
    const void *bytes;
    size_t length_bytes;
};

typedef struct tdmi_protobuf { /* start from a zeroed object */
    tdmi_text text;
    struct tdmi_protobuf_lent *lent;
    size_t n_lent;
    int64_t lent_capacity;
    uint64_t lent_bytes;
    struct {
        size_t at, n_lent;
        uint64_t lent_bytes;
    } open[TDMI_PROTOBUF_DEPTH];
    int depth;
    bool is_broken;    /* out of memory */
    bool is_misnested; /* begun and ended not in pairs, or deeper than there is room for */
} tdmi_protobuf;

void tdmi_protobuf_release(tdmi_protobuf *message);

/* field numbers are those of the .proto file. What is added between belongs to the message. */
void tdmi_protobuf_begin(tdmi_protobuf *message, int field);
void tdmi_protobuf_end(tdmi_protobuf *message);
void tdmi_protobuf_integer(tdmi_protobuf *message, int field, int64_t value);
void tdmi_protobuf_float(tdmi_protobuf *message, int field, float value);
/* Copied. */
void tdmi_protobuf_string(tdmi_protobuf *message, int field, const char *value);
/* Lent until the file is written. */
void tdmi_protobuf_bytes(tdmi_protobuf *message, int field, const void *bytes, size_t length_bytes);

/* So far. */
uint64_t tdmi_protobuf_length(const tdmi_protobuf *message);
/* Whole or not at all. TDM_E_MEMORY when it is broken, TDM_E_BUG when messages are misnested. */
tdm_status tdmi_protobuf_write(const tdmi_protobuf *message, const char *path,
                               tdm_error *err) TDM_MUST_USE;
