
/* Orders among members of a fake network, and the owner of a drain. */

#ifndef ORDERS_H
#define ORDERS_H

#include "t/sim/stage/cluster.h"


#define ORDERS_UPDATE  "update:u1"

/* The host's replica reports READY, and whether it is draining. */
void orders_says(cluster_t *cluster, size_t host, int draining);

/* The host's replica reports this state in group "g". */
void orders_joins(cluster_t *cluster, size_t host, llmgw_group_state_t state,
    uint64_t epoch);

/* Gives an order with node_order(): a RESTART to version "v2"; a SWITCH of
   group "g" whose epoch is the number in owner.  orders_done() also waits for
   the result. */
order_rc_t orders_give(cluster_t *cluster, size_t giver, size_t target,
    order_verb_t verb, const char *owner);
order_rc_t orders_done(cluster_t *cluster, size_t giver, size_t target,
    order_verb_t verb, const char *owner);

/* Whether all running members see this owner of the host's drain; "": none. */
int orders_all_see_owner(const cluster_t *cluster, size_t host,
    const char *owner);
int orders_all_see_operator(const cluster_t *cluster, size_t host);
int orders_all_see_update(const cluster_t *cluster, size_t host);
int orders_all_see_nobody(const cluster_t *cluster, size_t host);

#endif /* ORDERS_H */
