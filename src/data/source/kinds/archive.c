/*
 * Zip and tar of class folders: the names of the entries are a tree like any folder's, and
 * class_tree.h has the rules. Folders around everything ("pets-1.0/") are no class.
 */
#include "data/source/class_tree.h"
#include "io/archive/archive.h"

struct archive_source {
    struct tdmi_listing listing; /* an item's place is its entry */
    tdmi_archive *archive;
};

static bool archive_can_open(const char *path)
{
    return tdmi_archive_form_of(path) != TDMI_ARCHIVE_NONE;
}

static void archive_release(void *self)
{
    tdmi_archive_close(((struct archive_source *)self)->archive);
}

static size_t peek(void *self, const struct tdmi_tree_entry *entry, uint8_t *bytes,
                   size_t room_bytes)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    if (tdmi_archive_read(self, entry->place, TDMI_ARCHIVE_PICTURE_BYTES, &text, NULL) != TDM_OK)
        return 0;
    const size_t length = text.length_bytes < room_bytes ? text.length_bytes : room_bytes;
    memcpy(bytes, tdmi_text_string(&text), length);
    return length;
}

static tdm_status archive_open(const char *path, const struct tdm_source_options *options,
                               void *self, tdm_error *err)
{
    (void)options; /* source.c has refused those of other kinds */
    struct archive_source *source = self;
    TDMI_TRY(tdmi_archive_open(path, &source->archive, err));
    TDMI_AT_END(tdmi_tree_release)
    struct tdmi_tree tree = {
        .root = path, .peek = peek, .self = source->archive, .skips_top = true};
    for (int64_t i = 0; i < tdmi_archive_entries(source->archive); i++) {
        const struct tdmi_archive_entry *entry = tdmi_archive_entry(source->archive, i);
        TDMI_TRY(tdmi_tree_add(&tree, entry->name,
                               entry->is_folder ? TDMI_FILE_FOLDER : TDMI_FILE_REGULAR, i, err));
    }
    return tdmi_tree_classes(&tree, &source->listing, err);
}

static tdm_status archive_read(const void *self, int64_t index, tdmi_text *bytes, tdm_error *err)
{
    const struct archive_source *source = self;
    return tdmi_archive_read(source->archive, source->listing.items[index].place,
                             TDMI_ARCHIVE_PICTURE_BYTES, bytes, err);
}

const struct tdmi_source_table tdmi_source_archive = {
    .name = "archive",
    .summary = "a zip or tar of class folders of images",
    .state_bytes = sizeof(struct archive_source),
    .can_open = archive_can_open,
    .open = archive_open,
    .release = archive_release,
    .read = archive_read,
};
