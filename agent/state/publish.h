
/*
 * From the protocol's table to what others see of it: the members segment,
 * and the view that the control socket answers from.
 *
 * The view is what was published last, sorted by id.  Whoever asks for the
 * members is shown the view, so nothing is shown that is not in the segment.
 * Changes are gathered during one turn of the loop and published together;
 * load figures go straight in place, and move no generation.
 */

#ifndef PUBLISH_H
#define PUBLISH_H

#include "swim/table/table.h"


typedef struct publish_s  publish_t;

/* before NULL: new; after NULL: gone. */
typedef void (*publish_change_pt)(void *data, const llmgw_member_t *before,
    const llmgw_member_t *after);

/*
 * path NULL: a view alone.  on_change is called for each member that differs
 * in a publication from the one before.  NULL and a reason in error (of
 * LLMGW_MEMBERS_ERROR_BYTES).
 */
publish_t *publish_create(const char *path, publish_change_pt on_change,
    void *data, char *error);
void publish_destroy(publish_t *publish);

/* The table has changed, other than in loads. */
void publish_mark(publish_t *publish);

/* For the next flush: swim_is_isolated(). */
void publish_set_isolated(publish_t *publish, int is_isolated);

/* A load has changed. */
void publish_load(publish_t *publish, const member_t *member);

/* Publishes if marked.  0, or -1 and a reason; it stays marked then. */
int publish_flush(publish_t *publish, const table_t *table, char *error);

/* Each second.  0, or -1 and a reason. */
int publish_heartbeat(publish_t *publish, uint64_t now_ms, char *error);

const llmgw_member_t *publish_members(const publish_t *publish, size_t *n);
const llmgw_member_load_t *publish_loads(const publish_t *publish);

#endif /* PUBLISH_H */
