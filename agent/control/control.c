
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/line_conn.h"
#include "common/os/pidfd.h"
#include "control/control.h"


typedef struct control_conn_s  control_conn_t;

struct control_conn_s {
    command_peer_t   peer;          /* first: a peer is its connection */
    control_t       *control;
    line_conn_t     *line;
    uint64_t         nlost;         /* events dropped since the last one sent */
    double           line_at;       /* when it sent its last line, or
                                       connected */
    uint64_t         accepted_ticks;
    control_conn_t  *prev;
    control_conn_t  *next;
};

struct control_s {
    struct ev_loop       *loop;
    unix_listener_t       socket;
    ev_timer              sweep;
    const command_env_t  *env;
    control_lost_pt       on_lost;
    control_conn_t       *conns;
    size_t                nconns;
};


static void
control_conn_unlink(control_conn_t *conn)
{
    control_t  *control;

    control = conn->control;

    if (conn->peer.job != NULL) {
        conn->peer.on_gone(conn->peer.job);
    }

    if (conn->prev != NULL) {
        conn->prev->next = conn->next;

    } else {
        control->conns = conn->next;
    }

    if (conn->next != NULL) {
        conn->next->prev = conn->prev;
    }

    control->nconns--;
}


void
control_drop(command_peer_t *peer)
{
    control_conn_t  *conn = (control_conn_t *) peer;

    control_conn_unlink(conn);
    line_conn_destroy(conn->line);
    free(conn);
}


static void
control_conn_closed(line_conn_t *line, const char *reason)
{
    control_conn_t  *conn;

    conn = line_conn_data(line);
    control_conn_unlink(conn);

    if (conn->peer.is_reporter) {
        conn->control->on_lost(conn->control->env->data, &conn->peer);
    }

    free(conn);
}


/* Sends a message and releases it; NULL is not sent. */
static void
control_conn_send(control_conn_t *conn, json_t *json)
{
    char  *text;

    if (json == NULL) {
        return;
    }

    text = json_dumps(json, JSON_COMPACT);
    json_decref(json);

    if (text != NULL) {
        line_conn_send(conn->line, text, strlen(text));
        free(text);
    }
}


static void
control_conn_line(line_conn_t *line, char *text, size_t len)
{
    control_conn_t  *conn;

    conn = line_conn_data(line);
    conn->line_at = ev_now(conn->control->loop);
    control_conn_send(conn, command_answer(conn->control->env, &conn->peer,
                                           text, len));
}


static void
control_conn_event(control_conn_t *conn, json_t *event)
{
    if (line_conn_queued(conn->line) > CONTROL_EVENTS_BYTES) {
        conn->nlost++;
        return;
    }

    if (conn->nlost > 0) {
        control_conn_send(conn, json_pack("{s:s, s:I}", "event", "lost",
                                          "count",
                                          (json_int_t) conn->nlost));
        conn->nlost = 0;
    }

    control_conn_send(conn, json_incref(event));
}


static int
control_has_listener(const control_t *control)
{
    control_conn_t  *conn;

    for (conn = control->conns; conn != NULL; conn = conn->next) {
        if (conn->peer.wants_events) {
            return 1;
        }
    }

    return 0;
}


void
control_tell(control_t *control, const llmgw_member_t *before,
    const llmgw_member_t *after)
{
    size_t                i;
    json_t               *events, *event;
    control_conn_t       *conn;
    const command_env_t  *env;

    if (!control_has_listener(control)) {
        return;
    }

    env = control->env;
    events = command_events(env, before, after, env->wall_us(env->data));

    json_array_foreach(events, i, event) {
        for (conn = control->conns; conn != NULL; conn = conn->next) {
            if (conn->peer.wants_events) {
                control_conn_event(conn, event);
            }
        }
    }

    json_decref(events);
}


static const line_conn_callbacks_t  control_conn_callbacks = {
    control_conn_line, control_conn_closed
};


/*
 * Fills the peer's user; it is no valid one if the kernel does not report it.
 */
static void
control_fill_peer(command_peer_t *peer, int fd)
{
    socklen_t     len;
    struct ucred  who;

    len = sizeof(who);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) != 0) {
        who.uid = (uid_t) -1;
    }

    peer->uid = who.uid;
}


/* --- connections come and go */

/* 1: the connection waits for no answer, and may be closed. */
static int
control_conn_is_idle(const control_conn_t *conn)
{
    return !conn->peer.is_reporter && !conn->peer.wants_events
           && !conn->peer.waits_for_end && conn->peer.job == NULL
           && line_conn_queued(conn->line) == 0;
}


void
control_expire(control_t *control, double idle_s)
{
    double           before;
    control_conn_t  *conn, *next;

    before = ev_now(control->loop) - idle_s;

    for (conn = control->conns; conn != NULL; conn = next) {
        next = conn->next;

        if (conn->line_at <= before && control_conn_is_idle(conn)) {
            control_drop(&conn->peer);
        }
    }
}


