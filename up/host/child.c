
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "up/host/child.h"
#include "up/host/command.h"


#define CHILD_PAUSE_MIN_S  0.25
#define CHILD_PAUSE_MAX_S  10.0
#define CHILD_STEADY_S     30.0

/* What is read of the end of a log. */
#define CHILD_TAIL_BYTES   2048


static void child_run(child_t *c);


static void
child_set_timer(child_t *c, double after_s)
{
    ev_timer_stop(c->loop, &c->timer);
    ev_timer_set(&c->timer, after_s, 0.);
    ev_timer_start(c->loop, &c->timer);
}


static void
child_gone(child_t *c)
{
    ev_timer_stop(c->loop, &c->timer);
    c->state = CHILD_IDLE;
    c->on_gone(c->data, c);
}


static void
child_back_off(child_t *c)
{
    c->pause_s = ev_now(c->loop) - c->began_at >= CHILD_STEADY_S
                 || c->pause_s == 0 ? CHILD_PAUSE_MIN_S : 2 * c->pause_s;

    if (c->pause_s > CHILD_PAUSE_MAX_S) {
        c->pause_s = CHILD_PAUSE_MAX_S;
    }

    c->state = CHILD_BACKOFF;
    child_set_timer(c, c->pause_s);
}


static void
child_note_end(child_t *c, int status)
{
    int   n;
    char  last[CHILD_WHY_BYTES - 128];

    if (WIFSIGNALED(status)) {
        n = snprintf(c->why, sizeof(c->why), "signal %d", WTERMSIG(status));

    } else {
        n = snprintf(c->why, sizeof(c->why), "exit status %d",
                     WEXITSTATUS(status));
    }

    child_last_words(c, last, sizeof(last));

    if (last[0] != '\0') {
        snprintf(c->why + n, sizeof(c->why) - (size_t) n, "; its log ends: %s",
                 last);
    }
}


static void
child_on_end(struct ev_loop *loop, ev_child *w, int events)
{
    child_t  *c;

    c = w->data;
    ev_child_stop(loop, w);
    (void) kill(-c->pid, c->end_signal);    /* what it left */
    c->pid = 0;
    child_note_end(c, w->rstatus);

    if (c->state == CHILD_STOPPING) {
        child_gone(c);
        return;
    }

    child_back_off(c);
}


static void
child_on_timer(struct ev_loop *loop, ev_timer *w, int events)
{
    child_t  *c;

    c = w->data;

    if (c->state == CHILD_BACKOFF) {
        child_run(c);

    } else if (c->pid != 0) {
        (void) kill(-c->pid, SIGKILL);

    } else {
        child_gone(c);
    }
}


static void
child_run(child_t *c)
{
    int    log;
    pid_t  pid;

    log = open(c->log, O_WRONLY|O_APPEND|O_CREAT|O_CLOEXEC, 0640);
    pid = log != -1 ? command_spawn(c->argv, log, log, c->end_signal) : -1;
    c->began_at = ev_now(c->loop);
    c->starts++;

    if (pid == -1) {
        snprintf(c->why, sizeof(c->why), "not started: %s", strerror(errno));
        child_back_off(c);

    } else {
        c->pid = pid;
        c->state = CHILD_RUNNING;
        ev_child_set(&c->reaper, pid, 0);
        ev_child_start(c->loop, &c->reaper);
    }

    if (log != -1) {
        close(log);
    }
}


void
child_init(child_t *child, struct ev_loop *loop, child_gone_pt on_gone,
    void *data)
{
    child->loop = loop;
    child->on_gone = on_gone;
    child->data = data;
    ev_init(&child->reaper, child_on_end);
    ev_init(&child->timer, child_on_timer);
    child->reaper.data = child;
    child->timer.data = child;
}


void
child_start(child_t *child)
{
    child_run(child);
}


void
child_stop(child_t *child, double patience_s)
{
    double  left_s;

    left_s = child->state == CHILD_STOPPING && ev_is_active(&child->timer)
             ? ev_timer_remaining(child->loop, &child->timer) : patience_s;
    child->state = CHILD_STOPPING;

    if (child->pid == 0) {
        child_set_timer(child, 0.);
        return;
    }

    (void) kill(child->pid, child->end_signal);
    child_set_timer(child, left_s < patience_s ? left_s : patience_s);
}


void
child_signal(const child_t *child, int signal_number)
{
    if (child->pid != 0) {
        (void) kill(child->pid, signal_number);
    }
}


/* Whoever writes appends, and goes on at the beginning. */
void
child_trim_log(const child_t *child)
{
    struct stat  st;

    if (stat(child->log, &st) == 0 && st.st_size > CHILD_LOG_BYTES) {
        (void) !truncate(child->log, 0);
    }
}


void
child_last_words(const child_t *child, char *line, size_t bytes)
{
    int      fd;
    off_t    size;
    char     tail[CHILD_TAIL_BYTES + 1], *begin;
    ssize_t  n;

    line[0] = '\0';
    fd = open(child->log, O_RDONLY|O_CLOEXEC);

    if (fd == -1) {
        return;
    }

    size = lseek(fd, 0, SEEK_END);
    n = pread(fd, tail, CHILD_TAIL_BYTES,
              size > CHILD_TAIL_BYTES ? size - CHILD_TAIL_BYTES : 0);
    close(fd);

    while (n > 0 && (tail[n - 1] == '\n' || tail[n - 1] == ' ')) {
        n--;
    }

    if (n <= 0) {
        return;
    }

    tail[n] = '\0';
    begin = strrchr(tail, '\n');
    snprintf(line, bytes, "%s", begin != NULL ? begin + 1 : tail);
}
