
#include <stdio.h>
#include <string.h>

#include "up/fleet/probe.h"


#define PROBE_PERIOD_S    1.0
#define PROBE_TIMEOUT_MS  3000
#define PROBE_BODY_BYTES  (1 << 20)


static void probe_ask(probe_t *p);


static void
probe_rest(probe_t *p)
{
    p->rounds++;
    ev_timer_stop(p->loop, &p->timer);
    ev_timer_set(&p->timer, PROBE_PERIOD_S, 0.);
    ev_timer_start(p->loop, &p->timer);
}


static void
probe_fail(probe_t *p, const char *why)
{
    snprintf(p->why, sizeof(p->why), "%s", why);
    probe_rest(p);
}


/* To be called when all questions were answered. */
static void
probe_judge(probe_t *p)
{
    p->is_locked = p->is_refused;

    if (p->is_locked) {
        probe_fail(p, p->key_file == NULL
                   ? "it wants a key: start again with --engine-key-file FILE"
                   : "it refuses the key of --engine-key-file");

    } else if (p->facts.state == DIALECT_STARTING
               || p->facts.state == DIALECT_UNWILLING)
    {
        probe_fail(p, "it is there, and loads its model");

    } else if (p->facts.state == DIALECT_DOWN) {
        probe_fail(p, "it is there, and says that it cannot serve");

    } else {
        p->is_known = 1;
        p->why[0] = '\0';
    }
}


/* To be called when no dialect's question had that dialect's answer. */
static void
probe_judge_stranger(probe_t *p)
{
    char  why[PROBE_WHY_BYTES];

    if (p->is_answered) {
        p->dialect = dialect_find("openai");
        p->at = 0;
        probe_ask(p);

    } else if (p->is_refused) {
        probe_judge(p);

    } else if (p->answer.status == 503) {
        probe_fail(p, "it is there, and loads its model");

    } else {
        snprintf(why, sizeof(why), "no engine: it answers %u to %s",
                 p->answer.status,
                 dialect_auto_paths[0]);
        probe_fail(p, why);
    }
}


static void
probe_learn(probe_t *p)
{
    int               rc;
    const dialect_t  *found;

    p->is_refused |= p->answer.status == 401
                     || p->answer.status == 403;

    if (p->dialect != NULL) {
        rc = dialect_learn(&p->dialect->probes[p->at], &p->facts,
                           p->answer.status, p->answer.body,
                           p->answer.body_len);
        p->is_mute |= rc != 0 && p->dialect->probes[p->at].is_metrics;
        p->at++;
        return;
    }

    found = dialect_detect(dialect_auto_paths[p->at], p->answer.status,
                           p->answer.body, p->answer.body_len);
    p->is_answered |= p->answer.status == 200;
    p->at = found != NULL ? 0 : p->at + 1;
    p->dialect = found;
}


static void
probe_on_end(http_whole_t *answer, http_end_t end, const char *why)
{
    probe_t  *p;

    p = answer->data;

    switch (end) {

    case HTTP_COMPLETE:
        probe_learn(p);
        probe_ask(p);
        return;

    case HTTP_REFUSED:
        probe_fail(p, "nothing listens there yet");
        return;

    case HTTP_TIMED_OUT:
        probe_fail(p, "no answer within 3 s");
        return;

    default:
        probe_fail(p, why);
    }
}


static const char *
probe_path(const probe_t *p)
{
    return p->dialect != NULL ? p->dialect->probes[p->at].path
                              : dialect_auto_paths[p->at];
}


static void
probe_ask(probe_t *p)
{
    if (probe_path(p) == NULL) {

        if (p->dialect == NULL) {
            probe_judge_stranger(p);
        } else {
            probe_judge(p);
        }

        return;
    }

    if (http_whole_ask(&p->answer, probe_path(p), PROBE_TIMEOUT_MS) != 0) {
        probe_fail(p, "out of memory");
    }
}


static void
probe_begin(probe_t *p)
{
    p->dialect = NULL;
    p->at = 0;
    p->is_answered = 0;
    p->is_refused = 0;
    p->is_mute = 0;
    dialect_facts_init(&p->facts);
    probe_ask(p);
}


static void
probe_on_timer(struct ev_loop *loop, ev_timer *w, int events)
{
    probe_begin(w->data);
}


int
probe_init(probe_t *probe, struct ev_loop *loop, const char *url,
    const char *key, const char *key_file)
{
    probe->loop = loop;
    probe->key_file = key_file;
    ev_init(&probe->timer, probe_on_timer);
    probe->timer.data = probe;
    probe->answer.client = http_create(loop, url, key, NULL);
    probe->answer.bytes_max = PROBE_BODY_BYTES;
    probe->answer.on_end = probe_on_end;
    probe->answer.data = probe;

    if (probe->answer.client == NULL) {
        return -1;
    }

    probe_begin(probe);

    return 0;
}


void
probe_again(probe_t *probe)
{
    if (probe->answer.client != NULL && probe->is_known) {
        probe->is_known = 0;
        probe->rounds = 0;
        probe_begin(probe);
    }
}


void
probe_done(probe_t *probe)
{
    if (probe->answer.client != NULL) {
        ev_timer_stop(probe->loop, &probe->timer);
        http_whole_done(&probe->answer);
        http_destroy(probe->answer.client);
        probe->answer.client = NULL;
    }
}


void
probe_name(const probe_t *probe, char *name, size_t bytes)
{
    name[0] = '\0';

    if (probe->is_known) {
        snprintf(name, bytes, "%s%s%s", probe->dialect->name,
                 probe->facts.version[0] != '\0' ? " " : "",
                 probe->facts.version);
    }
}
