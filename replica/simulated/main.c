
/*
 * llmgw-simreplica: a simulated engine behind gRPC, for tests, demonstrations,
 * and measuring gateways.  It has faults on demand, and may take further
 * processes and memory when it wakes from standby.
 */

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "replica/replica.h"
#include "replica/simulated/control.h"
#include "replica/simulated/options.h"
#include "replica/standby/watchdog.h"


_Static_assert(WORKERS_MAX <= WATCHDOG_WORKERS_MAX, "the watchdog has too few "
               "places");

typedef struct {
    replica_t            replica;
    simulated_options_t  options;
    standby_body_t       body;
    workers_t            workers;
    int                  token_log;     /* a descriptor; 0: none */
} simulated_t;


/* --- the log of messages */

/* Logs which epoch sent which message, and when: one write(2) for each line, so
   that the lines of engines that share the file are in order. */
static void
simulated_log_message(const engine_t *engine)
{
    int                 n;
    char                line[64];
    const simulated_t  *s;
    struct timespec     ts;

    s = (const simulated_t *) ((const char *) engine
                               - offsetof(simulated_t, replica.engine));

    clock_gettime(CLOCK_MONOTONIC, &ts);
    n = snprintf(line, sizeof(line), "%lld%09ld %llu %d\n",
                 (long long) ts.tv_sec, ts.tv_nsec,
                 (unsigned long long) engine->facts.group.epoch,
                 (int) getpid());

    if (write(s->token_log, line, (size_t) n) != n) {
        log_write(engine->log, LOG_WARN, "the token log is not written");
    }
}


static int
simulated_open_log(simulated_t *s)
{
    const char  *path;

    path = s->options.token_log;

    if (path == NULL) {
        return 0;
    }

    s->token_log = open(path, O_WRONLY|O_APPEND|O_CREAT|O_CLOEXEC, 0660);

    if (s->token_log == -1) {
        fprintf(stderr, "llmgw-simreplica: --token-log: \"%s\": %s\n", path,
                strerror(errno));
        return -1;
    }

    s->replica.engine.on_message = simulated_log_message;

    return 0;
}


/* --- workers and memory */

static int
simulated_on_fork(void *data, pid_t pid)
{
    simulated_t  *s = data;

    return standby_worker(&s->replica.standby, pid);
}


static void
simulated_on_full(void *data)
{
    simulated_t  *s = data;

    standby_filled(&s->replica.standby);
}


static void
simulated_on_death(void *data)
{
    simulated_t  *s = data;

    standby_fail(&s->replica.standby);
}


static int
simulated_begin(void *data, int lock_fd)
{
    simulated_t  *s = data;

    s->workers.loop = s->replica.loop;
    s->workers.lock_fd = lock_fd;

    return workers_begin(&s->workers);
}


static int
simulated_fill(void *data)
{
    simulated_t  *s = data;

    return workers_fill(&s->workers);
}


static void
simulated_done(void *data)
{
    simulated_t  *s = data;

    workers_done(&s->workers);
}


static void
simulated_init_body(simulated_t *s)
{
    s->workers.log = &s->replica.log;
    s->workers.count = (int) s->options.workers;
    s->workers.bytes = (size_t) s->options.memory_mb << 20;
    s->workers.is_shared = s->options.is_memory_shared;
    s->workers.on_fork = simulated_on_fork;
    s->workers.on_full = simulated_on_full;
    s->workers.on_death = simulated_on_death;
    s->workers.data = s;

    s->body.count = s->workers.count;
    s->body.begin = simulated_begin;
    s->body.fill = simulated_fill;
    s->body.done = simulated_done;
    s->body.data = s;
    s->replica.body = &s->body;
}


/* --- its life */

static int
simulated_run(simulated_t *s)
{
    if (simulated_open_log(s) != 0) {
        return 1;
    }

    s->replica.methods = control_methods(s->replica.engine.kind);

    if (s->options.cmdline.engine.is_standby) {
        simulated_init_body(s);

    } else if (workers_take_memory((size_t) s->options.memory_mb << 20,
                                   s->options.is_memory_shared) != 0)
    {
        fprintf(stderr, "llmgw-simreplica: no memory for the model\n");
        return 1;
    }

    return replica_run(&s->replica);
}


int
main(int argc, char **argv)
{
    int           rc;
    simulated_t   s;
    options_rc_t  parsed;

    memset(&s, 0, sizeof(s));
    s.replica.options = &s.options.cmdline;

    parsed = cmdline_read(&s.options.cmdline, &simulated_program, argc, argv,
                          &s.replica.engine.kind);
    rc = parsed == OPTIONS_DONE ? simulated_run(&s)
         : parsed == OPTIONS_EUSAGE ? 2 : 0;

    cmdline_done(&s.options.cmdline);

    return rc;
}
