
/* The links and the shards of the stage: see flow_scene.h. */

#ifndef FLOW_SCENE_LINKS_H
#define FLOW_SCENE_LINKS_H

#include "t/unit/replica/shard/flow/flow_scene.h"


/* --- links */

static int
session_has_shard(const link_session_t *session)
{
    return !session->shard->is_dead && session->shard->key == session->key;
}


static void
session_say(link_session_t *session, uint64_t at, shard_reason_t reason)
{
    scene_push((event_t) { .at = at, .kind = ON_LOST, .session = session,
                           .reason = reason });
}


static void
session_answer_open(link_session_t *session)
{
    uint64_t  at;

    at = scene.now + 2 * scene_delay() + session->shard->open_ns;

    if (!session_has_shard(session)) {
        session_say(session, at, SHARD_FAILED);
        return;
    }

    if (session->shard->loaded_ns > scene.now + LOAD_MS * MS) {
        session_say(session, scene.now + LOAD_MS * MS, SHARD_LOADING);
        return;
    }

    if (at < session->shard->loaded_ns) {
        at = session->shard->loaded_ns;
    }

    switch (session->shard->open_fault) {
    case REFUSES_FULL:
        session_say(session, at, SHARD_FULL);
        return;
    case REFUSES_DRAINING:
        session_say(session, at, SHARD_DRAINING);
        return;
    case REFUSES_MEMORY:
        session_say(session, at, SHARD_OUT_OF_MEMORY);
        return;
    case REFUSES_LOADING:
        session_say(session, at + LOAD_MS * MS, SHARD_LOADING);
        return;
    case SILENT_OPEN:
        return;
    default:
        break;
    }

    if (fake_is_full(session->shard)) {
        session_say(session, at, SHARD_FULL);
        return;
    }

    scene_push((event_t) { .at = at, .kind = ON_OPENED, .session = session,
                           .rows = session->rows_max });
}


static void
fake_count_replays(fake_t *shard)
{
    size_t        i;
    uint32_t      n;
    const hop_t  *hop;

    n = 0;

    for (i = 0; i < scene.nsessions; i++) {
        hop = scene.sessions[i]->data;
        n += scene.sessions[i]->shard == shard && hop->replay_to > 0;
    }

    if (n > shard->replays_most) {
        shard->replays_most = n;
    }
}


static link_session_t *
scene_open(fleet_t *fleet, const fleet_hop_t *hop, uint32_t rows,
    const link_callbacks_t *callbacks, void *data)
{
    size_t           i;
    link_session_t  *session;

    /* The first session is a hop's; others may be an audit's. */
    static const link_callbacks_t  *of_hops;

    session = calloc(1, sizeof(link_session_t));
    session->key = hop->key;
    session->first = hop->first;
    session->last = hop->last;
    session->callbacks = callbacks;
    session->data = data;

    for (i = 0; i < scene.nshards; i++) {
        if (strcmp(scene.shards[i].id, hop->id) == 0) {
            session->shard = &scene.shards[i];
        }
    }

    assert_non_null(session->shard);
    session->rows_max = session->shard->rows_max;
    assert_int_equal(session->shard->first, hop->first);
    assert_true(hop->last <= session->shard->last);

    session_answer_open(session);
    session->shard->sessions++;
    assert_true(scene.nsessions < SESSIONS_MAX);
    scene.sessions[scene.nsessions++] = session;
    scene.opens++;

    of_hops = of_hops != NULL ? of_hops : callbacks;

    if (callbacks == of_hops && ((const hop_t *) data)->replay_to > 0) {
        fake_count_replays(session->shard);
    }

    return session;
}


static void
scene_close(link_session_t *session)
{
    size_t  i;

    assert_false(session->is_closed);
    session->is_closed = 1;
    session_forget(session);
    session->shard->sessions--;

    for (i = 0; scene.sessions[i] != session; i++) {
        /* void */
    }

    scene.sessions[i] = scene.sessions[--scene.nsessions];
    session_put(session);
}


/* Returns the logits, or NULL if none were asked for. */
static float *
session_compute(link_session_t *session, uint32_t position, uint32_t rows,
    int is_asked, const float *values)
{
    int        is_last;
    float     *out;
    uint32_t   i, layer;
    uint64_t   value;

    is_last = session->last == LAYERS - 1;
    out = is_last && !is_asked ? NULL : malloc(rows * WIDTH * 2
                                               * sizeof(float));

    for (i = 0; i < rows; i++) {
        value = model_read(values + i * WIDTH);
        for (layer = session->first; layer <= session->last; layer++) {
            value = model_layer(&session->chain[layer], value, layer,
                                position + i);
        }
        if (!is_last) {
            model_write(out + i * WIDTH, value);
        } else if (is_asked && i + 1 == rows) {
            model_logits(out, value);
        }
    }

    return out;
}


/* A shard computes steps one after the other. */
static uint64_t
session_start(link_session_t *session, uint32_t rows, uint64_t *done)
{
    uint64_t  start;
    fake_t   *shard = session->shard;

    start = scene.now + scene_delay();
    if (start < shard->free_ns) {
        start = shard->free_ns;
    }
    *done = start + shard->step_ns + rows * shard->row_ns;
    shard->free_ns = *done;

    return start + scene.latency;
}


static void
fake_lie(fault_t fault, float *values, size_t n)
{
    size_t  i;

    if (values == NULL) {
        return;
    }

    if (fault == LIE_NAN) {
        values[n - 1] = NAN;
    } else if (fault == LIE_INFINITE) {
        values[0] = -INFINITY;
    } else if (fault == LIE_BIT) {
        *(uint32_t *) &values[n / 2] ^= 1;
    } else {
        for (i = 0; i < n; i++) {
            values[i] *= 10000;
        }
    }
}


