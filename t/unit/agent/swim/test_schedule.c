
/* Which member is pinged: each by exactly one other, and every pair in turn. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "swim/swim_inner.h"


#define PERIOD_US  500000ULL
#define AHEAD_US   1763650000000000ULL
#define MAX        50

typedef struct {
    size_t   n;
    swim_t  *swims[MAX];
} scene_t;


static void
on_send(void *net, const address_t *to, const uint8_t *bytes, size_t len)
{
}


static void
on_change(void *data, const member_t *member, unsigned what)
{
}


static void
on_conflict(void *data, const char *address)
{
}


static const swim_callbacks_t  callbacks = {
    .on_change = on_change,
    .on_conflict = on_conflict
};


static void
fill_id(char *id, size_t i)
{
    snprintf(id, LLMGW_MEMBERS_NAME_BYTES, "m%zu", i);
}


static void
meet(swim_t *swim, size_t i)
{
    member_update_t  update;

    memset(&update, 0, sizeof(update));
    fill_id(update.facts.id, i);
    strcpy(update.facts.address, "10.0.0.2:7946");
    strcpy(update.facts.grpc, "10.0.0.2:5051");
    update.facts.weight = 1;
    assert_non_null(swim_add(swim, &update, 1));
}


/* n members that know each other; each learned of the others in another order,
   and each started at another time. */
static void
init(scene_t *s, size_t n)
{
    char           id[LLMGW_MEMBERS_NAME_BYTES];
    size_t         i, j;
    swim_config_t  config;

    s->n = n;

    for (i = 0; i < n; i++) {
        fill_id(id, i);
        memset(&config, 0, sizeof(config));
        config.cluster = "c";
        config.id = id;
        config.address = "10.0.0.1:7946";
        config.grpc = "10.0.0.1:5051";
        config.weight = 1;
        config.period_us = PERIOD_US;
        config.ping_timeout_us = 200000;
        config.suspect_timeout_us = 2000000;
        config.on_send = on_send;
        config.callbacks = &callbacks;
        s->swims[i] = swim_create(&config, 90000000ULL - i * 777777);
        swim_set_wall_ahead(s->swims[i], AHEAD_US);

        for (j = 1; j < n; j++) {
            meet(s->swims[i], (i + j * (i % 2 ? 1 : n - 1)) % n);
        }
    }
}


static void
done(scene_t *s)
{
    size_t  i;

    for (i = 0; i < s->n; i++) {
        swim_destroy(s->swims[i]);
    }
}


static size_t
choice(const scene_t *s, size_t i, size_t turn)
{
    const member_t  *member;

    member = schedule_choose(s->swims[i], 100000000ULL + turn * PERIOD_US);
    assert_non_null(member);

    return strtoul(member->facts.id + 1, NULL, 10);
}


/* How many members are pinged by exactly one other. */
static size_t
nmeshed(const scene_t *s, size_t turn)
{
    size_t  i, n, npings[MAX];

    memset(npings, 0, sizeof(npings));

    for (i = 0; i < s->n; i++) {
        assert_int_not_equal(choice(s, i, turn), i);
        npings[choice(s, i, turn)]++;
    }

    for (i = 0, n = 0; i < s->n; i++) {
        n += npings[i] == 1;
    }

    return n;
}


static void
each_is_pinged_by_one_other_in_each_turn(void **state)
{
    size_t               k, turn;
    scene_t              s;
    static const size_t  sizes[] = { 2, 3, 4, 7, 20, MAX };

    for (k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        init(&s, sizes[k]);

        for (turn = 0; turn < 3 * s.n; turn++) {
            assert_int_equal(nmeshed(&s, turn), s.n);
        }

        done(&s);
    }
}


static void
no_pair_waits_for_more_than_twice_around(void **state)
{
    size_t   turn, last[MAX], target, longest;
    scene_t  s;

    init(&s, 20);
    memset(last, 0, sizeof(last));
    longest = 0;

    for (turn = 1; turn <= 1000; turn++) {
        target = choice(&s, 0, turn);
        longest = turn - last[target] > longest ? turn - last[target]
                                                : longest;
        last[target] = turn;
    }

    assert_in_range(longest, 20, 2 * 20 - 1);
    done(&s);
}


/* Member 4 is gone in all tables, and comes back. */
static void
who_is_gone_is_not_pinged_and_the_rest_still_mesh(void **state)
{
    size_t    i, turn, npings[MAX];
    scene_t   s;
    member_t  *gone;

    init(&s, 8);

    for (i = 0; i < 8; i++) {
        if (i != 4) {
            gone = table_find(&s.swims[i]->table, "m4");
            swim_judge(s.swims[i], gone, LLMGW_LIVENESS_DEAD, 1);
            assert_false(gone->is_scheduled);
        }
    }

    for (turn = 0; turn < 30; turn++) {
        memset(npings, 0, sizeof(npings));

        for (i = 0; i < 8; i++) {
            npings[choice(&s, i, turn)] += i != 4;
        }

        for (i = 0; i < 8; i++) {
            assert_int_equal(npings[i], i != 4);
        }
    }

    for (i = 0; i < 8; i++) {
        if (i != 4) {
            swim_judge(s.swims[i], table_find(&s.swims[i]->table, "m4"),
                       LLMGW_LIVENESS_ALIVE, 1);
            assert_int_equal(s.swims[i]->schedule.n, 7);
        }
    }

    done(&s);
}


static void
clock_that_is_set_right_meshes_again(void **state)
{
    size_t   turn, n;
    scene_t  s;

    init(&s, 20);

    swim_set_wall_ahead(s.swims[3], AHEAD_US + 60 * PERIOD_US);

    for (turn = 0, n = 0; turn < 40; turn++) {
        n += nmeshed(&s, turn);
    }

    assert_in_range(n, 40 * 18, 40 * 20 - 1);
    swim_set_wall_ahead(s.swims[3], AHEAD_US);

    for (turn = 0; turn < 40; turn++) {
        assert_int_equal(nmeshed(&s, turn), 20);
    }

    done(&s);
}


static void
alone_one_pings_nobody(void **state)
{
    scene_t  s;

    init(&s, 1);
    assert_null(schedule_choose(s.swims[0], 100000000));
    done(&s);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(each_is_pinged_by_one_other_in_each_turn),
        cmocka_unit_test(no_pair_waits_for_more_than_twice_around),
        cmocka_unit_test(who_is_gone_is_not_pinged_and_the_rest_still_mesh),
        cmocka_unit_test(clock_that_is_set_right_meshes_again),
        cmocka_unit_test(alone_one_pings_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
