
/*
 * What each caller of a shard has asked for.  A caller is an orchestrating
 * replica, named by the member id in its Open; a shard with keys counts a name
 * only if a key has signed it.
 *
 * A caller chooses its name, so names are bounded: CALLERS_MAX.  Beyond that,
 * the caller that has been without a session for longest is forgotten, and its
 * counts are added to CALLERS_OTHERS; as long as all have sessions, new ones
 * are counted as CALLERS_OTHERS themselves.  So the sums over all names never
 * fall.  Refusals before the caller is known are counted as CALLERS_OTHERS,
 * too.
 */

#ifndef SERVE_CALLERS_H
#define SERVE_CALLERS_H

#include <jansson.h>
#include <stdint.h>

#include "proto/members/members.h"
#include "replica/shard/reason.h"


#define CALLERS_MAX     16          /* a name each in reports and metrics */

/* No member has this id: its characters are not those of a name. */
#define CALLERS_OTHERS  "(others)"

typedef struct {
    char      id[LLMGW_MEMBERS_NAME_BYTES];
    uint64_t  used;                 /* number of its last use, of
                                       callers_t.uses */
    uint32_t  sessions;             /* now */
    uint64_t  opened;
    uint64_t  rows;                 /* computed, with their results sent */
    uint64_t  refused[SHARD_REASONS_COUNT];
} caller_t;

/* Zeroed: no caller.  `others` has no id. */
typedef struct {
    caller_t  all[CALLERS_MAX];
    uint32_t  n;
    uint64_t  uses;
    caller_t  others;
} callers_t;


/*
 * The caller with that id, which is a valid name.  The pointer is valid while
 * the caller has sessions (caller_opened()), and otherwise until the next call.
 */
caller_t *callers_find(callers_t *callers, const char *id);

/* Count a session of the caller, and its end. */
void caller_opened(caller_t *caller);
void caller_closed(caller_t *caller);

/* {"ID": {"sessions", "opened", "rows", "refused": {REASON: n}}}, without
   callers that asked for nothing.  NULL: no memory. */
json_t *callers_report(const callers_t *callers);

#endif /* SERVE_CALLERS_H */
