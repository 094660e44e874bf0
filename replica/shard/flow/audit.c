
/*
 * Audits: a share of what shards compute is computed a second time, at another
 * shard with the same layers, and compared.  Nothing else finds a wrong row
 * that passes check.h.  Only shards whose results are equal bit by bit can be
 * compared so.
 *
 *   hop    ----- steps ----> first shard ---- results ---> the stream
 *    |                                           |
 *    '- the same steps --> [in] -> second shard -+-> equal, step by step?
 *                            |                   no |
 *                            '---> third shard -----+-> which one differs
 *
 * A row depends on all rows before it, so a whole session of a hop is audited,
 * from its first row on.  The stream does not wait: the audit keeps the rows
 * that the hop sent and digests of its results, and continues after the stream
 * has ended.  If a step differs, a third shard computes the session up to that
 * step.
 *
 * No more than the share of all rows that shards have computed is audited: an
 * audit begins when the share of the rows so far covers all positions that the
 * stream may need.  The audit takes these from the share, and gives back those
 * that the stream did not need.  An audit that is due and cannot begin, or
 * breaks off, is skipped: it gives nothing back, and is not repeated.  The hops
 * of streams are audited by turns.
 *
 * Audits take nothing that streams need: a shard is used only if more than half
 * of its places are free, it is loaded, and it is neither SUSPECT nor excluded;
 * and the rows that audits keep are within the budget of histories, and are
 * dropped first.
 */

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replica/shard/flow/flow_inner.h"


#define AUDIT_DIGEST_BYTES  16
#define AUDIT_SHARDS        3

#define NS_PER_MS           1000000ULL

/* A step, and digests of what two shards computed for it, rows or logits. */
typedef struct {
    uint32_t  position;
    uint32_t  rows;
    int       is_asked;
    unsigned  has;                      /* 1: digest[0], 2: digest[1] */
    uint8_t   digest[2][AUDIT_DIGEST_BYTES];
} audit_step_t;

struct audit_s {
    flows_t         *flows;
    audit_t         *next;
    hop_t           *hop;               /* NULL: it sends no more steps */
    uint64_t         name;              /* the stream's */
    uint32_t         expected;          /* positions that were taken from the
                                           share */
    uint32_t         rows;              /* compared */

    fleet_hop_t      at[AUDIT_SHARDS];
    unsigned         turn;              /* 1: the second shard computes, 2: the
                                           third */
    link_session_t  *session;           /* the session with that shard */
    flow_shard_t    *shard;             /* that shard */
    uint32_t         rows_max;          /* of a step; 0: not opened yet */
    size_t           sent;              /* steps that were sent to that shard */
    size_t           done;
    uint64_t         moved_ns;

    rows_t           in;
    audit_step_t    *steps;
    size_t           n;
    size_t           room;
    size_t           answered;          /* steps that the first shard has
                                           answered */
    size_t           compared;
};


/* --- the end */

static void
audit_end_session(audit_t *a)
{
    if (a->session != NULL) {
        a->flows->world->close(a->session);
        a->session = NULL;
    }

    if (a->shard != NULL) {
        flow_shard_leave(a->shard);
        a->shard = NULL;
    }
}


static void
audit_free(audit_t *a)
{
    audit_t  **link;

    for (link = &a->flows->audits; *link != a; link = &(*link)->next) {
        /* void */
    }

    *link = a->next;
    a->flows->naudits--;

    if (a->hop != NULL) {
        a->hop->audit = NULL;
    }

    audit_end_session(a);
    rows_done(&a->in);
    free(a->steps);
    free(a);
}


static void
audit_skip(audit_t *a)
{
    a->flows->audit_stats.skipped++;
    audit_free(a);
}


static void
audit_finish(audit_t *a)
{
    if (a->rows < a->expected) {
        a->flows->audit_spent -= a->expected - a->rows;
    }

    audit_free(a);
}


/* --- the verdict */

static void
audit_blame(flows_t *flows, const fleet_hop_t *at)
{
    flow_shard_t  *shard;

    shard = flow_shards_enter(&flows->shards, at);

    if (shard != NULL) {
        shard->differed++;
        flow_shard_leave(shard);
    }
}


/* third: the third shard's digest of the step that differs; NULL: there is
   none. */
