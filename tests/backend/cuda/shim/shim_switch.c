/* Stacks of the shim's fibres. */
#include "backend/cuda/shim/shim_switch.h"

#if defined(__x86_64__)

#include <stdint.h>

/* A function of the System V convention keeps six registers and its stack over a call. The return
 * address lies above them, put there by the call. */
__asm__(".text\n"
        ".local swap_stacks\n"
        ".type swap_stacks, @function\n"
        "swap_stacks:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size swap_stacks, . - swap_stacks\n");
void swap_stacks(void **top_here, void *top_there);

enum { kept_registers = 6 };

void tdmi_shim_context_make(struct tdmi_shim_context *stand, void *stack, size_t stack_bytes,
                            void (*entry)(void))
{
    /* As if entry had been called: the address to return to, which it never uses, is the last word
     * of a stack that ends on 16 bytes. */
    uintptr_t *top = (uintptr_t *)(void *)((char *)stack + stack_bytes) - 1;
    *--top = (uintptr_t)entry;
    for (int i = 0; i < kept_registers; i++)
        *--top = 0;
    stand->top = top;
}

void tdmi_shim_switch(struct tdmi_shim_context *here, struct tdmi_shim_context *there)
{
    swap_stacks(&here->top, there->top);
}

#else

void tdmi_shim_context_make(struct tdmi_shim_context *stand, void *stack, size_t stack_bytes,
                            void (*entry)(void))
{
    getcontext(&stand->context);
    stand->context.uc_stack.ss_sp = stack;
    stand->context.uc_stack.ss_size = stack_bytes;
    stand->context.uc_link = NULL;
    makecontext(&stand->context, entry, 0);
}

void tdmi_shim_switch(struct tdmi_shim_context *here, struct tdmi_shim_context *there)
{
    swapcontext(&here->context, &there->context);
}

#endif
