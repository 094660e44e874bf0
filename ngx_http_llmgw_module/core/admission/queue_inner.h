
/* Functions of the queue that only its own files call. */

#ifndef LLMGW_QUEUE_INNER_H
#define LLMGW_QUEUE_INNER_H

#include "core/admission/queue.h"


/*
 * queue.c: puts an entry into a list, before another or at the end; takes it
 * out of its list.
 */
void queue_link(llmgw_queue_t *queue, llmgw_queue_list_t *list, uint32_t i,
    uint32_t before);
void queue_unlink(llmgw_queue_t *queue, uint32_t i);

/* Puts an entry into the list of waiting entries, at its place. */
void queue_link_waiting(llmgw_queue_t *queue, uint32_t i);

/* 1: the entry was granted, and its worker did not claim in time. */
int queue_is_overdue(const llmgw_queue_entry_t *entry, uint64_t now_ms);

/* queue_skip.c: 1: the entry is skipped, and its time to rest is over. */
int queue_is_recalled(const llmgw_queue_entry_t *entry, uint64_t now_ms);

/* Ends the skipping of an entry, if it is skipped. */
void queue_unskip(llmgw_queue_t *queue, llmgw_queue_entry_t *entry);

/*
 * queue_flow.c: adds a waiting entry to the flow, or removes it; firm: it is
 * never shed
 */
void queue_flow_add(llmgw_queue_t *queue, uint32_t i, int is_firm);
void queue_flow_remove(llmgw_queue_t *queue, uint32_t i);

uint32_t queue_flow_head(llmgw_queue_t *queue, uint64_t now_ms);
void queue_flow_put_aside(llmgw_queue_t *queue, uint32_t i);
void queue_flow_thaw_row(llmgw_queue_t *queue, uint32_t row, uint64_t now_ms);
void queue_flow_recall(llmgw_queue_t *queue, uint64_t now_ms);

/* Rebuilds the flow from the waiting entries. */
void queue_flow_mend(llmgw_queue_t *queue);

#endif /* LLMGW_QUEUE_INNER_H */
