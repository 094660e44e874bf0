
/*
 * Draws the requests of a specification in the order of their arrival.
 *
 * Each client has its own random numbers, seeded by the specification's seed
 * and its place, so a change of one client does not change another's requests.
 * A heap holds the next arrival of each stream and the next round of each
 * session that is written out beforehand (closed_loop: false); the earliest of
 * them is made a request.  Later rounds of sessions in closed loop are only
 * counted here, towards num_requests: each is made when the one before ends, by
 * the plan that the first round gets.
 */

#include "sim/work/spec/cohort.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/work/spec/client.h"
#include "sim/work/spec/queue.h"
#include "sim/work/spec/stream.h"

/* The prefix of a group in which no client gives a length, in tokens. */
#define DEFAULT_PREFIX  50

/* The rounds of one conversation, whose times are known beforehand. */
typedef struct {
    work_stream_t      *stream;
    const work_name_t  *name;
    rnd_t               rnd;
    uint32_t            round;
    uint32_t            context;        /* tokens so far, without the prefix */
    int                 is_counted_only;
} talk_t;

typedef struct {
    work_t         *work;
    work_spec_t    *spec;
    work_error_t   *error;
    work_client_t  *clients;
    size_t          nclients;
    uint32_t       *prefixes;           /* by the id of a group's name */
    work_shares_t   shares;
    int64_t         horizon_us;         /* 0: none */
    int64_t         max;                /* 0: no limit */
    int64_t         counted;
    uint32_t        nstreams;
    uint64_t        order;
    heap_t          queue;              /* items are work_event_t */
} maker_t;


static void
push(maker_t *m, int64_t at_us, work_stream_t *stream, talk_t *talk)
{
    work_event_t  e;

    e.key.at_us = at_us;
    e.key.order = ((uint64_t) stream->order << 40) + m->order++;
    e.stream = stream;
    e.talk = talk;
    work_push(&m->queue, &e);
}


static const work_name_t *
name_of(maker_t *m, const char *text)
{
    return work_name(&m->work->names, text != NULL ? text : "",
                     text != NULL ? strlen(text) : 0);
}


/* Adds a request of a client, without lengths. */
static work_request_t *
add_request(maker_t *m, const work_client_t *c, int64_t at_us, int of_session)
{
    int64_t          timeout;
    work_request_t  *r;

    r = work_add(m->work);
    work_set_id(m->work, r, r->index);
    r->client = name_of(m, c->id);
    r->tenant = name_of(m, c->tenant_id);
    r->slo_class = name_of(m, c->slo_class);
    r->model = name_of(m, c->model);
    r->adapter = name_of(m, c->adapter);
    r->prefix_group = name_of(m, c->prefix_group);
    r->prefix_tokens = r->prefix_group->len > 0
                       ? m->prefixes[r->prefix_group->id] : 0;
    r->prefix_length = r->prefix_tokens;
    r->arrival_us = at_us;
    timeout = work_client_timeout_us(c, of_session);
    r->deadline_us = timeout > 0 ? at_us + timeout : 0;
    r->slo_target_us = c->slo_target_us;
    r->streaming = c->streaming != 0;

    return r;
}


static uint32_t
clip(int64_t tokens)
{
    return tokens < WORK_MAX_TOKENS ? (uint32_t) tokens : WORK_MAX_TOKENS;
}


static void
set_lengths(work_request_t *r, int64_t input, int64_t output, int accumulate)
{
    r->input_tokens = clip(r->prefix_tokens + input);
    r->output_tokens = clip(output);
    r->max_output_tokens = r->output_tokens;
    work_set_origin(r, accumulate);
}


/* Adds the plan by which later rounds will be made. */
static void
add_plan(maker_t *m, const work_stream_t *s, const work_request_t *first,
    uint64_t seed)
{
    work_plan_t          *plan;
    const work_client_t  *c;

    c = s->client;
    plan = work_session_add(m->work, first);
    plan->rounds = WORK_ROUNDS_UNLIMITED;
    plan->think_us = c->think_time_us;
    plan->timeout_us = work_client_timeout_us(c, 1);
    plan->input = s->input;
    plan->output = s->output;
    plan->rnd.state = seed;

    if (work_client_has_rounds(c)) {
        plan->rounds = (uint32_t) c->reasoning->multi_turn->max_rounds;
        plan->think_us = c->reasoning->multi_turn->think_time_us;
        plan->accumulates = work_client_accumulates(c);
    }
}


