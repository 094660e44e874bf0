
/* Changes of members as lines of the log. */

#ifndef JOURNAL_H
#define JOURNAL_H

#include "common/log.h"
#include "proto/members/members.h"


/*
 * Logs a change.  before NULL: the member is new; after NULL: it was forgotten.
 */
void journal_change(const log_t *log, const llmgw_member_t *before,
    const llmgw_member_t *after);

#endif /* JOURNAL_H */
