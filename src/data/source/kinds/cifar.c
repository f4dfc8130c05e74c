/*
 * CIFAR in its binary form: records of labels and planes of 32 × 32 bytes, nothing before or
 * between them.
 *
 *     CIFAR-10    label | 1024 red | 1024 green | 1024 blue            3073 bytes
 *     CIFAR-100   coarse label | fine label | red | green | blue       3074 bytes
 *
 * A folder with data_batch_*.bin and test_batch.bin, or train.bin and test.bin, has those parts; a
 * single .bin file is to be split. CIFAR-100 is read by its fine labels. Class names come from
 * batches.meta.txt or fine_label_names.txt beside the records, else the numbers are the names.
 */
#include "data/source/listing.h"
#include "io/storage/records.h"

enum {
    SIDE = 32,
    PLANE_BYTES = SIDE * SIDE,
    MAX_FILES = 64,
    RECORDS_AT_ONCE = 64,
    LARGEST_NAMES_BYTES = 64 * 1024
};

/* One of the two forms. */
struct form {
    const char *name, *names_file;
    int label_bytes;      /* before the pixels; the last one is the class */
    int n_labels[2];      /* what each of them stays below */
    int64_t record_bytes; /* label_bytes + 3 planes */
};
static const struct form cifar10 = {"CIFAR-10", "batches.meta.txt", 1, {10, 0}, 3073};
static const struct form cifar100 = {"CIFAR-100", "fine_label_names.txt", 2, {20, 100}, 3074};

struct batch {
    struct tdmi_records records;
    const char *path, *name; /* in the arena of the listing */
    enum tdmi_part part;
    int64_t first_item, n_items;
};

struct cifar {
    struct tdmi_listing listing;
    const struct form *form;
    struct batch batches[MAX_FILES];
    int n_batches;
};

/* ---- names --------------------------------------------------------------------------------- */

static bool begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

static bool ends_as_records(const char *name)
{
    return tdmi_ends_with(name, ".bin") || tdmi_ends_with(name, ".bin.gz");
}

/* The form that a file's name stands for, or NULL. */
static const struct form *form_of_name(const char *name)
{
    if ((begins_with(name, "data_batch") || begins_with(name, "test_batch")) &&
        ends_as_records(name))
        return &cifar10;
    if (strcmp(name, "train.bin") == 0 || strcmp(name, "test.bin") == 0)
        return &cifar100;
    return NULL;
}

static bool is_records_name(const char *name)
{
    return form_of_name(name) != NULL;
}

/* ---- finding the files --------------------------------------------------------------------- */

static tdm_status add_batch(struct cifar *cifar, const char *path, const struct form *form,
                            tdm_error *err)
{
    if (cifar->form != NULL && cifar->form != form)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' is of %s, and '%s' beside it of %s: name one of them, or move them "
                        "apart",
                        path, form->name, cifar->batches[0].path, cifar->form->name);
    if (cifar->n_batches == MAX_FILES)
        return TDM_FAIL(err, TDM_E_INPUT, "more than %d CIFAR files lie in one folder", MAX_FILES);
    struct batch *batch = &cifar->batches[cifar->n_batches++];
    cifar->form = form;
    batch->path = tdmi_arena_copy(&cifar->listing.arena, path);
    TDMI_CHECK_MEMORY(batch->path, err);
    batch->name = tdmi_path_name(batch->path);
    batch->part = begins_with(batch->name, "test") ? TDMI_PART_TEST : TDMI_PART_TRAIN;
    return TDM_WRAP(err, tdmi_records_open(&batch->records, batch->path, err),
                    "cannot open the records");
}

static tdm_status add_named_batch(void *self, const char *path, tdm_error *err)
{
    return add_batch(self, path, form_of_name(tdmi_path_name(path)), err);
}

static bool is_names_file(const void *self, const char *name)
{
    const struct cifar *cifar = self;
    return cifar->form != NULL && strcmp(name, cifar->form->names_file) == 0;
}

