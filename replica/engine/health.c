
/*
 * An engine's health: see health.h.
 */

#include <string.h>

#include "replica/engine/health.h"


void
health_init(health_t *h, uint64_t grace_ms, uint64_t now_ms)
{
    memset(h, 0, sizeof(*h));
    h->state = ENGINE_STARTING;
    h->grace_ms = grace_ms;
    h->answered_ms = now_ms;
    h->counter = -1;
}


/* DOWN or STARTING: what was measured says nothing about the next process. */
static void
health_end(health_t *h, engine_state_t state)
{
    h->state = state;
    h->is_silent = 0;
    h->counter = -1;
    h->busy_ms = 0;
    h->idle_ms = 0;
}


void
health_refused(health_t *h)
{
    if (h->was_ready && h->state != ENGINE_DOWN) {
        health_end(h, ENGINE_DOWN);
    }
}


void
health_answer(health_t *h, engine_state_t state, uint64_t now_ms)
{
    h->answered_ms = now_ms;

    if (state == ENGINE_DOWN) {
        health_refused(h);
        return;
    }

    if (state == ENGINE_STARTING) {
        h->was_ready = 0;

        if (h->state != ENGINE_STARTING) {
            health_end(h, ENGINE_STARTING);
        }

        return;
    }

    h->was_ready = 1;

    if (h->state == ENGINE_STARTING || h->state == ENGINE_DOWN
        || (h->state == ENGINE_STALLED && h->is_silent))
    {
        h->state = ENGINE_READY;
        h->is_silent = 0;
        h->busy_ms = 0;
        h->idle_ms = 0;
    }
}


static void
health_moved(health_t *h)
{
    if (h->state == ENGINE_STALLED) {
        h->state = ENGINE_READY;
        h->is_silent = 0;
        h->busy_ms = 0;
        h->idle_ms = 0;
    }
}


void
health_bytes(health_t *h, uint64_t now_ms)
{
    h->bytes_ms = now_ms;
    health_moved(h);
}


/* Whether a stream of ours has waited too long for an idle engine. */
static int
health_is_forgotten(const health_t *h, uint64_t now_ms)
{
    return h->streams_ms > 0
           && now_ms - h->streams_ms >= HEALTH_SILENCE_MS
           && now_ms - h->bytes_ms >= HEALTH_SILENCE_MS;
}


static void
health_scrape_idle(health_t *h, uint64_t now_ms)
{
    h->busy_ms = 0;

    if (h->idle_ms == 0) {
        h->idle_ms = now_ms;
    }

    if (h->state == ENGINE_STALLED && now_ms - h->idle_ms >= h->grace_ms) {
        health_moved(h);
    }
}


/*
 * A counter tells of progress only when it is asked.  If bytes of ours came in
 * between, they are what moved it, and they say when.
 */
static void
health_count(health_t *h, int64_t counter, uint64_t now_ms)
{
    if (h->counter >= 0) {
        h->moved_ms = now_ms;

        if (h->bytes_ms < h->scraped_ms) {
            h->alone_ms = now_ms;
        }

        health_moved(h);
    }

    h->counter = counter;
}


static uint64_t
health_later(uint64_t a_ms, uint64_t b_ms)
{
    return a_ms > b_ms ? a_ms : b_ms;
}


uint64_t
health_progress_ms(const health_t *h)
{
    return health_later(health_later(h->bytes_ms, h->alone_ms),
                        health_later(h->busy_ms, h->streams_ms));
}


void
health_scrape(health_t *h, int64_t counter, int64_t requests, uint64_t now_ms)
{
    int       is_still;
    uint64_t  before_ms;

    h->answered_ms = now_ms;

    if (counter < 0) {
        return;
    }

    before_ms = h->scraped_ms;
    is_still = (counter == h->counter);

    if (!is_still) {
        health_count(h, counter, now_ms);
    }

    h->scraped_ms = now_ms;

    if (requests <= 0 && !health_is_forgotten(h, now_ms)) {
        health_scrape_idle(h, now_ms);
        return;
    }

    h->idle_ms = 0;

    if (h->busy_ms == 0) {
        h->busy_ms = h->bytes_ms > before_ms ? h->bytes_ms : now_ms;
    }

    if (is_still && h->state == ENGINE_READY
        && now_ms - health_progress_ms(h) >= h->grace_ms)
    {
        h->state = ENGINE_STALLED;
    }
}


void
health_look(health_t *h, uint32_t streams, uint64_t now_ms)
{
    if (streams == 0) {
        h->streams_ms = 0;
        return;
    }

    if (h->streams_ms == 0) {
        h->streams_ms = now_ms;
    }

    if (h->state == ENGINE_READY
        && now_ms - h->streams_ms >= HEALTH_SILENCE_MS
        && now_ms - h->bytes_ms >= HEALTH_SILENCE_MS
        && now_ms - h->answered_ms >= HEALTH_SILENCE_MS)
    {
        h->state = ENGINE_STALLED;
        h->is_silent = 1;
    }
}


void
health_learn_capacity(health_capacity_t *c, int64_t running, int64_t waiting,
    uint64_t now_ms)
{
    int  was_waiting;

    was_waiting = c->is_waiting;
    c->is_waiting = waiting > 0;

    if (waiting > 0) {
        c->waited_ms = now_ms;

        if (was_waiting && running > 0
            && (c->limit == 0 || running < c->limit))
        {
            c->limit = running < ENGINE_CAPACITY_MAX ? (int32_t) running
                                                     : ENGINE_CAPACITY_MAX;
        }

        return;
    }

    if (c->limit == 0) {
        return;
    }

    if (now_ms - c->waited_ms >= HEALTH_FORGET_MS) {
        c->limit = 0;

    } else if (running >= c->limit) {
        c->limit += c->limit / 8 + 1;
    }
}
