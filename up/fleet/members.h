
/*
 * What the gateway's agent knows of its members: asked on its control socket,
 * as `llmgwctl members` does, twice a second.
 */

#ifndef VIEW_H
#define VIEW_H

#include <ev.h>
#include <jansson.h>
#include <limits.h>

#include "common/line_conn.h"


typedef void (*view_pt)(void *data, const json_t *members);

typedef struct {
    struct ev_loop  *loop;
    line_conn_t     *conn;          /* NULL: none */
    ev_timer         timer;
    char             path[PATH_MAX];
    unsigned         silence;       /* questions without an answer */
    view_pt          on_members;
    void            *data;
} view_t;


/* path: of the control socket, which need not be there yet. */
void view_init(view_t *view, struct ev_loop *loop, const char *path,
    view_pt on_members, void *data);
void view_done(view_t *view);

#endif /* VIEW_H */
