
/*
 * A timerfd for the next start, a timer for progress, SIGINT.
 */

#include <signal.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "common/load/pace.h"
#include "common/os/mono.h"


#define PACE_NS_S        1000000000ULL
#define PACE_PROGRESS_S  0.5


static void
pace_arm(pace_t *pace, uint64_t at_ns)
{
    struct itimerspec  when;

    memset(&when, 0, sizeof(when));
    when.it_value.tv_sec = (time_t) (at_ns / PACE_NS_S);
    when.it_value.tv_nsec = (long) (at_ns % PACE_NS_S);

    (void) timerfd_settime(pace->fd, TFD_TIMER_ABSTIME, &when, NULL);
}


void
pace_look(pace_t *pace)
{
    uint64_t  due_ns, now_ns;

    now_ns = mono_ns();

    while ((due_ns = pace->source->next(pace->data)) != PACE_NEVER) {

        if (due_ns > now_ns) {
            pace_arm(pace, due_ns);
            break;
        }

        if (pace->source->start(pace->data, due_ns > 0 ? due_ns : now_ns)
            != 0)
        {
            break;
        }
    }

    pace->source->looked(pace->data);
}


static void
pace_on_timer(struct ev_loop *loop, ev_io *w, int revents)
{
    pace_t    *pace;
    uint64_t   fired;

    pace = w->data;

    if (read(pace->fd, &fired, sizeof(fired)) == sizeof(fired)) {
        pace_look(pace);
    }
}


static void
pace_on_progress(struct ev_loop *loop, ev_timer *w, int revents)
{
    pace_t  *pace;

    pace = w->data;
    pace->source->progress(pace->data);
}


static void
pace_on_interrupt(struct ev_loop *loop, ev_signal *w, int revents)
{
    pace_t  *pace;

    pace = w->data;
    pace->source->interrupt(pace->data);
}


int
pace_init(pace_t *pace, struct ev_loop *loop, const pace_source_t *source,
    void *data)
{
    pace->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK|TFD_CLOEXEC);

    if (pace->fd < 0) {
        return -1;
    }

    pace->loop = loop;
    pace->source = source;
    pace->data = data;

    ev_io_init(&pace->timer, pace_on_timer, pace->fd, EV_READ);
    ev_timer_init(&pace->progress, pace_on_progress, PACE_PROGRESS_S,
                  PACE_PROGRESS_S);
    ev_signal_init(&pace->interrupt, pace_on_interrupt, SIGINT);
    pace->timer.data = pace;
    pace->progress.data = pace;
    pace->interrupt.data = pace;

    ev_io_start(loop, &pace->timer);
    ev_signal_start(loop, &pace->interrupt);

    if (isatty(STDERR_FILENO)) {
        ev_timer_start(loop, &pace->progress);
    }

    return 0;
}


void
pace_done(pace_t *pace)
{
    if (pace->loop == NULL) {
        return;
    }

    ev_io_stop(pace->loop, &pace->timer);
    ev_timer_stop(pace->loop, &pace->progress);
    ev_signal_stop(pace->loop, &pace->interrupt);
    close(pace->fd);
    pace->loop = NULL;
}


int
pace_has_progress(const pace_t *pace)
{
    return pace->loop != NULL && ev_is_active(&pace->progress);
}
