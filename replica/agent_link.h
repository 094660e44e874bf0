
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
    lifelock_t       lifelock;      /* its descriptor goes to the agent with the
                                       first report of each connection */
    ev_prepare       watch;         /* looks for changes */
    ev_timer         report_timer;
    uint64_t         start_ms;      /* wall clock */
    double           sent_at;       /* the last report, by the loop's clock */
    int32_t          sent_active;
    uint32_t         sent_facts;    /* generation of the facts in it */
    int              sent_draining;
    int              is_accepted;   /* the agent answered the first report */
} agent_link_t;


/* Connects to the agent's socket at path, again and again; NULL: no agent,
   nothing is sent. */
void agent_link_init(agent_link_t *link, struct ev_loop *loop,
    const log_t *log, const engine_t *engine, const char *path);

/*
 * Ends the link in an orderly way: sends a goodbye to a connected agent, and
 * disconnects.
 */
void agent_link_goodbye(agent_link_t *link);

/* Ends the link without a goodbye: the agent takes it for a crash.  Does
   nothing after agent_link_goodbye(). */
void agent_link_done(agent_link_t *link);

#endif /* AGENT_LINK_H */
