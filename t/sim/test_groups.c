
/*
 * Standby groups: a takeover is known to all within the bound of every change,
 * agents that know no groups lose nothing for others, and an epoch that is too
 * far ahead of the time is worth nothing.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "t/sim/stage/cluster.h"
#include "t/sim/stage/old_agent.h"


#define SEEDS      20
#define N          20
#define N_MIXED    6
#define HOUR_US    3600000000ULL


/* The host's replica reports its state in group "g", and is READY if active. */
static void
says(cluster_t *cluster, size_t host, llmgw_group_state_t state,
    uint64_t epoch)
{
    cluster->hosts[host].group = "g";
    cluster->hosts[host].group_state = state;
    cluster->hosts[host].group_epoch = epoch;
    cluster_set_service(cluster, host, state == LLMGW_GROUP_ACTIVE
                                       ? LLMGW_SERVICE_READY
                                       : LLMGW_SERVICE_STARTING);
}


/* A viewer's record of a host has the group as the host last reported it. */
static int
knows(const cluster_t *cluster, size_t viewer, size_t host)
{
    const member_t        *member;
    const cluster_host_t  *said;

    said = &cluster->hosts[host];
    member = cluster_view(cluster, viewer, host);

    return member != NULL && !member->lacks_more
           && strcmp(member->facts.group, said->group ? said->group : "") == 0
           && member->facts.group_state == said->group_state
           && member->facts.group_epoch == said->group_epoch
           && member->facts.group_lock == said->group_epoch;
}


static int
all_know(const cluster_t *cluster, size_t host)
{
    size_t  i;

    for (i = 0; i < cluster->n; i++) {
        if (cluster->hosts[i].node != NULL && !knows(cluster, i, host)) {
            return 0;
        }
    }

    return 1;
}


/* Host 1 is DOWN with its old epoch, and its successor has a greater one. */
static int
takeover_is_known(const cluster_t *cluster, size_t viewer)
{
    const llmgw_member_t  *was, *is;

    was = cluster_facts(cluster, viewer, 1);
    is = cluster_facts(cluster, viewer, 2);

    return was->service == LLMGW_SERVICE_DOWN && was->group_epoch == 100
           && is->service == LLMGW_SERVICE_READY && is->group_epoch == 101
           && is->group_state == LLMGW_GROUP_ACTIVE
           && strcmp(was->group, is->group) == 0;
}


static int
takeover_is_known_to_all(const cluster_t *cluster, size_t host)
{
    size_t  i;

    for (i = 0; i < cluster->n; i++) {
        if (!takeover_is_known(cluster, i)) {
            return 0;
        }
    }

    return 1;
}


/*
 * The gateway has the takeover with the first datagram, which takes 0.5 ms
 * here.  The others nearly always have it within a period, and the rest by
 * later pings.
 */
static void
takeover_travels_like_every_change(void **state)
{
    uint64_t    seed, ms, nsoon;
    cluster_t  *cluster;

    nsoon = 0;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(N, seed);
        says(cluster, 1, LLMGW_GROUP_ACTIVE, 100);
        says(cluster, 2, LLMGW_GROUP_STANDBY, 0);
        cluster_settles(cluster, 5000);
        holds(cluster, all_know(cluster, 1) && all_know(cluster, 2));

        cluster_set_service(cluster, 1, LLMGW_SERVICE_DOWN);
        says(cluster, 2, LLMGW_GROUP_WAKING, 101);
        says(cluster, 2, LLMGW_GROUP_ACTIVE, 101);
        ms = cluster_run_until(cluster, takeover_is_known, 0, 100);
        holds(cluster, ms <= 2);
        ms = cluster_run_until(cluster, takeover_is_known_to_all, 0, 5000);
        holds(cluster, ms <= 5000);
        nsoon += ms <= CLUSTER_PERIOD_MS;

        cluster_settles(cluster, 5000);
        cluster_destroy(cluster);
    }

    assert_true(nsoon >= cluster_seeds(SEEDS) * 9 / 10);
}


/* A third of the datagrams is lost: the gateway is sent the takeover every 10
   ms again. */
static void
takeover_reaches_the_gateway_under_loss(void **state)
{
    uint64_t    seed;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(3, seed);
        says(cluster, 1, LLMGW_GROUP_ACTIVE, 100);
        says(cluster, 2, LLMGW_GROUP_STANDBY, 0);
        cluster_settles(cluster, 5000);

        fake_net_weather(cluster->net)->loss_permille = 300;
        cluster_set_service(cluster, 1, LLMGW_SERVICE_DOWN);
        says(cluster, 2, LLMGW_GROUP_ACTIVE, 101);
        holds(cluster, cluster_run_until(cluster, takeover_is_known, 0, 100)
                       != UINT64_MAX);
        cluster_settles(cluster, 5000);
        cluster_destroy(cluster);
    }
}


