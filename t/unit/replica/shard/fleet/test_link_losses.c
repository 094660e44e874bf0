
/*
 * How a session with a shard is lost, and which reason is given then.
 */

#include <sys/socket.h>

#include "t/unit/replica/shard/fleet/test_link_support.h"


/* A wrong answer ends the session with the reason, and resets the stream. */
static void
assert_lost(rig_t *rig, way_t way, shard_reason_t reason)
{
    int         nreset;
    float       rows[2 * SCENE_WIDTH] = { 0 };
    session_t  *s;

    nreset = rig->shard.nreset;
    rig->shard.way = way;
    rig->told[0] = '\0';
    rig->nsessions = 0;
    memset(rig->sessions, 0, sizeof(rig->sessions));
    s = rig_session(rig, 0, 3);

    if (way >= NEVER_STARTS && way != SAYS_NOTHING && way != SAYS_GARBAGE) {
        until_told(rig, "a opened");
        link_step(s->link, 0, 2, 0, rows);
    }

    while (s->nlost == 0) {
        ev_run(rig->scene.loop, EVRUN_ONCE);
    }

    assert_int_equal(s->reason, reason);
    link_close(s->link);
    s->link = NULL;
    until_count(rig, &rig->shard.nreset, nreset + 1);
}


static void
wrong_answers_end_the_session(void **state)
{
    rig_t  *rig = *state;

    rig_open(rig);
    assert_lost(rig, OPENS_WIDER, SHARD_BAD_SHAPE);
    assert_lost(rig, OPENS_TWICE, SHARD_BAD_SHAPE);
    assert_lost(rig, OPENS_WITHOUT_ROWS, SHARD_BAD_SHAPE);
    assert_lost(rig, OPENS_ANOTHER, SHARD_BAD_SHAPE);
    assert_lost(rig, STARTS_ANOTHER, SHARD_BAD_POSITION);
    assert_lost(rig, STARTS_TWICE, SHARD_BAD_POSITION);
    assert_lost(rig, RESULT_OF_ANOTHER, SHARD_BAD_POSITION);
    assert_lost(rig, RESULT_TWICE, SHARD_BAD_POSITION);
    assert_lost(rig, RESULT_SHORT, SHARD_BAD_SHAPE);
    assert_lost(rig, RESULT_CUT, SHARD_BAD_SHAPE);
    assert_lost(rig, RESULT_CHUNKED, SHARD_BAD_SHAPE);
    assert_lost(rig, RESULT_LOGITS, SHARD_BAD_SHAPE);
    assert_lost(rig, SAYS_NOTHING, SHARD_BAD_SHAPE);
    assert_lost(rig, SAYS_GARBAGE, SHARD_BAD_SHAPE);

    /* All were on one connection: a wrong answer ends only the session. */

    assert_int_equal(grpc_server_conns(rig->shard.server), 1);
}


static void
a_refusal_is_told_with_its_reason(void **state)
{
    rig_t          *rig = *state;
    session_t      *s;
    fleet_shard_t  *shard;

    rig_open(rig);
    rig->shard.way = REFUSES_OPEN;
    rig->shard.refusal = SHARD_FULL;
    s = rig_session(rig, 0, 3);
    until_told(rig, "a lost shard_full");
    assert_string_equal(s->text, "no?place");

    /* The shard counts as full for a moment, whatever gossip reports.  The
       test makes the moment longer, so that it is not over yet. */

    shard = rig->scene.fleet->shards[0];
    assert_in_range(shard->full_until_ms, 1, fleet_now_ms() + PEER_FULL_MS);
    shard->full_until_ms = fleet_now_ms() + 60000;
    assert_int_equal(scene_find(&rig->scene, 0), FLEET_FULL);

    rig->shard.refusal = SHARD_WEIGHTS_MISMATCH;
    (void) rig_session(rig, 4, 7);
    until_told(rig, "a lost shard_full, b lost weights_mismatch");
    assert_int_equal(rig->shard.nreset, 0);
}


