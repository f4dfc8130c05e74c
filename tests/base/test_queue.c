/* The bounded queue: order, waiting, clean and failed ends. */
#include "base/queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <string.h>
#include <cmocka.h>
#include "base/each_allocation.h"

static tdmi_queue *new_queue(size_t capacity)
{
    tdmi_queue *queue = NULL;
    tdm_error err = {0};
    assert_int_equal(tdmi_queue_new(capacity, sizeof(int), &queue, &err), TDM_OK);
    return queue;
}

static void push(tdmi_queue *queue, int item)
{
    tdm_error err = {0};
    assert_int_equal(tdmi_queue_push(queue, &item, &err), TDM_OK);
}

static void items_leave_in_the_order_they_came(void **state)
{
    tdmi_queue *queue = new_queue(3);
    tdm_error err = {0};
    int item, next = 0;
    (void)state;
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 1 + round % 3; i++)
            push(queue, round * 10 + i);
        for (int i = 0; i < 1 + round % 3; i++) {
            assert_int_equal(tdmi_queue_pop(queue, &item, &err), TDM_OK);
            assert_int_equal(item, round * 10 + i);
            next++;
        }
    }
    assert_int_equal(next, 19);
    tdmi_queue_free(queue);
    tdmi_queue_free(NULL);
}

struct stream {
    tdmi_queue *queue;
    int first, n_items;
    int64_t sum;
    tdm_status status;
    tdm_error err;
};

static void *produce(void *argument)
{
    struct stream *stream = argument;
    for (int i = 0; i < stream->n_items && stream->status == TDM_OK; i++) {
        int item = stream->first + i;
        stream->status = tdmi_queue_push(stream->queue, &item, &stream->err);
    }
    return NULL;
}

static void *consume(void *argument)
{
    struct stream *stream = argument;
    int item;
    while ((stream->status = tdmi_queue_pop(stream->queue, &item, &stream->err)) == TDM_OK) {
        stream->sum += item;
        stream->n_items++;
    }
    return NULL;
}

static void threads_hand_over_every_item_once(void **state)
{
    enum { n_each = 20000 };
    tdmi_queue *queue = new_queue(4);
    struct stream producers[2] = {{.queue = queue, .first = 0, .n_items = n_each},
                                  {.queue = queue, .first = n_each, .n_items = n_each}};
    struct stream consumers[2] = {{.queue = queue}, {.queue = queue}};
    pthread_t threads[4];
    (void)state;
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, produce, &producers[i]);
        pthread_create(&threads[2 + i], NULL, consume, &consumers[i]);
    }
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    tdmi_queue_stop(queue, NULL);
    pthread_join(threads[2], NULL);
    pthread_join(threads[3], NULL);
    assert_int_equal(consumers[0].n_items + consumers[1].n_items, 2 * n_each);
    assert_true(consumers[0].sum + consumers[1].sum == (int64_t)n_each * (2 * n_each - 1));
    assert_int_equal(consumers[0].status, TDM_E_STOPPED);
    tdmi_queue_free(queue);
}

static void a_clean_stop_hands_out_what_was_pushed(void **state)
{
    tdmi_queue *queue = new_queue(4);
    tdm_error err = {0};
    int item = 0;
    (void)state;
    push(queue, 1);
    push(queue, 2);
    tdmi_queue_stop(queue, NULL);
    assert_int_equal(tdmi_queue_push(queue, &item, &err), TDM_E_STOPPED);
    assert_int_equal(tdmi_queue_pop(queue, &item, &err), TDM_OK);
    assert_int_equal(item, 1);
    assert_int_equal(tdmi_queue_pop(queue, &item, &err), TDM_OK);
    assert_int_equal(item, 2);
    assert_int_equal(tdmi_queue_pop(queue, &item, &err), TDM_E_STOPPED);
    assert_int_equal(tdmi_queue_pop(queue, &item, NULL), TDM_E_STOPPED);
    tdmi_queue_free(queue);
}

static void a_failure_drops_the_rest_and_reaches_everyone(void **state)
{
    tdmi_queue *queue = new_queue(4);
    tdm_error cause = {0}, later = {0}, err = {0};
    int item = 0;
    (void)state;
    push(queue, 1);
    (void)TDM_FAIL(&cause, TDM_E_INPUT, "picture 7 is cut short");
    (void)TDM_FAIL(&later, TDM_E_SYSTEM, "something else");
    tdmi_queue_stop(queue, &cause);
    tdmi_queue_stop(queue, &later); /* the first stop counts */
    tdmi_queue_stop(queue, NULL);
    for (int i = 0; i < 2; i++) {
        tdm_error_clear(&err);
        assert_int_equal(tdmi_queue_pop(queue, &item, &err), TDM_E_INPUT);
        assert_int_equal(err.code, TDM_E_INPUT);
        assert_string_equal(err.frames[0].text, "picture 7 is cut short");
        assert_int_equal(tdmi_queue_push(queue, &item, &err), TDM_E_INPUT);
        assert_int_equal(tdmi_queue_push(queue, &item, NULL), TDM_E_INPUT);
    }
    assert_int_equal(item, 0);
    tdmi_queue_free(queue);
}

static void a_stop_wakes_those_who_wait(void **state)
{
    tdmi_queue *full = new_queue(1), *empty = new_queue(1);
    struct stream producer = {.queue = full, .n_items = 5}, consumer = {.queue = empty};
    pthread_t threads[2];
    tdm_error cause = {0};
    (void)state;
    pthread_create(&threads[0], NULL, produce, &producer);
    pthread_create(&threads[1], NULL, consume, &consumer);
    (void)TDM_FAIL(&cause, TDM_E_PEER, "gone");
    tdmi_queue_stop(full, &cause);
    tdmi_queue_stop(empty, &cause);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert_int_equal(producer.status, TDM_E_PEER);
    assert_int_equal(consumer.status, TDM_E_PEER);
    assert_string_equal(consumer.err.frames[0].text, "gone");
    tdmi_queue_free(full);
    tdmi_queue_free(empty);
}

static void an_empty_queue_is_refused(void **state)
{
    tdmi_queue *queue = NULL;
    tdm_error err = {0};
    (void)state;
    assert_int_equal(tdmi_queue_new(0, 4, &queue, &err), TDM_E_BUG);
    assert_int_equal(tdmi_queue_new(4, 0, &queue, &err), TDM_E_BUG);
    assert_int_equal(tdmi_queue_new(SIZE_MAX / 2, 4, &queue, &err), TDM_E_MEMORY);
    assert_null(queue);
}

static tdm_status queue_scene(tdm_error *err)
{
    tdmi_queue *queue = NULL;
    tdm_status status = tdmi_queue_new(4, 100, &queue, err);
    tdmi_queue_free(queue);
    return status;
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    assert_int_equal(fail_each_allocation(queue_scene), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_leave_in_the_order_they_came),
        cmocka_unit_test(threads_hand_over_every_item_once),
        cmocka_unit_test(a_clean_stop_hands_out_what_was_pushed),
        cmocka_unit_test(a_failure_drops_the_rest_and_reaches_everyone),
        cmocka_unit_test(a_stop_wakes_those_who_wait),
        cmocka_unit_test(an_empty_queue_is_refused),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
