
/*
 * llmgw-lock: decides which engine of a group may serve, on one host or pod.
 *
 *   machine.h     decisions; no clock, socket or file
 *   server.c      connections, and the operations of the machine
 *   process.c     the processes of engines
 *   lock_state.c  the state file
 *   lock_file.c   whether a lock file is locked, by the kernel
 *   protocol.c    lines of the protocol
 */

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/options.h"
#include "common/os/descriptors.h"
#include "lock/server.h"


#define MAIN_HOUR_MS  (3600.0 * 1000)

/* How often deadlines are checked. */
#define MAIN_TICK_SHARE   5         /* of --ping-interval, */
#define MAIN_TICK_MIN_MS  5
#define MAIN_TICK_MAX_MS  200

typedef struct {
    const char          *socket;
    const char          *state;
    const char          *fence;
    machine_settings_t   machine;
} main_options_t;


#define FIELD(name)  offsetof(main_options_t, name)

static const option_t  main_table[] = {

    { "socket", OPTION_STRING, FIELD(socket), NULL, "PATH",
      "where engines connect; lock files are kept beside it", 0, 0, 1 },

    { "state", OPTION_STRING, FIELD(state), NULL, "FILE",
      "state that is kept across restarts", 0, 0, 1 },

    { "fence", OPTION_STRING, FIELD(fence), "kill", "kill|wait",
      "what to do with a holder that hangs", 0, 0, 0 },

    { "reconnect-window", OPTION_DURATION,
      FIELD(machine.reconnect_window_ms), "10s", NULL,
      "time for a disconnected holder to reconnect", 10, MAIN_HOUR_MS, 0 },

    { "hang-timeout", OPTION_DURATION, FIELD(machine.hang_timeout_ms), "10s",
      NULL, "a holder without a sign or progress for so long hangs",
      20, MAIN_HOUR_MS,
      0 },

    { "take-timeout", OPTION_DURATION, FIELD(machine.take_timeout_ms), "1s",
      NULL, "time for a waiting engine to accept an offer",
      10, MAIN_HOUR_MS, 0 },

    { "ping-interval", OPTION_DURATION, FIELD(machine.ping_interval_ms), "1s",
      NULL, "time between pings to each engine", 10, MAIN_HOUR_MS, 0 },

    { .name = NULL }
};

static const options_spec_t  main_spec = {
    "llmgw-lock",
    "--socket PATH --state FILE [options]",
    "Says which engine of a group may serve, on one host or pod.",
    NULL,
    main_table
};


/* Checks that the table of options cannot express. */
static int
main_check(main_options_t *o)
{
    uint64_t             tick_ms;
    machine_settings_t  *s;

    s = &o->machine;
    s->is_kill = strcmp(o->fence, "kill") == 0;

    if (!s->is_kill && strcmp(o->fence, "wait") != 0) {
        fprintf(stderr, "llmgw-lock: --fence: \"%.80s\" is not kill or "
                "wait\n", o->fence);
        return -1;
    }

    if (s->hang_timeout_ms < 2 * s->ping_interval_ms) {
        fprintf(stderr, "llmgw-lock: --hang-timeout is to be at least twice "
                "--ping-interval, or one lost sign is a hang\n");
        return -1;
    }

    tick_ms = s->ping_interval_ms / MAIN_TICK_SHARE;
    tick_ms = tick_ms > MAIN_TICK_MIN_MS ? tick_ms : MAIN_TICK_MIN_MS;
    tick_ms = tick_ms < MAIN_TICK_MAX_MS ? tick_ms : MAIN_TICK_MAX_MS;
    s->step_max_ms = 2 * tick_ms;

    return 0;
}


static int
main_serve(const main_options_t *o)
{
    int        status;
    char       error[SERVER_ERROR_BYTES];
    log_t      log = { "llmgw-lock", NULL, LOG_INFO };
    server_t  *server;

    descriptors_raise();
    server = server_create(ev_default_loop(EVFLAG_AUTO), o->socket, o->state,
                           &o->machine, &log, error);

    if (server == NULL) {
        log_write(&log, LOG_ERROR, "%s", error);
        return 1;
    }

    log_write(&log, LOG_INFO, "serving at \"%s\", fence=%s", o->socket,
              o->fence);
    status = server_run(server);
    server_destroy(server);
    log_write(&log, LOG_INFO, "ended; engines keep what they hold");

    return status;
}


int
main(int argc, char **argv)
{
    int             status, rest;
    main_options_t  options = { 0 };

    switch (options_parse(&main_spec, &options, argc, argv, 0, &rest)) {
    case OPTIONS_EXIT:
        return 0;
    case OPTIONS_EUSAGE:
        return 2;
    default:
        break;
    }

    status = main_check(&options) == 0 ? main_serve(&options) : 2;
    options_done(&main_spec, &options);

    return status;
}
