
/*
 * Sessions with a shard: which messages go and come, and how they end in
 * order.
 */

#include <time.h>

#include "t/unit/replica/shard/fleet/test_link_support.h"


static void
rows_go_and_come(void **state)
{
    float       rows[2 * SCENE_WIDTH];
    size_t      i;
    rig_t      *rig = *state;
    session_t  *s;

    for (i = 0; i < 2 * SCENE_WIDTH; i++) {
        rows[i] = (float) i + 0.1f;
    }

    rig_open(rig);
    s = rig_session(rig, 0, 2);
    until_told(rig, "a opened");
    assert_int_equal(rig->shard.open->first_layer, 0);
    assert_int_equal(rig->shard.open->last_layer, 2);
    assert_string_equal(rig->shard.open->model, "m");
    assert_string_equal(rig->shard.open->numerics_id, "n1");
    assert_string_equal(rig->shard.open->caller, "o1");
    assert_int_equal(rig->shard.open->weights_id.len, SHARD_WEIGHTS_BYTES);
    assert_memory_equal(rig->shard.open->weights_id.data,
                        rig->scene.want.weights_id, SHARD_WEIGHTS_BYTES);
    assert_int_equal(rig->shard.open->rows, 7);
    assert_int_equal(rig->shard.open->token.len, 0);

    link_step(s->link, 0, 2, 0, rows);
    link_step(s->link, 2, 1, 0, rows);
    assert_int_equal(s->link->nsteps, 2);
    until_told(rig, "a opened, a started 0, a result 0 2, a started 2, "
               "a result 2 1");
    assert_int_equal(s->link->nsteps, 0);

    for (i = 0; i < SCENE_WIDTH; i++) {
        assert_true(rig->values[i] == rows[i] + 1);
    }

    /* A session that is closed ends its HTTP/2 stream in order. */

    link_close(s->link);
    s->link = NULL;
    until_count(rig, &rig->shard.nended, 1);
    assert_int_equal(rig->shard.ncloses, 1);
    assert_int_equal(rig->shard.nreset, 0);
}


static void
the_last_shard_gives_logits_for_rows_that_are_asked_for(void **state)
{
    float       rows[3 * SCENE_WIDTH] = { 0 };
    rig_t      *rig = *state;
    session_t  *s;

    rig_open(rig);
    s = rig_session(rig, 4, 7);
    until_told(rig, "a opened");
    link_step(s->link, 0, 3, 0, rows);
    link_step(s->link, 3, 3, 2, rows);
    until_told(rig, "a opened, a started 0, a result 0 0, a started 3, "
               "a logits 3 2");
    assert_true(rig->values[0] == 4);
    assert_true(rig->values[SCENE_VOCABULARY] == 5);
}


/* 32 rows of 9,000 numbers are two chunks there and two back. */
static void
large_tensors_are_cut_into_chunks(void **state)
{
    float      *rows;
    size_t      i, n;
    rig_t      *rig = *state;
    session_t  *s;

    rig->scene.want.width = 9000;
    rig_open(rig);
    n = 32 * 9000;
    rows = malloc(n * sizeof(float));
    rig->large = malloc(n * sizeof(float));

    for (i = 0; i < n; i++) {
        rows[i] = (float) i;
    }

    s = rig_session(rig, 0, 3);
    until_told(rig, "a opened");
    link_step(s->link, 0, 32, 0, rows);
    until_told(rig, "a opened, a started 0, a result 0 32");

    for (i = 0; i < n; i++) {
        assert_true(rig->large[i] == (float) i + 1);
    }

    free(rows);
}


