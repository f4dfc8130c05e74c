/*
 * Each library is opened by its usual names, asked one question and closed again.
 */
#include "dist/library_probe.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* MPI_MAX_LIBRARY_VERSION_STRING is 256 for Open MPI and 8192 for MPICH. */
enum { mpi_version_max = 8192 };

static void *open_first(const char *const *names, const char *what,
                        struct tdm_machine_library *library)
{
    memset(library, 0, sizeof *library);
    for (const char *const *name = names; *name; name++) {
        void *handle = dlopen(*name, RTLD_LAZY | RTLD_LOCAL);
        if (handle) {
            snprintf(library->file, sizeof library->file, "%s", *name);
            return handle;
        }
    }
    snprintf(library->problem, sizeof library->problem,
             "%s is not installed where the loader looks", what);
    return NULL;
}

/* See track/nvml.c: dlsym's answer is copied, not cast. */
static bool look_up(void *handle, const char *symbol, void *function, size_t function_bytes,
                    struct tdm_machine_library *library)
{
    void *found = dlsym(handle, symbol);
    if (!found) {
        snprintf(library->problem, sizeof library->problem, "%s has no %s", library->file, symbol);
        return false;
    }
    memcpy(function, &found, function_bytes);
    return true;
}

static void keep_first_line(struct tdm_machine_library *library, const char *version)
{
    snprintf(library->version, sizeof library->version, "%.*s", (int)strcspn(version, "\r\n"),
             version);
    library->is_found = true;
}

void tdmi_library_probe_mpi(struct tdm_machine_library *library)
{
    /* Open MPI 4 and 5; the ABI name that MPICH, Intel MPI and MVAPICH share; Debian's MPICH. */
    static const char *const names[] = {"libmpi.so.40", "libmpi.so.12", "libmpich.so.12",
                                        "libmpi.so", NULL};
    int (*get_version)(char *, int *);
    char version[mpi_version_max + 1] = "";
    int length = 0;
    void *handle = open_first(names, "MPI", library);
    if (!handle)
        return;
    if (look_up(handle, "MPI_Get_library_version", &get_version, sizeof get_version, library)) {
        if (get_version(version, &length) == 0)
            keep_first_line(library, version);
        else
            snprintf(library->problem, sizeof library->problem, "%s does not tell its version",
                     library->file);
    }
    dlclose(handle);
}

void tdmi_library_probe_nccl(struct tdm_machine_library *library)
{
    static const char *const names[] = {"libnccl.so.2", "libnccl.so", NULL};
    int (*get_version)(int *);
    int code = 0;
    void *handle = open_first(names, "NCCL", library);
    if (!handle)
        return;
    if (look_up(handle, "ncclGetVersion", &get_version, sizeof get_version, library)) {
        if (get_version(&code) == 0) {
            /* 21805 is 2.18.5; before 2.9 the scheme was 2708 for 2.7.8. */
            char version[48];
            int major = code >= 10000 ? code / 10000 : code / 1000;
            int minor = code >= 10000 ? code / 100 % 100 : code / 100 % 10;
            snprintf(version, sizeof version, "NCCL %d.%d.%d", major, minor, code % 100);
            keep_first_line(library, version);
        } else {
            snprintf(library->problem, sizeof library->problem, "%s does not tell its version",
                     library->file);
        }
    }
    dlclose(handle);
}