static void
a_step_that_is_refused_ends_the_session(void **state)
{
    float       rows[SCENE_WIDTH] = { 0 };
    rig_t      *rig = *state;
    session_t  *s;

    rig_open(rig);
    s = rig_session(rig, 0, 3);
    until_told(rig, "a opened");
    rig->shard.way = REFUSES_STEP;
    rig->shard.refusal = SHARD_CORRUPTION;
    link_step(s->link, 0, 1, 0, rows);
    link_step(s->link, 1, 1, 0, rows);
    until_told(rig, "a opened, a lost shard_corruption");
}


static void
a_stream_that_just_ends_is_lost(void **state)
{
    rig_t  *rig = *state;

    rig_open(rig);
    rig->shard.way = FINISHES;
    (void) rig_session(rig, 0, 3);
    until_told(rig, "a lost shard_full");
    assert_string_equal(rig->sessions[0].text,
                        "the stream ended with RESOURCE_EXHAUSTED: enough");

    rig->shard.refusal = SHARD_SESSION_EXPIRED;
    (void) rig_session(rig, 4, 7);
    until_told(rig, "a lost shard_full, b lost session_expired");

    rig->shard.way = RESETS;
    (void) rig_session(rig, 4, 7);
    until_told(rig, "a lost shard_full, b lost session_expired, "
               "c lost failed");
}


static void
a_broken_connection_tells_each_session_once(void **state)
{
    float       rows[SCENE_WIDTH] = { 0 };
    rig_t      *rig = *state;
    session_t  *s;

    rig_open(rig);
    rig->shard.way = KEEPS_STEPS;
    s = rig_session(rig, 0, 3);
    until_told(rig, "a opened");
    (void) rig_session(rig, 4, 7);
    until_told(rig, "a opened, b opened");
    (void) rig_session(rig, 0, 3);
    until_told(rig, "a opened, b opened, c opened");
    link_step(s->link, 0, 1, 0, rows);

    grpc_server_destroy(rig->shard.server);
    rig->shard.server = NULL;
    rig->told[0] = '\0';

    while (rig->sessions[0].nlost + rig->sessions[1].nlost
           + rig->sessions[2].nlost < 3)
    {
        ev_run(rig->scene.loop, EVRUN_ONCE);
    }

    assert_non_null(strstr(rig->told, "a lost failed"));
    assert_non_null(strstr(rig->told, "b lost failed"));
    assert_non_null(strstr(s->text, "connection to 127.0.0.1:"));

    /* Nothing listens there any more. */

    rig->told[0] = '\0';
    s = rig_session(rig, 0, 3);
    until_told(rig, "d lost failed");
    assert_non_null(strstr(s->text, "Connection refused"));
}


/* on_lost() closes other sessions, and opens a new one. */
static void
a_loss_may_close_and_open_sessions(void **state)
{
    rig_t  *rig = *state;

    rig_open(rig);
    (void) rig_session(rig, 0, 3);
    (void) rig_session(rig, 0, 3);
    until_told(rig, "a opened, b opened");
    rig->sessions[0].closes_others = 1;
    rig->sessions[0].opens_again = 1;

    /* As if the shard's agent had reported that the process is down. */

    rig->scene.fleet->shards[0]->peer->key++;
    rig->told[0] = '\0';
    until_told(rig, "a lost failed, c opened");
    assert_non_null(strstr(rig->sessions[0].text, "another process"));
    assert_int_equal(rig->sessions[1].nlost, 0);
    assert_int_equal(rig->scene.fleet->shards[0]->sessions, 1);
}


