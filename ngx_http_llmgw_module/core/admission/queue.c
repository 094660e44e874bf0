
/* The queue.  queue.h has the order and the rules. */

#include <string.h>

#include "core/admission/queue_inner.h"


#define BINS  32            /* bins for lists of 2^k entries, one for each bit
                               of an index */


static uint32_t llmgw_queue_front(const llmgw_queue_t *queue);
static int llmgw_queue_is_before(int is_urgent, uint64_t ticket,
    const llmgw_queue_entry_t *entry);
static uint32_t llmgw_queue_sort(llmgw_queue_t *queue);
static uint32_t llmgw_queue_merge(llmgw_queue_t *queue, uint32_t a,
    uint32_t b);


void
llmgw_queue_init(llmgw_queue_t *queue, llmgw_queue_entry_t *entries,
    void *flow, uint32_t capacity)
{
    uint32_t  i;

    queue->entries = entries;
    queue->capacity = capacity;
    queue->ticket = 0;
    queue->has_flow = 0;
    queue->flow_conf = (llmgw_flow_conf_t) { 0 };
    queue->flow = NULL;
    memset(queue->seen, 0, sizeof(queue->seen));

    if (flow != NULL) {
        queue->flow = llmgw_flow_init(flow, capacity, &queue->flow_conf);
    }

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


/* The first entry that is not skipped. */

static uint32_t
llmgw_queue_front(const llmgw_queue_t *queue)
{
    uint32_t  i;

    for (i = queue->waits.first;
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
    uint32_t              i;
    llmgw_queue_entry_t  *entry;

    if (queue->free == LLMGW_QUEUE_NONE
        || (place->is_counted && queue->counted >= size && !queue->has_flow))
    {
        return LLMGW_QUEUE_NONE;
    }

    i = queue->free;
    entry = &queue->entries[i];
    queue->free = entry->next;

    entry->ticket = place->ticket ? place->ticket : llmgw_queue_ticket(queue);
    entry->granted_ms = 0;
    entry->tenant = place->tenant;
    entry->deadline_ms = place->deadline_ms;
    entry->rests_ms = 0;
    entry->row = place->row;
    entry->process = place->process;
    entry->flow = 0;
    entry->priority = place->priority;
    entry->is_urgent = (place->is_urgent != 0);
    entry->is_counted = (place->is_counted != 0 && !queue->has_flow);
    entry->is_skipped = 0;
    entry->is_aside = 0;
    entry->is_shed = 0;

    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    entry->is_used = 1;

    queue_link_waiting(queue, i);
    queue->length++;
    queue->counted += entry->is_counted;

    if (queue->has_flow) {
        queue_flow_add(queue, i, !place->is_counted);

    } else if (entry->next != LLMGW_QUEUE_NONE) {
        /*
         * A granted entry that is no longer the head learns that when its claim
         * comes, and stays.  But its grant could expire before that, and then
         * the entry would be skipped when its turn comes again.
         */
        llmgw_queue_ungrant(queue, entry->next);
    }

    return i;
}


/*
 * Searches from the end, as the place is nearly always the last one.  With a
 * flow, entries that are not urgent have no order here.
 */

void
queue_link_waiting(llmgw_queue_t *queue, uint32_t i)
{
    uint32_t              last, before;
    llmgw_queue_entry_t  *entry;

    entry = &queue->entries[i];
    before = LLMGW_QUEUE_NONE;

    for (last = queue->has_flow && !entry->is_urgent ? LLMGW_QUEUE_NONE
                                                     : queue->waits.last;
         last != LLMGW_QUEUE_NONE
         && llmgw_queue_is_before(entry->is_urgent, entry->ticket,
                                  &queue->entries[last]);
         last = queue->entries[last].prev)
    {
        before = last;
    }

    queue_link(queue, &queue->waits, i, before);
}


/* ticket 0: after all tickets so far */

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

void
queue_link(llmgw_queue_t *queue, llmgw_queue_list_t *list, uint32_t i,
    uint32_t before)
{
    uint32_t  prev;

    prev = (before == LLMGW_QUEUE_NONE) ? list->last
                                        : queue->entries[before].prev;

    queue->entries[i].next = before;
    queue->entries[i].prev = prev;

    if (before == LLMGW_QUEUE_NONE) {
        list->last = i;
    } else {
        queue->entries[before].prev = i;
    }

    if (prev == LLMGW_QUEUE_NONE) {
        list->first = i;
    } else {
        queue->entries[prev].next = i;
    }
}


void
queue_unlink(llmgw_queue_t *queue, uint32_t i)
{
    llmgw_queue_list_t   *list;
    llmgw_queue_entry_t  *entry;

    entry = &queue->entries[i];
    list = entry->is_shed ? &queue->shed
           : entry->is_aside ? &queue->aside : &queue->waits;

    if (entry->prev == LLMGW_QUEUE_NONE) {
        list->first = entry->next;
    } else {
        queue->entries[entry->prev].next = entry->next;
    }

    if (entry->next == LLMGW_QUEUE_NONE) {
        list->last = entry->prev;
    } else {
        queue->entries[entry->next].prev = entry->prev;
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

    queue_flow_remove(queue, i);
    queue_unlink(queue, i);

    entry->is_used = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);

    if (!entry->is_shed) {
        queue->length--;
        queue->counted -= entry->is_counted;
        queue_unskip(queue, entry);
    }

    if (queue->granted == i) {
        queue->granted = LLMGW_QUEUE_NONE;
    }

    entry->next = queue->free;
    queue->free = i;
}


void
llmgw_queue_serve(llmgw_queue_t *queue, uint32_t i)
{
    llmgw_queue_entry_t  *entry;

    entry = &queue->entries[i];

    if (entry->flow != 0) {
        (void) llmgw_flow_take(queue->flow, entry->flow);
        entry->flow = 0;
    }

    llmgw_queue_remove(queue, i);
}


int
queue_is_overdue(const llmgw_queue_entry_t *entry, uint64_t now_ms)
{
    return entry->granted_ms != 0
           && now_ms >= entry->granted_ms + LLMGW_QUEUE_GRANT_MS;
}


uint32_t
llmgw_queue_head(llmgw_queue_t *queue, uint64_t now_ms)
{
    uint32_t                    i;
    const llmgw_queue_entry_t  *entry;

    if (queue->has_flow) {
        return queue_flow_head(queue, now_ms);
    }

    for (i = queue->waits.first; i != LLMGW_QUEUE_NONE; i = entry->next) {
        entry = &queue->entries[i];

        if (!entry->is_skipped && !queue_is_overdue(entry, now_ms)) {
            return i;
        }
    }

    return LLMGW_QUEUE_NONE;
}


/*
 * With a flow another entry may become the head before the last grant was used.
 * The earlier one then keeps waiting: its grant must not expire.
 */

void
llmgw_queue_grant(llmgw_queue_t *queue, uint32_t i, uint64_t now_ms)
{
    if (queue->has_flow) {

        if (queue->granted != LLMGW_QUEUE_NONE) {
            llmgw_queue_ungrant(queue, queue->granted);
        }

        queue->granted = i;
    }

    queue->entries[i].granted_ms = now_ms ? now_ms : 1;
}


void
llmgw_queue_ungrant(llmgw_queue_t *queue, uint32_t i)
{
    queue->entries[i].granted_ms = 0;
}


/* Entries that are passed over are before the head. */

void
llmgw_queue_thaw_row(llmgw_queue_t *queue, uint32_t row, uint64_t now_ms)
{
    uint32_t              i, head;
    llmgw_queue_entry_t  *entry;

    if (queue->has_flow) {
        queue_flow_thaw_row(queue, row, now_ms);
        return;
    }

    head = llmgw_queue_head(queue, now_ms);

    for (i = queue->waits.first; i != head; i = entry->next) {
        entry = &queue->entries[i];

        if (entry->row == row && queue_is_overdue(entry, now_ms)) {
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


static uint32_t
llmgw_queue_drop_list(llmgw_queue_t *queue, const llmgw_queue_list_t *list,
    uint32_t row)
{
    uint32_t  i, n, next;

    n = 0;

    for (i = list->first; i != LLMGW_QUEUE_NONE; i = next) {
        next = queue->entries[i].next;

        if (queue->entries[i].row == row) {
            llmgw_queue_remove(queue, i);
            n++;
        }
    }

    return n;
}


uint32_t
llmgw_queue_drop_row(llmgw_queue_t *queue, uint32_t row)
{
    return llmgw_queue_drop_list(queue, &queue->waits, row)
           + llmgw_queue_drop_list(queue, &queue->aside, row)
           + llmgw_queue_drop_list(queue, &queue->shed, row);
}


void
llmgw_queue_mend(llmgw_queue_t *queue)
{
    uint32_t              i, next;
    llmgw_queue_list_t    none = { LLMGW_QUEUE_NONE, LLMGW_QUEUE_NONE };
    llmgw_queue_entry_t  *entry;

    i = llmgw_queue_sort(queue);

    queue->waits = queue->aside = queue->shed = none;
    queue->length = 0;
    queue->counted = 0;
    queue->skipped = 0;
    queue->resting = 0;
    queue->granted = LLMGW_QUEUE_NONE;

    for ( /* void */ ; i != LLMGW_QUEUE_NONE; i = next) {
        entry = &queue->entries[i];
        next = entry->next;

        entry->flow = 0;
        entry->is_aside = 0;

        if (!entry->is_skipped) {
            entry->rests_ms = 0;
        }

        if (entry->ticket > queue->ticket) {
            queue->ticket = entry->ticket;
        }

        if (entry->is_shed) {
            queue_link(queue, &queue->shed, i, LLMGW_QUEUE_NONE);
            continue;
        }

        queue_link(queue, &queue->waits, i, LLMGW_QUEUE_NONE);
        queue->length++;
        queue->counted += entry->is_counted;
        queue->skipped += entry->is_skipped && entry->rests_ms == 0;
        queue->resting += entry->is_skipped && entry->rests_ms != 0;
    }

    if (queue->has_flow) {
        queue_flow_mend(queue);
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