static void
audit_judge(audit_t *a, const uint8_t *third)
{
    int                  wrong;
    char                *alert;
    const fleet_hop_t   *at;
    const audit_step_t  *step;

    at = a->at;
    step = &a->steps[a->n - 1];
    alert = a->flows->audit_alert;
    wrong = third == NULL ? -1
            : memcmp(third, step->digest[0], AUDIT_DIGEST_BYTES) == 0 ? 1
            : memcmp(third, step->digest[1], AUDIT_DIGEST_BYTES) == 0 ? 0 : -1;

    if (wrong >= 0) {
        snprintf(alert, FLOW_ALERT_BYTES, "layers %u-%u: shard \"%s\" differs "
                 "from \"%s\" and \"%s\"", at->first, at->last, at[wrong].id,
                 at[1 - wrong].id, at[2].id);
        audit_blame(a->flows, &at[wrong]);

    } else if (third != NULL) {
        snprintf(alert, FLOW_ALERT_BYTES, "layers %u-%u: shards \"%s\", \"%s\" "
                 "and \"%s\" all differ", at->first, at->last, at->id,
                 at[1].id, at[2].id);

    } else {
        snprintf(alert, FLOW_ALERT_BYTES, "layers %u-%u: shards \"%s\" and "
                 "\"%s\" differ, and no third one can tell which is wrong",
                 at->first, at->last, at->id, at[1].id);
    }

    log_write(a->flows->log, LOG_ERROR, "audit of stream %016" PRIx64 ": %s, "
              "from position %u on", a->name, alert, step->position);
    audit_finish(a);
}


/* --- another shard's session */

static int  audit_ask(audit_t *a);


/* Sends as many steps as the shard may have now. */
static void
audit_feed(audit_t *a)
{
    flows_t             *flows;
    const audit_step_t  *step;

    flows = a->flows;

    while (a->rows_max > 0 && a->sent < a->n
           && a->sent - a->done < SHARD_STEPS_MAX)
    {
        step = &a->steps[a->sent++];
        flows->world->step(a->session, step->position, step->rows,
                           step->is_asked,
                           rows_get(&a->in, step->position, step->rows,
                                    flows->scratch));
        a->moved_ns = flows_now(flows);
        flows_due(flows, a->moved_ns + flows->options.started_ms * NS_PER_MS);
    }
}


/* Ends an audit whose shard did not answer in time, or whose session is
   lost. */
static void
audit_give_up(audit_t *a)
{
    if (a->turn == 1) {
        audit_skip(a);

    } else {
        audit_judge(a, NULL);
    }
}


/* A step differs: the session up to it is computed once more, by a third
   shard. */
static void
audit_differs(audit_t *a)
{
    a->flows->audit_stats.differed++;
    a->n = a->compared + 1;
    a->turn = 2;
    a->sent = 0;
    a->done = 0;
    a->rows_max = 0;
    audit_end_session(a);

    if (a->hop != NULL) {
        a->hop->audit = NULL;
        a->hop = NULL;
    }

    if (audit_ask(a) != 0) {
        audit_judge(a, NULL);
    }
}


static void
audit_compare(audit_t *a)
{
    const audit_step_t  *step;

    for ( /* void */ ; a->compared < a->n; a->compared++) {
        step = &a->steps[a->compared];

        if (step->has != 3) {
            return;
        }

        a->rows += step->rows;
        a->flows->audit_stats.rows += step->rows;

        if (memcmp(step->digest[0], step->digest[1], AUDIT_DIGEST_BYTES)
            != 0)
        {
            audit_differs(a);
            return;
        }
    }

    if (a->hop == NULL) {
        audit_finish(a);
    }
}


static void
audit_digest(const audit_t *a, uint32_t rows, int is_logits,
    const float *values, uint8_t digest[AUDIT_DIGEST_BYTES])
{
    size_t                  width;
    const flows_options_t  *o;

    o = &a->flows->options;
    width = is_logits ? o->vocabulary : o->width;

    crypto_generichash(digest, AUDIT_DIGEST_BYTES, (const uint8_t *) values,
                       rows * width * sizeof(float), NULL, 0);
}


static void
audit_on_opened(void *data, uint32_t max_rows)
{
    audit_t  *a = data;

    if (max_rows < SHARD_ROWS_MAX) {
        audit_give_up(a);
        return;
    }

    a->rows_max = max_rows;
    a->moved_ns = flows_now(a->flows);
    audit_feed(a);
}


static void
audit_on_started(void *data, uint32_t position)
{
    audit_t  *a = data;

    a->moved_ns = flows_now(a->flows);
}


static void
audit_on_result(void *data, uint32_t position, uint32_t rows, int is_logits,
    const float *values)
{
    uint8_t        digest[AUDIT_DIGEST_BYTES];
    audit_t       *a = data;
    audit_step_t  *step;

    a->moved_ns = flows_now(a->flows);
    step = &a->steps[a->done++];
    audit_digest(a, rows, is_logits, values, digest);

    if (a->turn == 2) {
        a->flows->audit_spent += step->rows;

        if (a->done == a->n) {
            audit_judge(a, digest);
        } else {
            audit_feed(a);
        }

        return;
    }

    memcpy(step->digest[1], digest, AUDIT_DIGEST_BYTES);
    step->has |= 2;
    audit_feed(a);
    audit_compare(a);
}


static void
audit_on_lost(void *data, shard_reason_t reason, const char *text)
{
    audit_give_up(data);
}


static const link_callbacks_t  audit_callbacks = {
    audit_on_opened, audit_on_started, audit_on_result, audit_on_lost
};


