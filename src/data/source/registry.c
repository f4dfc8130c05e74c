/*
 * Optional parts of this build; the only file of the room with conditionals.
 */
#include "tandem_features.h"

#include "io/compress/inflate.h"
#include "io/storage/storage.h"

#if TDM_HAVE_ZLIB
extern const struct tdmi_inflate_table tdmi_inflate_zlib;
#endif

#if TDM_HAVE_ARROW
extern const struct tdmi_storage_table tdmi_storage_arrow;
#endif

const struct tdmi_storage_table *tdmi_storage_of_uris(void)
{
#if TDM_HAVE_ARROW
    return &tdmi_storage_arrow;
#else
    return NULL;
#endif
}

const struct tdmi_inflate_table *tdmi_inflate_best(void)
{
#if TDM_HAVE_ZLIB
    return &tdmi_inflate_zlib;
#else
    return NULL;
#endif
}
