
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lock/lock_state.h"
#include "lock/process.h"
#include "lock/server_inner.h"


static void
server_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
    server_t  *server;

    server = timer->data;
    service_tick(&server->service);
    machine_tick(&server->machine);
}


/* Restores the holders of the state file whose processes live; they have the
   window to reconnect.  -1: a process cannot be identified by its pid. */
static int
server_restore(server_t *server, const lock_state_t *state)
{
    int                     fd, rc;
    size_t                  i;
    machine_engine_t       *engine;
    const machine_claim_t  *h;

    rc = 0;

    for (i = 0; i < state->nholders; i++) {
        h = &state->holders[i];
        rc = h->pid == 0 ? -1 : rc;
        fd = pidfd_of_process(h->pid, h->start_ticks);

        if (fd == -1) {
            continue;
        }

        engine = machine_restore(&server->machine, h);

        if (engine == NULL) {
            close(fd);
            continue;
        }

        engine->claim.can_be_killed = pidfd_can_signal(fd);
        (void) process_add(server->loop, &server->machine, engine, fd,
                           (uint64_t) h->pid, 1);
    }

    return rc;
}


static void
server_begin(server_t *server, const machine_settings_t *settings)
{
    char             error[LOCK_STATE_ERROR_BYTES];
    lock_state_t     state;
    lock_state_rc_t  rc;

    rc = lock_state_read(server->state_file, &state, error);

    if (rc == LOCK_STATE_TORN) {
        log_write(server->log, LOG_WARN, "state file \"%s\" is not used: %s",
                  server->state_file, error);
    }

    machine_init(&server->machine, settings, &server_ops, server, state.epoch,
                 rc == LOCK_STATE_OK);

    if (rc == LOCK_STATE_OK && strcmp(state.boot_id, server->boot_id) == 0
        && server_restore(server, &state) != 0)
    {
        machine_is_unsettled(&server->machine);
    }
}


/* Reports a wrong path at the start, and not only at the first grant. */
static void
server_check_state_file(const server_t *server)
{
    char  copy[PATH_MAX];

    snprintf(copy, sizeof(copy), "%s", server->state_file);

    if (access(dirname(copy), W_OK|X_OK) != 0) {
        log_write(server->log, LOG_WARN, "state file \"%s\" cannot be written, "
                  "and no group is granted until it can: its directory: %s",
                  server->state_file, strerror(errno));
    }
}


/* Sets the directory of the lock files, which is the socket's. */
static void
server_set_dir(server_t *server, const char *socket)
{
    char  copy[PATH_MAX];

    snprintf(copy, sizeof(copy), "%s", socket);
    snprintf(server->dir, sizeof(server->dir), "%s", dirname(copy));
}


/* Makes the id of this instance, which need not be secret. */
static void
server_set_id(server_t *server)
{
    uint64_t  id;

    if (getrandom(&id, sizeof(id), 0) != sizeof(id)) {
        id = server_ops.wall_us(NULL);
    }

    snprintf(server->id, sizeof(server->id), "%016" PRIx64, id);
}


server_t *
server_create(struct ev_loop *loop, const char *socket,
    const char *state_file, const machine_settings_t *settings,
    const log_t *log, char *error)
{
    double     tick_s;
    server_t  *server;

    server = calloc(1, sizeof(server_t));

    if (server == NULL) {
        snprintf(error, SERVER_ERROR_BYTES, "out of memory");
        return NULL;
    }

    server->loop = loop;
    server->log = log;
    server->state_file = state_file;
    server_set_dir(server, socket);
    server_set_id(server);
    pidfd_boot_id(server->boot_id);

    if (service_init(&server->service, loop, log, socket, &conn_type, server,
                     error)
        != 0)
    {
        free(server);
        return NULL;
    }

    server->state_owner = lock_state_own(state_file);

    if (server->state_owner == -1) {
        snprintf(error, SERVER_ERROR_BYTES, "another process is using state "
                 "file \"%s\"", state_file);
        service_done(&server->service);
        free(server);
        return NULL;
    }

    server_begin(server, settings);
    server_check_state_file(server);

    tick_s = (double) settings->step_max_ms / 2000;
    ev_timer_init(&server->tick, server_tick, tick_s, tick_s);
    ev_set_priority(&server->tick, EV_MINPRI);  /* after the lines that were
                                                   read */
    server->tick.data = server;
    ev_timer_start(loop, &server->tick);

    return server;
}


int
server_run(server_t *server)
{
    return service_run(&server->service);
}


void
server_destroy(server_t *server)
{
    machine_done(&server->machine);
    ev_timer_stop(server->loop, &server->tick);
    service_done(&server->service);

    if (server->state_owner >= 0) {
        close(server->state_owner);
    }

    free(server);
}
