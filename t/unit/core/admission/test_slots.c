
/* Slots of replicas, and their generations: core/admission/shared.h. */

#include "t/unit/core/admission/admission_scene.h"


/* A worker frozen for long holds a slot that is now another replica's. */
static void
slot_of_another_generation_is_not_counted_in(void **state)
{
    uint32_t                  i, n;
    scene_t                  *scene = *state;
    llmgw_slot_t             *slot;
    llmgw_claim_t             claim;
    llmgw_lease_t             old, lease;
    llmgw_admission_end_t     end;
    llmgw_admission_self_t    self = scene_self(scene, LLMGW_NO_ROW);
    llmgw_admission_answer_t  answer;

    /* a claim without a row blocks no slot */

    claim = scene_claim(5);
    assert_int_equal(scene_ask(scene, LLMGW_NO_ROW, &claim, &old, &answer),
                     LLMGW_ADMISSION_LEASED);

    i = old.place.slot;
    slot = llmgw_slot(scene->shared, i);
    scene->now_ms += 30001;
    slot->stamp_ms = 1000;
    assert_int_equal(llmgw_slots_unused(scene->shared, i, scene->now_ms), i);
    llmgw_slots_free(scene->shared, i);
    assert_int_equal(llmgw_slots_attach(scene->shared, "r4", 2,
                                        scene->now_ms), i);

    claim = scene_claim(5);
    assert_int_equal(scene_ask(scene, 1, &claim, &lease, &answer),
                     LLMGW_ADMISSION_STALE);
    assert_int_equal(slot->counts.in_flight, 0);
    assert_int_equal(*llmgw_share(scene->shared, i, 1), 0);

    scene_attach(scene, answer.picked.peer);
    assert_int_equal(scene_ask(scene, 1, &claim, &lease, &answer),
                     LLMGW_ADMISSION_LEASED);
    assert_int_not_equal(lease.place.slot, i);

    for (n = 0; n < 4; n++) {                   /* opens the circuit */
        old.is_held = 1;
        old.is_judged = 0;
        llmgw_admission_end(&self, &scene->breaker_conf, &old,
                            LLMGW_VERDICT_FAILURE, scene->now_ms, &end);
        assert_int_equal(end.change, LLMGW_BREAKER_UNCHANGED);
    }

    assert_int_equal(llmgw_breaker_counts(&slot->breaker,
                                          &scene->breaker_conf,
                                          scene->now_ms).failed, 0);
}


static void
slots_are_found_taken_and_given_up(void **state)
{
    uint32_t   i, generation;
    scene_t   *scene = *state;

    assert_int_equal(llmgw_slots_attach(scene->shared, "r1", 2, 1000),
                     scene->places[1].slot);

    i = llmgw_slots_attach(scene->shared, "r3", 2, 1000);
    assert_int_not_equal(i, LLMGW_NO_SLOT);
    assert_int_equal(llmgw_slots_attach(scene->shared, "r4", 2, 1000),
                     LLMGW_NO_SLOT);

    assert_int_equal(llmgw_slots_unused(scene->shared, 0, 31000),
                     LLMGW_NO_SLOT);
    llmgw_slot(scene->shared, scene->places[0].slot)->counts.in_flight = 1;
    assert_int_not_equal(llmgw_slots_unused(scene->shared, 0, 31001),
                         scene->places[0].slot);

    generation = llmgw_slot(scene->shared, i)->generation;
    llmgw_slots_free(scene->shared, i);
    assert_int_equal(llmgw_slots_attach(scene->shared, "r4", 2, 1000), i);
    assert_int_equal(llmgw_slot(scene->shared, i)->generation,
                     generation + 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        SCENE_TEST(slot_of_another_generation_is_not_counted_in),
        SCENE_TEST(slots_are_found_taken_and_given_up),
    };

    return cmocka_run_group_tests_name("slots", tests, NULL, NULL);
}
