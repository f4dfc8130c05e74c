/*
 * The loader looks for these libraries where it looks for every one that libtandem needs: in
 * LD_LIBRARY_PATH, beside libtandem.so in a build, in tandem/ beside it where it is installed. The
 * loader also remembers what it has opened, for all threads, so nothing is kept here: asking again
 * is a look at its list, a microsecond. They are never closed: what outside libraries do when the
 * program ends lies in them.
 */
#include "base/system/plugin.h"
#include "base/memory.h"
#include "tandem/api.h"
#include "tandem/event.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static tdm_status other(tdm_error *err, const char *file, const char *what, const char *found)
{
    return TDM_FAIL(err, TDM_E_ABSENT,
                    "%s, %s, cannot be used: %s; 'make install' puts the one of tandem %s into "
                    "tandem/ beside libtandem.so",
                    file, what, found, tdm_version());
}

/* dlsym gives an object pointer where a function pointer is meant; POSIX promises that the bytes
 * are the same, ISO C only lets us copy them. */
bool tdmi_plugin_symbol(void *library, const char *symbol, void *function)
{
    void *found = dlsym(library, symbol);
    if (found)
        memcpy(function, &found, sizeof found);
    return found != NULL;
}

tdm_status tdmi_plugin_open(const char *name, const char *what, size_t table_bytes,
                            size_t room_bytes, const void **table, tdm_error *err)
{
    static const struct tdmi_plugin_host host = {tdmi_alloc,           tdmi_alloc_aligned,
                                                 tdmi_realloc,         tdmi_free,
                                                 tdmi_memory_has_room, tdm_stop_is_requested};
    tdmi_plugin_function *enter = NULL;
    char file[64], found[256];
    const char *made_by = "";
    size_t its_bytes = 0;
    *table = NULL;
    snprintf(file, sizeof file, "libtandem_%s.so", name);
    /* Lazily: else ten thousand calls of Arrow's libraries are looked up that few commands make.
     * Calls of our own part are looked up at once all the same (cmake/harden.cmake). */
    void *library = room_bytes ? dlopen(file, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD) : NULL;
    if (!library && room_bytes && !tdmi_memory_has_room(room_bytes))
        return TDM_FAIL(err, TDM_E_MEMORY, "opening %s, %s, needs %zu MiB: out of memory", file,
                        what, room_bytes >> 20);
    if (!library)
        library = dlopen(file, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        const char *why = dlerror();
        snprintf(found, sizeof found, "the loader reports '%s'", why ? why : "nothing");
        return other(err, file, what, found);
    }
    if (!tdmi_plugin_symbol(library, "tdmi_plugin", &enter))
        return other(err, file, what, "the one that the loader finds is not of tandem");
    const void *opened = enter(&host, &made_by, &its_bytes);
    if (strcmp(made_by, tdm_version()) != 0) {
        snprintf(found, sizeof found, "the one that the loader finds is of tandem %.40s", made_by);
        return other(err, file, what, found);
    }
    if (table_bytes != 0 && its_bytes != table_bytes) {
        snprintf(found, sizeof found,
                 "the one that the loader finds is of another build of tandem %.40s, with a table "
                 "of %zu bytes in place of %zu",
                 made_by, its_bytes, table_bytes);
        return other(err, file, what, found);
    }
    *table = opened;
    return TDM_OK;
}
