
/*
 * Memory of bodies and answers, by share and by client, and which body is ended
 * for room.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/body_memory.h"


#define TOTAL     4000          /* requests 2000, a client 1000, others 1000 */
#define NHOLDERS  16


typedef struct {
    llmgw_body_memory_t  memory;
    llmgw_holder_t   holders[NHOLDERS];
    uint64_t         now_ms;
    int              nended;
    int              ended[NHOLDERS];
} scene_t;

static scene_t  s;


static void
on_end(llmgw_holder_t *holder)
{
    s.ended[s.nended++] = (int) (holder - s.holders);
    assert_true(llmgw_holder_hold(holder, 0));
}


static void
scene_init(int has_clients)
{
    int  i;

    s.nended = 0;
    s.now_ms = 1000;
    llmgw_body_memory_init(&s.memory, TOTAL, has_clients);

    for (i = 0; i < NHOLDERS; i++) {
        llmgw_holder_init(&s.holders[i], &s.memory, i, on_end);
    }
}


/* Holder i receives bytes, a second after the last ones that any received. */
static int
receive(int i, size_t bytes)
{
    s.now_ms += 1000;
    llmgw_holder_received(&s.holders[i], s.now_ms);

    return llmgw_holder_hold(&s.holders[i], bytes);
}


static void
shares_do_not_borrow(void **state)
{
    scene_init(0);

    assert_true(receive(0, 2000));
    assert_false(llmgw_holder_hold(&s.holders[0], 2001));
    assert_true(llmgw_body_memory_take(&s.memory, LLMGW_SHARE_ANSWERS, 1000));
    assert_false(llmgw_body_memory_take(&s.memory, LLMGW_SHARE_ANSWERS, 1));
    assert_true(llmgw_body_memory_take(&s.memory, LLMGW_SHARE_RESUME, 1000));
    assert_false(llmgw_body_memory_take(&s.memory, LLMGW_SHARE_RESUME, 1));

    llmgw_body_memory_give(&s.memory, LLMGW_SHARE_ANSWERS, 1000);
    assert_false(llmgw_body_memory_take(&s.memory, LLMGW_SHARE_RESUME, 1));
    assert_true(llmgw_body_memory_take(&s.memory, LLMGW_SHARE_ANSWERS, 1000));
}


static void
that_which_received_nothing_for_longest_makes_room(void **state)
{
    scene_init(1);

    assert_true(receive(0, 500));
    assert_true(receive(1, 500));
    assert_true(receive(2, 500));
    assert_true(receive(3, 500));
    assert_true(receive(0, 500));           /* 1 waits longest now */

    assert_true(receive(4, 600));
    assert_int_equal(s.nended, 2);
    assert_int_equal(s.ended[0], 1);
    assert_int_equal(s.ended[1], 2);
    assert_int_equal(s.holders[2].received_ms, 4000);
    assert_int_equal(s.memory.requests.held, 1600);
}


static void
first_in_the_list_does_not_end_itself(void **state)
{
    scene_init(0);

    assert_true(receive(0, 1000));
    assert_true(receive(1, 1000));
    assert_true(llmgw_holder_hold(&s.holders[0], 1500));
    assert_int_equal(s.nended, 1);
    assert_int_equal(s.ended[0], 1);
}


static void
client_has_half_and_only_its_own_make_room(void **state)
{
    scene_init(1);

    llmgw_holder_init(&s.holders[2], &s.memory, 1, on_end);
    llmgw_holder_init(&s.holders[3], &s.memory, 1, on_end);

    assert_true(receive(0, 900));           /* another client's, the oldest */
    assert_true(receive(1, 400));
    assert_true(receive(2, 600));
    assert_true(receive(3, 300));
    assert_int_equal(s.nended, 1);
    assert_int_equal(s.ended[0], 1);

    assert_false(receive(3, 1001));
    assert_int_equal(s.nended, 1);
    assert_int_equal(s.holders[3].bytes, 300);
}


