
/* Changes of members as lines of the log. */

#ifndef JOURNAL_H
#define JOURNAL_H

#include "common/log.h"
#include "proto/members/members.h"


/* before NULL: new; after NULL: forgotten. */
void journal_change(const log_t *log, const llmgw_member_t *before,
    const llmgw_member_t *after);

#endif /* JOURNAL_H */
