
/*
 * Sessions of Shard.Forward, from the orchestrator's side.
 *
 * All sessions with one shard share one HTTP/2 connection, each is one stream.
 * The connection is made by the first session and kept.  If it breaks,
 * on_lost() is called for each of its sessions, and the next session makes a
 * new one.
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
 * is accepted only in the shape and the order that was asked for; anything else
 * ends the session.  Values and time are the caller's to check.
 *
 * A closed session sends Close, and its stream is reset only if the shard does
 * not end it within 10 s, since a server may take many resets for an attack.
 *
 * Callbacks come from the loop alone, never from within a call of these
 * functions, and may call all of them and the fleet's.
 */

#ifndef FLEET_LINK_H
#define FLEET_LINK_H

#include "replica/shard/fleet/fleet.h"


typedef struct link_session_s  link_session_t;

typedef struct {
    /* The session is open.  max_rows: of a step, <= SHARD_ROWS_MAX. */
    void  (*on_opened)(void *data, uint32_t max_rows);

    /* The oldest step that had not begun is being computed. */
    void  (*on_started)(void *data, uint32_t position);

    /*
     * The oldest step is done, and on_started() was called for it before.
     * values: rows of the model's width, or of its vocabulary if is_logits;
     * valid until this returns.  rows 0: no logits were asked for.
     */
    void  (*on_result)(void *data, uint32_t position, uint32_t rows,
                       int is_logits, const float *values);

    /*
     * The last callback, also in place of on_opened; link_close() is due.
     * reason: the shard's own; SHARD_FAILED if the connection or the stream
     * ended without one; SHARD_BAD_SHAPE and SHARD_BAD_POSITION for answers
     * that were not asked for.  text is for people.
     */
    void  (*on_lost)(void *data, shard_reason_t reason, const char *text);
} link_callbacks_t;

/* Time for a connection to be made, TLS handshake included, which takes long on
   a busy host. */
#define LINK_CONNECT_MS  3000


/*
 * Opens a session with the shard of the hop, and connects if there is no
 * connection yet.  rows: positions that will be needed, 0: not known.
 * callbacks outlive the session.  NULL: out of memory; any other failure,
 * including a connection that is not made within LINK_CONNECT_MS, is reported
 * by on_lost().
 */
link_session_t *link_open(fleet_t *fleet, const fleet_hop_t *hop,
    uint32_t rows, const link_callbacks_t *callbacks, void *data);

/*
 * Sends the next rows, 1 .. max_rows of the model's width, which are copied.
 * Logits are wanted for the last logits_rows of them; only a hop that ends with
 * the model's last layer computes logits.  To be called only after on_opened(),
 * with fewer than SHARD_STEPS_MAX outstanding steps.  Out of memory is reported
 * by on_lost().
 */
void link_step(link_session_t *session, uint32_t position, uint32_t rows,
    uint32_t logits_rows, const float *values);

/* Frees the session, also a lost one; to be called once for each.  No callback
   comes any more. */
void link_close(link_session_t *session);

#endif /* FLEET_LINK_H */