static const struct tdmi_file_names names = {is_records_name, add_named_batch, is_names_file};

static bool cifar_can_open(const char *path)
{
    enum tdmi_file_kind kind = tdmi_storage_kind(path);
    if (kind == TDMI_FILE_REGULAR)
        return ends_as_records(path) || is_records_name(tdmi_path_name(path));
    return kind == TDMI_FILE_FOLDER && tdmi_file_names_fit(path, &names);
}

static tdm_status find_batches(struct cifar *cifar, const char *folder, tdm_error *err)
{
    TDMI_TRY(tdmi_listing_add_files(&cifar->listing, folder, &names, err));
    if (cifar->n_batches == 0) /* removed since the folder was probed */
        return TDM_FAIL(err, TDM_E_INPUT, "no CIFAR file lies in '%s' any more", folder);
    return TDM_OK;
}

/* A file of another name is of the form whose records fill it. */
static tdm_status add_single(struct cifar *cifar, const char *path, tdm_error *err)
{
    const struct form *form = form_of_name(tdmi_path_name(path));
    if (form == NULL) {
        TDMI_AT_END(tdmi_records_close) struct tdmi_records records = {0};
        TDM_TRY(tdmi_records_open(&records, path, err), err, "cannot open the records");
        form = records.size_bytes % cifar10.record_bytes == 0 ? &cifar10 : &cifar100;
    }
    return TDM_WRAP(err, add_batch(cifar, path, form, err), "cannot use '%s'", path);
}

/* ---- records ------------------------------------------------------------------------------- */

static tdm_status add_items(struct cifar *cifar, const struct batch *batch, int64_t first,
                            const uint8_t *records, int64_t n, tdm_error *err)
{
    const struct form *form = cifar->form;
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *labels = records + i * form->record_bytes;
        for (int l = 0; l < form->label_bytes; l++)
            if (labels[l] >= form->n_labels[l])
                return TDM_FAIL(err, TDM_E_INPUT,
                                "record %lld of '%s' has label %d; those of %s are 0 to %d",
                                (long long)(first + i), batch->path, labels[l], form->name,
                                form->n_labels[l] - 1);
        TDMI_TRY(tdmi_listing_add_record(&cifar->listing, batch->name, first + i,
                                         labels[form->label_bytes - 1], batch->part, err));
    }
    return TDM_OK;
}

static tdm_status list_batch(struct cifar *cifar, struct batch *batch, tdm_error *err)
{
    const struct form *form = cifar->form;
    if (batch->records.size_bytes % form->record_bytes != 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' has %lld bytes, which is no number of %s records of %lld bytes: it "
                        "is cut short, or something else",
                        batch->path, (long long)batch->records.size_bytes, form->name,
                        (long long)form->record_bytes);
    batch->first_item = cifar->listing.n_items;
    batch->n_items = batch->records.size_bytes / form->record_bytes;
    TDMI_AT_END(tdmi_free_at) uint8_t *records = NULL;
    TDMI_TRY(TDMI_NEW(records, RECORDS_AT_ONCE * form->record_bytes, err));
    for (int64_t first = 0; first < batch->n_items; first += RECORDS_AT_ONCE) {
        int64_t left = batch->n_items - first, n = left < RECORDS_AT_ONCE ? left : RECORDS_AT_ONCE;
        TDMI_TRY(tdmi_records_read(&batch->records, first * form->record_bytes, records,
                                   (size_t)(n * form->record_bytes), err));
        TDMI_TRY(add_items(cifar, batch, first, records, n, err));
    }
    return TDM_OK;
}

/* ---- class names --------------------------------------------------------------------------- */

static tdm_status add_class(struct cifar *cifar, const char *name, const char *path, tdm_error *err)
{
    for (int i = 0; i < cifar->listing.n_classes; i++)
        if (strcmp(cifar->listing.classes[i], name) == 0)
            return TDM_FAIL(err, TDM_E_INPUT, "'%s' names the class '%s' twice", path, name);
    return tdmi_listing_add_class(&cifar->listing, name, err);
}

