
/*
 * Flows: each sends a stream's rows through the shards, and replaces shards
 * that fail.
 *
 *             history 1      history 2
 *   rows -> [ hop 0 ] -> [ hop 1 ] -> [ hop 2 ] -> logits
 *             0-7     8     8-15   16   16-23
 *
 * There is one mechanism.  The input of each hop is kept (its history), and the
 * hop is sent rows from it, from the hop's own next position on.  What a hop
 * computes is appended to the next hop's input; rows below the end of that
 * input are there already and are dropped.  So a shard that is lost is replaced
 * by a hop whose next position is 0: that is the whole replay, at the end of
 * which the rows that were being computed are computed again.
 *
 * The first hop's input is not kept, since on_rewind() asks for all its rows
 * again.  Histories have a total budget; beyond it the oldest flow keeps rows
 * only until they are sent.  If such a flow loses a shard, it starts again as
 * well: on_rewind(), and new sessions from the first hop to the lost one.
 *
 *              flow_step()            turn
 *   (new) IDLE -----------> WAITS -----------> RUNS ------> (on_result ...)
 *                ^            ^                 |  |
 *                |            '-----------------'  |  a shard is lost
 *                '---------------------------------'  and nothing is due
 *
 * and to LOST from all of them, if no shard computes a layer, or if two shards
 * were lost before: on_lost().
 *
 * A replay waits for its turn: a shard computes one replay at a time, so that a
 * replacement is not buried by all the streams of the shard that died.  A flow
 * takes all the turns that it needs at once, in the order in which flows asked,
 * so that flows never wait for each other in a circle.  It waits without a
 * limit while replays run.
 *
 * Time limits: 30 s until a shard has Started the oldest step, since the step
 * may wait behind another flow's replay; from then on, max(1 s, 20 x the
 * shard's mean per row x rows) until the whole Result is there.  If gossip
 * doubts the shard as well, the shorter limit holds before Started, too, once
 * the stream has had its first rows.  A deadline that has passed is checked
 * again 20 ms later, so that a process that stood still itself first reads what
 * came meanwhile.  If there are no other shards and no fallback, a Result is
 * waited for up to the 30 s, since losing the stream is no better.
 *
 * A shard that was given up before the 30 s was only late, and may still run:
 * it is asked again before the stream is lost.
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


/* Steps of a flow that have no answer yet. */
#define FLOW_STEPS_MAX      8

/* Shards that one flow may lose to a fault and continue.  Late shards do not
   count: on a busy host any shard is late sooner or later. */
#define FLOW_FAILOVERS_MAX  2

/* Shards that one flow excludes from its paths, whatever the reason. */
#define FLOW_EXCLUDED_MAX   32

/* Time limit until a loaded shard has Opened a session, and until the oldest
   step has Started, which may wait behind another flow's replay. */
#define FLOW_STARTED_MS     30000

#define FLOW_TEXT_BYTES     256
#define FLOW_FAILURE_BYTES  160
#define FLOW_ALERT_BYTES    320

typedef struct flows_s  flows_t;
typedef struct flow_s   flow_t;


/* What flows need from outside; live.c has the real functions. */
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

    /* Asks for a call of flows_tick() from the loop, not before `at_ns` and not
       much later.  A new call replaces the last one. */
    void             (*wake)(void *clock, uint64_t at_ns);
} flow_world_t;

typedef struct {
    const char   *model;            /* the model's name among shards */
    uint32_t      layers;
    uint32_t      width;            /* floats of a row */
    uint32_t      vocabulary;       /* floats of a row's logits */
    const float  *norms;            /* layers + 1, see check.h; NULL: unknown */
    uint64_t      history_max;      /* bytes, of all flows together */
    int           has_fallback;     /* a lost stream can continue without
                                       shards */
    int           is_rounded;       /* rows are fp16 on the wire: other
                                       boundaries give other bits, so a stream
                                       keeps its own */
    uint32_t      audit_ppm;        /* share of rows that is computed twice, in
                                       millionths */
    uint64_t      started_ms;       /* limit until a session is Opened, and a
                                       step Started; 0: FLOW_STARTED_MS */
} flows_options_t;

typedef struct {
    /*
     * The answer to a step, once for each and in their order.  logits: of its
     * last row, valid until this returns; NULL: none were asked for.
     */
    void  (*on_result)(void *data, uint32_t position, uint32_t rows,
                       const float *logits);

    /*
     * Rows are needed again: the steps that have no answer are dropped.  The
     * caller sends all rows again by flow_step(), from position 0, and asks for
     * the logits that it did not get.
     */
    void  (*on_rewind)(void *data);

    /*
     * The last callback: no shard computes the rows.  reason: "shard_full", all
     * places are taken, or the only shard left has no memory now;
     * "shard_unavailable"; "pipeline_stalled", the last shard that was lost did
     * not answer in time; "weights_mismatch"; "context_full"; "out_of_memory";
     * "failed".  flow_close() is due.
     */
    void  (*on_lost)(void *data, const char *reason, const char *text);
} flow_callbacks_t;


/* How shards failed under a flow. */
typedef struct {
    uint32_t  count;                    /* shards that failed; each counts as a
                                           failover (stats.h) */
    char      text[FLOW_FAILURE_BYTES]; /* the last failure, for a client: the
                                           layers and what the shard did,
                                           without its name; "": none */
} flow_failure_t;


/* Counts of audits (audit.c). */
typedef struct {
    uint64_t  rows;                     /* rows that were compared */
    uint64_t  skipped;                  /* audits that did not take place: no
                                           shard had capacity, or they broke
                                           off */
    uint64_t  differed;                 /* audits whose results differed */
} flow_audit_stats_t;


/* Opens flows over real shards, in real time.  Strings and norms outlive the
   flows.  NULL: out of memory. */
flows_t *flows_open(struct ev_loop *loop, const log_t *log, fleet_t *fleet,
    const flows_options_t *options);

/* Opens flows over the shards and the time of `world`, which outlives them; for
   tests. */
flows_t *flows_create(const flow_world_t *world, fleet_t *fleet, void *clock,
    const log_t *log, const flows_options_t *options);

/* Frees flows; each flow has been closed. */
void flows_close(flows_t *flows);

/* Does what is due: see flow_world_t. */
void flows_tick(flows_t *flows);


/*
 * Opens a flow.  name: hash of the prompt, for the log.  expected: positions
 * that the stream may need; 0: not known.  callbacks outlive the flow.  NULL:
 * out of memory.
 */
flow_t *flow_open(flows_t *flows, uint64_t name, uint32_t expected,
    const flow_callbacks_t *callbacks, void *data);

/*
 * Sends the next rows, 1 .. SHARD_ROWS_MAX, with at most FLOW_STEPS_MAX steps
 * unanswered.  logits_rows: 1 if the last row's logits are wanted; or 0.
 * values: rows x width floats of malloc(), which the flow frees in any case.
 */
void flow_step(flow_t *flow, uint32_t position, uint32_t rows,
    uint32_t logits_rows, float *values);

/* Failures of the flow so far; valid until the next one. */
const flow_failure_t *flow_failure(const flow_t *flow);

/* Closes the flow in any state: its sessions end, its rows are freed, and its
   turns go to the next flow. */
void flow_close(flow_t *flow);

#endif /* FLOW_H */
