
/* The machine's operations: clocks, lines, files, signals, the log. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/os/mono.h"
#include "lock/lock_state.h"
#include "lock/lock_file.h"
#include "lock/process.h"
#include "lock/server_inner.h"


static uint64_t
server_mono_us(void *data)
{
    return mono_us();
}


static uint64_t
server_wall_us(void *data)
{
    struct timespec  now;

    clock_gettime(CLOCK_REALTIME, &now);

    return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}


static machine_file_t
server_file(void *data, const char *group)
{
    server_t  *server = data;

    return lock_file_state(server->dir, group, &server->file_error);
}


static int
server_keep(void *data)
{
    lock_state_t   state;
    server_t      *server = data;

    lock_state_of_machine(&state, &server->machine, server->boot_id);

    if (lock_state_write(server->state_file, &state) == 0) {
        server->is_state_broken = 0;
        return 0;
    }

    if (!server->is_state_broken) {
        server->is_state_broken = 1;
        log_write(server->log, LOG_ERROR, "cannot write state file \"%s\", so "
                  "no group is granted: %s", server->state_file,
                  strerror(errno));
    }

    return -1;
}


static void
server_say(const machine_engine_t *engine, json_t *json)
{
    service_send(engine->peer, json, -1);
}


/* Sends QUEUED with the greatest epoch: engines report that in ACQUIRE if this
   service loses it. */
static void
server_queued(void *data, machine_engine_t *engine, unsigned position)
{
    server_t  *server = data;

    server_say(engine, json_pack("{s:s, s:i, s:I}", "type", "queued",
                                 "position", (int) position, "epoch",
                                 (json_int_t) server->machine.epoch));
}


static void
server_offer(void *data, machine_engine_t *engine)
{
    server_say(engine, json_pack("{s:s, s:I}", "type", "offer", "epoch",
                                 (json_int_t) engine->claim.epoch));
}


static void
server_granted(void *data, machine_engine_t *engine, int is_regrant)
{
    server_t  *server = data;

    server_say(engine, json_pack("{s:s, s:I, s:b, s:s}", "type", "granted",
        "epoch", (json_int_t) engine->claim.epoch, "regrant", is_regrant,
        "lock", server->id));
}


static void
server_refused(void *data, machine_engine_t *engine, machine_rc_t why)
{
    service_refuse(engine->peer, machine_rc_name(why), conn_reason_text(why));
}


static void
server_ping(void *data, machine_engine_t *engine)
{
    conn_t  *conn;

    conn = engine->peer;

    if (line_conn_queued(conn->base.line) < SERVER_PINGS_BYTES) {
        server_say(engine, json_pack("{s:s, s:I}", "type", "ping", "seq",
                                     (json_int_t) ++conn->ping_seq));
    }
}


static void
server_kill(void *data, machine_engine_t *engine)
{
    int        error;
    server_t  *server = data;

    error = process_kill_all(engine);

    if (error != 0) {
        log_write(server->log, LOG_ERROR, "group \"%s\": a process of engine "
                  "\"%s\" cannot be killed: %s", engine->group->name,
                  engine->claim.engine, strerror(error));
    }
}


static void
server_drop(void *data, machine_engine_t *engine)
{
    service_conn_t  *conn;

    conn = engine->peer;
    engine->peer = NULL;
    service_drop(conn);
}


static void
server_forget(void *data, machine_engine_t *engine)
{
    server_t  *server = data;

    process_forget_all(server->loop, engine);
}


static const struct {
    const char   *name;
    log_level_t   level;
} server_events[] = {
    [MACHINE_QUEUED]    = { "queued",    LOG_INFO },
    [MACHINE_OFFERED]   = { "offered",   LOG_INFO },
    [MACHINE_MISSED]    = { "missed",    LOG_WARN },
    [MACHINE_LEFT]      = { "left",      LOG_INFO },
    [MACHINE_GRANTED]   = { "granted",   LOG_INFO },
    [MACHINE_REGRANTED] = { "regranted", LOG_INFO },
    [MACHINE_ACTIVE]    = { "active",    LOG_INFO },
    [MACHINE_RELEASED]  = { "released",  LOG_INFO },
    [MACHINE_LOST]      = { "lost",      LOG_WARN },
    [MACHINE_KILLED]    = { "fenced",    LOG_WARN },
    [MACHINE_BLOCKED]   = { "alarm",     LOG_WARN },
    [MACHINE_RECOVERED] = { "recovered", LOG_INFO },
    [MACHINE_GONE]      = { "gone",      LOG_INFO },
    [MACHINE_UNKNOWN]   = { "unknown",   LOG_WARN }
};


static void
server_tell(void *data, machine_event_t event, const machine_group_t *group,
    const machine_engine_t *engine, const char *text)
{
    char             about[MACHINE_ID_BYTES + 128];
    server_t        *server = data;
    struct timespec  now;

    if (engine != NULL) {
        snprintf(about, sizeof(about), "engine \"%s\", pid %d, epoch %" PRIu64,
                 engine->claim.engine, (int) engine->claim.pid,
                 engine->claim.epoch);

    } else if (server->file_error != 0) {
        snprintf(about, sizeof(about), "its lock file cannot be opened and "
                 "counts as held: %s", strerror(server->file_error));

    } else {
        snprintf(about, sizeof(about), "its lock file is held by a process "
                 "that did not come here");
    }

    clock_gettime(CLOCK_MONOTONIC, &now);
    log_write(server->log, server_events[event].level,
              "group \"%s\" %s: %s%s%s, mono %ld.%09ld s", group->name,
              server_events[event].name, about, text != NULL ? ", " : "",
              text != NULL ? text : "", (long) now.tv_sec, now.tv_nsec);
}


static void
server_given_up(void *data, uint64_t epoch)
{
    server_t  *server = data;

    log_write(server->log, LOG_WARN, "epoch %" PRIu64 " is more than 24 h "
              "ahead of the clock, so gossip refuses it: it is given up, and "
              "the next epoch is the clock's", epoch);
}


const machine_ops_t  server_ops = {
    .mono_us = server_mono_us,
    .wall_us = server_wall_us,
    .file = server_file,
    .keep = server_keep,
    .queued = server_queued,
    .offer = server_offer,
    .granted = server_granted,
    .refused = server_refused,
    .ping = server_ping,
    .kill = server_kill,
    .drop = server_drop,
    .forget = server_forget,
    .tell = server_tell,
    .given_up = server_given_up
};