static void
halves_go_over_the_wire_where_that_is_asked_for(void **state)
{
    float       rows[SCENE_WIDTH] = { 1, 2, 3, 0.1f, 1000.3f, -7 };
    rig_t      *rig = *state;
    session_t  *s;

    rig->scene.options.dtype = TENSOR_FP16;
    rig_open(rig);
    s = rig_session(rig, 0, 3);
    until_told(rig, "a opened");
    assert_int_equal(rig->shard.open->dtype, LLMGATEWAY__SHARD__DTYPE__FP16);
    link_step(s->link, 0, 1, 0, rows);
    until_told(rig, "a opened, a started 0, a result 0 1");
    assert_true(rig->values[0] == 2);
    assert_true(rig->values[4] == 1001.5f);     /* 1000.5 + 1 */

    /* Logits are never rounded. */

    rig->told[0] = '\0';
    s = rig_session(rig, 4, 7);
    until_told(rig, "b opened");
    link_step(s->link, 2049, 1, 1, rows);
    until_told(rig, "b opened, b started 2049, b logits 2049 1");
    assert_true(rig->values[0] == 2049);
}


static void
sessions_share_one_connection_and_count_at_their_shard(void **state)
{
    rig_t          *rig = *state;
    fleet_shard_t  *shard;

    rig_open(rig);
    (void) rig_session(rig, 0, 3);
    (void) rig_session(rig, 0, 3);
    until_told(rig, "a opened, b opened");
    assert_int_equal(grpc_server_conns(rig->shard.server), 1);
    shard = rig->scene.fleet->shards[0];
    assert_int_equal(shard->sessions, 2);

    /* Two of two places are taken, which is known before gossip reports it. */

    rig->scene.members[0].max_capacity = 2;
    scene_publish(&rig->scene);
    assert_int_equal(scene_find(&rig->scene, 0), FLEET_FULL);
    link_close(rig->sessions[0].link);
    rig->sessions[0].link = NULL;
    assert_int_equal(shard->sessions, 1);
    assert_int_equal(scene_find(&rig->scene, 0), FLEET_FOUND);
}


static void
a_result_says_that_its_step_began(void **state)
{
    float       rows[SCENE_WIDTH] = { 0 };
    rig_t      *rig = *state;
    session_t  *s;

    rig_open(rig);
    rig->shard.way = NEVER_STARTS;
    s = rig_session(rig, 0, 3);
    until_told(rig, "a opened");
    link_step(s->link, 0, 1, 0, rows);
    until_told(rig, "a opened, a started 0, a result 0 1");
}


static void
a_session_may_be_closed_in_its_own_callbacks(void **state)
{
    float       rows[SCENE_WIDTH] = { 0 };
    rig_t      *rig = *state;
    session_t  *s;

    rig_open(rig);
    s = rig_session(rig, 0, 3);
    until_told(rig, "a opened");
    s->closes_on_started = 1;
    link_step(s->link, 0, 1, 0, rows);
    until_count(rig, &rig->shard.nended, 1);
    assert_string_equal(rig->told, "a opened, a started 0");

    /* The same, if only the Result shows that the step had begun. */

    rig->told[0] = '\0';
    s = rig_session(rig, 0, 3);
    until_told(rig, "b opened");
    rig->shard.way = NEVER_STARTS;
    s->closes_on_started = 1;
    link_step(s->link, 0, 1, 0, rows);
    until_count(rig, &rig->shard.nended, 2);
    assert_string_equal(rig->told, "b opened, b started 0");
}


static void
a_lost_session_may_be_closed_before_it_is_told(void **state)
{
    rig_t        *rig = *state;
    session_t    *s;
    fleet_hop_t   hop = { .key = 4711, .last = 3 };

    rig_open(rig);
    s = &rig->sessions[0];
    s->link = link_open(rig->scene.fleet, &hop, 0, &callbacks, s);
    link_close(s->link);
    s->link = NULL;
    rig->nsessions = 1;
    (void) rig_session(rig, 0, 3);
    until_told(rig, "b opened");
    assert_int_equal(s->nlost, 0);
}


