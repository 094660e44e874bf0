
/*
 * A rolling update as JSON: for the status, and for the lines that its
 * followers get.  docs/control.md shows each.
 */

#ifndef ROLLOUT_JSON_H
#define ROLLOUT_JSON_H

#include <jansson.h>

#include "rollout/rollout.h"


/* Facts that the rollout itself does not have. */
typedef struct {
    const char  *id;
    uint64_t     began_ms;          /* wall clock */
    uint64_t     ended_ms;          /* 0: it is still running */
    uint64_t     now_us;            /* by the rollout's clock */
} rollout_label_t;


/* The whole update. */
json_t *rollout_show(const rollout_t *rollout, const rollout_label_t *label);

/* Which replicas would be updated, how, and in which order. */
json_t *rollout_show_plan(const rollout_t *rollout);

/* One step, as it is now. */
json_t *rollout_show_step(const rollout_t *rollout, size_t step,
    uint64_t now_us);

/* The steps that have begun and not ended. */
json_t *rollout_show_active(const rollout_t *rollout, uint64_t now_us);

/* The last line: how the update ended.  Takes over the reference to update. */
json_t *rollout_show_end(const rollout_t *rollout, json_t *update);

/* Writes why the update ended as it did, in one line; "" if it is complete. */
void rollout_reason(const rollout_t *rollout, char *text);

/* The number of steps whose replica has the version: DONE and SKIPPED. */
size_t rollout_ndone(const rollout_t *rollout);

#endif /* ROLLOUT_JSON_H */
