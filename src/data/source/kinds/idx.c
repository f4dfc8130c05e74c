/*
 * IDX files, the form of MNIST and its many followers.
 *
 *     00 00 type n_dimensions | size of each dimension (32 bits, big endian) | values
 *
 *     images: type 08 (bytes), n × height × width (× 1 or 3)     train-images-idx3-ubyte
 *     labels: type 08,         n                                 train-labels-idx1-ubyte
 *
 * An images file is known by its name, and its labels stand beside it under the same name with
 * "images" and the number of dimensions exchanged. A folder with a train and a t10k or test pair
 * has those parts. IDX names no classes: the numbers that occur are the names. Either file may be
 * compressed by gzip.
 */
#include "data/source/listing.h"
#include "base/bytes.h"
#include "base/text/text.h"
#include "io/storage/records.h"

#include "base/file/file.h"
#include "base/memory.h"
#include <stdio.h>
#include <string.h>

enum {
    MAX_PAIRS = 3, /* train, val, test */
    MAX_DIMENSIONS = 4,
    LARGEST_SIDE = 65535,
    TYPE_BYTES = 0x08,
    CHUNK_BYTES = 64 * 1024
};

struct header {
    int n_dimensions;
    int64_t sizes[MAX_DIMENSIONS];
    int64_t head_bytes, value_bytes; /* before the values; of the values */
};

struct pair {
    struct tdmi_records images;
    const char *images_path, *labels_path, *name; /* in the arena of the listing */
    enum tdmi_part part;
    int64_t first_item, n_items;
    int64_t width, height, head_bytes;
    int channels;
};

struct idx {
    struct tdmi_listing listing; /* first: the table's queries take it */
    struct pair pairs[MAX_PAIRS];
    int n_pairs;
};

/* ---- names --------------------------------------------------------------------------------- */

/* The last place of word, or NULL. */
static const char *find_last(const char *text, const char *word)
{
    const char *last = NULL;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
        last = at;
    return last;
}

/* "train-images-idx3-ubyte", "t10k-images.idx3-ubyte", … with or without ".gz". */
static bool is_images_name(const char *name)
{
    const char *images = find_last(name, "images");
    const char *idx = images == NULL ? NULL : find_last(images, "idx");
    return idx != NULL && (idx[3] == '3' || idx[3] == '4') &&
           (strcmp(idx + 4, "-ubyte") == 0 || strcmp(idx + 4, "-ubyte.gz") == 0);
}

static bool is_compressed_name(const char *name)
{
    return tdmi_ends_with(name, ".gz");
}

static enum tdmi_part part_of_name(const char *name)
{
    if (strstr(name, "train") != NULL)
        return TDMI_PART_TRAIN;
    if (strstr(name, "t10k") != NULL || strstr(name, "test") != NULL)
        return TDMI_PART_TEST;
    return strstr(name, "val") != NULL ? TDMI_PART_VAL : TDMI_PART_NONE;
}

static char *labels_path_of(tdmi_arena *arena, const char *images_path)
{
    char *path = tdmi_arena_copy(arena, images_path);
    if (path == NULL)
        return NULL;
    size_t folder_bytes = (size_t)(tdmi_path_name(images_path) - images_path);
    char *word = path + (find_last(path + folder_bytes, "images") - path);
    memcpy(word, "labels", 6);
    path[find_last(word, "idx") - path + 3] = '1';
    if (tdmi_storage_kind(path) != TDMI_FILE_MISSING)
        return path;
    /* One of the two may be compressed and the other not. */
    char *other = is_compressed_name(path)
                      ? tdmi_arena_printf(arena, "%.*s", (int)(strlen(path) - 3), path)
                      : tdmi_arena_printf(arena, "%s.gz", path);
    return other != NULL && tdmi_storage_kind(other) == TDMI_FILE_MISSING ? path : other;
}

static bool folder_has_images(const char *path)
{
    tdmi_arena arena;
    tdmi_arena_init(&arena, 0);
    struct tdmi_place_entry *entries = NULL;
    size_t n_entries = 0;
    bool has_images = false;
    if (tdmi_storage_list(path, false, &arena, &entries, &n_entries, NULL) == TDM_OK)
        for (size_t i = 0; i < n_entries && !has_images; i++)
            has_images = entries[i].kind == TDMI_FILE_REGULAR && is_images_name(entries[i].name);
    tdmi_arena_release(&arena);
    return has_images;
}

