/*
 * Under the shim: from one stack to another. The C library's swapcontext asks the system twice a
 * switch for the signal mask, which no kernel changes, and a barrier of 256 threads is 256
 * switches: where we know what a function has to keep, we keep that.
 */
#pragma once

#include <stddef.h>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

/* A place where somebody has stopped, on a stack of his own; zeroed: none yet. */
struct tdmi_shim_context {
#if defined(__x86_64__)
    void *top; /* of his stack, where all that he keeps lies */
#else
    ucontext_t context;
#endif
};

/* Whoever goes there first begins with entry, which never returns, on this stack. */
void tdmi_shim_context_make(struct tdmi_shim_context *stand, void *stack, size_t stack_bytes,
                            void (*entry)(void));
/* Stops here, goes on there. */
void tdmi_shim_switch(struct tdmi_shim_context *here, struct tdmi_shim_context *there);
