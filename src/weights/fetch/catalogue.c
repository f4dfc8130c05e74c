/* The list of published weights, and the folder they are kept in. */
#include "weights/fetch/catalogue.h"
#include "base/system/env.h"
#include "base/file/file.h"
#include "base/text/suggest.h"

#include <stdio.h>
#include <string.h>

static const struct tdm_weights_known known[] = {
#define X(name, network, origin, licence, megabytes, hash, resize, folder, file) \
    {name, network, origin, licence, megabytes, hash, resize, folder, file},
#include "weights/fetch/catalogue.def"
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
    tdmi_suggestion suggestion = {.typed = name};
    for (int i = 0; i < N_KNOWN; i++) {
        tdmi_suggest_consider(&suggestion, known[i].name);
        if (strcmp(known[i].name, name) == 0) {
            *found = &known[i];
            return TDM_OK;
        }
    }
    return TDM_FAIL(err, TDM_E_USAGE,
                    "no weights are known as '%s'%s; tandem weights list shows all", name,
                    tdmi_suggest_words(&suggestion, "", words, sizeof words));
}

/* The digits of a published SHA-256, of which only the first are known; NULL: it is none. */
static const char *digits_of(const struct tdm_weights_known *of)
{
    static const char mark[] = "sha256:";
    return strncmp(of->hash, mark, sizeof mark - 1) == 0 ? of->hash + sizeof mark - 1 : NULL;
}

static bool is_hexadecimal(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* Do the digits stand in it, and not within more of them? */
static bool has_digits(const char *file, const char *digits)
{
    const size_t n = strlen(digits);
    for (const char *at = file; (at = strstr(at, digits)) != NULL; at++)
        if ((at == file || !is_hexadecimal(at[-1])) && !is_hexadecimal(at[n]))
            return true;
    return false;
}

const struct tdm_weights_known *tdmi_catalogue_recognise(const char *network, const char *file,
                                                         const char *sha256)
{
    for (int i = 0; i < N_KNOWN; i++) {
        const char *digits = digits_of(&known[i]);
        if (strcmp(known[i].network, network) != 0)
            continue;
        if (strcmp(known[i].file, file) == 0 || (digits && has_digits(file, digits)) ||
            (digits && sha256 && strncmp(sha256, digits, strlen(digits)) == 0))
            return &known[i];
    }
    return NULL;
}

bool tdmi_catalogue_has_size(const char *network, int64_t bytes)
{
    const double part = 0.03; /* megabytes are rounded */
    for (int i = 0; i < N_KNOWN; i++) {
        const double published = 1e6 * known[i].megabytes;
        if (digits_of(&known[i]) && strcmp(known[i].network, network) == 0 &&
            (double)bytes > (1.0 - part) * published && (double)bytes < (1.0 + part) * published)
            return true;
    }
    return false;
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
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    const char *folder = NULL;
    TDMI_TRY(tdmi_catalogue_folder(&arena, &folder, err));
    snprintf(path, path_bytes, "%s/%s", folder, of->file);
    *is_here = tdmi_file_kind_of(path) == TDMI_FILE_REGULAR;
    return TDM_OK;
}
