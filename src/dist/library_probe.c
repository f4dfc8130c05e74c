/*
 * Each library is opened by its usual names, asked for its version and closed again.
 */
#include "dist/library_probe.h"
#include "base/system/plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* MPI_MAX_LIBRARY_VERSION_STRING is 256 for Open MPI and 8192 for MPICH. */
enum { mpi_version_max = 8192 };

/* Open the first library of these names that is there, and find its function. */
static void *open_first(const char *const *names, const char *what, const char *symbol,
                        void *function, struct tdm_machine_library *library)
{
    void *handle = NULL;
    memset(library, 0, sizeof *library);
    for (; *names && !handle; names++) {
        snprintf(library->file, sizeof library->file, "%s", *names);
        handle = dlopen(*names, RTLD_LAZY | RTLD_LOCAL);
    }
    if (handle && tdmi_plugin_symbol(handle, symbol, function))
        return handle;
    if (handle) {
        snprintf(library->problem, sizeof library->problem, "%s has no %s", library->file, symbol);
        dlclose(handle);
    } else {
        library->file[0] = '\0';
        snprintf(library->problem, sizeof library->problem,
                 "%s is not installed where the loader looks", what);
    }
    return NULL;
}

/* Keep the first line of the version ("": the library did not report it) and close the library. */
static void finish(struct tdm_machine_library *library, void *handle, const char *version)
{
    library->is_found = *version != '\0';
    if (library->is_found)
        snprintf(library->version, sizeof library->version, "%.*s", (int)strcspn(version, "\r\n"),
                 version);
    else
        snprintf(library->problem, sizeof library->problem, "%s does not report its version",
                 library->file);
    dlclose(handle);
}

void tdmi_library_probe_mpi(struct tdm_machine_library *library)
{
    /* Open MPI 4 and 5; the ABI name that MPICH, Intel MPI and MVAPICH share; Debian's MPICH. */
    static const char *const names[] = {"libmpi.so.40", "libmpi.so.12", "libmpich.so.12",
                                        "libmpi.so", NULL};
    int (*get_version)(char *, int *);
    char version[mpi_version_max + 1] = "";
    int length = 0;
    void *handle = open_first(names, "MPI", "MPI_Get_library_version", &get_version, library);
    if (!handle)
        return;
    if (get_version(version, &length) != 0)
        version[0] = '\0';
    finish(library, handle, version);
}

void tdmi_library_probe_nccl(struct tdm_machine_library *library)
{
    static const char *const names[] = {"libnccl.so.2", "libnccl.so", NULL};
    int (*get_version)(int *);
    char version[48] = "";
    int code = 0;
    void *handle = open_first(names, "NCCL", "ncclGetVersion", &get_version, library);
    if (!handle)
        return;
    if (get_version(&code) == 0) {
        /* 21805 is 2.18.5; before 2.9 the scheme was 2708 for 2.7.8. */
        int major = code >= 10000 ? code / 10000 : code / 1000;
        int minor = code >= 10000 ? code / 100 % 100 : code / 100 % 10;
        snprintf(version, sizeof version, "NCCL %d.%d.%d", major, minor, code % 100);
    }
    finish(library, handle, version);
}
