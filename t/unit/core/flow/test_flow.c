
/* Flow control: bands, fairness, orders, limits, shedding, removal. */

#include "t/unit/core/flow/flow_scene.h"


#define CHANGES   20000


static void
higher_bands_leave_first(void **state)
{
    scene_t  scene;

    scene_init(&scene, LLMGW_FLOW_PRIORITY, LLMGW_FLOW_GLOBAL_STRICT);
    scene_start(&scene);

    add(&scene, 0, -1, 5);
    add(&scene, 1, 3, 9);
    add(&scene, 2, 4, 5);
    add(&scene, 3, 3, 1);
    add(&scene, 4, -3, 1);
    add(&scene, 5, 4, 1);

    assert_leave(&scene, 2, 5, 1, 3, 0, 4);
    scene_done(&scene);
}


static void
fifo_knows_no_priority(void **state)
{
    scene_t  scene;

    scene_init(&scene, LLMGW_FLOW_FIFO, LLMGW_FLOW_GLOBAL_STRICT);
    scene.conf.usage_limit = 0.1;
    scene_start(&scene);

    add(&scene, 0, -1, 5);
    add(&scene, 1, 3, 9);
    add(&scene, 2, 4, 5);
    add(&scene, 3, -3, 1);

    assert_int_equal(leaves(&scene, 1), NOBODY);
    assert_int_equal(leaves(&scene, 0.99), 0);
    assert_leave(&scene, 1, 2, 3);
    scene_done(&scene);
}


static void
round_robin_serves_tenant_after_tenant(void **state)
{
    uint32_t  i;
    scene_t   scene;

    scene_init(&scene, LLMGW_FLOW_PRIORITY, LLMGW_FLOW_ROUND_ROBIN);
    scene_start(&scene);

    /* tenant 1 came ten times, 7 twice, 4 once */
    for (i = 0; i < 10; i++) {
        add(&scene, i, 3, 1);
    }

    add(&scene, 10, 3, 7);
    add(&scene, 11, 3, 4);
    add(&scene, 12, 3, 7);

    assert_leave(&scene, 0, 11);

    /* tenant 4 has nothing left: the first tenant is next, as in BLIS */
    assert_leave(&scene, 1, 10, 2, 12, 3, 4);

    /* bands have turns of their own */
    add(&scene, 20, 4, 7);
    add(&scene, 21, 4, 1);
    add(&scene, 22, 4, 7);
    assert_leave(&scene, 21, 20, 22, 5, 6, 7, 8, 9);
    scene_done(&scene);
}


static void
round_robin_of_fifo_goes_through_all_bands(void **state)
{
    scene_t  scene;

    scene_init(&scene, LLMGW_FLOW_FIFO, LLMGW_FLOW_ROUND_ROBIN);
    scene_start(&scene);

    add(&scene, 0, -3, 1);
    add(&scene, 1, 4, 1);
    add(&scene, 2, 3, 2);
    add(&scene, 3, -1, 2);
    add(&scene, 4, 4, 3);

    assert_leave(&scene, 0, 2, 4, 1, 3);
    scene_done(&scene);
}


static void
earliest_deadline_leaves_first_within_its_flow(void **state)
{
    scene_t  scene;

    scene_init(&scene, LLMGW_FLOW_SLO_DEADLINE, LLMGW_FLOW_GLOBAL_STRICT);
    scene_start(&scene);

    add_until(&scene, 0, 3, 1, LLMGW_FLOW_NO_DEADLINE);
    add_until(&scene, 1, 3, 2, 5);
    add_until(&scene, 2, 3, 1, 70);
    add_until(&scene, 3, 3, 1, 60);
    add_until(&scene, 4, 3, 1, 60);
    add_until(&scene, 5, 4, 1, 900);

    /* the highest band first; then tenant 1's flow while it has the oldest */
    assert_leave(&scene, 5, 3, 4, 2, 0, 1);
    scene_done(&scene);
}


/* Bands 4, 3, -1 and a limit of 0.5: ceilings 1, 0.75, 0.5. */
static void
lower_bands_stop_at_lower_ceilings(void **state)
{
    scene_t  scene;

    scene_init(&scene, LLMGW_FLOW_PRIORITY, LLMGW_FLOW_GLOBAL_STRICT);
    scene.conf.usage_limit = 0.5;
    scene_start(&scene);

    add(&scene, 0, -1, 1);
    assert_int_equal(leaves(&scene, 0.99), 0);

    add(&scene, 1, -1, 1);
    add(&scene, 2, 3, 1);
    add(&scene, 3, 4, 1);

    assert_int_equal(leaves(&scene, 1), NOBODY);
    assert_int_equal(leaves(&scene, 0.99), 3);
    assert_int_equal(leaves(&scene, 0.75), NOBODY);
    assert_int_equal(leaves(&scene, 0.7499), 2);

    /* bands that were seen keep their place, also when they are empty */
    assert_int_equal(leaves(&scene, 0.5), NOBODY);
    assert_int_equal(leaves(&scene, 0.4999), 1);
    scene_done(&scene);
}


