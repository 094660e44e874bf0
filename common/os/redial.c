
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/os/redial.h"


static void
redial_on_due(struct ev_loop *loop, ev_timer *w, int revents)
{
    redial_connect(w->data);
}


void
redial_init(redial_t *r)
{
    r->pause_s = REDIAL_MIN_S;
    ev_init(&r->timer, redial_on_due);
    r->timer.data = r;
}


static void
redial_on_line(line_conn_t *conn, char *line, size_t len)
{
    json_t    *message;
    redial_t  *r;

    r = line_conn_data(conn);
    message = json_loadb(line, len, 0, NULL);
    r->callbacks->on_message(r->data, message);
    json_decref(message);
}


static void
redial_on_close(line_conn_t *conn, const char *reason)
{
    redial_t  *r;

    r = line_conn_data(conn);
    r->conn = NULL;
    r->callbacks->on_lost(r->data, reason != NULL ? reason
                                                  : "connection closed");
}


void
redial_connect(redial_t *r)
{
    int  fd;

    static const line_conn_callbacks_t  callbacks = {
        redial_on_line, redial_on_close
    };

    fd = line_conn_connect(r->path);

    if (fd < 0) {
        r->callbacks->on_lost(r->data, strerror(errno));
        return;
    }

    r->conn = line_conn_create(r->loop, fd, &callbacks, r);

    if (r->conn == NULL) {
        close(fd);
        r->callbacks->on_lost(r->data, "out of memory");
        return;
    }

    r->callbacks->on_connected(r->data);
}


int
redial_send(redial_t *r, json_t *message, int fd)
{
    char  *text;

    text = message != NULL ? json_dumps(message, JSON_COMPACT) : NULL;
    json_decref(message);

    if (text == NULL) {
        return -1;
    }

    if (r->conn != NULL && fd != -1) {
        (void) line_conn_send_fd(r->conn, text, strlen(text), fd);

    } else if (r->conn != NULL) {
        (void) line_conn_send(r->conn, text, strlen(text));
    }

    free(text);

    return 0;
}


int
redial_fine(redial_t *r)
{
    int  was_troubled;

    was_troubled = r->is_troubled;
    r->is_troubled = 0;
    r->pause_s = REDIAL_MIN_S;

    return was_troubled;
}


void
redial_trouble(redial_t *r, const char *what, const char *then)
{
    if (!r->is_troubled) {
        r->is_troubled = 1;
        log_write(r->log, LOG_WARN, "%s \"%s\": %s, %s", r->name, r->path,
                  what, then);
    }
}


void
redial_again(redial_t *r, const char *what, const char *then)
{
    redial_trouble(r, what, then);
    redial_after(r, r->pause_s);

    r->pause_s = r->pause_s * 2 < REDIAL_MAX_S ? r->pause_s * 2
                                               : REDIAL_MAX_S;
}


void
redial_after(redial_t *r, double s)
{
    redial_stop(r);
    ev_timer_set(&r->timer, s, 0);
    ev_timer_start(r->loop, &r->timer);
}


void
redial_stop(redial_t *r)
{
    ev_timer_stop(r->loop, &r->timer);

    if (r->conn != NULL) {
        line_conn_destroy(r->conn);
        r->conn = NULL;
    }
}


void
redial_finish(redial_t *r)
{
    ev_timer_stop(r->loop, &r->timer);

    if (r->conn != NULL) {
        line_conn_finish(r->conn);
        r->conn = NULL;
    }
}
