
/*
 * The owner of a drain, as all members see it: leases, restarts, what a
 * segment keeps.  Host 0 is the gateway.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "t/sim/stage/orders.h"


#define SEEDS   20
#define N       5
#define OP      "operator"
#define UPDATE  ORDERS_UPDATE


static void
lease_stands_while_it_is_renewed_and_ends_30_s_after(void **state)
{
    size_t      i;
    uint64_t    seed, ms;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(N, seed);

        for (i = 0; i < 10; i++) {
            holds(cluster, orders_done(cluster, 0, 2, ORDER_DRAIN, UPDATE)
                           == ORDER_DONE);
            cluster_run_ms(cluster, 5000);
            holds(cluster, orders_all_see_update(cluster, 2));
        }

        /* The agent that drives the update dies: the drain ends within 30 s of
           its last renewal. */
        cluster_crash(cluster, 0);
        cluster_run_ms(cluster, 24900);
        holds(cluster, orders_all_see_update(cluster, 2));
        holds(cluster, cluster->hosts[2].nuntold == 0);
        ms = cluster_run_until(cluster, orders_all_see_nobody, 2, 1000);
        holds(cluster, ms != UINT64_MAX);
        holds(cluster, cluster->hosts[2].ntold == 1);
        holds(cluster, cluster->hosts[2].nuntold == 1);
        cluster_destroy(cluster);
    }
}


static void
operators_drain_outlives_the_update_and_the_replicas_word(void **state)
{
    cluster_t  *cluster;

    cluster = cluster_formed(N, 7);
    orders_says(cluster, 2, 0);
    orders_done(cluster, 0, 2, ORDER_DRAIN, OP);
    orders_done(cluster, 0, 2, ORDER_DRAIN, UPDATE);
    orders_says(cluster, 2, 1);
    orders_done(cluster, 0, 2, ORDER_UNDRAIN, UPDATE);
    assert_int_equal(cluster->hosts[2].nuntold, 0);

    /* A new process that was not told to drain does not end the
       drain either. */
    orders_says(cluster, 2, 0);
    cluster_run_ms(cluster, 40000);
    assert_true(orders_all_see_operator(cluster, 2));
    assert_int_equal(cluster->hosts[2].ntold, 1);

    assert_int_equal(orders_done(cluster, 0, 2, ORDER_UNDRAIN, OP),
                     ORDER_DONE);
    cluster_run_ms(cluster, 2000);
    assert_true(orders_all_see_nobody(cluster, 2));
    cluster_destroy(cluster);
}


/* A drain that the replica began itself is shown, and has no owner. */
static void
replicas_own_drain_has_no_owner(void **state)
{
    cluster_t  *cluster;

    cluster = cluster_formed(N, 8);
    orders_says(cluster, 2, 1);
    cluster_run_ms(cluster, 2000);
    assert_true(cluster_facts(cluster, 0, 2)->draining);
    assert_string_equal(cluster_facts(cluster, 0, 2)->drain_owner, "");
    assert_true(cluster_view(cluster, 0, 2)->traits.refuses_new);

    /* To undrain such a replica, its agent sends it Undrain. */
    orders_give(cluster, 0, 2, ORDER_UNDRAIN, OP);
    cluster_run_ms(cluster, 10);
    assert_int_equal(cluster->hosts[2].nuntold, 1);
    cluster_destroy(cluster);
}


/* Scenario 22.  The weight is the operator's, from its configuration. */
static void
rejoin_keeps_an_operators_drain_and_no_other(void **state)
{
    size_t      i;
    uint64_t    seed;
    cluster_t  *cluster;
    static const char *const  owners[] = { OP, UPDATE, "shutdown" };

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_create(N, seed);
        cluster->weight = 7;
        cluster_start_all(cluster);
        cluster_run_ms(cluster, 1000);

        for (i = 0; i < 3; i++) {
            if (i < 2) {
                orders_done(cluster, 0, i + 1, ORDER_DRAIN, owners[i]);
            }

            node_retire(cluster->hosts[i + 1].node);
            cluster_run_ms(cluster, 1000);
            holds(cluster, orders_all_see_owner(cluster, i + 1, owners[i]));
            node_leave(cluster->hosts[i + 1].node);
            cluster_run_ms(cluster, 1000);
            cluster_crash(cluster, i + 1);
            cluster_start(cluster, i + 1, LLMGW_ROLE_REPLICA, 0);
        }

        cluster_run_ms(cluster, 3000);

        for (i = 0; i < 3; i++) {
            holds(cluster, orders_all_see_owner(cluster, i + 1,
                                                i ? "" : OP));
            holds(cluster, cluster_facts(cluster, 4, i + 1)->weight == 7);
            holds(cluster, cluster->hosts[i + 1].ntold == (i < 2));
        }

        /* The restarted agent undrains host 2's replica, which a lease had
           drained, and not host 3's. */
        orders_says(cluster, 2, 1);
        holds(cluster, cluster->hosts[2].nuntold == 1);
        orders_says(cluster, 3, 1);
        holds(cluster, cluster->hosts[3].nuntold == 0);
        orders_says(cluster, 2, 0);
        orders_says(cluster, 3, 0);

        cluster_settles(cluster, 12000);
        cluster_destroy(cluster);
    }
}


