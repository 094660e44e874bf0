
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "state/notify.h"


/* A shorter watchdog interval is a mistake: the agent would do nothing else. */
#define NOTIFY_MIN_WATCHDOG_US  10000ULL


/* Sends a message; if the manager does not listen, nothing can be done. */
static void
notify_send(notify_t *notify, const char *text)
{
    if (notify->fd != -1) {
        (void) sendto(notify->fd, text, strlen(text),
                      MSG_NOSIGNAL|MSG_DONTWAIT,
                      (struct sockaddr *) &notify->address,
                      notify->address_len);
    }
}


static void
notify_beat(struct ev_loop *loop, ev_timer *heartbeat, int events)
{
    notify_send(heartbeat->data, "WATCHDOG=1");
}


static int
notify_set_address(notify_t *notify, const char *path)
{
    size_t  len;

    len = path ? strlen(path) : 0;

    if (len < 2 || len >= sizeof(notify->address.sun_path)
        || (path[0] != '/' && path[0] != '@'))
    {
        return -1;
    }

    memset(&notify->address, 0, sizeof(notify->address));
    notify->address.sun_family = AF_UNIX;
    memcpy(notify->address.sun_path, path, len);

    if (path[0] == '@') {
        notify->address.sun_path[0] = '\0';
    }

    notify->address_len = offsetof(struct sockaddr_un, sun_path) + len;

    return 0;
}


/*
 * The watchdog interval in seconds; 0: there is none, or it is meant for
 * another process.
 */
static double
notify_watchdog_s(void)
{
    const char  *usec, *pid;

    usec = getenv("WATCHDOG_USEC");
    pid = getenv("WATCHDOG_PID");

    if (usec == NULL || (pid != NULL && atol(pid) != (long) getpid())
        || strtoull(usec, NULL, 10) < NOTIFY_MIN_WATCHDOG_US)
    {
        return 0;
    }

    return strtoull(usec, NULL, 10) / 1e6;
}


void
notify_init(notify_t *notify, struct ev_loop *loop)
{
    double  watchdog_s;

    notify->loop = loop;
    notify->fd = -1;
    ev_init(&notify->heartbeat, notify_beat);
    notify->heartbeat.data = notify;

    if (notify_set_address(notify, getenv("NOTIFY_SOCKET")) == 0) {
        notify->fd = socket(AF_UNIX, SOCK_DGRAM|SOCK_CLOEXEC, 0);
    }

    watchdog_s = notify_watchdog_s();

    if (notify->fd != -1 && watchdog_s > 0) {
        ev_timer_set(&notify->heartbeat, 0., watchdog_s / 2);
        ev_timer_start(loop, &notify->heartbeat);
    }

    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}


void
notify_done(notify_t *notify)
{
    ev_timer_stop(notify->loop, &notify->heartbeat);

    if (notify->fd != -1) {
        close(notify->fd);
        notify->fd = -1;
    }
}


void
notify_ready(notify_t *notify)
{
    notify_send(notify, "READY=1");
}


void
notify_stopping(notify_t *notify)
{
    notify_send(notify, "STOPPING=1");
}
