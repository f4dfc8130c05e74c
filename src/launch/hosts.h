/*
 * Hosts that come and go: a script of the user prints those that are there now, one a line,
 * "host:slots" or "host" for one slot.
 */
#pragma once

#include "base/arena.h"
#include "tandem/error.h"

struct tdmi_hosts {
    const char *list; /* "a:2,b:1", in the arena */
    int slots;
};

/* Empty lines and those that begin with # are left out. TDM_E_INPUT: another line, or the script
 * fails. TDM_E_PEER: it has not ended within the deadline. TDM_E_STOPPED: a stop was requested. No
 * host is no error. */
tdm_status tdmi_hosts_ask(const char *script, double deadline, tdmi_arena *arena,
                          struct tdmi_hosts *hosts, tdm_error *err) TDM_MUST_USE;
/* Asks every quarter of a deadline until there are enough slots. TDM_E_PEER: not within ten. */
tdm_status tdmi_hosts_wait(const char *script, int least, double deadline, tdmi_arena *arena,
                           struct tdmi_hosts *hosts, tdm_error *err) TDM_MUST_USE;
/* That quarter. TDM_E_STOPPED: a stop was requested. */
tdm_status tdmi_hosts_pause(double deadline, tdm_error *err) TDM_MUST_USE;