/* Makes one round of a conversation, and queues the next one. */
static void
make_round(maker_t *m, talk_t *talk, int64_t at_us)
{
    double                    reason;
    int64_t                   input, output, think;
    work_request_t           *r;
    const work_client_t      *c;
    const work_multi_turn_t  *turns;

    c = talk->stream->client;
    turns = c->reasoning->multi_turn;
    input = work_sample(talk->stream->input, &talk->rnd);
    output = work_sample(talk->stream->output, &talk->rnd);
    reason = talk->stream->reason == NULL ? 0
             : fmin(1, (double) work_sample(talk->stream->reason, &talk->rnd)
                       / 100);
    think = turns->think_time_us + output;

    if (talk->round == 0 || !talk->is_counted_only) {
        r = add_request(m, c, at_us, 1);
        r->session = talk->name;
        r->round = talk->round;
        r->reason_ratio = reason;
        set_lengths(r, talk->context + input, output,
                    work_client_accumulates(c));

        if (talk->is_counted_only) {
            add_plan(m, talk->stream, r, rnd_next(&talk->rnd));

        } else {    /* the next round begins with all of the answer */
            r->kept_tokens = clip((int64_t) r->input_tokens
                                  + r->output_tokens);
        }
    }

    if (work_client_accumulates(c)) {
        talk->context = clip(talk->context + input + output);
    }

    m->counted++;
    talk->round++;

    if (talk->round < turns->max_rounds) {
        push(m, at_us + think, talk->stream, talk);
    }
}


static void
make_talk(maker_t *m, work_stream_t *s, int64_t at_us)
{
    int      len;
    char     text[512];
    talk_t  *talk;

    talk = work_arena_alloc(&m->work->arena, sizeof(*talk));
    talk->stream = s;
    talk->rnd.state = rnd_next(&s->rnd);
    talk->is_counted_only = work_client_is_closed(s->client);
    len = snprintf(text, sizeof(text), "sess_%.400s_%u_%llu",
                   s->client->id != NULL ? s->client->id : "", s->order,
                   (unsigned long long) s->nsessions++);
    talk->name = work_name(&m->work->names, text, (size_t) len);
    make_round(m, talk, at_us);
}


static void
make_request(maker_t *m, work_stream_t *s, int64_t at_us)
{
    int64_t          input, output;
    work_request_t  *r;

    input = work_sample(s->input, &s->rnd);
    output = work_sample(s->output, &s->rnd);
    r = add_request(m, s->client, at_us, work_client_is_closed(s->client));
    set_lengths(r, input, output, 0);
    m->counted++;
}


/* Makes the first request of one of the places that a client keeps busy. */
static void
make_kept(maker_t *m, work_stream_t *s, int64_t at_us)
{
    int              len;
    char             text[512];
    work_request_t  *r;

    r = add_request(m, s->client, at_us, 1);
    len = snprintf(text, sizeof(text), "concurrency_%.400s_user_%llu",
                   s->client->id != NULL ? s->client->id : "",
                   (unsigned long long) s->nsessions++);
    r->session = work_name(&m->work->names, text, (size_t) len);
    set_lengths(r, work_sample(s->input, &s->rnd),
                work_sample(s->output, &s->rnd), 0);
    add_plan(m, s, r, rnd_next(&s->rnd));
    m->counted++;
}


static void
make_event(maker_t *m, const work_event_t *e)
{
    work_stream_t  *s;

    s = e->stream;

    if (e->talk != NULL) {
        make_round(m, e->talk, e->key.at_us);
        return;
    }

    if (s->client->concurrency > 0) {
        make_kept(m, s, e->key.at_us);
        return;
    }

    if (work_client_has_rounds(s->client)) {
        make_talk(m, s, e->key.at_us);
        s->is_over |= s->client->reasoning->multi_turn->single_session;

    } else {
        make_request(m, s, e->key.at_us);
    }

    if (work_stream_next(s)) {
        push(m, s->at_us, s, NULL);
    }
}


