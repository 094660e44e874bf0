
/*
 * Members on a fake network, and questions about what they know of each
 * other.  Member i has the id "m<i>" and host i's address, unless it is
 * started with another id; host 0 is the gateway of cluster_start_all().
 *
 * A scenario is run with several seeds (cluster_seeds()), and asserts with
 * holds().  When an assertion fails, the seed and the members' latest changes
 * are printed.  LLMGW_SIM_LOG=FILE logs every datagram as well, and
 * LLMGW_SIM_FIRST=SEED LLMGW_SIM_SEEDS=1 runs only that seed.
 */

#ifndef CLUSTER_H
#define CLUSTER_H

#include <stdio.h>

#include "node/node.h"
#include "sim/swim/fake_net.h"


#define CLUSTER_NO_SEED       SIZE_MAX
#define CLUSTER_PERIOD_MS     500
#define CLUSTER_MAX_NOTES     40

/* A change in what one member knows of another. */
typedef struct {
    uint64_t          now_us;
    size_t            viewer;
    char              id[LLMGW_MEMBERS_NAME_BYTES];
    int               is_removed;
    llmgw_liveness_t  liveness;
    uint64_t          epoch;
    uint64_t          incarnation;
    unsigned          nconfirmers;
} cluster_note_t;

typedef struct cluster_s  cluster_t;

typedef struct {
    cluster_t     *cluster;
    node_t        *node;            /* NULL: not running */
    uint64_t       epoch;           /* at its start */
    llmgw_role_t   role;
    char           id[LLMGW_MEMBERS_NAME_BYTES];
    uint64_t       started_us;
    uint64_t       suspected_us;    /* first suspicion by any member */
    uint64_t       dead_us;
    size_t         ndeaths;         /* others' verdicts while it ran */
    size_t         nverdicts;       /* its own verdicts on running members */
    size_t         nconflicts;      /* times it had to end as a double */
    size_t         ntold;           /* Drain calls to its replica */
    size_t         nuntold;         /* Undrain calls to its replica */
    int            is_writing;      /* its state is not on disk yet */
    size_t         nrestarts;       /* times its replica was restarted */
    size_t         nswitches;       /* times it had to end, to stand by */
    char           version[LLMGW_MEMBERS_NAME_BYTES];   /* of its restart */
    size_t         nskews;          /* senders whose epoch is refused here */
    size_t         nown_skews;      /* own epochs that were given up */
    size_t         ngroup_skews;    /* epochs of groups that it refused */
    size_t         nordered;        /* orders that it gave and that ended */
    order_rc_t     ordered;         /* the last of them, its result */

    /* What its replica reports from the next cluster_set_service() and
       cluster_set_load() on. */
    const char           *models;
    size_t                models_bytes;
    llmgw_engine_load_t   engine;
    const char           *group;    /* NULL: none */
    llmgw_group_state_t   group_state;
    uint64_t              group_epoch;
    const llmgw_shard_t  *shard;    /* NULL: it is not a shard */
    int                   orchestrates;
} cluster_host_t;

struct cluster_s {
    fake_net_t      *net;
    size_t           n;
    uint64_t         random_seed;
    const char      *name;          /* of members that start from now on */
    struct crypt_s  *crypt;         /* likewise; NULL: not sealed */
    uint32_t         weight;
    const char      *drain_kept;    /* likewise: from the state directory */
    int              can_restart;   /* likewise */
    const char      *resume_group;  /* likewise */
    cluster_host_t  *hosts;
    size_t          *wrong_line;    /* the record that was last wrong */
    FILE            *log;           /* that LLMGW_SIM_LOG names; or NULL */
    size_t           nnotes;
    cluster_note_t   notes[CLUSTER_MAX_NOTES];
};


/* The number of seeds that a scenario is run with, and the first: from the
   environment, or n and 1. */
uint64_t cluster_seeds(uint64_t n);
uint64_t cluster_first_seed(void);

#define cluster_each_seed(seed, n)                                            \
    for ((seed) = cluster_first_seed();                                       \
         (seed) < cluster_first_seed() + cluster_seeds(n);                    \
         (seed)++)

cluster_t *cluster_create(size_t n, uint64_t random_seed);
void cluster_destroy(cluster_t *cluster);

