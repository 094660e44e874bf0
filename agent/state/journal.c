
#include <string.h>

#include "state/journal.h"


static void
journal_came(const log_t *log, const llmgw_member_t *member)
{
    log_write(log, LOG_INFO, "member \"%s\" at %s is known, %s, %s",
              member->id, member->address,
              llmgw_liveness_name(member->liveness),
              llmgw_service_name(member->service));
}


void
journal_change(const log_t *log, const llmgw_member_t *before,
    const llmgw_member_t *after)
{
    if (before == NULL) {
        journal_came(log, after);
        return;
    }

    if (after == NULL) {
        log_write(log, LOG_INFO, "member \"%s\" is forgotten", before->id);
        return;
    }

    if (before->epoch != after->epoch) {
        log_write(log, LOG_INFO, "member \"%s\" at %s started anew",
                  after->id, after->address);
    }

    if (before->liveness != after->liveness) {
        log_write(log, LOG_INFO, "member \"%s\" is %s, was %s", after->id,
                  llmgw_liveness_name(after->liveness),
                  llmgw_liveness_name(before->liveness));
    }

    if (before->service != after->service) {
        log_write(log, LOG_INFO, "replica \"%s\" is %s, was %s", after->id,
                  llmgw_service_name(after->service),
                  llmgw_service_name(before->service));
    }

    if (before->draining && !after->draining) {
        log_write(log, LOG_INFO, "replica \"%s\" drains no more", after->id);

    } else if (before->draining != after->draining
               || strcmp(before->drain_owner, after->drain_owner) != 0)
    {
        log_write(log, LOG_INFO, "replica \"%s\" is drained by %s", after->id,
                  after->drain_owner[0] ? after->drain_owner : "itself");
    }

    if (strcmp(before->model_version, after->model_version) != 0) {
        log_write(log, LOG_INFO, "replica \"%s\" has version \"%s\"",
                  after->id, after->model_version);
    }
}
