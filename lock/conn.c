
/* A connection: lines of engines, and queries. */

#include <string.h>
#include <unistd.h>

#include "lock/process.h"
#include "lock/protocol.h"
#include "lock/server_inner.h"


const char *
conn_reason_text(machine_rc_t why)
{
    switch (why) {
    case MACHINE_LATE:
        return "the offer is over; you are in the queue";
    case MACHINE_HELD:
        return "another instance holds the group";
    case MACHINE_BUSY:
        return "the lock file is held; you are in the queue";
    case MACHINE_BAD_EPOCH:
        return "not the epoch that was granted, or more than 24 h ahead";
    case MACHINE_TOO_MANY:
        return "too many groups, waiters or processes, or no memory";
    default:
        return "the state file cannot be written; you are in the queue";
    }
}


/* --- messages of engines */

/* Logs a line if this changes the consequence of a hang. */
static void
server_tell_wait(const server_t *server, const machine_claim_t *claim)
{
    if (server->machine.settings.is_kill && !claim->can_be_killed) {
        log_write(server->log, LOG_WARN, "group \"%s\": engine \"%s\" of "
                  "another user or PID namespace cannot be killed: fence=wait "
                  "for it", claim->group, claim->engine);
    }
}


/* Logs now that no engine can take over from a holder that has the lock file,
   and not only when the holder has died. */
static void
server_tell_file(server_t *server, const machine_engine_t *waiter)
{
    const machine_group_t  *group;

    group = waiter->group;

    if (group->holder != NULL && group->holder != waiter
        && server_ops.file(server, group->name) == MACHINE_FILE_HELD
        && server->file_error != 0)
    {
        log_write(server->log, LOG_ERROR, "group \"%s\": its lock file cannot "
                  "be opened, so no engine can take over: %s", group->name,
                  strerror(server->file_error));
    }
}


static void
conn_acquire(conn_t *conn, machine_claim_t *claim)
{
    pidfd_t            peer;
    server_t          *server;
    machine_rc_t       rc;
    machine_engine_t  *engine;

    server = conn->server;

    if (conn->engine != NULL) {
        service_refuse(&conn->base, "bad_line",
                       "this connection has acquired already");
        return;
    }

    if (pidfd_of_peer(line_conn_fd(conn->base.line), conn->accepted_ticks,
                      &peer)
        != 0)
    {
        service_refuse(&conn->base, "no_pidfd", "your process cannot be "
                       "watched: it is of another PID namespace, and the "
                       "kernel is older than 6.5");
        return;
    }

    claim->pid = peer.pid;
    claim->start_ticks = peer.start_ticks;
    claim->can_be_killed = pidfd_can_signal(peer.fd);
    rc = machine_acquire(&server->machine, conn, claim, &engine);

    if (rc != MACHINE_OK) {
        close(peer.fd);
        service_refuse(&conn->base, machine_rc_name(rc), conn_reason_text(rc));
        return;
    }

    conn->engine = engine;
    server_tell_wait(server, claim);
    server_tell_file(server, engine);

    if (engine->processes != NULL) {    /* a holder that came back */
        close(peer.fd);
        return;
    }

    if (process_add(server->loop, &server->machine, engine, peer.fd,
                    (uint64_t) peer.pid, 1) != MACHINE_OK)
    {
        service_refuse(&conn->base, "too_many",
                       conn_reason_text(MACHINE_TOO_MANY));
        machine_release(&server->machine, engine);
    }
}


/*
 * Whether a process may be a worker of this engine.  A pidfd shows nothing
 * about its sender's rights, and after a hang workers are killed with this
 * service's rights: so processes of other users are refused.
 */
static int
conn_check_worker(conn_t *conn, int fd)
{
    if (fd == -1 || !pidfd_is_valid(fd)) {
        service_refuse(&conn->base, "no_pidfd", "worker comes with a pidfd "
                       "(SCM_RIGHTS) on its first byte");
        return -1;
    }

    if (pidfd_can_signal(fd) && !pidfd_is_of_user(fd, conn->base.uid)
        && !pidfd_is_dead(fd))
    {
        service_refuse(&conn->base, "other_user", "the worker is a process "
                       "of another user than the one that connected");
        return -1;
    }

    return 0;
}


