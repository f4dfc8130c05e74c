/* Signals belong to the application's threads; those that report a fault stay deliverable. */
#pragma once

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/* Until pthread_sigmask(SIG_SETMASK, before, NULL); a thread started meanwhile keeps it so. */
static inline void tdmi_signals_block(sigset_t *before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, before);
}