static bool begins_like_idx(const char *path)
{
    struct tdmi_records records = {0};
    uint8_t head[4];
    bool is_idx = tdmi_records_open(&records, path, NULL) == TDM_OK &&
                  tdmi_records_read(&records, 0, head, sizeof head, NULL) == TDM_OK &&
                  head[0] == 0 && head[1] == 0 && head[2] >= 0x08 && head[2] <= 0x0e &&
                  head[3] >= 1 && head[3] <= MAX_DIMENSIONS;
    tdmi_records_close(&records);
    return is_idx;
}

static bool idx_can_open(const char *path)
{
    switch (tdmi_storage_kind(path)) {
    case TDMI_FILE_FOLDER:
        return folder_has_images(path);
    case TDMI_FILE_REGULAR:
        return is_images_name(tdmi_path_name(path)) || begins_like_idx(path);
    default:
        return false;
    }
}

/* ---- heads --------------------------------------------------------------------------------- */

static tdm_status read_header(const struct tdmi_records *records, struct header *header,
                              tdm_error *err)
{
    uint8_t head[4 + 4 * MAX_DIMENSIONS];
    TDM_TRY(tdmi_records_read(records, 0, head, 4, err), err, "'%s' is too short for an IDX file",
            records->path);
    if (head[0] != 0 || head[1] != 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' is no IDX file: it begins with %02x %02x instead of 00 00",
                        records->path, head[0], head[1]);
    if (head[2] != TYPE_BYTES)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' holds values of type %02x; only bytes (08) are pictures or labels",
                        records->path, head[2]);
    if (head[3] < 1 || head[3] > MAX_DIMENSIONS)
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' has %d dimensions; 1 to %d can be read",
                        records->path, head[3], MAX_DIMENSIONS);
    *header = (struct header){.n_dimensions = head[3], .head_bytes = 4 + 4 * head[3]};
    TDM_TRY(tdmi_records_read(records, 4, head + 4, 4 * (size_t)head[3], err), err,
            "'%s' ends within its head", records->path);
    int64_t room = records->size_bytes - header->head_bytes;
    header->value_bytes = 1;
    for (int i = 0; i < header->n_dimensions; i++) {
        header->sizes[i] = (int64_t)tdmi_read_big(head + 4 + 4 * i, 4);
        if (header->sizes[i] == 0)
            header->value_bytes = 0;
    }
    for (int i = 0; i < header->n_dimensions && header->value_bytes > 0; i++) {
        /* The product stays within the file, so it cannot overflow. */
        if (header->value_bytes > room / header->sizes[i])
            return TDM_FAIL(err, TDM_E_INPUT,
                            "'%s' promises more values than its %lld bytes can hold (dimension %d "
                            "is %lld): it is cut short or damaged",
                            records->path, (long long)records->size_bytes, i + 1,
                            (long long)header->sizes[i]);
        header->value_bytes *= header->sizes[i];
    }
    if (header->value_bytes != room)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' promises %lld bytes of values and holds %lld: it is damaged",
                        records->path, (long long)header->value_bytes, (long long)room);
    return TDM_OK;
}

static tdm_status read_images_header(struct pair *pair, tdm_error *err)
{
    struct header header = {0};
    TDM_TRY(read_header(&pair->images, &header, err), err, "cannot read the images of '%s'",
            pair->images_path);
    pair->n_items = header.sizes[0];
    pair->height = header.sizes[1];
    pair->width = header.sizes[2];
    pair->channels = header.n_dimensions == 4 && header.sizes[3] <= 3 ? (int)header.sizes[3] : 1;
    pair->head_bytes = header.head_bytes;
    if (header.n_dimensions < 3 ||
        (header.n_dimensions == 4 && header.sizes[3] != 1 && header.sizes[3] != 3))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' holds no pictures: they have 3 dimensions, or 4 with 1 or 3 last, "
                        "and this has %d",
                        pair->images_path, header.n_dimensions);
    if (pair->n_items > 0 && (pair->height < 1 || pair->height > LARGEST_SIDE || pair->width < 1 ||
                              pair->width > LARGEST_SIDE))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' holds pictures of %lld x %lld pixels; 1 to %d a side can be read",
                        pair->images_path, (long long)pair->height, (long long)pair->width,
                        LARGEST_SIDE);
    return TDM_OK;
}