static void
control_sweep(struct ev_loop *loop, ev_timer *sweep, int events)
{
    control_expire(sweep->data, CONTROL_IDLE_S);
}


static int
control_is_owner(const control_t *control, const command_peer_t *peer)
{
    return peer->uid == 0 || peer->uid == control->env->uid;
}


/* Whether a is closed rather than b. */
static int
control_conn_yields(const control_conn_t *a, const control_conn_t *b)
{
    int  a_is_owner, b_is_owner;

    a_is_owner = control_is_owner(a->control, &a->peer);
    b_is_owner = control_is_owner(b->control, &b->peer);

    return a_is_owner != b_is_owner ? b_is_owner : a->line_at < b->line_at;
}


/*
 * Makes room for the peer, by closing an idle connection if need be.  0: there
 * is room; -1: there is none.
 */
static int
control_make_room(control_t *control, const command_peer_t *peer)
{
    control_conn_t  *conn, *idle;

    if (control->nconns < CONTROL_MAX_CONNS) {
        return 0;
    }

    idle = NULL;

    for (conn = control->conns; conn != NULL; conn = conn->next) {
        if (control_conn_is_idle(conn)
            && (idle == NULL || control_conn_yields(conn, idle)))
        {
            idle = conn;
        }
    }

    if (idle != NULL) {
        control_drop(&idle->peer);
        return 0;
    }

    return control_is_owner(control, peer)
           && control->nconns < CONTROL_MAX_CONNS + CONTROL_OWNER_CONNS
           ? 0 : -1;
}


/* the line fits into a socket that has carried nothing yet */
static void
control_refuse(int fd)
{
    static const char  refusal[] = "{\"ok\":false,\"error\":"
        "\"too many connections\",\"code\":\"busy\"}\n";

    (void) !send(fd, refusal, sizeof(refusal) - 1, MSG_NOSIGNAL);
    close(fd);
}


static void
control_accept(void *data, int fd, const address_t *address)
{
    control_t       *control = data;
    command_peer_t   peer;
    control_conn_t  *conn;

    memset(&peer, 0, sizeof(peer));
    control_fill_peer(&peer, fd);

    if (control_make_room(control, &peer) != 0) {
        control_refuse(fd);
        return;
    }

    conn = calloc(1, sizeof(control_conn_t));
    if (conn == NULL) {
        close(fd);
        return;
    }

    conn->control = control;
    conn->peer = peer;
    conn->line_at = ev_now(control->loop);
    conn->accepted_ticks = pidfd_ticks();
    conn->line = line_conn_create(control->loop, fd, &control_conn_callbacks,
                                  conn);
    if (conn->line == NULL) {
        close(fd);
        free(conn);
        return;
    }

    line_conn_hold_back(conn->line, CONTROL_ANSWERS_BYTES);
    conn->next = control->conns;

    if (conn->next != NULL) {
        conn->next->prev = conn;
    }

    control->conns = conn;
    control->nconns++;
}


control_t *
control_create(struct ev_loop *loop, const char *path,
    const command_env_t *env, control_lost_pt on_lost, char *error)
{
    control_t  *control;

    control = calloc(1, sizeof(control_t));

    if (control == NULL) {
        snprintf(error, UNIX_LISTENER_ERROR_BYTES, "out of memory");
        return NULL;
    }

    if (unix_listener_init(&control->socket, loop, path, control_accept,
                           control, error)
        != 0)
    {
        free(control);
        return NULL;
    }

    control->loop = loop;
    control->env = env;
    control->on_lost = on_lost;

    ev_timer_init(&control->sweep, control_sweep, CONTROL_SWEEP_S,
                  CONTROL_SWEEP_S);
    control->sweep.data = control;
    ev_timer_start(loop, &control->sweep);

    return control;
}


int
control_socket(const command_peer_t *peer)
{
    return line_conn_fd(((const control_conn_t *) peer)->line);
}


uint64_t
control_accepted_ticks(const command_peer_t *peer)
{
    return ((const control_conn_t *) peer)->accepted_ticks;
}


int
control_take_fd(command_peer_t *peer)
{
    return line_conn_take_fd(((control_conn_t *) peer)->line);
}


void
control_send(command_peer_t *peer, json_t *line)
{
    control_conn_send((control_conn_t *) peer, line);
}


void
control_on_starved(control_t *control, listener_starved_pt on_starved,
    void *data)
{
    listener_on_starved(&control->socket.listener, on_starved, data);
}


void
control_destroy(control_t *control)
{
    control_conn_t  *conn;

    while (control->conns != NULL) {
        conn = control->conns;

        if (conn->peer.waits_for_end) {
            control_conn_send(conn, json_pack("{s:b}", "ok", 1));
        }

        control_drop(&conn->peer);
    }

    ev_timer_stop(control->loop, &control->sweep);
    unix_listener_done(&control->socket);
    free(control);
}
