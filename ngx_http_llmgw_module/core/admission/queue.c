
/* The queue.  queue.h has the order and the rules. */

#include "core/admission/queue.h"


#define BINS  32            /* one a bit of an index */


static uint32_t llmgw_queue_front(const llmgw_queue_t *queue);
static int llmgw_queue_is_before(int is_urgent, uint64_t ticket,
    const llmgw_queue_entry_t *entry);
static void llmgw_queue_link(llmgw_queue_t *queue, uint32_t i,
    uint32_t before);
static uint32_t llmgw_queue_sort(llmgw_queue_t *queue);
static uint32_t llmgw_queue_merge(llmgw_queue_t *queue, uint32_t a,
    uint32_t b);


void
llmgw_queue_init(llmgw_queue_t *queue, llmgw_queue_entry_t *entries,
    uint32_t capacity)
{
    uint32_t  i;

    queue->entries = entries;
    queue->capacity = capacity;
    queue->ticket = 0;

    for (i = 0; i < capacity; i++) {
        entries[i].is_used = 0;
    }

    llmgw_queue_mend(queue);
}


uint64_t
llmgw_queue_ticket(llmgw_queue_t *queue)
{
    return ++queue->ticket;
}


int
llmgw_queue_must_wait(const llmgw_queue_t *queue,
    const llmgw_queue_place_t *place)
{
    uint32_t  front;

    front = llmgw_queue_front(queue);

    return front != LLMGW_QUEUE_NONE
           && !llmgw_queue_is_before(place->is_urgent, place->ticket,
                                     &queue->entries[front]);
}


/* The first that is not skipped. */

static uint32_t
llmgw_queue_front(const llmgw_queue_t *queue)
{
    uint32_t  i;

    for (i = queue->first;
         i != LLMGW_QUEUE_NONE && queue->entries[i].is_skipped;
         i = queue->entries[i].next)
    {
        /* void */
    }

    return i;
}


uint32_t
llmgw_queue_push(llmgw_queue_t *queue, const llmgw_queue_place_t *place,
    uint32_t size)
{
    uint32_t              i, last, before;
    llmgw_queue_entry_t  *entry;

    if (queue->free == LLMGW_QUEUE_NONE
        || (place->is_counted && queue->counted >= size))
    {
        return LLMGW_QUEUE_NONE;
    }

    i = queue->free;
    entry = &queue->entries[i];
    queue->free = entry->next;

    entry->ticket = place->ticket ? place->ticket : llmgw_queue_ticket(queue);
    entry->granted_ms = 0;
    entry->row = place->row;
    entry->process = place->process;
    entry->is_urgent = (place->is_urgent != 0);
    entry->is_counted = (place->is_counted != 0);
    entry->is_skipped = 0;

    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    entry->is_used = 1;

    /* searched from the end: nearly always the last place */

    before = LLMGW_QUEUE_NONE;

    for (last = queue->last;
         last != LLMGW_QUEUE_NONE
         && llmgw_queue_is_before(entry->is_urgent, entry->ticket,
                                  &queue->entries[last]);
         last = queue->entries[last].prev)
    {
        before = last;
    }

    llmgw_queue_link(queue, i, before);
    queue->length++;
    queue->counted += entry->is_counted;

    /*
     * A granted head that is no longer the head finds so when it comes, and
     * stays.  Its grant would grow old meanwhile, and it would be passed over
     * when its turn comes again.
     */
    if (before != LLMGW_QUEUE_NONE) {
        llmgw_queue_ungrant(queue, before);
    }

    return i;
}


/* ticket 0: behind all that were given out */

static int
llmgw_queue_is_before(int is_urgent, uint64_t ticket,
    const llmgw_queue_entry_t *entry)
{
    if ((is_urgent != 0) != entry->is_urgent) {
        return is_urgent;
    }

    return ticket != 0 && ticket < entry->ticket;
}


/* before == LLMGW_QUEUE_NONE: at the end. */

static void
llmgw_queue_link(llmgw_queue_t *queue, uint32_t i, uint32_t before)
{
    uint32_t  prev;

    prev = (before == LLMGW_QUEUE_NONE) ? queue->last
                                        : queue->entries[before].prev;

    queue->entries[i].next = before;
    queue->entries[i].prev = prev;

    if (before == LLMGW_QUEUE_NONE) {
        queue->last = i;
    } else {
        queue->entries[before].prev = i;
    }

    if (prev == LLMGW_QUEUE_NONE) {
        queue->first = i;
    } else {
        queue->entries[prev].next = i;
    }
}


void
llmgw_queue_remove(llmgw_queue_t *queue, uint32_t i)
{
    llmgw_queue_entry_t  *entry;

    entry = &queue->entries[i];

    if (!entry->is_used) {
        return;
    }

    if (entry->prev == LLMGW_QUEUE_NONE) {
        queue->first = entry->next;
    } else {
        queue->entries[entry->prev].next = entry->next;
    }

    if (entry->next == LLMGW_QUEUE_NONE) {
        queue->last = entry->prev;
    } else {
        queue->entries[entry->next].prev = entry->prev;
    }

    entry->is_used = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);

    queue->length--;
    queue->counted -= entry->is_counted;
    queue->skipped -= entry->is_skipped;

    entry->next = queue->free;
    queue->free = i;
}


/* A granted entry whose worker did not come for it in time. */

static int
llmgw_queue_is_overdue(const llmgw_queue_entry_t *entry, uint64_t now_ms)
{
    return entry->granted_ms != 0
           && now_ms >= entry->granted_ms + LLMGW_QUEUE_GRANT_MS;
}


