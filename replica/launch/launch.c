
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/child/tree.h"
#include "common/child/words.h"
#include "common/os/mono.h"
#include "replica/engine/openai.h"
#include "replica/launch/keeper.h"
#include "replica/launch/launch.h"


#define LAUNCH_SWEEP_S      0.02
#define LAUNCH_LOCKED_S     0.1         /* until the lock is tried again */
#define LAUNCH_MEMORY_S     0.5
#define LAUNCH_MEMORY_MS    300000      /* the estimate may be wrong */

static void launch_do(launch_t *l, supervise_action_t action);


/* Sets the detail for the agent; format NULL: clears it.  1: it has changed. */
static int __attribute__((format(printf, 2, 3)))
launch_report(launch_t *l, const char *format, ...)
{
    char      detail[ENGINE_DETAIL_BYTES];
    va_list   args;
    engine_t  *e;

    e = l->engine;
    detail[0] = '\0';

    if (format != NULL) {
        va_start(args, format);
        vsnprintf(detail, sizeof(detail), format, args);
        va_end(args);
    }

    if (strcmp(detail, e->facts.detail) == 0) {
        return 0;
    }

    strcpy(e->facts.detail, detail);
    engine_publish(e);

    return 1;
}


static void
launch_arm(launch_t *l)
{
    uint64_t  next_us, now_us;

    ev_timer_stop(l->loop, &l->due);
    next_us = supervise_next_us(&l->supervise);

    /* The engine was killed: nothing more can be done. */

    if (next_us != UINT64_MAX && !ev_is_active(&l->give_up)) {
        now_us = mono_us();
        ev_timer_set(&l->due,
                     next_us > now_us ? (double) (next_us - now_us) / 1e6 : 0.,
                     0.);
        ev_timer_start(l->loop, &l->due);
    }
}


/* --- the end */

static void
launch_over(launch_t *l)
{
    if (!l->is_over) {
        l->is_over = 1;
        ev_timer_stop(l->loop, &l->give_up);
        l->on_over(l->data);
    }
}


/* No process of the engine is left. */
static void
launch_gone(launch_t *l)
{
    supervise_action_t  action;

    if (l->cgroup[0] != '\0') {
        cgroup_remove(l->cgroup);
    }

    action = supervise_exited(&l->supervise, mono_us());

    if (l->supervise.state == SUPERVISE_BACKOFF) {
        log_write(l->log, LOG_WARN, "engine, pid %d, ended (%s), starting it "
                  "again in %llu ms", l->pid, l->how, (unsigned long long)
                  supervise_pause_us(&l->supervise) / 1000);
        (void) launch_report(l, "engine ended (%s), starts again", l->how);

    } else {
        log_write(l->log, LOG_INFO, "engine, pid %d, ended (%s)", l->pid,
                  l->how);
    }

    l->pid = 0;
    launch_do(l, action);

    if (l->supervise.state == SUPERVISE_ENDED) {
        launch_over(l);
    }
}


/*
 * As a rule no child is left.  If the keeper was killed, its children are here:
 * the next keeper, which ends by itself, or the engine's processes.
 */
static void
launch_sweep(launch_t *l)
{
    if (l->cgroup[0] != '\0') {
        cgroup_kill(l->cgroup);
    }

    tree_kill(KEEPER_NAME);

    if (tree_is_gone()) {
        ev_timer_stop(l->loop, &l->sweep);
        launch_gone(l);
    }
}


static void
launch_on_sweep(struct ev_loop *loop, ev_timer *w, int revents)
{
    launch_sweep(w->data);
}


/* Closes the keepers' socket, so that they kill all. */
static void
launch_kill(launch_t *l)
{
    if (l->control_fd != -1) {
        ev_io_stop(l->loop, &l->control);
        close(l->control_fd);
        l->control_fd = -1;
    }
}


