
/*
 * A stage for flows: shards, links and time in memory.
 *
 * The shards really compute: a row is a hash of 64 bits, as four floats, and
 * each layer of each session chains the rows that it has seen.  A row that is
 * lost, doubled, late or of another stream changes all that comes after it.  A
 * stream's tokens are right if they are what scene_expect() computes without
 * any of this.
 *
 * Time moves from event to event.  Callbacks come from the loop alone; it is
 * asserted that none comes from within a call of a flow's functions.
 */

#ifndef FLOW_SCENE_H
#define FLOW_SCENE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/rnd.h"
#include "replica/shard/flow/flow_inner.h"
#include "replica/shard/flow/stats.h"


#define LAYERS       16
#define WIDTH        4
#define VOCABULARY   8
#define MS           1000000ULL
#define SHARDS_MAX   40
#define STREAMS_MAX  80
#define SESSIONS_MAX 1000
#define IDS_MAX      700
#define EXPIRED_MS   15000      /* a first exclusion's term */
#define LOAD_MS      60000      /* a session waits so long for the slice */

typedef enum {
    GOOD = 0,
    LIE_NAN,
    LIE_INFINITE, LIE_BIT,
    LIE_LONG,               /* ten thousand times as long */
    BAD_SHAPE,
    BAD_POSITION,
    SILENT,                 /* no Started */
    STARTED_ONLY,
    REFUSES_FAILED,
    REFUSES_EXPIRED,
    REFUSES_UNKNOWN,
    BREAKS,                 /* its connection breaks */
    REFUSES_FULL,           /* from here on: faults of an Open */
    REFUSES_DRAINING,
    REFUSES_MEMORY,
    REFUSES_LOADING,
    SILENT_OPEN,
    FAULTS
} fault_t;

typedef struct {
    char      id[16];
    uint32_t  first;
    uint32_t  last;
    uint64_t  key;
    int       is_dead;
    int       is_unlisted, is_unloaded;     /* gossip says so */
    int       is_doubted;       /* by gossip; and unlisted, if it is STALLED */
    uint64_t  excluded_to;
    uint64_t  excluded_ms;
    unsigned  asked_with;       /* FLEET_WITH_.., while it is excluded; or 0 */
    uint32_t  exclusions;
    uint32_t  sessions;         /* that are open */
    uint32_t  sessions_max;
    uint32_t  replays_most;     /* most at one time */
    uint32_t  rows_max;         /* of a step */
    uint64_t  row_ns;
    uint64_t  step_ns;          /* of any step, besides its rows */
    uint64_t  free_ns;          /* when it will have computed what it has */
    uint64_t  open_ns;          /* time until it answers an Open */
    uint64_t  loaded_ns;        /* loads until then, or refuses */
    fault_t   open_fault;       /* fault of all Opens */
    fault_t   fault;            /* of the step at fault_at, of any session */
    uint32_t  fault_at;
    int       faults;           /* how many are left */
} fake_t;

struct link_session_s {
    fake_t                  *shard;
    uint64_t                 key;
    uint32_t                 first;
    uint32_t                 last;
    const link_callbacks_t  *callbacks;
    void                    *data;
    uint64_t                 chain[LAYERS];
    uint32_t                 next;
    uint32_t                 rows_max;
    uint32_t                 outstanding;
    uint64_t                 last_ns;       /* of its last event */
    uint32_t                 events;
    uint64_t                 cut;           /* the connection broke: events
                                               up to this one are dropped */
    int                      is_open;
    int                      is_over;       /* it reports nothing more */
    int                      is_closed;
    char                    *text;          /* of on_lost(), and */
    float                   *values;        /* of on_result(): gone with it */
};

typedef struct stream_s  stream_t;

typedef enum {
    ON_OPENED,
    ON_STARTED,
    ON_RESULT,
    ON_LOST,
    ON_CALL
} kind_t;

typedef struct {
    uint64_t         at;
    uint64_t         order;
    kind_t           kind;
    link_session_t  *session;
    uint32_t         position;
    uint32_t         rows;
    int              is_logits;
    float           *values;
    shard_reason_t   reason;
    void           (*call)(void *data);
    void            *data;
} event_t;

struct stream_s {
    flow_t      *flow;
    uint32_t     ids[IDS_MAX];
    uint32_t     nprompt;
    uint32_t     nids;
    uint32_t     most;              /* number of ids in the end */
    uint32_t     sent;              /* rows sent */
    uint32_t     chunk;             /* rows of a step at most */
    uint32_t     asked[FLOW_STEPS_MAX][3];      /* position, rows, logits */
    size_t       nasked;
    uint32_t     rewinds;
    int          is_done;
    int          is_paused;
    uint64_t     done_ns;
    uint64_t     pause_at;          /* number of ids */
    const char  *reason;            /* why it was lost */
    char         text[FLOW_TEXT_BYTES];
};

