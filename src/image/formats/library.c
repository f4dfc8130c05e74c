/* Opens an image library by name and looks its functions up. */
#include "image/formats/library.h"
#include "base/system/plugin.h"
#include <dlfcn.h>

tdm_status tdmi_image_library_open(const struct tdmi_image_library *library, void *functions,
                                   tdm_error *err)
{
    void *handle = NULL;
    for (const char *const *file = library->files; *file != NULL && handle == NULL; file++)
        handle = dlopen(*file, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == NULL)
        return TDM_FAIL(err, TDM_E_ABSENT,
                        "%s is not on this machine (%s; Debian 12: sudo apt-get install %s)",
                        library->title, library->files[0], library->package);
    for (const struct tdmi_image_library_symbol *symbol = library->symbols; symbol->name != NULL;
         symbol++)
        if (!tdmi_plugin_symbol(handle, symbol->name, (char *)functions + symbol->offset))
            return TDM_FAIL(err, TDM_E_ABSENT,
                            "the %s of this machine lacks the function %s; the one of Debian 12 "
                            "(%s) has it",
                            library->title, symbol->name, library->package);
    return TDM_OK;
}
