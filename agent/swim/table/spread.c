
#include "swim/table/spread.h"


/* What hearing the same counts for. */
#define SPREAD_HEARD_SENDS  4

#define spread_member(link)                                                   \
    ((member_t *) ((char *) (link) - offsetof(member_t, spread)))

/* Whose turn each of six places is, while there is something of it. */
static const uint8_t  spread_turns[] = {
    SPREAD_GONE, SPREAD_DOUBT, SPREAD_GONE, SPREAD_JOIN, SPREAD_DOUBT,
    SPREAD_GONE
};


void
spread_init(spread_t *spread)
{
    size_t          i, class;
    spread_link_t  *head;

    spread->n = 0;

    for (class = 0; class < SPREAD_NCLASSES; class++) {
        spread->filled[class] = 0;

        for (i = 0; i < SPREAD_MAX_SENDS; i++) {
            head = &spread->buckets[class][i];
            head->prev = head;
            head->next = head;
        }
    }
}


static void
spread_insert(spread_t *spread, spread_link_t *link)
{
    spread_link_t  *head;

    head = &spread->buckets[link->class][link->sends];

    link->prev = head->prev;
    link->next = head;
    head->prev->next = link;
    head->prev = link;
    spread->filled[link->class] |= 1ULL << link->sends;
    spread->n++;
}


void
spread_remove(spread_t *spread, member_t *member)
{
    spread_link_t  *link, *head;

    link = &member->spread;

    if (link->prev == NULL) {
        return;
    }

    link->prev->next = link->next;
    link->next->prev = link->prev;
    link->prev = NULL;
    link->next = NULL;
    spread->n--;

    head = &spread->buckets[link->class][link->sends];

    if (head->next == head) {
        spread->filled[link->class] &= ~(1ULL << link->sends);
    }
}


void
spread_add(spread_t *spread, member_t *member, spread_class_t class)
{
    spread_remove(spread, member);
    member->spread.class = class;
    member->spread.sends = 0;
    spread_insert(spread, &member->spread);
}


unsigned
spread_limit(size_t n)
{
    unsigned  log2;

    for (log2 = 0; (1ULL << log2) < n + 1; log2++) { /* void */ }

    return 3 * log2 < SPREAD_MAX_SENDS ? 3 * log2 : SPREAD_MAX_SENDS;
}


/* The first link of a class that was sent at least so often; or NULL. */
static const spread_link_t *
spread_first_from(const spread_t *spread, size_t class, unsigned sends)
{
    uint64_t  filled;

    if (sends >= SPREAD_MAX_SENDS) {
        return NULL;
    }

    filled = spread->filled[class] >> sends << sends;

    return filled ? spread->buckets[class][__builtin_ctzll(filled)].next
                  : NULL;
}


void
spread_walk(const spread_t *spread, spread_walk_t *walk)
{
    size_t  class;

    walk->spread = spread;
    walk->turn = 0;

    for (class = 0; class < SPREAD_NCLASSES; class++) {
        walk->next[class] = spread_first_from(spread, class, 0);
    }
}


static member_t *
spread_take(spread_walk_t *walk, size_t class)
{
    const spread_t       *spread;
    const spread_link_t  *link;

    spread = walk->spread;
    link = walk->next[class];

    walk->next[class] = link->next != &spread->buckets[class][link->sends]
                        ? link->next
                        : spread_first_from(spread, class, link->sends + 1);

    return spread_member(link);
}


member_t *
spread_next(spread_walk_t *walk)
{
    size_t  class;

    class = spread_turns[walk->turn++ % sizeof(spread_turns)];

    if (walk->next[class] != NULL) {
        return spread_take(walk, class);
    }

    for (class = 0; class < SPREAD_NCLASSES; class++) {
        if (walk->next[class] != NULL) {
            return spread_take(walk, class);
        }
    }

    return NULL;
}


static void
spread_count(spread_t *spread, member_t *member, unsigned n, unsigned limit)
{
    unsigned  sends;

    if (member->spread.prev == NULL) {
        return;
    }

    sends = member->spread.sends + n;
    spread_remove(spread, member);

    if (sends < limit && sends < SPREAD_MAX_SENDS) {
        member->spread.sends = sends;
        spread_insert(spread, &member->spread);
    }
}


void
spread_sent(spread_t *spread, member_t *member, unsigned limit)
{
    spread_count(spread, member, 1, limit);
}


void
spread_heard(spread_t *spread, member_t *member, unsigned limit)
{
    if (member->spread.class == SPREAD_JOIN) {
        spread_count(spread, member, SPREAD_HEARD_SENDS, limit);
    }
}
