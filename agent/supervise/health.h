
/*
 * Asks a replica that does not report whether it serves, by grpc.health.v1
 * every second, on one connection that is kept.
 *
 * The connection itself is a sign, too: it breaks the moment the process dies,
 * long before a check would time out.  A break is checked at once by a new
 * connection (an engine may close idle or old ones): if that is refused, or
 * breaks before it has carried an answer, there is no replica.
 *
 *     OK and SERVING, or UNIMPLEMENTED     serving: it has taken a request
 *     any other answer                     not serving
 *     none for 3 s, connection stands      silent
 *     refused, broken                      gone
 */

#ifndef HEALTH_H
#define HEALTH_H

#include <ev.h>

#include "common/grpc/conn.h"


typedef enum {
    HEALTH_SERVING = 0,
    HEALTH_NOT_SERVING,
    HEALTH_SILENT,          /* the connection exists, but no answer comes */
    HEALTH_GONE             /* the connection was refused or broke */
} health_verdict_t;

typedef struct health_s  health_t;

/*
 * Gets each verdict.  why: one line about a connection that cannot be made;
 * else NULL.
 */
typedef void (*health_verdict_pt)(void *data, health_verdict_t verdict,
    const char *why);

/*
 * Begins to ask; the first question is asked a little later.  options are
 * copied.  NULL: out of memory.
 */
health_t *health_create(struct ev_loop *loop, const address_t *address,
    const grpc_conn_options_t *options, health_verdict_pt on_verdict,
    void *data);

/* Not to be called within on_verdict. */
void health_destroy(health_t *health);

#endif /* HEALTH_H */
