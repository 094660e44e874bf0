
/*
 * Publishes the members that the agent knows: in the members segment, and in
 * the view from which the control socket answers.
 *
 * The view is the table published last, sorted by id; the segment's writer has
 * it.  The control socket shows the view, so nothing is shown that is not in
 * the segment.
 *
 * The first change is published at once, that is before the event loop sleeps.
 * Changes that follow are gathered and published together, at most every 20 ms,
 * and so that publishing takes at most a quarter of the agent's time.  Load
 * figures are written in place at once, and do not change the generation.
 */

#ifndef PUBLISH_H
#define PUBLISH_H

#include "proto/members/members.h"


typedef struct publish_s  publish_t;

/* A member changed.  before NULL: it is new; after NULL: it is gone. */
typedef void (*publish_change_pt)(void *data, const llmgw_member_t *before,
    const llmgw_member_t *after);

typedef struct {
    const llmgw_member_t       *member;
    const llmgw_member_load_t  *load;
    const char                 *models;         /* the list that `member`
                                                   names */
    size_t                      models_bytes;
} publish_item_t;

/* The present members: `at` gives the i-th of n, in any order. */
typedef struct {
    size_t        n;
    const void   *data;
    void        (*at)(const void *data, size_t i,
                      publish_item_t *item);
} publish_source_t;

/*
 * path NULL: only a view, no segment.  capacity: most members.  on_change is
 * called for each member that differs from the publication before.  NULL and a
 * reason in error (of LLMGW_MEMBERS_ERROR_BYTES).
 *
 * A disk that is full or broken is no reason: the segment is made by the first
 * publish_heartbeat() that can.  error is "" where it stands already.
 */
publish_t *publish_create(const char *path, uint32_t capacity,
    publish_change_pt on_change, void *data, char *error);
void publish_destroy(publish_t *publish);

/* To be called when members have changed, other than in loads. */
void publish_mark(publish_t *publish);

/*
 * Sets for the next flush: this agent is cut off, rather than the others dead.
 */
void publish_set_isolated(publish_t *publish, int is_isolated);

/* The load of one member has changed. */
void publish_load(publish_t *publish, const char *id,
    const llmgw_member_load_t *load);

/* How long the next flush should wait; 0: it is due, or nothing is marked. */
uint64_t publish_wait_us(const publish_t *publish, uint64_t now_us);

/* Publishes if marked.  0; or -1 and a reason, and the mark stays. */
int publish_flush(publish_t *publish, const publish_source_t *source,
    uint64_t now_us, char *error);

/* The last flush took this long, on_change included. */
void publish_took(publish_t *publish, uint64_t took_us);

/* To be called each second.  0, or -1 and a reason. */
int publish_heartbeat(publish_t *publish, uint64_t now_ms, char *error);

/*
 * The names that a member of the last publication, or of the one before, names
 * by their hash; NULL: they are not there.  They are valid until the next
 * flush.
 */
const char *publish_models(const publish_t *publish, uint64_t models,
    size_t *bytes);

/* The members as published last; valid until the next flush. */
llmgw_roster_t publish_roster(const publish_t *publish);

#endif /* PUBLISH_H */
