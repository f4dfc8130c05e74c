/* The stop flag: one lock-free atomic, so that a signal handler may set it. */
#include "tandem/event.h"

#include <stdatomic.h>

_Static_assert(ATOMIC_BOOL_LOCK_FREE == 2, "the stop flag must be usable in a signal handler");

static atomic_bool is_requested;

void tdm_stop_request(void)
{
    atomic_store(&is_requested, true);
}

bool tdm_stop_is_requested(void)
{
    return atomic_load(&is_requested);
}

void tdm_stop_clear(void)
{
    atomic_store(&is_requested, false);
}
