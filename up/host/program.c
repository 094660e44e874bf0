
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/os/mono.h"
#include "up/host/bound.h"
#include "up/host/program.h"


/* Bytes that are read from the end of a log. */
#define PROGRAM_TAIL_BYTES  2048


/* --- its log */

/* The program appends, so it continues at the beginning. */
void
program_trim_log(const program_t *program)
{
    struct stat  st;

    if (stat(program->log, &st) == 0 && st.st_size > PROGRAM_LOG_BYTES) {
        (void) !truncate(program->log, 0);
    }
}


const char *
program_log_name(const program_t *program)
{
    return program->log[0] != '\0' ? program->log : "this log";
}


static int
program_open_log(const program_t *p)
{
    return p->log[0] != '\0'
           ? open(p->log, O_WRONLY|O_APPEND|O_CREAT|O_CLOEXEC, 0640)
           : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}


/* Reads the last line of the program's log; "": there is none. */
static void
program_last_words(const program_t *p, char *line, size_t bytes)
{
    int      fd;
    off_t    size;
    char     tail[PROGRAM_TAIL_BYTES + 1], *begin;
    ssize_t  n;

    line[0] = '\0';
    fd = open(p->log, O_RDONLY|O_CLOEXEC);

    if (fd == -1) {
        return;
    }

    size = lseek(fd, 0, SEEK_END);
    n = pread(fd, tail, PROGRAM_TAIL_BYTES,
              size > PROGRAM_TAIL_BYTES ? size - PROGRAM_TAIL_BYTES : 0);
    close(fd);

    while (n > 0 && (tail[n - 1] == '\n' || tail[n - 1] == ' ')) {
        n--;
    }

    if (n <= 0) {
        return;
    }

    tail[n] = '\0';
    begin = strrchr(tail, '\n');
    snprintf(line, bytes, "%.*s", (int) bytes - 1,
             begin != NULL ? begin + 1 : tail);
}


/* --- its process */

static void
program_spawn(program_t *p)
{
    int      rc;
    char     error[CHILD_ERROR_BYTES];
    bound_t  bound;

    p->starts++;
    p->child.output_fd = program_open_log(p);

    if (p->child.output_fd == -1) {
        snprintf(error, sizeof(error), "%s", strerror(errno));
        rc = -1;

    } else {
        bound_fill(&bound, p->end_signal, p->argv);
        rc = child_start(&p->child, bound.words, error);
        close(p->child.output_fd);
    }

    if (rc == 0) {
        supervise_started(&p->supervise, mono_us());
        return;
    }

    snprintf(p->why, sizeof(p->why), "not started: %s", error);
    (void) supervise_exited(&p->supervise, mono_us());
}


/*
 * Sets the timer.  A program that has ended for good is reported from the loop,
 * too.
 */
static void
program_arm(program_t *p)
{
    uint64_t  next_us, now_us;

    now_us = mono_us();
    next_us = p->supervise.state == SUPERVISE_ENDED
              ? now_us : supervise_next_us(&p->supervise);
    ev_timer_stop(p->child.loop, &p->due);

    if (next_us != UINT64_MAX) {
        ev_timer_set(&p->due, next_us > now_us
                     ? (double) (next_us - now_us) / 1e6 : 0., 0.);
        ev_timer_start(p->child.loop, &p->due);
    }
}


static void
program_do(program_t *p, supervise_action_t action)
{
    switch (action) {

    case SUPERVISE_START:
        program_spawn(p);
        break;

    case SUPERVISE_TERM:
        child_signal(&p->child, p->end_signal);
        break;

    case SUPERVISE_KILL:
        child_kill(&p->child);
        break;

    case SUPERVISE_WAIT:
        break;
    }

    program_arm(p);
}


static void
program_on_due(struct ev_loop *loop, ev_timer *w, int events)
{
    program_t  *p;

    p = w->data;

    if (p->supervise.state == SUPERVISE_ENDED) {
        p->on_gone(p->data, p);
        return;
    }

    program_do(p, supervise_tick(&p->supervise, mono_us()));
}


static void
program_on_end(void *data, pid_t pid, const char *how)
{
    int         n;
    char        last[PROGRAM_WHY_BYTES - CHILD_END_BYTES - 32];
    program_t  *p;

    p = data;
    (void) kill(-pid, p->end_signal);       /* what is left of its group */
    program_last_words(p, last, sizeof(last));
    n = snprintf(p->why, sizeof(p->why), "%s", how);

    if (last[0] != '\0') {
        snprintf(p->why + n, sizeof(p->why) - (size_t) n, "; its log ends: %s",
                 last);
    }

    program_do(p, supervise_exited(&p->supervise, mono_us()));
}


void
program_init(program_t *program, struct ev_loop *loop,
    program_gone_pt on_gone, void *data)
{
    program->on_gone = on_gone;
    program->data = data;
    child_init(&program->child, loop, program_on_end, program);
    program->child.program = BOUND_PROGRAM;
    ev_init(&program->due, program_on_due);
    program->due.data = program;
}


void
program_start(program_t *program)
{
    uint64_t  now_us;

    now_us = mono_us();
    supervise_init(&program->supervise, 0, 0, now_us);
    program_do(program, supervise_tick(&program->supervise, now_us));
}


void
program_stop(program_t *program, double patience_s)
{
    supervise_t  *s;

    s = &program->supervise;
    supervise_set_stop(s, s->terms + 1, (uint64_t) (patience_s * 1e6));
    program_do(program, supervise_stop(s, mono_us()));
}


int
program_is_broken(const program_t *program)
{
    return program->supervise.state == SUPERVISE_BACKOFF;
}


void
program_done(program_t *program)
{
    if (program->child.loop != NULL) {
        ev_timer_stop(program->child.loop, &program->due);
        child_done(&program->child);
    }
}
