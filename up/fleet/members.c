
#include <stdio.h>
#include <string.h>

#include "up/fleet/view.h"


#define VIEW_PERIOD_S  0.5

/* Then the connection is made anew. */
#define VIEW_SILENCE   10

#define VIEW_QUESTION  "{\"cmd\":\"members\"}"


static void
view_drop(view_t *v)
{
    if (v->conn != NULL) {
        line_conn_destroy(v->conn);
        v->conn = NULL;
    }
}


static void
view_on_line(line_conn_t *conn, char *line, size_t len)
{
    json_t  *answer, *members;
    view_t  *v;

    v = line_conn_data(conn);
    v->silence = 0;
    answer = json_loadb(line, len, 0, NULL);
    members = json_object_get(answer, "members");

    if (json_is_array(members)) {
        v->on_members(v->data, members);
    }

    json_decref(answer);
}


static void
view_on_close(line_conn_t *conn, const char *reason)
{
    view_t  *v;

    v = line_conn_data(conn);
    v->conn = NULL;
}


static void
view_connect(view_t *v)
{
    int  fd;

    static const line_conn_callbacks_t  callbacks = {
        view_on_line, view_on_close
    };

    fd = line_conn_connect(v->path);

    if (fd != -1) {
        v->conn = line_conn_create(v->loop, fd, &callbacks, v);
        v->silence = 0;
    }
}


static void
view_on_timer(struct ev_loop *loop, ev_timer *w, int events)
{
    view_t  *v;

    v = w->data;

    if (v->silence >= VIEW_SILENCE) {
        view_drop(v);
    }

    if (v->conn == NULL) {
        view_connect(v);
    }

    if (v->conn != NULL && v->silence++ == 0) {
        (void) line_conn_send(v->conn, VIEW_QUESTION, strlen(VIEW_QUESTION));
    }
}


void
view_init(view_t *view, struct ev_loop *loop, const char *path,
    view_pt on_members, void *data)
{
    view->loop = loop;
    view->on_members = on_members;
    view->data = data;
    snprintf(view->path, sizeof(view->path), "%s", path);
    ev_timer_init(&view->timer, view_on_timer, 0., VIEW_PERIOD_S);
    view->timer.data = view;
    ev_timer_start(loop, &view->timer);
}


void
view_done(view_t *view)
{
    ev_timer_stop(view->loop, &view->timer);
    view_drop(view);
}
