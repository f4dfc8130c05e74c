/* Where the user's config file is, and adding a line to it. */
#include "cli/user_config.h"
#include "base/scope.h"
#include "base/system/env.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char file_name[] = "config.toml";

/* Folders from the one that must be there to the one that holds the file. */
struct place {
    const char *root, *below;
};

static struct place find_place(void)
{
    static const struct {
        const char *variable, *below;
    } places[] = {{"TANDEM_HOME", ""}, {"XDG_CONFIG_HOME", "/tandem"}, {"HOME", "/.config/tandem"}};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (tdmi_env(places[i].variable))
            return (struct place){tdmi_env(places[i].variable), places[i].below};
    return (struct place){NULL, NULL};
}

bool tdmi_user_config_path(char *path, size_t path_bytes)
{
    const struct place place = find_place();
    if (!place.root)
        return false;
    const int n = snprintf(path, path_bytes, "%s%s/%s", place.root, place.below, file_name);
    return n > 0 && (size_t)n < path_bytes;
}

bool tdmi_user_config_find(char *path, size_t path_bytes)
{
    return tdmi_user_config_path(path, path_bytes) && access(path, F_OK) == 0;
}

/* ---- adding a line ------------------------------------------------------------------------- */

/* Every folder that the path names, but for the first '/'. */
static tdm_status make_folders(char *path, tdm_error *err)
{
    for (char *at = path + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        const bool is_made = mkdir(path, 0777) == 0 || errno == EEXIST;
        const int reason = errno;
        if (!is_made)
            return TDM_FAIL(err, TDM_E_SYSTEM, "cannot make the folder %s: %s", path,
                            strerror(reason));
        *at = '/';
    }
    return TDM_OK;
}

static bool sets(const char *line, const char *key)
{
    const size_t n = strlen(key);
    line += strspn(line, " \t");
    return strncmp(line, key, n) == 0 && line[n + strspn(line + n, " \t")] == '=';
}

/* Copy the former content behind the new line, without a line that sets the same for all commands:
 * the answer may have been given in another terminal meanwhile. */
static bool copy_rest(const char *path, const char *key, FILE *to)
{
    char *line = NULL;
    size_t room = 0;
    FILE *from = fopen(path, "rb");
    if (!from)
        return errno == ENOENT;
    bool is_whole = true, is_general = true;
    for (ssize_t n; is_whole && (n = getline(&line, &room, from)) > 0;) {
        is_general = is_general && line[strspn(line, " \t")] != '[';
        if (!is_general || !sets(line, key))
            is_whole = fwrite(line, 1, (size_t)n, to) == (size_t)n;
    }
    free(line);
    is_whole = is_whole && !ferror(from);
    return fclose(from) == 0 && is_whole;
}

tdm_status tdmi_user_config_add(const char *key, const char *value, char *path, size_t path_bytes,
                                tdm_error *err)
{
    char other[1100];
    if (!tdmi_user_config_path(path, path_bytes) ||
        snprintf(other, sizeof other, "%s.new", path) >= (int)sizeof other)
        return TDM_FAIL(err, TDM_E_SYSTEM,
                        "there is no folder for a config file: none of TANDEM_HOME, "
                        "XDG_CONFIG_HOME and HOME is set");
    TDMI_TRY(make_folders(path, err));
    FILE *file = fopen(other, "wb");
    bool is_written =
        file && fprintf(file, "%s = %s\n", key, value) > 0 && copy_rest(path, key, file);
    int reason = errno;
    if (file && fclose(file) != 0 && is_written) {
        is_written = false;
        reason = errno;
    }
    if (is_written && rename(other, path) == 0)
        return TDM_OK;
    reason = is_written ? errno : reason;
    if (file)
        (void)unlink(other);
    return TDM_FAIL(err, TDM_E_SYSTEM, "cannot write %s: %s", path, strerror(reason));
}
