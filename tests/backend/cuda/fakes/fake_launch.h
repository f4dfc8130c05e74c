/* How a stand-in for a library of NVIDIA queues its work: as a kernel, with a copy of its
 * arguments, so that it is recorded where a stream is, and is let at a GPU's memory. */
#pragma once

#include <stddef.h>

struct CUstream_st;

enum { fake_slow_ns = 5000000 }; /* that a slow algorithm takes longer */

/* 0, or a code. NULL in its place: it runs at once. ns: that it takes by the GPU's clock
 * (fake_runtime.h), whatever the machine does meanwhile. */
typedef int fake_launch(struct CUstream_st *queue, void (*run)(void *self), void *self,
                        size_t self_bytes, long ns);