static const work_sample_t *
sample_of(maker_t *m, const work_dist_t *dist)
{
    work_sample_t  *sample;

    sample = work_arena_alloc(&m->work->arena, sizeof(*sample));

    /* cannot fail: work_spec_check() has done the same */
    if (work_sample_make(sample, dist, m->spec->file, &m->work->arena,
                         m->error) != 0)
    {
        sample->a = 1;
    }

    return sample;
}


static work_stream_t *
add_stream(maker_t *m, const work_client_t *c, uint64_t seed)
{
    work_stream_t  *s;

    s = work_arena_alloc(&m->work->arena, sizeof(*s));
    s->client = c;
    s->order = m->nstreams++;
    s->rnd.state = seed;
    s->end_us = m->horizon_us;

    if (c->reasoning != NULL && c->reasoning->reason_ratio != NULL) {
        s->reason = sample_of(m, c->reasoning->reason_ratio);
    }

    return s;
}


/*
 * Opens streams with all arrivals of a client: in its windows, if it has some.
 */
static void
open_client(maker_t *m, const work_client_t *c, uint64_t seed)
{
    double          rate;
    work_stream_t  *s;

    rate = work_share_of_client(&m->shares, c);

    if (!(rate > 0)) {
        return;
    }

    s = add_stream(m, c, seed);
    s->input = sample_of(m, c->input);
    s->output = sample_of(m, c->output);
    work_gap_init(&s->gap, c->arrival, rate / 1e6);

    if (work_client_has_rounds(c) && c->reasoning->multi_turn->single_session
        && c->lifecycle != NULL)
    {
        s->at_us = ((work_window_t *) c->lifecycle->windows.items)->start_us;
    }

    if (work_stream_next(s)) {
        push(m, s->at_us, s, NULL);
    }
}


static int
open_window(maker_t *m, const work_client_t *c, const work_window_t *w,
    uint64_t seed)
{
    double          rate;
    work_stream_t  *s;

    rate = work_share_of_window(&m->shares, c, w);

    if (!(rate > 0) || (m->horizon_us > 0 && w->start_us >= m->horizon_us)) {
        return 0;
    }

    s = add_stream(m, c, seed);
    s->is_window = 1;
    s->end_us = m->horizon_us > 0 && m->horizon_us < w->end_us
                ? m->horizon_us : w->end_us;
    s->input = sample_of(m, w->input != NULL ? w->input : c->input);
    s->output = sample_of(m, w->output != NULL ? w->output : c->output);
    work_gap_init(&s->gap, w->arrival != NULL ? w->arrival : c->arrival,
                  rate / 1e6);

    if (work_stream_fill(s, w->start_us, rate, &m->work->arena) != 0) {
        return work_fail(m->error, m->spec->file, w->at.line,
                         "more than %d requests", WORK_MAX_REQUESTS);
    }

    if (work_stream_next(s)) {
        push(m, s->at_us, s, NULL);
    }

    return 0;
}


/*
 * Queues the first requests of a client that keeps places busy, spread over one
 * think time.
 */
static void
open_kept(maker_t *m, const work_client_t *c, uint64_t seed)
{
    int64_t         u;
    work_stream_t  *s;

    s = add_stream(m, c, seed);
    s->input = sample_of(m, c->input);
    s->output = sample_of(m, c->output);

    for (u = 0; u < c->concurrency; u++) {
        push(m, u * c->think_time_us / c->concurrency, s, NULL);
    }
}


static int
open_streams(maker_t *m)
{
    int                   vary;
    size_t                i, j;
    rnd_t                 seeds, windows;
    const work_client_t  *c;

    seeds.state = (uint64_t) m->spec->seed;
    vary = work_shares_vary(&m->shares);

    for (i = 0; i < m->nclients; i++) {
        c = &m->clients[i];
        windows.state = rnd_next(&seeds);

        if (c->concurrency > 0) {
            open_kept(m, c, windows.state);

        } else if (!vary || c->lifecycle == NULL) {
            open_client(m, c, windows.state);

        } else {
            for (j = 0; j < c->lifecycle->windows.n; j++) {
                if (open_window(m, c, (work_window_t *)
                                c->lifecycle->windows.items + j,
                                rnd_next(&windows)) != 0)
                {
                    return -1;
                }
            }
        }
    }

    return 0;
}


