
/*
 * A member's place in the queue of table/broadcast.h, embedded in the member so
 * that queueing allocates nothing.
 */

#ifndef BROADCAST_LINK_H
#define BROADCAST_LINK_H

#include <stdint.h>


typedef struct broadcast_link_s  broadcast_link_t;

struct broadcast_link_s {
    broadcast_link_t  *prev;           /* NULL: not queued */
    broadcast_link_t  *next;
    uint8_t         class;          /* broadcast_class_t */
    uint8_t         sends;
};

#endif /* BROADCAST_LINK_H */
