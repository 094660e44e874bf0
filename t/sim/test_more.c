
/*
 * Three agents from before MemberMore and three current ones in one cluster,
 * with relays of the other kind between any two.  An old agent passes on
 * records without `more`: by that nothing may be lost, and no member may be
 * declared dead.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "t/sim/stage/cluster.h"
#include "t/sim/stage/old_agent.h"


#define SEEDS  20
#define N      6

/* Hosts 0, 2, 4 are new, 1, 3, 5 old; host 0 is the gateway. */
static int
is_old(size_t host)
{
    return host % 2;
}


static void
start(cluster_t *cluster, size_t host, size_t seed_host, const char *prefix)
{
    char  group[LLMGW_MEMBERS_NAME_BYTES];

    snprintf(group, sizeof(group), "%s%zu", prefix, host);
    cluster->resume_group = is_old(host) ? NULL : group;
    fake_net_filter(cluster->net, host, is_old(host) ? old_agent_filter
                                                     : NULL);
    cluster_start(cluster, host, host ? LLMGW_ROLE_REPLICA
                                      : LLMGW_ROLE_GATEWAY, seed_host);
    cluster->resume_group = NULL;
}


static cluster_t *
mixed(uint64_t seed)
{
    size_t      i;
    cluster_t  *cluster;

    cluster = cluster_create(N, seed);

    for (i = 0; i < N; i++) {
        start(cluster, i, i ? 0 : CLUSTER_NO_SEED, "g");
        cluster_run_ms(cluster, 10);
    }

    holds(cluster, cluster_run_until(cluster, cluster_is_whole, 0, 5000)
                   != UINT64_MAX);

    return cluster;
}


/* Whether a member knows another's group: the prefix and the host's number. */
static int
knows(const cluster_t *cluster, size_t viewer, size_t host,
    const char *prefix)
{
    char             group[LLMGW_MEMBERS_NAME_BYTES];
    const member_t  *member;

    snprintf(group, sizeof(group), "%s%zu", prefix, host);
    member = cluster_view(cluster, viewer, host);

    return member != NULL && !member->lacks_more
           && strcmp(member->facts.resume_group,
                     is_old(viewer) || is_old(host) ? "" : group) == 0;
}


static int
all_know_all(const cluster_t *cluster, size_t host)
{
    size_t  i, j;

    for (i = 0; i < N; i++) {
        for (j = 0; j < N; j++) {
            if (i != j && !knows(cluster, i, j, "g")) {
                return 0;
            }
        }
    }

    return 1;
}


/* Each replica changes something, several times. */
static void
chatter(cluster_t *cluster, size_t rounds, uint64_t step_ms)
{
    size_t  i, round;

    for (round = 0; round < rounds; round++) {
        for (i = 1; i < N; i++) {
            cluster_set_service(cluster, i, round % 2
                                ? LLMGW_SERVICE_READY
                                : LLMGW_SERVICE_STALLED);
            cluster_run_ms(cluster, step_ms);
        }
    }
}


/* Cuts or heals the paths among the new agents, or among the old ones. */
static void
cut(cluster_t *cluster, int olds, unsigned what)
{
    size_t  i, j;

    for (i = 0; i < N; i++) {
        for (j = 0; j < N; j++) {
            if (i != j && is_old(i) == olds && is_old(j) == olds) {
                fake_net_cut(cluster->net, i, j, what);
            }
        }
    }
}


static void
finish(cluster_t *cluster)
{
    holds(cluster, cluster_false_deaths(cluster) == 0);
    cluster_settles(cluster, 5000);
    holds(cluster, all_know_all(cluster, 0));
    cluster_destroy(cluster);
}


static void
new_ones_know_all_of_new_ones_under_loss(void **state)
{
    uint64_t    seed;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = mixed(seed);
        holds(cluster, cluster_run_until(cluster, all_know_all, 0, 20000)
                       != UINT64_MAX);

        fake_net_weather(cluster->net)->loss_permille = 150;
        chatter(cluster, 20, 100);
        finish(cluster);
    }
}


static int
has_word_of(const cluster_t *cluster, size_t viewer, size_t host)
{
    return cluster_facts(cluster, viewer, host)->incarnation
           == swim_own(cluster_swim(cluster, host))->facts.incarnation;
}


static int
gateway_is_told(const cluster_t *cluster, size_t host)
{
    return has_word_of(cluster, 0, 2) && has_word_of(cluster, 0, 4);
}


/*
 * New agents hear of each other only through old ones: changes get through,
 * what is known of a group stays, and `more` is asked for in the end.
 */