static int
is_dead_with_its_epoch(const cluster_t *cluster, size_t host)
{
    return cluster_facts(cluster, 0, host)->liveness == LLMGW_LIVENESS_DEAD
           && cluster_facts(cluster, 0, host)->group_epoch == 100;
}


static int
has_left_with_its_epoch(const cluster_t *cluster, size_t host)
{
    return cluster_facts(cluster, 0, host)->liveness == LLMGW_LIVENESS_LEFT
           && cluster_facts(cluster, 0, host)->group_epoch == 100;
}


/* A member that starts after the deaths learns group and epoch, too. */
static void
dead_and_left_keep_group_and_epoch(void **state)
{
    uint64_t    seed;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(5, seed);
        says(cluster, 1, LLMGW_GROUP_ACTIVE, 100);
        says(cluster, 2, LLMGW_GROUP_ACTIVE, 100);
        cluster_crash(cluster, 4);
        cluster_run_ms(cluster, 1000);
        cluster_crash(cluster, 1);
        node_leave(cluster->hosts[2].node);
        holds(cluster, cluster_run_until(cluster, is_dead_with_its_epoch, 1,
                                         20000) != UINT64_MAX);
        holds(cluster, has_left_with_its_epoch(cluster, 2));
        cluster_crash(cluster, 2);

        cluster_start(cluster, 4, LLMGW_ROLE_REPLICA, 0);
        cluster_run_ms(cluster, 15000);
        holds(cluster, knows(cluster, 4, 1) && knows(cluster, 4, 2));
        cluster_destroy(cluster);
    }
}


/* The gateway's agent restarts from its segment, with or without
   groups in it. */
static void
restart_gateway(cluster_t *cluster, int has_groups)
{
    size_t                i;
    llmgw_member_t       *m;
    llmgw_members_view_t  view;

    cluster_segment(cluster, 0, &view);

    for (i = 0; !has_groups && i < view.n; i++) {
        m = &view.members[i];
        memset(m->group, 0, sizeof(m->group));
        m->group_state = LLMGW_GROUP_NONE;
        m->group_epoch = 0;
        m->group_lock = 0;
    }

    cluster_crash(cluster, 0);
    cluster_start(cluster, 0, LLMGW_ROLE_GATEWAY, CLUSTER_NO_SEED);
    node_restore(cluster->hosts[0].node, &view);
    llmgw_members_view_done(&view);
}


static int
gateway_knows_both(const cluster_t *cluster, size_t host)
{
    return knows(cluster, 0, 1) && knows(cluster, 0, 2);
}


/*
 * A group may be missing in the segment because the agent had not learned it:
 * it is not passed on as "none", and the members' next records complete it.
 */
static void
group_is_restored_from_the_segment_or_learned(void **state)
{
    int         has_groups;
    size_t      i;
    uint64_t    seed;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        for (has_groups = 0; has_groups <= 1; has_groups++) {
            cluster = cluster_formed(4, seed);
            says(cluster, 1, LLMGW_GROUP_ACTIVE, 100);
            says(cluster, 2, LLMGW_GROUP_STANDBY, 0);
            cluster_settles(cluster, 5000);
            restart_gateway(cluster, has_groups);
            holds(cluster, cluster_facts(cluster, 0, 1)->group_epoch
                           == (has_groups ? 100 : 0));

            for (i = 0; i < 3000; i++) {
                cluster_run_ms(cluster, 1);
                holds(cluster, knows(cluster, 3, 1) && knows(cluster, 3, 2));
            }

            holds(cluster, gateway_knows_both(cluster, 0));
            cluster_destroy(cluster);
        }
    }
}


