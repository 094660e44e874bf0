
/* Shared by the machine's own files. */

#ifndef LOCK_MACHINE_INNER_H
#define LOCK_MACHINE_INNER_H

#include "lock/machine.h"


#define MACHINE_US  1000    /* in a ms */


/* machine.c */

/* Advances service time. */
void machine_advance(machine_t *m);

/* The group of this name, or a new one; NULL: all are in use. */
machine_group_t *machine_group(machine_t *m, const char *name);

void machine_forget(machine_t *m, machine_engine_t *e);

/* queue.c */

void machine_enqueue(machine_group_t *g, machine_engine_t *e, int is_first);
void machine_dequeue(machine_group_t *g, machine_engine_t *e);

/* Sends waiters their positions, and makes an offer to the first one if the
   group is free. */
void machine_offer_next(machine_t *m, machine_group_t *g);

/* The offer was not taken: moves the engine to the tail of the queue. */
void machine_missed(machine_t *m, machine_group_t *g);

/* The engine, in no queue, becomes the holder. */
void machine_hold(machine_t *m, machine_group_t *g, machine_engine_t *e);

/* Writes epoch and holders.  0, or -1: it failed, and is_unkept is set. */
int machine_keep(machine_t *m);

/* holder.c */

/* Updates the holder's state: faulty, or no longer. */
void machine_judge(machine_t *m, machine_group_t *g);

#endif /* LOCK_MACHINE_INNER_H */
