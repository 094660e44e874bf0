
/*
 * Asks a replica that does not report whether it serves: grpc.health.v1
 * every second, on one connection that is kept.
 *
 * The connection itself tells something, too: it breaks the moment the process
 * dies, long before a check would time out.  A break is looked into at once
 * (an engine may close idle or old connections): a connection that is refused,
 * or that breaks before it has carried an answer, says that no replica is
 * there.
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
    HEALTH_SILENT,          /* the connection stands and no answer comes */
    HEALTH_GONE             /* refused or broken */
} health_verdict_t;

typedef struct health_s  health_t;

/* why: one line, of a connection that cannot be made; else NULL. */
typedef void (*health_verdict_pt)(void *data, health_verdict_t verdict,
    const char *why);

/*
 * The first question is asked a little later.  options are copied.  NULL: out
 * of memory.
 */
health_t *health_create(struct ev_loop *loop, const address_t *address,
    const grpc_conn_options_t *options, health_verdict_pt on_verdict,
    void *data);

/* Not within on_verdict. */
void health_destroy(health_t *health);

#endif /* HEALTH_H */
