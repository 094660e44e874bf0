
/*
 * Where a gateway of `llmgw up` lives: two directories and an address.
 *
 *   dir    what people read: configuration, keys, logs.  Locked for as long as
 *          this process lives; "run" in it is a symbolic link to
 *   run    sockets, the members segment, nginx's pid and temporary files; in
 *          memory, with a short name, since the path of a socket has 107 bytes
 *          at most.  Each start makes its own and removes the previous one
 *   keep   beside run, for engines started here: the same at each start, so
 *          that a start waits for engines that the previous one left
 *   host   127.x.y.z, derived from dir, where adapters serve and agents
 *          gossip, so that two gateways of one machine do not collide
 */

#ifndef PLACE_H
#define PLACE_H

#include <limits.h>


#define PLACE_ERROR_BYTES  (PATH_MAX + 256)
#define PLACE_RUN_BYTES    48
#define PLACE_HOST_BYTES   16

/* Ports at `host`, below the ports of outgoing connections. */
#define PLACE_GOSSIP_PORT  17946    /* the gateway's agent's, then engines' */
#define PLACE_GRPC_PORT    7946

typedef struct {
    char  dir[PATH_MAX];
    char  run[PLACE_RUN_BYTES];
    char  keep[PLACE_RUN_BYTES];
    char  host[PLACE_HOST_BYTES];
    int   lock;                     /* a descriptor; -1: none */
} place_t;


/*
 * Sets the directory, as an absolute path, and makes it if need be: `dir`, or,
 * if that is NULL, that of a gateway at `listen`.  0, or -1 and a reason.
 */
int place_find(place_t *place, const char *dir, const char *listen,
    char error[PLACE_ERROR_BYTES]);

/* Likewise, for a gateway that runs; for `llmgw status` and the like. */
int place_find_running(place_t *place, const char *dir,
    char error[PLACE_ERROR_BYTES]);

/*
 * Locks the directory and makes the rest of the place.  0, or -1 and a reason.
 */
int place_take(place_t *place, char error[PLACE_ERROR_BYTES]);

/* Removes what a run has left in memory. */
void place_done(place_t *place);

#endif /* PLACE_H */
