
/*
 * Notifies the service manager that this agent serves, and still does.
 *
 * systemd's protocol is one datagram of NAME=value lines to the unix socket
 * that $NOTIFY_SOCKET names ('@' first: an abstract one); twenty lines here
 * instead of a library.  READY=1 when segment and control socket are there,
 * WATCHDOG=1 twice in the time of $WATCHDOG_USEC, from the loop: when the loop
 * hangs, that stops, and the agent is restarted.
 *
 * The variables are taken out of the environment: a child that sent
 * "ready" or "stopping" would speak for this agent.
 */

#ifndef NOTIFY_H
#define NOTIFY_H

#include <ev.h>
#include <sys/socket.h>
#include <sys/un.h>


typedef struct {
    struct ev_loop      *loop;
    int                  fd;            /* -1: no notifications are wanted */
    struct sockaddr_un   address;
    socklen_t            address_len;
    ev_timer             heartbeat;
} notify_t;


/* Reads the environment.  A socket that cannot be used counts as absent. */
void notify_init(notify_t *notify, struct ev_loop *loop);
void notify_done(notify_t *notify);

void notify_ready(notify_t *notify);

/* The agent leaves; this may take as long as streams may take to finish. */
void notify_stopping(notify_t *notify);

#endif /* NOTIFY_H */
