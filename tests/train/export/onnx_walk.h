/*
 * Messages of Protocol Buffers read field by field, as much as the tests of ONNX files want.
 */
#pragma once

#include "unit.h"

struct message {
    const uint8_t *at;
    size_t length;
};

struct field {
    int number, wire;
    uint64_t value;     /* of wire types 0 and 5 */
    struct message sub; /* of wire type 2 */
};

static inline uint64_t take_varint(struct message *message)
{
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        assert_true(message->length > 0 && shift < 64);
        uint8_t byte = *message->at++;
        message->length--;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            assert_true(byte != 0 || shift == 0); /* no longer than it must be */
            return value;
        }
    }
}

/* False at the end; a field that does not fit into its message fails the test. */
static inline bool take_field(struct message *message, struct field *field)
{
    if (message->length == 0)
        return false;
    uint64_t key = take_varint(message);
    *field = (struct field){.number = (int)(key >> 3), .wire = (int)(key & 7)};
    if (field->wire == 0) {
        field->value = take_varint(message);
        return true;
    }
    assert_true(field->wire == 2 || field->wire == 5);
    size_t length = field->wire == 2 ? (size_t)take_varint(message) : 4;
    assert_true(length <= message->length);
    field->sub = (struct message){message->at, length};
    if (field->wire == 5)
        memcpy(&field->value, message->at, 4);
    message->at += length;
    message->length -= length;
    return true;
}

/* The n-th field of that number; fails the test when there is none and must_be. */
static inline bool find_nth(struct message message, int number, int n, struct field *field)
{
    while (take_field(&message, field))
        if (field->number == number && n-- == 0)
            return true;
    return false;
}

static inline struct field field_of(struct message message, int number)
{
    struct field field;
    if (!find_nth(message, number, 0, &field))
        fail_msg("there is no field %d", number);
    return field;
}

static inline bool says(struct message message, const char *text)
{
    return message.length == strlen(text) && memcmp(message.at, text, message.length) == 0;
}

/* The first of repeated messages whose string field says text. */
static inline bool find_named(struct message message, int number, int name, const char *text,
                              struct message *found)
{
    struct field field, string;
    for (int n = 0; find_nth(message, number, n, &field); n++) {
        if (find_nth(field.sub, name, 0, &string) && says(string.sub, text)) {
            *found = field.sub;
            return true;
        }
    }
    return false;
}
