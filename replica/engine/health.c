
/*
 * An engine's health: see health.h.
 */

#include <string.h>

#include "replica/engine/health.h"


void
health_init(health_t *h, uint64_t given_ms, uint64_t now_ms)
{
    memset(h, 0, sizeof(*h));
    h->state = ENGINE_STARTING;
    h->given_ms = given_ms;
    h->counter = -1;
}


static uint64_t
health_later(uint64_t a_ms, uint64_t b_ms)
{
    return a_ms > b_ms ? a_ms : b_ms;
}


/* --- the stall time-out */

uint64_t
health_stall_ms(const health_t *h)
{
    uint64_t  stall_ms;

    if (h->given_ms != 0) {
        return h->given_ms;
    }

    if (!h->is_warm) {
        return HEALTH_FRESH_MS;
    }

    stall_ms = 3 * health_later(h->longest_ms[0], h->longest_ms[1]);
    stall_ms = health_later(stall_ms, HEALTH_STALL_MS);

    return stall_ms < HEALTH_FRESH_MS ? stall_ms : HEALTH_FRESH_MS;
}


/* Counts a step that took this long, or longer. */
static void
health_step(health_t *h, uint64_t took_ms)
{
    h->longest_ms[0] = health_later(h->longest_ms[0], took_ms);

    if (++h->steps == HEALTH_STEPS) {
        h->is_warm = 1;
        h->steps = 0;
        h->longest_ms[1] = h->longest_ms[0];
        h->longest_ms[0] = 0;
    }
}


/* Another process may run now, which compiles kernels again. */
static void
health_start_over(health_t *h)
{
    h->still_ms = 0;
    h->is_warm = 0;
    h->steps = 0;
    h->longest_ms[0] = 0;
    h->longest_ms[1] = 0;
}


/* --- the engine's own reports */

static void
health_ready(health_t *h)
{
    h->state = ENGINE_READY;
    h->is_silent = 0;
    h->busy_ms = 0;
    h->idle_ms = 0;
}


/* While streams of ours run, one answered probe does not end a silence: bytes
   do, or health_answer() with READY. */
void
health_answered(health_t *h, uint64_t now_ms)
{
    h->answered_ms = now_ms;
    h->asked_ms = 0;

    if (h->is_silent && h->streams_ms == 0) {
        health_ready(h);
    }
}


void
health_asked(health_t *h, uint64_t now_ms)
{
    if (h->asked_ms == 0) {
        h->asked_ms = now_ms;
    }
}


/* Enters DOWN or STARTING, and drops what was measured, which shows nothing
   about the next process. */
static void
health_end(health_t *h, engine_state_t state)
{
    h->state = state;
    h->is_leaving = 0;
    h->is_silent = 0;
    h->counter = -1;
    h->busy_ms = 0;
    h->idle_ms = 0;
    health_start_over(h);
}


static void
health_down(health_t *h)
{
    if (h->was_ready && h->state != ENGINE_DOWN) {
        health_end(h, ENGINE_DOWN);
    }
}


static int
health_is_there(const health_t *h)
{
    return h->state == ENGINE_READY || h->state == ENGINE_STALLED;
}


void
health_refused(health_t *h, int has_streams)
{
    h->asked_ms = 0;

    if (health_is_there(h) && has_streams) {
        h->is_leaving = 1;
        return;
    }

    health_down(h);
}


void
health_unwilling(health_t *h, uint64_t now_ms)
{
    if (!health_is_there(h)) {
        health_answer(h, ENGINE_STARTING, now_ms);
        return;
    }

    health_answered(h, now_ms);
    h->is_leaving = 1;

    if (h->is_silent) {
        health_ready(h);
    }
}


