
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/responses.h"


/* An id has two hashes, so that no two ids are taken for one. */
#define SEED  0x7265737023696400ULL

typedef struct {
    uint64_t          id[2];
    uint64_t          number;       /* of the note, ascending; 0: the entry is
                                       empty */
    llmgw_response_t  said;
    uint64_t          seal;
} response_entry_t;

struct llmgw_responses_s {
    uint64_t          nsets;
    uint64_t          number;
    response_entry_t  entries[];
};


size_t
llmgw_responses_bytes(uint32_t nsets)
{
    return sizeof(llmgw_responses_t)
           + (size_t) nsets * LLMGW_RESPONSES_WAYS * sizeof(response_entry_t);
}


uint32_t
llmgw_responses_sets(size_t bytes)
{
    uint32_t  n;

    for (n = 1; n < 1u << 30 && llmgw_responses_bytes(2 * n) <= bytes; n *= 2)
    {
        /* void */
    }

    return llmgw_responses_bytes(n) <= bytes ? n : 0;
}


llmgw_responses_t *
llmgw_responses_init(void *memory, uint32_t nsets)
{
    llmgw_responses_t  *all;

    all = memory;
    all->nsets = nsets;

    return all;
}


static uint64_t
response_seal(const response_entry_t *entry)
{
    return XXH3_64bits_withSeed(entry, offsetof(response_entry_t, seal), SEED);
}


static int
response_is_whole(const response_entry_t *entry)
{
    return entry->number != 0 && entry->seal == response_seal(entry);
}


/* Sets the id's hashes, and returns its set. */
static size_t
response_set(const llmgw_responses_t *all, const void *id, size_t len,
    uint64_t hash[2])
{
    hash[0] = XXH3_64bits(id, len);
    hash[1] = XXH3_64bits_withSeed(id, len, SEED);

    return (size_t) (hash[0] & (all->nsets - 1)) * LLMGW_RESPONSES_WAYS;
}


static int
response_is(const response_entry_t *entry, const uint64_t hash[2])
{
    return entry->id[0] == hash[0] && entry->id[1] == hash[1]
           && response_is_whole(entry);
}


/* The entry of the id, or else an empty one, or else the oldest. */
static response_entry_t *
response_place(llmgw_responses_t *all, size_t set, const uint64_t hash[2])
{
    unsigned           i;
    response_entry_t  *entry, *oldest;

    oldest = &all->entries[set];

    for (i = 0; i < LLMGW_RESPONSES_WAYS; i++) {
        entry = &all->entries[set + i];

        if (response_is(entry, hash)) {
            return entry;
        }

        if (!response_is_whole(entry)) {
            entry->number = 0;
        }

        oldest = entry->number < oldest->number ? entry : oldest;
    }

    return oldest;
}


void
llmgw_responses_note(llmgw_responses_t *all, const void *id, size_t len,
    const llmgw_response_t *response)
{
    size_t             set;
    uint64_t           hash[2];
    response_entry_t  *entry;

    set = response_set(all, id, len, hash);
    entry = response_place(all, set, hash);

    entry->number = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    entry->id[0] = hash[0];
    entry->id[1] = hash[1];
    entry->said = *response;
    entry->number = ++all->number;
    entry->seal = response_seal(entry);
}


int
llmgw_responses_find(const llmgw_responses_t *all, const void *id, size_t len,
    llmgw_response_t *response)
{
    size_t                   set;
    unsigned                 i;
    uint64_t                 hash[2];
    const response_entry_t  *entry;

    set = response_set(all, id, len, hash);

    for (i = 0; i < LLMGW_RESPONSES_WAYS; i++) {
        entry = &all->entries[set + i];

        if (response_is(entry, hash)) {
            *response = entry->said;
            return 1;
        }
    }

    return 0;
}
