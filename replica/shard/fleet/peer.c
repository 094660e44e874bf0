
/*
 * Connections to shards.
 *
 * A connection that breaks closes its streams one by one, and only then reports
 * why.  So a line that is closed by a broken connection is freed, and its
 * session stays in the peer's list until the reason is known.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replica/shard/fleet/peer.h"


#define PEER_HTTP2_CANCEL  8        /* RFC 9113 */


/* --- ends */

static void
line_free(line_t *line)
{
    if (line->session != NULL) {
        line->session->line = NULL;
    }

    TAILQ_REMOVE(&line->peer->lines, line, entry);
    free(line);
}


static void
peer_free(peer_t *p, const char *text)
{
    link_session_t  *s;

    if (p->shard != NULL) {
        p->shard->peer = NULL;
    }

    while ((s = TAILQ_FIRST(&p->sessions)) != NULL) {
        link_lose(s, SHARD_FAILED, "connection to %s: %s", p->address, text);
    }

    TAILQ_REMOVE(&p->fleet->peers, p, entry);
    free(p);
}


/* This end closes the connection: streams that close later have no session. */
static void
peer_drop(peer_t *p, const char *text)
{
    line_t  *line;

    while ((line = TAILQ_FIRST(&p->lines)) != NULL) {
        llmgw_grpc_stream_set_data(line->stream, NULL);
        line_free(line);
    }

    grpc_conn_destroy(p->conn);
    peer_free(p, text);
}


static void
peer_on_closed(grpc_conn_t *conn, const char *reason)
{
    peer_free(grpc_conn_data(conn), reason ? reason : "closed by the shard");
}


void
peer_leave(peer_t *p)
{
    if (p->shard != NULL) {
        p->shard->peer = NULL;
        p->shard = NULL;
    }

    if (TAILQ_EMPTY(&p->lines)) {
        peer_drop(p, "not needed any more");
        return;
    }

    llmgw_grpc_session_goaway(grpc_conn_session(p->conn));
    grpc_conn_wake(p->conn);
}


/* --- streams */

static void
peer_on_field(llmgw_grpc_stream_t *stream, const char *name, size_t name_len,
    const char *value, size_t value_len, int is_trailer)
{
    line_t             *line;
    static const char   reason[] = "llmgw-reason";

    line = llmgw_grpc_stream_data(stream);

    if (line != NULL && is_trailer && name_len == sizeof(reason) - 1
        && memcmp(name, reason, name_len) == 0)
    {
        snprintf(line->reason, sizeof(line->reason), "%.*s", (int) value_len,
                 value);
    }
}


static void
peer_on_message(llmgw_grpc_stream_t *stream, const uint8_t *message,
    size_t len, size_t wire_bytes)
{
    line_t  *line;

    (void) llmgw_grpc_stream_consume(stream, wire_bytes);
    line = llmgw_grpc_stream_data(stream);

    if (line == NULL) {
        return;
    }

    line->peer->heard_ms = fleet_now_ms();

    if (line->session != NULL) {
        answer_on_message(line->session, message, len);
    }
}


static void
peer_on_end(llmgw_grpc_stream_t *stream, int status, const char *text)
{
    line_t          *line;
    link_session_t  *session;

    line = llmgw_grpc_stream_data(stream);

    if (line == NULL || line->session == NULL) {
        return;
    }

    session = line->session;
    answer_on_end(session, status, text);
    line_leave(line);
}


static void
peer_on_close(llmgw_grpc_stream_t *stream, uint32_t http2_error,
    int is_refused)
{
    line_t          *line;
    link_session_t  *session;

    line = llmgw_grpc_stream_data(stream);

    if (line == NULL) {
        return;
    }

    session = line->session;

    if (session != NULL && grpc_conn_session(line->peer->conn) != NULL) {
        link_lose(session, is_refused ? SHARD_FULL : SHARD_FAILED,
                  "the stream was reset (HTTP/2 error %u)",
                  (unsigned) http2_error);
    }

    line_free(line);
}


static const llmgw_grpc_callbacks_t  peer_callbacks = {
    .on_field = peer_on_field,
    .on_message = peer_on_message,
    .on_end = peer_on_end,
    .on_close = peer_on_close
};


static peer_t *
peer_create(fleet_t *f, fleet_shard_t *shard)
{
    peer_t               *p;
    llmgw_grpc_config_t   config;

    p = calloc(1, sizeof(*p));

    if (p == NULL) {
        return NULL;
    }

    memset(&config, 0, sizeof(config));
    config.callbacks = &peer_callbacks;
    config.data = p;
    config.max_message_bytes = SHARD_MESSAGE_BYTES;
    config.stream_window_bytes = SHARD_WINDOW_BYTES;
    config.connection_window_bytes = SHARD_WINDOW_BYTES;

    p->conn = grpc_conn_connect_with(f->loop, &shard->address,
                                     &f->options.conn, &config,
                                     LINK_CONNECT_MS, peer_on_closed);

    if (p->conn == NULL) {
        free(p);
        return NULL;
    }

    p->fleet = f;
    p->shard = shard;
    p->key = shard->key;
    p->heard_ms = fleet_now_ms();
    address_format(&shard->address, p->address);
    TAILQ_INIT(&p->sessions);
    TAILQ_INIT(&p->lines);
    TAILQ_INSERT_TAIL(&f->peers, p, entry);
    shard->peer = p;

    return p;
}


