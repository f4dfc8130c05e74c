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
#include "base/bytes.h"
#include "data/source/listing.h"
#include "io/storage/records.h"

enum {
    MAX_PAIRS = 3, /* train, val, test */
    MAX_DIMENSIONS = 4,
    LARGEST_SIDE = 65535,
    TYPE_BYTES = 0x08
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
    struct tdmi_listing listing;
    struct pair pairs[MAX_PAIRS];
    int n_pairs;
};

/* ---- names --------------------------------------------------------------------------------- */

/* The last occurrence of word, or NULL. */
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
    char *other = tdmi_ends_with(path, ".gz")
                      ? tdmi_arena_printf(arena, "%.*s", (int)(strlen(path) - 3), path)
                      : tdmi_arena_printf(arena, "%s.gz", path);
    return other != NULL && tdmi_storage_kind(other) == TDMI_FILE_MISSING ? path : other;
}

static bool begins_like_idx(const char *path)
{
    TDMI_AT_END(tdmi_records_close) struct tdmi_records records = {0};
    uint8_t head[4];
    return tdmi_records_open_beginning(&records, path, sizeof head, NULL) == TDM_OK &&
           tdmi_records_read(&records, 0, head, sizeof head, NULL) == TDM_OK && head[0] == 0 &&
           head[1] == 0 && head[2] >= 0x08 && head[2] <= 0x0e && head[3] >= 1 &&
           head[3] <= MAX_DIMENSIONS;
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
                        "'%s' holds values of type %02x; only bytes (08) are images or labels",
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
                        "'%s' holds no images: they have 3 dimensions, or 4 with 1 or 3 last, and "
                        "this has %d",
                        pair->images_path, header.n_dimensions);
    if (pair->n_items > 0 && (pair->height < 1 || pair->height > LARGEST_SIDE || pair->width < 1 ||
                              pair->width > LARGEST_SIDE))
        return TDM_FAIL(
            err, TDM_E_INPUT, "'%s' holds images of %lld x %lld pixels; 1 to %d a side can be read",
            pair->images_path, (long long)pair->height, (long long)pair->width, LARGEST_SIDE);
    return TDM_OK;
}

/* ---- opening ------------------------------------------------------------------------------- */

static tdm_status read_labels(struct idx *idx, const struct pair *pair, tdm_error *err)
{
    TDMI_AT_END(tdmi_records_close) struct tdmi_records records = {0};
    TDMI_AT_END(tdmi_free_at) uint8_t *labels = NULL;
    struct header header = {0};
    TDM_TRY(tdmi_records_open(&records, pair->labels_path, err), err,
            "the labels of '%s' are expected beside it", pair->images_path);
    TDMI_TRY(read_header(&records, &header, err));
    if (header.n_dimensions != 1 || header.sizes[0] != pair->n_items)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' holds %lld labels in %d dimensions, and '%s' %lld images; one label "
                        "for each image is expected",
                        pair->labels_path, (long long)header.sizes[0], header.n_dimensions,
                        pair->images_path, (long long)pair->n_items);
    TDMI_TRY(TDMI_NEW(labels, pair->n_items, err));
    TDMI_TRY(tdmi_records_read(&records, header.head_bytes, labels, (size_t)pair->n_items, err));
    for (int64_t i = 0; i < pair->n_items; i++)
        TDMI_TRY(tdmi_listing_add_record(&idx->listing, pair->name, i, labels[i], pair->part, err));
    return TDM_OK;
}

static tdm_status open_pair(struct idx *idx, struct pair *pair, tdm_error *err)
{
    TDMI_TRY(tdmi_records_open(&pair->images, pair->images_path, err));
    TDMI_TRY(read_images_header(pair, err));
    pair->first_item = idx->listing.n_items;
    return read_labels(idx, pair, err);
}

static tdm_status add_pair(void *self, const char *path, tdm_error *err)
{
    struct idx *idx = self;
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
    TDMI_CHECK_MEMORY(pair->images_path != NULL && pair->labels_path != NULL, err);
    pair->name = tdmi_path_name(pair->images_path);
    pair->part = part;
    return TDM_OK;
}

static bool is_labels_of_a_pair(const void *self, const char *name)
{
    const struct idx *idx = self;
    for (int i = 0; i < idx->n_pairs; i++)
        if (strcmp(tdmi_path_name(idx->pairs[i].labels_path), name) == 0)
            return true;
    return false;
}

static const struct tdmi_file_names names = {is_images_name, add_pair, is_labels_of_a_pair};

static bool idx_can_open(const char *path)
{
    enum tdmi_file_kind kind = tdmi_storage_kind(path);
    if (kind == TDMI_FILE_REGULAR)
        return is_images_name(tdmi_path_name(path)) || begins_like_idx(path);
    return kind == TDMI_FILE_FOLDER && tdmi_file_names_fit(path, &names);
}

static void idx_release(void *self)
{
    struct idx *idx = self;
    for (int i = 0; i < idx->n_pairs; i++)
        tdmi_records_close(&idx->pairs[i].images);
}

static tdm_status idx_open(const char *path, const struct tdm_source_options *options, void *self,
                           tdm_error *err)
{
    (void)options; /* source.c has refused those of other kinds */
    struct idx *idx = self;
    const bool is_folder = tdmi_storage_kind(path) == TDMI_FILE_FOLDER;
    TDMI_TRY(is_folder ? tdmi_listing_add_files(&idx->listing, path, &names, err)
                       : add_pair(idx, path, err));
    for (int i = 0; i < idx->n_pairs; i++)
        TDMI_TRY(open_pair(idx, &idx->pairs[i], err));
    tdmi_listing_forget_lone_part(&idx->listing);
    return tdmi_listing_classes_of_numbers(&idx->listing, err);
}

/* ---- reading ------------------------------------------------------------------------------- */

static tdm_status idx_read(const void *self, int64_t index, tdmi_text *bytes, tdm_error *err)
{
    const struct idx *idx = self;
    const struct pair *pair = idx->pairs;
    while (index >= pair->first_item + pair->n_items)
        pair++;
    const size_t image_bytes = (size_t)(pair->width * pair->height * pair->channels);
    int64_t offset = pair->head_bytes + (index - pair->first_item) * (int64_t)image_bytes;
    tdmi_records_picture_head(bytes, pair->channels, pair->width, pair->height);
    char *pixels = tdmi_text_room(bytes, image_bytes);
    TDMI_CHECK_MEMORY(pixels, err);
    return TDM_WRAP(err, tdmi_records_read(&pair->images, offset, pixels, image_bytes, err),
                    "cannot read the image '%s'", idx->listing.items[index].path);
}

const struct tdmi_source_table tdmi_source_idx = {
    .name = "idx",
    .summary = "IDX files of images and labels, as of MNIST",
    .state_bytes = sizeof(struct idx),
    .is_prepared = true,
    .can_open = idx_can_open,
    .open = idx_open,
    .release = idx_release,
    .read = idx_read,
};
