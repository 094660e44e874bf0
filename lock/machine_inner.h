
/* Shared by the machine's own files. */

#ifndef LOCK_MACHINE_INNER_H
#define LOCK_MACHINE_INNER_H

#include "lock/machine.h"


#define MACHINE_US  1000    /* in a ms */


/* machine.c */

/* Service time goes on. */
void machine_advance(machine_t *m);

/* The group of this name, or a new one; NULL: all are in use. */
machine_group_t *machine_group(machine_t *m, const char *name);

void machine_forget(machine_t *m, machine_engine_t *e);

/* queue.c */

void machine_enqueue(machine_group_t *g, machine_engine_t *e, int is_first);
void machine_dequeue(machine_group_t *g, machine_engine_t *e);

/* Tells waiters their positions, and offers to the first if it is time. */
void machine_offer_next(machine_t *m, machine_group_t *g);

/* The offer was not taken: to the tail. */
void machine_missed(machine_t *m, machine_group_t *g);

/* The engine, in no queue, becomes the holder. */
void machine_hold(machine_t *m, machine_group_t *g, machine_engine_t *e);

/* 0, or -1: is_unkept. */
int machine_keep(machine_t *m);

/* holder.c */

/* Updates the holder's state: faulty, or no longer. */
void machine_judge(machine_t *m, machine_group_t *g);

#endif /* LOCK_MACHINE_INNER_H */