static void
launch_on_give_up(struct ev_loop *loop, ev_timer *w, int revents)
{
    char       left[TREE_TEXT_BYTES];
    launch_t  *l;

    l = w->data;
    tree_describe(left);
    log_write(l->log, LOG_ERROR, "engine, pid %d, was killed and has not "
              "ended, its memory is not free; left behind: %s", l->pid, left);
    l->is_left = 1;
    launch_over(l);
}


/* --- the keeper's messages */

static void
launch_word(launch_t *l, const char *word)
{
    if (word[0] == KEEPER_STARTED) {
        l->pid = atoi(word + 1);
        log_write(l->log, LOG_INFO, "engine \"%s\" started, pid %d",
                  l->place.words[0], l->pid);
        return;
    }

    snprintf(l->how, sizeof(l->how), "%s", word + 1);
    (void) launch_report(l, "engine ended (%s), what is left of it is killed",
                       l->how);
    openai_look_now(l->engine);
}


/* At the end of file the keepers have ended, which is reported elsewhere. */
static void
launch_read(launch_t *l)
{
    char     word[KEEPER_WORD_BYTES + 1];
    ssize_t  n;

    if (l->control_fd == -1) {
        return;
    }

    while ((n = recv(l->control_fd, word, KEEPER_WORD_BYTES, MSG_DONTWAIT))
           > 0)
    {
        word[n] = '\0';
        launch_word(l, word);
    }

    if (n == 0) {
        ev_io_stop(l->loop, &l->control);
    }
}


static void
launch_on_word(struct ev_loop *loop, ev_io *w, int revents)
{
    launch_read(w->data);
}


static void
launch_on_keeper(void *data, pid_t pid, const char *how)
{
    launch_t  *l;

    l = data;
    launch_read(l);

    if (l->how[0] == '\0') {
        snprintf(l->how, sizeof(l->how), "%s%s",
                 l->control_fd == -1 ? "killed" : "keeper: ",
                 l->control_fd == -1 ? "" : how);
        openai_look_now(l->engine);
    }

    launch_kill(l);

    ev_timer_start(l->loop, &l->sweep);
    launch_sweep(l);
}


/* --- the start */

/* Starts the keeper.  0, or -1 and a reason. */
static int
launch_spawn(launch_t *l, char *const *command, char *error)
{
    int     ends[2], rc;
    char    depth[16];
    char  **words;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET|SOCK_CLOEXEC, 0, ends) != 0) {
        snprintf(error, CHILD_ERROR_BYTES, "no socket: %s", strerror(errno));
        return -1;
    }

    snprintf(depth, sizeof(depth), "%d", KEEPER_DEPTH);
    words = keeper_words(depth, l->cgroup[0] != '\0' ? l->cgroup : NULL,
                         command);
    l->keeper.program = "/proc/self/exe";
    l->keeper.output_fd = l->output.write_fd;
    l->keeper.kept_fds[0] = ends[1];
    l->keeper.kept_fds[1] = l->folder.lock_fd;
    l->keeper.is_session = 1;

    snprintf(error, CHILD_ERROR_BYTES, "out of memory");
    rc = words != NULL ? child_start(&l->keeper, words, error) : -1;
    free(words);
    close(ends[1]);

    if (rc != 0) {
        close(ends[0]);
        return -1;
    }

    l->control_fd = ends[0];
    ev_io_set(&l->control, l->control_fd, EV_READ);
    ev_io_start(l->loop, &l->control);

    return 0;
}


