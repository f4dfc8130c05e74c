/* The growing byte string: capacity doubles, one byte is always kept for the terminator. */
#include "base/text/text.h"
#include "base/memory.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

void tdmi_text_release(tdmi_text *text)
{
    if (!text)
        return;
    tdmi_free(text->bytes);
    *text = (tdmi_text){0};
}

void tdmi_text_clear(tdmi_text *text)
{
    text->length_bytes = 0;
    text->is_broken = false;
    if (text->bytes)
        text->bytes[0] = '\0';
}

int tdmi_compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool tdmi_text_is(const void *bytes, size_t length_bytes, const char *text)
{
    return strlen(text) == length_bytes && memcmp(text, bytes, length_bytes) == 0;
}

bool tdmi_ends_with(const char *text, const char *ending)
{
    const size_t n = strlen(text), n_ending = strlen(ending);
    return n >= n_ending && memcmp(text + n - n_ending, ending, n_ending) == 0;
}

/* Room for more_bytes and the terminator, or is_broken. */
static bool has_room(tdmi_text *text, size_t more_bytes)
{
    if (text->is_broken)
        return false;
    if (more_bytes < text->capacity_bytes - text->length_bytes)
        return true;
    size_t capacity = text->capacity_bytes ? text->capacity_bytes : 64;
    while (capacity <= SIZE_MAX / 2 && capacity - text->length_bytes <= more_bytes)
        capacity *= 2;
    char *bytes = NULL;
    if (capacity - text->length_bytes > more_bytes)
        bytes = tdmi_realloc(text->bytes, capacity, 1);
    text->is_broken = bytes == NULL;
    if (bytes) {
        text->bytes = bytes;
        text->capacity_bytes = capacity;
    }
    return !text->is_broken;
}

void tdmi_text_add(tdmi_text *text, const void *bytes, size_t length_bytes)
{
    char *room = tdmi_text_room(text, length_bytes);
    if (room && length_bytes)
        memcpy(room, bytes, length_bytes);
}

char *tdmi_text_room(tdmi_text *text, size_t length_bytes)
{
    if (!has_room(text, length_bytes))
        return NULL;
    char *room = text->bytes + text->length_bytes;
    text->length_bytes += length_bytes;
    text->bytes[text->length_bytes] = '\0';
    return room;
}

void tdmi_text_printf(tdmi_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    text->is_broken |= length < 0;
    char *room = tdmi_text_room(text, length < 0 ? 0 : (size_t)length);
    if (!room)
        return;
    va_start(arguments, format);
    vsnprintf(room, (size_t)length + 1, format, arguments);
    va_end(arguments);
}

tdm_status tdmi_text_status(const tdmi_text *text, tdm_error *err)
{
    return text->is_broken
               ? TDM_FAIL(err, TDM_E_MEMORY, "no memory for a text of more than %zu bytes",
                          text->length_bytes)
               : TDM_OK;
}

const char *tdmi_text_string(const tdmi_text *text)
{
    return text->bytes ? text->bytes : "";
}

bool tdmi_has_ending(const char *name, const char *const *endings)
{
    const size_t length = strlen(name);
    for (; *endings != NULL; endings++) {
        const size_t ending_length = strlen(*endings);
        if (length > ending_length && strcasecmp(name + length - ending_length, *endings) == 0)
            return true;
    }
    return false;
}
