/*
 * The bounded queue: a ring under one mutex. Each side waits on its own condition, so a push wakes
 * a consumer and never another producer.
 */
#include "base/queue.h"
#include "base/memory.h"

#include <pthread.h>
#include <string.h>

struct tdmi_queue {
    pthread_mutex_t lock;
    pthread_cond_t has_room, has_items;
    size_t capacity, item_bytes;
    size_t first, count; /* of the ring */
    bool is_stopped, is_failed;
    tdm_error cause;
    unsigned char *items;
};

tdm_status tdmi_queue_new(size_t capacity, size_t item_bytes, tdmi_queue **queue, tdm_error *err)
{
    *queue = NULL;
    if (capacity == 0 || item_bytes == 0)
        return TDM_FAIL(err, TDM_E_BUG,
                        "cannot make a queue of %zu items of %zu bytes: both must be at least 1",
                        capacity, item_bytes);
    tdmi_queue *made = tdmi_alloc(1, sizeof *made);
    unsigned char *items = made ? tdmi_alloc(capacity, item_bytes) : NULL;
    if (!items) {
        tdmi_free(made);
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for a queue of %zu items of %zu bytes",
                        capacity, item_bytes);
    }
    /* With default attributes these cannot fail on the systems we build for. */
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->has_room, NULL);
    pthread_cond_init(&made->has_items, NULL);
    made->capacity = capacity;
    made->item_bytes = item_bytes;
    made->items = items;
    *queue = made;
    return TDM_OK;
}

void tdmi_queue_free(tdmi_queue *queue)
{
    if (!queue)
        return;
    pthread_cond_destroy(&queue->has_items);
    pthread_cond_destroy(&queue->has_room);
    pthread_mutex_destroy(&queue->lock);
    tdmi_free(queue->items);
    tdmi_free(queue);
}

/* Why the queue is over; called with the lock held. */
static tdm_status stopped(const tdmi_queue *queue, tdm_error *err)
{
    if (!queue->is_failed)
        return TDM_FAIL(err, TDM_E_STOPPED, "the queue was stopped");
    if (err)
        *err = queue->cause;
    return queue->cause.code;
}

tdm_status tdmi_queue_push(tdmi_queue *queue, const void *item, tdm_error *err)
{
    tdm_status status = TDM_OK;
    pthread_mutex_lock(&queue->lock);
    while (queue->count == queue->capacity && !queue->is_stopped)
        pthread_cond_wait(&queue->has_room, &queue->lock);
    if (queue->is_stopped) {
        status = stopped(queue, err);
    } else {
        size_t at = (queue->first + queue->count) % queue->capacity;
        memcpy(queue->items + at * queue->item_bytes, item, queue->item_bytes);
        queue->count++;
        pthread_cond_signal(&queue->has_items);
    }
    pthread_mutex_unlock(&queue->lock);
    return status;
}

tdm_status tdmi_queue_pop(tdmi_queue *queue, void *item, tdm_error *err)
{
    tdm_status status = TDM_OK;
    pthread_mutex_lock(&queue->lock);
    while (queue->count == 0 && !queue->is_stopped)
        pthread_cond_wait(&queue->has_items, &queue->lock);
    if (queue->is_failed || queue->count == 0) {
        status = stopped(queue, err);
    } else {
        memcpy(item, queue->items + queue->first * queue->item_bytes, queue->item_bytes);
        queue->first = (queue->first + 1) % queue->capacity;
        queue->count--;
        pthread_cond_signal(&queue->has_room);
    }
    pthread_mutex_unlock(&queue->lock);
    return status;
}

void tdmi_queue_stop(tdmi_queue *queue, const tdm_error *cause)
{
    pthread_mutex_lock(&queue->lock);
    if (!queue->is_stopped) {
        queue->is_stopped = true;
        if (cause && cause->code != TDM_OK) {
            queue->is_failed = true;
            queue->cause = *cause;
        }
        pthread_cond_broadcast(&queue->has_room);
        pthread_cond_broadcast(&queue->has_items);
    }
    pthread_mutex_unlock(&queue->lock);
}
