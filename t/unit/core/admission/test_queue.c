
/* The order in which streams wait: core/admission/queue.h. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/admission/queue.h"


#define CAPACITY  (LLMGW_QUEUE_MAX_SKIPPED + 2)

typedef struct {
    llmgw_queue_t        queue;
    llmgw_queue_entry_t  entries[CAPACITY];
} scene_t;


static uint32_t
push(scene_t *scene, uint64_t ticket, uint32_t row, int urgent, int counted)
{
    llmgw_queue_place_t  place;

    memset(&place, 0, sizeof(place));
    place.ticket = ticket;
    place.row = row;
    place.is_urgent = urgent;
    place.is_counted = counted;

    return llmgw_queue_push(&scene->queue, &place, 4);
}


static int
setup(void **state)
{
    static scene_t  scene;

    llmgw_queue_init(&scene.queue, scene.entries, NULL, CAPACITY);
    *state = &scene;

    return 0;
}


/* Takes heads until none is left, and compares their rows. */

static void
leaves_in_order_at(scene_t *scene, const uint32_t *rows, size_t n,
    uint64_t now_ms)
{
    size_t    i;
    uint32_t  head;

    for (i = 0; i < n; i++) {
        head = llmgw_queue_head(&scene->queue, now_ms);
        assert_int_not_equal(head, LLMGW_QUEUE_NONE);
        assert_int_equal(scene->entries[head].row, rows[i]);
        llmgw_queue_remove(&scene->queue, head);
    }

    assert_int_equal(llmgw_queue_head(&scene->queue, now_ms),
                     LLMGW_QUEUE_NONE);
    assert_int_equal(scene->queue.length, 0);
    assert_int_equal(scene->queue.counted, 0);
}


static void
leaves_in_order(scene_t *scene, const uint32_t *rows, size_t n)
{
    leaves_in_order_at(scene, rows, n, 0);
}


static void
first_come_is_first_served(void **state)
{
    scene_t         *scene = *state;
    const uint32_t   rows[] = { 1, 2, 3 };

    push(scene, 0, 1, 0, 1);
    push(scene, 0, 2, 0, 1);
    push(scene, 0, 3, 0, 1);

    leaves_in_order(scene, rows, 3);
}


static void
old_ticket_takes_its_old_place(void **state)
{
    scene_t         *scene = *state;
    uint64_t         old;
    const uint32_t   rows[] = { 1, 9, 2, 3 };

    push(scene, 0, 1, 0, 1);
    old = llmgw_queue_ticket(&scene->queue);
    push(scene, 0, 2, 0, 1);
    push(scene, 0, 3, 0, 1);
    push(scene, old, 9, 0, 0);

    leaves_in_order(scene, rows, 4);
}


static void
urgent_stand_before_all_others(void **state)
{
    scene_t         *scene = *state;
    uint64_t         first, second;
    const uint32_t   rows[] = { 7, 8, 1, 2 };

    first = llmgw_queue_ticket(&scene->queue);
    second = llmgw_queue_ticket(&scene->queue);

    push(scene, 0, 1, 0, 1);
    push(scene, 0, 2, 0, 1);
    push(scene, second, 8, 1, 0);
    push(scene, first, 7, 1, 0);

    leaves_in_order(scene, rows, 4);
}


static void
size_holds_for_new_streams_alone(void **state)
{
    int       i;
    scene_t  *scene = *state;

    for (i = 0; i < 4; i++) {
        assert_int_not_equal(push(scene, 0, 1, 0, 1), LLMGW_QUEUE_NONE);
    }

    assert_int_equal(push(scene, 0, 1, 0, 1), LLMGW_QUEUE_NONE);
    assert_int_not_equal(push(scene, 1, 1, 0, 0), LLMGW_QUEUE_NONE);
    assert_int_not_equal(push(scene, 1, 1, 1, 0), LLMGW_QUEUE_NONE);
    assert_int_equal(scene->queue.length, 6);
    assert_int_equal(scene->queue.counted, 4);
}


