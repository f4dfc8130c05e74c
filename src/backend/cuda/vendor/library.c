/* Finding and opening NVIDIA's libraries. */
#include "backend/cuda/vendor/library.h"
#include "base/scope.h"
#include "base/system/env.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>

/* %s: root, then a name. */
static const char *const of_cuda[] = {
    "%s/usr/local/cuda/lib64/%s",
    "%s/usr/local/cuda/lib/%s",
    "%s/usr/local/cuda-*/lib64/%s",
    "%s/usr/local/cuda-*/lib/%s",
    NULL,
};
/* %s: root, then a folder inside, then a name. */
static const char *const of_python[] = {
    "%s/usr/local/lib/python3*/dist-packages/%s/%s",
    "%s/usr/local/lib/python3*/site-packages/%s/%s",
    "%s/usr/lib/python3*/dist-packages/%s/%s",
    "%s/usr/lib/python3*/site-packages/%s/%s",
    NULL,
};

enum { path_room = 4096 };

struct search {
    bool (*visit)(void *self, const char *path);
    void *self;
    bool is_over;
};

static void look_at(struct search *search, const char *pattern)
{
    glob_t found;
    if (search->is_over || strlen(pattern) >= path_room - 1 || glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc && !search->is_over; i++)
        search->is_over = search->visit(search->self, found.gl_pathv[i]);
    globfree(&found);
}

static void look_in_python(struct search *search, const char *root, const char *folder,
                           const char *name)
{
    const char *environment = tdmi_env("VIRTUAL_ENV");
    char path[path_room];
    if (environment && environment[0] == '/') { /* else files of the current folder would be run */
        snprintf(path, sizeof path, "%s%s/lib/python3*/site-packages/%s/%s", root, environment,
                 folder, name);
        look_at(search, path);
    }
    for (int i = 0; of_python[i]; i++) {
        snprintf(path, sizeof path, of_python[i], root, folder, name);
        look_at(search, path);
    }
}

void tdmi_cuda_library_places(const struct tdmi_cuda_library *library, const char *root,
                              bool (*visit)(void *self, const char *path), void *self)
{
    struct search search = {visit, self, false};
    char path[path_room];
    for (int n = 0; library->files[n]; n++) {
        for (int i = 0; of_cuda[i]; i++) {
            snprintf(path, sizeof path, of_cuda[i], root, library->files[n]);
            look_at(&search, path);
        }
        for (int f = 0; library->folders[f]; f++)
            look_in_python(&search, root, library->folders[f], library->files[n]);
    }
}

static bool try_path(void *self, const char *path)
{
    void **opened = self;
    /* Never unmapped: these libraries start threads and register exit handlers. */
    *opened = dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    return *opened != NULL;
}

static tdm_status find(const struct tdmi_cuda_library *library, const char *file, void **opened,
                       tdm_error *err)
{
    if (file && !try_path(opened, file))
        return TDM_FAIL(err, TDM_E_ABSENT, "opening %s: %s", library->name, dlerror());
    for (int n = 0; library->files[n] && !*opened; n++)
        (void)try_path(opened, library->files[n]);
    if (!*opened)
        tdmi_cuda_library_places(library, "", try_path, opened);
    if (*opened)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_ABSENT,
                    "looking for %s: the loader knows no %s, and there is none below "
                    "/usr/local/cuda*, or in %s of $VIRTUAL_ENV or of the system's Python",
                    library->name, library->files[0], library->folders[0]);
}

/* dlsym gives an object pointer where a function pointer is meant; POSIX promises that the bytes
 * are the same, ISO C only lets us copy them. */
tdm_status tdmi_cuda_library_open(const struct tdmi_cuda_library *library, const char *file,
                                  void *calls, void **opened, int *version, tdm_error *err)
{
    *opened = NULL;
    TDMI_TRY(find(library, file, opened, err));
    for (int i = 0; library->symbols[i]; i++) {
        void *found = dlsym(*opened, library->symbols[i]);
        if (!found)
            return TDM_FAIL(err, TDM_E_ABSENT, "opening %s: it lacks the function %s",
                            library->name, library->symbols[i]);
        memcpy((char *)calls + (size_t)i * sizeof found, &found, sizeof found);
    }
    *version = library->version(calls);
    if (*version < library->oldest)
        return TDM_FAIL(err, TDM_E_ABSENT,
                        "opening %s: found version %d.%d, and %d.%d or newer is needed",
                        library->name, *version / 10000, *version / 100 % 100,
                        library->oldest / 10000, library->oldest / 100 % 100);
    return TDM_OK;
}

void tdmi_cuda_library_close(void *opened)
{
    if (opened)
        dlclose(opened);
}

void tdmi_cuda_library_look(const struct tdmi_cuda_library *library, const char *file,
                            struct tdmi_backend_library *found)
{
    void *opened = NULL, *calls[TDMI_CUDA_MOST_CALLS];
    int version = 0;
    tdm_error err = {0};
    Dl_info place;
    *found = (struct tdmi_backend_library){.name = library->name, .without = library->without};
    found->is_found =
        tdmi_cuda_library_open(library, file, calls, &opened, &version, &err) == TDM_OK;
    if (found->is_found) {
        snprintf(found->version, sizeof found->version, "%d.%d.%d", version / 10000,
                 version / 100 % 100, version % 100);
        if (dladdr(calls[0], &place) != 0 && place.dli_fname)
            snprintf(found->file, sizeof found->file, "%s", place.dli_fname);
    } else
        snprintf(found->problem, sizeof found->problem, "%.239s", tdm_error_sentence(&err, 0));
    tdmi_cuda_library_close(opened);
}
