
/*
 * A member's place in the queue of agent/spread.h, embedded in the member so
 * that queueing allocates nothing.
 */

#ifndef SPREAD_LINK_H
#define SPREAD_LINK_H


typedef struct spread_link_s  spread_link_t;

struct spread_link_s {
    spread_link_t  *prev;           /* NULL: not queued */
    spread_link_t  *next;
    unsigned        sends;
};

#endif /* SPREAD_LINK_H */
