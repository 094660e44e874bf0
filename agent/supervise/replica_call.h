
/*
 * Calls Drain and Undrain at the own replica over gRPC.
 *
 * One call at a time: a later call replaces the one that is under way.  Without
 * an answer in REPLICA_CALL_TIMEOUT_MS, or without a connection, it is tried
 * again, five times in all.  Any status is an answer: a replica that does not
 * know the call answers UNIMPLEMENTED, and then only the gateways keep requests
 * away from it.
 *
 * A replica lets only its own host drain it, which it knows by the peer's
 * address.  The replica's own address need not be a loopback one, so the call
 * is made from a loopback address: the kernel allows that towards all addresses
 * of this host.  For replicas on other hosts, every second try uses another
 * address.
 */

#ifndef REPLICA_CALL_H
#define REPLICA_CALL_H

#include <ev.h>

#include "common/grpc/conn.h"


typedef enum {
    REPLICA_CALL_DRAIN = 0,
    REPLICA_CALL_UNDRAIN
} replica_call_verb_t;

#define REPLICA_CALL_TIMEOUT_MS  1000
#define REPLICA_CALL_PAUSE_S     0.2
#define REPLICA_CALL_TRIES       5

/*
 * The end of a call: the gRPC status and its message; or -1, and why there was
 * none.
 */
typedef void (*replica_call_done_pt)(void *data, replica_call_verb_t verb,
    int status, const char *message);

typedef struct replica_call_s  replica_call_t;


/* options are copied; their source is not used.  NULL: out of memory. */
replica_call_t *replica_call_create(struct ev_loop *loop,
    const address_t *address, const grpc_conn_options_t *options,
    replica_call_done_pt on_done, void *data);
void replica_call_destroy(replica_call_t *call);

/*
 * Calls.  on_done is called from the loop, once for each call that is not
 * dropped.
 */
void replica_call_say(replica_call_t *call, replica_call_verb_t verb);

/* Drops the call: its replica is gone, and the next replica must not get it. */
void replica_call_drop(replica_call_t *call);

#endif /* REPLICA_CALL_H */