static void
launch_start(launch_t *l)
{
    int     rc;
    char    error[CHILD_ERROR_BYTES];
    char  **words;

    l->pid = 0;
    l->how[0] = '\0';
    l->is_measured = l->devices.count == 0;
    l->was_other = l->engine->facts.state != ENGINE_READY;

    snprintf(error, sizeof(error), "out of memory");
    rc = place_renew(&l->place, &l->folder, error);

    if (rc == 1) {
        openai_move(l->engine, l->place.url);
    }

    words = rc >= 0 ? place_words(&l->place) : NULL;
    rc = words != NULL ? launch_spawn(l, words, error) : -1;
    words_destroy(words);

    if (rc == 0) {
        supervise_started(&l->supervise, mono_us());
        (void) launch_report(l, NULL);
        return;
    }

    supervise_exited(&l->supervise, mono_us());
    log_write(l->log, LOG_ERROR, "cannot start the engine: %s, trying again "
              "in %llu ms", error, (unsigned long long)
              supervise_pause_us(&l->supervise) / 1000);
    (void) launch_report(l, "cannot start: %s", error);
}


/* Makes the control group, in which an earlier run's processes may be left. */
static void
launch_make_cgroup(launch_t *l)
{
    char  name[FOLDER_BYTES];

    snprintf(name, sizeof(name), "llmgw-engine-%s", l->id);
    cgroup_make(name, l->cgroup);
}


/*
 * 1: no process of an earlier run of this adapter still runs.  While this one
 * holds the lock, all processes in the control group are an earlier run's.
 */
static int
launch_is_alone(launch_t *l)
{
    if (!l->is_locked && folder_lock(&l->folder) != 0) {

        if (launch_report(l, "waits: an earlier engine has not ended yet")) {
            log_write(l->log, LOG_WARN, "an engine of an earlier run has not "
                      "ended, or another adapter has this id: waiting for "
                      "\"%s/lock\"", l->folder.path);
        }

        return 0;
    }

    if (!l->is_locked) {
        l->is_locked = 1;
        folder_read(&l->folder, l->command, l->devices.took,
                    l->devices.count);
        launch_make_cgroup(l);
    }

    if (l->cgroup[0] != '\0' && !cgroup_is_empty(l->cgroup)) {
        (void) launch_report(l, "waits: an earlier engine is killed");
        cgroup_kill(l->cgroup);
        return 0;
    }

    return 1;
}


/* 1: the memory that the engine took last time is free, or the wait is over. */
static int
launch_has_memory(launch_t *l)
{
    int       device;
    uint64_t  free_bytes;

    if (devices_are_free(&l->devices, &device, &free_bytes) == 0) {
        l->waiting_ms = 0;
        return 1;
    }

    if (l->waiting_ms == 0) {
        l->waiting_ms = mono_ms();
        log_write(l->log, LOG_WARN, "device %d has %llu MiB free, and the "
                  "engine took %llu MiB: waiting", device,
                  (unsigned long long) free_bytes >> 20,
                  (unsigned long long) l->devices.took[device] >> 20);
    }

    if (mono_ms() - l->waiting_ms >= LAUNCH_MEMORY_MS) {
        log_write(l->log, LOG_WARN, "device %d still lacks memory: starting "
                  "the engine all the same", device);
        l->waiting_ms = 0;
        return 1;
    }

    (void) launch_report(l, "waits for memory: device %d has %llu of %llu MiB",
                       device, (unsigned long long) free_bytes >> 20,
                       (unsigned long long) l->devices.took[device] >> 20);

    return 0;
}


static void
launch_try(launch_t *l)
{
    int  is_alone;

    is_alone = launch_is_alone(l);
    l->is_waiting = !is_alone || !launch_has_memory(l);

    if (!l->is_waiting) {
        launch_start(l);
        launch_arm(l);
        return;
    }

    ev_timer_stop(l->loop, &l->due);
    ev_timer_set(&l->due, is_alone ? LAUNCH_MEMORY_S : LAUNCH_LOCKED_S, 0.);
    ev_timer_start(l->loop, &l->due);
}


static void
launch_do(launch_t *l, supervise_action_t action)
{
    switch (action) {

    case SUPERVISE_START:
        launch_try(l);
        return;

    case SUPERVISE_TERM:
        child_signal(&l->keeper, SIGTERM);
        break;

    case SUPERVISE_KILL:
        log_write(l->log, LOG_WARN, "engine, pid %d, does not end, killing "
                  "its processes", l->pid);
        launch_stop(l, 1);
        break;

    case SUPERVISE_WAIT:
        break;
    }

    launch_arm(l);
}


