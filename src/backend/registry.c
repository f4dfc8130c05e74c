/*
 * The lists of ops and backends, and how a device name is understood.
 */
#include "backend/backend.h"
#include "base/team.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct tdmi_backend *const backends[] = {
#define X(backend) &backend,
#include "backend/backends.def"
#undef X
};

enum { n_backends = sizeof backends / sizeof backends[0] };

static const char *const op_names[TDMI_OP_KINDS] = {
#define X(name, NAME, inputs) #name,
#include "backend/ops.def"
#undef X
};

struct tdmi_shape tdmi_op_result(const struct tdmi_op_desc *desc)
{
    struct tdmi_shape shape = desc->out;
    if (desc->fusion.pool) {
        shape.h /= desc->fusion.pool;
        shape.w /= desc->fusion.pool;
    }
    return shape;
}

const char *tdmi_op_name(enum tdmi_op_kind kind)
{
    return kind < TDMI_OP_KINDS ? op_names[kind] : "?";
}

enum tdmi_op_kind tdmi_op_find(const char *name)
{
    int kind = 0;
    while (kind < TDMI_OP_KINDS && strcmp(name, op_names[kind]) != 0)
        kind++;
    return (enum tdmi_op_kind)kind;
}

bool tdmi_backend_stores(const struct tdmi_backend *backend, enum tdmi_dtype type)
{
    return type == TDMI_DTYPE_F32 || (backend->storages >> type & 1u) != 0;
}

struct tdmi_kernel_needs tdmi_kernel_needs_of(const struct tdmi_kernel *kernel,
                                              const struct tdmi_op_desc *desc)
{
    struct tdmi_kernel_needs needs = {0};
    if (kernel->needs)
        kernel->needs(desc, &needs);
    return needs;
}

const struct tdmi_backend *tdmi_backend_at(int index)
{
    return index >= 0 && index < n_backends ? backends[index] : NULL;
}

static bool is_called(const struct tdmi_backend *backend, const char *name, size_t name_bytes)
{
    if (name_bytes == 3 && memcmp(name, "cpu", 3) == 0)
        return backend->device.is_host;
    return strlen(backend->name) == name_bytes && memcmp(name, backend->name, name_bytes) == 0;
}

/* "", or ":7" */
static bool read_index(const char *text, int *index)
{
    *index = 0;
    if (*text == '\0')
        return true;
    if (*text != ':' || text[1] < '0' || text[1] > '9')
        return false;
    char *end;
    long value = strtol(text + 1, &end, 10);
    *index = (int)value;
    return *end == '\0' && value < 1024;
}

/* "cpu, ref" */
static void list_names(char *text, size_t text_bytes)
{
    size_t length = (size_t)snprintf(text, text_bytes, "cpu");
    for (int i = 0; i < n_backends && length + 24 < text_bytes; i++)
        if (strcmp(backends[i]->name, "cpu") != 0)
            length +=
                (size_t)snprintf(text + length, text_bytes - length, ", %s", backends[i]->name);
}

/* Does the device exist? If the backend has none at all, opening one gives the reason. */
static tdm_status check_number(const char *name, const struct tdmi_backend *found, int number,
                               const struct tdmi_backend **backend, tdm_error *err)
{
    const int count = found->device.count();
    tdmi_device *opened = NULL;
    if (count == 0) {
        TDM_TRY(found->device.open(number, &opened, err), err, "choosing the device '%s'", name);
        found->device.close(opened); /* it has appeared since it was counted */
    } else if (number >= count) {
        return TDM_FAIL(err, TDM_E_ABSENT,
                        "choosing the device '%s': this machine has %d of them, counted from 0",
                        name, count);
    }
    *backend = found;
    return TDM_OK;
}

static tdm_status find_plugin(const char *name, int number, const struct tdmi_backend **backend,
                              tdm_error *err)
{
    const struct tdmi_backend *found = NULL;
    TDM_TRY(tdmi_cuda_backend(&found, err), err, "choosing the device '%s'", name);
    return check_number(name, found, number, backend, err);
}

/* The backend of libtandem with that name, or NULL. */
static const struct tdmi_backend *linked(const char *name, size_t name_bytes)
{
    for (int i = 0; i < n_backends; i++)
        if (is_called(backends[i], name, name_bytes))
            return backends[i];
    return NULL;
}

/* Is it the backend that is loaded on first use? */
static bool is_plugin(const char *name, size_t name_bytes)
{
    return name_bytes == 4 && memcmp(name, "cuda", 4) == 0;
}

bool tdmi_backend_knows(const char *name)
{
    const size_t name_bytes = strcspn(name, ":");
    int index;
    return (linked(name, name_bytes) || is_plugin(name, name_bytes)) &&
           read_index(name + name_bytes, &index);
}

tdm_status tdmi_backend_find(const char *name, const struct tdmi_backend **backend, int *index,
                             tdm_error *err)
{
    char known[128];
    const size_t name_bytes = strcspn(name, ":");
    const bool is_cuda = is_plugin(name, name_bytes);
    const struct tdmi_backend *found = linked(name, name_bytes);
    list_names(known, sizeof known);
    if (!found && !is_cuda)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "choosing the device '%s': there is no such backend; there is %s, cuda",
                        name, known);
    if (!read_index(name + name_bytes, index))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "choosing the device '%s': '%s' is no device number; give NAME, "
                        "NAME:0, NAME:1, …; for training also cuda:0,1 and cuda:all",
                        name, name + name_bytes);
    return is_cuda ? find_plugin(name, *index, backend, err)
                   : check_number(name, found, *index, backend, err);
}

/* ---- teams ---------------------------------------------------------------------------------- */

/* n images from `first` on of a call. */
static struct tdmi_op_call images_of(const struct tdmi_op_desc *desc,
                                     const struct tdmi_op_call *call, int64_t first, int64_t n)
{
    struct tdmi_op_call part = *call;
    const int64_t out = first * tdmi_shape_values(tdmi_op_result(desc));
    part.n = (int)n;
    part.member = NULL;
#define MOVE(pointer, by)       \
    do                          \
        if (part.pointer)       \
            part.pointer += by; \
    while (0)
    for (int k = 0; k < TDMI_OP_INPUTS; k++) {
        const int64_t in = first * tdmi_shape_values(desc->in[k]);
        MOVE(x[k], in);
        MOVE(dx[k], in);
        MOVE(dx_add[k], in);
    }
    MOVE(y, out);
    MOVE(dy, out);
    MOVE(residual, out);
    MOVE(pixels, first);
    MOVE(labels, first);
    MOVE(mixed, first);
    MOVE(judgements, first);
    MOVE(draws.samples, first);
#undef MOVE
    return part;
}

void tdmi_kernel_run_shared(tdmi_kernel_run *run, enum tdmi_sharing sharing, tdmi_stream *stream,
                            const struct tdmi_op_desc *desc, const struct tdmi_op_call *call)
{
    if (!call->member || sharing == TDMI_SHARING_OWN) {
        run(stream, desc, call);
    } else if (sharing == TDMI_SHARING_IMAGES) {
        const struct tdmi_share mine = tdmi_member_share(call->member, call->n);
        const struct tdmi_op_call part = images_of(desc, call, mine.first, mine.end - mine.first);
        if (part.n > 0)
            run(stream, desc, &part);
    } else if (tdmi_member_is_first(call->member)) {
        struct tdmi_op_call alone = *call;
        alone.member = NULL;
        run(stream, desc, &alone);
    }
}