/* The shard's peer, or a new one if that accepts no streams any more. */
static peer_t *
peer_get(fleet_t *f, fleet_shard_t *shard)
{
    peer_t                *p;
    llmgw_grpc_session_t  *session;

    p = shard->peer;

    if (p != NULL) {
        session = grpc_conn_session(p->conn);

        if (!llmgw_grpc_session_is_closing(session)) {
            return p;
        }

        peer_leave(p);
    }

    return peer_create(f, shard);
}


shard_reason_t
peer_call(fleet_t *f, fleet_shard_t *shard, link_session_t *session,
    line_t **line)
{
    peer_t             *p;
    line_t             *made;
    llmgw_grpc_rc_t     rc;
    llmgw_grpc_call_t   call;

    p = peer_get(f, shard);

    if (p == NULL) {
        return errno == ENOMEM ? SHARD_OUT_OF_MEMORY : SHARD_FAILED;
    }

    made = calloc(1, sizeof(*made));

    if (made == NULL) {
        return SHARD_OUT_OF_MEMORY;
    }

    memset(&call, 0, sizeof(call));
    call.path = SHARD_FORWARD;
    call.authority = p->address;
    call.data = made;
    rc = llmgw_grpc_call(grpc_conn_session(p->conn), &call, &made->stream);

    if (rc != LLMGW_GRPC_DONE) {
        free(made);
        return rc == LLMGW_GRPC_ELIMIT ? SHARD_FULL : SHARD_OUT_OF_MEMORY;
    }

    made->peer = p;
    made->session = session;
    TAILQ_INSERT_TAIL(&p->lines, made, entry);
    TAILQ_INSERT_TAIL(&p->sessions, session, entry);
    grpc_conn_wake(p->conn);
    *line = made;

    return SHARD_OK;
}


uint8_t *
line_reserve(line_t *line, size_t len)
{
    grpc_conn_wake(line->peer->conn);

    return llmgw_grpc_send_reserve(line->stream, len);
}


void
line_leave(line_t *line)
{
    if (line->session != NULL) {
        line->session->line = NULL;
        line->session = NULL;
    }

    line->leave_ms = fleet_now_ms() + PEER_LEAVE_MS;
    (void) llmgw_grpc_half_close(line->stream);
    grpc_conn_wake(line->peer->conn);
}


/* To be called once; the rest is nghttp2's. */
void
line_reset(line_t *line)
{
    line_leave(line);
    line->leave_ms = UINT64_MAX;
    llmgw_grpc_stream_reset(line->stream, PEER_HTTP2_CANCEL);
}


/* --- the clock */

/* Why a connection is of no use any more, by the members' states; NULL: it
   is. */
static const char *
peer_lost_by(const peer_t *p, uint64_t now_ms)
{
    const fleet_shard_t   *shard;
    const link_session_t  *s;

    shard = p->shard;

    if (shard == NULL) {
        return NULL;
    }

    if (shard->key != p->key) {
        return "another process serves there";
    }

    if (shard->is_down) {
        return "its process is down";
    }

    if (!shard->is_dead || p->fleet->view.isolated
        || now_ms - p->heard_ms < PEER_SILENT_MS)
    {
        return NULL;
    }

    TAILQ_FOREACH(s, &p->sessions, entry) {
        if (s->state == LINK_OPENING || s->nsteps > 0) {
            return "its host is dead";
        }
    }

    return NULL;
}


static void
peer_look(peer_t *p, uint64_t now_ms)
{
    line_t      *line, *next;
    const char  *text;

    text = peer_lost_by(p, now_ms);

    if (text != NULL) {
        peer_drop(p, text);
        return;
    }

    for (line = TAILQ_FIRST(&p->lines); line != NULL; line = next) {
        next = TAILQ_NEXT(line, entry);

        if (line->session == NULL && now_ms >= line->leave_ms) {
            line_reset(line);
        }
    }
}


void
peers_look(fleet_t *f, uint64_t now_ms)
{
    peer_t  *p, *next;

    for (p = TAILQ_FIRST(&f->peers); p != NULL; p = next) {
        next = TAILQ_NEXT(p, entry);
        peer_look(p, now_ms);
    }
}


void
peers_done(fleet_t *f)
{
    peer_t  *p;

    while ((p = TAILQ_FIRST(&f->peers)) != NULL) {
        peer_drop(p, "the fleet is closed");
    }
}
