
/*
 * Slots of requests that run, that wait for their record to be written, or
 * that dead workers left (core/accounts/accounts.h).
 */

#include "t/unit/core/accounts/accounts_scene.h"


static const llmgw_process_t  worker = { PID, 77 };


static void
nothing_is_served_without_a_slot(void **state)
{
    uint32_t  i;
    scene_t  *scene = *state;

    for (i = 0; i < 4; i++) {
        assert_int_equal(take(scene), LLMGW_ADMITTED);
    }

    assert_int_equal(take(scene), LLMGW_ACCOUNTS_FULL);
    assert_int_equal(look_at(scene, "alice").totals.refused, 0);
}


static void
record_that_waits_for_the_disk_gives_way(void **state)
{
    uint32_t        i, slots[4];
    scene_t        *scene = *state;
    llmgw_usage_t   first;

    for (i = 0; i < 4; i++) {
        assert_int_equal(take(scene), LLMGW_ADMITTED);
        slots[i] = scene->answer.slot;
        settle(scene, slots[i], 1, 1);

        if (i == 0) {
            first = scene->record;
        }
    }

    assert_int_equal(take(scene), LLMGW_ADMITTED);
    assert_int_equal(scene->answer.slot, slots[0]);
    assert_int_equal(scene->accounts->words.lost, 1);

    llmgw_accounts_written(scene->accounts, slots[0], first.n);
    assert_int_equal(scene->accounts->words.running, 1);
    settle(scene, slots[0], 1, 1);
    llmgw_accounts_written(scene->accounts, slots[0], first.n);
    assert_int_equal(scene->accounts->words.settled, 4);
    llmgw_accounts_written(scene->accounts, slots[0], scene->record.n);
    assert_int_equal(scene->accounts->words.settled, 3);
    assert_false(llmgw_accounts_unwritten(scene->accounts, slots[0],
                                          worker, &first));
    assert_true(llmgw_accounts_unwritten(scene->accounts, slots[1],
                                         worker, &first));
    assert_int_equal(first.n, 2);
}


static void
dead_workers_requests_are_settled_by_what_they_delivered(void **state)
{
    uint32_t              slot;
    scene_t              *scene = *state;
    llmgw_usage_t         again;
    llmgw_process_t       owner;
    llmgw_usage_slot_t   *s;
    llmgw_usage_state_t   is;
    llmgw_accounts_end_t  end = { .outcome = "ok" };

    scene->ask.bytes = 40;
    assert_int_equal(take(scene), LLMGW_ADMITTED);
    slot = scene->answer.slot;
    s = &scene->accounts->slots[slot];
    llmgw_usage_replica(&s->usage, "r1", 2);
    llmgw_usage_slot_delivered(s, 17);
    llmgw_usage_slot_wasted(s, 3);

    assert_int_equal(llmgw_accounts_next_slot(scene->accounts, 0, &is,
                                              &owner), slot);
    assert_int_equal(is, LLMGW_USAGE_RUNNING);
    assert_int_equal(owner.pid, PID);

    /* another process with the same pid */
    assert_false(llmgw_accounts_settle_dead(scene->accounts, slot,
                                            (llmgw_process_t) { PID, 78 },
                                            &scene->now, &again));
    wait_ms(scene, 1500);
    assert_true(llmgw_accounts_settle_dead(scene->accounts, slot, owner,
                                           &scene->now, &scene->record));
    assert_int_equal(scene->record.prompt, 10);
    assert_int_equal(scene->record.completion, 17);
    assert_int_equal(scene->record.wasted, 3);
    assert_int_equal(scene->record.took_ms, 1500);
    assert_int_equal(scene->record.settled_by, LLMGW_SETTLED_BY_WORKER_DIED);
    assert_string_equal(scene->record.key, "alice");
    assert_string_equal(scene->record.replicas, "r1");

    /* a worker that was only stopped settles late: nothing changes */

    assert_false(llmgw_accounts_settle(scene->accounts, slot, owner, &end,
                                       &scene->now, &again));

    /* the sweeper died as well, before or after it wrote */
    assert_true(llmgw_accounts_settle_dead(scene->accounts, slot, owner,
                                           &scene->now, &again));
    assert_memory_equal(&again, &scene->record, sizeof(again));
    llmgw_accounts_written(scene->accounts, slot, again.n);
    assert_false(llmgw_accounts_settle_dead(scene->accounts, slot,
                                            owner, &scene->now, &again));
    assert_int_equal(llmgw_accounts_next_slot(scene->accounts, 0, &is,
                                              &owner), LLMGW_NO_USAGE_SLOT);
}


static void
request_that_reached_no_replica_costs_a_dead_worker_nothing(void **state)
{
    scene_t  *scene = *state;

    scene->ask.bytes = 4000;
    assert_int_equal(take(scene), LLMGW_ADMITTED);
    assert_true(llmgw_accounts_settle_dead(scene->accounts,
                                           scene->answer.slot, worker,
                                           &scene->now, &scene->record));
    assert_int_equal(scene->record.prompt, 0);
}


static void
texts_are_cut_at_a_character(void **state)
{
    char      name[200], model[300];
    scene_t  *scene = *state;

    memset(name, 'a', sizeof(name));
    memset(model, 'b', sizeof(model));
    memcpy(model + 127, "\xc3\xa9", 2);
    scene->ask.model = (llmgw_accounts_text_t) { model, sizeof(model) };
    scene->ask.tenant = (llmgw_accounts_text_t) { name, sizeof(name) };
    assert_int_equal(take(scene), LLMGW_ADMITTED);
    settle(scene, scene->answer.slot, 1, 1);
    assert_int_equal(strlen(scene->record.model), 127);
    assert_int_equal(strlen(scene->record.tenant),
                     LLMGW_USAGE_TENANT_BYTES - 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        scene_test(nothing_is_served_without_a_slot),
        scene_test(record_that_waits_for_the_disk_gives_way),
        scene_test(dead_workers_requests_are_settled_by_what_they_delivered),
        scene_test(request_that_reached_no_replica_costs_a_dead_worker_nothing),
        scene_test(texts_are_cut_at_a_character)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
