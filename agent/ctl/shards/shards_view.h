
/*
 * The shards of a cluster, by the models that they compute: which layers of
 * each are covered, how often, and by which shards.
 *
 * It is made from the agent's answers, and is an object, so that it is the same
 * for people and for programs.
 */

#ifndef CTL_SHARDS_VIEW_H
#define CTL_SHARDS_VIEW_H

#include <jansson.h>


/*
 * {"models":[...],"silent":[...]} of the answer to "members", as
 * docs/control.md has it.  pipelines: of the answer to "status", for shards
 * that are left out; NULL: it has none.  NULL: out of memory.
 */
json_t *ctl_shards_collect(const json_t *members, const json_t *pipelines);

#endif /* CTL_SHARDS_VIEW_H */