/* ---- opening ------------------------------------------------------------------------------- */

static tdm_status add_items(struct idx *idx, const struct pair *pair, const uint8_t *labels,
                            tdm_error *err)
{
    for (int64_t i = 0; i < pair->n_items; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%.990s#%lld", pair->name, (long long)i);
        TDM_TRY(tdmi_listing_add_item(&idx->listing, path, labels[i], pair->part, err), err,
                "cannot list the pictures of '%s'", pair->images_path);
    }
    return TDM_OK;
}

static tdm_status read_labels(struct idx *idx, const struct pair *pair, tdm_error *err)
{
    struct tdmi_records records = {0};
    struct header header = {0};
    uint8_t *labels = NULL;
    tdm_status status = TDM_WRAP(err, tdmi_records_open(&records, pair->labels_path, err),
                                 "the labels of '%s' are expected beside it", pair->images_path);
    if (status == TDM_OK)
        status = read_header(&records, &header, err);
    if (status != TDM_OK)
        goto out;
    if (header.n_dimensions != 1 || header.sizes[0] != pair->n_items) {
        status = TDM_FAIL(err, TDM_E_INPUT,
                          "'%s' holds %lld labels in %d dimensions, and '%s' %lld pictures; one "
                          "label for each picture is expected",
                          pair->labels_path, (long long)header.sizes[0], header.n_dimensions,
                          pair->images_path, (long long)pair->n_items);
        goto out;
    }
    labels = tdmi_alloc((size_t)pair->n_items, 1);
    if (labels == NULL) {
        status = TDM_FAIL(err, TDM_E_MEMORY, "no memory for the labels of '%s'", pair->images_path);
        goto out;
    }
    status = tdmi_records_read(&records, header.head_bytes, labels, (size_t)pair->n_items, err);
    if (status == TDM_OK)
        status = add_items(idx, pair, labels, err);
out:
    tdmi_free(labels);
    tdmi_records_close(&records);
    return status;
}

static tdm_status open_pair(struct idx *idx, struct pair *pair, tdm_error *err)
{
    tdm_status status = tdmi_records_open(&pair->images, pair->images_path, err);
    if (status == TDM_OK)
        status = read_images_header(pair, err);
    pair->first_item = idx->listing.n_items;
    return status == TDM_OK ? read_labels(idx, pair, err) : status;
}

static tdm_status add_pair(struct idx *idx, const char *path, tdm_error *err)
{
    const char *name = tdmi_path_name(path);
    if (!is_images_name(name))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' does not bear the name of an IDX images file, so its labels cannot "
                        "be found: give a file named like train-images-idx3-ubyte",
                        path);
    enum tdmi_part part = part_of_name(name);
    for (int i = 0; i < idx->n_pairs; i++)
        if (idx->pairs[i].part == part || part == TDMI_PART_NONE ||
            idx->pairs[i].part == TDMI_PART_NONE)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "'%s' and '%s' lie in one folder and are not one train, one val and "
                            "one test file: give one of them, or move them apart",
                            idx->pairs[i].images_path, path);
    struct pair *pair = &idx->pairs[idx->n_pairs++];
    pair->images_path = tdmi_arena_copy(&idx->listing.arena, path);
    pair->labels_path = labels_path_of(&idx->listing.arena, path);
    if (pair->images_path == NULL || pair->labels_path == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to open '%s'", path);
    pair->name = tdmi_path_name(pair->images_path);
    pair->part = part;
    return TDM_OK;
}

static bool is_labels_of_a_pair(const struct idx *idx, const char *name)
{
    for (int i = 0; i < idx->n_pairs; i++)
        if (strcmp(tdmi_path_name(idx->pairs[i].labels_path), name) == 0)
            return true;
    return false;
}