static void
conn_worker(conn_t *conn, uint64_t pid)
{
    int           fd;
    machine_rc_t  rc;

    fd = line_conn_take_fd(conn->base.line);

    if (conn_check_worker(conn, fd) != 0) {
        if (fd != -1) {
            close(fd);
        }

        return;
    }

    if (process_is_known(conn->engine, pid)) {
        close(fd);

    } else {
        rc = process_add(conn->server->loop, &conn->server->machine,
                         conn->engine, fd, pid, 0);

        if (rc != MACHINE_OK) {
            service_refuse(&conn->base, machine_rc_name(rc),
                           conn_reason_text(rc));
            return;
        }
    }

    service_send(&conn->base, json_pack("{s:s, s:I}", "type", "worker", "pid",
                                        (json_int_t) pid), -1);
}


/*
 * Commands that only an engine may send.  The connection may be closed
 * afterwards.
 */
static void
conn_engine_command(conn_t *conn, const protocol_command_t *command)
{
    machine_t  *m;

    if (conn->engine == NULL) {
        service_refuse(&conn->base, "bad_line", "acquire comes first");
        return;
    }

    m = &conn->server->machine;

    switch (command->verb) {
    case PROTOCOL_TAKE:
        machine_take(m, conn->engine, command->epoch);
        break;
    case PROTOCOL_WORKER:
        conn_worker(conn, command->pid);
        break;
    case PROTOCOL_PONG:
        machine_pong(m, conn->engine, command->state, command->progress,
                     command->streams);
        break;
    default:
        machine_release(m, conn->engine);
        break;
    }
}


/* The holder gets the number of possible successors. */
static void
conn_pong(conn_t *conn, uint64_t seq)
{
    json_t                  *json;
    const machine_engine_t  *e;

    e = conn->engine;
    json = json_pack("{s:s, s:I}", "type", "pong", "seq", (json_int_t) seq);

    if (e != NULL && e->group->holder == e) {
        json_object_set_new(json, "standbys", json_integer(
            machine_standbys(&conn->server->machine, e->group)));
    }

    service_send(&conn->base, json, -1);
}


static void
conn_on_line(service_conn_t *base, char *text, size_t len)
{
    char                 error[PROTOCOL_ERROR_BYTES];
    conn_t              *conn = (conn_t *) base;
    const char          *reason;
    protocol_command_t   command;

    reason = protocol_decode(&command, text, len, error);

    if (reason != NULL) {
        service_refuse(base, reason, error);
        return;
    }

    if (conn->engine != NULL) {
        machine_heard(&conn->server->machine, conn->engine);
    }

    switch (command.verb) {
    case PROTOCOL_ACQUIRE:
        conn_acquire(conn, &command.claim);
        break;
    case PROTOCOL_STATUS:
        service_send(base, protocol_status(&conn->server->machine,
                                           conn->server->id), -1);
        break;
    case PROTOCOL_PING:
        conn_pong(conn, command.seq);
        break;
    default:
        conn_engine_command(conn, &command);
        break;
    }
}


static void
conn_on_open(service_conn_t *base)
{
    conn_t  *conn = (conn_t *) base;

    conn->server = base->service->data;
    conn->accepted_ticks = pidfd_ticks();
}


static void
conn_on_close(service_conn_t *base)
{
    conn_t  *conn = (conn_t *) base;

    if (conn->engine != NULL) {
        machine_closed(&conn->server->machine, conn->engine);
    }
}


static int
conn_is_idle(const service_conn_t *base)
{
    return ((const conn_t *) base)->engine == NULL;
}


const service_type_t  conn_type = {
    .conn_bytes = sizeof(conn_t),
    .conns_max = SERVER_CONNS_MAX,
    .idle_ms = SERVER_IDLE_MS,
    .full_reason = "too_many",
    .full_error = "too many connections",
    .is_idle = conn_is_idle,
    .on_open = conn_on_open,
    .on_line = conn_on_line,
    .on_close = conn_on_close
};
