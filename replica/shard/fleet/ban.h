
/*
 * How long a shard that failed is excluded: 15 s, then twice as long with each
 * failure, up to 5 min.  When it has computed something right, the next term is
 * 15 s again.
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
    uint64_t        term_ms;        /* the last term; 0: the next one is the
                                       first */
    shard_reason_t  reason;         /* of the last failure */
} ban_t;


int ban_is_on(const ban_t *ban, uint64_t now_ms);

/*
 * Begins a ban, and returns its term.  0: a ban is on already, and continues;
 * if its reason was lateness, it becomes the new one.  Corruption during a ban
 * for another reason begins a new term, since the old one may be nearly over.
 */
uint64_t ban_begin(ban_t *ban, shard_reason_t reason, uint64_t now_ms);

/*
 * The shard computed something right: the next term is the first again.  Does
 * nothing while a ban is on, since work that began before the ban proves
 * nothing.  (Sessions that began during the ban, because no other shard was
 * left, are not distinguished.)
 */
void ban_forgive(ban_t *ban, uint64_t now_ms);

/*
 * The shard's process was replaced: ends a ban, unless it is for corruption, of
 * which the machine may be the cause.  Terms still double.
 */
void ban_lift(ban_t *ban);

#endif /* FLEET_BAN_H */
