
/*
 * Members on a fake network, and questions about what they think of each
 * other.  Member i has the id "m<i>" and host i's address, unless it is
 * started as somebody else; host 0 is the gateway of cluster_start_all().
 *
 * A scenario is run with several seeds (cluster_seeds()), and says what must
 * hold with holds().  When something does not, the seed is printed, and what
 * members came to think of each other lately; LLMGW_SIM_LOG=FILE has every
 * datagram as well, LLMGW_SIM_FIRST=SEED LLMGW_SIM_SEEDS=1 that seed alone.
 */

#ifndef CLUSTER_H
#define CLUSTER_H

#include <stdio.h>

#include "agent/node.h"
#include "t/sim/stage/fake_net.h"


#define CLUSTER_NO_SEED       SIZE_MAX
#define CLUSTER_PERIOD_MS     500
#define CLUSTER_MAX_NOTES     40

/* What a member came to think of another. */
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
    uint64_t       suspected_us;    /* first time that anybody said so */
    uint64_t       dead_us;
    size_t         ndeaths;         /* verdicts of others while it ran */
    size_t         nverdicts;       /* of its own over those who ran */
    size_t         nconflicts;      /* times it was told to end */
    size_t         ntold;           /* times its replica was to hear Drain */
    size_t         nuntold;         /* or Undrain */
    int            is_writing;      /* to its disk, what it promises */
    size_t         nrestarts;       /* times its replica was restarted */
    char           version[LLMGW_MEMBERS_NAME_BYTES];   /* as what, last */
    size_t         nskews;          /* senders whose epoch is refused here */
    size_t         nown_skews;      /* own epochs that were given up */
    size_t         nordered;        /* orders of its own that came to an end */
    order_rc_t     ordered;         /* what became of the last */
} cluster_host_t;

struct cluster_s {
    fake_net_t      *net;
    size_t           n;
    uint64_t         random_seed;
    const char      *name;          /* for those who start from now on */
    struct crypt_s  *crypt;         /* likewise; NULL: plain */
    uint32_t         weight;
    const char      *drain_kept;    /* what a state directory has; likewise */
    int              can_restart;   /* likewise */
    const char      *resume_group;  /* likewise */
    cluster_host_t  *hosts;
    size_t          *wrong_line;    /* cluster_ask.c */
    FILE            *log;           /* LLMGW_SIM_LOG; or NULL */
    size_t           nnotes;
    cluster_note_t   notes[CLUSTER_MAX_NOTES];
};


/* How many seeds a scenario is run with, and the first: of the environment,
   or n and 1. */
uint64_t cluster_seeds(uint64_t n);
uint64_t cluster_first_seed(void);

#define cluster_each_seed(seed, n)                                            \
    for ((seed) = cluster_first_seed();                                       \
         (seed) < cluster_first_seed() + cluster_seeds(n);                    \
         (seed)++)

cluster_t *cluster_create(size_t n, uint64_t random_seed);
void cluster_destroy(cluster_t *cluster);

/* Fails the test where `is` is 0, with all that is known about why. */
void cluster_holds(const cluster_t *cluster, int is, const char *what,
    const char *file, int line);

#define holds(cluster, what)                                                  \
    cluster_holds(cluster, (what) != 0, #what, __FILE__, __LINE__)

void cluster_start(cluster_t *cluster, size_t host, llmgw_role_t role,
    size_t seed_host);

/* The same with an epoch of one's own. */
void cluster_start_at(cluster_t *cluster, size_t host, llmgw_role_t role,
    size_t seed_host, uint64_t epoch);

/*
 * The same with the id of another host, and that one has this one's then; if
 * it runs there are two of one id.
 */
void cluster_start_as(cluster_t *cluster, size_t host, size_t as,
    llmgw_role_t role, size_t seed_host, uint64_t epoch);

/* All, each with host 0 as its seed, 10 ms apart; host 0 is a gateway. */
void cluster_start_all(cluster_t *cluster);

/* Created, started and whole. */
cluster_t *cluster_formed(size_t n, uint64_t random_seed);

/*
 * The same without the joining, for large ones: everybody knows everybody at
 * the start, as from a segment.
 */
cluster_t *cluster_restored(size_t n, uint64_t random_seed);

/*
 * What the segment of a host would hold, host i's record at i; all hosts must
 * be known.  To be freed by llmgw_members_view_done().
 */
void cluster_segment(const cluster_t *cluster, size_t host,
    llmgw_members_view_t *view);

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
const llmgw_member_t *cluster_facts(const cluster_t *cluster, size_t viewer,
    size_t host);

const swim_t *cluster_swim(const cluster_t *cluster, size_t host);
const swim_counters_t *cluster_counters(const cluster_t *cluster,
    size_t host);

void cluster_set_service(cluster_t *cluster, size_t host,
    llmgw_service_t service);

/* Of all running others: everyone sees the host so. */
int cluster_all_see(const cluster_t *cluster, size_t host,
    llmgw_liveness_t liveness);
int cluster_all_see_alive(const cluster_t *cluster, size_t host);
int cluster_all_see_dead(const cluster_t *cluster, size_t host);
int cluster_all_see_gone(const cluster_t *cluster, size_t host);
int cluster_any_suspects(const cluster_t *cluster, size_t host);

/* Everybody who runs is ALIVE for everybody who runs; host is not used. */
int cluster_is_whole(const cluster_t *cluster, size_t host);

/*
 * What must be so at the end of everything: whole, in the life that runs;
 * nobody who does not run is present anywhere; all tables are equal, all
 * queues empty.  host is not used.
 */
int cluster_is_settled(const cluster_t *cluster, size_t host);

/*
 * The weather clears, all ways are healed, what was begun before comes to its
 * end (4.5 s), and within max_ms from then the cluster is settled; and still
 * is 2 s later.  The ms it took.
 */
uint64_t cluster_settles(cluster_t *cluster, uint64_t max_ms);

/* Verdicts of death over those who ran. */
size_t cluster_false_deaths(const cluster_t *cluster);

#endif /* CLUSTER_H */
