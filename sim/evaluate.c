
/*
 * Many runs at once.
 *
 * A child writes its evaluation into a pipe, in one write that a pipe takes
 * whole, and exits; the parent reads the pipes in the order of the runs.
 */

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/evaluate.h"


#define EVALUATE_JOBS  256          /* the most at one time */


typedef struct {
    pid_t  pid;
    int    fd;
} evaluate_child_t;


int
evaluate_cores(void)
{
    int        n;
    cpu_set_t  set;

    n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;

    return n < 1 ? 1 : n > EVALUATE_JOBS ? EVALUATE_JOBS : n;
}


/* --- in the child process */

static void
evaluate_goodput(const report_metrics_t *m, evaluation_t *out)
{
    size_t                    i;
    int64_t                   good, injected;
    const report_attained_t  *a;

    good = injected = 0;

    for (i = 0; m->targets != NULL && i < m->targets->n; i++) {
        a = &m->classes[i].attained;
        good += a->good;
        injected += a->injected;
        out->attained[i] = a->injected == 0 ? 1
                           : (double) a->good / (double) a->injected;
    }

    out->goodput = injected == 0 ? 0 : (double) good / (double) injected;
}


static void
evaluate_one(const evaluate_t *e, const sim_settings_t *settings,
    evaluation_t *out)
{
    char              error[VARIANT_ERROR_BYTES];
    variant_run_t     v;
    report_summary_t  s;

    memset(out, 0, sizeof(*out));

    if (variant_run(&v, e->source, settings, NULL, error) != 0) {
        out->failed = 1;
        snprintf(out->error, sizeof(out->error), "%.250s", error);
        return;
    }

    if (report_summary_init(&s, &v.run) != 0) {
        out->failed = 1;
        snprintf(out->error, sizeof(out->error), "no memory");
        return;
    }

    evaluate_goodput(&s.cluster, out);
    out->completed = s.cluster.completed;
    out->fitness = report_fitness_score(e->fitness, &s);
    out->ttft_p99_ms = s.ttft.p99 / 1e3;
    out->e2e_p99_ms = s.e2e.p99 / 1e3;
}


/* Discards notes on stderr, which would come once for each run. */
static void
evaluate_child(const evaluate_t *e, const sim_settings_t *settings, int fd)
{
    int           null;
    evaluation_t  out;

    null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (null >= 0) {
        dup2(null, STDERR_FILENO);
    }

    evaluate_one(e, settings, &out);
    _exit(write(fd, &out, sizeof(out)) != (ssize_t) sizeof(out));
}


/* --- in the parent process */

static int
evaluate_start(const evaluate_t *e, const sim_settings_t *settings,
    evaluate_child_t *child)
{
    int  fds[2];

    if (pipe2(fds, O_CLOEXEC) != 0) {
        return -1;
    }

    child->pid = fork();

    if (child->pid == 0) {
        close(fds[0]);
        evaluate_child(e, settings, fds[1]);
    }

    close(fds[1]);
    child->fd = fds[0];

    if (child->pid < 0) {
        close(fds[0]);
        return -1;
    }

    return 0;
}


static void
evaluate_collect(const evaluate_t *e, evaluate_child_t *child,
    evaluation_t *out)
{
    int      status;
    ssize_t  n;

    do {
        n = read(child->fd, out, sizeof(*out));
    } while (n < 0 && errno == EINTR);

    close(child->fd);

    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR) {
        /* void */
    }

    if (n != (ssize_t) sizeof(*out)) {
        memset(out, 0, sizeof(*out));
        out->failed = 1;
        snprintf(out->error, sizeof(out->error), "a simulation died");
    }

    if (e->done != NULL) {
        e->done(e->data);
    }
}


int
evaluate(const evaluate_t *e, const sim_settings_t *settings, size_t n,
    evaluation_t *evaluations)
{
    int                rc;
    size_t             begun, ended;
    evaluate_child_t   children[EVALUATE_JOBS];

    rc = 0;
    begun = ended = 0;
    fflush(stdout);

    while (ended < n) {
        while (rc == 0 && begun < n && begun - ended < (size_t) e->jobs) {
            rc = evaluate_start(e, &settings[begun],
                                &children[begun % EVALUATE_JOBS]);
            begun += rc == 0;
        }

        if (ended == begun) {
            return -1;
        }

        evaluate_collect(e, &children[ended % EVALUATE_JOBS],
                         &evaluations[ended]);
        ended++;
    }

    return rc;
}
