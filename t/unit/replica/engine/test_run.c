
/*
 * Runs between a stream and a kind of engine, which are both made up: the
 * functions of proto/grpc/session.h that run.c calls are defined here.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/grpc/conn.h"
#include "replica/engine/run.h"


struct llmgw_grpc_stream_s {
    uint8_t   message[256];
    size_t    queued;
    uint64_t  timeout_ms;
    int       has_memory;
    int       ends;             /* how often the stream was finished */
    int       status;
    char      text[256];
    int       is_draining;
};

typedef struct {
    run_t  run;
    int    starts;
    int    cancels;
    int    resumes;
} fake_run_t;

static struct {
    engine_t             engine;
    llmgw_grpc_status_t  verdict;       /* the kind's, on new requests */
    int                  cancels;
} scene;


/* --- the stream's side */

uint8_t *
llmgw_grpc_send_reserve(llmgw_grpc_stream_t *stream, size_t len)
{
    assert_true(len <= sizeof(stream->message));
    stream->queued += len;

    return stream->has_memory ? stream->message : NULL;
}


llmgw_grpc_rc_t
llmgw_grpc_finish(llmgw_grpc_stream_t *stream, llmgw_grpc_status_t status,
    const char *message, const llmgw_grpc_field_t *trailers, size_t ntrailers)
{
    stream->ends++;
    stream->status = status;
    stream->is_draining = ntrailers == 1
                          && strcmp(trailers[0].name, "llmgw-draining") == 0;
    snprintf(stream->text, sizeof(stream->text), "%s",
             message != NULL ? message : "");

    return LLMGW_GRPC_DONE;
}


size_t
llmgw_grpc_stream_queued(const llmgw_grpc_stream_t *stream)
{
    return stream->queued;
}


uint64_t
llmgw_grpc_stream_timeout_ms(const llmgw_grpc_stream_t *stream)
{
    return stream->timeout_ms;
}


llmgw_grpc_session_t *
llmgw_grpc_stream_session(llmgw_grpc_stream_t *stream)
{
    return NULL;
}


void *
llmgw_grpc_session_data(llmgw_grpc_session_t *session)
{
    return NULL;
}


void
grpc_conn_wake(grpc_conn_t *conn)
{
}


/* --- the kind's side */

static llmgw_grpc_status_t
fake_judge(engine_t *engine, const Llmgateway__GenerateRequest *request,
    char *text, size_t bytes)
{
    snprintf(text, bytes, "judged");

    return scene.verdict;
}


static void
fake_start(run_t *run)
{
    ((fake_run_t *) run)->starts++;
}


static void
fake_cancel(run_t *run)
{
    ((fake_run_t *) run)->cancels++;
    scene.cancels++;
}


static void
fake_resume(run_t *run)
{
    ((fake_run_t *) run)->resumes++;
}


static const engine_kind_t  fake_kind = {
    .name = "fake",
    .run_bytes = sizeof(fake_run_t),
    .judge = fake_judge,
    .start = fake_start,
    .cancel = fake_cancel,
    .resume = fake_resume
};


static int
setup(void **state)
{
    memset(&scene, 0, sizeof(scene));
    scene.engine.kind = &fake_kind;
    scene.engine.loop = ev_loop_new(EVFLAG_AUTO);

    return 0;
}


/* Whatever happened, each run is counted once. */
static int
teardown(void **state)
{
    engine_stats_t  *s;

    s = &scene.engine.stats;
    assert_int_equal(s->active, 0);
    assert_int_equal(s->started, s->finished + s->cancelled + s->failed);
    assert_null(scene.engine.runs);
    assert_int_equal(scene.engine.full, 0);
    ev_loop_destroy(scene.engine.loop);

    return 0;
}


static llmgw_grpc_stream_t
stream(void)
{
    llmgw_grpc_stream_t  s;

    memset(&s, 0, sizeof(s));
    s.has_memory = 1;

    return s;
}