static void
a_process_that_is_down_takes_its_sessions_with_it(void **state)
{
    rig_t  *rig = *state;

    rig_open(rig);
    (void) rig_session(rig, 0, 3);
    until_told(rig, "a opened");
    rig->scene.members[0].service = LLMGW_SERVICE_DOWN;
    scene_publish(&rig->scene);
    until_told(rig, "a opened, a lost failed");
    assert_non_null(strstr(rig->sessions[0].text, "its process is down"));

    /* Another process has taken its place, at the same address. */

    rig->scene.members[0].service = LLMGW_SERVICE_READY;
    scene_publish(&rig->scene);
    (void) rig_session(rig, 0, 3);
    until_told(rig, "a opened, a lost failed, b opened");
    rig->scene.members[0].replica_start_ms++;
    scene_publish(&rig->scene);
    until_told(rig, "a opened, a lost failed, b opened, b lost failed");
}


/* A host without power resets no connection. */
static void
a_dead_host_is_noticed_if_it_owes_an_answer(void **state)
{
    float           rows[SCENE_WIDTH] = { 0 };
    rig_t          *rig = *state;
    session_t      *s;
    fleet_shard_t  *shard;

    rig_open(rig);
    rig->shard.way = KEEPS_STEPS;
    s = rig_session(rig, 0, 3);
    until_told(rig, "a opened");
    shard = rig->scene.fleet->shards[0];
    rig->scene.members[0].liveness = LLMGW_LIVENESS_DEAD;
    scene_publish(&rig->scene);

    /* No answer is outstanding, so the loss is not noticed. */

    shard->peer->heard_ms -= 60000;

    while (!shard->is_dead) {
        ev_run(rig->scene.loop, EVRUN_ONCE);
    }

    peers_look(rig->scene.fleet, fleet_now_ms());
    assert_non_null(shard->peer);

    link_step(s->link, 0, 1, 0, rows);
    until_told(rig, "a opened, a lost failed");
    assert_non_null(strstr(s->text, "its host is dead"));
}


static void
a_process_that_is_not_known_any_more_is_not_called(void **state)
{
    rig_t        *rig = *state;
    session_t    *s;
    fleet_hop_t   hop = { .key = 4711, .last = 3 };

    rig_open(rig);
    s = &rig->sessions[rig->nsessions++];
    s->rig = rig;
    s->name = 'a';
    s->link = link_open(rig->scene.fleet, &hop, 0, &callbacks, s);
    assert_string_equal(rig->told, "");
    until_told(rig, "a lost failed");
}


/* A listener whose backlog is full answers no SYN. */
static void
a_connection_that_does_not_stand_is_given_up(void **state)
{
    int         i, listener, fds[3];
    rig_t      *rig = *state;
    address_t   address;

    listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(address_parse("127.0.0.1:1", &address), 0);
    address_set_port(&address, 0);
    assert_int_equal(bind(listener, (struct sockaddr *) &address.ss,
                          address.len), 0);
    assert_int_equal(listen(listener, 0), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *) &address.ss,
                                 &address.len), 0);

    for (i = 0; i < 3; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM|SOCK_NONBLOCK, 0);
        (void) connect(fds[i], (struct sockaddr *) &address.ss, address.len);
    }

    rig->shard.address = address;
    rig_open(rig);
    (void) rig_session(rig, 0, 3);
    until_told(rig, "a lost failed");
    assert_non_null(strstr(rig->sessions[0].text, "connect timed out"));
    assert_true(rig->scene.fleet->shards[0]->peer == NULL);

    for (i = 0; i < 3; i++) {
        close(fds[i]);
    }

    close(listener);
}


#define link_test(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest  tests[] = {
        link_test(wrong_answers_end_the_session),
        link_test(a_refusal_is_told_with_its_reason),
        link_test(a_step_that_is_refused_ends_the_session),
        link_test(a_stream_that_just_ends_is_lost),
        link_test(a_broken_connection_tells_each_session_once),
        link_test(a_loss_may_close_and_open_sessions),
        link_test(a_process_that_is_down_takes_its_sessions_with_it),
        link_test(a_dead_host_is_noticed_if_it_owes_an_answer),
        link_test(a_process_that_is_not_known_any_more_is_not_called),
        link_test(a_connection_that_does_not_stand_is_given_up)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
