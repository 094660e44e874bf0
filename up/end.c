
/*
 * Ends a gateway, so that streams can finish.
 *
 *   nginx     QUIT: accepts no more, and ends after its last stream, at most
 *             --drain-timeout later (worker_shutdown_timeout)
 *   adapters  TERM, when no stream can come any more; then their agents
 *   agent     TERM: the gateway's, last of all
 *
 * After a second signal, streams are not waited for.  A process that hangs is
 * killed END_SLACK_S after the end of the drain.  If this process is killed
 * itself, the kernel sends QUIT and TERM to all at once (host/bound.h), and
 * each of them waits for its streams by itself.
 */

#include <signal.h>
#include <stdio.h>

#include "up/up.h"


#define END_SLACK_S    4.5
#define END_NGINX_S    1.5      /* after the drain, for closing */
#define END_AGENT_S    2.0
#define END_HURRIED_S  1.0


static void
end_on_deadline(struct ev_loop *loop, ev_timer *w, int events)
{
    up_t    *up;
    pair_t  *p;

    up = w->data;
    fprintf(stderr, "llmgw up: killing the processes that are left\n");
    child_kill(&up->nginx.child);
    child_kill(&up->agent.child);

    for (p = up->fleet.pairs; p != NULL; p = p->next) {
        child_kill(&p->adapter.child);
        child_kill(&p->agent.child);
    }

    up->status = 1;
    ev_break(loop, EVBREAK_ALL);
}


static void
end_hurry(up_t *up)
{
    up->is_hurried = 1;
    show_end(up);

    switch (up->state) {

    case UP_ENDING_NGINX:
        program_stop(&up->nginx, END_HURRIED_S);
        child_signal(&up->nginx.child, SIGTERM);
        return;

    case UP_ENDING_ENGINES:
        fleet_end(&up->fleet, 1);
        return;

    default:
        program_stop(&up->agent, END_HURRIED_S);
    }
}


void
end_begin(up_t *up)
{
    double  drain_s;

    if (up->state >= UP_ENDING_NGINX) {
        end_hurry(up);
        return;
    }

    up->state = UP_ENDING_NGINX;
    show_end(up);
    drain_s = (double) up->options->drain_timeout_ms / 1000;

    ev_timer_init(&up->deadline, end_on_deadline, drain_s + END_SLACK_S, 0.);
    up->deadline.data = up;
    ev_timer_start(up->loop, &up->deadline);

    program_stop(&up->nginx, drain_s + END_NGINX_S);
}


void
end_on_nginx_gone(void *data, program_t *program)
{
    up_t  *up;

    up = data;
    up->state = UP_ENDING_ENGINES;
    fleet_end(&up->fleet, up->is_hurried);
}


void
end_on_fleet_empty(void *data)
{
    up_t  *up;

    up = data;
    up->state = UP_ENDING_AGENT;
    program_stop(&up->agent, up->is_hurried ? END_HURRIED_S : END_AGENT_S);
}


void
end_on_agent_gone(void *data, program_t *program)
{
    up_t  *up;

    up = data;
    ev_break(up->loop, EVBREAK_ALL);
}