/* The shard keeps the HTTP/2 stream of a closed session open. */
static void
a_stream_that_does_not_end_is_reset(void **state)
{
    line_t     *line;
    rig_t      *rig = *state;
    session_t  *s;

    rig_open(rig);
    rig->shard.way = IS_SILENT;
    s = rig_session(rig, 0, 3);
    until_count(rig, &rig->shard.nopens, 1);
    line = s->link->line;
    link_close(s->link);
    s->link = NULL;
    until_count(rig, &rig->shard.nended, 1);
    assert_int_equal(rig->shard.nreset, 0);
    assert_in_range(line->leave_ms, fleet_now_ms() + PEER_LEAVE_MS - 5000,
                    fleet_now_ms() + PEER_LEAVE_MS);
    line->leave_ms = fleet_now_ms();
    until_count(rig, &rig->shard.nreset, 1);
}


static void
a_server_that_goes_away_gets_no_new_session(void **state)
{
    float       rows[SCENE_WIDTH] = { 0 };
    rig_t      *rig = *state;
    session_t  *s;

    rig_open(rig);
    s = rig_session(rig, 0, 3);
    until_told(rig, "a opened");
    grpc_server_goaway(rig->shard.server);

    while (!llmgw_grpc_session_is_closing(grpc_conn_session(
               rig->scene.fleet->shards[0]->peer->conn)))
    {
        ev_run(rig->scene.loop, EVRUN_ONCE);
    }

    /* The next session needs another connection, which the listener does not
       accept. */

    (void) rig_session(rig, 0, 3);
    until_told(rig, "a opened, b lost failed");

    /* The first session continues. */

    link_step(s->link, 0, 1, 0, rows);
    until_told(rig, "a opened, b lost failed, a started 0, a result 0 1");
}


static void
sessions_carry_a_token_of_their_own_claim(void **state)
{
    int            fd;
    char           path[] = "/tmp/llmgw-key-XXXXXX";
    char           error[SHARD_KEY_ERROR_BYTES];
    rig_t         *rig = *state;
    shard_key_t   *key;
    shard_claim_t  claim;
    const char     text[] = "GQzGBRMbq8WlBkmCwPvvlXI8fMXl3b2Yx7zS0m8hZ1E=\n";

    fd = mkstemp(path);
    assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
    close(fd);
    key = shard_key_open(path, error);
    unlink(path);
    assert_non_null(key);

    rig->scene.options.key = key;
    rig_open(rig);
    (void) rig_session(rig, 0, 3);
    until_told(rig, "a opened");
    claim.caller = "o1";
    claim.session = rig->shard.open->session;
    claim.shard = "s1";
    claim.model = "m";
    assert_int_equal(shard_key_verify(key, &claim, (uint64_t) time(NULL),
                                      rig->shard.open->token.data,
                                      rig->shard.open->token.len), 0);
    claim.shard = "s2";
    assert_int_equal(shard_key_verify(key, &claim, (uint64_t) time(NULL),
                                      rig->shard.open->token.data,
                                      rig->shard.open->token.len), -1);
    rig->scene.options.key = NULL;
    link_close(rig->sessions[0].link);
    rig->sessions[0].link = NULL;
    shard_key_close(key);
}


#define link_test(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest  tests[] = {
        link_test(rows_go_and_come),
        link_test(the_last_shard_gives_logits_for_rows_that_are_asked_for),
        link_test(large_tensors_are_cut_into_chunks),
        link_test(halves_go_over_the_wire_where_that_is_asked_for),
        link_test(sessions_share_one_connection_and_count_at_their_shard),
        link_test(a_result_says_that_its_step_began),
        link_test(a_session_may_be_closed_in_its_own_callbacks),
        link_test(a_lost_session_may_be_closed_before_it_is_told),
        link_test(a_stream_that_does_not_end_is_reset),
        link_test(a_server_that_goes_away_gets_no_new_session),
        link_test(sessions_carry_a_token_of_their_own_claim)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