static fake_run_t *
begin(llmgw_grpc_stream_t *s)
{
    fake_run_t                   *r;
    Llmgateway__GenerateRequest  *request;

    request = malloc(sizeof(*request));
    llmgateway__generate_request__init(request);
    r = (fake_run_t *) run_begin(&scene.engine, s, request);

    if (r == NULL) {
        assert_int_equal(s->ends, 1);
        llmgateway__generate_request__free_unpacked(request, NULL);

    } else {
        assert_int_equal(r->starts, 1);
    }

    return r;
}


static void
a_run_that_the_kind_ends_is_counted_once(void **state)
{
    fake_run_t           *r;
    llmgw_grpc_stream_t   s;

    s = stream();
    r = begin(&s);
    assert_int_equal(scene.engine.stats.active, 1);

    run_finish(&r->run, ENGINE_FINISHED, LLMGW_GRPC_OK, NULL);
    assert_int_equal(scene.engine.stats.active, 0);
    assert_int_equal(s.ends, 1);
    assert_int_equal(s.status, LLMGW_GRPC_OK);

    run_drained(&r->run);
    run_end_all(&scene.engine, "over", 1);
    assert_int_equal(r->cancels + r->resumes, 0);
    run_destroy(&r->run);

    assert_int_equal(scene.cancels, 0);
    assert_int_equal(scene.engine.stats.finished, 1);
}


static void
a_run_whose_stream_is_gone_is_cancelled(void **state)
{
    llmgw_grpc_stream_t  s;

    s = stream();
    run_destroy(&begin(&s)->run);

    assert_int_equal(scene.cancels, 1);
    assert_int_equal(s.ends, 0);
    assert_int_equal(scene.engine.stats.cancelled, 1);
}


static void
a_deadline_ends_a_run(void **state)
{
    fake_run_t           *r;
    llmgw_grpc_stream_t   s;

    s = stream();
    s.timeout_ms = 1;
    r = begin(&s);

    while (r->cancels == 0) {
        ev_run(scene.engine.loop, EVRUN_ONCE);
    }

    assert_int_equal(r->cancels, 1);
    assert_int_equal(s.status, LLMGW_GRPC_DEADLINE_EXCEEDED);
    run_destroy(&r->run);
    assert_int_equal(scene.engine.stats.cancelled, 1);
    assert_int_equal(scene.cancels, 1);
}


static void
all_runs_end_together(void **state)
{
    int                  i;
    fake_run_t          *r[5];
    llmgw_grpc_stream_t  s[5];

    for (i = 0; i < 5; i++) {
        s[i] = stream();
        r[i] = begin(&s[i]);
    }

    run_finish(&r[2]->run, ENGINE_FINISHED, LLMGW_GRPC_OK, NULL);
    run_destroy(&r[4]->run);
    run_end_all(&scene.engine, "replica is stopping", 1);

    for (i = 0; i < 4; i++) {
        assert_int_equal(s[i].ends, 1);
        assert_int_equal(s[i].is_draining, i != 2);
        assert_int_equal(r[i]->cancels, i != 2);
        run_destroy(&r[i]->run);
    }

    assert_string_equal(s[0].text, "replica is stopping");
    assert_int_equal(scene.engine.stats.failed, 3);
    assert_int_equal(scene.engine.stats.finished, 1);
    assert_int_equal(scene.engine.stats.cancelled, 1);
}


static void
capacity_admits_the_last_and_refuses_one_more(void **state)
{
    fake_run_t           *r[2];
    llmgw_grpc_stream_t   s[3];

    s[0] = s[1] = s[2] = stream();
    scene.engine.facts.max_capacity = 2;
    r[0] = begin(&s[0]);
    r[1] = begin(&s[1]);

    assert_null(begin(&s[2]));
    assert_int_equal(s[2].status, LLMGW_GRPC_RESOURCE_EXHAUSTED);

    run_destroy(&r[0]->run);
    s[2] = stream();
    r[0] = begin(&s[2]);
    assert_non_null(r[0]);
    run_destroy(&r[0]->run);
    run_destroy(&r[1]->run);
    assert_int_equal(scene.engine.stats.started, 3);
}


