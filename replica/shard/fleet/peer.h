
/*
 * Private to replica/shard/fleet/: connections to shards and the streams on
 * them.
 *
 *   session (link.c) <--> line --> stream     one each, while it is open
 *                          |
 *                    peer (peer.c) --> grpc_conn_t
 *
 * A line is one stream of Forward.  It outlives its session: a stream without a
 * session has PEER_LEAVE_MS to end by itself, then it is reset.
 */

#ifndef FLEET_PEER_H
#define FLEET_PEER_H

#include "replica/shard/fleet/fleet_inner.h"


#define PEER_LEAVE_MS      10000

/*
 * If a peer's agent is DEAD, its host may have died, which resets no
 * connection: a peer that has not answered yet is lost after this time.  Not if
 * our own agent is cut off, since it then takes all others for DEAD.
 */
#define PEER_SILENT_MS     2000

#define PEER_REASON_BYTES  32
#define PEER_TEXT_BYTES    128

/* A shard that has refused a session as full counts as full for this time. */
#define PEER_FULL_MS       100

typedef struct line_s  line_t;

typedef struct {
    uint32_t  position;
    uint32_t  rows;
    uint32_t  logits_rows;
    int       is_started;
} link_wanted_t;

typedef enum {
    LINK_OPENING = 0,
    LINK_OPEN,
    LINK_LOST,          /* in fleet->lost */
    LINK_TOLD,
    LINK_CLOSED         /* closed within its own callback: freed after it */
} link_state_t;

struct link_session_s {
    TAILQ_ENTRY(link_session_s)  entry;     /* in the peer's list, or in
                                               fleet->lost */
    fleet_t                     *fleet;
    fleet_shard_t               *shard;     /* NULL: not counted at a shard any
                                               more */
    peer_t                      *peer;
    line_t                      *line;
    const link_callbacks_t      *callbacks;
    void                        *data;
    uint64_t                     id;
    link_state_t                 state;
    int                          is_calling;
    int                          is_last;       /* it ends with the model's last
                                                   layer */
    uint32_t                     max_rows;

    link_wanted_t                steps[SHARD_STEPS_MAX];
    size_t                       oldest;
    size_t                       nsteps;
    uint32_t                     chunk;         /* the next one of the oldest
                                                   step's result */
    float                       *values;
    size_t                       values_bytes;

    shard_reason_t               reason;
    char                         text[PEER_TEXT_BYTES];
};

struct line_s {
    peer_t               *peer;
    llmgw_grpc_stream_t  *stream;
    link_session_t       *session;      /* NULL: the session is closed */
    uint64_t              leave_ms;     /* without a session: when it is
                                           reset */
    char                  reason[PEER_REASON_BYTES];    /* from its trailer */
    TAILQ_ENTRY(line_s)   entry;
};

struct peer_s {
    fleet_t                *fleet;
    fleet_shard_t          *shard;      /* NULL: accepts no new session */
    uint64_t                key;
    grpc_conn_t            *conn;
    fleet_sessions_t        sessions;
    TAILQ_HEAD(, line_s)    lines;
    uint64_t                heard_ms;
    char                    address[ADDRESS_TEXT_BYTES];
    TAILQ_ENTRY(peer_s)     entry;
};


/*
 * Makes a new stream to the shard for the session, which enters the peer's
 * list; connects if necessary.  SHARD_OK, or why there is none.
 */
shard_reason_t peer_call(fleet_t *fleet, fleet_shard_t *shard,
    link_session_t *session, line_t **line);

/* Room for a message on the line, to be filled at once.  NULL: out of
   memory. */
uint8_t *line_reserve(line_t *line, size_t len);

/* Detaches the line from its session; what is queued is still sent. */
void line_leave(line_t *line);

/* The same, and the stream is reset. */
void line_reset(line_t *line);

/* The peer accepts no new sessions, and ends when its streams have ended. */
void peer_leave(peer_t *peer);

/* To be called at each tick: finds peers that are gone by the members' states,
   and streams to be reset. */
void peers_look(fleet_t *fleet, uint64_t now_ms);

/* Ends all connections. */
void peers_done(fleet_t *fleet);


/* answer.c: events of a line that has a session. */
void answer_on_message(link_session_t *session, const uint8_t *message,
    size_t len);
void answer_on_end(link_session_t *session, int status, const char *text);

/* link.c: the session is lost; on_lost() is called later, from the loop. */
void link_lose(link_session_t *session, shard_reason_t reason,
    const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same, because the shard broke the protocol: its stream is reset. */
void link_break(link_session_t *session, shard_reason_t reason,
    const char *text);

void link_free(link_session_t *session);

void link_init(fleet_t *fleet);
void link_done(fleet_t *fleet);

#endif /* FLEET_PEER_H */