/* Returns 1 if this step of the shard goes wrong. */
static int
fake_is_faulty(fake_t *shard, uint32_t position, uint32_t rows)
{
    if (shard->fault == GOOD || position + rows <= shard->fault_at) {
        return 0;
    }

    if (shard->faults > 0) {
        shard->faults--;
        return 1;
    }

    return 0;
}


static void
session_fail(link_session_t *session, fault_t fault, uint64_t start,
    uint32_t position)
{
    static const shard_reason_t  reasons[FAULTS] = {
        [BAD_SHAPE] = SHARD_BAD_SHAPE,
        [BAD_POSITION] = SHARD_BAD_POSITION,
        [REFUSES_FAILED] = SHARD_FAILED,
        [REFUSES_EXPIRED] = SHARD_SESSION_EXPIRED,
        [REFUSES_UNKNOWN] = SHARD_UNKNOWN_SESSION,
        [BREAKS] = SHARD_FAILED
    };

    if (fault == STARTED_ONLY) {
        scene_push((event_t) { .at = start, .kind = ON_STARTED,
                               .session = session, .position = position });

    } else if (fault != SILENT) {
        session_say(session, start, reasons[fault]);
    }

    session->is_open = 0;               /* answers nothing from now on */
}


static void
scene_step(link_session_t *session, uint32_t position, uint32_t rows,
    uint32_t logits_rows, const float *values)
{
    int        is_last, is_lie;
    float     *out;
    fake_t    *shard = session->shard;
    uint64_t   start, done;

    assert_false(session->is_closed || session->is_over);
    assert_int_equal(position, session->next);
    assert_in_range(rows, 1, session->rows_max);
    assert_true(++session->outstanding <= SHARD_STEPS_MAX);
    assert_true(logits_rows == 0 || session->last == LAYERS - 1);
    session->next += rows;

    if (!session->is_open || !session_has_shard(session)) {
        return;
    }

    start = session_start(session, rows, &done);
    is_lie = fake_is_faulty(shard, position, rows);

    if (is_lie && shard->fault > LIE_LONG) {
        session_fail(session, shard->fault, start, position);
        return;
    }

    is_last = session->last == LAYERS - 1;
    out = session_compute(session, position, rows, logits_rows > 0, values);

    if (is_lie && !(is_last && shard->fault == LIE_LONG)) {
        fake_lie(shard->fault, out, is_last ? VOCABULARY : rows * WIDTH);
    }

    scene_push((event_t) { .at = start, .kind = ON_STARTED,
                           .session = session, .position = position });
    scene_push((event_t) { .at = done + 2 * scene.latency, .kind = ON_RESULT,
                           .session = session, .position = position,
                           .rows = is_last ? logits_rows : rows,
                           .is_logits = is_last, .values = out });
}


static uint64_t
scene_now(void *clock)
{
    return scene.now;
}


static void
scene_wake(void *clock, uint64_t at)
{
    scene.wake = at > 0 ? at : 1;
}


static int
scene_is_doubted(const fleet_t *fleet, uint64_t key)
{
    const fake_t  *shard;

    shard = scene_shard_of(key);

    return shard != NULL && shard->is_doubted;
}


static const flow_world_t  scene_world = {
    scene_find, scene_exclude, scene_worked, scene_is_doubted, scene_each,
    scene_open, scene_step, scene_close, scene_now, scene_wake
};


/* --- shards */

static fake_t *
scene_shard(const char *id, uint32_t first, uint32_t last)
{
    fake_t  *shard;

    assert_true(scene.nshards < SHARDS_MAX);
    shard = &scene.shards[scene.nshards++];
    *shard = (fake_t) {
        .first = first, .last = last, .key = ++scene.keys, .rows_max = 32,
        .row_ns = MS / 100, .step_ns = MS / 10, .excluded_ms = EXPIRED_MS
    };
    snprintf(shard->id, sizeof(shard->id), "%s", id);

    return shard;
}


/* Shards for layers 0-7 and 8-15, two of each. */
static inline void
two_by_two(void)
{
    scene_shard("a", 0, 7);
    scene_shard("b", 8, 15);
    scene_shard("c", 0, 7);
    scene_shard("d", 8, 15);
}


/* Drops the events that a session had still to report; it reports its loss. */
static void
session_break(link_session_t *session, shard_reason_t reason)
{
    session->cut = scene.order;
    session->last_ns = 0;
    session_say(session, scene.now + scene_delay(), reason);
}


static void
fake_kill(void *data)
{
    size_t   i;
    fake_t  *shard = data;

    shard->is_dead = 1;
    shard->free_ns = 0;

    for (i = 0; i < scene.nsessions; i++) {
        if (scene.sessions[i]->shard == shard
            && scene.sessions[i]->key == shard->key)
        {
            session_break(scene.sessions[i], SHARD_FAILED);
        }
    }
}


/* The member has another process. */
static inline void
fake_restart(void *data)
{
    fake_t  *shard = data;

    if (!shard->is_dead) {
        fake_kill(shard);
    }

    shard->key = ++scene.keys;
    shard->is_dead = 0;
    shard->is_unlisted = 0;
    shard->excluded_to = 0;
}


static inline void
fake_unlist(void *data)
{
    ((fake_t *) data)->is_unlisted = 1;
}


/*
 * The shard ends all its sessions, and reports that they were idle too long.
 */
static inline void
fake_expire(void *data)
{
    size_t   i;

    for (i = 0; i < scene.nsessions; i++) {
        if (scene.sessions[i]->shard == data && scene.sessions[i]->is_open) {
            session_break(scene.sessions[i], SHARD_SESSION_EXPIRED);
        }
    }
}


#endif /* FLOW_SCENE_LINKS_H */