static struct {
    flows_t    *flows;
    log_t       log;
    fake_t      shards[SHARDS_MAX];
    size_t      nshards;
    stream_t    streams[STREAMS_MAX];
    size_t      nstreams;
    event_t    *events;
    size_t      nevents;
    size_t      room;
    uint64_t    order;
    uint64_t    now;
    uint64_t    wake;
    uint64_t    latency;
    uint64_t    jitter;
    uint64_t    keys;
    link_session_t  *sessions[SESSIONS_MAX];    /* not closed */
    size_t      nsessions;
    uint32_t    opens;
    int         is_mixed;       /* some shards have layers with other ids */
    int         is_in_call;
    rnd_t       rnd;
    uint64_t    seed;
    void      (*on_lost)(const flow_t *flow);   /* or NULL */
} scene;


/* --- the model */

static uint64_t
model_mix(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t  all[3] = { a, b, c };

    return XXH3_64bits(all, sizeof(all));
}


static void
model_write(float *row, uint64_t value)
{
    int  i;

    for (i = 0; i < WIDTH; i++) {
        row[i] = (float) (value >> (16 * i) & 0xffff);
    }
}


static uint64_t
model_read(const float *row)
{
    int       i;
    uint64_t  value;

    value = 0;
    for (i = 0; i < WIDTH; i++) {
        value |= (uint64_t) row[i] << (16 * i);
    }

    return value;
}


static uint64_t
model_layer(uint64_t *chain, uint64_t value, uint32_t layer,
    uint32_t position)
{
    *chain = model_mix(*chain, value, position + 1);

    return model_mix(*chain, value, 1000 + layer);
}


static void
model_logits(float *logits, uint64_t value)
{
    int  i;

    for (i = 0; i < VOCABULARY; i++) {
        logits[i] = (float) (value >> (8 * i) & 0xff);
    }
}


static uint32_t
model_sample(const float *logits)
{
    int       i;
    uint32_t  id;

    id = 0;
    for (i = 0; i < VOCABULARY; i++) {
        id = id * 31 + (uint32_t) logits[i];
    }

    return id;
}


/* Computes the ids that the stream has to give after its prompt. */
static void
scene_expect(const stream_t *s, uint32_t *ids)
{
    float     logits[VOCABULARY];
    uint32_t  i, layer;
    uint64_t  value, chain[LAYERS] = { 0 };

    memcpy(ids, s->ids, s->nprompt * sizeof(uint32_t));

    for (i = 0; i + 1 < s->most; i++) {
        value = model_mix(ids[i], 0, 7);
        for (layer = 0; layer < LAYERS; layer++) {
            value = model_layer(&chain[layer], value, layer, i);
        }
        if (i + 1 >= s->nprompt) {
            model_logits(logits, value);
            ids[i + 1] = model_sample(logits);
        }
    }
}


/* --- events */

static void
scene_push(event_t event)
{
    size_t  i;

    if (scene.nevents == scene.room) {
        scene.room = scene.room ? 2 * scene.room : 64;
        scene.events = realloc(scene.events, scene.room * sizeof(event_t));
    }

    event.order = ++scene.order;

    if (event.session != NULL) {
        event.session->events++;
        if (event.at < event.session->last_ns) {
            event.at = event.session->last_ns;
        }
        event.session->last_ns = event.at;
    }

    /* sorted, the next event last */
    for (i = scene.nevents++; i > 0; i--) {
        if (scene.events[i - 1].at > event.at) {
            break;
        }
        scene.events[i] = scene.events[i - 1];
    }
    scene.events[i] = event;
}


static void
scene_at(uint64_t at, void (*call)(void *data), void *data)
{
    scene_push((event_t) { .at = at, .kind = ON_CALL, .call = call,
                           .data = data });
}


static uint64_t
scene_delay(void)
{
    return scene.latency
           + (scene.jitter ? rnd_below(&scene.rnd, scene.jitter) : 0);
}


static void
session_put(link_session_t *session)
{
    if (session->is_closed && session->events == 0) {
        free(session);
    }
}


static void
session_forget(link_session_t *session)
{
    free(session->text);
    free(session->values);
    session->text = NULL;
    session->values = NULL;
}


static void
session_tell(link_session_t *session, event_t *e)
{
    switch (e->kind) {
    case ON_OPENED:
        session->is_open = 1;
        session->callbacks->on_opened(session->data, e->rows);
        break;
    case ON_STARTED:
        session->callbacks->on_started(session->data, e->position);
        break;
    case ON_RESULT:
        session->outstanding--;
        session->values = e->values;
        e->values = NULL;
        session->callbacks->on_result(session->data, e->position, e->rows,
                                      e->is_logits, session->values);
        break;
    default:
        session->is_over = 1;
        session->text = strdup("as planned");
        session->callbacks->on_lost(session->data, e->reason, session->text);
        break;
    }
}


static void
scene_run_session(event_t *e)
{
    link_session_t  *session = e->session;

    if (!session->is_closed && !session->is_over
        && (e->order > session->cut || e->kind == ON_LOST))
    {
        session_tell(session, e);
        session_forget(session);
    }

    session->events--;
    session_put(session);
}


