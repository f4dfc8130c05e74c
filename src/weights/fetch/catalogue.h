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
/* Of that network, the one whose hash has the digits that the name of a file has
 * ("resnet50-11ad3fa6.safetensors"), or that sha256 begins with (NULL: not looked at). NULL: none.
 */
const struct tdm_weights_known *tdmi_catalogue_recognise(const char *network, const char *file,
                                                         const char *sha256);
/* Could a file of so many bytes be one of them whose hash is known? */
bool tdmi_catalogue_has_size(const char *network, int64_t bytes);
/* TANDEM_HOME/weights; TDM_E_SYSTEM when nothing says where that is. */
tdm_status tdmi_catalogue_folder(tdmi_arena *arena, const char **folder,
                                 tdm_error *err) TDM_MUST_USE;
