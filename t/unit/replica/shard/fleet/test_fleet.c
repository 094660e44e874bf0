
/*
 * Which shards may serve, by the members segment and by what became of them.
 */

#include "t/unit/replica/shard/fleet/test_fleet_support.h"


static int
setup(void **state)
{
    *state = malloc(sizeof(scene_t));
    scene_init(*state);

    return 0;
}


static int
teardown(void **state)
{
    scene_done(*state);
    free(*state);

    return 0;
}


static void
until_changed(scene_t *s, int nchanges)
{
    while (s->nchanges < nchanges) {
        ev_run(s->loop, EVRUN_ONCE);
    }
}


static void
members_become_a_path(void **state)
{
    scene_t  *s = *state;

    scene_add(s, "s1", 0, 3);
    scene_add(s, "s2", 4, 7)->shard.is_loaded = 0;
    scene_open(s);

    assert_true(fleet_is_ready(s->fleet));
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);
    assert_int_equal(s->found.n, 2);
    assert_string_equal(s->found.hops[0].id, "s1");
    assert_true(s->found.hops[0].is_loaded);
    assert_string_equal(s->found.hops[1].id, "s2");
    assert_int_equal(s->found.hops[1].first, 4);
    assert_int_equal(s->found.hops[1].last, 7);
    assert_false(s->found.hops[1].is_loaded);
    assert_true(s->found.hops[0].key != s->found.hops[1].key);
}


static void
our_own_zone_is_preferred(void **state)
{
    scene_t  *s = *state;

    scene_add(s, "s1", 0, 7);
    strcpy(scene_add(s, "s2", 0, 7)->shard.zone, "z2");
    s->options.zone = "z2";
    scene_open(s);
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);
    assert_string_equal(s->found.hops[0].id, "s2");

    /* If our own zone is not given, all zones are alike. */

    fleet_close(s->fleet);
    s->options.zone = "";
    scene_open(s);
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);
    assert_string_equal(s->found.hops[0].id, "s1");
}


static void
other_ids_are_never_mixed_in(void **state)
{
    scene_t  *s = *state;

    scene_add(s, "s1", 0, 3);
    scene_add(s, "s2", 4, 7);
    s->models[1].weights_id[0] = 0x12;
    scene_open(s);
    assert_false(fleet_is_ready(s->fleet));
    assert_int_equal(scene_find(s, 0), FLEET_MISMATCH);
    assert_int_equal(s->found.layer, 4);
    assert_string_equal(s->found.why, "no shard for layer 4 of 8 of \"m\", but"
                        " shard \"s2\" has weights 12ababababab, numerics n1");

    s->models[1] = s->models[0];
    strcpy(s->models[1].numerics, "n2");
    scene_publish(s);
    assert_int_equal(scene_find(s, 0), FLEET_MISMATCH);
    assert_non_null(strstr(s->found.why, "numerics n2"));

    /* A model of another name is no candidate and no mismatch. */

    s->models[1] = s->models[0];
    strcpy(s->models[1].name, "m2");
    scene_publish(s);
    assert_int_equal(scene_find(s, 0), FLEET_GAP);
    assert_string_equal(s->found.why, "no shard for layer 4 of 8 of \"m\"");

    s->models[1] = s->models[0];
    scene_publish(s);
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);

    s->members[1].shard.layers = SCENE_LAYERS + 1;
    scene_publish(s);
    assert_int_equal(scene_find(s, 0), FLEET_MISMATCH);
}


static void
assert_gap_at_4(scene_t *s)
{
    scene_publish(s);
    assert_int_equal(scene_find(s, 0), FLEET_GAP);
    assert_int_equal(s->found.layer, 4);
    assert_string_equal(fleet_reason(FLEET_GAP), "shard_unavailable");
}


static void
only_those_alive_ready_and_not_draining_serve(void **state)
{
    unsigned         i;
    scene_t         *s = *state;
    llmgw_member_t  *m;

    scene_add(s, "s1", 0, 3);
    m = scene_add(s, "s2", 4, 7);
    scene_open(s);
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);

    for (i = LLMGW_LIVENESS_SUSPECT + 1; i <= LLMGW_LIVENESS_LEFT; i++) {
        m->liveness = (uint8_t) i;
        assert_gap_at_4(s);
    }

    m->liveness = LLMGW_LIVENESS_ALIVE;

    for (i = 0; i <= LLMGW_SERVICE_DOWN; i++) {
        m->service = (uint8_t) i;

        if (i != LLMGW_SERVICE_READY) {
            assert_gap_at_4(s);
        }
    }

    m->service = LLMGW_SERVICE_READY;
    m->draining = 1;
    strcpy(m->drain_owner, "ops");
    assert_gap_at_4(s);

    m->draining = 0;
    m->drain_owner[0] = '\0';
    strcpy(m->grpc, "somewhere:1");
    assert_gap_at_4(s);

    strcpy(m->grpc, "127.0.0.1:1");
    scene_publish(s);
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);
}


