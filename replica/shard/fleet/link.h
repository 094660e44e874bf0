
/*
 * Sessions of Shard.Forward, from the orchestrator's side.
 *
 * All sessions with one shard share one HTTP/2 connection, each is one stream.
 * The connection is made by the first session and kept; one that breaks tells
 * all its sessions, once each, and the next session makes another.
 *
 *   link_open()        on_opened       link_step()   on_started  on_result
 *   ----------> OPENING --------> OPEN ----------------------------------.
 *                  |                |  ^                                  |
 *                  |                |  '----------------------------------'
 *                  '------+---------'
 *        Refused, a wrong | answer, the stream's or the connection's end
 *                         v
 *                      on_lost: to be closed
 *
 * Rows are fp32 here whatever the wire's dtype (tensor.h).  What a shard sends
 * is taken only in the shape and the order that was asked for; all else ends
 * the session.  Values and time are the caller's to check.
 *
 * A closed session says Close and leaves the stream to the shard for 10 s
 * before it is reset: a server may take many resets for an attack.
 *
 * Callbacks come from the loop alone, never from within a call of these
 * functions, and may call all of them and the fleet's.
 */

#ifndef FLEET_LINK_H
#define FLEET_LINK_H

#include "replica/shard/fleet/fleet.h"


typedef struct link_session_s  link_session_t;

typedef struct {
    /* max_rows: of a step, <= SHARD_ROWS_MAX. */
    void  (*on_opened)(void *data, uint32_t max_rows);

    /* The oldest step that had not begun is being computed. */
    void  (*on_started)(void *data, uint32_t position);

    /*
     * The oldest step is done, on_started() was called for it.  values: rows
     * of the model's width, or of its vocabulary if is_logits; they are the
     * session's, until this returns.  rows 0: no logits were asked for.
     */
    void  (*on_result)(void *data, uint32_t position, uint32_t rows,
                       int is_logits, const float *values);

    /*
     * The last callback, also in place of on_opened; link_close() is due.
     * reason: what the shard said; SHARD_FAILED where the connection or the
     * stream ended otherwise; SHARD_BAD_SHAPE and SHARD_BAD_POSITION for
     * answers that nobody asked for.  text is for people.
     */
    void  (*on_lost)(void *data, shard_reason_t reason, const char *text);
} link_callbacks_t;

/* The handshake of TLS in it, for which a busy host takes its time. */
#define LINK_CONNECT_MS  3000


/*
 * Connects, where there is no connection yet, and opens a session with the
 * shard of the hop.  rows: positions that will be needed, 0: not known.
 * callbacks outlive it.  NULL: no memory; all else is told by on_lost(), a
 * connection that does not stand within LINK_CONNECT_MS as well.
 */
link_session_t *link_open(fleet_t *fleet, const fleet_hop_t *hop,
    uint32_t rows, const link_callbacks_t *callbacks, void *data);

/*
 * The next rows, 1 .. max_rows of the model's width; logits are wanted for the
 * last logits_rows of them, which only a hop up to the model's last layer
 * computes.  Only when opened, with fewer than SHARD_STEPS_MAX outstanding.
 * Rows are copied.  Out of memory is told by on_lost().
 */
void link_step(link_session_t *session, uint32_t position, uint32_t rows,
    uint32_t logits_rows, const float *values);

/* Each session once, a lost one too: frees it.  No callback comes any more. */
void link_close(link_session_t *session);

#endif /* FLEET_LINK_H */