/* One name a line; empty lines do not count. */
static tdm_status read_names(struct cifar *cifar, const char *path, tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    TDM_TRY(tdmi_storage_read_file(path, LARGEST_NAMES_BYTES, &text, err), err,
            "cannot read the class names of %s", cifar->form->name);
    if (strlen(tdmi_text_string(&text)) != text.length_bytes)
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' is no text of class names: it holds a zero byte",
                        path);
    char *rest = text.bytes;
    for (char *line; (line = strsep(&rest, "\r\n")) != NULL;)
        if (line[0] != '\0')
            TDMI_TRY(add_class(cifar, line, path, err));
    int n_expected = cifar->form->n_labels[cifar->form->label_bytes - 1];
    if (cifar->listing.n_classes != n_expected)
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' names %d classes; %s has %d", path,
                        cifar->listing.n_classes, cifar->form->name, n_expected);
    return TDM_OK;
}

static tdm_status name_classes(struct cifar *cifar, tdm_error *err)
{
    const char *first = cifar->batches[0].path;
    size_t folder_bytes = (size_t)(cifar->batches[0].name - first);
    const char *path = tdmi_arena_printf(&cifar->listing.arena, "%.*s%s", (int)folder_bytes, first,
                                         cifar->form->names_file);
    TDMI_CHECK_MEMORY(path, err);
    if (tdmi_storage_kind(path) == TDMI_FILE_MISSING)
        return tdmi_listing_classes_of_numbers(&cifar->listing, err);
    return read_names(cifar, path, err);
}

/* ---- the table ----------------------------------------------------------------------------- */

static void cifar_release(void *self)
{
    struct cifar *cifar = self;
    for (int i = 0; i < cifar->n_batches; i++)
        tdmi_records_close(&cifar->batches[i].records);
}

static tdm_status cifar_open(const char *path, const struct tdm_source_options *options, void *self,
                             tdm_error *err)
{
    (void)options; /* source.c has refused those of other kinds */
    struct cifar *cifar = self;
    const bool is_folder = tdmi_storage_kind(path) == TDMI_FILE_FOLDER;
    TDMI_TRY(is_folder ? find_batches(cifar, path, err) : add_single(cifar, path, err));
    for (int i = 0; i < cifar->n_batches; i++)
        TDMI_TRY(list_batch(cifar, &cifar->batches[i], err));
    tdmi_listing_forget_lone_part(&cifar->listing);
    return name_classes(cifar, err);
}

static tdm_status cifar_read(const void *self, int64_t index, tdmi_text *bytes, tdm_error *err)
{
    const struct cifar *cifar = self;
    const struct batch *batch = cifar->batches;
    while (index >= batch->first_item + batch->n_items)
        batch++;
    uint8_t planes[3][PLANE_BYTES], pixels[PLANE_BYTES][3]; /* (3, y, x) and (y, x, 3) */
    int64_t record = (index - batch->first_item) * cifar->form->record_bytes;
    TDM_TRY(tdmi_records_read(&batch->records, record + cifar->form->label_bytes, planes,
                              sizeof planes, err),
            err, "cannot read the image '%s'", cifar->listing.items[index].path);
    for (int i = 0; i < PLANE_BYTES; i++)
        for (int c = 0; c < 3; c++)
            pixels[i][c] = planes[c][i];
    tdmi_records_picture_head(bytes, 3, SIDE, SIDE);
    tdmi_text_add(bytes, pixels, sizeof pixels);
    return tdmi_text_status(bytes, err);
}

const struct tdmi_source_table tdmi_source_cifar = {
    .name = "cifar",
    .summary = "binary CIFAR-10 or CIFAR-100 files",
    .state_bytes = sizeof(struct cifar),
    .is_prepared = true,
    .can_open = cifar_can_open,
    .open = cifar_open,
    .release = cifar_release,
    .read = cifar_read,
};
