
/*
 * The text about failed shards that a client gets: the layers, and what the
 * shard did.  Names and addresses of shards are only in the log.
 */

#include <stdio.h>
#include <string.h>

#include "replica/shard/flow/flow_inner.h"


void
failure_by_shard(flow_t *flow, const hop_t *hop, shard_reason_t reason)
{
    snprintf(flow->failure.text, sizeof(flow->failure.text),
             "the shard of layers %u-%u %s", hop->at.first, hop->at.last,
             shard_reason_words(reason));
}


/* Adds why no other shard, or none at all, computes the layers. */
void
failure_by_path(flow_t *flow, fleet_rc_t rc)
{
    char             why[FLOW_TEXT_BYTES];
    size_t           used;
    flow_failure_t  *failure;

    failure = &flow->failure;
    used = strlen(failure->text);

    switch (rc) {

    case FLEET_FULL:
        snprintf(why, sizeof(why), "the shards of layer %u are full",
                 (unsigned) flow->path.layer);
        break;

    case FLEET_MISMATCH:
        snprintf(why, sizeof(why), "the shards of layer %u have other weights "
                 "or compute other bits", (unsigned) flow->path.layer);
        break;

    case FLEET_NO_MEMORY:
        snprintf(why, sizeof(why), "out of memory");
        break;

    default:
        if (flow->failovers > FLOW_FAILOVERS_MAX) {
            snprintf(why, sizeof(why), "others had failed before");

        } else {
            snprintf(why, sizeof(why), "no %sshard can compute layer %u",
                     used > 0 ? "other " : "", (unsigned) flow->path.layer);
        }
    }

    snprintf(failure->text + used, sizeof(failure->text) - used, "%s%s",
             used > 0 ? ", and " : "", why);
}
