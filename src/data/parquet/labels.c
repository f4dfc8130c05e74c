/* A hash table of distinct values; sorted once when all are known. */
#include "data/parquet/member.h"

#include "base/hash/hash.h"
#include "base/text/json.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHAINS = 4096, LARGEST_CLASSES = 1 << 20 };

void tdmi_parquet_labels_release(struct tdmi_parquet_labels *labels)
{
    tdmi_free(labels->labels);
    tdmi_free(labels->chains);
    tdmi_arena_release(&labels->arena);
    *labels = (struct tdmi_parquet_labels){0};
}

/* "7" and "-1", but not "07", "+7" or "": the text of a number must be its only one. */
static bool is_integer(const char *key, int64_t *number)
{
    char back[32], *end;
    errno = 0;
    *number = strtoll(key, &end, 10);
    if (errno != 0 || *end != '\0' || end == key)
        return false;
    snprintf(back, sizeof back, "%lld", (long long)*number);
    return strcmp(back, key) == 0;
}

static tdm_status make_room(struct tdmi_parquet_labels *labels, tdm_error *err)
{
    if (labels->chains == NULL)
        TDMI_TRY(TDMI_NEW(labels->chains, CHAINS, err));
    if (labels->n_labels == LARGEST_CLASSES)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the column of labels has more than %d different values, which cannot be "
                        "classes: name another column",
                        LARGEST_CLASSES);
    return TDMI_MAKE_ROOM(labels->labels, labels->capacity, labels->n_labels, err);
}

tdm_status tdmi_parquet_labels_add(struct tdmi_parquet_labels *labels, const char *key,
                                   size_t key_bytes, int *id, tdm_error *err)
{
    TDMI_TRY(make_room(labels, err));
    if (memchr(key, '\0', key_bytes) != NULL)
        return TDM_FAIL(err, TDM_E_INPUT, "a label holds a zero byte: labels are integers or text");
    int *chain = &labels->chains[tdmi_xxh64_of(key, key_bytes, 0) % CHAINS];
    for (*id = *chain - 1; *id >= 0; *id = labels->labels[*id].next - 1)
        if (strncmp(labels->labels[*id].key, key, key_bytes) == 0 &&
            labels->labels[*id].key[key_bytes] == '\0')
            return TDM_OK;
    char *copy = tdmi_arena_printf(&labels->arena, "%.*s", (int)key_bytes, key);
    TDMI_CHECK_MEMORY(copy, err);
    struct tdmi_label *label = &labels->labels[labels->n_labels];
    *label = (struct tdmi_label){.key = copy, .next = *chain};
    labels->has_texts = !is_integer(copy, &label->number) || labels->has_texts;
    *id = labels->n_labels++;
    *chain = *id + 1;
    return TDM_OK;
}

tdm_status tdmi_parquet_labels_name(struct tdmi_parquet_labels *labels, int id, const char *name,
                                    size_t name_bytes, tdm_error *err)
{
    struct tdmi_label *label = &labels->labels[id];
    if (label->name == NULL) {
        label->name = tdmi_arena_printf(&labels->arena, "%.*s", (int)name_bytes, name);
        TDMI_CHECK_MEMORY(label->name, err);
        return TDM_OK;
    }
    if (strncmp(label->name, name, name_bytes) != 0 || label->name[name_bytes] != '\0')
        return TDM_FAIL(err, TDM_E_INPUT,
                        "label %s is class '%s' in one row and '%.*s' in another: the table "
                        "contradicts itself",
                        label->key, label->name, (int)name_bytes, name);
    return TDM_OK;
}

static int compare_labels(const void *a_, const void *b_)
{
    const struct tdmi_label *a = *(struct tdmi_label *const *)a_,
                            *b = *(struct tdmi_label *const *)b_;
    return a->number != b->number ? (a->number < b->number ? -1 : 1) : strcmp(a->key, b->key);
}

/* The label's number says which of the names it is. */
static tdm_status take_names(struct tdmi_parquet_labels *labels, struct tdmi_listing *listing,
                             tdm_error *err)
{
    for (int i = 0; i < labels->n_labels; i++) {
        struct tdmi_label *label = &labels->labels[i];
        if (labels->has_texts || label->number < -1 || label->number >= labels->n_names)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "label '%s' is none of the %d classes that the table names, which are "
                            "numbered from 0",
                            label->key, labels->n_names);
        label->index = (int)label->number; /* -1: without label */
    }
    for (int i = 0; i < labels->n_names; i++)
        TDMI_TRY(tdmi_listing_add_class(listing, labels->names[i], err));
    return TDM_OK;
}

