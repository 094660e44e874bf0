
#include <errno.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/line_conn.h"
#include "replica/standby/startup_wait.h"


#define STARTUP_WAIT_POLL_S      0.05
#define STARTUP_WAIT_PATH_BYTES  sizeof(((struct sockaddr_un *) 0)->sun_path)


/* Copies the path at the list's beginning, and returns its length. */
static size_t
startup_wait_path(const char *list, char *path)
{
    size_t  len;

    len = strcspn(list, ",");
    memcpy(path, list, len);
    path[len] = '\0';

    return len;
}


static int
startup_wait_is_there(const char *path)
{
    int  fd;

    fd = line_conn_connect(path);

    if (fd >= 0) {
        close(fd);
    }

    return fd >= 0 || errno == EAGAIN;      /* its backlog is full */
}


static void
startup_wait_look(startup_wait_t *g)
{
    char    path[STARTUP_WAIT_PATH_BYTES];
    size_t  len;

    while (g->next != NULL) {
        len = startup_wait_path(g->next, path);

        if (!startup_wait_is_there(path)) {
            if (!g->is_logged) {
                g->is_logged = 1;
                log_write(g->log, LOG_INFO, "standby: waiting for socket "
                          "\"%s\": %s", path, strerror(errno));
            }

            return;
        }

        g->is_logged = 0;
        g->next = g->next[len] == ',' ? g->next + len + 1 : NULL;
    }

    ev_timer_stop(g->loop, &g->timer);
    g->on_open(g->data);
}


static void
startup_wait_on_timer(struct ev_loop *loop, ev_timer *w, int revents)
{
    startup_wait_look(w->data);
}


void
startup_wait_init(startup_wait_t *g)
{
    g->next = g->sockets;
    g->is_logged = 0;
    ev_timer_init(&g->timer, startup_wait_on_timer, 0, STARTUP_WAIT_POLL_S);
    g->timer.data = g;
    ev_timer_start(g->loop, &g->timer);
}


void
startup_wait_done(startup_wait_t *g)
{
    ev_timer_stop(g->loop, &g->timer);
}


int
startup_wait_list_is_valid(const char *list)
{
    size_t  len;

    for ( ;; ) {
        len = strcspn(list, ",");

        if (len == 0 || len >= STARTUP_WAIT_PATH_BYTES) {
            return 0;
        }

        if (list[len] == '\0') {
            return 1;
        }

        list += len + 1;
    }
}
