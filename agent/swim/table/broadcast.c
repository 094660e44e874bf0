
#include "swim/table/broadcast.h"


/* Receiving an update that we would send counts as this many sends. */
#define BROADCAST_RECEIVED_SENDS  4

#define broadcast_member(link)                                                \
    ((member_t *) ((char *) (link) - offsetof(member_t, broadcast)))

/*
 * The class of each of six places in a datagram, as long as it has an update.
 */
static const uint8_t  broadcast_slots[] = {
    BROADCAST_GONE, BROADCAST_SUSPICION, BROADCAST_GONE, BROADCAST_JOIN,
    BROADCAST_SUSPICION, BROADCAST_GONE
};


void
broadcast_init(broadcast_t *queue)
{
    size_t             i, class;
    broadcast_link_t  *head;

    queue->n = 0;

    for (class = 0; class < BROADCAST_NCLASSES; class++) {
        queue->filled[class] = 0;

        for (i = 0; i < BROADCAST_MAX_SENDS; i++) {
            head = &queue->buckets[class][i];
            head->prev = head;
            head->next = head;
        }
    }
}


static void
broadcast_insert(broadcast_t *queue, broadcast_link_t *link)
{
    broadcast_link_t  *head;

    head = &queue->buckets[link->class][link->sends];

    link->prev = head->prev;
    link->next = head;
    head->prev->next = link;
    head->prev = link;
    queue->filled[link->class] |= 1ULL << link->sends;
    queue->n++;
}


void
broadcast_remove(broadcast_t *queue, member_t *member)
{
    broadcast_link_t  *link, *head;

    link = &member->broadcast;

    if (link->prev == NULL) {
        return;
    }

    link->prev->next = link->next;
    link->next->prev = link->prev;
    link->prev = NULL;
    link->next = NULL;
    queue->n--;

    head = &queue->buckets[link->class][link->sends];

    if (head->next == head) {
        queue->filled[link->class] &= ~(1ULL << link->sends);
    }
}


void
broadcast_add(broadcast_t *queue, member_t *member, broadcast_class_t class)
{
    broadcast_remove(queue, member);
    member->broadcast.class = class;
    member->broadcast.sends = 0;
    broadcast_insert(queue, &member->broadcast);
}


unsigned
broadcast_limit(size_t n)
{
    unsigned  log2;

    for (log2 = 0; (1ULL << log2) < n + 1; log2++) { /* void */ }

    return 3 * log2 < BROADCAST_MAX_SENDS ? 3 * log2 : BROADCAST_MAX_SENDS;
}


/* The first link of a class that was sent at least that often; or NULL. */
static const broadcast_link_t *
broadcast_first_from(const broadcast_t *queue, size_t class, unsigned sends)
{
    uint64_t  filled;

    if (sends >= BROADCAST_MAX_SENDS) {
        return NULL;
    }

    filled = queue->filled[class] >> sends << sends;

    return filled ? queue->buckets[class][__builtin_ctzll(filled)].next
                  : NULL;
}


void
broadcast_walk(const broadcast_t *queue, broadcast_walk_t *walk)
{
    size_t  class;

    walk->queue = queue;
    walk->slot = 0;

    for (class = 0; class < BROADCAST_NCLASSES; class++) {
        walk->next[class] = broadcast_first_from(queue, class, 0);
    }
}


static member_t *
broadcast_take(broadcast_walk_t *walk, size_t class)
{
    const broadcast_t       *queue;
    const broadcast_link_t  *link;

    queue = walk->queue;
    link = walk->next[class];

    walk->next[class] = link->next != &queue->buckets[class][link->sends]
                        ? link->next
                        : broadcast_first_from(queue, class, link->sends + 1);

    return broadcast_member(link);
}


member_t *
broadcast_next(broadcast_walk_t *walk)
{
    size_t  class;

    class = broadcast_slots[walk->slot++ % sizeof(broadcast_slots)];

    if (walk->next[class] != NULL) {
        return broadcast_take(walk, class);
    }

    for (class = 0; class < BROADCAST_NCLASSES; class++) {
        if (walk->next[class] != NULL) {
            return broadcast_take(walk, class);
        }
    }

    return NULL;
}


static void
broadcast_count(broadcast_t *queue, member_t *member, unsigned n,
    unsigned limit)
{
    unsigned  sends;

    if (member->broadcast.prev == NULL) {
        return;
    }

    sends = member->broadcast.sends + n;
    broadcast_remove(queue, member);

    if (sends < limit && sends < BROADCAST_MAX_SENDS) {
        member->broadcast.sends = sends;
        broadcast_insert(queue, &member->broadcast);
    }
}


void
broadcast_sent(broadcast_t *queue, member_t *member, unsigned limit)
{
    broadcast_count(queue, member, 1, limit);
}


void
broadcast_received(broadcast_t *queue, member_t *member, unsigned limit)
{
    if (member->broadcast.class == BROADCAST_JOIN) {
        broadcast_count(queue, member, BROADCAST_RECEIVED_SENDS, limit);
    }
}
