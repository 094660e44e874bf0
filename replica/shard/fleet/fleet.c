
/*
 * The fleet: its clock, the state of its shards, and whether there is a path.
 *
 * Every 100 ms the segment is looked at; connections to shards that are gone
 * are closed; shards that nothing refers to are forgotten; and if anything has
 * changed, the replica can serve if there is a path over all layers.  Free
 * places do not matter for that, since it is worth waiting for a full fleet.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/os/mono.h"
#include "replica/shard/fleet/peer.h"


#define FLEET_TICK_MS    100
#define FLEET_SECOND_MS  1000


uint64_t
fleet_now_ms(void)
{
    return mono_ms();
}


/* --- each shard's state */

fleet_shard_t *
fleet_shard_of(const fleet_t *f, uint64_t key)
{
    size_t  low, high, middle;

    for (low = 0, high = f->nshards; low < high; /* void */ ) {
        middle = (low + high) / 2;

        if (f->by_key[middle]->key < key) {
            low = middle + 1;

        } else {
            high = middle;
        }
    }

    return low < f->nshards && f->by_key[low]->key == key ? f->by_key[low]
                                                          : NULL;
}


void
fleet_count(fleet_shard_t *s, int more)
{
    assert(more > 0 || s->sessions > 0);
    s->sessions += (uint32_t) more;

    if (s->sessions > s->highest[0]) {
        s->highest[0] = s->sessions;
    }
}


/*
 * The sessions that a shard reports include ours as they were a while ago.  So
 * the most that we had lately is subtracted, and the number that we have now is
 * added.
 */
uint32_t
fleet_load(const fleet_shard_t *s)
{
    uint32_t  highest;

    highest = s->highest[0] > s->highest[1] ? s->highest[0] : s->highest[1];

    return s->sessions + (s->active > highest ? s->active - highest : 0);
}


static int
shard_is_full(const fleet_shard_t *s, int is_spare, uint64_t now_ms)
{
    return now_ms < s->full_until_ms
           || (s->capacity != 0
               && fleet_load(s) >= (is_spare ? s->capacity / 2
                                             : s->capacity));
}


void
fleet_exclude(fleet_t *f, uint64_t key, shard_reason_t reason)
{
    uint64_t        term_ms;
    fleet_shard_t  *s;

    s = fleet_shard_of(f, key);

    if (s == NULL) {
        return;
    }

    term_ms = ban_begin(&s->ban, reason, fleet_now_ms());
    f->is_dirty = 1;

    if (term_ms != 0) {
        log_write(f->log, LOG_WARN, "shard \"%s\" is excluded for %u s: %s",
                  s->id, (unsigned) (term_ms / 1000),
                  shard_reason_name(reason));
    }
}


int
fleet_is_doubted(const fleet_t *f, uint64_t key)
{
    const fleet_shard_t  *s;

    s = fleet_shard_of(f, key);

    return s != NULL && s->is_listed
           && (s->is_suspect || s->is_dead || s->is_stalled);
}


void
fleet_worked(fleet_t *f, uint64_t key)
{
    fleet_shard_t  *s;

    s = fleet_shard_of(f, key);

    if (s != NULL) {
        ban_forgive(&s->ban, fleet_now_ms());
    }
}


void
fleet_each(const fleet_t *f,
    void (*visit)(void *data, const fleet_shard_info_t *info), void *data)
{
    size_t                i;
    uint64_t              now_ms;
    fleet_shard_info_t    info;
    const fleet_shard_t  *s;

    now_ms = fleet_now_ms();

    for (i = 0; i < f->nshards; i++) {
        s = f->shards[i];

        if (!s->is_listed) {
            continue;
        }

        info.id = s->id;
        info.first = s->first;
        info.last = s->last;
        info.sessions = s->sessions;
        info.queue = s->waiting + fleet_load(s);
        info.excluded_ms = ban_is_on(&s->ban, now_ms)
                           ? s->ban.until_ms - now_ms : 0;
        info.excluded_for = shard_reason_name(s->ban.reason);
        info.is_usable = s->is_usable;
        info.is_match = s->is_match;
        visit(data, &info);
    }
}


