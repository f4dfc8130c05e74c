/*
 * What this build of the room has: the only file of the room that asks.
 */
#include "tandem_features.h"

#include "data/storage.h"

const struct tdmi_storage_table *tdmi_storage_of_uris(void)
{
    return NULL;
}
