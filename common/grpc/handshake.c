
/*
 * Between a connected socket and the client's first frame: a channel's
 * handshake, and the session's first bytes.
 *
 *   grpc_conn_open ----> SHAKING ----> grpc_conn_begin
 *        |                  |            a server's: --> grpc_conn_check_ready
 *        | no channel       | broken, or too late
 *        v                  v
 *   grpc_conn_begin    LINGERING, so that the peer gets the alert that says
 *                      why, and then the end
 */

#include "common/grpc/conn_inner.h"
#include "common/os/mono.h"


/* Time for a server's client until its first frame. */
#define GRPC_CONN_HANDSHAKE_MS  10000


void
grpc_conn_look(grpc_conn_t *c, const uint8_t *data, size_t len)
{
    const grpc_conn_options_t  *o;

    o = &c->options;

    /*
     * reports a client that begins a TLS handshake (RFC 8446, 5.1) with a
     * server without TLS
     */

    if (c->server != NULL && c->channel == NULL && o->on_refused != NULL
        && len >= 2 && data[0] == 0x16 && data[1] == 3)
    {
        o->on_refused(o->refused_data, &c->peer, "the peer speaks TLS, and "
                      "this end does not: both ends need certificates, or "
                      "neither");
    }
}


/*
 * The connection stands: stops the timer that limited this, and starts the one
 * for the peer's silence.
 */
static void
grpc_conn_settle(grpc_conn_t *c)
{
    ev_timer_stop(c->loop, &c->timer);

    if (c->options.ping_ms > 0) {
        c->read_ms = mono_ms();
        grpc_conn_wait_for_silence(c, (double) c->options.ping_ms / 1000);
    }
}


void
grpc_conn_begin(grpc_conn_t *c)
{
    c->is_connecting = 0;
    ev_io_start(c->loop, &c->reader);
    grpc_conn_wake(c);

    if (c->on_ready == NULL) {
        grpc_conn_settle(c);
    }
}


static void
grpc_conn_refuse(grpc_conn_t *c, const char *reason)
{
    const grpc_conn_options_t  *o;

    o = &c->options;
    c->is_shaking = 0;

    if (c->server != NULL && o->on_refused != NULL && reason[0] != '\0') {
        o->on_refused(o->refused_data, &c->peer, reason);
    }

    grpc_conn_linger(c, reason);
}


void
grpc_conn_shake(grpc_conn_t *c)
{
    switch (c->options.channel->handshake(c->channel)) {

    case CHANNEL_DONE:
        c->is_shaking = 0;
        ev_io_stop(c->loop, &c->writer);
        grpc_conn_begin(c);
        break;

    case CHANNEL_WANTS_READ:
        ev_io_stop(c->loop, &c->writer);
        ev_io_start(c->loop, &c->reader);
        break;

    case CHANNEL_WANTS_WRITE:
        ev_io_stop(c->loop, &c->reader);
        ev_io_start(c->loop, &c->writer);
        break;

    default:
        grpc_conn_refuse(c, c->options.channel->reason(c->channel));
        break;
    }
}


void
grpc_conn_shake_late(grpc_conn_t *c)
{
    grpc_conn_refuse(c, "the TLS handshake took too long: does the peer "
                     "speak TLS");
}


static void
grpc_conn_limit_handshake(grpc_conn_t *c)
{
    uint64_t  timeout_ms;

    timeout_ms = c->options.handshake_timeout_ms;

    if (timeout_ms == 0) {
        timeout_ms = GRPC_CONN_HANDSHAKE_MS;
    }

    ev_timer_set(&c->timer, (double) timeout_ms / 1000, 0);
    ev_timer_start(c->loop, &c->timer);
}


void
grpc_conn_open(grpc_conn_t *c)
{
    const grpc_conn_options_t  *o;

    o = &c->options;

    if (c->server != NULL) {
        grpc_conn_limit_handshake(c);   /* for a client this timer runs
                                           already */
    }

    if (o->channel == NULL) {
        grpc_conn_begin(c);
        return;
    }

    c->channel = o->channel->open(o->channel_context, c->fd, &c->peer,
                                  o->names, c->server != NULL);

    if (c->channel == NULL) {
        grpc_conn_end(c, "out of memory", 1);
        return;
    }

    c->is_connecting = 1;
    c->is_shaking = 1;
    grpc_conn_shake(c);
}


void
grpc_conn_check_ready(grpc_conn_t *c)
{
    void  (*on_ready)(grpc_conn_t *);

    on_ready = c->on_ready;

    if (on_ready != NULL && llmgw_grpc_session_has_begun(c->session)) {
        c->on_ready = NULL;
        grpc_conn_settle(c);
        on_ready(c);
    }
}
