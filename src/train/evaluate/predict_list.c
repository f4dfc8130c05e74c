/*
 * Which pictures are to be predicted: files as they are, folders searched as a data set is, what is
 * missing in its turn.
 */
#include "base/memory.h"
#include "data/source/class_tree.h"
#include "io/storage/storage.h"
#include "train/evaluate/predict.h"

void tdmi_pictures_init(struct tdmi_pictures *pictures)
{
    *pictures = (struct tdmi_pictures){0};
    tdmi_arena_init(&pictures->arena, 0);
}

void tdmi_pictures_release(struct tdmi_pictures *pictures)
{
    tdmi_free(pictures->items);
    tdmi_arena_release(&pictures->arena);
}

static tdm_status add(struct tdmi_pictures *it, struct tdmi_picture picture, tdm_error *err)
{
    if (!TDMI_GROW(it->items, it->capacity, it->n))
        return TDM_FAIL(err, TDM_E_MEMORY, "listing more than %zu pictures: out of memory", it->n);
    it->items[it->n++] = picture;
    return TDM_OK;
}

/* The pictures that the folder source would find, at any depth. One folder given: paths below it;
 * several: paths that say which. */
static tdm_status add_folder(struct tdmi_pictures *it, const char *folder, bool is_alone,
                             tdm_error *err)
{
    struct tdmi_tree tree;
    struct tdmi_listing listing;
    tdmi_tree_init(&tree, folder);
    tdmi_listing_init(&listing);
    tdm_status status = tdmi_tree_walk(&tree, err);
    if (status == TDM_OK)
        status = tdmi_tree_pictures(&tree, &listing, err);
    if (status == TDM_OK && listing.n_items == 0)
        status = TDM_FAIL(err, TDM_E_INPUT, "no pictures were found in %s", folder);
    for (int64_t i = 0; i < listing.n_items && status == TDM_OK; i++) {
        const char *below = tdmi_arena_copy(&it->arena, listing.items[i].path);
        const char *path = below ? tdmi_path_join(&it->arena, folder, below) : NULL;
        if (!path)
            status = TDM_FAIL(err, TDM_E_MEMORY, "listing %s: out of memory", folder);
        else
            status =
                add(it, (struct tdmi_picture){.path = path, .shown = is_alone ? below : path}, err);
    }
    tdmi_listing_release(&listing);
    tdmi_tree_release(&tree);
    return status;
}

static tdm_status list_path(struct tdmi_pictures *it, const char *path, bool is_alone,
                            tdm_error *err)
{
    struct tdmi_place place;
    TDM_TRY(tdmi_storage_look(path, &place, err), err, "looking at %s", path);
    const char *plain = tdmi_storage_plain(path, &it->arena);
    if (!plain)
        return TDM_FAIL(err, TDM_E_MEMORY, "listing %s: out of memory", path);
    if (place.kind == TDMI_FILE_FOLDER)
        return TDM_WRAP(err, add_folder(it, plain, is_alone, err), "searching %s for pictures",
                        path);
    if (place.kind == TDMI_FILE_REGULAR)
        return add(it, (struct tdmi_picture){.path = plain, .shown = plain}, err);
    return tdmi_storage_refuse(path, place.kind, "a picture or a folder of pictures", err);
}

/* It is answered in its turn with the reason, as a picture that cannot be read. */
static tdm_status add_missing(struct tdmi_pictures *it, const char *path, const tdm_error *problem,
                              tdm_error *err)
{
    const char *reason = tdmi_arena_copy(&it->arena, tdm_error_sentence(problem, 0));
    const char *shown = tdmi_arena_copy(&it->arena, path);
    if (!reason || !shown)
        return TDM_FAIL(err, TDM_E_MEMORY, "listing %s: out of memory", path);
    TDM_TRY(add(it, (struct tdmi_picture){.shown = shown, .missing = reason}, err), err,
            "listing pictures");
    if (it->n_missing++ == 0)
        it->first_missing = reason;
    return TDM_OK;
}

/* What is missing, or a folder without pictures, does not keep the others from being predicted. */
tdm_status tdmi_pictures_list(struct tdmi_pictures *it, const char *const *paths, size_t n_paths,
                              tdm_error *err)
{
    size_t n_folders = 0;
    for (size_t i = 0; i < n_paths; i++)
        n_folders += tdmi_storage_kind(paths[i]) == TDMI_FILE_FOLDER;
    for (size_t i = 0; i < n_paths; i++) {
        tdm_error problem = {0};
        tdm_status status = list_path(it, paths[i], n_folders == 1, &problem);
        if (status == TDM_E_INPUT)
            status = add_missing(it, paths[i], &problem, &problem);
        if (status != TDM_OK) {
            if (err)
                *err = problem;
            return status;
        }
    }
    return it->n > 0 ? TDM_OK : TDM_FAIL(err, TDM_E_INPUT, "no path of a picture was given");
}

tdm_status tdmi_pictures_add_bytes(struct tdmi_pictures *it, const struct tdm_picture *picture,
                                   tdm_error *err)
{
    return add(it,
               (struct tdmi_picture){.shown = picture->name,
                                     .bytes = picture->bytes ? picture->bytes : "",
                                     .length_bytes = picture->length_bytes},
               err);
}
