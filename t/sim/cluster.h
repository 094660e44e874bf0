
/*
 * Members on a fake network, and questions about what they think of each
 * other.  Member i has the id "m<i>"; it is a gateway where cluster_start()
 * was told so.
 */

#ifndef CLUSTER_H
#define CLUSTER_H

#include "agent/node.h"
#include "fake_net.h"


#define CLUSTER_NO_SEED  SIZE_MAX

typedef struct cluster_s  cluster_t;

typedef struct {
    cluster_t  *cluster;
    node_t     *node;               /* NULL: not running */
    uint64_t    epoch;
    char        id[LLMGW_MEMBERS_NAME_BYTES];
    uint64_t    suspected_us;       /* first time that anybody said so */
    uint64_t    dead_us;
    size_t      ndeaths;            /* verdicts of others while it ran */
    size_t      nconflicts;
} cluster_host_t;

struct cluster_s {
    fake_net_t      *net;
    size_t           n;
    uint64_t         random_seed;
    cluster_host_t  *hosts;
};


cluster_t *cluster_create(size_t n, uint64_t random_seed);
void cluster_destroy(cluster_t *cluster);

void cluster_start(cluster_t *cluster, size_t host, llmgw_role_t role,
    size_t seed_host);

/* The same with an epoch of one's own. */
void cluster_start_at(cluster_t *cluster, size_t host, llmgw_role_t role,
    size_t seed_host, uint64_t epoch);

/* All, each with host 0 as its seed, 10 ms apart; host 0 is a gateway. */
void cluster_start_all(cluster_t *cluster);

/* Ends without a word. */
void cluster_crash(cluster_t *cluster, size_t host);

void cluster_run_ms(cluster_t *cluster, uint64_t ms);

/* Runs in steps of 1 ms until the question is answered with yes: the ms it
   took, or UINT64_MAX when it was not within max_ms. */
typedef int (*cluster_ask_pt)(const cluster_t *cluster, size_t host);
uint64_t cluster_run_until(cluster_t *cluster, cluster_ask_pt ask,
    size_t host, uint64_t max_ms);

/* What a running viewer knows of a host; NULL: nothing. */
const member_t *cluster_view(const cluster_t *cluster, size_t viewer,
    size_t host);

/* Of all running others: everyone sees the host so. */
int cluster_all_see(const cluster_t *cluster, size_t host,
    llmgw_liveness_t liveness);
int cluster_all_see_alive(const cluster_t *cluster, size_t host);
int cluster_all_see_dead(const cluster_t *cluster, size_t host);
int cluster_any_suspects(const cluster_t *cluster, size_t host);

/* Everybody who runs is ALIVE for everybody who runs; host is not used. */
int cluster_is_whole(const cluster_t *cluster, size_t host);

/* Verdicts of death over those who ran. */
size_t cluster_false_deaths(const cluster_t *cluster);

#endif /* CLUSTER_H */
