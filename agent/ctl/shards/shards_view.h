
/*
 * The shards of a cluster, by the models that they compute: which layers of
 * each are covered, how often, and by which shards.
 *
 * The view is made from the agent's answers.  It is a JSON object, so that
 * people and programs get the same.
 */

#ifndef CTL_SHARDS_VIEW_H
#define CTL_SHARDS_VIEW_H

#include <jansson.h>


/*
 * Makes {"models":[...],"silent":[...]}, as docs/control.md has it, from the
 * answer to "members".  pipelines: from the answer to "status", for shards that
 * are excluded; NULL: it has none.  Returns NULL if out of memory.
 */
json_t *ctl_shards_collect(const json_t *members, const json_t *pipelines);

#endif /* CTL_SHARDS_VIEW_H */
