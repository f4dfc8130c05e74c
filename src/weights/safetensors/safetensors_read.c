/*
 * Reading .safetensors files. The header is read, parsed and checked in full before memory for the
 * tensors is allocated: a file can make us take no more than it is long itself. Then the tensors
 * are read one after the other, each to a multiple of 64 bytes in one block (the form allows no gap
 * between tensors, so in the file itself they may lie anywhere).
 */
#include "weights/safetensors/safetensors.h"
#include "base/bytes.h"
#include "base/hash/hash.h"
#include "base/text/json.h"
#include "base/text/quote.h"
#include "weights/form.h"
#include "weights/safetensors/safetensors_form.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct tdmi_safetensors {
    char *path;
    char *header;                /* JSON text */
    tdm_json_document *document; /* owns names and metadata */
    const tdm_json_value *metadata;
    struct tdmi_safetensors_tensor *tensors; /* by place in the file */
    const struct tdmi_safetensors_tensor **by_name;
    size_t n_tensors;
    uint8_t *data;
};

/* A file or a block of memory. */
struct input {
    const char *name;
    int file;             /* -1: memory */
    const uint8_t *bytes; /* of memory */
    bool is_lent;         /* which is then not copied */
    uint64_t n_bytes;
};

#define BAD(err, file, ...) TDMI_BAD_FILE(err, (file)->path, __VA_ARGS__)

static tdm_status read_at(const struct input *input, uint64_t offset, void *to, size_t n_bytes,
                          tdm_error *err)
{
    if (input->file >= 0)
        return tdmi_weights_read_at(input->file, input->name, offset, to, n_bytes, err);
    if (n_bytes > 0)
        memcpy(to, input->bytes + offset, n_bytes);
    return TDM_OK;
}

/* ---- header ----------------------------------------------------------------------------- */

static tdm_status read_header(tdmi_safetensors *file, const struct input *input,
                              uint64_t *header_bytes, tdm_error *err)
{
    uint8_t prefix[TDMI_SAFETENSORS_PREFIX];
    if (input->n_bytes < sizeof prefix)
        return BAD(err, file, "%" PRIu64 " bytes are too few for a safetensors file",
                   input->n_bytes);
    TDMI_TRY(read_at(input, 0, prefix, sizeof prefix, err));
    const uint64_t n = tdmi_read_little(prefix, sizeof prefix);
    if (n > TDMI_SAFETENSORS_HEADER_MAX || n > input->n_bytes - sizeof prefix)
        return BAD(err, file,
                   "not a safetensors file, or cut off: bytes 0 to 7 announce a header of %" PRIu64
                   " bytes, the file has %" PRIu64 " (limit of a header: %u)",
                   n, input->n_bytes, TDMI_SAFETENSORS_HEADER_MAX);
    TDMI_TRY(TDMI_NEW(file->header, n + 1, err));
    TDMI_TRY(read_at(input, sizeof prefix, file->header, (size_t)n, err));
    if (n == 0 || file->header[0] != '{')
        return BAD(err, file,
                   "not a safetensors file: its header does not start with '{' (byte 8)");
    *header_bytes = n;
    char name[300];
    tdmi_quote_text(name, sizeof name, "header (from byte 8) of %s", file->path);
    return tdm_json_read(file->header, (size_t)n, name, &file->document, err);
}

static tdm_status read_metadata(tdmi_safetensors *file, tdm_error *err)
{
    file->metadata = tdm_json_member(tdm_json_root(file->document), "__metadata__");
    if (file->metadata == NULL)
        return TDM_OK;
    if (tdm_json_kind_of(file->metadata) != TDM_JSON_OBJECT)
        return BAD(err, file, "__metadata__ in the header is not an object");
    for (size_t i = 0; i < tdm_json_count(file->metadata); i++)
        if (tdm_json_kind_of(tdm_json_at(file->metadata, i)) != TDM_JSON_STRING)
            return BAD(err, file, "metadata '%s' in the header is not a string",
                       tdm_json_key_at(file->metadata, i));
    return TDM_OK;
}

