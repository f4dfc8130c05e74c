/*
 * The stop flag: how a signal handler asks long work to end soon and cleanly. Training writes a
 * checkpoint and returns TDM_E_STOPPED; everything else returns it after undoing what is half done.
 */
#ifndef TANDEM_STOP_H
#define TANDEM_STOP_H

#include "tandem/api.h"
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Safe in a signal handler. */
TDM_API void tdm_stop_request(void);
TDM_API bool tdm_stop_is_requested(void);
TDM_API void tdm_stop_clear(void);

#ifdef __cplusplus
}
#endif
#endif
