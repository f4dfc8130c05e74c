/* The environment, read in this one place. */
#include "base/system/env.h"

#include <stdlib.h>

const char *tdmi_env(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
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
