
/*
 * The queue with flow control: whose turn it is by class and tenant.
 *
 * core/flow/ holds the entries that could be the head, under their tickets, and
 * names one.  The rest is done here: urgent entries come first, and are not in
 * the flow; entries that were passed over or skipped are taken out and put
 * back; an entry that is shed waits for its worker to notice.
 */

#include "core/admission/queue_inner.h"


static int32_t
queue_flow_priority(const llmgw_queue_entry_t *entry)
{
    if (entry->priority > LLMGW_QUEUE_PRIORITY_MAX) {
        return LLMGW_QUEUE_PRIORITY_MAX;
    }

    return entry->priority < -LLMGW_QUEUE_PRIORITY_MAX
           ? -LLMGW_QUEUE_PRIORITY_MAX : entry->priority;
}


/* A band counts as seen from its first request on. */

static void
queue_flow_see(llmgw_queue_t *queue, int32_t priority)
{
    uint32_t  bit;

    bit = (uint32_t) (priority + LLMGW_QUEUE_PRIORITY_MAX);
    queue->seen[bit / 64] |= 1ull << bit % 64;
}


void
queue_flow_add(llmgw_queue_t *queue, uint32_t i, int is_firm)
{
    uint32_t               victim;
    llmgw_queue_entry_t   *entry;
    llmgw_flow_arrival_t   arrival;

    entry = &queue->entries[i];

    if (entry->is_urgent) {
        return;
    }

    arrival.priority = queue_flow_priority(entry);
    arrival.request = i;
    arrival.tenant = entry->tenant;
    arrival.deadline_us = entry->deadline_ms == 0
                          ? LLMGW_FLOW_NO_DEADLINE
                          : (int64_t) entry->deadline_ms * 1000;
    arrival.number = entry->ticket;
    arrival.is_firm = is_firm;

    queue_flow_see(queue, arrival.priority);

    /* the flow has no limit of size, and memory for as many entries */
    (void) llmgw_flow_enqueue(queue->flow, &arrival, &entry->flow, &victim);
}


void
queue_flow_remove(llmgw_queue_t *queue, uint32_t i)
{
    llmgw_queue_entry_t  *entry;

    entry = &queue->entries[i];

    if (entry->flow != 0) {
        (void) llmgw_flow_remove(queue->flow, entry->flow, i);
        entry->flow = 0;
    }
}


static uint32_t
queue_flow_front(const llmgw_queue_t *queue)
{
    double    ceiling;
    uint32_t  i;

    i = queue->waits.first;

    if (i != LLMGW_QUEUE_NONE && queue->entries[i].is_urgent) {
        return i;
    }

    i = llmgw_flow_next(queue->flow, &ceiling);

    return i == 0 ? LLMGW_QUEUE_NONE : llmgw_flow_request(queue->flow, i);
}


uint32_t
queue_flow_head(llmgw_queue_t *queue, uint64_t now_ms)
{
    uint32_t  i;

    for ( ;; ) {
        i = queue_flow_front(queue);

        if (i == LLMGW_QUEUE_NONE
            || !queue_is_overdue(&queue->entries[i], now_ms))
        {
            return i;
        }

        queue_flow_put_aside(queue, i);
    }
}


int
llmgw_queue_is_held(const llmgw_queue_t *queue, uint32_t head,
    double saturation)
{
    double  ceiling;

    return queue->has_flow && !queue->entries[head].is_urgent
           && llmgw_flow_next(queue->flow, &ceiling) != 0
           && saturation >= ceiling;
}


void
queue_flow_put_aside(llmgw_queue_t *queue, uint32_t i)
{
    queue_flow_remove(queue, i);
    queue_unlink(queue, i);

    queue->entries[i].is_aside = 1;
    queue_link(queue, &queue->aside, i, LLMGW_QUEUE_NONE);

    if (queue->granted == i) {
        queue->granted = LLMGW_QUEUE_NONE;
    }
}


static void
queue_flow_put_back(llmgw_queue_t *queue, uint32_t i)
{
    llmgw_queue_entry_t  *entry;

    entry = &queue->entries[i];

    queue_unlink(queue, i);
    queue_unskip(queue, entry);
    entry->is_aside = 0;
    entry->granted_ms = 0;

    queue_link_waiting(queue, i);
    queue_flow_add(queue, i, !entry->is_counted);
}


