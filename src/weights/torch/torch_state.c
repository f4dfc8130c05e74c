/* Walks over a checkpoint: first count the tensors below each container, which also refuses one
 * that holds itself; then descend to the model, and through it. */
#include "weights/torch/torch_state.h"

#include <string.h>
#include <strings.h>

enum { DEEPEST = 64, IN_PROGRESS = -1, COUNTED = 1 };
enum { LONGEST_NAME = 2000, LONGEST_LIST = 4000, OPTIMIZER_KEYS = 64 };
#define MANY ((int64_t)1 << 40)

/* Entries of these names are the model, the first of the list before the others. */
static const char *const model_names[] = {"state_dict", "model_state_dict", "model_state",
                                          "weights",    "params",           "model",
                                          "net",        "network",          "module"};
enum { N_MODEL_NAMES = sizeof model_names / sizeof model_names[0] };
/* Inside of these, names belong to the network itself. */
enum { N_FIRM_NAMES = 5 };

enum rank { RANK_OTHER = N_MODEL_NAMES, RANK_AVERAGE, RANK_NEVER };

struct walk {
    struct tdmi_torch_files *files;
    tdmi_text *name;     /* of the tensor, from the model's dict on */
    tdmi_text *left_out; /* "optimizer (12 tensors), …" */
    size_t steps, most_steps;
    tdm_error *err;
};

/* ---- containers -------------------------------------------------------------------------- */

static bool is_container(const tdmi_pickle_value *value)
{
    return value->kind == TDMI_PICKLE_DICT || value->kind == TDMI_PICKLE_LIST ||
           value->kind == TDMI_PICKLE_TUPLE;
}

static tdmi_pickle_value *inside(tdmi_pickle_value *value)
{
    return (tdmi_pickle_value *)tdmi_torch_plain(value);
}

/* The i-th child, and its key as text in *key ("" for a key that is neither text nor number). */
static tdmi_pickle_value *child_of(const tdmi_pickle_value *container, size_t i, tdmi_text *key)
{
    bool is_dict = container->kind == TDMI_PICKLE_DICT;
    tdmi_text_clear(key);
    if (!is_dict)
        tdmi_text_printf(key, "%zu", i);
    else if (!tdmi_torch_key(container->items[2 * i], key))
        tdmi_text_clear(key);
    return inside(container->items[is_dict ? 2 * i + 1 : i]);
}

/* ---- how many tensors -------------------------------------------------------------------- */

static tdm_status count_tensors(struct walk *walk, tdmi_pickle_value *value, int depth, int64_t *n)
{
    *n = tdmi_torch_is_tensor(value);
    if (!is_container(value))
        return TDM_OK;
    if (value->tally == IN_PROGRESS)
        return TDMI_WEIGHTS_BAD(walk->err, walk->files->weights,
                                "a list or dict in its pickle holds itself");
    if (depth > DEEPEST)
        return TDMI_WEIGHTS_BAD(walk->err, walk->files->weights,
                                "lists and dicts in its pickle are nested deeper than %d", DEEPEST);
    if (value->tally >= COUNTED) {
        *n = value->tally - COUNTED;
        return TDM_OK;
    }
    const size_t step = value->kind == TDMI_PICKLE_DICT ? 2 : 1;
    int64_t below = 0;
    value->tally = IN_PROGRESS;
    for (size_t i = 0; i < value->count; i++) {
        TDMI_TRY(count_tensors(walk, inside(value->items[step * i + step - 1]), depth + 1, &below));
        *n = *n + below > MANY ? MANY : *n + below;
    }
    value->tally = COUNTED + *n;
    return TDM_OK;
}

/* After count_tensors. */
static int64_t tensors_of(const tdmi_pickle_value *value)
{
    return is_container(value) ? value->tally - COUNTED : tdmi_torch_is_tensor(value);
}

/* ---- the model --------------------------------------------------------------------------- */

static bool has_word(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (; *text != '\0'; text++)
        if (strncasecmp(text, word, n) == 0)
            return true;
    return false;
}

static bool is_average(const char *key)
{
    size_t n = strlen(key);
    return strcasecmp(key, "ema") == 0 || strncasecmp(key, "ema_", 4) == 0 ||
           (n > 4 && strcasecmp(key + n - 4, "_ema") == 0) || has_word(key, "average");
}

static bool is_optimizer(const char *key, const tdmi_pickle_value *value)
{
    return has_word(key, "optim") || has_word(key, "sched") || has_word(key, "scaler") ||
           strncmp(key, "rng", 3) == 0 || has_word(key, "_rng") ||
           (value->count <= OPTIMIZER_KEYS && tdmi_pickle_member(value, "param_groups") != NULL &&
            tdmi_pickle_member(value, "state") != NULL);
}

/* A tensor that stands right there is the model's, whatever its name. */
static int rank_of(const char *key, const tdmi_pickle_value *value)
{
    if (*key == '\0')
        return RANK_NEVER;
    if (!is_container(value))
        return RANK_OTHER;
    if (is_optimizer(key, value))
        return RANK_NEVER;
    for (int i = 0; i < N_MODEL_NAMES; i++)
        if (strcmp(key, model_names[i]) == 0)
            return i;
    return is_average(key) ? RANK_AVERAGE : RANK_OTHER;
}

static void leave_out(struct walk *walk, const char *key, int64_t n)
{
    if (walk->left_out->length_bytes > LONGEST_LIST)
        return;
    tdmi_text_printf(walk->left_out, "%s%s (%lld tensor%s)",
                     walk->left_out->length_bytes > 0 ? ", " : "", *key == '\0' ? "(no name)" : key,
                     (long long)n, n == 1 ? "" : "s");
}