/*
 * Sets the prefix length of each group to that of its first client that has
 * one.
 */
static void
set_prefixes(maker_t *m)
{
    size_t                i, n;
    const work_client_t  *c;

    n = m->work->names.n;

    for (i = 0; i < m->nclients; i++) {
        name_of(m, m->clients[i].prefix_group);
    }

    n = m->work->names.n;
    m->prefixes = work_arena_alloc(&m->work->arena, n * sizeof(uint32_t));

    for (i = 0; i < m->nclients; i++) {
        c = &m->clients[i];
        n = name_of(m, c->prefix_group)->id;

        if (n > 0 && m->prefixes[n] == 0) {
            m->prefixes[n] = c->prefix_length > 0
                             ? (uint32_t) c->prefix_length : DEFAULT_PREFIX;
        }
    }
}


static int
make_all(maker_t *m)
{
    work_event_t  e;

    while (m->queue.n > 0 && (m->max == 0 || m->counted < m->max)) {
        e = work_pop(&m->queue);

        if (m->horizon_us > 0 && e.key.at_us >= m->horizon_us) {
            continue;
        }

        if (m->counted >= WORK_MAX_REQUESTS) {
            return work_fail(m->error, m->spec->file, m->spec->at.line,
                             "more than %d requests", WORK_MAX_REQUESTS);
        }

        make_event(m, &e);
    }

    return 0;
}


static int
has_sessions(const maker_t *m)
{
    size_t  i;

    for (i = 0; i < m->nclients; i++) {
        if (m->clients[i].concurrency > 0
            || (work_client_has_rounds(&m->clients[i])
                && work_client_is_closed(&m->clients[i])))
        {
            return 1;
        }
    }

    return 0;
}


/* Whether the workload ends, and not above the limit of requests. */
static int
check_bounds(const maker_t *m)
{
    double       expected;
    const char  *file;

    file = m->spec->file;

    if (m->max == 0 && m->horizon_us == 0) {
        return work_fail(m->error, file, m->spec->at.line, "neither a number "
                         "of requests nor a horizon ends this workload");
    }

    expected = m->max > 0 ? (double) m->max
               : m->spec->aggregate_rate * (double) m->horizon_us / 1e6;

    if (expected > WORK_MAX_REQUESTS) {
        return work_fail(m->error, file, m->spec->at.line, "%.0f requests are "
                         "more than %d", expected, WORK_MAX_REQUESTS);
    }

    return 0;
}


int
work_generate(work_t *work, work_spec_t *spec, int64_t max_requests,
    int64_t horizon_us, work_error_t *error)
{
    int      rc;
    size_t   i;
    maker_t  m;

    memset(&m, 0, sizeof(m));
    m.work = work;
    m.spec = spec;
    m.error = error;
    m.max = max_requests;
    m.queue.item_bytes = sizeof(work_event_t);
    m.horizon_us = horizon_us < WORK_MAX_US ? horizon_us : 0;

    if (check_bounds(&m) != 0) {
        return -1;
    }

    m.clients = work_spec_clients(spec, &work->arena, &m.nclients);
    work_shares_init(&m.shares, m.clients, m.nclients, spec->aggregate_rate,
                     &work->arena);
    set_prefixes(&m);

    for (i = 0; i < m.nclients; i++) {
        work->accumulates |= work_client_accumulates(&m.clients[i]);
    }

    if (has_sessions(&m)) {
        work_sessions_init(work, m.horizon_us);
    }

    rc = open_streams(&m);
    rc = rc == 0 ? make_all(&m) : rc;
    heap_done(&m.queue);

    if (rc == 0 && work->n == 0) {
        rc = work_fail(error, spec->file, spec->at.line,
                       "no request comes before the horizon");
    }

    for (i = 0; i < m.nclients && work->sessions != NULL && rc == 0; i++) {
        if (m.clients[i].concurrency > 0 && m.max > 0) {
            work_sessions_limit(work, (uint64_t) m.max - work->n);
            break;
        }
    }

    return rc;
}