/* A suspect shard may serve: perhaps its agent was only kept waiting. */
static void
a_suspect_is_asked_if_nobody_else_has_its_layers(void **state)
{
    scene_t        *s = *state;
    fleet_path_t    path;
    fleet_query_t   sure = { .to_layer = SCENE_LAYERS - 1,
                             .avoid = FLEET_WITH_SUSPECT };

    scene_add(s, "s1", 0, 3);
    scene_add(s, "s2", 4, 7)->liveness = LLMGW_LIVENESS_SUSPECT;
    scene_add(s, "s3", 4, 7);
    scene_open(s);
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);
    assert_string_equal(s->found.hops[1].id, "s3");

    /* The query waits for a place of a sure shard to become free. */

    s->loads[2].active_requests = 64;
    scene_publish(s);
    assert_int_equal(scene_find(s, 0), FLEET_FULL);

    s->members[2].liveness = LLMGW_LIVENESS_DEAD;
    scene_publish(s);
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);
    assert_string_equal(s->found.hops[1].id, "s2");
    assert_int_equal(fleet_find(s->fleet, &sure, &path), FLEET_GAP);

    /* The replica stays ready. */

    s->loads[1].active_requests = 64;
    scene_publish(s);
    assert_int_equal(scene_find(s, 0), FLEET_FULL);
    ev_run(s->loop, EVRUN_ONCE);
    assert_true(fleet_is_ready(s->fleet));
    assert_int_equal(s->nchanges, 0);

    s->members[1].liveness = LLMGW_LIVENESS_DEAD;
    assert_gap_at_4(s);
}


/* Audits leave half of the places to streams, whatever those take. */
static void
what_can_wait_leaves_half_of_the_places(void **state)
{
    scene_t        *s = *state;
    fleet_path_t    path;
    fleet_query_t   spare = { .to_layer = SCENE_LAYERS - 1, .is_spare = 1 };

    scene_add(s, "s1", 0, 3);
    scene_add(s, "s2", 4, 7);
    s->loads[1].active_requests = 31;
    scene_open(s);
    assert_int_equal(fleet_find(s->fleet, &spare, &path), FLEET_FOUND);

    s->loads[1].active_requests = 32;
    scene_publish(s);
    assert_int_equal(fleet_find(s->fleet, &spare, &path), FLEET_FULL);
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);
}


static void
full_shards_are_told_from_missing_ones(void **state)
{
    scene_t  *s = *state;

    scene_add(s, "s1", 0, 3);
    scene_add(s, "s2", 4, 7);
    s->loads[1].active_requests = 64;
    scene_open(s);

    /* A full shard is waited for, so the replica is ready. */

    assert_true(fleet_is_ready(s->fleet));
    assert_int_equal(scene_find(s, 0), FLEET_FULL);
    assert_int_equal(s->found.layer, 4);
    assert_string_equal(fleet_reason(FLEET_FULL), "shard_full");

    /* A new load does not change the generation. */

    s->loads[1].active_requests = 63;
    llmgw_members_set_load(s->writer, "s2", &s->loads[1]);
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);

    s->members[1].max_capacity = 0;
    s->loads[1].active_requests = 1000;
    scene_publish(s);
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);
}


static void
the_shorter_queue_is_preferred_with_our_own_sessions_in_it(void **state)
{
    int             i;
    scene_t        *s = *state;
    fleet_shard_t  *shard;

    scene_add(s, "s1", 0, 7);
    scene_add(s, "s2", 0, 7);
    s->loads[0].engine.waiting = 2;
    s->loads[0].engine.reported = LLMGW_ENGINE_WAITING;
    scene_open(s);
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);
    assert_string_equal(s->found.hops[0].id, "s2");

    shard = fleet_shard_of(s->fleet, s->found.hops[0].key);

    for (i = 0; i < 3; i++) {
        fleet_count(shard, 1);
    }

    assert_int_equal(scene_find(s, 0), FLEET_FOUND);
    assert_string_equal(s->found.hops[0].id, "s1");

    /* What the shard reports later of these three is not counted twice. */

    s->loads[1].active_requests = 5;
    scene_publish(s);
    (void) scene_find(s, 0);
    assert_int_equal(fleet_load(shard), 5);

    for (i = 0; i < 3; i++) {
        fleet_count(shard, -1);
    }

    assert_int_equal(fleet_load(shard), 2);
}


