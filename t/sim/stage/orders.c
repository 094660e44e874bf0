
/* Orders among members of a fake network, and the owner of a drain. */

#include <stdlib.h>
#include <string.h>

#include "t/sim/stage/orders.h"


order_rc_t
orders_give(cluster_t *cluster, size_t giver, size_t target, order_verb_t verb,
    const char *owner)
{
    order_t  order;

    memset(&order, 0, sizeof(order));
    order.verb = verb;
    strcpy(order.target_id, cluster->hosts[target].id);
    strcpy(order.owner, owner);

    if (verb == ORDER_RESTART) {
        strcpy(order.version, "v2");
    }

    if (verb == ORDER_SWITCH) {
        strcpy(order.group, "g");
        order.group_epoch = strtoull(owner, NULL, 10);
        order.owner[0] = '\0';
    }

    return node_order(cluster->hosts[giver].node, &order);
}


/* As orders_give(), and waits for the order's result. */
order_rc_t
orders_done(cluster_t *cluster, size_t giver, size_t target,
    order_verb_t verb, const char *owner)
{
    size_t       nordered;
    uint64_t     ms;
    order_rc_t   rc;

    nordered = cluster->hosts[giver].nordered;
    rc = orders_give(cluster, giver, target, verb, owner);

    for (ms = 0; rc == ORDER_PENDING && ms <= 6000; ms++) {
        cluster_run_ms(cluster, 1);

        if (cluster->hosts[giver].nordered > nordered) {
            rc = cluster->hosts[giver].ordered;
        }
    }

    return rc;
}


int
orders_all_see_owner(const cluster_t *cluster, size_t host, const char *owner)
{
    size_t                 i;
    const llmgw_member_t  *facts;

    for (i = 0; i < cluster->n; i++) {

        if (cluster->hosts[i].node == NULL) {
            continue;
        }

        facts = cluster_facts(cluster, i, host);

        if (facts == NULL || strcmp(facts->drain_owner, owner) != 0
            || facts->draining != (owner[0] != '\0'))
        {
            return 0;
        }
    }

    return 1;
}


int
orders_all_see_operator(const cluster_t *cluster, size_t host)
{
    return orders_all_see_owner(cluster, host, "operator");
}


int
orders_all_see_update(const cluster_t *cluster, size_t host)
{
    return orders_all_see_owner(cluster, host, ORDERS_UPDATE);
}


int
orders_all_see_nobody(const cluster_t *cluster, size_t host)
{
    return orders_all_see_owner(cluster, host, "");
}


/* The replica itself reports whether it drains. */
void
orders_says(cluster_t *cluster, size_t host, int draining)
{
    swim_own_t  own;

    memset(&own, 0, sizeof(own));
    own.service = LLMGW_SERVICE_READY;
    own.draining = draining;
    own.model_version = "v1";
    node_set_own(cluster->hosts[host].node, &own);
}


void
orders_joins(cluster_t *cluster, size_t host, llmgw_group_state_t state,
    uint64_t epoch)
{
    swim_own_t  own;

    memset(&own, 0, sizeof(own));
    own.service = state == LLMGW_GROUP_ACTIVE ? LLMGW_SERVICE_READY
                                              : LLMGW_SERVICE_STARTING;
    own.model_version = "v1";
    own.group = "g";
    own.group_state = state;
    own.group_epoch = epoch;
    node_set_own(cluster->hosts[host].node, &own);
}