static void
launch_on_due(struct ev_loop *loop, ev_timer *w, int revents)
{
    launch_t  *l;

    l = w->data;

    if (l->is_waiting) {
        launch_try(l);
        return;
    }

    launch_do(l, supervise_tick(&l->supervise, mono_us()));
}


/* Called before each sleep of the loop. */
static void
launch_on_turn(struct ev_loop *loop, ev_prepare *w, int revents)
{
    launch_t  *l;

    l = w->data;

    if (l->is_measured || l->pid == 0) {
        return;
    }

    if (l->engine->facts.state != ENGINE_READY) {
        l->was_other = 1;

    } else if (l->was_other) {
        l->is_measured = 1;
        devices_measure(&l->devices);
        folder_write(&l->folder, l->command, l->devices.took,
                     l->devices.count);
    }
}


/* --- functions of launch.h */

static int
launch_open_all(launch_t *l, char error[FOLDER_ERROR_BYTES])
{
    if (folder_open(&l->folder, l->id, error) != 0
        || place_open(&l->place, l->command, &l->folder, error) != 0)
    {
        return -1;
    }

    if (tree_adopt() != 0 || output_open(&l->output, l->loop, l->log) != 0) {
        snprintf(error, FOLDER_ERROR_BYTES, "cannot keep an engine: %s",
                 strerror(errno));
        return -1;
    }

    devices_open(&l->devices);

    return 0;
}


int
launch_open(launch_t *l)
{
    char  error[FOLDER_ERROR_BYTES];

    l->control_fd = -1;
    l->folder.lock_fd = -1;
    l->output.read_fd = -1;

    if (launch_open_all(l, error) != 0) {
        log_write(l->log, LOG_ERROR, "%s", error);
        launch_close(l);
        return -1;
    }

    return 0;
}


void
launch_begin(launch_t *l)
{
    child_init(&l->keeper, l->loop, launch_on_keeper, l);
    ev_init(&l->control, launch_on_word);
    ev_init(&l->due, launch_on_due);
    ev_timer_init(&l->sweep, launch_on_sweep, LAUNCH_SWEEP_S, LAUNCH_SWEEP_S);
    ev_timer_init(&l->give_up, launch_on_give_up, LAUNCH_GIVE_UP_S, 0.);
    ev_prepare_init(&l->watch, launch_on_turn);
    l->control.data = l;
    l->due.data = l;
    l->sweep.data = l;
    l->give_up.data = l;
    l->watch.data = l;

    ev_prepare_start(l->loop, &l->watch);
    supervise_init(&l->supervise, 0, 0, mono_us());
    supervise_set_stop(&l->supervise, 1, l->stop_timeout_ms * 1000);
    launch_arm(l);
}


void
launch_stop(launch_t *l, int is_hurried)
{
    if (l->supervise.state != SUPERVISE_STOPPING) {
        l->is_waiting = 0;
        launch_do(l, supervise_stop(&l->supervise, mono_us()));
    }

    if (l->supervise.state == SUPERVISE_ENDED) {
        launch_over(l);
        return;
    }

    if (is_hurried && !ev_is_active(&l->give_up)) {
        launch_kill(l);
        ev_timer_start(l->loop, &l->give_up);
        ev_timer_stop(l->loop, &l->due);
    }
}


void
launch_close(launch_t *l)
{
    if (l->keeper.loop != NULL) {
        launch_kill(l);
        child_done(&l->keeper);
        ev_prepare_stop(l->loop, &l->watch);
        ev_timer_stop(l->loop, &l->due);
        ev_timer_stop(l->loop, &l->sweep);
        ev_timer_stop(l->loop, &l->give_up);
    }

    output_close(&l->output);
    devices_close(&l->devices);
    folder_close(&l->folder);
    place_close(&l->place);
}
