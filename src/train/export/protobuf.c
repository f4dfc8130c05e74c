/* Wire types 0 (varint), 2 (length and bytes) and 5 (four bytes) are all that models need. */
#include "train/export/protobuf.h"
#include "base/file/file.h"
#include "base/scope.h"

#include <string.h>

enum { WIRE_VARINT = 0, WIRE_BYTES = 2, WIRE_FOUR = 5, VARINT_BYTES = 10 };

void tdmi_protobuf_release(tdmi_protobuf *message)
{
    tdmi_text_release(&message->text);
    tdmi_free(message->lent);
}

/* Seven bits a byte, the lowest first; the top bit says that more come. */
static size_t varint(uint64_t value, uint8_t bytes[VARINT_BYTES])
{
    size_t n = 0;
    for (; value > 127; value >>= 7)
        bytes[n++] = (uint8_t)(value | 128);
    bytes[n++] = (uint8_t)value;
    return n;
}

static void add_varint(tdmi_protobuf *message, uint64_t value)
{
    uint8_t bytes[VARINT_BYTES];
    tdmi_text_add(&message->text, bytes, varint(value, bytes));
}

static void add_key(tdmi_protobuf *message, int field, int wire)
{
    add_varint(message, (uint64_t)field << 3 | (uint64_t)wire);
}

void tdmi_protobuf_begin(tdmi_protobuf *message, int field)
{
    add_key(message, field, WIRE_BYTES);
    if (message->depth == TDMI_PROTOBUF_DEPTH) {
        message->is_misnested = true;
        return;
    }
    message->open[message->depth].at = message->text.length_bytes;
    message->open[message->depth].n_lent = message->n_lent;
    message->open[message->depth].lent_bytes = message->lent_bytes;
    message->depth++;
}

void tdmi_protobuf_end(tdmi_protobuf *message)
{
    uint8_t prefix[VARINT_BYTES];
    message->is_broken |= message->text.is_broken;
    message->is_misnested |= message->depth == 0;
    if (message->is_broken || message->is_misnested)
        return;
    message->depth--;
    size_t at = message->open[message->depth].at;
    size_t inside = message->text.length_bytes - at;
    size_t n =
        varint(inside + message->lent_bytes - message->open[message->depth].lent_bytes, prefix);
    if (!tdmi_text_room(&message->text, n)) {
        message->is_broken = true;
        return;
    }
    memmove(message->text.bytes + at + n, message->text.bytes + at, inside);
    memcpy(message->text.bytes + at, prefix, n);
    for (size_t i = message->open[message->depth].n_lent; i < message->n_lent; i++)
        message->lent[i].at += n;
}

void tdmi_protobuf_integer(tdmi_protobuf *message, int field, int64_t value)
{
    add_key(message, field, WIRE_VARINT);
    add_varint(message, (uint64_t)value);
}

void tdmi_protobuf_float(tdmi_protobuf *message, int field, float value)
{
    add_key(message, field, WIRE_FOUR);
    tdmi_text_add(&message->text, &value, sizeof value);
}

void tdmi_protobuf_string(tdmi_protobuf *message, int field, const char *value)
{
    size_t length = strlen(value);
    add_key(message, field, WIRE_BYTES);
    add_varint(message, length);
    tdmi_text_add(&message->text, value, length);
}

void tdmi_protobuf_bytes(tdmi_protobuf *message, int field, const void *bytes, size_t length_bytes)
{
    add_key(message, field, WIRE_BYTES);
    add_varint(message, length_bytes);
    if (!TDMI_GROW(message->lent, message->lent_capacity, message->n_lent)) {
        message->is_broken = true;
        return;
    }
    message->lent[message->n_lent++] =
        (struct tdmi_protobuf_lent){message->text.length_bytes, bytes, length_bytes};
    message->lent_bytes += length_bytes;
}

uint64_t tdmi_protobuf_length(const tdmi_protobuf *message)
{
    return message->text.length_bytes + message->lent_bytes;
}

static tdm_status stream(const tdmi_protobuf *message, tdmi_atomic_file *file, tdm_error *err)
{
    size_t at = 0;
    for (size_t i = 0; i < message->n_lent; i++) {
        const struct tdmi_protobuf_lent *lent = &message->lent[i];
        TDMI_TRY(tdmi_atomic_write(file, message->text.bytes + at, lent->at - at, err));
        TDMI_TRY(tdmi_atomic_write(file, lent->bytes, lent->length_bytes, err));
        at = lent->at;
    }
    return tdmi_atomic_write(file, tdmi_text_string(&message->text) + at,
                             message->text.length_bytes - at, err);
}

tdm_status tdmi_protobuf_write(const tdmi_protobuf *message, const char *path, tdm_error *err)
{
    tdmi_atomic_file *file = NULL;
    if (message->is_broken || message->text.is_broken)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to write %s", path);
    if (message->is_misnested)
        return TDM_FAIL(err, TDM_E_BUG, "writing %s: a message that is begun and not ended", path);
    TDMI_TRY(tdmi_atomic_open(path, &file, err));
    const tdm_status status = stream(message, file, err);
    if (status == TDM_OK)
        return tdmi_atomic_commit(file, err);
    tdmi_atomic_abort(file);
    return status;
}
