
/*
 * Flows: a stream's rows on their way through the shards, whatever becomes of
 * the shards.
 *
 *             history 1      history 2
 *   rows -> [ hop 0 ] -> [ hop 1 ] -> [ hop 2 ] -> logits
 *             0-7     8     8-15   16   16-23
 *
 * There is one mechanism.  What goes into each hop is kept, and the hop is fed
 * from what is kept, from its own next position on.  What a hop computes is
 * appended to the next hop's input; below the end of that input it is there
 * already and is dropped.  So a shard that is lost is replaced by a hop whose
 * next position is 0: that is the whole replay, and the rows that were being
 * computed are computed again at its end.
 *
 * The first hop's input is not kept, since its rows can be had again:
 * on_rewind() asks for all of them.  Histories have a total budget; beyond it
 * the oldest flow keeps rows only until they are sent.  What is then lost with
 * a shard comes from the beginning as well: on_rewind(), and new sessions from
 * the first hop to the one that was lost.
 *
 *              flow_step()            turn
 *   (new) IDLE -----------> WAITS -----------> RUNS ------> (on_result ...)
 *                ^            ^                 |  |
 *                |            '-----------------'  |  a shard is lost
 *                '---------------------------------'  and nothing is to be done
 *
 * and to LOST from all of them, when nobody computes a layer or two shards
 * were lost before: on_lost().
 *
 * A replay waits for its turn: one at a time at a shard, so that a replacement
 * is not buried by all the streams of the shard that died.  A flow takes all
 * the turns that it needs at once, in the order in which flows came: none
 * waits for another in a circle.  It waits as long as replays go on.
 *
 * Time: 30 s until a shard has Started the oldest step, since it may wait
 * behind another's replay; from then on, max(1 s, 20 x the shard's mean per
 * row x rows) until the whole Result is there.  Where gossip doubts the shard
 * as well, the shorter time counts before Started, too, once the stream has
 * had its first rows.  A deadline that has passed is looked at again 20 ms
 * later, so that a process that stood still itself reads what came meanwhile
 * before it blames anybody.  With nowhere to go, no other shards and no
 * fallback, a Result is waited for up to the 30 s: to lose the stream cannot
 * be better.
 *
 * A shard that was given up before the 30 s was late, and may run: before the
 * stream is lost it is asked again.
 *
 * Callbacks come from the loop, never from within flow_open(), flow_step() or
 * flow_close(), and may call all three.
 */

#ifndef FLOW_H
#define FLOW_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/log.h"
#include "replica/shard/fleet/fleet.h"
#include "replica/shard/fleet/link.h"
#include "replica/shard/limits.h"


/* Steps of a flow that have no answer. */
#define FLOW_STEPS_MAX      8

/* Shards that one flow may lose to a fault and go on.  Those that were late do
   not count: on a busy host any one is, sooner or later. */
#define FLOW_FAILOVERS_MAX  2

/* Shards that one flow does not ask again, whatever their reason. */
#define FLOW_EXCLUDED_MAX   32

/* Until a session is Opened by a shard that is loaded, and until its oldest
   step has Started: it may wait behind another's replay. */
#define FLOW_STARTED_MS     30000

#define FLOW_TEXT_BYTES     256
#define FLOW_FAILURE_BYTES  160
#define FLOW_ALERT_BYTES    320

typedef struct flows_s  flows_t;
typedef struct flow_s   flow_t;


/* What flows need of their surroundings: live.c has the real ones. */
typedef struct {
    fleet_rc_t       (*find)(fleet_t *fleet, const fleet_query_t *query,
                             fleet_path_t *path);
    void             (*exclude)(fleet_t *fleet, uint64_t key,
                                shard_reason_t reason);
    void             (*worked)(fleet_t *fleet, uint64_t key);
    int              (*is_doubted)(const fleet_t *fleet, uint64_t key);
    void             (*each)(const fleet_t *fleet,
                             void (*visit)(void *data,
                                           const fleet_shard_info_t *info),
                             void *data);
    link_session_t  *(*open)(fleet_t *fleet, const fleet_hop_t *hop,
                             uint32_t rows, const link_callbacks_t *callbacks,
                             void *data);
    void             (*step)(link_session_t *session, uint32_t position,
                             uint32_t rows, uint32_t logits_rows,
                             const float *values);
    void             (*close)(link_session_t *session);

    /* Monotonic. */
    uint64_t         (*now_ns)(void *clock);

    /* flows_tick() is to be called from the loop, not before `at_ns`, and not
       much later.  The last word counts. */
    void             (*wake)(void *clock, uint64_t at_ns);
} flow_world_t;