/* Fails the test if `is` is 0, and prints the seed and the latest changes. */
void cluster_holds(const cluster_t *cluster, int is, const char *what,
    const char *file, int line);

#define holds(cluster, what)                                                  \
    cluster_holds(cluster, (what) != 0, #what, __FILE__, __LINE__)

void cluster_start(cluster_t *cluster, size_t host, llmgw_role_t role,
    size_t seed_host);

/* The same with a chosen epoch. */
void cluster_start_at(cluster_t *cluster, size_t host, llmgw_role_t role,
    size_t seed_host, uint64_t epoch);

/*
 * The same with the id of host `as`.  If that host does not run, it gets this
 * host's id; if it runs, two members have one id.
 */
void cluster_start_as(cluster_t *cluster, size_t host, size_t as,
    llmgw_role_t role, size_t seed_host, uint64_t epoch);

/* Starts all hosts, 10 ms apart, with host 0, a gateway, as their seed. */
void cluster_start_all(cluster_t *cluster);

/* Creates and starts a cluster; returns when every member knows every other. */
cluster_t *cluster_formed(size_t n, uint64_t random_seed);

/*
 * The same without joining, for large clusters: every member knows every other
 * at the start, as from a segment.
 */
cluster_t *cluster_restored(size_t n, uint64_t random_seed);

/*
 * What the segment of a host would contain, host i's record at i; all hosts
 * must be known.  To be freed by llmgw_members_view_done().
 */
void cluster_segment(const cluster_t *cluster, size_t host,
    llmgw_members_view_t *view);

/* Ends the member without a LEFT. */
void cluster_crash(cluster_t *cluster, size_t host);

void cluster_run_ms(cluster_t *cluster, uint64_t ms);

/* Runs in steps of 1 ms until the question is true; returns the ms taken, or
   UINT64_MAX if it was not true within max_ms. */
typedef int (*cluster_ask_pt)(const cluster_t *cluster, size_t host);
uint64_t cluster_run_until(cluster_t *cluster, cluster_ask_pt ask,
    size_t host, uint64_t max_ms);

/* What a running viewer knows of a host; NULL: nothing. */
const member_t *cluster_view(const cluster_t *cluster, size_t viewer,
    size_t host);
const llmgw_member_t *cluster_facts(const cluster_t *cluster, size_t viewer,
    size_t host);

const swim_t *cluster_swim(const cluster_t *cluster, size_t host);
const swim_counters_t *cluster_counters(const cluster_t *cluster,
    size_t host);

/* The host's replica reports this service, with the models and the group in
   its cluster_host_t. */
void cluster_set_service(cluster_t *cluster, size_t host,
    llmgw_service_t service);

/* The host's replica reports this load, with the engine's load in its
   cluster_host_t. */
void cluster_set_load(cluster_t *cluster, size_t host,
    uint32_t active_requests);

/* Whether all other running members see the host in this state. */
int cluster_all_see(const cluster_t *cluster, size_t host,
    llmgw_liveness_t liveness);
int cluster_all_see_alive(const cluster_t *cluster, size_t host);
int cluster_all_see_dead(const cluster_t *cluster, size_t host);
int cluster_all_see_gone(const cluster_t *cluster, size_t host);
int cluster_any_suspects(const cluster_t *cluster, size_t host);

/* Whether all running members see each other ALIVE; host is not used. */
int cluster_is_whole(const cluster_t *cluster, size_t host);

/*
 * What must hold in the end: all running members know each other with their
 * current epochs, no member that does not run is present in any table, all
 * tables are equal, and all queues are empty.  host is not used.
 */
int cluster_is_settled(const cluster_t *cluster, size_t host);

/*
 * Ends all faults, heals all paths, and waits until pings that are on their
 * way have failed (4.5 s); the cluster must be settled within max_ms after
 * that, and still be settled 2 s later.  Returns the ms from the end of that
 * wait to the first time it was settled.
 */
uint64_t cluster_settles(cluster_t *cluster, uint64_t max_ms);

/* The number of verdicts of death on running members. */
size_t cluster_false_deaths(const cluster_t *cluster);

#endif /* CLUSTER_H */
