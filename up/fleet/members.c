
#include <stdio.h>
#include <string.h>

#include "up/fleet/members.h"


#define MEMBERS_PERIOD_S  0.5

/* Questions without an answer after which the connection is made again. */
#define MEMBERS_SILENCE   10

#define MEMBERS_QUESTION  "{\"cmd\":\"members\"}"


static void
members_drop(members_t *m)
{
    if (m->conn != NULL) {
        line_conn_destroy(m->conn);
        m->conn = NULL;
    }
}


static void
members_on_line(line_conn_t *conn, char *line, size_t len)
{
    json_t     *answer, *members;
    members_t  *m;

    m = line_conn_data(conn);
    m->silence = 0;
    answer = json_loadb(line, len, 0, NULL);
    members = json_object_get(answer, "members");

    if (json_is_array(members)) {
        m->on_members(m->data, members);
    }

    json_decref(answer);
}


static void
members_on_close(line_conn_t *conn, const char *reason)
{
    members_t  *m;

    m = line_conn_data(conn);
    m->conn = NULL;
}


static void
members_connect(members_t *m)
{
    int  fd;

    static const line_conn_callbacks_t  callbacks = {
        members_on_line, members_on_close
    };

    fd = line_conn_connect(m->path);

    if (fd != -1) {
        m->conn = line_conn_create(m->loop, fd, &callbacks, m);
        m->silence = 0;
    }
}


static void
members_on_timer(struct ev_loop *loop, ev_timer *w, int events)
{
    members_t  *m;

    m = w->data;

    if (m->silence >= MEMBERS_SILENCE) {
        members_drop(m);
    }

    if (m->conn == NULL) {
        members_connect(m);
    }

    if (m->conn != NULL && m->silence++ == 0) {
        (void) line_conn_send(m->conn, MEMBERS_QUESTION,
                              strlen(MEMBERS_QUESTION));
    }
}


void
members_init(members_t *members, struct ev_loop *loop, const char *path,
    members_pt on_members, void *data)
{
    members->loop = loop;
    members->on_members = on_members;
    members->data = data;
    snprintf(members->path, sizeof(members->path), "%s", path);
    ev_timer_init(&members->timer, members_on_timer, 0., MEMBERS_PERIOD_S);
    members->timer.data = members;
    ev_timer_start(loop, &members->timer);
}


void
members_done(members_t *members)
{
    ev_timer_stop(members->loop, &members->timer);
    members_drop(members);
}
