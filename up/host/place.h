
/*
 * Where a gateway of `llmgw up` lives: two directories and an address.
 *
 *   dir    what people read: configuration, keys, logs.  Locked for as long as
 *          this process lives; "run" in it is a symbolic link to
 *   run    sockets, the members segment, nginx's pid and temporary files; in
 *          memory, with a short name, since the path of a socket has 107 bytes
 *          at most.  Each start has one of its own and removes the last one
 *   keep   beside run, for engines that are started: the same at each start, so
 *          that the next one waits for those that the last one has left
 *   host   127.x.y.z, derived from dir, where adapters serve and agents
 *          gossip: two gateways of one machine do not meet
 */

#ifndef PLACE_H
#define PLACE_H

#include <limits.h>


#define PLACE_ERROR_BYTES  (PATH_MAX + 256)
#define PLACE_RUN_BYTES    48
#define PLACE_HOST_BYTES   16

/* Ports at the host: below those of outgoing connections. */
#define PLACE_GOSSIP_PORT  17946    /* of the gateway's agent; then engines' */
#define PLACE_GRPC_PORT    7946

typedef struct {
    char  dir[PATH_MAX];
    char  run[PLACE_RUN_BYTES];
    char  keep[PLACE_RUN_BYTES];
    char  host[PLACE_HOST_BYTES];
    int   lock;                     /* a descriptor; -1: none */
} place_t;


/*
 * The directory of --dir, or for NULL the one of a gateway at `listen`, made
 * if need be, as an absolute path.  0, or -1 and a reason.
 */
int place_find(place_t *place, const char *dir, const char *listen,
    char error[PLACE_ERROR_BYTES]);

/* The same for one that exists already; for `llmgw status` and the like. */
int place_find_running(place_t *place, const char *dir,
    char error[PLACE_ERROR_BYTES]);

/* Locks it and makes the rest.  0, or -1 and a reason. */
int place_take(place_t *place, char error[PLACE_ERROR_BYTES]);

/* Removes what a run leaves in memory. */
void place_done(place_t *place);

#endif /* PLACE_H */
