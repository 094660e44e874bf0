
/*
 * An engine's half of the lock service's protocol.  Pure: no socket, no clock.
 *
 *            connected         QUEUED         OFFER           GRANTED
 *    AWAY ------------> ASKED --------> WAITING ---> TAKING ----------> HELD
 *     ^ ^                 |                ^           |                 |
 *     | |  end of the     |                '-----------'  late, and so   |
 *     | '- connection ----+                                on            |
 *     |                                                                  |
 *     '------------------------------------------------------------------'
 *
 * What was granted stays granted when the connection ends: a holder says its
 * epoch when it connects again, and is granted once more.
 */

#ifndef SEAT_H
#define SEAT_H

#include <stdint.h>


typedef enum {
    SEAT_AWAY = 0,
    SEAT_ASKED,
    SEAT_WAITING,
    SEAT_TAKING,
    SEAT_HELD
} seat_state_t;

/* What is to be done now. */
typedef enum {
    SEAT_NOTHING = 0,
    SEAT_TAKE,              /* send TAKE with seat->offered */
    SEAT_BEGIN,             /* granted: take the lock file, then wake */
    SEAT_GO_ON,             /* granted again */
    SEAT_RETRY,             /* disconnect, and connect later */
    SEAT_REFUSED            /* there is no way on: end the process */
} seat_act_t;

typedef struct {
    seat_state_t  state;
    uint64_t      epoch;            /* that is held; 0: none */
    uint64_t      offered;
    uint64_t      last_epoch;       /* the greatest that was seen */
    uint64_t      lock;             /* instance of the granting service */
} seat_t;


/* ACQUIRE was sent. */
void seat_connected(seat_t *seat);

void seat_lost(seat_t *seat);

/* Gossip refuses each epoch above this one at this time: a waiter takes lower
   ones again. */
void seat_forget_above(seat_t *seat, uint64_t epoch_max);

/* epoch: the greatest that the service knows of; the next ones are above it,
   and so they stay if it forgets it. */
seat_act_t seat_queued(seat_t *seat, uint64_t epoch);
seat_act_t seat_offered(seat_t *seat, uint64_t epoch);
seat_act_t seat_granted(seat_t *seat, uint64_t epoch, uint64_t lock);
seat_act_t seat_refused(seat_t *seat, const char *reason);

#endif /* SEAT_H */
