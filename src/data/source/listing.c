/* Two growing arrays and an arena for the strings they point to. */
#include "data/source/listing.h"

#include "data/source/class_tree.h"
#include "io/storage/storage.h"
#include "tandem/log.h"
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <strings.h>

enum { LARGEST_NUMBER = 255 };

void tdmi_listing_init(struct tdmi_listing *listing)
{
    *listing = (struct tdmi_listing){0};
    tdmi_arena_init(&listing->arena, 0);
}

void tdmi_listing_release(struct tdmi_listing *listing)
{
    tdmi_free(listing->items);
    tdmi_free(listing->classes);
    tdmi_free(listing->kept);
    tdmi_arena_release(&listing->arena);
    *listing = (struct tdmi_listing){0};
}

bool tdmi_file_names_fit(const char *folder, const struct tdmi_file_names *names)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    struct tdmi_place_entry *entries = NULL;
    size_t n = 0;
    if (tdmi_storage_list(folder, false, &arena, &entries, &n, NULL) == TDM_OK)
        for (size_t i = 0; i < n; i++)
            if (entries[i].kind == TDMI_FILE_REGULAR && names->is_data(entries[i].name))
                return true;
    return false;
}

tdm_status tdmi_listing_add_files(struct tdmi_listing *self, const char *folder,
                                  const struct tdmi_file_names *names, tdm_error *err)
{
    struct tdmi_place_entry *entries = NULL;
    size_t n = 0;
    bool is_found = false;
    TDM_TRY(tdmi_storage_list(folder, false, &self->arena, &entries, &n, err), err,
            "cannot list the folder '%s'", folder);
    for (int pass = 0; pass < 2 && !is_found; pass++)
        for (size_t i = 0; i < n; i++) {
            if (entries[i].kind != TDMI_FILE_REGULAR || !names->is_data(entries[i].name) ||
                tdmi_ends_with(entries[i].name, ".gz") != (pass == 1))
                continue;
            is_found = true;
            const char *path = tdmi_path_join(&self->arena, folder, entries[i].name);
            TDMI_CHECK_MEMORY(path, err);
            TDM_TRY(names->add(self, path, err), err, "cannot use the files of '%s'", folder);
        }
    for (size_t i = 0; i < n; i++)
        self->n_ignored +=
            entries[i].kind != TDMI_FILE_FOLDER && !tdmi_tree_is_hidden(entries[i].name) &&
            !names->is_data(entries[i].name) && !names->is_companion(self, entries[i].name);
    return TDM_OK;
}

tdm_status tdmi_listing_add_item(struct tdmi_listing *listing, struct tdmi_item item,
                                 tdm_error *err)
{
    item.path = tdmi_arena_copy(&listing->arena, item.path);
    TDMI_CHECK_MEMORY(item.path, err);
    TDMI_TRY(TDMI_MAKE_ROOM(listing->items, listing->item_capacity, listing->n_items, err));
    listing->items[listing->n_items++] = item;
    return TDM_OK;
}

tdm_status tdmi_listing_add_record(struct tdmi_listing *listing, const char *name, int64_t number,
                                   int label, enum tdmi_part part, tdm_error *err)
{
    char path[1024];
    snprintf(path, sizeof path, "%.990s#%lld", name, (long long)number);
    const struct tdmi_item item = {.path = path, .label = label, .part = part};
    return tdmi_listing_add_item(listing, item, err);
}

tdm_status tdmi_listing_add_class(struct tdmi_listing *listing, const char *name, tdm_error *err)
{
    const char *copy = tdmi_arena_copy(&listing->arena, name);
    TDMI_CHECK_MEMORY(copy != NULL && listing->n_classes < INT_MAX, err);
    TDMI_TRY(TDMI_MAKE_ROOM(listing->classes, listing->class_capacity, listing->n_classes, err));
    listing->classes[listing->n_classes++] = copy;
    return TDM_OK;
}

enum tdmi_part tdmi_part_named(const char *name)
{
    static const struct {
        const char *name;
        enum tdmi_part part;
    } parts[] = {{"train", TDMI_PART_TRAIN},
                 {"val", TDMI_PART_VAL},
                 {"valid", TDMI_PART_VAL},
                 {"validation", TDMI_PART_VAL},
                 {"test", TDMI_PART_TEST}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strcasecmp(name, parts[i].name) == 0)
            return parts[i].part;
    return TDMI_PART_NONE;
}

void tdmi_listing_forget_lone_part(struct tdmi_listing *listing)
{
    for (int64_t i = 1; i < listing->n_items; i++)
        if (listing->items[i].part != listing->items[0].part)
            return;
    for (int64_t i = 0; i < listing->n_items; i++)
        listing->items[i].part = TDMI_PART_NONE;
}

void tdmi_listing_drop_unlabelled(struct tdmi_listing *listing, const char *noun, const char *path)
{
    int64_t n_labelled = 0, kept = 0;
    for (int64_t i = 0; i < listing->n_items; i++)
        n_labelled += listing->items[i].label >= 0;
    const int64_t n_unlabelled = listing->n_items - n_labelled;
    if (n_labelled == 0 || n_unlabelled == 0)
        return;
    for (int64_t i = 0; i < listing->n_items; i++)
        if (listing->items[i].label >= 0)
            listing->items[kept++] = listing->items[i];
    listing->n_items = kept;
    listing->n_ignored += n_unlabelled;
    tdm_log(TDM_LOG_WARNING, "%lld %s of '%s' have no label and are left out",
            (long long)n_unlabelled, noun, path);
}

tdm_status tdmi_listing_classes_of_numbers(struct tdmi_listing *listing, tdm_error *err)
{
    int index_of[LARGEST_NUMBER + 1] = {0};
    for (int64_t i = 0; i < listing->n_items; i++) {
        assert(listing->items[i].label >= 0 && listing->items[i].label <= LARGEST_NUMBER);
        index_of[listing->items[i].label] = 1;
    }
    for (int number = 0; number <= LARGEST_NUMBER; number++) {
        if (index_of[number] == 0)
            continue;
        char name[16];
        snprintf(name, sizeof name, "%d", number);
        index_of[number] = listing->n_classes;
        TDM_TRY(tdmi_listing_add_class(listing, name, err), err, "name class %d", number);
    }
    for (int64_t i = 0; i < listing->n_items; i++)
        listing->items[i].label = index_of[listing->items[i].label];
    return TDM_OK;
}
