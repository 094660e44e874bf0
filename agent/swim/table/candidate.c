
/* Strangers: see candidate.h. */

#include <stdlib.h>
#include <string.h>

#include "common/data/grow.h"
#include "swim/table/candidate.h"
#include "swim/table/member.h"


void
candidates_done(candidates_t *candidates)
{
    free(candidates->entries);
    free(candidates->hashes);
}


/*
 * The hashes are compared first: the sender of each datagram may be one of a
 * thousand strangers.
 */
candidate_t *
candidate_find(candidates_t *candidates, const char *id)
{
    size_t    i;
    uint32_t  hash;

    hash = member_hash(id);

    for (i = 0; i < candidates->n; i++) {
        if (candidates->hashes[i] == hash
            && strcmp(candidates->entries[i].id, id) == 0)
        {
            return &candidates->entries[i];
        }
    }

    return NULL;
}


static int
candidate_reserve(candidates_t *candidates)
{
    size_t  n;

    n = candidates->n + 1;

    return grow(&candidates->entries, &candidates->max_entries, n,
                sizeof(candidate_t)) == 0
           && grow(&candidates->hashes, &candidates->max_hashes, n,
                   sizeof(uint32_t)) == 0 ? 0 : -1;
}


candidate_t *
candidate_new(candidates_t *candidates, const char *id)
{
    candidate_t  *candidate;

    if (candidates->n == CANDIDATE_MAX
        || candidate_reserve(candidates) != 0)
    {
        return NULL;
    }

    candidates->hashes[candidates->n] = member_hash(id);
    candidate = &candidates->entries[candidates->n++];
    memset(candidate, 0, sizeof(candidate_t));
    strcpy(candidate->id, id);

    return candidate;
}


void
candidate_forget(candidates_t *candidates, candidate_t *candidate)
{
    size_t  last;

    last = --candidates->n;
    candidates->hashes[candidate - candidates->entries]
        = candidates->hashes[last];
    *candidate = candidates->entries[last];
}
