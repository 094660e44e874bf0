
/*
 * Looks at an engine: one probe after the other, by the dialect's table, then
 * a pause.
 *
 *            answered: learn, next probe        the table's end
 *   PAUSE ---> ASKING -------------------------------------------> PAUSE
 *                |  refused, broken, timed out, not ready              ^
 *                '-----------------------------------------------------'
 *
 * If an engine that was there does not answer for its health in time, its
 * metrics are still asked for: they may show that it stands still.
 *
 * A look begins about every SCRAPE_PERIOD_MS; more often at an engine that is
 * not ready (health_pause_ms()).  Each look opens a connection, since an engine
 * that is ending may refuse new ones and still answer on open ones.
 */

#include <string.h>

#include "replica/engine/scrape.h"
#include "common/os/mono.h"


#define SCRAPE_PERIOD_MS     1500
#define SCRAPE_SLACK_MS      20         /* timers may be a little early */
#define SCRAPE_BROKEN_MS     10         /* pause after a stream broke: its
                                           process may be about to end */
#define SCRAPE_LATE_MS       500        /* pause after a time-out: is the engine
                                           silent, or only this probe? */
#define SCRAPE_TIMEOUT_MS    2000
#define SCRAPE_ONCE_MS       30000      /* adapters are loaded while it runs */
#define SCRAPE_BODY_BYTES    (4 * 1024 * 1024)  /* metrics have about 100 kB */


static void scrape_ask(scrape_t *s);


/* --- what was learnt, for reports and admission */

static int32_t
scrape_max_capacity(const scrape_t *s)
{
    if (s->max_capacity != ENGINE_CAPACITY_AUTO) {
        return s->max_capacity;
    }

    return s->facts.capacity > 0 ? s->facts.capacity : s->capacity.limit;
}


/* The share of hits, by the engine's counters or its own report. */
static int32_t
scrape_hits(scrape_t *s)
{
    const dialect_facts_t  *f;

    f = &s->facts;

    return f->hits < 0 || f->looked_up < 0
           ? f->hit_permille
           : hits_permille(&s->hits, mono_ms(), (uint64_t) f->hits,
                           (uint64_t) f->looked_up);
}


static void
scrape_publish(scrape_t *s)
{
    engine_facts_t  f;

    f = s->engine->facts;
    f.state = s->health.state;
    f.is_leaving = s->health.is_leaving;
    f.running = s->facts.running;
    f.waiting = s->facts.waiting;
    f.kv_permille = s->facts.kv_permille;
    f.kv_free_blocks = s->facts.kv_free_blocks;
    f.hit_permille = scrape_hits(s);
    f.max_capacity = scrape_max_capacity(s);

    if (s->facts.models_bytes <= sizeof(f.models)) {
        memcpy(f.models, s->facts.models, s->facts.models_bytes);
        f.models_bytes = s->facts.models_bytes;
    }

    if (s->dialect != NULL) {
        dialect_group(s->dialect, &s->facts, f.resume_group);
    }

    if (memcmp(&f, &s->engine->facts, sizeof(f)) != 0) {
        s->engine->facts = f;
        engine_publish(s->engine);
    }
}


/* --- its state */

static const char *
scrape_state_name(engine_state_t state, int is_leaving)
{
    return is_leaving ? "DRAINING" : engine_state_name(state);
}


static void
scrape_log_state(const scrape_t *s, const char *before)
{
    const char            *now;
    const engine_facts_t  *f;

    f = &s->engine->facts;
    now = scrape_state_name(f->state, f->is_leaving);

    if (now == before) {
        return;                 /* it stalls, or moves, while it drains */
    }

    if (f->state != ENGINE_READY || f->is_leaving) {
        log_write(s->engine->log, LOG_WARN, "engine is %s, it was %s", now,
                  before);
        return;
    }

    log_write(s->engine->log, LOG_INFO, "engine \"%s\" is READY, it was %s; "
              "model \"%s\", capacity %d (0: no limit)", s->dialect->name,
              before, f->models_bytes > 0 ? f->models : "", f->max_capacity);
}


/* Drops what was measured.  What the engine serves is kept until it reports
   otherwise. */
static void
scrape_forget(scrape_t *s)
{
    s->once_ms = 0;
    dialect_facts_forget(&s->facts);
    memset(&s->capacity, 0, sizeof(s->capacity));
}


/* To be called after all that may have changed the health. */
static void
scrape_judge(scrape_t *s)
{
    int             was_leaving;
    engine_state_t  before;

    before = s->engine->facts.state;
    was_leaving = s->engine->facts.is_leaving;

    if (s->health.state == ENGINE_DOWN || s->health.state == ENGINE_STARTING) {
        scrape_forget(s);

    } else if (was_leaving && !s->health.is_leaving) {
        s->once_ms = 0;         /* it may be another process */
    }

    scrape_publish(s);

    if (s->health.state != before || s->health.is_leaving != was_leaving) {
        scrape_log_state(s, scrape_state_name(before, was_leaving));
    }
}