/*
 * A restarted member answers a ping before it can ask others about itself: the
 * record that it sends replaces the old one, and it still learns of its drain.
 */
static void
starter_that_is_pinged_first_learns_who_drains_it(void **state)
{
    uint64_t    seed;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(N, seed);
        fake_net_weather(cluster->net)->loss_permille = 100;
        orders_done(cluster, 0, 1, ORDER_DRAIN, OP);
        cluster_run_ms(cluster, 1000);
        cluster_crash(cluster, 1);
        cluster_start(cluster, 1, LLMGW_ROLE_REPLICA, CLUSTER_NO_SEED);
        cluster_run_ms(cluster, 3000);
        holds(cluster, swim_own(cluster_swim(cluster, 1))->facts.draining);
        holds(cluster, cluster->hosts[1].ntold == 1);
        cluster_destroy(cluster);
    }
}


static void
state_directory_is_believed_before_others(void **state)
{
    cluster_t  *cluster;

    cluster = cluster_formed(N, 9);
    orders_done(cluster, 0, 1, ORDER_DRAIN, OP);
    cluster_crash(cluster, 1);
    cluster_crash(cluster, 2);

    cluster->drain_kept = "";           /* other members missed the undrain */
    cluster_start(cluster, 1, LLMGW_ROLE_REPLICA, 0);
    cluster->drain_kept = OP;           /* other members missed the drain */
    cluster_start(cluster, 2, LLMGW_ROLE_REPLICA, 0);
    assert_true(swim_own(cluster_swim(cluster, 2))->facts.draining);
    cluster_run_ms(cluster, 3000);
    assert_true(orders_all_see_nobody(cluster, 1));
    assert_true(orders_all_see_operator(cluster, 2));
    assert_string_equal(swim_drain_kept(cluster_swim(cluster, 2)), OP);
    cluster_destroy(cluster);
}


/* --- traits */

static void
update_that_runs_is_known_to_all(void **state)
{
    size_t      i;
    uint64_t    seed;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_formed(20, seed);
        fake_net_weather(cluster->net)->loss_permille = 200;
        node_set_update(cluster->hosts[0].node, "u1");
        cluster_run_ms(cluster, 20000);

        for (i = 0; i < 20; i++) {
            holds(cluster, strcmp(cluster_view(cluster, i, 0)->traits.update,
                                  "u1") == 0);
        }

        node_set_update(cluster->hosts[0].node, "");
        cluster_run_ms(cluster, 20000);

        for (i = 0; i < 20; i++) {
            holds(cluster, cluster_view(cluster, i, 0)->traits.update[0]
                           == '\0');
        }

        cluster_destroy(cluster);
    }
}


/* The segment has only facts: all else is learned with pings. */
static void
what_the_segment_lacks_is_learned_after_a_restart(void **state)
{
    size_t                i;
    cluster_t            *cluster;
    llmgw_members_view_t  view;

    cluster = cluster_create(N, 10);
    cluster->can_restart = 1;
    cluster_start_all(cluster);
    cluster_run_ms(cluster, 2000);

    cluster_segment(cluster, 0, &view);
    cluster_crash(cluster, 0);
    cluster_start(cluster, 0, LLMGW_ROLE_GATEWAY, CLUSTER_NO_SEED);
    node_restore(cluster->hosts[0].node, &view);
    assert_false(cluster_view(cluster, 0, 1)->traits.can_restart);
    cluster_run_ms(cluster, 2 * N * CLUSTER_PERIOD_MS);

    for (i = 1; i < N; i++) {
        assert_true(cluster_view(cluster, 0, i)->traits.can_restart);
        assert_int_equal(cluster_facts(cluster, 0, i)->incarnation,
                         view.members[i].incarnation);
    }

    llmgw_members_view_done(&view);
    cluster_destroy(cluster);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(lease_stands_while_it_is_renewed_and_ends_30_s_after),
        cmocka_unit_test(
            operators_drain_outlives_the_update_and_the_replicas_word),
        cmocka_unit_test(replicas_own_drain_has_no_owner),
        cmocka_unit_test(rejoin_keeps_an_operators_drain_and_no_other),
        cmocka_unit_test(starter_that_is_pinged_first_learns_who_drains_it),
        cmocka_unit_test(state_directory_is_believed_before_others),
        cmocka_unit_test(update_that_runs_is_known_to_all),
        cmocka_unit_test(what_the_segment_lacks_is_learned_after_a_restart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
