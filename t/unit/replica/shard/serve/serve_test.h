
/*
 * What the tests of serve.h share: an open session, its end, and that nothing
 * is left.  To be included after cmocka.h.
 */

#ifndef SERVE_TEST_H
#define SERVE_TEST_H

#include "t/unit/replica/shard/serve/serve_scene.h"


static const serve_options_t  options = {
    .id = "s1", .sessions = 2, .idle_ms = 600000, .load_timeout_ms = 60000
};


static inline void
test_ended(const scene_client_t *c, shard_reason_t reason)
{
    const Llmgateway__Shard__Reply  *last;

    assert_true(c->is_finished);
    assert_string_equal(c->reason, shard_reason_name(reason));
    assert_int_equal(c->status, shard_reason_status(reason));

    if (reason != SHARD_OK) {
        last = c->replies[c->nreplies - 1];
        assert_int_equal(last->kind_case,
                         LLMGATEWAY__SHARD__REPLY__KIND_REFUSED);
        assert_string_equal(last->refused->reason, c->reason);
        assert_string_equal(last->refused->text, c->text);
        assert_true(strlen(c->text) > 0);
    }
}


/*
 * Begins with a shard that is loaded, and one session up to the model's end.
 */
static inline void
test_begin(scene_t *s, scene_client_t *c)
{
    Llmgateway__Shard__Open  open = client_request();

    scene_init(s, &options);
    scene_ready(s);
    client_open(s, c);
    client_ask(c, &open);
    assert_int_equal(client_next(c)->kind_case,
                     LLMGATEWAY__SHARD__REPLY__KIND_OPENED);
}


/* Ends the scene, in which no session or byte may be left. */
static inline void
test_finish(scene_t *s, scene_client_t *c)
{
    size_t  i;

    client_close(c);
    scene_compute(s, SHARD_STEP_DONE);
    assert_int_equal(serve_sessions(s->serve), 0);
    assert_int_equal(serve_tensor_bytes(s->serve), 0);

    for (i = 0; i < SCENE_PLACES; i++) {
        assert_false(s->core.is_taken[i]);
    }

    scene_done(s);
    assert_true(s->core.is_closed);
}

#endif /* SERVE_TEST_H */