static void
an_excluded_shard_is_left_out_and_named(void **state)
{
    uint64_t        key;
    scene_t        *s = *state;
    fleet_query_t   sure = { .to_layer = SCENE_LAYERS - 1,
                             .avoid = FLEET_WITH_FAILED };

    scene_add(s, "s1", 0, 3);
    scene_add(s, "s2", 4, 7);
    scene_add(s, "s3", 4, 7);
    scene_open(s);
    key = key_of(s, "s2");

    /* A key that a request excludes is excluded for that request alone. */

    assert_int_equal(scene_find(s, key), FLEET_FOUND);
    assert_string_equal(s->found.hops[1].id, "s3");
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);
    assert_string_equal(s->found.hops[1].id, "s2");

    fleet_exclude(s->fleet, key, SHARD_FAILED);
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);
    assert_string_equal(s->found.hops[1].id, "s3");

    fleet_exclude(s->fleet, key_of(s, "s3"), SHARD_CORRUPTION);
    assert_int_equal(fleet_find(s->fleet, &sure, &s->found), FLEET_GAP);
    assert_string_equal(s->found.why, "no shard for layer 4 of 8 of \"m\", "
                        "\"s2\" is excluded (failed), "
                        "\"s3\" is excluded (shard_corruption)");

    /* Another process of the member is another shard, and is not excluded. */

    s->members[1].replica_start_ms++;
    s->members[2].replica_start_ms++;
    scene_publish(s);
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);
    assert_string_equal(s->found.hops[1].id, "s2");
    assert_true(s->found.hops[1].key != key);
    assert_null(fleet_shard_of(s->fleet, key));
    assert_int_equal(fleet_find(s->fleet, &sure, &s->found), FLEET_FOUND);
}


static void
a_segment_that_is_lost_leaves_the_last_view(void **state)
{
    FILE      *file;
    char       error[LLMGW_MEMBERS_ERROR_BYTES];
    scene_t   *s = *state;
    uint64_t   now;

    scene_add(s, "s1", 0, 7);
    scene_open(s);
    assert_int_equal(s->fleet->view_state, VIEW_FRESH);

    file = fopen(s->path, "r+");
    assert_int_equal(ftruncate(fileno(file), 100), 0);
    fclose(file);
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);
    assert_int_equal(s->fleet->view_state, VIEW_REFUSED);

    (void) unlink(s->path);
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);
    assert_int_equal(s->fleet->view_state, VIEW_ABSENT);

    /* The agent's next heartbeat puts the segment back. */

    scene_publish(s);
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);
    assert_int_equal(s->fleet->view_state, VIEW_FRESH);

    /* The writer was silent for long, and is heard again. */

    now = fleet_now_ms();
    assert_int_equal(llmgw_members_heartbeat(s->writer, now - 3001, error),
                     LLMGW_MEMBERS_DONE);
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);
    assert_int_equal(s->fleet->view_state, VIEW_STALE);
    assert_true(fleet_is_ready(s->fleet));

    assert_int_equal(llmgw_members_heartbeat(s->writer, now, error),
                     LLMGW_MEMBERS_DONE);
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);
    assert_int_equal(s->fleet->view_state, VIEW_FRESH);
    assert_int_equal(s->nchanges, 0);
}


static void
a_shard_that_joins_completes_the_pipeline(void **state)
{
    scene_t  *s = *state;

    scene_add(s, "s1", 0, 3);
    scene_open(s);
    assert_false(fleet_is_ready(s->fleet));

    scene_add(s, "s2", 3, 7);
    scene_publish(s);
    until_changed(s, 1);
    assert_true(fleet_is_ready(s->fleet));

    s->members[0].liveness = LLMGW_LIVENESS_DEAD;
    scene_publish(s);
    until_changed(s, 2);
    assert_false(fleet_is_ready(s->fleet));
}


/* A new agent reports first that it knows no process yet. */
static void
a_new_agent_makes_no_new_shard(void **state)
{
    uint64_t  key;
    scene_t  *s = *state;

    scene_add(s, "s1", 0, 7);
    scene_open(s);
    key = key_of(s, "s1");
    s->members[0].epoch = 2;
    s->members[0].service = LLMGW_SERVICE_STARTING;
    s->members[0].replica_start_ms = 0;
    scene_publish(s);
    assert_int_equal(scene_find(s, 0), FLEET_GAP);
    assert_int_equal(key_of(s, "s1"), key);

    s->members[0].service = LLMGW_SERVICE_READY;
    s->members[0].replica_start_ms = 1000;
    scene_publish(s);
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);
    assert_true(s->found.hops[0].key == key);
}