static void
full_band_refuses_and_full_queue_refuses(void **state)
{
    scene_t  scene;

    scene_init(&scene, LLMGW_FLOW_PRIORITY, LLMGW_FLOW_GLOBAL_STRICT);
    scene.conf.band_size = 2;
    scene.conf.size = 3;
    scene_start(&scene);

    assert_int_equal(add(&scene, 0, -1, 1), LLMGW_FLOW_QUEUED);
    assert_int_equal(add(&scene, 1, -1, 2), LLMGW_FLOW_QUEUED);
    assert_int_equal(add(&scene, 2, -1, 1), LLMGW_FLOW_REJECTED);
    assert_int_equal(add(&scene, 3, 3, 1), LLMGW_FLOW_QUEUED);
    assert_int_equal(add(&scene, 4, 4, 1), LLMGW_FLOW_REJECTED);

    assert_leave(&scene, 3, 0);
    assert_int_equal(add(&scene, 5, -1, 1), LLMGW_FLOW_QUEUED);
    assert_leave(&scene, 1, 5);
    scene_done(&scene);
}


static void
shedding_gives_up_the_newest_of_the_lowest(void **state)
{
    scene_t  scene;

    scene_init(&scene, LLMGW_FLOW_PRIORITY, LLMGW_FLOW_GLOBAL_STRICT);
    scene.conf.size = 4;
    scene.conf.has_shedding = 1;
    scene_start(&scene);

    add(&scene, 0, -2, 1);
    add(&scene, 1, -2, 2);
    add(&scene, 2, -1, 1);
    add(&scene, 3, 3, 1);

    /* no request is shed for one of its own band or of a lower one */
    assert_int_equal(add(&scene, 4, -2, 1), LLMGW_FLOW_REJECTED);
    assert_int_equal(add(&scene, 5, -3, 1), LLMGW_FLOW_REJECTED);

    assert_int_equal(add(&scene, 6, -1, 1), LLMGW_FLOW_SHED);
    assert_int_equal(scene.victim, 1);
    assert_int_equal(add(&scene, 7, 0, 1), LLMGW_FLOW_SHED);
    assert_int_equal(scene.victim, 0);
    assert_int_equal(add(&scene, 8, 4, 1), LLMGW_FLOW_SHED);
    assert_int_equal(scene.victim, 6);
    assert_int_equal(add(&scene, 9, 4, 1), LLMGW_FLOW_SHED);
    assert_int_equal(scene.victim, 2);

    /* nothing is left that may be shed */
    assert_int_equal(add(&scene, 10, 4, 1), LLMGW_FLOW_REJECTED);
    assert_leave(&scene, 8, 9, 3, 7);
    scene_done(&scene);
}


static void
fifo_sheds_by_priority(void **state)
{
    scene_t  scene;

    scene_init(&scene, LLMGW_FLOW_FIFO, LLMGW_FLOW_GLOBAL_STRICT);
    scene.conf.size = 2;
    scene.conf.has_shedding = 1;
    scene_start(&scene);

    add(&scene, 0, -2, 1);
    add(&scene, 1, -1, 1);
    assert_int_equal(add(&scene, 2, 3, 1), LLMGW_FLOW_SHED);
    assert_int_equal(scene.victim, 0);
    assert_leave(&scene, 1, 2);
    scene_done(&scene);
}


static void
request_that_left_is_not_removed_again(void **state)
{
    scene_t  scene;

    scene_init(&scene, LLMGW_FLOW_SLO_DEADLINE, LLMGW_FLOW_ROUND_ROBIN);
    scene_start(&scene);

    add(&scene, 0, 3, 1);
    add(&scene, 1, 3, 1);
    add(&scene, 2, -1, 1);

    assert_true(llmgw_flow_remove(scene.flow, scene.entries[0], 0));
    assert_false(llmgw_flow_remove(scene.flow, scene.entries[0], 0));
    assert_leave(&scene, 1);
    assert_false(llmgw_flow_remove(scene.flow, scene.entries[1], 1));

    /* its entry is another request's now */
    add(&scene, 3, 3, 1);
    assert_false(llmgw_flow_remove(scene.flow, scene.entries[3], 1));
    assert_false(llmgw_flow_remove(scene.flow, 0, 3));
    assert_false(llmgw_flow_remove(scene.flow, CAPACITY, 3));
    assert_leave(&scene, 3, 2);
    scene_done(&scene);
}


/* A waiting request in the model, which searches all of them. */
typedef struct {
    int       waits;
    uint64_t  number;
    int32_t   priority;
    uint64_t  tenant;
    int64_t   deadline_us;
} model_t;


static int
model_is_before(const model_t *a, const model_t *b)
{
    return a->deadline_us != b->deadline_us
           ? a->deadline_us < b->deadline_us : a->number < b->number;
}


