/* The list of published weights, and the folder they are kept in. */
#include "nn/weights/catalogue.h"
#include "base/env.h"
#include "base/file.h"
#include "tandem/suggest.h"

#include <stdio.h>
#include <string.h>

static const struct tdm_weights_known known[] = {
#define X(name, network, origin, licence, megabytes, hash, folder, file) \
    {name, network, origin, licence, megabytes, hash, folder, file},
#include "nn/weights/catalogue.def"
#undef X
};

enum { N_KNOWN = sizeof known / sizeof known[0] };

const struct tdm_weights_known *tdm_weights_known_at(int index)
{
    return index >= 0 && index < N_KNOWN ? &known[index] : NULL;
}

tdm_status tdmi_catalogue_find(const char *name, const struct tdm_weights_known **found,
                               tdm_error *err)
{
    char words[100];
    tdm_suggestion suggestion = {.typed = name};
    for (int i = 0; i < N_KNOWN; i++) {
        tdm_suggest_consider(&suggestion, known[i].name);
        if (strcmp(known[i].name, name) == 0) {
            *found = &known[i];
            return TDM_OK;
        }
    }
    return TDM_FAIL(err, TDM_E_USAGE,
                    "no weights are known as '%s'%s; tandem weights list shows all", name,
                    tdm_suggest_words(&suggestion, "", words, sizeof words));
}

tdm_status tdmi_catalogue_folder(tdmi_arena *arena, const char **folder, tdm_error *err)
{
    const char *home = tdmi_env_home(arena);
    *folder = home ? tdmi_path_join(arena, home, "weights") : NULL;
    return *folder ? TDM_OK
                   : TDM_FAIL(err, TDM_E_SYSTEM,
                              "there is no folder to keep weights in: none of TANDEM_HOME, "
                              "XDG_CACHE_HOME and HOME is set");
}

tdm_status tdm_weights_place(const struct tdm_weights_known *of, char *path, size_t path_bytes,
                             bool *is_here, tdm_error *err)
{
    tdmi_arena arena;
    const char *folder = NULL;
    tdmi_arena_init(&arena, 0);
    tdm_status status = tdmi_catalogue_folder(&arena, &folder, err);
    if (status == TDM_OK) {
        snprintf(path, path_bytes, "%s/%s", folder, of->file);
        *is_here = tdmi_file_kind_of(path) == TDMI_FILE_REGULAR;
    }
    tdmi_arena_release(&arena);
    return status;
}

void tdmi_catalogue_at_hand(const char *network, tdmi_arena *arena,
                            const struct tdm_weights_known **here, const char **path,
                            const struct tdm_weights_known **wanted)
{
    tdm_error err;
    const char *folder = NULL;
    *here = NULL;
    *path = NULL;
    *wanted = NULL;
    if (tdmi_catalogue_folder(arena, &folder, &err) != TDM_OK)
        folder = NULL;
    for (int i = 0; i < N_KNOWN && *here == NULL; i++) {
        if (strcmp(known[i].network, network) != 0)
            continue;
        if (*wanted == NULL)
            *wanted = &known[i];
        const char *at = folder ? tdmi_path_join(arena, folder, known[i].file) : NULL;
        if (at != NULL && tdmi_file_kind_of(at) == TDMI_FILE_REGULAR) {
            *here = &known[i];
            *path = at;
        }
    }
}