typedef struct {
    const char   *model;            /* as shards call it */
    uint32_t      layers;
    uint32_t      width;            /* floats of a row */
    uint32_t      vocabulary;       /* floats of a row's logits */
    const float  *norms;            /* layers + 1, see check.h; NULL: unknown */
    uint64_t      history_max;      /* bytes, of all flows together */
    int           has_fallback;     /* a lost stream can go on without shards */
    int           is_rounded;       /* rows are fp16 on the wire: other cuts are
                                       other bits, so a stream keeps its own */
    uint32_t      audit_ppm;        /* share of rows that is computed twice */
    uint64_t      started_ms;       /* until a session is Opened, and a step
                                       Started; 0: FLOW_STARTED_MS */
} flows_options_t;

typedef struct {
    /*
     * The answer to a step, once for each and in their order.  logits: of its
     * last row, valid until this returns; NULL: none were asked for.
     */
    void  (*on_result)(void *data, uint32_t position, uint32_t rows,
                       const float *logits);

    /*
     * Rows are needed again: the steps that have no answer are forgotten, and
     * the next step begins at position 0 and asks for the logits that it was
     * not given.
     */
    void  (*on_rewind)(void *data);

    /*
     * The last one: nobody computes the rows.  reason: "shard_full", all
     * places are taken, or the shard that is left has no memory now;
     * "shard_unavailable"; "pipeline_stalled", the last shard that was lost did
     * not answer in time; "weights_mismatch"; "context_full"; "out_of_memory";
     * "failed".  flow_close() is due.
     */
    void  (*on_lost)(void *data, const char *reason, const char *text);
} flow_callbacks_t;


/* How shards failed under a flow. */
typedef struct {
    uint32_t  count;                    /* of those that failed: each of them
                                           counts as a failover (stats.h) */
    char      text[FLOW_FAILURE_BYTES]; /* of the last one that could not go
                                           on, for a client: layers, what it
                                           did, no name; "": there was none */
} flow_failure_t;


/* Of audits (audit.c). */
typedef struct {
    uint64_t  rows;                     /* compared */
    uint64_t  skipped;                  /* audits that were due: no shard had
                                           room for one, or it broke off */
    uint64_t  differed;                 /* audits */
} flow_audit_stats_t;


/* Real shards, real time.  Strings and norms outlive the flows.  NULL: no
   memory. */
flows_t *flows_open(struct ev_loop *loop, const log_t *log, fleet_t *fleet,
    const flows_options_t *options);

/* Any shards and any time, for tests; world outlives the flows. */
flows_t *flows_create(const flow_world_t *world, fleet_t *fleet, void *clock,
    const log_t *log, const flows_options_t *options);

/* All flows have been closed. */
void flows_close(flows_t *flows);

/* What was due is done: see flow_world_t. */
void flows_tick(flows_t *flows);


/*
 * name: of the prompt, for the log.  expected: positions that the stream may
 * need; 0: not known.  callbacks outlive the flow.  NULL: no memory.
 */
flow_t *flow_open(flows_t *flows, uint64_t name, uint32_t expected,
    const flow_callbacks_t *callbacks, void *data);

/*
 * The next rows, 1 .. SHARD_ROWS_MAX, with at most FLOW_STEPS_MAX unanswered.
 * logits_rows: 1, the last row's are wanted; or 0.  values: rows x width floats
 * of malloc(), taken over whatever happens.
 */
void flow_step(flow_t *flow, uint32_t position, uint32_t rows,
    uint32_t logits_rows, float *values);

/* So far; the flow's own, until it changes. */
const flow_failure_t *flow_failure(const flow_t *flow);

/* Wherever it is: sessions end, rows are freed, turns go on to the next. */
void flow_close(flow_t *flow);

#endif /* FLOW_H */
