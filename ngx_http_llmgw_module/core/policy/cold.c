
/* Who got a cold request last.  cold.h says what for. */

#include "core/policy/cold.h"


/* Links hold numbers of replicas + 1, so that zeroed memory is empty. */


size_t
llmgw_cold_bytes(uint32_t nreplicas)
{
    return sizeof(llmgw_cold_t)
           + (size_t) nreplicas * sizeof(llmgw_cold_link_t);
}


llmgw_cold_t *
llmgw_cold_init(void *memory, uint32_t nreplicas)
{
    llmgw_cold_t  *cold;

    cold = memory;
    cold->nreplicas = nreplicas;

    return cold;
}


/* From now on a link of this choice has the mark cold->mark. */
static void
cold_mark(llmgw_cold_t *cold, const llmgw_candidate_t *candidates, uint32_t n)
{
    uint32_t            i;
    llmgw_cold_link_t  *link;

    cold->mark++;

    for (i = 0; i < n; i++) {
        link = &cold->links[candidates[i].replica];
        link->mark = cold->mark;
        link->position = i;
    }
}


void
llmgw_cold_rank(llmgw_cold_t *cold, const llmgw_candidate_t *candidates,
    uint32_t n, double *ranks)
{
    uint32_t            i, rank;
    llmgw_cold_link_t  *link;

    rank = 0;
    cold_mark(cold, candidates, n);

    for (i = 0; i < n; i++) {
        if (!cold->links[candidates[i].replica].is_listed) {
            ranks[i] = rank++;
        }
    }

    for (i = cold->oldest; i != 0; i = link->newer) {
        link = &cold->links[i - 1];

        if (link->mark == cold->mark) {
            ranks[link->position] = rank++;
        }
    }
}


static void
cold_unlist(llmgw_cold_t *cold, llmgw_cold_link_t *link)
{
    if (link->newer != 0) {
        cold->links[link->newer - 1].older = link->older;

    } else {
        cold->newest = link->older;
    }

    if (link->older != 0) {
        cold->links[link->older - 1].newer = link->newer;

    } else {
        cold->oldest = link->newer;
    }

    link->is_listed = 0;
}


static void
cold_prune(llmgw_cold_t *cold, const llmgw_candidate_t *candidates, uint32_t n)
{
    uint32_t            i, newer;
    llmgw_cold_link_t  *link;

    cold_mark(cold, candidates, n);

    for (i = cold->oldest; i != 0; i = newer) {
        link = &cold->links[i - 1];
        newer = link->newer;

        if (link->mark != cold->mark) {
            cold_unlist(cold, link);
        }
    }
}


void
llmgw_cold_note(llmgw_cold_t *cold, const llmgw_candidate_t *candidates,
    uint32_t n, uint32_t chosen)
{
    uint32_t            i;
    llmgw_cold_link_t  *link;

    if (n > 1) {
        cold_prune(cold, candidates, n);
    }

    i = candidates[chosen].replica;
    link = &cold->links[i];

    if (link->is_listed) {
        cold_unlist(cold, link);
    }

    link->is_listed = 1;
    link->newer = 0;
    link->older = cold->newest;

    if (cold->newest != 0) {
        cold->links[cold->newest - 1].newer = i + 1;

    } else {
        cold->oldest = i + 1;
    }

    cold->newest = i + 1;
}
