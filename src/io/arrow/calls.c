/*
 * The functions of bridge.h, write.h and storage.h in libtandem: each calls through the table of
 * libtandem_arrow.so, which the first of them loads. Functions on an opened object return no error:
 * the object was opened, so the table is there.
 */
#include "io/arrow/table.h"

#include "base/scope.h"

/* NULL without Arrow. */
static const struct tdmi_arrow_table *arrow(void)
{
    const struct tdmi_arrow_table *table = NULL;
    return tdmi_arrow_load(&table, NULL) == TDM_OK ? table : NULL;
}

tdm_status tdmi_arrow_require(tdm_error *err)
{
    const struct tdmi_arrow_table *table = NULL;
    return tdmi_arrow_load(&table, err);
}

#define OPENS(name, parameters, arguments)  \
    tdm_status tdmi_arrow_##name parameters \
    {                                       \
        TDMI_TRY(tdmi_arrow_require(err));  \
        return arrow()->name arguments;     \
    }
#define CALL(result, name, parameters, arguments) \
    result tdmi_arrow_##name parameters           \
    {                                             \
        return arrow()->name arguments;           \
    }
#define CLOSES(name, type)               \
    void tdmi_arrow_##name(type *object) \
    {                                    \
        if (object)                      \
            arrow()->name(object);       \
    }
#include "io/arrow/calls.def"
