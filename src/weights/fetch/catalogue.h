/*
 * Published weights that are known by name, and where they lie on this machine.
 */
#pragma once

#include "base/arena.h"
#include "tandem/error.h"
#include "tandem/weights.h"

/* TDM_E_USAGE with a suggestion when there is none of that name. */
tdm_status tdmi_catalogue_find(const char *name, const struct tdm_weights_known **known,
                               tdm_error *err) TDM_MUST_USE;
/* Return the network's entry whose file has this name, or whose hash begins with the digits in it
 * ("resnet50-11ad3fa6.safetensors") or with those of sha256 (NULL: skipped). NULL: none. */
const struct tdm_weights_known *tdmi_catalogue_recognise(const char *network, const char *file,
                                                         const char *sha256);
/* Does an entry of the network with a known hash have this size? */
bool tdmi_catalogue_has_size(const char *network, int64_t bytes);
/* TANDEM_HOME/weights; TDM_E_SYSTEM when nothing says where that is. */
tdm_status tdmi_catalogue_folder(tdmi_arena *arena, const char **folder,
                                 tdm_error *err) TDM_MUST_USE;
