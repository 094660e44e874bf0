
/*
 * The replica's reports to the agent beside it.
 */

#ifndef AGENT_LINK_H
#define AGENT_LINK_H

#include <ev.h>
#include <stdint.h>

#include "common/log.h"
#include "common/os/redial.h"
#include "replica/engine/engine.h"
#include "replica/lifelock.h"


typedef struct {
    struct ev_loop  *loop;
    const log_t     *log;
    const engine_t  *engine;
    redial_t         agent;
    lifelock_t       lifelock;      /* the agent gets it with each first
                                       report */
    ev_prepare       watch;         /* looks for changes */
    ev_timer         report_timer;
    uint64_t         start_ms;      /* wall clock */
    double           sent_at;       /* of the loop's clock */
    int32_t          sent_active;
    uint32_t         sent_facts;    /* their generation */
    int              sent_draining;
    int              is_accepted;   /* the agent answered the first report */
} agent_link_t;


/* Begins to connect, where path is not NULL; the rest is the link's own. */
void agent_link_init(agent_link_t *link, struct ev_loop *loop,
    const log_t *log, const engine_t *engine, const char *path);

/*
 * The orderly end: says goodbye to the agent, if it listens, and disconnects.
 */
void agent_link_goodbye(agent_link_t *link);

/* Any other end: to the agent it is a death.  Nothing to do after a goodbye. */
void agent_link_done(agent_link_t *link);

#endif /* AGENT_LINK_H */
