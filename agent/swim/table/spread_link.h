
/*
 * A member's place in the queue of table/spread.h, embedded in the member so
 * that queueing allocates nothing.
 */

#ifndef SPREAD_LINK_H
#define SPREAD_LINK_H

#include <stdint.h>


typedef struct spread_link_s  spread_link_t;

struct spread_link_s {
    spread_link_t  *prev;           /* NULL: not queued */
    spread_link_t  *next;
    uint8_t         class;          /* spread_class_t */
    uint8_t         sends;
};

#endif /* SPREAD_LINK_H */
