
/* The clock of the agent: the system's, and a libev timer for the alarm. */

#ifndef CLOCK_EV_H
#define CLOCK_EV_H

#include <ev.h>

#include "net/clock.h"


/* NULL: out of memory. */
clock_source_t *clock_ev_create(struct ev_loop *loop);
void clock_ev_destroy(clock_source_t *clock);

#endif /* CLOCK_EV_H */
