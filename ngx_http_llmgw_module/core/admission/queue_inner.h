
/* The queue's files, for each other. */

#ifndef LLMGW_QUEUE_INNER_H
#define LLMGW_QUEUE_INNER_H

#include "core/admission/queue.h"


/* queue.c: into a list before that entry, or at its end; out of its list */
void queue_link(llmgw_queue_t *queue, llmgw_queue_list_t *list, uint32_t i,
    uint32_t before);
void queue_unlink(llmgw_queue_t *queue, uint32_t i);

/* Inserts it into the list of waiting entries, at its place. */
void queue_link_waiting(llmgw_queue_t *queue, uint32_t i);

/* A granted entry that its worker did not claim in time. */
int queue_is_overdue(const llmgw_queue_entry_t *entry, uint64_t now_ms);

/* queue_skip.c: it is skipped, and does not rest any longer */
int queue_is_recalled(const llmgw_queue_entry_t *entry, uint64_t now_ms);

/* Of one that may be skipped: it is not any more. */
void queue_unskip(llmgw_queue_t *queue, llmgw_queue_entry_t *entry);

/*
 * queue_flow.c: adds and removes waiting entries of the flow; firm: never shed
 */
void queue_flow_add(llmgw_queue_t *queue, uint32_t i, int is_firm);
void queue_flow_remove(llmgw_queue_t *queue, uint32_t i);

uint32_t queue_flow_head(llmgw_queue_t *queue, uint64_t now_ms);
void queue_flow_put_aside(llmgw_queue_t *queue, uint32_t i);
void queue_flow_thaw_row(llmgw_queue_t *queue, uint32_t row, uint64_t now_ms);
void queue_flow_recall(llmgw_queue_t *queue, uint64_t now_ms);

/* Rebuilds all of it from the waiting entries. */
void queue_flow_mend(llmgw_queue_t *queue);

#endif /* LLMGW_QUEUE_INNER_H */