/* --- readiness */

static int
shard_is_excluded(const fleet_shard_t *s, unsigned with, uint64_t now_ms)
{
    if (!ban_is_on(&s->ban, now_ms)) {
        return 0;
    }

    switch (s->ban.reason) {

    case SHARD_CORRUPTION:
        return 1;

    case SHARD_LATE:
        return !(with & FLEET_WITH_LATE);

    default:
        return !(with & FLEET_WITH_FAILED);
    }
}


static int
shard_may_serve(const fleet_shard_t *s, const fleet_query_t *query,
    unsigned with, uint64_t now_ms)
{
    return s->is_usable && s->is_match && !shard_is_excluded(s, with, now_ms)
           && (with & FLEET_WITH_SUSPECT || !s->is_suspect)
           && (with & FLEET_WITH_FULL
               || !shard_is_full(s, query->is_spare, now_ms));
}


size_t
fleet_collect(fleet_t *f, const fleet_query_t *query, unsigned with)
{
    size_t                i, k, n;
    uint64_t              now_ms;
    path_shard_t         *to;
    const fleet_shard_t  *s;

    now_ms = fleet_now_ms();

    for (n = 0, i = 0; i < f->nshards; i++) {
        s = f->shards[i];

        if (!shard_may_serve(s, query, with, now_ms)) {
            continue;
        }

        for (k = 0; k < query->nexcluded; k++) {
            if (query->excluded[k] == s->key) {
                break;
            }
        }

        if (k < query->nexcluded) {
            continue;
        }

        to = &f->candidates[n];
        to->id = s->id;
        to->first = s->first;
        to->last = s->last;
        to->queue = s->waiting + fleet_load(s);
        to->is_far = s->is_far;
        to->is_unloaded = !s->is_loaded;
        to->is_never_first = strcmp(s->id, f->options.id) == 0;
        f->candidate_of[n++] = i;
    }

    return n;
}


static int
fleet_has_path(fleet_t *f)
{
    size_t         n, nhops;
    uint32_t       layer;
    path_hop_t     hops[SHARD_HOPS_MAX];
    path_query_t   query = { .to = f->want.layers - 1 };
    fleet_query_t  all = { .to_layer = f->want.layers - 1 };

    n = fleet_collect(f, &all, FLEET_WITH_ALL);

    return path_find(f->candidates, n, &query, hops, &nhops, &layer)
           == PATH_FOUND;
}


/* While there is no pipeline, each new reason is logged once. */
static void
fleet_say_why(fleet_t *f)
{
    fleet_rc_t     rc;
    fleet_path_t   path;
    fleet_query_t  all = { .to_layer = f->want.layers - 1 };

    rc = fleet_find(f, &all, &path);

    if (strcmp(path.why, f->why) != 0) {
        strcpy(f->why, path.why);
        log_write(f->log, LOG_WARN, "no pipeline (%s): %s", fleet_reason(rc),
                  path.why);
    }
}


static void
fleet_judge(fleet_t *f)
{
    int  is_ready;

    if (!f->is_dirty) {
        return;
    }

    f->is_dirty = 0;
    is_ready = fleet_has_path(f);

    if (!is_ready) {
        fleet_say_why(f);

    } else if (!f->is_ready) {
        f->why[0] = '\0';
        log_write(f->log, LOG_INFO, "shards lead over all %u layers of \"%s\"",
                  (unsigned) f->want.layers, f->want.model);
    }

    if (is_ready == f->is_ready) {
        return;
    }

    f->is_ready = is_ready;

    if (f->on_changed != NULL) {
        f->on_changed(f->data, is_ready);
    }
}


