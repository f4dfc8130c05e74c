/* The environment, read in this one place. */
#include "base/system/env.h"

#include <stdlib.h>
#include <string.h>

const char *tdmi_env(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

/* Digits only, below 2^31. */
static bool read_number(const char *text, int *number)
{
    if (!text || strspn(text, "0123456789") != strlen(text) || strlen(text) > 9)
        return false;
    *number = (int)strtol(text, NULL, 10);
    return true;
}

tdm_status tdmi_env_local(struct tdmi_local *local, tdm_error *err)
{
    const char *rank = tdmi_env("TANDEM_LOCAL_RANK"), *size = tdmi_env("TANDEM_LOCAL_SIZE");
    *local = (struct tdmi_local){0, 0};
    if (!rank && !size)
        return TDM_OK;
    if (read_number(rank, &local->rank) && read_number(size, &local->size) && local->size >= 1 &&
        local->rank < local->size)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_USAGE,
                    "TANDEM_LOCAL_RANK is %s and TANDEM_LOCAL_SIZE is %s: the number of processes "
                    "of this job on this machine, 1 or more, and which of them this is, from 0 to "
                    "that number less 1, are accepted, or neither",
                    rank ? rank : "not set", size ? size : "not set");
}

char *tdmi_env_home(tdmi_arena *arena)
{
    const char *home = tdmi_env("TANDEM_HOME");
    if (home)
        return tdmi_arena_copy(arena, home);
    home = tdmi_env("XDG_CACHE_HOME");
    if (home && home[0] == '/') /* the XDG rule: relative ones are to be ignored */
        return tdmi_arena_printf(arena, "%s/tandem", home);
    home = tdmi_env("HOME");
    return home ? tdmi_arena_printf(arena, "%s/.cache/tandem", home) : NULL;
}
