/* Finding and opening NVIDIA's libraries. */
#include "backend/cuda/vendor/library.h"
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
    for (int n = 0; library->names[n]; n++) {
        for (int i = 0; of_cuda[i]; i++) {
            snprintf(path, sizeof path, of_cuda[i], root, library->names[n]);
            look_at(&search, path);
        }
        for (int f = 0; library->folders[f]; f++)
            look_in_python(&search, root, library->folders[f], library->names[n]);
    }
}

static bool try_path(void *self, const char *path)
{
    void **opened = self;
    /* Never unmapped: these libraries start threads and register exit handlers. */
    *opened = dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    return *opened != NULL;
}

tdm_status tdmi_cuda_library_open(const struct tdmi_cuda_library *library, const char *file,
                                  void **opened, tdm_error *err)
{
    *opened = NULL;
    if (file) {
        if (!try_path(opened, file))
            return TDM_FAIL(err, TDM_E_ABSENT, "opening %s: %s", library->what, dlerror());
        return TDM_OK;
    }
    for (int n = 0; library->names[n]; n++)
        if (try_path(opened, library->names[n]))
            return TDM_OK;
    tdmi_cuda_library_places(library, "", try_path, opened);
    if (*opened)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_ABSENT,
                    "looking for %s: the loader knows no %s, and there is none below "
                    "/usr/local/cuda*, or in %s of $VIRTUAL_ENV or of the system's Python",
                    library->what, library->names[0], library->folders[0]);
}

void tdmi_cuda_library_file(void *opened, const char *symbol, char *path, size_t path_bytes)
{
    Dl_info found;
    void *function = dlsym(opened, symbol);
    const bool is_known = function && dladdr(function, &found) != 0 && found.dli_fname;
    snprintf(path, path_bytes, "%s", is_known ? found.dli_fname : "");
}

void tdmi_cuda_library_look(const struct tdmi_cuda_library_facts *facts, const char *file,
                            struct tdmi_backend_library *found)
{
    void *library = NULL;
    int version = 0;
    tdm_error err = {0};
    *found = (struct tdmi_backend_library){.name = facts->name, .without = facts->without};
    found->is_found = facts->load(file, &library, &version, &err) == TDM_OK;
    if (found->is_found) {
        snprintf(found->version, sizeof found->version, "%d.%d.%d", version / 10000,
                 version / 100 % 100, version % 100);
        tdmi_cuda_library_file(library, facts->symbol, found->file, sizeof found->file);
    } else
        snprintf(found->problem, sizeof found->problem, "%.239s", tdm_error_sentence(&err, 0));
    tdmi_cuda_library_close(library);
}

void tdmi_cuda_library_close(void *opened)
{
    if (opened)
        dlclose(opened);
}

/* dlsym gives an object pointer where a function pointer is meant; POSIX promises that the bytes
 * are the same, ISO C only lets us copy them. */
bool tdmi_cuda_library_call(void *opened, const char *symbol, void *function, size_t function_bytes)
{
    void *found = dlsym(opened, symbol);
    if (found)
        memcpy(function, &found, function_bytes);
    return found != NULL;
}
