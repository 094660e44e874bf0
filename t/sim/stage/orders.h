
/* Orders among members of a fake network, and which drains which. */

#ifndef ORDERS_H
#define ORDERS_H

#include "t/sim/stage/cluster.h"


#define ORDERS_UPDATE  "update:u1"

/* The host publishes of its replica: READY, and draining or not. */
void orders_says(cluster_t *cluster, size_t host, int draining);

/* It reports that state in group "g" of itself. */
void orders_joins(cluster_t *cluster, size_t host, llmgw_group_state_t state,
    uint64_t epoch);

/* node_order(); a RESTART is one to "v2", a SWITCH of group "g" away from the
   owner's number as an epoch.  The other one waits for the
   result. */
order_rc_t orders_give(cluster_t *cluster, size_t giver, size_t target,
    order_verb_t verb, const char *owner);
order_rc_t orders_done(cluster_t *cluster, size_t giver, size_t target,
    order_verb_t verb, const char *owner);

/* Whether all running members see that owner of its drain; "": none. */
int orders_all_see_owner(const cluster_t *cluster, size_t host,
    const char *owner);
int orders_all_see_operator(const cluster_t *cluster, size_t host);
int orders_all_see_update(const cluster_t *cluster, size_t host);
int orders_all_see_nobody(const cluster_t *cluster, size_t host);

#endif /* ORDERS_H */