/* The segment appears later than the replica. */
static void
a_segment_may_come_later(void **state)
{
    scene_t  *s = *state;
    char      path[96];

    scene_add(s, "s1", 0, 7);
    scene_publish(s);
    snprintf(path, sizeof(path), "%s.later", s->path);
    s->options.members = path;
    s->fleet = fleet_open(s->loop, &s->log, &s->options, &s->want,
                          scene_on_changed, s);
    assert_non_null(s->fleet);
    assert_false(fleet_is_ready(s->fleet));
    assert_int_equal(scene_find(s, 0), FLEET_GAP);
    assert_int_equal(s->found.layer, 0);

    assert_int_equal(rename(s->path, path), 0);
    until_changed(s, 1);
    assert_true(fleet_is_ready(s->fleet));
    (void) unlink(path);
}


static void
what_left_is_forgotten_unless_it_is_excluded(void **state)
{
    scene_t  *s = *state;

    scene_add(s, "s1", 0, 3);
    scene_add(s, "s2", 4, 7);
    scene_add(s, "s3", 4, 7);
    scene_open(s);
    assert_int_equal(s->fleet->nshards, 3);

    fleet_exclude(s->fleet, key_of(s, "s2"), SHARD_CORRUPTION);
    s->n = 1;
    scene_publish(s);
    until_changed(s, 1);
    assert_int_equal(s->fleet->nshards, 2);

    /* A shard that comes back is still excluded. */

    s->n = 2;
    scene_publish(s);
    assert_int_equal(scene_find(s, 0), FLEET_GAP);
    assert_non_null(strstr(s->found.why, "\"s2\" is excluded"));
}


static void
work_done_ends_the_doubling_of_exclusions(void **state)
{
    ban_t     *ban;
    scene_t   *s = *state;
    uint64_t   key;

    scene_add(s, "s1", 0, 7);
    scene_open(s);
    key = key_of(s, "s1");
    ban = &fleet_shard_of(s->fleet, key)->ban;
    fleet_exclude(s->fleet, key, SHARD_FAILED);
    fleet_worked(s->fleet, key);
    assert_int_equal(ban->term_ms, BAN_MS);

    ban->until_ms = 0;
    fleet_worked(s->fleet, key);
    assert_int_equal(ban->term_ms, 0);
    fleet_worked(s->fleet, key + 1);
}


/* The model has more shards than are remembered. */
static void
shards_are_remembered_up_to_a_limit(void **state)
{
    char                     names[LLMGW_MEMBERS_LIST_BYTES];
    char                     error[LLMGW_MEMBERS_ERROR_BYTES];
    size_t                   i, n;
    scene_t                 *s = *state;
    llmgw_member_t          *members;
    const llmgw_member_t   **all;

    n = FLEET_SHARDS_MAX + 1;
    scene_add(s, "s0000", 0, 7);
    llmgw_members_writer_destroy(s->writer);
    assert_int_equal(llmgw_members_writer_create(&s->writer, s->path,
                                                 (uint32_t) n, error),
                     LLMGW_MEMBERS_DONE);
    members = calloc(n, sizeof(members[0]));
    all = calloc(n, sizeof(all[0]));
    assert_int_equal(llmgw_members_hold_list(s->writer, names,
                         llmgw_shard_model_write(&s->models[0], names),
                         &s->members[0].models), LLMGW_MEMBERS_DONE);

    for (i = 0; i < n; i++) {
        members[i] = s->members[0];
        snprintf(members[i].id, sizeof(members[i].id), "s%04zu", i);
        all[i] = &members[i];
    }

    assert_int_equal(llmgw_members_publish(s->writer, all, NULL, n, 0),
                     LLMGW_MEMBERS_DONE);
    s->fleet = fleet_open(s->loop, &s->log, &s->options, &s->want, NULL, NULL);
    assert_non_null(s->fleet);
    assert_int_equal(s->fleet->nshards, FLEET_SHARDS_MAX);
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);
    assert_string_equal(s->found.hops[0].id, "s0000");

    free(members);
    free(all);
}


#define fleet_test(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest  tests[] = {
        fleet_test(members_become_a_path),
        fleet_test(our_own_zone_is_preferred),
        fleet_test(other_ids_are_never_mixed_in),
        fleet_test(only_those_alive_ready_and_not_draining_serve),
        fleet_test(a_suspect_is_asked_if_nobody_else_has_its_layers),
        fleet_test(what_can_wait_leaves_half_of_the_places),
        fleet_test(full_shards_are_told_from_missing_ones),
        fleet_test(the_shorter_queue_is_preferred_with_our_own_sessions_in_it),
        fleet_test(an_excluded_shard_is_left_out_and_named),
        fleet_test(a_segment_that_is_lost_leaves_the_last_view),
        fleet_test(a_shard_that_joins_completes_the_pipeline),
        fleet_test(a_new_agent_makes_no_new_shard),
        fleet_test(a_segment_may_come_later),
        fleet_test(what_left_is_forgotten_unless_it_is_excluded),
        fleet_test(work_done_ends_the_doubling_of_exclusions),
        fleet_test(shards_are_remembered_up_to_a_limit)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
