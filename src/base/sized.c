/* Copies between structs of different versions of one type; the first member is a size_t. */
#include "base/sized.h"

#include <stdbool.h>
#include <string.h>

/* Of any struct of a program: a larger one was never initialized. */
enum { most_bytes = 1 << 20 };

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static bool is_size(size_t struct_bytes)
{
    return struct_bytes > sizeof struct_bytes && struct_bytes <= most_bytes;
}

static size_t size_of(const void *sized)
{
    size_t struct_bytes;
    memcpy(&struct_bytes, sized, sizeof struct_bytes);
    return struct_bytes;
}

void tdmi_options_init(void *options, size_t struct_bytes, const void *usual, size_t usual_bytes)
{
    memset(options, 0, struct_bytes);
    memcpy(options, usual, smaller(struct_bytes, usual_bytes));
    memcpy(options, &struct_bytes, smaller(struct_bytes, sizeof struct_bytes));
}

tdm_status tdmi_options_copy(const char *name, const void *options, void *own, size_t own_bytes,
                             tdm_error *err)
{
    /* 0: a zeroed struct of the first version, whose size is that of today's. */
    const size_t given = options ? size_of(options) : 0;
    const size_t struct_bytes = given > 0 || !options ? given : own_bytes;
    if (options && !is_size(struct_bytes))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "struct %s: struct_bytes is %zu; it must be the struct's size: initialize "
                        "the struct before its members are set",
                        name, struct_bytes);
    for (size_t i = own_bytes; i < struct_bytes; i++)
        if (((const char *)options)[i] != 0)
            return TDM_FAIL(
                err, TDM_E_USAGE,
                "struct %s: a member at byte %zu is set, which version %s of the library "
                "lacks; a newer library is needed",
                name, i, tdm_version());
    if (options)
        memcpy(own, options, smaller(struct_bytes, own_bytes));
    memcpy(own, &own_bytes, sizeof own_bytes);
    return TDM_OK;
}

tdm_status tdmi_result_check(const char *name, const void *result, tdm_error *err)
{
    if (!result || is_size(size_of(result)))
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_USAGE,
                    "struct %s: struct_bytes is %zu; it must be the struct's size before the call",
                    name, size_of(result));
}

void tdmi_result_copy(const struct tdmi_result *given)
{
    const size_t head = sizeof(size_t);
    if (!given->result)
        return;
    const size_t struct_bytes = size_of(given->result);
    memset((char *)given->result + head, 0, struct_bytes - head);
    memcpy((char *)given->result + head, (const char *)given->own + head,
           smaller(struct_bytes, given->own_bytes) - head);
}

void tdmi_result_clear(void *result)
{
    const size_t head = sizeof(size_t), struct_bytes = size_of(result);
    if (struct_bytes > head)
        memset((char *)result + head, 0, struct_bytes - head);
}
