
/* Which replicas got a cold request last.  cold.h has the purpose. */

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


/*
 * From now on a link with mark cold->mark belongs to a candidate of this
 * choice.
 */
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


/* For words that a copy may read while they change. */
static void
cold_store(uint32_t *word, uint32_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}


static uint32_t
cold_load(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}


/*
 * Keeps the order of stores: for other processors by release, and for a process
 * that dies between two of them by their order in the code.
 */
static void
cold_step(llmgw_cold_t *cold)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    cold_store(&cold->sequence, cold->sequence + 1);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}


/* The link from the next older entry to this one. */
static uint32_t *
cold_from(llmgw_cold_t *cold, const llmgw_cold_link_t *link)
{
    return link->older == 0 ? &cold->oldest
                            : &cold->links[link->older - 1].newer;
}


static void
cold_unlist(llmgw_cold_t *cold, llmgw_cold_link_t *link)
{
    cold_store(cold_from(cold, link), link->newer);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);

    if (link->newer != 0) {
        cold->links[link->newer - 1].older = link->older;

    } else {
        cold->newest = link->older;
    }

    link->is_listed = 0;
}


static void
cold_list(llmgw_cold_t *cold, uint32_t replica)
{
    llmgw_cold_link_t  *link;

    link = &cold->links[replica];
    link->is_listed = 1;
    link->older = cold->newest;
    cold_store(&link->newer, 0);

    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    cold_store(cold_from(cold, link), replica + 1);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);

    cold->newest = replica + 1;
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
    uint32_t  replica;

    cold_step(cold);

    if (n > 1) {
        cold_prune(cold, candidates, n);
    }

    replica = candidates[chosen].replica;

    if (cold->links[replica].is_listed) {
        cold_unlist(cold, &cold->links[replica]);
    }

    cold_list(cold, replica);
    cold_step(cold);
}


void
llmgw_cold_forget(llmgw_cold_t *cold, uint32_t replica)
{
    if (cold->links[replica].is_listed) {
        cold_step(cold);
        cold_unlist(cold, &cold->links[replica]);
        cold_step(cold);
    }
}


int
llmgw_cold_is_torn(const llmgw_cold_t *cold)
{
    return cold_load(&cold->sequence) & 1;
}


void
llmgw_cold_mend(llmgw_cold_t *cold)
{
    uint32_t            i, older;
    llmgw_cold_link_t  *link;

    for (i = 0; i < cold->nreplicas; i++) {
        cold->links[i].is_listed = 0;
    }

    older = 0;

    for (i = cold->oldest; i != 0; i = link->newer) {
        link = &cold->links[i - 1];
        link->is_listed = 1;
        link->older = older;
        older = i;
    }

    cold->newest = older;
    cold_step(cold);
}


static void
cold_clear(llmgw_cold_t *cold)
{
    while (cold->oldest != 0) {
        cold_unlist(cold, &cold->links[cold->oldest - 1]);
    }
}


int
llmgw_cold_copy(const llmgw_cold_t *cold, llmgw_cold_t *copy)
{
    uint32_t  i, sequence;

    cold_clear(copy);
    sequence = cold_load(&cold->sequence);

    if (sequence & 1) {
        return 0;
    }

    /* a torn list may have a cycle, or lead anywhere within the links */

    for (i = cold_load(&cold->oldest);
         i - 1 < cold->nreplicas && !copy->links[i - 1].is_listed;
         i = cold_load(&cold->links[i - 1].newer))
    {
        cold_list(copy, i - 1);
    }

    if (cold_load(&cold->sequence) != sequence) {
        cold_clear(copy);
        return 0;
    }

    return 1;
}