static void
old_relays_take_nothing_away(void **state)
{
    size_t      i, j, round;
    uint64_t    seed;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = mixed(seed);
        holds(cluster, cluster_run_until(cluster, all_know_all, 0, 20000)
                       != UINT64_MAX);
        cut(cluster, 0, FAKE_ALL);
        fake_net_weather(cluster->net)->loss_permille = 50;

        for (round = 0; round < 10; round++) {
            chatter(cluster, 1, 100);

            for (i = 0; i < N; i += 2) {
                for (j = 0; j < N; j += 2) {
                    holds(cluster, i == j
                                   || strlen(cluster_facts(cluster, i, j)
                                             ->resume_group) == 2);
                }
            }
        }

        /* The rest of the record did come through old agents. */
        fake_net_weather(cluster->net)->loss_permille = 0;
        holds(cluster, cluster_run_until(cluster, gateway_is_told, 0, 15000)
                       != UINT64_MAX);
        holds(cluster, cluster_view(cluster, 0, 2)->lacks_more);

        cut(cluster, 0, 0);
        holds(cluster, cluster_run_until(cluster, all_know_all, 0, 20000)
                       != UINT64_MAX);
        finish(cluster);
    }
}


static int
first_old_one_is_told(const cluster_t *cluster, size_t host)
{
    return has_word_of(cluster, 1, 3) && has_word_of(cluster, 1, 5);
}


/* Old agents hear of each other only through new ones. */
static void
new_relays_serve_old_ones(void **state)
{
    uint64_t    seed;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = mixed(seed);
        cut(cluster, 1, FAKE_ALL);
        fake_net_weather(cluster->net)->loss_permille = 50;
        chatter(cluster, 10, 100);
        fake_net_weather(cluster->net)->loss_permille = 0;
        holds(cluster, cluster_run_until(cluster, first_old_one_is_told, 0,
                                         15000) != UINT64_MAX);
        cut(cluster, 1, 0);
        finish(cluster);
    }
}


/*
 * A new agent restarts with another group while the other new ones hear of it
 * only through old ones; when its datagrams reach them, they know the new
 * group.
 */
static void
restart_with_another_group_is_learned(void **state)
{
    uint64_t    seed;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = mixed(seed);
        cut(cluster, 0, FAKE_ALL);
        cluster_crash(cluster, 2);
        cluster_run_ms(cluster, 50);
        start(cluster, 2, 1, "h");
        cluster_run_ms(cluster, 2000);

        holds(cluster, cluster_facts(cluster, 0, 2)->epoch
                       == cluster->hosts[2].epoch);
        holds(cluster, cluster_view(cluster, 0, 2)->lacks_more);
        holds(cluster, cluster_view(cluster, 4, 2)->lacks_more);

        cut(cluster, 0, 0);
        cluster_settles(cluster, 5000);
        holds(cluster, knows(cluster, 0, 2, "h"));
        holds(cluster, knows(cluster, 4, 2, "h"));
        holds(cluster, knows(cluster, 2, 0, "g"));
        holds(cluster, cluster_false_deaths(cluster) == 0);
        cluster_destroy(cluster);
    }
}


/* The host's replica reports these models and this queue. */
static void
serve(cluster_t *cluster, size_t host, const char *models, size_t bytes,
    uint32_t waiting)
{
    cluster->hosts[host].models = models;
    cluster->hosts[host].models_bytes = bytes;
    cluster->hosts[host].engine = (llmgw_engine_load_t) {
        7, waiting, 500, LLMGW_ENGINE_ALL, 9000, 750, 0
    };
    cluster_set_service(cluster, host, LLMGW_SERVICE_READY);
}


/* A viewer knows the models and the load that the host's replica last
   reported. */
static int
knows_models(const cluster_t *cluster, size_t viewer, size_t host)
{
    const member_t        *member;
    const cluster_host_t  *said;

    said = &cluster->hosts[host];
    member = cluster_view(cluster, viewer, host);

    return member != NULL && member->models_bytes == said->models_bytes
           && (said->models_bytes == 0
               || (memcmp(member->models, said->models, said->models_bytes)
                   == 0
                   && member->facts.models
                      == llmgw_members_list_hash(said->models,
                                                 said->models_bytes)))
           && member->load.engine.reported == said->engine.reported
           && member->load.engine.waiting == said->engine.waiting
           && member->load.engine.kv_permille == said->engine.kv_permille
           && member->load.engine.kv_free_blocks
              == said->engine.kv_free_blocks
           && member->load.engine.hit_permille == said->engine.hit_permille;
}


/* Whether new agents learn the models within 20 s; replicas report each
   second. */
static int
new_ones_learn_models(cluster_t *cluster)
{
    size_t  s;

    for (s = 0; s < 20; s++) {
        cluster_set_load(cluster, 2, s);
        cluster_set_load(cluster, 4, s);
        cluster_run_ms(cluster, 1000);

        if (knows_models(cluster, 0, 2) && knows_models(cluster, 0, 4)
            && knows_models(cluster, 2, 4) && knows_models(cluster, 4, 2))
        {
            return 1;
        }
    }

    return 0;
}


/* Models and loads spread whatever is lost, and whichever agents relay
   records. */