void
queue_flow_recall(llmgw_queue_t *queue, uint64_t now_ms)
{
    uint32_t  i, next;

    for (i = queue->aside.first;
         (queue->skipped != 0 || queue->resting != 0)
         && i != LLMGW_QUEUE_NONE;
         i = next)
    {
        next = queue->entries[i].next;

        if (queue_is_recalled(&queue->entries[i], now_ms)) {
            queue_flow_put_back(queue, i);
        }
    }
}


void
queue_flow_thaw_row(llmgw_queue_t *queue, uint32_t row, uint64_t now_ms)
{
    uint32_t              i, next;
    llmgw_queue_entry_t  *entry;

    if (queue->granted != LLMGW_QUEUE_NONE) {
        entry = &queue->entries[queue->granted];

        if (entry->row == row && queue_is_overdue(entry, now_ms)) {
            entry->granted_ms = 0;
        }
    }

    for (i = queue->aside.first; i != LLMGW_QUEUE_NONE; i = next) {
        entry = &queue->entries[i];
        next = entry->next;

        if (entry->row == row && !entry->is_skipped) {
            queue_flow_put_back(queue, i);
        }
    }
}


/*
 * Marks an entry as shed, and leaves alone what its process counts as its own.
 */

static void
queue_flow_shed(llmgw_queue_t *queue, uint32_t i)
{
    llmgw_queue_entry_t  *entry;

    entry = &queue->entries[i];

    queue_flow_remove(queue, i);
    queue_unlink(queue, i);

    if (queue->granted == i) {
        queue->granted = LLMGW_QUEUE_NONE;
    }

    queue->length--;
    queue->counted -= entry->is_counted;
    entry->is_shed = 1;

    queue_link(queue, &queue->shed, i, LLMGW_QUEUE_NONE);
}


int
llmgw_queue_stay(llmgw_queue_t *queue, uint32_t i, uint32_t size,
    uint32_t *shed)
{
    uint32_t  victim;

    *shed = LLMGW_QUEUE_NONE;

    if (queue->counted >= size) {
        victim = llmgw_flow_victim(queue->flow, queue->entries[i].flow);

        if (victim == 0) {
            return 0;
        }

        *shed = llmgw_flow_request(queue->flow, victim);
        queue_flow_shed(queue, *shed);
    }

    queue->entries[i].is_counted = 1;
    queue->counted++;

    return 1;
}


uint32_t
llmgw_queue_shed_of(const llmgw_queue_t *queue, uint32_t row)
{
    uint32_t  i;

    for (i = queue->shed.first;
         i != LLMGW_QUEUE_NONE && queue->entries[i].row != row;
         i = queue->entries[i].next)
    {
        /* void */
    }

    return i;
}


static int
queue_flow_is_same(const llmgw_flow_conf_t *a, const llmgw_flow_conf_t *b)
{
    return a->order == b->order && a->fairness == b->fairness
           && a->usage_limit == b->usage_limit
           && a->has_shedding == b->has_shedding;
}


int
llmgw_queue_order(llmgw_queue_t *queue, const llmgw_flow_conf_t *conf)
{
    if (queue->flow == NULL
        || (conf == NULL ? !queue->has_flow
                         : queue->has_flow
                           && queue_flow_is_same(conf, &queue->flow_conf)))
    {
        return 0;
    }

    if (conf != NULL) {
        queue->flow_conf = *conf;
        queue->flow_conf.size = 0;
        queue->flow_conf.band_size = 0;
        queue->flow_conf.keeps_turns = 1;
    }

    queue->has_flow = (conf != NULL);
    llmgw_queue_mend(queue);

    return 1;
}


void
queue_flow_mend(llmgw_queue_t *queue)
{
    uint32_t              i, next;
    int32_t               priority;
    llmgw_queue_entry_t  *entry;

    llmgw_flow_reset(queue->flow, &queue->flow_conf);

    for (i = 0; i <= 2 * LLMGW_QUEUE_PRIORITY_MAX; i++) {
        if (queue->seen[i / 64] >> i % 64 & 1) {
            priority = (int32_t) i - LLMGW_QUEUE_PRIORITY_MAX;
            llmgw_flow_see(queue->flow, priority);
        }
    }

    for (i = queue->waits.first; i != LLMGW_QUEUE_NONE; i = next) {
        entry = &queue->entries[i];
        next = entry->next;
        entry->granted_ms = 0;

        if (entry->is_skipped) {
            queue_flow_put_aside(queue, i);

        } else {
            queue_flow_add(queue, i, !entry->is_counted);
        }
    }
}
