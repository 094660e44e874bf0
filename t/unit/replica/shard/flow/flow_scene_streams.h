
/* The streams of the stage, and its beginning and end: see flow_scene.h. */

#ifndef FLOW_SCENE_STREAMS_H
#define FLOW_SCENE_STREAMS_H

#include "t/unit/replica/shard/flow/flow_scene_links.h"


/* --- streams */

static void
stream_send(stream_t *s)
{
    float     *values;
    uint32_t   i, rows, is_asked;

    while (s->flow != NULL && !s->is_paused && s->sent < s->nids
           && s->nasked < FLOW_STEPS_MAX)
    {
        rows = s->nids - s->sent;
        rows = rows > s->chunk ? s->chunk : rows;
        is_asked = s->sent + rows == s->nids;
        values = malloc(rows * WIDTH * sizeof(float));

        for (i = 0; i < rows; i++) {
            model_write(values + i * WIDTH,
                        model_mix(s->ids[s->sent + i], 0, 7));
        }

        s->asked[s->nasked][0] = s->sent;
        s->asked[s->nasked][1] = rows;
        s->asked[s->nasked++][2] = is_asked;
        s->sent += rows;

        scene.is_in_call++;
        flow_step(s->flow, s->sent - rows, rows, is_asked, values);
        scene.is_in_call--;
    }
}


static void
stream_end(stream_t *s)
{
    flow_t  *flow;

    flow = s->flow;
    s->flow = NULL;
    s->done_ns = scene.now;
    scene.is_in_call++;
    flow_close(flow);
    scene.is_in_call--;
}


/* The core works in a thread of its own, so its rows come later. */
static void
stream_go_on(void *data)
{
    stream_send(data);
}


static inline void
stream_unpause(void *data)
{
    stream_t  *s = data;

    s->is_paused = 0;
    s->pause_at = 0;

    if (s->flow != NULL) {
        stream_send(s);
    }
}


static void
stream_on_result(void *data, uint32_t position, uint32_t rows,
    const float *logits)
{
    stream_t  *s = data;

    assert_false(scene.is_in_call);
    assert_true(s->nasked > 0);
    assert_int_equal(s->asked[0][0], position);
    assert_int_equal(s->asked[0][1], rows);
    assert_int_equal(s->asked[0][2], logits != NULL);
    memmove(s->asked, s->asked + 1, --s->nasked * sizeof(s->asked[0]));

    if (logits != NULL) {
        assert_int_equal(position + rows, s->nids);
        s->ids[s->nids++] = model_sample(logits);

        if (s->nids == s->most) {
            s->is_done = 1;
            stream_end(s);
            return;
        }

        if (s->nids == s->pause_at) {
            s->is_paused = 1;
            return;
        }
    }

    scene_at(scene.now + scene.latency, stream_go_on, s);
}


static void
stream_on_rewind(void *data)
{
    stream_t  *s = data;

    assert_false(scene.is_in_call);
    s->sent = 0;
    s->nasked = 0;
    s->rewinds++;
    scene_at(scene.now + scene.latency, stream_go_on, s);
}


static void
stream_on_lost(void *data, const char *reason, const char *text)
{
    stream_t  *s = data;

    assert_false(scene.is_in_call);
    s->reason = reason;
    snprintf(s->text, sizeof(s->text), "%s", text);

    if (scene.on_lost != NULL) {
        scene.on_lost(s->flow);
    }

    stream_end(s);
}


static const flow_callbacks_t  stream_callbacks = {
    stream_on_result, stream_on_rewind, stream_on_lost
};


/* Makes a stream, which begins when the loop runs. */
static stream_t *
scene_stream(uint32_t prompt, uint32_t tokens)
{
    uint32_t   i;
    stream_t  *s;

    assert_true(scene.nstreams < STREAMS_MAX && prompt + tokens <= IDS_MAX);
    s = &scene.streams[scene.nstreams++];
    memset(s, 0, sizeof(*s));
    s->nprompt = s->nids = prompt;
    s->most = prompt + tokens;
    s->chunk = 32;

    for (i = 0; i < prompt; i++) {
        s->ids[i] = rnd_next(&scene.rnd);
    }

    s->flow = flow_open(scene.flows, scene.nstreams, s->most,
                        &stream_callbacks, s);
    assert_non_null(s->flow);
    scene_at(scene.now, stream_go_on, s);

    return s;
}


/* The stream gave all of its ids, or the first of them and a reason. */
static void
stream_check(const stream_t *s)
{
    uint32_t  ids[IDS_MAX];

    if (s->flow != NULL) {
        fail_msg("seed %llu: a stream hangs", (unsigned long long) scene.seed);
    }
    scene_expect(s, ids);
    assert_memory_equal(s->ids, ids, s->nids * sizeof(uint32_t));
    assert_true(s->is_done == (s->nids == s->most));
}


static inline void
stream_check_done(const stream_t *s)
{
    stream_check(s);
    if (s->reason != NULL) {
        fail_msg("lost: %s: %s", s->reason, s->text);
    }
    assert_true(s->is_done);
}


/* --- the stage */

static void
scene_begin(uint64_t seed, uint64_t history_max)
{
    flows_options_t  options = {
        .model = "m", .layers = LAYERS, .width = WIDTH,
        .vocabulary = VOCABULARY, .history_max = history_max
    };
    static const float  norms[LAYERS + 1] = {
        [0 ... LAYERS] = 0xffff * 2
    };

    memset(&scene, 0, sizeof(scene));
    scene.seed = seed;
    scene.rnd.state = seed;
    scene.log = (log_t) { "flow", NULL, getenv("LLMGW_FLOW_LOG") ? LOG_DEBUG
                                                                : LOG_ERROR };
    scene.now = 1000 * MS;
    options.norms = norms;
    scene.flows = flows_create(&scene_world, NULL, NULL, &scene.log,
                               &options);
    assert_non_null(scene.flows);
}


/* Ends the scene: no session, row or stream may be left. */
static void
scene_end(void)
{
    flow_stats_t  stats;

    scene_run();
    flows_stats(scene.flows, &stats);
    assert_int_equal(stats.flows, 0);
    assert_int_equal(stats.waiting, 0);
    assert_int_equal(stats.building, 0);
    assert_int_equal(stats.history_bytes, 0);
    assert_int_equal(scene.nsessions, 0);
    flows_close(scene.flows);
    free(scene.events);
}

#endif /* FLOW_SCENE_STREAMS_H */
