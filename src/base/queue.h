/*
 * A bounded queue between threads. push waits while it is full, pop while it is empty; stop wakes
 * everyone. A producer that fails stops the queue with its error, and every later call returns it.
 */
#ifndef TANDEM_BASE_QUEUE_H
#define TANDEM_BASE_QUEUE_H

#include "tandem/error.h"
#include <stdbool.h>
#include <stddef.h>

typedef struct tdmi_queue tdmi_queue;

tdm_status tdmi_queue_new(size_t capacity, size_t item_bytes, tdmi_queue **queue,
                          tdm_error *err) TDM_MUST_USE;
/* No thread may be inside a call. Accepts NULL. */
void tdmi_queue_free(tdmi_queue *queue);

/* Both copy item_bytes. TDM_E_STOPPED (or the stopping error) after stop; pop first hands out what
 * was pushed before a clean stop (err NULL), and drops it after a failed one. */
tdm_status tdmi_queue_push(tdmi_queue *queue, const void *item, tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_queue_pop(tdmi_queue *queue, void *item, tdm_error *err) TDM_MUST_USE;

/* cause NULL ends the stream cleanly; the first stop counts. Any thread. */
void tdmi_queue_stop(tdmi_queue *queue, const tdm_error *cause);

#endif