static void
models_and_load_of_engines_spread(void **state)
{
    char        most[LLMGW_MEMBERS_MODELS_BYTES];
    uint64_t    seed;
    cluster_t  *cluster;

    memset(most, 'm', sizeof(most) - 1);
    most[sizeof(most) - 1] = '\0';

    cluster_each_seed(seed, SEEDS) {
        cluster = mixed(seed);
        fake_net_weather(cluster->net)->loss_permille = 200;
        serve(cluster, 2, "base\0lora-1", 12, 0);
        serve(cluster, 4, most, sizeof(most), 1000000);
        holds(cluster, new_ones_learn_models(cluster));

        serve(cluster, 2, "base\0lora-1\0lora-2", 19, 4);
        holds(cluster, new_ones_learn_models(cluster));

        serve(cluster, 2, NULL, 0, 0);
        cluster->hosts[4].engine = (llmgw_engine_load_t) { 0 };
        holds(cluster, new_ones_learn_models(cluster));
        finish(cluster);
    }
}


/* Long lists of models are not sent again while nothing changes. */
static void
models_cost_nothing_at_rest(void **state)
{
    size_t      i, k;
    char        most[LLMGW_MEMBERS_MODELS_BYTES];
    uint64_t    seed, bytes[2];
    cluster_t  *cluster;

    memset(most, 'm', sizeof(most) - 1);
    most[sizeof(most) - 1] = '\0';

    cluster_each_seed(seed, SEEDS) {
        for (i = 0; i < 2; i++) {
            cluster = cluster_formed(N, seed);

            for (k = 1; k < N; k++) {
                cluster->hosts[k].models = i ? most : NULL;
                cluster->hosts[k].models_bytes = i ? sizeof(most) : 0;
                cluster_set_service(cluster, k, LLMGW_SERVICE_READY);
            }

            cluster_run_ms(cluster, 10000);
            bytes[i] = fake_net_bytes(cluster->net);
            cluster_run_ms(cluster, 20000);
            bytes[i] = fake_net_bytes(cluster->net) - bytes[i];
            cluster_destroy(cluster);
        }

        assert_in_range(bytes[1], bytes[0] * 98 / 100, bytes[0] * 102 / 100);
    }
}


/* An old agent in the place of a new one has no group. */
static void
downgraded_agent_has_no_group(void **state)
{
    uint64_t    seed;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = mixed(seed);
        cluster_run_ms(cluster, 1000);
        cluster_crash(cluster, 4);
        fake_net_filter(cluster->net, 4, old_agent_filter);
        cluster_start(cluster, 4, LLMGW_ROLE_REPLICA, 0);
        cluster_settles(cluster, 5000);

        holds(cluster, !cluster_view(cluster, 0, 4)->lacks_more);
        holds(cluster, cluster_facts(cluster, 0, 4)->resume_group[0] == '\0');
        holds(cluster, cluster_facts(cluster, 2, 4)->resume_group[0] == '\0');
        cluster_destroy(cluster);
    }
}


/* While nothing changes, no agent sends whole records because they lack
   `more`. */
static void
mixed_cluster_costs_what_a_new_one_costs(void **state)
{
    size_t      i;
    uint64_t    seed, bytes[2];
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        for (i = 0; i < 2; i++) {
            cluster = i ? mixed(seed) : cluster_formed(N, seed);
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
 * Load is ordered by its own sequence: doubled and overtaken datagrams, in
 * the short form and in whole records, never bring an older figure back.
 */
static void
load_never_goes_backwards(void **state)
{
    uint64_t          seed, ms, last;
    cluster_t        *cluster;
    fake_weather_t   *weather;
    const member_t   *seen;

    cluster_each_seed(seed, SEEDS) {
        cluster = mixed(seed);
        cluster_set_service(cluster, 2, LLMGW_SERVICE_READY);
        weather = fake_net_weather(cluster->net);
        weather->reorder = FAKE_MAX_REORDER;
        weather->double_permille = 300;
        weather->loss_permille = 100;
        weather->jitter_us = 50000;

        for (ms = 0, last = 0; ms < 10000; ms++) {
            if (ms % 10 == 0) {
                cluster_set_load(cluster, 2,
                                 (swim_own(cluster_swim(cluster, 2))->load_seq
                                  + 1) % 1000);
            }

            if (ms % 500 == 0) {
                cluster_set_service(cluster, 2, ms % 1000
                                    ? LLMGW_SERVICE_READY
                                    : LLMGW_SERVICE_STALLED);
            }

            cluster_run_ms(cluster, 1);
            seen = cluster_view(cluster, 0, 2);
            holds(cluster, seen->load_seq >= last);
            holds(cluster, seen->load.active_requests
                           == seen->load_seq % 1000);
            last = seen->load_seq;
        }

        holds(cluster, last > 500);
        finish(cluster);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(new_ones_know_all_of_new_ones_under_loss),
        cmocka_unit_test(old_relays_take_nothing_away),
        cmocka_unit_test(new_relays_serve_old_ones),
        cmocka_unit_test(restart_with_another_group_is_learned),
        cmocka_unit_test(downgraded_agent_has_no_group),
        cmocka_unit_test(mixed_cluster_costs_what_a_new_one_costs),
        cmocka_unit_test(models_and_load_of_engines_spread),
        cmocka_unit_test(models_cost_nothing_at_rest),
        cmocka_unit_test(load_never_goes_backwards),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