/*
 * The earliest deadline in the flow with the oldest request of the highest
 * band.
 */
static uint32_t
model_next(const model_t *models)
{
    uint32_t        i, best, oldest;
    const model_t  *m;

    oldest = CAPACITY;
    best = CAPACITY;

    for (i = 0; i < CAPACITY; i++) {
        m = &models[i];

        if (m->waits
            && (oldest == CAPACITY || m->priority > models[oldest].priority
                || (m->priority == models[oldest].priority
                    && m->number < models[oldest].number)))
        {
            oldest = i;
        }
    }

    for (i = 0; i < CAPACITY; i++) {
        m = &models[i];

        if (m->waits && m->priority == models[oldest].priority
            && m->tenant == models[oldest].tenant
            && (best == CAPACITY || model_is_before(m, &models[best])))
        {
            best = i;
        }
    }

    return best == CAPACITY ? NOBODY : best;
}


static uint32_t
draw(uint64_t *seed, uint32_t n)
{
    *seed = *seed * 6364136223846793005ull + 1442695040888963407ull;

    return (uint32_t) (*seed >> 33) % n;
}


static void
deadlines_hold_through_any_changes(void **state)
{
    uint32_t  i, request, next;
    uint64_t  seed;
    scene_t   scene;
    model_t   models[CAPACITY] = { { 0 } };

    seed = 3;
    scene_init(&scene, LLMGW_FLOW_SLO_DEADLINE, LLMGW_FLOW_GLOBAL_STRICT);
    scene_start(&scene);

    for (i = 0; i < CHANGES; i++) {
        request = draw(&seed, CAPACITY);

        if (draw(&seed, 4) == 0) {
            next = model_next(models);
            assert_int_equal(leaves(&scene, 0), next);

            if (next != NOBODY) {
                models[next].waits = 0;
            }

        } else if (models[request].waits) {
            assert_true(llmgw_flow_remove(scene.flow, scene.entries[request],
                                          request));
            models[request].waits = 0;

        } else {
            models[request] = (model_t) {
                .waits = 1, .number = i,
                .priority = (int32_t) draw(&seed, 2),
                .tenant = draw(&seed, 2), .deadline_us = draw(&seed, 20)
            };
            assert_int_equal(add_until(&scene, request,
                                       models[request].priority,
                                       models[request].tenant,
                                       models[request].deadline_us),
                             LLMGW_FLOW_QUEUED);
        }
    }

    while ((next = leaves(&scene, 0)) != NOBODY) {
        assert_int_equal(next, model_next(models));
        models[next].waits = 0;
    }

    scene_done(&scene);
}


static void
queue_ends_where_its_memory_does(void **state)
{
    uint32_t  i;
    scene_t   scene;

    scene_init(&scene, LLMGW_FLOW_PRIORITY, LLMGW_FLOW_ROUND_ROBIN);
    scene_start(&scene);

    for (i = 0; i < CAPACITY; i++) {
        assert_int_equal(add(&scene, i, 3, 1000 - i), LLMGW_FLOW_QUEUED);
    }

    assert_int_equal(add(&scene, 0, 4, 0), LLMGW_FLOW_REJECTED);

    for (i = CAPACITY; i-- > 0; /* void */ ) {
        assert_leave(&scene, i);
    }

    scene_done(&scene);
}


static void
names_are_found_with_either_dash(void **state)
{
    llmgw_flow_order_t     order;
    llmgw_flow_fairness_t  fairness;

    assert_int_equal(llmgw_flow_order("slo_deadline", 12, &order), 0);
    assert_int_equal(order, LLMGW_FLOW_SLO_DEADLINE);
    assert_int_equal(llmgw_flow_order("lifo", 4, &order), -1);
    assert_int_equal(llmgw_flow_fairness("round-robin", 11, &fairness), 0);
    assert_int_equal(fairness, LLMGW_FLOW_ROUND_ROBIN);
    assert_int_equal(llmgw_flow_fairness("fair", 4, &fairness), -1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(higher_bands_leave_first),
        cmocka_unit_test(fifo_knows_no_priority),
        cmocka_unit_test(round_robin_serves_tenant_after_tenant),
        cmocka_unit_test(round_robin_of_fifo_goes_through_all_bands),
        cmocka_unit_test(earliest_deadline_leaves_first_within_its_flow),
        cmocka_unit_test(lower_bands_stop_at_lower_ceilings),
        cmocka_unit_test(full_band_refuses_and_full_queue_refuses),
        cmocka_unit_test(shedding_gives_up_the_newest_of_the_lowest),
        cmocka_unit_test(fifo_sheds_by_priority),
        cmocka_unit_test(request_that_left_is_not_removed_again),
        cmocka_unit_test(deadlines_hold_through_any_changes),
        cmocka_unit_test(queue_ends_where_its_memory_does),
        cmocka_unit_test(names_are_found_with_either_dash)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