/* Opens a session with a shard that has not computed it yet.  0, or -1: there
   is none. */
static int
audit_ask(audit_t *a)
{
    unsigned       i;
    uint64_t       keys[AUDIT_SHARDS];
    flows_t       *flows;
    fleet_path_t   path;
    fleet_query_t  query = {
        .from_layer = a->at[0].first, .to_layer = a->at[0].last,
        .excluded = keys, .nexcluded = a->turn, .is_spare = 1,
        .avoid = FLEET_WITH_LATE|FLEET_WITH_SUSPECT|FLEET_WITH_FAILED
    };

    flows = a->flows;

    for (i = 0; i < a->turn; i++) {
        keys[i] = a->at[i].key;
    }

    if (flows->world->find(flows->fleet, &query, &path) != FLEET_FOUND
        || path.n != 1 || !path.hops[0].is_loaded)
    {
        return -1;
    }

    a->at[a->turn] = path.hops[0];
    a->shard = flow_shards_enter(&flows->shards, &path.hops[0]);

    if (a->shard == NULL) {
        return -1;
    }

    a->session = flows->world->open(flows->fleet, &path.hops[0], a->expected,
                                    &audit_callbacks, a);
    a->moved_ns = flows_now(flows);
    flows_due(flows, a->moved_ns + flows->options.started_ms * NS_PER_MS);

    return a->session != NULL ? 0 : -1;
}


/* --- what the hop does */

static int
audit_begin(hop_t *hop)
{
    audit_t  *a;
    flows_t  *flows;

    flows = hop->flow->flows;
    a = flows->naudits < AUDITS_MAX ? calloc(1, sizeof(audit_t)) : NULL;

    if (a == NULL) {
        return -1;
    }

    a->flows = flows;
    a->name = hop->flow->name;
    a->expected = hop->flow->expected;
    a->at[0] = hop->at;
    a->turn = 1;
    rows_init(&a->in, flows->options.width, &flows->history_bytes);
    a->next = flows->audits;
    flows->audits = a;
    flows->naudits++;

    if (audit_ask(a) != 0) {
        audit_free(a);
        return -1;
    }

    a->hop = hop;
    hop->audit = a;

    return 0;
}


void
audits_begin(flow_t *flow)
{
    size_t    i, from;
    flows_t  *flows;

    flows = flow->flows;
    from = flows->audit_turn;

    for (i = 0; i < flow->nhops; i++) {
        if (flow->expected == 0
            || flows->audit_spent + flow->expected
               > flows->rows * flows->options.audit_ppm / 1000000)
        {
            break;
        }

        flows->audit_turn++;
        flows->audit_spent += flow->expected;

        if (audit_begin(flow->hops[(from + i) % flow->nhops]) != 0) {
            flows->audit_stats.skipped++;
        }
    }
}


void
audit_sent(audit_t *a, uint32_t position, uint32_t rows, int is_asked,
    const float *values)
{
    size_t         room;
    audit_step_t  *steps;

    if (a->n == a->room) {
        room = a->room ? 2 * a->room : 16;
        steps = realloc(a->steps, room * sizeof(audit_step_t));

        if (steps == NULL) {
            audit_skip(a);
            return;
        }

        a->steps = steps;
        a->room = room;
    }

    if (rows_append(&a->in, values, rows) != 0
        || a->flows->history_bytes > a->flows->options.history_max)
    {
        audit_skip(a);
        return;
    }

    a->steps[a->n++] = (audit_step_t) {
        .position = position, .rows = rows, .is_asked = is_asked
    };
    audit_feed(a);
}


void
audit_answered(audit_t *a, uint32_t rows, int is_logits, const float *values)
{
    audit_step_t  *step;

    step = &a->steps[a->answered++];
    step->has |= 1;
    audit_digest(a, rows, is_logits, values, step->digest[0]);
    audit_compare(a);
}


void
audit_leave(hop_t *hop)
{
    audit_t  *a;

    a = hop->audit;

    if (a != NULL) {
        hop->audit = NULL;
        a->hop = NULL;
        a->n = a->answered;
        audit_compare(a);
    }
}


/* --- all of them */

uint64_t
audits_tick(flows_t *flows, uint64_t now)
{
    audit_t   *a, *next;
    uint64_t   at, due;

    due = 0;

    for (a = flows->audits; a != NULL; a = next) {
        next = a->next;

        if (a->rows_max > 0 && a->sent == a->done) {
            continue;
        }

        at = a->moved_ns + flows->options.started_ms * NS_PER_MS;

        if (now >= at) {
            audit_give_up(a);

        } else if (due == 0 || at < due) {
            due = at;
        }
    }

    return due;
}


void
audits_drop(flows_t *flows)
{
    while (flows->audits != NULL
           && flows->history_bytes > flows->options.history_max)
    {
        audit_give_up(flows->audits);
    }
}


void
audits_done(flows_t *flows)
{
    while (flows->audits != NULL) {
        audit_free(flows->audits);
    }
}