static void
memory_is_the_last_limit(void **state)
{
    int       i;
    scene_t  *scene = *state;

    for (i = 0; i < CAPACITY; i++) {
        assert_int_not_equal(push(scene, 0, 1, 0, 0), LLMGW_QUEUE_NONE);
    }

    assert_int_equal(push(scene, 0, 1, 1, 0), LLMGW_QUEUE_NONE);
    llmgw_queue_remove(&scene->queue, llmgw_queue_head(&scene->queue, 0));
    assert_int_not_equal(push(scene, 0, 1, 1, 0), LLMGW_QUEUE_NONE);
}


static void
granted_head_that_does_not_come_is_passed_over(void **state)
{
    scene_t   *scene = *state;
    uint32_t   first, second;

    first = push(scene, 0, 1, 0, 1);
    second = push(scene, 0, 2, 0, 1);

    llmgw_queue_grant(&scene->queue, first, 1000);
    assert_int_equal(llmgw_queue_head(&scene->queue, 1199), first);
    assert_int_equal(llmgw_queue_head(&scene->queue, 1200), second);

    llmgw_queue_grant(&scene->queue, second, 1200);
    assert_int_equal(llmgw_queue_head(&scene->queue, 1400), LLMGW_QUEUE_NONE);

    llmgw_queue_ungrant(&scene->queue, first);
    assert_int_equal(llmgw_queue_head(&scene->queue, 1400), first);
}


/* An older claim returns to its place before a head that was granted. */

static void
head_that_an_older_one_displaced_is_not_passed_over(void **state)
{
    scene_t   *scene = *state;
    uint32_t   head;
    uint64_t   ticket;

    ticket = llmgw_queue_ticket(&scene->queue);
    push(scene, 0, 2, 0, 1);
    head = llmgw_queue_head(&scene->queue, 1000);
    llmgw_queue_grant(&scene->queue, head, 1000);

    push(scene, ticket, 1, 0, 1);
    push(scene, 0, 3, 0, 1);
    leaves_in_order_at(scene, (uint32_t []) { 1, 2, 3 }, 3,
                       1000 + LLMGW_QUEUE_GRANT_MS);
}


static void
dead_workers_entries_are_dropped(void **state)
{
    scene_t         *scene = *state;
    const uint32_t   rows[] = { 1, 3 };

    push(scene, 0, 1, 0, 1);
    push(scene, 0, 2, 0, 1);
    push(scene, 0, 3, 0, 1);
    push(scene, 0, 2, 1, 0);

    assert_int_equal(llmgw_queue_drop_row(&scene->queue, 2), 2);
    assert_int_equal(scene->queue.counted, 2);
    leaves_in_order(scene, rows, 2);
}


static void
who_stands_behind_must_wait(void **state)
{
    scene_t              *scene = *state;
    llmgw_queue_place_t   place;

    memset(&place, 0, sizeof(place));
    assert_false(llmgw_queue_must_wait(&scene->queue, &place));

    place.ticket = llmgw_queue_ticket(&scene->queue);
    push(scene, 0, 1, 0, 1);
    assert_false(llmgw_queue_must_wait(&scene->queue, &place));

    place.ticket = llmgw_queue_ticket(&scene->queue);
    assert_true(llmgw_queue_must_wait(&scene->queue, &place));

    place.is_urgent = 1;
    assert_false(llmgw_queue_must_wait(&scene->queue, &place));
}


static void
skipped_entry_keeps_its_place(void **state)
{
    scene_t              *scene = *state;
    uint32_t              first, second;
    const uint32_t        rows[] = { 1, 2 };
    llmgw_queue_place_t   place;

    memset(&place, 0, sizeof(place));
    first = push(scene, 0, 1, 0, 1);
    second = push(scene, 0, 2, 0, 1);
    place.ticket = llmgw_queue_ticket(&scene->queue);

    assert_true(llmgw_queue_skip(&scene->queue, first));
    assert_int_equal(llmgw_queue_head(&scene->queue, 0), second);
    assert_true(llmgw_queue_must_wait(&scene->queue, &place));

    assert_true(llmgw_queue_skip(&scene->queue, second));
    assert_int_equal(llmgw_queue_head(&scene->queue, 0), LLMGW_QUEUE_NONE);
    assert_false(llmgw_queue_must_wait(&scene->queue, &place));

    llmgw_queue_recall(&scene->queue, 0);
    assert_int_equal(scene->queue.skipped, 0);
    assert_true(llmgw_queue_must_wait(&scene->queue, &place));
    leaves_in_order(scene, rows, 2);
}


