/* Two growing arrays and an arena for the strings they point to. */
#include "data/source/listing.h"

#include "base/memory.h"
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
    tdmi_arena_release(&listing->arena);
    *listing = (struct tdmi_listing){0};
}

static tdm_status out_of_memory(const struct tdmi_listing *listing, tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_MEMORY, "no memory to list more than %lld pictures of %d classes",
                    (long long)listing->n_items, listing->n_classes);
}

tdm_status tdmi_listing_add_item(struct tdmi_listing *listing, const char *path, int label,
                                 enum tdmi_part part, tdm_error *err)
{
    if (!TDMI_GROW(listing->items, listing->item_capacity, listing->n_items))
        return out_of_memory(listing, err);
    const char *copy = tdmi_arena_copy(&listing->arena, path);
    if (copy == NULL)
        return out_of_memory(listing, err);
    listing->items[listing->n_items++] =
        (struct tdmi_item){.path = copy, .label = label, .part = part};
    return TDM_OK;
}

tdm_status tdmi_listing_add_class(struct tdmi_listing *listing, const char *name, tdm_error *err)
{
    if (listing->n_classes == INT_MAX ||
        !TDMI_GROW(listing->classes, listing->class_capacity, listing->n_classes))
        return out_of_memory(listing, err);
    const char *copy = tdmi_arena_copy(&listing->arena, name);
    if (copy == NULL)
        return out_of_memory(listing, err);
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

int tdmi_listing_n_classes(const void *self)
{
    return ((const struct tdmi_listing *)self)->n_classes;
}

const char *tdmi_listing_class_name(const void *self, int index)
{
    const struct tdmi_listing *listing = self;
    assert(index >= 0 && index < listing->n_classes);
    return listing->classes[index];
}

int64_t tdmi_listing_n_items(const void *self)
{
    return ((const struct tdmi_listing *)self)->n_items;
}

struct tdmi_item tdmi_listing_item(const void *self, int64_t index)
{
    const struct tdmi_listing *listing = self;
    assert(index >= 0 && index < listing->n_items);
    return listing->items[index];
}

int64_t tdmi_listing_n_ignored(const void *self)
{
    return ((const struct tdmi_listing *)self)->n_ignored;
}
