
/*
 * From the members that the agent knows to what others see of them: the
 * members segment, and the view that the control socket answers from.
 *
 * The view is what was published last, sorted by id; the segment's writer has
 * it.  The control socket shows the view, so nothing is shown that
 * is not in the segment.
 *
 * The first change is published at once, that is before the event loop sleeps.
 * Those that follow are gathered and published together, every 20 ms at most,
 * and so that publishing takes a quarter of the agent's time at most.  Load
 * figures go straight in place, and move no generation.
 */

#ifndef PUBLISH_H
#define PUBLISH_H

#include "proto/members/members.h"


typedef struct publish_s  publish_t;

/* before NULL: new; after NULL: gone. */
typedef void (*publish_change_pt)(void *data, const llmgw_member_t *before,
    const llmgw_member_t *after);

typedef struct {
    const llmgw_member_t       *member;
    const llmgw_member_load_t  *load;
    const char                 *models;         /* the list that it names */
    size_t                      models_bytes;
} publish_item_t;

/* The members as they are now: the i-th of n, in any order. */
typedef struct {
    size_t        n;
    const void   *data;
    void        (*at)(const void *data, size_t i,
                      publish_item_t *item);
} publish_source_t;

/*
 * path NULL: a view alone.  capacity: members at most.  on_change is called for
 * each member that differs in a publication from the one before.  NULL and a
 * reason in error (of LLMGW_MEMBERS_ERROR_BYTES).
 *
 * A disk that is full or broken is no reason: the segment is made by the first
 * publish_heartbeat() that can.  error is "" where it stands already.
 */
publish_t *publish_create(const char *path, uint32_t capacity,
    publish_change_pt on_change, void *data, char *error);
void publish_destroy(publish_t *publish);

/* Members have changed, other than in loads. */
void publish_mark(publish_t *publish);

/* For the next flush: this agent is cut off, rather than the others dead. */
void publish_set_isolated(publish_t *publish, int is_isolated);

/* The load of one has changed. */
void publish_load(publish_t *publish, const char *id,
    const llmgw_member_load_t *load);

/* How long a flush should still wait; 0: it is due, or nothing is marked. */
uint64_t publish_wait_us(const publish_t *publish, uint64_t now_us);

/* Publishes if marked.  0, or -1 and a reason; it stays marked then. */
int publish_flush(publish_t *publish, const publish_source_t *source,
    uint64_t now_us, char *error);

/* The last flush took so long, on_change included. */
void publish_took(publish_t *publish, uint64_t took_us);

/* Each second.  0, or -1 and a reason. */
int publish_heartbeat(publish_t *publish, uint64_t now_ms, char *error);

/*
 * The names that a member of the last publication, or of the one before, has
 * by their hash; NULL: there are none.  They stay until the next flush.
 */
const char *publish_models(const publish_t *publish, uint64_t models,
    size_t *bytes);

/* As published last; valid until the next flush. */
llmgw_roster_t publish_roster(const publish_t *publish);

#endif /* PUBLISH_H */
