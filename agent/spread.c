
#include "spread.h"


#define spread_member(link)                                                   \
    ((member_t *) ((char *) (link) - offsetof(member_t, spread)))


void
spread_init(spread_t *spread)
{
    size_t  i;

    spread->n = 0;

    for (i = 0; i < SPREAD_MAX_SENDS; i++) {
        spread->buckets[i].prev = &spread->buckets[i];
        spread->buckets[i].next = &spread->buckets[i];
    }
}


static void
spread_insert(spread_t *spread, spread_link_t *link)
{
    spread_link_t  *head;

    head = &spread->buckets[link->sends];

    link->prev = head->prev;
    link->next = head;
    head->prev->next = link;
    head->prev = link;
    spread->n++;
}


void
spread_remove(spread_t *spread, member_t *member)
{
    spread_link_t  *link;

    link = &member->spread;

    if (link->prev == NULL) {
        return;
    }

    link->prev->next = link->next;
    link->next->prev = link->prev;
    link->prev = NULL;
    link->next = NULL;
    spread->n--;
}


void
spread_add(spread_t *spread, member_t *member)
{
    spread_remove(spread, member);
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


static member_t *
spread_first_from(spread_t *spread, unsigned sends)
{
    spread_link_t  *head;

    for ( /* void */ ; sends < SPREAD_MAX_SENDS; sends++) {
        head = &spread->buckets[sends];

        if (head->next != head) {
            return spread_member(head->next);
        }
    }

    return NULL;
}


member_t *
spread_next(spread_t *spread, const member_t *after)
{
    const spread_link_t  *link;

    if (after == NULL) {
        return spread_first_from(spread, 0);
    }

    link = &after->spread;

    if (link->next != &spread->buckets[link->sends]) {
        return spread_member(link->next);
    }

    return spread_first_from(spread, link->sends + 1);
}


void
spread_sent(spread_t *spread, member_t *member, unsigned limit)
{
    if (member->spread.prev == NULL) {
        return;
    }

    spread_remove(spread, member);
    member->spread.sends++;

    if (member->spread.sends < limit
        && member->spread.sends < SPREAD_MAX_SENDS)
    {
        spread_insert(spread, &member->spread);
    }
}