static void
an_engine_that_is_not_ready_gets_no_work(void **state)
{
    engine_state_t       is;
    llmgw_grpc_stream_t  s;

    for (is = ENGINE_STARTING; is <= ENGINE_ASLEEP; is++) {
        scene.engine.facts.state = is;
        s = stream();
        assert_null(begin(&s));
        assert_int_equal(s.status, LLMGW_GRPC_UNAVAILABLE);
        assert_false(s.is_draining);
        assert_non_null(strstr(s.text, engine_state_name(is)));
    }
}


static void
a_draining_replica_says_so_before_anything_else(void **state)
{
    llmgw_grpc_stream_t  s;

    scene.verdict = LLMGW_GRPC_INVALID_ARGUMENT;
    scene.engine.is_draining = 1;
    s = stream();
    assert_null(begin(&s));
    assert_int_equal(s.status, LLMGW_GRPC_UNAVAILABLE);
    assert_true(s.is_draining);

    scene.engine.is_draining = 0;
    scene.engine.is_stopping = 1;
    s = stream();
    assert_null(begin(&s));
    assert_true(s.is_draining);

    scene.engine.is_stopping = 0;
    s = stream();
    assert_null(begin(&s));
    assert_int_equal(s.status, LLMGW_GRPC_INVALID_ARGUMENT);
    assert_string_equal(s.text, "judged");
    assert_int_equal(scene.engine.stats.started, 0);
}


static void
a_full_queue_pauses_a_run_until_it_is_drained(void **state)
{
    fake_run_t           *r;
    llmgw_grpc_stream_t   s;

    s = stream();
    r = begin(&s);

    s.queued = RUN_QUEUE_BYTES;
    assert_false(run_is_full(&r->run));
    run_drained(&r->run);
    assert_int_equal(r->resumes, 0);

    s.queued = RUN_QUEUE_BYTES + 1;
    assert_true(run_is_full(&r->run));
    assert_true(run_is_full(&r->run));
    assert_int_equal(scene.engine.full, 1);
    s.queued = 0;
    run_drained(&r->run);
    run_drained(&r->run);
    assert_int_equal(r->resumes, 1);
    assert_int_equal(scene.engine.full, 0);

    s.queued = RUN_QUEUE_BYTES + 1;
    assert_true(run_is_full(&r->run));
    run_destroy(&r->run);
}


/*
 * Ids give the number of a message's tokens; a message without ids has one if
 * it has text.
 */
static void
tokens_are_counted_as_messages_say(void **state)
{
    uint32_t                       ids[3] = { 1, 2, 3 };
    fake_run_t                    *r;
    llmgw_grpc_stream_t            s;
    Llmgateway__GenerateResponse   m = LLMGATEWAY__GENERATE_RESPONSE__INIT;

    s = stream();
    r = begin(&s);

    m.progress = 1;
    assert_int_equal(run_send(&r->run, &m), 0);
    assert_int_equal(r->run.sent, 0);

    m.progress = 0;
    m.token.data = (uint8_t *) "text";
    m.token.len = 4;
    assert_int_equal(run_send(&r->run, &m), 0);
    assert_int_equal(r->run.sent, 1);

    m.token_ids = ids;
    m.n_token_ids = 3;
    assert_int_equal(run_send(&r->run, &m), 0);
    assert_int_equal(r->run.sent, 4);
    assert_int_equal(scene.engine.stats.tokens, 4);

    s.has_memory = 0;
    assert_int_equal(run_send(&r->run, &m), -1);
    assert_int_equal(r->run.sent, 4);
    run_destroy(&r->run);
}


#define RUN_TEST(f)  cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
    const struct CMUnitTest  tests[] = {
        RUN_TEST(a_run_that_the_kind_ends_is_counted_once),
        RUN_TEST(a_run_whose_stream_is_gone_is_cancelled),
        RUN_TEST(a_deadline_ends_a_run),
        RUN_TEST(all_runs_end_together),
        RUN_TEST(capacity_admits_the_last_and_refuses_one_more),
        RUN_TEST(an_engine_that_is_not_ready_gets_no_work),
        RUN_TEST(a_draining_replica_says_so_before_anything_else),
        RUN_TEST(a_full_queue_pauses_a_run_until_it_is_drained),
        RUN_TEST(tokens_are_counted_as_messages_say),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
