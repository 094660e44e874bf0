
/*
 * What an agent knows about the members: it is asked on its control socket
 * twice a second, as by `llmgwctl members`.
 */

#ifndef UP_MEMBERS_H
#define UP_MEMBERS_H

#include <ev.h>
#include <jansson.h>
#include <limits.h>

#include "common/line_conn.h"


typedef void (*members_pt)(void *data, const json_t *members);

typedef struct {
    struct ev_loop  *loop;
    line_conn_t     *conn;          /* NULL: not connected */
    ev_timer         timer;
    char             path[PATH_MAX];
    unsigned         silence;       /* questions since the last answer */
    members_pt       on_members;
    void            *data;
} members_t;


/* path is that of the control socket, which need not exist yet. */
void members_init(members_t *members, struct ev_loop *loop, const char *path,
    members_pt on_members, void *data);
void members_done(members_t *members);

#endif /* UP_MEMBERS_H */
