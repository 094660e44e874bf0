
/*
 * The seeds' addresses, resolved outside of the loop.  Numeric seeds are
 * handed over at once.  Names are resolved in a thread, since getaddrinfo()
 * may block: every second until a member has answered (a name may not exist
 * before its member does), then every ten seconds, since members move.
 *
 * If a name has several addresses (all pods of a service), up to
 * RESOLVE_NAME_SEEDS of them are seeds, so that one which is gone does not
 * matter.
 */

#ifndef RESOLVE_H
#define RESOLVE_H

#include <ev.h>

#include "common/address.h"


typedef struct resolve_s  resolve_t;

/* Gets a new result: all addresses; there may be none. */
typedef void (*resolve_done_pt)(void *data, const address_t *addresses,
    size_t n);

/* Returns whether the seeds are still urgently needed. */
typedef int (*resolve_is_urgent_pt)(void *data);

#define RESOLVE_MAX_SEEDS    32

/*
 * Most seeds from one name: enough that some of them live; but each that lives
 * sends its whole table.
 */
#define RESOLVE_NAME_SEEDS   8

#define RESOLVE_ERROR_BYTES  256

/*
 * list: "HOST:PORT,HOST:PORT".  family is that of the socket that is to reach
 * them: with AF_INET names have IPv4 addresses only.  on_done is called from
 * the loop, not before this has returned.  NULL and a reason in error: a seed
 * is malformed, or there are more than RESOLVE_MAX_SEEDS.
 */
resolve_t *resolve_create(struct ev_loop *loop, const char *list,
    int family, resolve_done_pt on_done, resolve_is_urgent_pt is_urgent,
    void *data, char *error);

/* Does not wait for a name server that has not answered. */
void resolve_destroy(resolve_t *resolve);

#endif /* RESOLVE_H */