static int
scrape_is_there(const scrape_t *s)
{
    return s->health.state == ENGINE_READY
           || s->health.state == ENGINE_STALLED;
}


/*
 * The pause until the next look, chosen so that a look comes when the engine
 * becomes STALLED if nothing moves until then.
 */
static uint64_t
scrape_pause_ms(const scrape_t *s)
{
    uint64_t  now_ms, stall_ms, least_ms, pause_ms;

    if (s->dialect == NULL) {
        return HEALTH_HURRY_MS;
    }

    now_ms = mono_ms();
    least_ms = s->dialect->pause_ms;
    pause_ms = now_ms - s->began_ms + least_ms < SCRAPE_PERIOD_MS
               ? SCRAPE_PERIOD_MS - (now_ms - s->began_ms) : least_ms;

    if (s->health.streams_ms == 0) {
        return pause_ms;
    }

    stall_ms = health_progress_ms(&s->health) + health_stall_ms(&s->health)
               + SCRAPE_SLACK_MS;

    if (stall_ms <= now_ms || stall_ms - now_ms >= pause_ms + least_ms) {
        return pause_ms;
    }

    return stall_ms - now_ms > least_ms ? stall_ms - now_ms : least_ms;
}


/* --- the table of probes */

static const char *
scrape_path(const scrape_t *s)
{
    return s->dialect != NULL ? s->dialect->probes[s->at].path
                              : dialect_auto_paths[s->at];
}


/* Whether metrics are asked for next, whatever the result of this probe is. */
static int
scrape_has_metrics_next(const scrape_t *s)
{
    return s->dialect != NULL && scrape_is_there(s)
           && s->dialect->probes[s->at + 1].is_metrics;
}


static int
scrape_is_due(const scrape_t *s)
{
    return s->dialect == NULL
           || s->dialect->probes[s->at].pace == DIALECT_OFTEN
           || s->once_ms == 0
           || mono_ms() - s->once_ms >= SCRAPE_ONCE_MS;
}


static void
scrape_pause(scrape_t *s, uint64_t pause_ms)
{
    uint64_t  most_ms;

    most_ms = health_pause_ms(&s->health, mono_ms());
    pause_ms = pause_ms < most_ms ? pause_ms : most_ms;

    if (s->is_urgent) {
        s->is_urgent = 0;
        pause_ms = 0;
    }

    ev_timer_stop(s->engine->loop, &s->timer);
    ev_timer_set(&s->timer, (double) pause_ms / 1000, 0);
    ev_timer_start(s->engine->loop, &s->timer);
}


static void
scrape_found(scrape_t *s, const dialect_t *dialect)
{
    log_write(s->engine->log, LOG_INFO, "engine speaks \"%s\"", dialect->name);
    s->dialect = dialect;
    s->at = 0;
}


/* The table's end. */
static void
scrape_finish(scrape_t *s)
{
    uint64_t  now_ms;

    now_ms = mono_ms();

    if (s->dialect == NULL) {

        if (s->is_answered) {
            scrape_found(s, dialect_find("openai"));
            scrape_ask(s);
            return;
        }

        scrape_pause(s, HEALTH_HURRY_MS);
        return;
    }

    if (s->once_ms == 0 || now_ms - s->once_ms >= SCRAPE_ONCE_MS) {
        s->once_ms = now_ms;
    }

    if (s->is_answered && s->facts.state == DIALECT_READY) {
        health_answer(&s->health, ENGINE_READY, now_ms);
    }

    scrape_judge(s);
    scrape_pause(s, scrape_pause_ms(s));
}


/* --- an answer */

/*
 * How many requests are in the engine.  If its gauges lag, it may be idle and
 * report some; then only our own streams show that it has work.
 */
static int64_t
scrape_requests(const scrape_t *s)
{
    if (s->dialect->gauges_lag && s->health.state == ENGINE_READY
        && s->health.streams_ms == 0)
    {
        return 0;
    }

    return (s->facts.running > 0 ? s->facts.running : 0)
           + (s->facts.waiting > 0 ? s->facts.waiting : 0);
}


/* Reads the answer.  1: the next probe follows; 0: this look is over. */
static int
scrape_learn(scrape_t *s, uint64_t now_ms)
{
    int                     rc;
    int64_t                 requests;
    dialect_facts_t        *f;
    const dialect_probe_t  *probe;

    f = &s->facts;
    probe = &s->dialect->probes[s->at];
    rc = dialect_learn(probe, f, s->answer.status, s->answer.body,
                       s->answer.body_len);

    if (rc != 0 && probe->is_metrics && !s->is_mute) {
        s->is_mute = 1;
        log_write(s->engine->log, LOG_WARN, "engine answered %u to \"%s\" and "
                  "tells no metrics: a hang is noticed later", s->answer.status,
                  probe->path);
    }

    if (rc != 0 && probe->is_metrics) {
        health_scrape(&s->health, -1, 0, now_ms);
    }

    if (rc == 0 && probe->is_metrics) {
        s->is_mute = 0;
        requests = scrape_requests(s);
        health_scrape(&s->health, f->progress, requests, now_ms);
        health_learn_capacity(&s->capacity, f->running, f->waiting, now_ms);
    }

    switch (f->state) {

    case DIALECT_READY:
        return 1;

    case DIALECT_UNWILLING:
        health_unwilling(&s->health, now_ms);
        return scrape_is_there(s);

    case DIALECT_STARTING:
        health_answer(&s->health, ENGINE_STARTING, now_ms);
        return 0;

    default:
        health_answer(&s->health, ENGINE_DOWN, now_ms);
        return 0;
    }
}


