/*
 * Published weights that are known by name, and where they lie on this machine.
 */
#ifndef TANDEM_NN_WEIGHTS_CATALOGUE_H
#define TANDEM_NN_WEIGHTS_CATALOGUE_H

#include "base/arena.h"
#include "tandem/error.h"
#include "tandem/weights.h"

/* TDM_E_USAGE with a suggestion when there is none of that name. */
tdm_status tdmi_catalogue_find(const char *name, const struct tdm_weights_known **known,
                               tdm_error *err) TDM_MUST_USE;
/* TANDEM_HOME/weights; TDM_E_SYSTEM when nothing says where that is. */
tdm_status tdmi_catalogue_folder(tdmi_arena *arena, const char **folder,
                                 tdm_error *err) TDM_MUST_USE;
/* The first of that network that is at hand, its path in the arena; both NULL when there is none,
 * and *wanted the first of them (NULL: nobody published any). */
void tdmi_catalogue_at_hand(const char *network, tdmi_arena *arena,
                            const struct tdm_weights_known **here, const char **path,
                            const struct tdm_weights_known **wanted);

#endif