static void
few_may_be_skipped(void **state)
{
    int        i;
    scene_t   *scene = *state;
    uint32_t   entry, one_more;

    entry = LLMGW_QUEUE_NONE;

    for (i = 0; i < LLMGW_QUEUE_MAX_SKIPPED; i++) {
        entry = push(scene, 0, 1, 0, 0);
        assert_true(llmgw_queue_skip(&scene->queue, entry));
        assert_true(llmgw_queue_skip(&scene->queue, entry));
    }

    one_more = push(scene, 0, 1, 0, 0);
    assert_false(llmgw_queue_skip(&scene->queue, one_more));
    assert_int_equal(llmgw_queue_head(&scene->queue, 0), one_more);

    llmgw_queue_remove(&scene->queue, entry);
    assert_true(llmgw_queue_skip(&scene->queue, one_more));

    assert_int_equal(llmgw_queue_drop_row(&scene->queue, 1),
                     LLMGW_QUEUE_MAX_SKIPPED);
    assert_int_equal(scene->queue.skipped, 0);
    llmgw_queue_recall(&scene->queue, 0);
}




/* Mending computes links and counts from the used entries alone. */
static void
mending_makes_the_order_out_of_the_entries(void **state)
{
    scene_t         *scene = *state;
    uint32_t         i;
    const uint32_t   rows[] = { 9, 7, 1, 2, 3, 4, 5, 6 };

    for (i = 1; i <= 6; i++) {
        push(scene, 100 + 10 * i, i, 0, 0);
    }

    push(scene, 300, 7, 1, 1);
    push(scene, 290, 9, 1, 1);
    push(scene, 105, 8, 0, 1);
    assert_true(llmgw_queue_skip(&scene->queue, 2));
    scene->entries[8].is_used = 0;               /* row 8's */

    for (i = 0; i < CAPACITY; i++) {
        scene->entries[i].next = i ^ 1;
        scene->entries[i].prev = 7;
    }

    scene->queue.waits.first = scene->queue.waits.last = 3;
    scene->queue.free = 3;
    scene->queue.length = scene->queue.counted = scene->queue.skipped = 99;
    scene->queue.ticket = 5;

    llmgw_queue_mend(&scene->queue);

    assert_int_equal(scene->queue.length, 8);
    assert_int_equal(scene->queue.counted, 2);
    assert_int_equal(scene->queue.skipped, 1);
    assert_int_equal(scene->queue.ticket, 300);

    llmgw_queue_recall(&scene->queue, 0);
    leaves_in_order(scene, rows, 8);

    for (i = 0; i < CAPACITY; i++) {
        assert_int_not_equal(push(scene, 0, 1, 0, 0), LLMGW_QUEUE_NONE);
    }
}


static void
removing_twice_does_no_harm(void **state)
{
    scene_t   *scene = *state;
    uint32_t   entry;

    entry = push(scene, 0, 1, 0, 1);
    push(scene, 0, 2, 0, 1);

    llmgw_queue_remove(&scene->queue, entry);
    llmgw_queue_remove(&scene->queue, entry);

    assert_int_equal(scene->queue.length, 1);
    assert_int_equal(scene->queue.counted, 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup(first_come_is_first_served, setup),
        cmocka_unit_test_setup(old_ticket_takes_its_old_place, setup),
        cmocka_unit_test_setup(urgent_stand_before_all_others, setup),
        cmocka_unit_test_setup(size_holds_for_new_streams_alone, setup),
        cmocka_unit_test_setup(memory_is_the_last_limit, setup),
        cmocka_unit_test_setup(granted_head_that_does_not_come_is_passed_over,
                               setup),
        cmocka_unit_test_setup(
            head_that_an_older_one_displaced_is_not_passed_over, setup),
        cmocka_unit_test_setup(dead_workers_entries_are_dropped, setup),
        cmocka_unit_test_setup(who_stands_behind_must_wait, setup),
        cmocka_unit_test_setup(skipped_entry_keeps_its_place, setup),
        cmocka_unit_test_setup(few_may_be_skipped, setup),
        cmocka_unit_test_setup(mending_makes_the_order_out_of_the_entries,
                               setup),
        cmocka_unit_test_setup(removing_twice_does_no_harm, setup),
    };

    return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