int
fleet_is_ready(const fleet_t *f)
{
    return f->is_ready;
}


/* --- the clock */

/* The end of a ban, and of a second, may change which shards can serve. */
static void
fleet_age(fleet_t *f, uint64_t now_ms)
{
    size_t          i;
    fleet_shard_t  *s;

    for (i = 0; i < f->nshards; i++) {
        s = f->shards[i];

        if (s->ban.until_ms != 0 && !ban_is_on(&s->ban, now_ms)) {
            s->ban.until_ms = 0;
            f->is_dirty = 1;
        }

        if (now_ms - f->second_at_ms >= FLEET_SECOND_MS) {
            s->highest[1] = s->highest[0];
            s->highest[0] = s->sessions;
        }
    }

    if (now_ms - f->second_at_ms >= FLEET_SECOND_MS) {
        f->second_at_ms = now_ms;
    }
}


/* Both arrays keep their order. */
static void
fleet_forget(fleet_t *f)
{
    size_t          i, n, k;
    fleet_shard_t  *s;

    for (n = 0, i = 0; i < f->nshards; i++) {
        s = f->shards[i];

        if (s->is_listed || s->sessions > 0 || s->ban.until_ms != 0) {
            f->shards[n++] = s;
        }
    }

    if (n == f->nshards) {
        return;
    }

    for (k = 0, i = 0; i < f->nshards; i++) {
        s = f->by_key[i];

        if (s->is_listed || s->sessions > 0 || s->ban.until_ms != 0) {
            f->by_key[k++] = s;

        } else {
            if (s->peer != NULL) {
                peer_leave(s->peer);
            }

            free(s);
        }
    }

    f->nshards = n;
}


static void
fleet_on_tick(struct ev_loop *loop, ev_timer *w, int revents)
{
    fleet_t   *f;
    uint64_t   now_ms;

    f = w->data;
    now_ms = fleet_now_ms();
    view_look(f);
    fleet_age(f, now_ms);
    peers_look(f, now_ms);
    fleet_forget(f);
    fleet_judge(f);
}


/* --- open and close */

static int
fleet_init(fleet_t *f)
{
    TAILQ_INIT(&f->peers);
    TAILQ_INIT(&f->lost);
    f->chunk = malloc(SHARD_CHUNK_BYTES);

    /* Sessions are numbered from a random number on, so that the number in a
       stolen token is not used again. */

    if (f->chunk == NULL
        || getrandom(&f->last_session, sizeof(f->last_session), 0)
           != (ssize_t) sizeof(f->last_session))
    {
        return -1;
    }

    return view_open(f);
}


fleet_t *
fleet_open(struct ev_loop *loop, const log_t *log,
    const fleet_options_t *options, const fleet_want_t *want,
    fleet_changed_pt on_changed, void *data)
{
    fleet_t  *f;

    f = calloc(1, sizeof(*f));

    if (f == NULL) {
        return NULL;
    }

    f->loop = loop;
    f->log = log;
    f->options = *options;
    f->want = *want;
    ev_init(&f->ticker, NULL);
    link_init(f);

    if (fleet_init(f) != 0) {
        view_close(f);
        free(f->chunk);
        free(f);
        return NULL;
    }

    f->is_dirty = 1;
    view_look(f);
    fleet_judge(f);
    f->on_changed = on_changed;
    f->data = data;
    f->second_at_ms = fleet_now_ms();
    f->ticker.data = f;
    ev_timer_init(&f->ticker, fleet_on_tick, FLEET_TICK_MS / 1e3,
                  FLEET_TICK_MS / 1e3);
    ev_timer_start(loop, &f->ticker);

    return f;
}


void
fleet_close(fleet_t *f)
{
    if (f == NULL) {
        return;
    }

    ev_timer_stop(f->loop, &f->ticker);
    link_done(f);
    peers_done(f);
    view_close(f);
    free(f->chunk);
    free(f);
}