void
health_answer(health_t *h, engine_state_t state, uint64_t now_ms)
{
    health_answered(h, now_ms);

    if (state == ENGINE_DOWN) {
        health_down(h);
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

    if (h->is_leaving || h->is_silent) {
        health_start_over(h);
    }

    h->is_leaving = 0;

    if (!health_is_there(h) || h->is_silent) {
        health_ready(h);
    }
}


/* --- progress */

static void
health_moved(health_t *h)
{
    if (h->state == ENGINE_STALLED) {
        health_ready(h);
    }
}


uint64_t
health_progress_ms(const health_t *h)
{
    return health_later(health_later(h->bytes_ms, h->alone_ms),
                        health_later(h->busy_ms, h->streams_ms));
}


int
health_is_alive(const health_t *h, uint64_t since_ms, uint64_t now_ms)
{
    return health_later(h->bytes_ms, h->answered_ms) >= since_ms
           && now_ms - health_progress_ms(h) < health_stall_ms(h);
}


void
health_bytes(health_t *h, uint64_t now_ms)
{
    if (now_ms - h->step_ms >= HEALTH_STEP_MS) {
        h->step_ms = now_ms;
        health_step(h, h->streams_ms != 0 ? now_ms - health_progress_ms(h)
                                          : 0);
    }

    h->bytes_ms = now_ms;
    health_moved(h);
}


/* Whether a stream of ours has waited too long for an idle engine. */
static int
health_is_forgotten(const health_t *h, uint64_t now_ms)
{
    return h->streams_ms > 0
           && now_ms - h->streams_ms >= HEALTH_FORGOTTEN_MS
           && now_ms - h->bytes_ms >= HEALTH_FORGOTTEN_MS;
}


static void
health_scrape_idle(health_t *h, uint64_t now_ms)
{
    h->busy_ms = 0;
    h->still_ms = 0;

    if (h->idle_ms == 0) {
        h->idle_ms = now_ms;
    }

    if (now_ms - h->idle_ms >= health_stall_ms(h)
        || now_ms - h->idle_ms >= HEALTH_IDLE_MS)
    {
        health_moved(h);
    }
}


/*
 * A counter shows progress only at a scrape.  If bytes of ours came since the
 * last one, they moved it, and their time is known.  How long a step without
 * bytes took is known from the scrapes between which the counter moved.
 */
static void
health_count(health_t *h, int64_t counter, uint64_t now_ms)
{
    if (h->counter >= 0) {

        if (h->bytes_ms < h->scraped_ms) {
            health_step(h, h->still_ms > health_progress_ms(h)
                           ? h->still_ms - health_progress_ms(h) : 0);
            h->alone_ms = now_ms;
        }

        health_moved(h);
    }

    h->counter = counter;
    h->still_ms = 0;
}


void
health_scrape(health_t *h, int64_t counter, int64_t requests, uint64_t now_ms)
{
    int       is_still;
    uint64_t  before_ms;

    health_answered(h, now_ms);

    if (counter < 0) {
        h->counter = -1;
        health_moved(h);
        return;
    }

    before_ms = h->scraped_ms;
    is_still = (counter == h->counter);

    if (is_still) {
        h->still_ms = now_ms;
    } else {
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
        && now_ms - health_progress_ms(h) >= health_stall_ms(h))
    {
        h->state = ENGINE_STALLED;
    }
}


/* --- silence */

/* Whether the engine is silent; before woke_ms no answer could be noticed. */
static int
health_is_mute(const health_t *h, uint64_t now_ms)
{
    uint64_t  since_ms;

    since_ms = health_later(h->bytes_ms, h->woke_ms);

    if (h->asked_ms != 0
        && now_ms - health_later(since_ms, h->asked_ms) >= HEALTH_SILENCE_MS)
    {
        return 1;
    }

    since_ms = health_later(since_ms, health_progress_ms(h));

    return h->counter >= 0 && h->streams_ms != 0 && !h->is_leaving
           && now_ms - health_later(since_ms, h->scraped_ms)
              >= health_stall_ms(h);
}


void
health_look(health_t *h, uint32_t streams, uint64_t now_ms)
{
    if (h->looked_ms != 0 && now_ms - h->looked_ms > 2 * HEALTH_LOOK_MS) {
        h->woke_ms = now_ms;
    }

    h->looked_ms = now_ms;

    if (streams == 0) {
        h->streams_ms = 0;

    } else if (h->streams_ms == 0) {
        h->streams_ms = now_ms;
    }

    if (h->state == ENGINE_READY && health_is_mute(h, now_ms)) {
        h->state = ENGINE_STALLED;
        h->is_silent = 1;
    }
}


uint64_t
health_pause_ms(health_t *h, uint64_t now_ms)
{
    if (health_is_there(h) && !h->is_leaving) {
        h->has_served = 1;
        h->gone_ms = 0;
        return UINT64_MAX;
    }

    if (h->gone_ms == 0) {
        h->gone_ms = now_ms;
    }

    if (h->has_served && now_ms - h->gone_ms < HEALTH_CHASE_MS) {
        return HEALTH_GONE_MS;
    }

    return health_is_there(h) ? UINT64_MAX : HEALTH_HURRY_MS;
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
