
/*
 * Heads that cannot use the free capacity, though others could: they are
 * skipped, and keep their place.  queue.h has the two ways to skip.
 */

#include "core/admission/queue_inner.h"


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

        if (queue->has_flow) {
            queue_flow_put_aside(queue, i);
        }
    }

    return 1;
}


void
llmgw_queue_rest(llmgw_queue_t *queue, uint32_t i, uint64_t until_ms,
    uint64_t now_ms)
{
    llmgw_queue_entry_t  *entry;

    entry = &queue->entries[i];

    if (until_ms <= now_ms) {
        return;
    }

    queue_unskip(queue, entry);

    entry->rests_ms = until_ms < now_ms + LLMGW_QUEUE_REST_MS
                      ? until_ms : now_ms + LLMGW_QUEUE_REST_MS;
    entry->is_skipped = 1;
    queue->resting++;

    if (queue->has_flow && !entry->is_aside) {
        queue_flow_put_aside(queue, i);
    }
}


int
queue_is_recalled(const llmgw_queue_entry_t *entry, uint64_t now_ms)
{
    return entry->is_skipped && now_ms >= entry->rests_ms;
}


void
queue_unskip(llmgw_queue_t *queue, llmgw_queue_entry_t *entry)
{
    if (!entry->is_skipped) {
        return;
    }

    if (entry->rests_ms != 0) {
        queue->resting--;

    } else {
        queue->skipped--;
    }

    entry->is_skipped = 0;
    entry->rests_ms = 0;
}


void
llmgw_queue_recall(llmgw_queue_t *queue, uint64_t now_ms)
{
    uint32_t  i;

    if (queue->has_flow) {
        queue_flow_recall(queue, now_ms);
        return;
    }

    for (i = queue->waits.first;
         (queue->skipped != 0 || queue->resting != 0)
         && i != LLMGW_QUEUE_NONE;
         i = queue->entries[i].next)
    {
        if (queue_is_recalled(&queue->entries[i], now_ms)) {
            queue_unskip(queue, &queue->entries[i]);
        }
    }
}