/* One entry of add_all; the keys so far are in name. */
static tdm_status add_one(struct walk *walk, const tdmi_pickle_value *value, int depth);

/* Adds all tensors below the container; name holds its keys so far. most_rank: of the entries of
 * this level that are taken. */
static tdm_status add_all(struct walk *walk, const tdmi_pickle_value *container, int most_rank,
                          int depth)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text key = {0};
    const size_t length = walk->name->length_bytes;
    for (size_t i = 0; i < container->count; i++) {
        const tdmi_pickle_value *child = child_of(container, i, &key);
        const char *text = tdmi_text_string(&key);
        int64_t n = tensors_of(child);
        if (++walk->steps > walk->most_steps || depth > DEEPEST)
            return TDMI_WEIGHTS_BAD(walk->err, walk->files->weights,
                                    "its dicts hold each other again and again: a bomb");
        if (*text == '\0' || (most_rank < RANK_NEVER && rank_of(text, child) > most_rank)) {
            if (n > 0)
                leave_out(walk, text, n);
            continue;
        }
        tdmi_text_printf(walk->name, "%s%s", length > 0 ? "." : "", text);
        TDMI_TRY(tdmi_text_status(&key, walk->err));
        TDMI_TRY(tdmi_text_status(walk->name, walk->err));
        TDMI_TRY(add_one(walk, child, depth));
        walk->name->bytes[length] = '\0';
        walk->name->length_bytes = length;
    }
    return TDM_OK;
}

static tdm_status add_one(struct walk *walk, const tdmi_pickle_value *value, int depth)
{
    if (tensors_of(value) == 0)
        return tdmi_torch_note(walk->files, walk->name->bytes, value, walk->err);
    if (walk->name->length_bytes > LONGEST_NAME)
        return TDMI_WEIGHTS_BAD(walk->err, walk->files->weights,
                                "the name '%s' of a tensor has more than %d bytes",
                                walk->name->bytes, LONGEST_NAME);
    return is_container(value) ? add_all(walk, value, RANK_NEVER, depth + 1)
                               : tdmi_torch_add(walk->files, value, walk->name->bytes, walk->err);
}

/* Entries of a level: the best rank of those with tensors, how many have it, the first of them, and
 * whether tensors stand right here. */
struct level {
    int rank, n_best;
    size_t best;
    bool has_tensors;
};

static tdm_status rank_entries(struct walk *walk, const tdmi_pickle_value *container,
                               struct level *level)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text key = {0};
    *level = (struct level){.rank = RANK_NEVER};
    for (size_t i = 0; i < container->count; i++) {
        const tdmi_pickle_value *child = child_of(container, i, &key);
        if (tensors_of(child) == 0)
            continue;
        int rank = rank_of(tdmi_text_string(&key), child);
        level->has_tensors |= !is_container(child) && rank == RANK_OTHER;
        if (rank > level->rank)
            continue;
        level->n_best = rank < level->rank ? 1 : level->n_best + 1;
        level->best = i;
        level->rank = rank;
    }
    return tdmi_text_status(&key, walk->err);
}

/* Note facts and left-out entries of a level; entry `into` is descended into. */
static tdm_status note_others(struct walk *walk, const tdmi_pickle_value *container, size_t into)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text key = {0};
    for (size_t i = 0; i < container->count; i++) {
        const tdmi_pickle_value *child = child_of(container, i, &key);
        const char *text = tdmi_text_string(&key);
        TDMI_TRY(tdmi_text_status(&key, walk->err));
        if (i == into)
            continue;
        if (tensors_of(child) > 0)
            leave_out(walk, text, tensors_of(child));
        else if (*text != '\0' && !is_optimizer(text, child))
            TDMI_TRY(tdmi_torch_note(walk->files, text, child, walk->err));
    }
    return TDM_OK;
}

static tdm_status add_model(struct walk *walk, const tdmi_pickle_value *container)
{
    for (;;) {
        struct level level;
        TDMI_AT_END(tdmi_text_release) tdmi_text key = {0};
        TDMI_TRY(rank_entries(walk, container, &level));
        if (level.rank == RANK_NEVER || is_optimizer("", container))
            return TDMI_WEIGHTS_BAD(
                walk->err, walk->files->weights,
                "of its tensors none are a model's: they are an optimizer's state");
        const tdmi_pickle_value *best = child_of(container, level.best, &key);
        bool is_one = level.rank < RANK_OTHER ||
                      (level.n_best == 1 && is_container(best) && !level.has_tensors);
        if (!is_one)
            return add_all(walk, container, level.rank, 0);
        TDMI_TRY(note_others(walk, container, level.best));
        container = best;
        if (level.rank < N_FIRM_NAMES)
            return add_all(walk, container, RANK_NEVER, 0);
    }
}

tdm_status tdmi_torch_add_state(struct tdmi_torch_files *files, const struct tdmi_pickle *pickle,
                                tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text name = {0};
    TDMI_AT_END(tdmi_text_release) tdmi_text left_out = {0};
    struct walk walk = {.files = files,
                        .name = &name,
                        .left_out = &left_out,
                        .most_steps = 4 * pickle->n_values + 64,
                        .err = err};
    tdmi_pickle_value *root = inside(pickle->value);
    int64_t n = 0;
    TDMI_TRY(count_tensors(&walk, root, 0, &n));
    if (n == 0)
        return TDMI_WEIGHTS_BAD(err, files->weights, "there are no tensors in it");
    TDMI_TRY(is_container(root) ? add_model(&walk, root)
                                : tdmi_torch_add(files, root, "tensor", err));
    TDMI_TRY(tdmi_text_status(&left_out, err));
    return left_out.length_bytes == 0
               ? TDM_OK
               : tdmi_weights_note(files->weights, "left_out", left_out.bytes,
                                   left_out.length_bytes, err);
}