static tdm_status read_shape(tdmi_safetensors *file, const tdm_json_value *entry,
                             struct tdmi_safetensors_tensor *tensor, tdm_error *err)
{
    const tdm_json_value *shape = tdm_json_member(entry, "shape");
    size_t rank = tdm_json_count(shape);
    if (tdm_json_kind_of(shape) != TDM_JSON_ARRAY || rank > TDMI_SAFETENSORS_RANK)
        return BAD(err, file, "tensor '%s': its shape is missing or has more than %d axes",
                   tensor->name, TDMI_SAFETENSORS_RANK);
    uint64_t n_values = 1, n_bytes = 0;
    bool is_too_large = false;
    tensor->rank = (int)rank;
    for (size_t i = 0; i < rank && !is_too_large; i++) {
        tensor->shape[i] = tdm_json_as_integer(tdm_json_at(shape, i), -1);
        if (tensor->shape[i] < 0)
            return BAD(err, file, "tensor '%s': axis %zu of its shape is not a size", tensor->name,
                       i);
        is_too_large = __builtin_mul_overflow(n_values, (uint64_t)tensor->shape[i], &n_values);
    }
    if (is_too_large ||
        __builtin_mul_overflow(n_values, (uint64_t)tdmi_dtype_bytes(tensor->dtype), &n_bytes) ||
        n_bytes > INT64_MAX || n_bytes > SIZE_MAX)
        return BAD(err, file, "tensor '%s': its shape has too many elements", tensor->name);
    tensor->n_values = (int64_t)n_values;
    tensor->bytes = (size_t)n_bytes;
    return TDM_OK;
}

static tdm_status read_entry(tdmi_safetensors *file, const tdm_json_value *entry,
                             uint64_t data_bytes, struct tdmi_safetensors_tensor *tensor,
                             uint64_t *begin, tdm_error *err)
{
    const char *dtype = tdm_json_as_string(tdm_json_member(entry, "dtype"), NULL);
    if (dtype == NULL)
        return BAD(err, file, "tensor '%s': the header does not say its dtype", tensor->name);
    if (!tdmi_dtype_of_name(dtype, &tensor->dtype))
        return BAD(err, file, "tensor '%s': dtype '%s' is not one of %s", tensor->name, dtype,
                   tdmi_dtype_names());
    TDMI_TRY(read_shape(file, entry, tensor, err));
    const tdm_json_value *offsets = tdm_json_member(entry, "data_offsets");
    int64_t first = tdm_json_as_integer(tdm_json_at(offsets, 0), -1);
    int64_t end = tdm_json_as_integer(tdm_json_at(offsets, 1), -1);
    if (tdm_json_kind_of(offsets) != TDM_JSON_ARRAY || tdm_json_count(offsets) != 2 || first < 0 ||
        end < first || (uint64_t)end > data_bytes)
        return BAD(err, file,
                   "tensor '%s': its data_offsets (%" PRId64 ", %" PRId64
                   ") are not two offsets within the %" PRIu64 " bytes that follow the header",
                   tensor->name, first, end, data_bytes);
    if ((uint64_t)(end - first) != tensor->bytes)
        return BAD(err, file,
                   "tensor '%s': %zu bytes by its shape and dtype, %" PRId64 " by its data_offsets",
                   tensor->name, tensor->bytes, end - first);
    *begin = (uint64_t)first;
    return TDM_OK;
}

/* ---- order and lookup ------------------------------------------------------------------- */

struct placed {
    struct tdmi_safetensors_tensor tensor;
    uint64_t begin;
};

static int by_place(const void *a, const void *b)
{
    const struct placed *left = a, *right = b;
    if (left->begin != right->begin)
        return left->begin < right->begin ? -1 : 1;
    if (left->tensor.bytes != right->tensor.bytes) /* empty ones first, or they would overlap */
        return left->tensor.bytes < right->tensor.bytes ? -1 : 1;
    return strcmp(left->tensor.name, right->tensor.name);
}