static tdm_status take_labels(struct tdmi_parquet_labels *labels, struct tdmi_listing *listing,
                              tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) struct tdmi_label **sorted = NULL;
    const int n = labels->n_labels;
    TDMI_TRY(TDMI_NEW(sorted, n, err));
    for (int i = 0; i < n; i++) {
        sorted[i] = &labels->labels[i];
        if (labels->has_texts)
            sorted[i]->number = 0; /* the order is that of the texts */
    }
    qsort(sorted, (size_t)n, sizeof *sorted, compare_labels);
    for (int i = 0; i < n; i++) {
        const char *name = sorted[i]->name != NULL ? sorted[i]->name : sorted[i]->key;
        sorted[i]->index = i;
        TDMI_TRY(tdmi_listing_add_class(listing, name, err));
    }
    return TDM_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static tdm_status check_names(const struct tdmi_listing *listing, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) const char **sorted = NULL;
    const size_t n = (size_t)listing->n_classes;
    TDMI_TRY(TDMI_NEW(sorted, n, err));
    for (size_t i = 0; i < n; i++)
        sorted[i] = listing->classes[i];
    qsort(sorted, n, sizeof *sorted, compare_names);
    for (size_t i = 1; i < n; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            return TDM_FAIL(err, TDM_E_INPUT, "two labels have the class name '%s'", sorted[i]);
    return TDM_OK;
}

tdm_status tdmi_parquet_labels_finish(struct tdmi_parquet_labels *labels,
                                      struct tdmi_listing *listing, tdm_error *err)
{
    TDMI_TRY((labels->n_names > 0 ? take_names : take_labels)(labels, listing, err));
    TDMI_TRY(check_names(listing, err));
    for (int64_t i = 0; i < listing->n_items; i++)
        if (listing->items[i].label >= 0)
            listing->items[i].label = labels->labels[listing->items[i].label].index;
    return TDM_OK;
}

/* ---- class names in the metadata --------------------------------------------------------- */

/* Data sets of Hugging Face describe their columns as JSON in the file's metadata:
 *     {"info": {"features": {"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}}} */

static bool is_class_label(const tdm_json_value *feature)
{
    return strcmp(tdm_json_as_string(tdm_json_member(feature, "_type"), ""), "ClassLabel") == 0;
}

/* The feature named, or the only one of classes where nothing is named. */
static const tdm_json_value *find(const tdm_json_value *features, const char *label_column,
                                  const char **name)
{
    const tdm_json_value *found = NULL;
    int n_found = 0;
    *name = label_column;
    if (label_column != NULL)
        return tdm_json_member(features, label_column);
    for (size_t i = 0; i < tdm_json_count(features); i++)
        if (is_class_label(tdm_json_at(features, i))) {
            found = tdm_json_at(features, i);
            *name = tdm_json_key_at(features, i);
            n_found++;
        }
    return n_found == 1 ? found : NULL;
}

static tdm_status read_names(struct tdmi_parquet_labels *labels, const tdm_json_value *names,
                             tdm_error *err)
{
    size_t n = tdm_json_count(names);
    labels->names = tdmi_arena_alloc(&labels->arena, n, sizeof(char *));
    TDMI_CHECK_MEMORY(labels->names, err);
    for (size_t i = 0; i < n; i++) {
        const char *name = tdm_json_as_string(tdm_json_at(names, i), NULL);
        if (name == NULL)
            return TDM_OK; /* no list of names: as if there were none */
        labels->names[i] = tdmi_arena_copy(&labels->arena, name);
        TDMI_CHECK_MEMORY(labels->names[i], err);
    }
    labels->n_names = (int)n;
    return TDM_OK;
}

tdm_status tdmi_parquet_labels_describe(struct tdmi_parquet_labels *labels, const char *json,
                                        const char *label_column, const char **class_label,
                                        tdm_error *err)
{
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    const char *name = NULL;
    *class_label = NULL;
    labels->n_names = 0;
    tdm_status status = tdm_json_read(json, strlen(json), "huggingface", &document, NULL);
    if (status == TDM_E_MEMORY)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the class names of a table");
    /* Damaged ones are meant for other programs; the table is readable without. */
    const tdm_json_value *root = status == TDM_OK ? tdm_json_root(document) : NULL;
    const tdm_json_value *feature =
        find(tdm_json_member(tdm_json_member(root, "info"), "features"), label_column, &name);
    if (!is_class_label(feature))
        return TDM_OK;
    *class_label = tdmi_arena_copy(&labels->arena, name);
    TDMI_CHECK_MEMORY(*class_label, err);
    return read_names(labels, tdm_json_member(feature, "names"), err);
}