/* Compressed files are passed over when a plain one is there too. */
static tdm_status find_pairs(struct idx *idx, const char *folder, tdmi_arena *arena, tdm_error *err)
{
    struct tdmi_place_entry *entries = NULL;
    size_t n_entries = 0;
    TDM_TRY(tdmi_storage_list(folder, false, arena, &entries, &n_entries, err), err,
            "cannot list the folder '%s'", folder);
    for (int pass = 0; pass < 2 && idx->n_pairs == 0; pass++)
        for (size_t i = 0; i < n_entries; i++) {
            if (entries[i].kind != TDMI_FILE_REGULAR || !is_images_name(entries[i].name) ||
                is_compressed_name(entries[i].name) != (pass == 1))
                continue;
            const char *path = tdmi_path_join(arena, folder, entries[i].name);
            if (path == NULL)
                return TDM_FAIL(err, TDM_E_MEMORY, "no memory to list the folder '%s'", folder);
            TDM_TRY(add_pair(idx, path, err), err, "cannot use the IDX files of '%s'", folder);
        }
    for (size_t i = 0; i < n_entries; i++)
        idx->listing.n_ignored += entries[i].kind != TDMI_FILE_FOLDER &&
                                  entries[i].name[0] != '.' && entries[i].name[0] != '_' &&
                                  !is_images_name(entries[i].name) &&
                                  !is_labels_of_a_pair(idx, entries[i].name);
    return TDM_OK;
}

static void idx_close(void *self)
{
    struct idx *idx = self;
    for (int i = 0; i < idx->n_pairs; i++)
        tdmi_records_close(&idx->pairs[i].images);
    tdmi_listing_release(&idx->listing);
    tdmi_free(idx);
}

static tdm_status idx_open(const char *path, const struct tdm_source_options *options, void **self,
                           tdm_error *err)
{
    (void)options; /* none of them is for this kind; source.c sees to that */
    *self = NULL;
    struct idx *idx = tdmi_alloc(1, sizeof *idx);
    if (idx == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to open '%s'", path);
    tdmi_listing_init(&idx->listing);
    tdmi_arena arena;
    tdmi_arena_init(&arena, 0);
    tdm_status status = tdmi_storage_kind(path) == TDMI_FILE_FOLDER
                            ? find_pairs(idx, path, &arena, err)
                            : add_pair(idx, path, err);
    if (idx->n_pairs == 1)
        idx->pairs[0].part = TDMI_PART_NONE; /* alone it says nothing about the others */
    for (int i = 0; i < idx->n_pairs && status == TDM_OK; i++)
        status = open_pair(idx, &idx->pairs[i], err);
    if (status == TDM_OK)
        status = tdmi_listing_classes_of_numbers(&idx->listing, err);
    tdmi_arena_release(&arena);
    if (status == TDM_OK)
        *self = idx;
    else
        idx_close(idx);
    return status;
}

/* ---- reading ------------------------------------------------------------------------------- */

static tdm_status idx_read(const void *self, int64_t index, tdmi_text *bytes, tdm_error *err)
{
    const struct idx *idx = self;
    const struct pair *pair = idx->pairs;
    while (index >= pair->first_item + pair->n_items)
        pair++;
    int64_t picture_bytes = pair->width * pair->height * pair->channels;
    int64_t offset = pair->head_bytes + (index - pair->first_item) * picture_bytes;
    tdmi_records_picture_head(bytes, pair->channels, pair->width, pair->height);
    char chunk[CHUNK_BYTES];
    for (int64_t left = picture_bytes; left > 0;) {
        size_t length = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
        TDM_TRY(tdmi_records_read(&pair->images, offset, chunk, length, err), err,
                "cannot read the picture '%s'", idx->listing.items[index].path);
        tdmi_text_add(bytes, chunk, length);
        left -= (int64_t)length;
        offset += (int64_t)length;
    }
    if (bytes->is_broken)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the picture '%s'",
                        idx->listing.items[index].path);
    return TDM_OK;
}

const struct tdmi_source_table tdmi_source_idx = {
    .name = "idx",
    .summary = "IDX files of images and labels, as of MNIST",
    .can_open = idx_can_open,
    .open = idx_open,
    .close = idx_close,
    .n_classes = tdmi_listing_n_classes,
    .class_name = tdmi_listing_class_name,
    .n_items = tdmi_listing_n_items,
    .item = tdmi_listing_item,
    .n_ignored = tdmi_listing_n_ignored,
    .read = idx_read,
};
