
/* The orders of schedulers, and a list of moments in order of time. */

#include "sim/model/queue.h"
#include "t/unit/sim/model/scene.h"


static model_request_t  requests[] = {
    { .id = "request_9", .priority = 1, .input_tokens = 50, .arrival_us = 5 },
    { .id = "request_10", .priority = 1, .input_tokens = 50, .arrival_us = 5 },
    { .id = "request_2", .priority = 0, .input_tokens = 70, .arrival_us = 9 },
    { .id = "request_3", .priority = 7, .input_tokens = 10, .arrival_us = 1 },
    { .id = "request_4", .priority = 1, .input_tokens = 70, .arrival_us = 2 }
};

#define N  (sizeof(requests) / sizeof(requests[0]))


/* Requests come in this order; request 3 comes back after a preemption. */
static void
expect_order(model_scheduler_t scheduler, const char *order)
{
    size_t         i;
    model_queue_t  queue;

    model_queue_init(&queue, scheduler);

    for (i = 0; i < N; i++) {
        if (i != 3) {
            assert_int_equal(model_queue_add(&queue, &requests[i]), 0);
        }
    }

    assert_int_equal(model_queue_return(&queue, &requests[3]), 0);

    for (i = 0; i < N; i++) {
        assert_ptr_equal(model_queue_head(&queue), &requests[order[i] - '0']);
        model_queue_pop(&queue);
    }

    assert_int_equal(queue.n, 0);
    model_queue_done(&queue);
}


static void
orders_as_each_scheduler_says(void **state)
{
    expect_order(MODEL_FCFS, "30124");
    expect_order(MODEL_PRIORITY_FCFS, "24103");     /* ids as text: 10, 9 */
    expect_order(MODEL_SJF, "31042");
    expect_order(MODEL_REVERSE_PRIORITY, "34102");
}


static void
grows_at_both_ends_and_removes_within(void **state)
{
    size_t           i;
    model_queue_t    queue;
    model_request_t  many[1000];

    model_queue_init(&queue, MODEL_FCFS);

    for (i = 0; i < 500; i++) {
        assert_int_equal(model_queue_add(&queue, &many[500 + i]), 0);
        assert_int_equal(model_queue_return(&queue, &many[499 - i]), 0);
    }

    for (i = 0; i < 1000; i += 2) {
        assert_int_equal(model_queue_remove(&queue, &many[i]), 1);
        assert_int_equal(model_queue_remove(&queue, &many[i]), 0);
    }

    for (i = 1; i < 1000; i += 2) {
        assert_ptr_equal(model_queue_head(&queue), &many[i]);
        model_queue_pop(&queue);
    }

    assert_int_equal(queue.n, 0);
    model_queue_done(&queue);
}


static void
moments_come_in_order_and_can_be_removed(void **state)
{
    size_t           i;
    int64_t          last;
    uint64_t         serial;
    model_moments_t  moments = { 0 };
    model_request_t  many[500];

    for (i = 0; i < 500; i++) {
        assert_int_equal(model_moments_add(&moments, &many[i],
                                           (int64_t) (i * 7919 % 50)), 0);
    }

    for (i = 0; i < 500; i += 3) {
        model_moments_remove(&moments, &many[i]);
    }

    last = -1;
    serial = 0;

    for (i = 0; moments.n > 0; i++) {
        assert_true(moments.items[0].at_us > last
                    || (moments.items[0].at_us == last
                        && moments.items[0].serial > serial));
        assert_true((moments.items[0].request - many) % 3 != 0);
        last = moments.items[0].at_us;
        serial = moments.items[0].serial;
        model_moments_remove(&moments, moments.items[0].request);
    }

    assert_int_equal(i, 500 - 167);
    model_moments_done(&moments);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(orders_as_each_scheduler_says),
        cmocka_unit_test(grows_at_both_ends_and_removes_within),
        cmocka_unit_test(moments_come_in_order_and_can_be_removed)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