uint32_t
llmgw_queue_head(const llmgw_queue_t *queue, uint64_t now_ms)
{
    uint32_t                    i;
    const llmgw_queue_entry_t  *entry;

    for (i = queue->first; i != LLMGW_QUEUE_NONE; i = entry->next) {
        entry = &queue->entries[i];

        if (!entry->is_skipped && !llmgw_queue_is_overdue(entry, now_ms)) {
            return i;
        }
    }

    return LLMGW_QUEUE_NONE;
}


void
llmgw_queue_grant(llmgw_queue_t *queue, uint32_t i, uint64_t now_ms)
{
    queue->entries[i].granted_ms = now_ms ? now_ms : 1;
}


void
llmgw_queue_ungrant(llmgw_queue_t *queue, uint32_t i)
{
    queue->entries[i].granted_ms = 0;
}


/* Those that are passed over stand before the head. */

void
llmgw_queue_thaw_row(llmgw_queue_t *queue, uint32_t row, uint64_t now_ms)
{
    uint32_t              i, head;
    llmgw_queue_entry_t  *entry;

    head = llmgw_queue_head(queue, now_ms);

    for (i = queue->first; i != head; i = entry->next) {
        entry = &queue->entries[i];

        if (entry->row == row && llmgw_queue_is_overdue(entry, now_ms)) {
            entry->granted_ms = 0;
        }
    }
}


int
llmgw_queue_is_of(const llmgw_queue_t *queue, uint32_t i, uint64_t ticket,
    uint32_t row)
{
    const llmgw_queue_entry_t  *entry;

    entry = &queue->entries[i];

    return i < queue->capacity && entry->is_used && entry->ticket == ticket
           && entry->row == row;
}


int
llmgw_queue_skip(llmgw_queue_t *queue, uint32_t i)
{
    llmgw_queue_entry_t  *entry;

    entry = &queue->entries[i];

    if (!entry->is_skipped) {

        if (queue->skipped >= LLMGW_QUEUE_MAX_SKIPPED) {
            return 0;
        }

        queue->skipped++;
        entry->is_skipped = 1;
    }

    return 1;
}


void
llmgw_queue_recall(llmgw_queue_t *queue)
{
    uint32_t  i;

    for (i = queue->first;
         queue->skipped != 0 && i != LLMGW_QUEUE_NONE;
         i = queue->entries[i].next)
    {
        queue->skipped -= queue->entries[i].is_skipped;
        queue->entries[i].is_skipped = 0;
    }
}


uint32_t
llmgw_queue_drop_row(llmgw_queue_t *queue, uint32_t row)
{
    uint32_t  i, n, next;

    n = 0;

    for (i = queue->first; i != LLMGW_QUEUE_NONE; i = next) {
        next = queue->entries[i].next;

        if (queue->entries[i].row == row) {
            llmgw_queue_remove(queue, i);
            n++;
        }
    }

    return n;
}


void
llmgw_queue_mend(llmgw_queue_t *queue)
{
    uint32_t              i;
    llmgw_queue_entry_t  *entry;

    queue->first = llmgw_queue_sort(queue);
    queue->last = LLMGW_QUEUE_NONE;
    queue->length = 0;
    queue->counted = 0;
    queue->skipped = 0;

    for (i = queue->first; i != LLMGW_QUEUE_NONE; i = entry->next) {
        entry = &queue->entries[i];
        entry->prev = queue->last;

        queue->last = i;
        queue->length++;
        queue->counted += entry->is_counted;
        queue->skipped += entry->is_skipped;

        if (entry->ticket > queue->ticket) {
            queue->ticket = entry->ticket;
        }
    }
}


/*
 * Puts the unused entries into the free list, sorts the others, and returns
 * the first of these.  A merge sort with the links as its only memory; bins[k]
 * is a sorted list of 2^k entries, or empty.
 */

static uint32_t
llmgw_queue_sort(llmgw_queue_t *queue)
{
    uint32_t  i, k, list, bins[BINS];

    for (k = 0; k < BINS; k++) {
        bins[k] = LLMGW_QUEUE_NONE;
    }

    queue->free = LLMGW_QUEUE_NONE;

    for (i = queue->capacity; i-- > 0; /* void */ ) {

        if (!queue->entries[i].is_used) {
            queue->entries[i].next = queue->free;
            queue->free = i;
            continue;
        }

        queue->entries[i].next = LLMGW_QUEUE_NONE;
        list = i;

        for (k = 0; bins[k] != LLMGW_QUEUE_NONE; k++) {
            list = llmgw_queue_merge(queue, bins[k], list);
            bins[k] = LLMGW_QUEUE_NONE;
        }

        bins[k] = list;
    }

    list = LLMGW_QUEUE_NONE;

    for (k = 0; k < BINS; k++) {
        list = llmgw_queue_merge(queue, bins[k], list);
    }

    return list;
}


/* Merges two sorted lists. */

static uint32_t
llmgw_queue_merge(llmgw_queue_t *queue, uint32_t a, uint32_t b)
{
    uint32_t              first, *link;
    llmgw_queue_entry_t  *entry;

    link = &first;

    while (a != LLMGW_QUEUE_NONE && b != LLMGW_QUEUE_NONE) {
        entry = &queue->entries[a];

        if (llmgw_queue_is_before(entry->is_urgent, entry->ticket,
                                  &queue->entries[b]))
        {
            *link = a;
            link = &entry->next;
            a = entry->next;

        } else {
            *link = b;
            link = &queue->entries[b].next;
            b = queue->entries[b].next;
        }
    }

    *link = (a != LLMGW_QUEUE_NONE) ? a : b;

    return first;
}