/* A gateway whose own clock is wrong still knows the active member. */
static void
gateway_whose_clock_is_set_back_keeps_what_it_restores(void **state)
{
    uint64_t    seed, epoch;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(4, seed);
        epoch = clock_wall_us(fake_net_clock(cluster->net, 1));
        says(cluster, 1, LLMGW_GROUP_ACTIVE, epoch);
        cluster_settles(cluster, 5000);
        fake_net_set_wall(cluster->net, 0, -25 * (int64_t) HOUR_US);
        restart_gateway(cluster, 1);
        cluster_run_ms(cluster, 1000);
        holds(cluster, cluster_facts(cluster, 0, 1)->group_state
                       == LLMGW_GROUP_ACTIVE);
        holds(cluster, cluster_facts(cluster, 0, 1)->group_epoch == epoch);

        fake_net_set_wall(cluster->net, 0, 0);
        cluster_run_ms(cluster, 10000);
        holds(cluster, knows(cluster, 0, 1));
        cluster_destroy(cluster);
    }
}


/* Hosts 0, 2, 4 know groups; 1 and 5 know only `more`; 3 does not even know
   `more`. */
static cluster_t *
mixed(uint64_t seed)
{
    size_t      i;
    cluster_t  *cluster;

    cluster = cluster_create(N_MIXED, seed);
    fake_net_filter(cluster->net, 1, old_agent_groupless_filter);
    fake_net_filter(cluster->net, 3, old_agent_filter);
    fake_net_filter(cluster->net, 5, old_agent_groupless_filter);
    cluster_start_all(cluster);
    holds(cluster, cluster_run_until(cluster, cluster_is_whole, 0, 5000)
                   != UINT64_MAX);

    for (i = 2; i < N_MIXED; i += 2) {
        says(cluster, i, LLMGW_GROUP_STANDBY, 0);
    }

    return cluster;
}


static int
new_ones_know(const cluster_t *cluster, size_t host)
{
    size_t  i, j;

    for (i = 0; i < N_MIXED; i += 2) {
        for (j = 2; j < N_MIXED; j += 2) {
            if (i != j && !knows(cluster, i, j)) {
                return 0;
            }
        }
    }

    return 1;
}


/* Cuts or heals the paths among the hosts that know groups. */
static void
cut(cluster_t *cluster, unsigned what)
{
    size_t  i, j;

    for (i = 0; i < N_MIXED; i += 2) {
        for (j = 0; j < N_MIXED; j += 2) {
            if (i != j) {
                fake_net_cut(cluster->net, i, j, what);
            }
        }
    }
}


/*
 * The hosts that know groups hear of each other through the others alone: what
 * is known of a group stays, through loss and changes, and is completed later.
 */
static void
relays_that_know_no_groups_take_none_away(void **state)
{
    size_t                 i, round;
    uint64_t               seed;
    cluster_t             *cluster;
    const llmgw_member_t  *facts;

    cluster_each_seed(seed, SEEDS) {
        cluster = mixed(seed);
        says(cluster, 2, LLMGW_GROUP_ACTIVE, 100);
        holds(cluster, cluster_run_until(cluster, new_ones_know, 0, 20000)
                       != UINT64_MAX);
        cut(cluster, FAKE_ALL);
        fake_net_weather(cluster->net)->loss_permille = 50;

        for (round = 0; round < 40; round++) {
            cluster_set_service(cluster, 1 + round % 5, round % 2
                                ? LLMGW_SERVICE_READY
                                : LLMGW_SERVICE_STALLED);
            cluster_run_ms(cluster, 50);

            for (i = 0; i < N_MIXED; i += 4) {
                facts = cluster_facts(cluster, i, 2);
                holds(cluster, strcmp(facts->group, "g") == 0);
                holds(cluster, facts->group_epoch == 100);
                holds(cluster, facts->group_state == LLMGW_GROUP_ACTIVE);
            }
        }

        says(cluster, 2, LLMGW_GROUP_ACTIVE, 102);
        cut(cluster, 0);
        holds(cluster, cluster_run_until(cluster, new_ones_know, 0, 20000)
                       != UINT64_MAX);
        holds(cluster, cluster_false_deaths(cluster) == 0);
        cluster_settles(cluster, 5000);
        holds(cluster, new_ones_know(cluster, 0));
        cluster_destroy(cluster);
    }
}


/* If an agent that knows no groups replaces one that does, its
   group is gone. */
static void
downgraded_agent_has_no_group(void **state)
{
    uint64_t    seed;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = mixed(seed);
        holds(cluster, cluster_run_until(cluster, new_ones_know, 0, 20000)
                       != UINT64_MAX);
        cluster_crash(cluster, 4);
        cluster->hosts[4].group = NULL;
        cluster->hosts[4].group_state = LLMGW_GROUP_NONE;
        fake_net_filter(cluster->net, 4, old_agent_groupless_filter);
        cluster_start(cluster, 4, LLMGW_ROLE_REPLICA, 0);
        cluster_settles(cluster, 5000);
        holds(cluster, knows(cluster, 0, 4) && knows(cluster, 2, 4));
        cluster_destroy(cluster);
    }
}


