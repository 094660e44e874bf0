
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/members/shards.h"
#include "state/journal.h"


/*
 * Logs a change of the standby group.  States are written in capitals, as
 * "ACTIVE".
 */
static void
journal_group(const log_t *log, const llmgw_member_t *before,
    const llmgw_member_t *after)
{
    char    state[16];
    size_t  i;

    if (after->group[0] == '\0') {
        log_write(log, LOG_INFO, "replica \"%s\" left group \"%s\"",
                  after->id, before->group);
        return;
    }

    snprintf(state, sizeof(state), "%s",
             llmgw_group_state_name(after->group_state));

    for (i = 0; state[i] != '\0'; i++) {
        state[i] = toupper((unsigned char) state[i]);
    }

    if (after->group_epoch == 0) {
        log_write(log, LOG_INFO, "replica \"%s\" is %s of group \"%s\"",
                  after->id, state, after->group);
        return;
    }

    log_write(log, LOG_INFO, "replica \"%s\" is %s of group \"%s\", epoch %"
              PRIu64, after->id, state, after->group, after->group_epoch);
}


/* Logs that a shard's layers are offered from now on, or no longer. */
static void
journal_shard(const log_t *log, const llmgw_member_t *before,
    const llmgw_member_t *after)
{
    int            was, is;
    llmgw_shard_t  shard;

    was = before != NULL && llmgw_shard_is_advertised(before);
    is = llmgw_shard_is_advertised(after);

    if (was == is) {
        return;
    }

    llmgw_member_shard(is ? after : before, &shard);
    log_write(log, LOG_INFO, "shard \"%s\" offers layers %u-%u of %u%s",
              after->id, shard.first, shard.last, shard.layers,
              is ? "" : " no more");
}


static void
journal_came(const log_t *log, const llmgw_member_t *member)
{
    log_write(log, LOG_INFO, "member \"%s\" at %s is known, %s, %s",
              member->id, member->address,
              llmgw_liveness_name(member->liveness),
              llmgw_service_name(member->service));

    if (member->group[0] != '\0') {
        journal_group(log, member, member);
    }

    journal_shard(log, NULL, member);
}


void
journal_change(const log_t *log, const llmgw_member_t *before,
    const llmgw_member_t *after)
{
    const char  *what;

    if (before == NULL) {
        journal_came(log, after);
        return;
    }

    if (after == NULL) {
        log_write(log, LOG_INFO, "member \"%s\" is forgotten", before->id);
        return;
    }

    what = llmgw_role_name(llmgw_member_role(after));

    if (before->epoch != after->epoch) {
        log_write(log, LOG_INFO, "member \"%s\" at %s was restarted",
                  after->id, after->address);
    }

    if (before->liveness != after->liveness) {
        log_write(log, LOG_INFO, "member \"%s\" is %s, was %s", after->id,
                  llmgw_liveness_name(after->liveness),
                  llmgw_liveness_name(before->liveness));
    }

    if (before->service != after->service) {
        log_write(log, LOG_INFO, "%s \"%s\" is %s, was %s", what, after->id,
                  llmgw_service_name(after->service),
                  llmgw_service_name(before->service));
    }

    if (!llmgw_member_groups_are_alike(before, after)) {
        journal_group(log, before, after);
    }

    journal_shard(log, before, after);

    if (before->draining && !after->draining) {
        log_write(log, LOG_INFO, "%s \"%s\" is no longer drained", what,
                  after->id);

    } else if (before->draining != after->draining
               || strcmp(before->drain_owner, after->drain_owner) != 0)
    {
        log_write(log, LOG_INFO, "%s \"%s\" is drained by %s", what,
                  after->id,
                  after->drain_owner[0] ? after->drain_owner : "itself");
    }

    if (strcmp(before->model_version, after->model_version) != 0) {
        log_write(log, LOG_INFO, "%s \"%s\" has version \"%s\"", what,
                  after->id, after->model_version);
    }
}
