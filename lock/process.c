
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/os/pidfd.h"
#include "lock/process.h"


typedef struct process_s  process_t;

struct process_s {
    ev_io              watch;
    machine_t         *machine;
    machine_engine_t  *engine;
    process_t         *next;
    uint64_t           pid;
    int                is_main;
};


static void
process_free(struct ev_loop *loop, process_t *process)
{
    ev_io_stop(loop, &process->watch);
    close(process->watch.fd);
    free(process);
}


static void
process_gone(struct ev_loop *loop, ev_io *watch, int events)
{
    int                is_main;
    machine_t         *machine;
    process_t         *process, **place;
    machine_engine_t  *engine;

    process = watch->data;
    machine = process->machine;
    engine = process->engine;
    is_main = process->is_main;

    for (place = (process_t **) &engine->processes; *place != process;
         place = &(*place)->next) { /* void */ }

    *place = process->next;
    process_free(loop, process);

    machine_process_gone(machine, engine, is_main);
}


machine_rc_t
process_add(struct ev_loop *loop, machine_t *m, machine_engine_t *engine,
    int pidfd, uint64_t pid, int is_main)
{
    process_t  *process;

    process = malloc(sizeof(process_t));

    if (process == NULL || machine_process_add(engine) != MACHINE_OK) {
        free(process);
        close(pidfd);
        return MACHINE_TOO_MANY;
    }

    ev_io_init(&process->watch, process_gone, pidfd, EV_READ);
    process->watch.data = process;
    process->machine = m;
    process->engine = engine;
    process->next = engine->processes;
    process->pid = pid;
    process->is_main = is_main;

    engine->processes = process;
    ev_io_start(loop, &process->watch);

    return MACHINE_OK;
}


int
process_is_known(const machine_engine_t *engine, uint64_t pid)
{
    const process_t  *process;

    for (process = engine->processes; process != NULL;
         process = process->next)
    {
        if (process->pid == pid && !process->is_main
            && !pidfd_is_dead(process->watch.fd))
        {
            return 1;
        }
    }

    return 0;
}


int
process_kill_all(machine_engine_t *engine)
{
    int               error;
    const process_t  *process;

    error = 0;

    for (process = engine->processes; process != NULL;
         process = process->next)
    {
        if (pidfd_kill(process->watch.fd) != 0 && errno != ESRCH) {
            error = errno;
        }
    }

    return error;
}


void
process_forget_all(struct ev_loop *loop, machine_engine_t *engine)
{
    process_t  *process;

    while (engine->processes != NULL) {
        process = engine->processes;
        engine->processes = process->next;
        process_free(loop, process);
    }
}