/* While nothing changes, no agent sends whole records because they lack a
   group. */
static void
mixed_cluster_costs_what_a_new_one_costs(void **state)
{
    size_t      i;
    uint64_t    seed, bytes[2];
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        for (i = 0; i < 2; i++) {
            cluster = i ? mixed(seed) : cluster_formed(N_MIXED, seed);
            cluster_run_ms(cluster, 10000);
            bytes[i] = fake_net_bytes(cluster->net);
            cluster_run_ms(cluster, 20000);
            bytes[i] = fake_net_bytes(cluster->net) - bytes[i];
            cluster_destroy(cluster);
        }

        assert_in_range(bytes[1], bytes[0] * 9 / 10, bytes[0] * 11 / 10);
    }
}


/*
 * The clock of host 2 and of its lock service was 25 hours ahead, and was set
 * right, but the epochs stay.  No member accepts one, and each is reported
 * once.
 */
static void
epoch_far_ahead_of_the_clock_is_refused(void **state)
{
    size_t                 i;
    uint64_t               seed, now_us;
    cluster_t             *cluster;
    const llmgw_member_t  *facts;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(4, seed);
        now_us = clock_wall_us(fake_net_clock(cluster->net, 2));
        says(cluster, 1, LLMGW_GROUP_ACTIVE, now_us + 23 * HOUR_US);
        says(cluster, 2, LLMGW_GROUP_ACTIVE, now_us + 25 * HOUR_US);
        cluster_settles(cluster, 5000);

        for (i = 0; i < 4; i++) {
            facts = cluster_facts(cluster, i, 1);
            holds(cluster, facts->group_epoch == now_us + 23 * HOUR_US);
            facts = cluster_facts(cluster, i, 2);
            holds(cluster, facts->service == LLMGW_SERVICE_READY);
            holds(cluster, strcmp(facts->group, "g") == 0);
            holds(cluster, facts->group_state == LLMGW_GROUP_INIT);
            holds(cluster, facts->group_epoch == 0);
        }

        says(cluster, 2, LLMGW_GROUP_ACTIVE, now_us + 25 * HOUR_US);
        holds(cluster, cluster->hosts[2].ngroup_skews == 1);
        holds(cluster, cluster_counters(cluster, 2)->group_epochs_refused
                       == 2);
        cluster_destroy(cluster);
    }
}


/* The same with epochs that others receive: only host 2's clock is ahead. */
static void
epoch_of_a_clock_that_is_ahead_is_refused_by_others(void **state)
{
    uint64_t               seed, now_us;
    cluster_t             *cluster;
    const llmgw_member_t  *facts;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(4, seed);
        now_us = clock_wall_us(fake_net_clock(cluster->net, 2));
        fake_net_set_wall(cluster->net, 2, 30 * HOUR_US);
        says(cluster, 2, LLMGW_GROUP_ACTIVE, now_us + 25 * HOUR_US);
        cluster_run_ms(cluster, 3000);
        facts = cluster_facts(cluster, 0, 2);
        holds(cluster, facts->service == LLMGW_SERVICE_READY);
        holds(cluster, strcmp(facts->group, "g") == 0);
        holds(cluster, facts->group_state == LLMGW_GROUP_INIT);
        holds(cluster, facts->group_epoch == 0);
        holds(cluster, cluster->hosts[0].ngroup_skews == 1);
        holds(cluster, cluster->hosts[2].ngroup_skews == 0);
        holds(cluster, cluster_false_deaths(cluster) == 0);
        cluster_destroy(cluster);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(takeover_travels_like_every_change),
        cmocka_unit_test(takeover_reaches_the_gateway_under_loss),
        cmocka_unit_test(dead_and_left_keep_group_and_epoch),
        cmocka_unit_test(group_is_restored_from_the_segment_or_learned),
        cmocka_unit_test(
            gateway_whose_clock_is_set_back_keeps_what_it_restores),
        cmocka_unit_test(relays_that_know_no_groups_take_none_away),
        cmocka_unit_test(downgraded_agent_has_no_group),
        cmocka_unit_test(mixed_cluster_costs_what_a_new_one_costs),
        cmocka_unit_test(epoch_far_ahead_of_the_clock_is_refused),
        cmocka_unit_test(epoch_of_a_clock_that_is_ahead_is_refused_by_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
