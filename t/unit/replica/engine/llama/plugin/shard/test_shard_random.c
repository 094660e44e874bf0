
/*
 * Random sessions, good and bad steps, and ends at any moment: each step comes
 * back once, and what is computed is exact.
 */

#include "t/unit/replica/engine/llama/plugin/shard/shard_scene.h"


#define SESSIONS     6
#define FIRST        2
#define LAST         5
#define OPERATIONS   1000
#define OUTSTANDING  4          /* of a session that are out */

typedef struct session_s  session_t;

typedef struct {
    shard_step_t   step;
    session_t     *session;
    int            is_out;
    int            is_started;
    int            is_bad;      /* is bad, and was so when submitted */
    float          rows[SHARD_CORE_ROWS_MAX * WIDTH];
} sent_t;

struct session_s {
    int         is_open;
    uint32_t    place;
    uint32_t    text;
    uint32_t    last;
    uint32_t    next;           /* next position to be sent */
    uint32_t    done;           /* next position to come back */
    int         is_spoilt;      /* a bad step was sent */
    uint32_t    noutstanding;
};

typedef struct {
    node_t       node;
    uint32_t     random;
    session_t    sessions[SESSIONS];
    sent_t       sent[SESSIONS * OUTSTANDING];
    uint32_t     nsent;
    uint32_t     ntaken;
    uint32_t     ncompared;
    uint32_t     ncancelled;
    uint32_t     nrefused;
} scene_t;

static model_t      model;
static reference_t  reference;
static scene_t      scene;


static uint32_t
draw(uint32_t n)
{
    scene.random = scene.random * 1664525u + 1013904223u;

    return (uint32_t) ((uint64_t) (scene.random >> 8) * n >> 24);
}


static void
begin(session_t *s)
{
    int  place;

    memset(s, 0, sizeof(*s));
    s->last = FIRST + draw(LAST - FIRST + 1);
    s->text = draw(TEXTS);
    place = plugin->begin(scene.node.core, s->last);
    assert_in_range(place, 0, SESSIONS - 1);
    s->place = (uint32_t) place;
    s->is_open = 1;
}


/* Ends a session; its steps that are out belong to none any more. */
static void
end(session_t *s)
{
    size_t  i;

    plugin->end(scene.node.core, s->place);
    s->is_open = 0;

    for (i = 0; i < length(scene.sent); i++) {
        if (scene.sent[i].session == s) {
            scene.sent[i].session = NULL;
        }
    }
}


static sent_t *
free_step(void)
{
    size_t  i;

    for (i = 0; i < length(scene.sent); i++) {
        if (!scene.sent[i].is_out) {
            return &scene.sent[i];
        }
    }

    return NULL;
}


static void
submit(session_t *s)
{
    sent_t    *sent;
    uint32_t   rows, at;

    sent = free_step();
    rows = draw(2) ? 1 : 1 + draw(SHARD_CORE_ROWS_MAX);
    rows = rows < POSITIONS - s->next ? rows : POSITIONS - s->next;

    if (sent == NULL || s->noutstanding == OUTSTANDING || rows == 0) {
        return;
    }

    memset(sent, 0, sizeof(*sent));
    sent->session = s;
    sent->is_out = 1;
    sent->is_bad = s->is_spoilt || draw(20) == 0;
    at = s->next + (sent->is_bad && !s->is_spoilt);
    step_fill(&sent->step, s->place, at, rows, 0,
              text_row(&reference.texts[s->text], FIRST, s->next),
              sent->rows);
    sent->step.data = sent;
    s->is_spoilt = sent->is_bad;
    s->next += rows;
    s->noutstanding++;
    scene.nsent++;
    plugin->submit(scene.node.core, &sent->step);
}


/* Checks a step of an open session: steps come back in order, with the
   expected status. */
static void
check(sent_t *sent)
{
    session_t  *s;

    s = sent->session;
    s->noutstanding--;

    if (sent->is_bad) {
        assert_int_equal(sent->step.status, SHARD_STEP_BAD_POSITION);
        assert_false(sent->is_started);
        scene.nrefused++;
        return;
    }

    assert_int_equal(sent->step.status, SHARD_STEP_DONE);
    assert_true(sent->is_started);
    assert_int_equal(sent->step.position, s->done);
    assert_true(text_has_rows(&reference.texts[s->text], s->last + 1, s->done,
                              sent->rows, sent->step.rows));
    s->done += sent->step.rows;
    scene.ncompared++;
}


static int
take(void)
{
    sent_t         *sent;
    shard_event_t   event;

    if (plugin->take(scene.node.core, &event) != 0) {
        return 0;
    }

    sent = event.step->data;
    assert_true(sent->is_out);

    if (event.kind == SHARD_EVENT_STARTED) {
        assert_false(sent->is_started);
        sent->is_started = 1;
        return 1;
    }

    sent->is_out = 0;
    scene.ntaken++;

    if (sent->session != NULL) {
        check(sent);

    } else {
        scene.ncancelled += (event.step->status == SHARD_STEP_CANCELLED);
    }

    return 1;
}


static void
operate(void)
{
    session_t  *s;

    s = &scene.sessions[draw(SESSIONS)];

    if (!s->is_open) {
        begin(s);

    } else if (draw(12) == 0) {
        end(s);

    } else {
        submit(s);
    }

    while (draw(3) > 0 && scene.ntaken < scene.nsent) {
        if (!take()) {
            node_wait(&scene.node);
        }
    }
}


static void
drain(void)
{
    size_t       i;
    core_load_t  load;

    while (scene.ntaken < scene.nsent) {
        if (!take()) {
            node_wait(&scene.node);
        }
    }

    for (i = 0; i < SESSIONS; i++) {
        if (scene.sessions[i].is_open) {
            end(&scene.sessions[i]);
        }
    }

    plugin->load(scene.node.core, &load);
    assert_int_equal(load.running, 0);
    assert_int_equal(load.waiting, 0);
    assert_int_equal(load.steps, scene.nsent);
    assert_int_equal(plugin->take(scene.node.core,
                                  &(shard_event_t) { 0 }), -1);
}


static void
a_thousand_operations_are_exact(void **state)
{
    uint32_t  i;

    memset(&scene, 0, sizeof(scene));
    scene.random = 17;
    model_make(&model, "seed=1");
    node_open(&scene.node, &model, FIRST, LAST, SESSIONS);
    reference_make(&reference, &model);

    for (i = 0; i < OPERATIONS; i++) {
        operate();
    }

    drain();

    /* All that may happen to a step has happened. */

    assert_true(scene.ncompared > 100);
    assert_true(scene.nrefused > 10);
    assert_true(scene.ncancelled > 10);
    node_close(&scene.node);
    reference_drop(&reference);
    model_drop(&model);
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thousand_operations_are_exact)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