static void
clients_that_are_not_told_apart_may_have_all(void **state)
{
    scene_init(0);

    assert_true(receive(0, 2000));
    assert_int_equal(s.memory.clients[0].held, 2000);
}


static void
whole_body_is_not_ended(void **state)
{
    scene_init(0);

    assert_true(receive(0, 1500));
    llmgw_holder_whole(&s.holders[0]);
    llmgw_holder_whole(&s.holders[0]);
    assert_true(receive(1, 400));
    assert_true(receive(2, 500));
    assert_int_equal(s.nended, 1);
    assert_int_equal(s.ended[0], 1);

    assert_true(llmgw_holder_hold(&s.holders[0], 1600));
    assert_int_equal(s.nended, 2);
    assert_int_equal(s.memory.requests.whole, 1600);
}


static void
nothing_is_ended_where_it_would_not_help(void **state)
{
    scene_init(0);

    assert_true(receive(0, 1500));
    llmgw_holder_whole(&s.holders[0]);
    assert_true(receive(1, 200));
    assert_false(receive(2, 501));
    assert_int_equal(s.nended, 0);
    assert_int_equal(s.holders[2].bytes, 0);
}


static void
announced_and_empty_ones_are_not_ended(void **state)
{
    scene_init(0);

    assert_true(receive(0, 0));
    assert_true(receive(1, 1500));
    assert_true(receive(2, 1500));
    assert_int_equal(s.nended, 1);
    assert_int_equal(s.ended[0], 1);
}


static void
end_may_come_twice(void **state)
{
    scene_init(1);

    assert_true(receive(0, 700));
    assert_true(llmgw_holder_hold(&s.holders[0], 0));
    assert_true(llmgw_holder_hold(&s.holders[0], 0));
    assert_null(s.memory.requests.first);
    assert_null(s.memory.requests.last);
    assert_int_equal(s.memory.requests.held, 0);
    assert_int_equal(s.memory.clients[0].held, 0);
}


/* In whatever order things happen, the sums are those of the holders. */
static void
sums_are_those_of_the_holders(void **state)
{
    int       i, n;
    size_t    held, whole;
    unsigned  seed = 7;

    scene_init(1);

    for (n = 0; n < 20000; n++) {
        i = rand_r(&seed) % NHOLDERS;
        s.nended = 0;

        switch (rand_r(&seed) % 8) {
        case 0:
            (void) llmgw_holder_hold(&s.holders[i], 0);
            llmgw_holder_init(&s.holders[i], &s.memory, i % 5, on_end);
            break;
        case 1:
            llmgw_holder_whole(&s.holders[i]);
            break;
        default:
            (void) receive(i, rand_r(&seed) % 1200);
            break;
        }

        for (held = whole = i = 0; i < NHOLDERS; i++) {
            held += s.holders[i].bytes;
            whole += s.holders[i].reads ? 0 : s.holders[i].bytes;
        }

        assert_int_equal(s.memory.requests.held, held);
        assert_int_equal(s.memory.requests.whole, whole);
        assert_true(held <= s.memory.requests.limit);
        assert_true(s.memory.clients[1].held <= s.memory.clients[1].limit);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(shares_do_not_borrow),
        cmocka_unit_test(that_which_received_nothing_for_longest_makes_room),
        cmocka_unit_test(first_in_the_list_does_not_end_itself),
        cmocka_unit_test(client_has_half_and_only_its_own_make_room),
        cmocka_unit_test(clients_that_are_not_told_apart_may_have_all),
        cmocka_unit_test(whole_body_is_not_ended),
        cmocka_unit_test(nothing_is_ended_where_it_would_not_help),
        cmocka_unit_test(announced_and_empty_ones_are_not_ended),
        cmocka_unit_test(end_may_come_twice),
        cmocka_unit_test(sums_are_those_of_the_holders),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