static int by_name(const void *a, const void *b)
{
    const struct tdmi_safetensors_tensor *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

/* Every byte after the header belongs to exactly one tensor. */
static tdm_status check_cover(tdmi_safetensors *file, const struct placed *placed,
                              uint64_t header_bytes, uint64_t data_bytes, tdm_error *err)
{
    uint64_t at = 0, base = TDMI_SAFETENSORS_PREFIX + header_bytes;
    for (size_t i = 0; i < file->n_tensors; at += placed[i].tensor.bytes, i++)
        if (placed[i].begin != at)
            return BAD(err, file,
                       "tensor '%s' starts at byte %" PRIu64 ", the one before it ends at %" PRIu64,
                       placed[i].tensor.name, base + placed[i].begin, base + at);
    if (at != data_bytes)
        return BAD(err, file, "the last tensor ends at byte %" PRIu64 ", the file at %" PRIu64,
                   base + at, base + data_bytes);
    return TDM_OK;
}

static tdm_status index_names(tdmi_safetensors *file, const struct placed *placed, tdm_error *err)
{
    TDMI_TRY(TDMI_NEW(file->tensors, file->n_tensors + 1, err));
    TDMI_TRY(TDMI_NEW(file->by_name, file->n_tensors + 1, err));
    for (size_t i = 0; i < file->n_tensors; i++) {
        file->tensors[i] = placed[i].tensor;
        file->by_name[i] = &file->tensors[i];
    }
    qsort(file->by_name, file->n_tensors, sizeof *file->by_name, by_name);
    return TDM_OK; /* names are unique: the JSON reader refuses a key that is there twice */
}

static tdm_status read_tensors(tdmi_safetensors *file, uint64_t header_bytes, uint64_t data_bytes,
                               tdm_error *err)
{
    const tdm_json_value *root = tdm_json_root(file->document);
    const size_t n = tdm_json_count(root);
    TDMI_AT_END(tdmi_free_at) struct placed *placed = NULL;
    TDMI_TRY(TDMI_NEW(placed, n + 1, err));
    for (size_t i = 0; i < n; i++) {
        const tdm_json_value *entry = tdm_json_at(root, i);
        if (entry == file->metadata)
            continue;
        struct placed *next = &placed[file->n_tensors++];
        next->tensor.name = tdm_json_key_at(root, i);
        TDMI_TRY(read_entry(file, entry, data_bytes, &next->tensor, &next->begin, err));
    }
    qsort(placed, file->n_tensors, sizeof *placed, by_place);
    TDMI_TRY(check_cover(file, placed, header_bytes, data_bytes, err));
    return index_names(file, placed, err);
}

/* ---- data ------------------------------------------------------------------------------- */

/* hash: NULL, or what the values are added to. */
static tdm_status read_data(tdmi_safetensors *file, const struct input *input,
                            uint64_t header_bytes, tdmi_xxh64 *hash, tdm_error *err)
{
    uint64_t from = TDMI_SAFETENSORS_PREFIX + header_bytes;
    size_t all = TDMI_SAFETENSORS_ALIGNMENT;
    for (size_t i = 0; i < file->n_tensors; i++)
        all += tdmi_safetensors_padded(file->tensors[i].bytes);
    if (!input->is_lent)
        TDMI_CHECK_MEMORY(file->data = tdmi_alloc_aligned(all), err);
    uint8_t *to = file->data;
    for (size_t i = 0; i < file->n_tensors; i++) {
        struct tdmi_safetensors_tensor *tensor = &file->tensors[i];
        if (input->is_lent) {
            tensor->data = input->bytes + from;
        } else {
            tensor->data = to;
            TDM_TRY(read_at(input, from, to, tensor->bytes, err), err, "cannot read tensor '%s'",
                    tensor->name);
            to += tdmi_safetensors_padded(tensor->bytes);
        }
        if (hash)
            tdmi_xxh64_add(hash, tensor->data, tensor->bytes);
        from += tensor->bytes;
    }
    return TDM_OK;
}

/* Add prefix and header to the hash, with the digits of the checksum taken as '0'. */
static tdm_status hash_header(tdmi_safetensors *file, uint64_t header_bytes, const char *stored,
                              tdmi_xxh64 *hash, tdm_error *err)
{
    char *digits = tdmi_safetensors_digits(file->header, (size_t)header_bytes);
    if (digits == NULL || strlen(stored) != TDMI_SAFETENSORS_DIGITS ||
        memcmp(stored, digits, TDMI_SAFETENSORS_DIGITS) != 0)
        return BAD(err, file,
                   "metadata '" TDMI_SAFETENSORS_CHECKSUM_KEY
                   "' is not %d hex digits in the usual place",
                   TDMI_SAFETENSORS_DIGITS);
    memset(digits, '0', TDMI_SAFETENSORS_DIGITS);
    uint8_t prefix[TDMI_SAFETENSORS_PREFIX];
    tdmi_write_little(prefix, header_bytes, sizeof prefix);
    tdmi_xxh64_init(hash, 0);
    tdmi_xxh64_add(hash, prefix, sizeof prefix);
    tdmi_xxh64_add(hash, file->header, (size_t)header_bytes);
    return TDM_OK;
}

/* ---- open ------------------------------------------------------------------------------- */

static tdm_status read_all(tdmi_safetensors *file, const struct input *input, tdm_error *err)
{
    uint64_t header_bytes = 0;
    tdmi_xxh64 hash;
    char found[TDMI_SAFETENSORS_DIGITS + 1] = "";
    TDMI_TRY(read_header(file, input, &header_bytes, err));
    TDMI_TRY(read_metadata(file, err));
    TDMI_TRY(read_tensors(file, header_bytes,
                          input->n_bytes - TDMI_SAFETENSORS_PREFIX - header_bytes, err));
    const char *stored = tdmi_safetensors_metadata(file, TDMI_SAFETENSORS_CHECKSUM_KEY);
    if (stored)
        TDMI_TRY(hash_header(file, header_bytes, stored, &hash, err));
    tdmi_free(tdmi_take(&file->header));
    TDMI_TRY(read_data(file, input, header_bytes, stored ? &hash : NULL, err));
    if (stored)
        tdmi_safetensors_put_digits(found, tdmi_xxh64_result(&hash));
    if (stored && strcmp(found, stored) != 0)
        return BAD(err, file,
                   "the file is damaged or was changed by another program: its checksum is %s, "
                   "stored was %s",
                   found, stored);
    return TDM_OK;
}

static tdm_status open_input(const struct input *input, tdmi_safetensors **opened, tdm_error *err)
{
    TDMI_AT_END(tdmi_safetensors_close_at) tdmi_safetensors *file = NULL;
    TDMI_TRY(TDMI_NEW(file, 1, err));
    TDMI_TRY(TDMI_NEW(file->path, strlen(input->name) + 1, err));
    memcpy(file->path, input->name, strlen(input->name));
    TDMI_TRY(read_all(file, input, err));
    *opened = tdmi_take(&file);
    return TDM_OK;
}

tdm_status tdmi_safetensors_open(const char *path, tdmi_safetensors **opened, tdm_error *err)
{
    struct stat facts;
    TDMI_AT_END(tdmi_close_at) const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return TDM_FAIL(err, TDM_E_INPUT, "cannot open %s: %s", path, strerror(errno));
    if (fstat(file, &facts) != 0 || !S_ISREG(facts.st_mode))
        return TDM_FAIL(err, TDM_E_INPUT, "%s is not a file but a folder, device or pipe", path);
    const struct input input = {.name = path, .file = file, .n_bytes = (uint64_t)facts.st_size};
    return open_input(&input, opened, err);
}

tdm_status tdmi_safetensors_open_bytes(const void *bytes, size_t length_bytes, const char *name,
                                       tdmi_safetensors **file, tdm_error *err)
{
    struct input input = {.name = name, .file = -1, .bytes = bytes, .n_bytes = length_bytes};
    return open_input(&input, file, err);
}

tdm_status tdmi_safetensors_lend(const void *bytes, size_t length_bytes, const char *name,
                                 tdmi_safetensors **file, tdm_error *err)
{
    struct input input = {
        .name = name, .file = -1, .bytes = bytes, .n_bytes = length_bytes, .is_lent = true};
    return open_input(&input, file, err);
}

void tdmi_safetensors_close(tdmi_safetensors *file)
{
    if (file == NULL)
        return;
    tdmi_free(file->data);
    tdmi_free(file->by_name);
    tdmi_free(file->tensors);
    tdm_json_document_free(file->document);
    tdmi_free(file->header);
    tdmi_free(file->path);
    tdmi_free(file);
}

/* ---- queries ---------------------------------------------------------------------------- */

size_t tdmi_safetensors_count(const tdmi_safetensors *file)
{
    return file->n_tensors;
}

const struct tdmi_safetensors_tensor *tdmi_safetensors_at(const tdmi_safetensors *file,
                                                          size_t index)
{
    return &file->tensors[index];
}

const struct tdmi_safetensors_tensor *tdmi_safetensors_find(const tdmi_safetensors *file,
                                                            const char *name)
{
    const struct tdmi_safetensors_tensor sample = {.name = name}, *key = &sample;
    const struct tdmi_safetensors_tensor **found =
        bsearch(&key, file->by_name, file->n_tensors, sizeof *file->by_name, by_name);
    return found == NULL ? NULL : *found;
}

/* "F32 [3,3,3,32]". */
static void describe(char *text, size_t text_bytes, enum tdmi_dtype dtype, int rank,
                     const int64_t *shape)
{
    int n = snprintf(text, text_bytes, "%s [", tdmi_dtype_name(dtype));
    for (int i = 0; i < rank && (size_t)n < text_bytes; i++)
        n +=
            snprintf(text + n, text_bytes - (size_t)n, i == 0 ? "%" PRId64 : ",%" PRId64, shape[i]);
    if ((size_t)n < text_bytes)
        snprintf(text + n, text_bytes - (size_t)n, "]");
}

tdm_status tdmi_safetensors_need(const tdmi_safetensors *file, const char *name,
                                 enum tdmi_dtype dtype, int rank, const int64_t *shape,
                                 const void **data, tdm_error *err)
{
    const struct tdmi_safetensors_tensor *tensor = tdmi_safetensors_find(file, name);
    char needed[200], found[200];
    describe(needed, sizeof needed, dtype, rank, shape);
    if (tensor == NULL)
        return BAD(err, file, "it has no tensor '%s'; %s is needed", name, needed);
    bool is_same = tensor->dtype == dtype && tensor->rank == rank;
    for (int i = 0; is_same && i < rank; i++)
        is_same = tensor->shape[i] == shape[i];
    describe(found, sizeof found, tensor->dtype, tensor->rank, tensor->shape);
    if (!is_same)
        return BAD(err, file, "tensor '%s' is %s; %s is needed", name, found, needed);
    *data = tensor->data;
    return TDM_OK;
}

const char *tdmi_safetensors_metadata(const tdmi_safetensors *file, const char *key)
{
    return tdm_json_as_string(tdm_json_member(file->metadata, key), NULL);
}

size_t tdmi_safetensors_metadata_count(const tdmi_safetensors *file)
{
    return tdm_json_count(file->metadata);
}

const char *tdmi_safetensors_metadata_key(const tdmi_safetensors *file, size_t index)
{
    return tdm_json_key_at(file->metadata, index);
}
