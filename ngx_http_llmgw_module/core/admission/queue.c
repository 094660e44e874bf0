
#include "core/admission/queue.h"


static uint32_t llmgw_queue_front(const llmgw_queue_t *queue);
static int llmgw_queue_is_before(const llmgw_queue_place_t *place,
    const llmgw_queue_entry_t *entry);
static void llmgw_queue_link(llmgw_queue_t *queue, uint32_t i,
    uint32_t before);


void
llmgw_queue_init(llmgw_queue_t *queue, llmgw_queue_entry_t *entries,
    uint32_t capacity)
{
    uint32_t  i;

    queue->entries = entries;
    queue->capacity = capacity;
    queue->free = capacity ? 0 : LLMGW_QUEUE_NONE;
    queue->first = LLMGW_QUEUE_NONE;
    queue->last = LLMGW_QUEUE_NONE;
    queue->length = 0;
    queue->counted = 0;
    queue->aside = 0;
    queue->ticket = 0;

    for (i = 0; i < capacity; i++) {
        entries[i].is_used = 0;
        entries[i].next = i + 1 < capacity ? i + 1 : LLMGW_QUEUE_NONE;
    }
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
           && !llmgw_queue_is_before(place, &queue->entries[front]);
}


/* The first that does not stand aside. */

static uint32_t
llmgw_queue_front(const llmgw_queue_t *queue)
{
    uint32_t  i;

    for (i = queue->first;
         i != LLMGW_QUEUE_NONE && queue->entries[i].is_aside;
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
    entry->owner = place->owner;
    entry->row = place->row;
    entry->process = place->process;
    entry->is_urgent = (place->is_urgent != 0);
    entry->is_counted = (place->is_counted != 0);
    entry->is_aside = 0;
    entry->is_used = 1;

    /* nearly always the last place: looked for from the end */

    before = LLMGW_QUEUE_NONE;

    for (last = queue->last;
         last != LLMGW_QUEUE_NONE
         && llmgw_queue_is_before(place, &queue->entries[last]);
         last = queue->entries[last].prev)
    {
        before = last;
    }

    llmgw_queue_link(queue, i, before);
    queue->length++;
    queue->counted += entry->is_counted;

    return i;
}


static int
llmgw_queue_is_before(const llmgw_queue_place_t *place,
    const llmgw_queue_entry_t *entry)
{
    if ((place->is_urgent != 0) != entry->is_urgent) {
        return place->is_urgent;
    }

    return place->ticket != 0 && place->ticket < entry->ticket;
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

    queue->length--;
    queue->counted -= entry->is_counted;
    queue->aside -= entry->is_aside;

    entry->is_used = 0;
    entry->next = queue->free;
    queue->free = i;
}


uint32_t
llmgw_queue_head(const llmgw_queue_t *queue, uint64_t now_ms)
{
    uint32_t                    i;
    const llmgw_queue_entry_t  *entry;

    for (i = queue->first; i != LLMGW_QUEUE_NONE; i = entry->next) {
        entry = &queue->entries[i];

        if (!entry->is_aside
            && (entry->granted_ms == 0
                || now_ms < entry->granted_ms + LLMGW_QUEUE_GRANT_MS))
        {
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


int
llmgw_queue_step_aside(llmgw_queue_t *queue, uint32_t i)
{
    llmgw_queue_entry_t  *entry;

    entry = &queue->entries[i];

    if (!entry->is_aside) {

        if (queue->aside >= LLMGW_QUEUE_ASIDE) {
            return 0;
        }

        queue->aside++;
        entry->is_aside = 1;
    }

    return 1;
}


/*
 * The count only says where to stop.  A worker that was killed while it held
 * the lock may have left one too many, so the line's end stops it as well, and
 * from then on the count is right again.
 */

void
llmgw_queue_recall(llmgw_queue_t *queue)
{
    uint32_t  i, left;

    left = queue->aside;

    for (i = queue->first;
         left != 0 && i != LLMGW_QUEUE_NONE;
         i = queue->entries[i].next)
    {
        left -= queue->entries[i].is_aside;
        queue->entries[i].is_aside = 0;
    }

    queue->aside = 0;
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
