
/*
 * A gateway that is started by one command: all its parts.
 *
 *   prepare.c          all that can be wrong before something runs
 *   host/tools.c       nginx, its module, our programs: where they are
 *   host/place.c       directories, and an address of its own
 *   host/program.c     a process that is kept running
 *   host/bound.c       commands that end with this process
 *   fleet/source.c     what a URL stands for
 *   fleet/files.c      the configuration, for people to read
 *   fleet/pair.c       one engine: an adapter and its agent
 *   fleet/fleet.c      all engines; dns.c finds the addresses of a name
 *   fleet/probe.c      finds out what an engine is, for people
 *   fleet/members.c    what the cluster knows about engines
 *   control.c          `llmgw add`, `remove`, `status`, which ask.c sends
 *   show.c             what is printed for people
 *   end.c              how all of it ends
 */

#ifndef UP_H
#define UP_H

#include "common/service/service.h"
#include "up/cmdline.h"
#include "up/fleet/fleet.h"
#include "up/fleet/members.h"
#include "up/host/place.h"


#define UP_ERROR_BYTES  FILES_ERROR_BYTES
#define UP_BASE_BYTES   (ADDRESS_TEXT_BYTES + 16)
#define UP_KEY_BYTES    128
#define UP_NSIGNALS     4

/* The control socket, in the run directory, for `llmgw add` and the like. */
#define UP_SOCKET       "up.sock"

typedef enum {
    UP_STARTING = 0,        /* no engine has served yet */
    UP_SERVING,
    UP_ENDING_NGINX,
    UP_ENDING_ENGINES,
    UP_ENDING_AGENT
} up_state_t;

typedef struct {
    struct ev_loop   *loop;
    const cmdline_t  *options;
    log_t             log;

    address_t         address;              /* of --listen */
    char              listen[ADDRESS_TEXT_BYTES];
    char              base[UP_BASE_BYTES];  /* URL for clients */
    address_t         local_address;
    char              local[ADDRESS_TEXT_BYTES];    /* "": not needed */
    char              pages[UP_BASE_BYTES]; /* their URL on this host */
    char              keys[PATH_MAX];       /* the key file; "": none */
    char              new_key[UP_KEY_BYTES];        /* made here; shown once */
    char              engine_key_file[PATH_MAX];    /* "": none */
    char              engine_key[4096];

    tools_t           tools;
    place_t           place;
    files_t           files;
    program_t         nginx;
    program_t         agent;
    fleet_t           fleet;
    members_t         members;
    service_t         service;

    http_whole_t           ready;                /* nginx's answer to /ready */

    ev_timer          tick;
    unsigned          ticks;
    ev_timer          deadline;             /* when the end must be over */
    ev_signal         signals[UP_NSIGNALS];
    up_state_t        state;
    int               is_hurried;
    int               status;               /* the exit status */
} up_t;


/* --- prepare.c: 0, or -1 and a line on standard error */

int prepare(up_t *up);
int prepare_print(up_t *up);

/* --- control.c */

int control_init(up_t *up, char error[UP_ERROR_BYTES]);

/* --- show.c */

void show_start(const up_t *up);
void show_ready(up_t *up);
void show_broken(program_t *program);
void show_end(const up_t *up);

/* --- end.c */

/* Begins to end: drains.  A further call ends the streams. */
void end_begin(up_t *up);
void end_on_nginx_gone(void *data, program_t *program);
void end_on_agent_gone(void *data, program_t *program);
void end_on_fleet_empty(void *data);

/* --- up.c */

/* `llmgw up`: its exit status. */
int up_main(int argc, char **argv);

/* --- ask.c: `llmgw add`, `remove`, `status` */

int ask_main(int argc, char **argv);

#endif /* UP_H */
