/* Where the user's config file is, and adding a line to it. */
#include "cli/user_config.h"
#include "base/file/file.h"
#include "base/scope.h"
#include "base/system/env.h"
#include "base/text/text.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char file_name[] = "config.toml";
enum { MOST_BYTES = 1 << 20 };

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

static bool sets(const char *line, const char *key)
{
    const size_t n = strlen(key);
    line += strspn(line, " \t");
    return strncmp(line, key, n) == 0 && line[n + strspn(line + n, " \t")] == '=';
}

/* Copy the former content behind the new line, without a line that sets the same for all commands:
 * the answer may have been given in another terminal meanwhile. */
static void copy_rest(const char *former, const char *key, tdmi_text *to)
{
    bool is_general = true;
    while (*former) {
        const char *end = strchr(former, '\n');
        const size_t n = end ? (size_t)(end - former) + 1 : strlen(former);
        is_general = is_general && former[strspn(former, " \t")] != '[';
        if (!is_general || !sets(former, key))
            tdmi_text_add(to, former, n);
        former += n;
    }
}

static tdm_status read_former(const char *path, char **former, tdm_error *err)
{
    void *bytes = NULL;
    size_t n = 0;
    struct stat facts;
    *former = NULL;
    if (tdmi_file_kind_of(path) != TDMI_FILE_MISSING) {
        TDMI_TRY(tdmi_file_read(path, MOST_BYTES, &bytes, &n, err));
        *former = bytes;
        return TDM_OK;
    }
    if (lstat(path, &facts) == 0) /* writing would put a file in its place */
        return TDM_FAIL(err, TDM_E_SYSTEM,
                        "cannot write %s: it is a link to a file that is missing", path);
    return TDM_OK;
}

tdm_status tdmi_user_config_add(const char *key, const char *value, char *path, size_t path_bytes,
                                tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    TDMI_AT_END(tdmi_free_at) char *former = NULL;
    if (!tdmi_user_config_path(path, path_bytes))
        return TDM_FAIL(err, TDM_E_SYSTEM,
                        "there is no folder for a config file: none of TANDEM_HOME, "
                        "XDG_CONFIG_HOME and HOME is set");
    TDMI_TRY(read_former(path, &former, err));
    tdmi_text_printf(&text, "%s = %s\n", key, value);
    if (former)
        copy_rest(former, key, &text);
    TDMI_TRY(tdmi_text_status(&text, err));
    return tdmi_file_write(path, text.bytes, text.length_bytes, err);
}
