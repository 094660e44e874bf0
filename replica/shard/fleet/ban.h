
/*
 * How long a shard that failed is left out: 15 s, then twice as long with each
 * failure, up to 5 min, until it has done something right again.
 *
 * Pure: the clock is an argument, in ms.
 */

#ifndef FLEET_BAN_H
#define FLEET_BAN_H

#include <stdint.h>

#include "replica/shard/reason.h"


#define BAN_MS      15000
#define BAN_MAX_MS  300000

/* Zeroed: never failed. */
typedef struct {
    uint64_t        until_ms;
    uint64_t        term_ms;        /* the last one; 0: the next is the first */
    shard_reason_t  reason;         /* of the last one */
} ban_t;


int ban_is_on(const ban_t *ban, uint64_t now_ms);

/*
 * The new term; 0: one is on already, and nothing has changed but its reason,
 * if it was for lateness.  Corruption within a term for anything else begins
 * one of its own: the rest of that one may be next to nothing.
 */
uint64_t ban_begin(ban_t *ban, shard_reason_t reason, uint64_t now_ms);

/*
 * It did something right: the next term is the first again.  Nothing while a
 * ban is on: what had begun before it proves nothing, and sessions that began
 * meanwhile, since nobody else was left, are not told from that.
 */
void ban_forgive(ban_t *ban, uint64_t now_ms);

/*
 * Another process serves there now: a ban that is on ends, unless it is for
 * corruption, for which the machine may be the cause.  Terms still double.
 */
void ban_lift(ban_t *ban);

#endif /* FLEET_BAN_H */