/* Runs the next event; returns 0 if there is none. */
static int
scene_run_one(void)
{
    event_t  e;

    if (scene.wake != 0
        && (scene.nevents == 0
            || scene.wake <= scene.events[scene.nevents - 1].at))
    {
        scene.now = scene.wake > scene.now ? scene.wake : scene.now;
        scene.wake = 0;
        flows_tick(scene.flows);
        return 1;
    }

    if (scene.nevents == 0) {
        return 0;
    }

    e = scene.events[--scene.nevents];
    scene.now = e.at > scene.now ? e.at : scene.now;

    if (e.kind == ON_CALL) {
        e.call(e.data);
    } else {
        scene_run_session(&e);
    }

    free(e.values);

    return 1;
}


static inline void
scene_run_until(uint64_t at)
{
    while ((scene.nevents > 0 && scene.events[scene.nevents - 1].at <= at)
           || (scene.wake != 0 && scene.wake <= at))
    {
        scene_run_one();
    }

    scene.now = at;
}


static void
scene_run(void)
{
    while (scene_run_one()) {
        assert_true(scene.now < 100000000 * MS);
    }
}


/* --- the fleet */

static int
fake_is_usable(const fake_t *shard, const fleet_query_t *query)
{
    size_t  i;

    for (i = 0; i < query->nexcluded; i++) {
        if (query->excluded[i] == shard->key) {
            return 0;
        }
    }

    if (shard->excluded_to > scene.now
        && !(shard->asked_with & ~query->avoid))
    {
        return 0;
    }

    return !shard->is_unlisted
           && !(shard->is_doubted && query->avoid & FLEET_WITH_SUSPECT);
}


static int
fake_is_full(const fake_t *shard)
{
    return shard->sessions_max > 0 && shard->sessions >= shard->sessions_max;
}


/* The path with the fewest hops; of equal shards the least busy one. */
static fleet_rc_t
scene_search(const fleet_query_t *query, fleet_path_t *path, int is_full)
{
    int            best[LAYERS + 1], hops, steps;
    size_t         i;
    fake_t        *shard, *via[LAYERS + 1];
    uint32_t       b, e, stop[LAYERS + 1] = { 0 };

    memset(via, 0, sizeof(via));
    best[query->to_layer + 1] = 0;

    for (b = query->to_layer + 1; b-- > query->from_layer; /* void */) {
        best[b] = 1000;
        for (i = 0; i < scene.nshards; i++) {
            shard = &scene.shards[i];
            if (shard->first != b || !fake_is_usable(shard, query)
                || (fake_is_full(shard) && !is_full))
            {
                continue;
            }
            for (e = b + 1; e <= shard->last + 1
                            && e <= query->to_layer + 1; e++)
            {
                hops = 1 + best[e];
                if (hops < best[b]
                    || (hops == best[b] && via[b] != NULL
                        && shard->sessions < via[b]->sessions))
                {
                    best[b] = hops;
                    via[b] = shard;
                    stop[b] = e;
                }
            }
        }
    }

    if (best[query->from_layer] >= 1000) {
        return FLEET_GAP;
    }

    steps = 0;
    for (b = query->from_layer; b <= query->to_layer; b = stop[b]) {
        fleet_hop_t  *hop = &path->hops[steps++];

        *hop = (fleet_hop_t) { .key = via[b]->key, .first = b,
                               .last = stop[b] - 1,
                               .is_loaded = !via[b]->is_unloaded };
        snprintf(hop->id, sizeof(hop->id), "%s", via[b]->id);
    }

    path->n = steps;

    return FLEET_FOUND;
}


static fleet_rc_t
scene_find(fleet_t *fleet, const fleet_query_t *query, fleet_path_t *path)
{
    fleet_rc_t  rc;

    snprintf(path->why, sizeof(path->why), "no path");
    path->layer = query->from_layer;
    rc = scene_search(query, path, 0);

    if (rc == FLEET_GAP && scene_search(query, path, 1) == FLEET_FOUND) {
        return FLEET_FULL;
    }

    return rc == FLEET_GAP && scene.is_mixed ? FLEET_MISMATCH : rc;
}


static fake_t *
scene_shard_of(uint64_t key)
{
    size_t  i;

    for (i = 0; i < scene.nshards; i++) {
        if (scene.shards[i].key == key) {
            return &scene.shards[i];
        }
    }

    return NULL;
}


static void
scene_exclude(fleet_t *fleet, uint64_t key, shard_reason_t reason)
{
    fake_t  *shard;

    shard = scene_shard_of(key);

    if (shard != NULL && shard->excluded_to <= scene.now) {
        shard->exclusions++;
        shard->asked_with = reason == SHARD_LATE ? FLEET_WITH_LATE
                            : reason == SHARD_CORRUPTION ? 0
                            : FLEET_WITH_FAILED;
        shard->excluded_to = scene.now + shard->excluded_ms * MS;
    }
}


static void
scene_worked(fleet_t *fleet, uint64_t key)
{
}


static void
scene_each(const fleet_t *fleet,
    void (*visit)(void *data, const fleet_shard_info_t *info), void *data)
{
}

#endif /* FLOW_SCENE_H */