static void
scrape_detect(scrape_t *s)
{
    const dialect_t  *dialect;

    dialect = dialect_detect(scrape_path(s), s->answer.status, s->answer.body,
                             s->answer.body_len);

    if (dialect != NULL) {
        scrape_found(s, dialect);
        return;
    }

    s->at++;
}


static void
scrape_answered(scrape_t *s)
{
    uint64_t  now_ms;

    now_ms = mono_ms();
    health_answered(&s->health, now_ms);
    s->trouble = HTTP_COMPLETE;
    s->is_answered |= s->dialect != NULL || s->answer.status == 200;

    if (s->dialect == NULL) {
        scrape_detect(s);

    } else if (scrape_learn(s, now_ms)) {
        s->at++;

    } else {
        scrape_judge(s);
        scrape_pause(s, scrape_pause_ms(s));
        return;
    }

    scrape_ask(s);
}


static void
scrape_on_end(http_whole_t *answer, http_end_t end, const char *why)
{
    scrape_t  *s;

    s = answer->data;

    if (end == HTTP_COMPLETE) {
        scrape_answered(s);
        return;
    }

    if (s->trouble == HTTP_COMPLETE
        || (end == HTTP_UNTRUSTED && end != s->trouble))
    {
        s->trouble = end;
        log_write(s->engine->log, LOG_WARN, "engine does not answer \"%s\": "
                  "%s", scrape_path(s), why);
    }

    if (end == HTTP_TIMED_OUT && scrape_has_metrics_next(s)) {
        s->at++;                /* SGLang's health waits for the engine */
        scrape_ask(s);
        return;
    }

    if (end == HTTP_REFUSED || end == HTTP_UNTRUSTED) {
        health_refused(&s->health, s->engine->runs != NULL && s->streams > 0);
        scrape_judge(s);
    }

    scrape_pause(s, end == HTTP_BROKEN ? SCRAPE_BROKEN_MS
                    : end == HTTP_TIMED_OUT ? SCRAPE_LATE_MS
                                            : scrape_pause_ms(s));
}


/* --- questions */

static void
scrape_ask(scrape_t *s)
{
    int  rc;

    while (scrape_path(s) != NULL && !scrape_is_due(s)) {
        s->at++;
    }

    if (scrape_path(s) == NULL) {
        scrape_finish(s);
        return;
    }

    rc = http_whole_ask(&s->answer, scrape_path(s), SCRAPE_TIMEOUT_MS);
    health_asked(&s->health, mono_ms());

    if (rc != 0) {
        scrape_pause(s, SCRAPE_PERIOD_MS);
    }
}


static void
scrape_on_timer(struct ev_loop *loop, ev_timer *w, int revents)
{
    scrape_t  *s;

    s = w->data;
    s->at = 0;
    s->is_answered = 0;
    s->answer.is_fresh = 1;
    s->began_ms = mono_ms();
    scrape_ask(s);
}


/* --- events */

void
scrape_now(scrape_t *s)
{
    s->is_urgent = 1;

    if (s->answer.request == NULL) {
        scrape_pause(s, 0);
    }
}


void
scrape_bytes(scrape_t *s, uint64_t now_ms)
{
    health_bytes(&s->health, now_ms);

    if (s->health.state != s->engine->facts.state) {
        scrape_judge(s);
    }
}


void
scrape_look(scrape_t *s, uint32_t streams, uint64_t now_ms)
{
    s->streams = streams;
    health_look(&s->health, streams, now_ms);

    if (s->health.state != s->engine->facts.state) {
        scrape_judge(s);
    }
}


void
scrape_init(scrape_t *s, const engine_options_t *o)
{
    s->answer.bytes_max = SCRAPE_BODY_BYTES;
    s->answer.on_end = scrape_on_end;
    s->answer.data = s;
    s->max_capacity = o->max_capacity;
    s->engine->facts.state = ENGINE_STARTING;
    health_init(&s->health, o->stall_timeout_ms, mono_ms());
    dialect_facts_init(&s->facts);

    ev_timer_init(&s->timer, scrape_on_timer, 0, 0);
    s->timer.data = s;
    ev_timer_start(s->engine->loop, &s->timer);
}


void
scrape_done(scrape_t *s)
{
    ev_timer_stop(s->engine->loop, &s->timer);

    http_whole_done(&s->answer);
}
