/* Ranks as threads of one process, for tests: each opens the transport with the same hub. */
#pragma once

#include "dist/transport.h"

tdm_status tdmi_thread_hub_new(int world, struct tdmi_thread_hub **hub,
                               tdm_error *err) TDM_MUST_USE;
/* Once all ranks have closed. */
void tdmi_thread_hub_free(struct tdmi_thread_hub *hub);
