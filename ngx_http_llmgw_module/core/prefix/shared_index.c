
/* The prefix index of several processes: shared_index.h. */

#include "core/prefix/shared_index.h"


static int
shared_fits(llmgw_prefix_size_t size, uint32_t total, size_t bytes)
{
    size_t  need;

    size.total = total;
    need = llmgw_prefix_shared_bytes(&size);

    return need != 0 && need <= bytes;
}


/* The memory needed grows with the total, so it is found by bisection. */
uint32_t
llmgw_prefix_shared_fit(llmgw_prefix_size_t *size, size_t bytes)
{
    uint32_t  fits, step;
    uint64_t  all;

    fits = 0;
    all = (uint64_t) size->replicas * size->blocks;

    for (step = (uint32_t) 1 << 30; step != 0; step /= 2) {
        if ((uint64_t) fits + step <= all
            && shared_fits(*size, fits + step, bytes))
        {
            fits += step;
        }
    }

    size->total = fits;

    return fits;
}


llmgw_prefix_shared_t *
llmgw_prefix_shared_init(void *memory, const llmgw_prefix_size_t *size)
{
    llmgw_prefix_shared_t  *shared;

    shared = memory;
    shared->replicas = size->replicas;

    return llmgw_prefix_init(llmgw_prefix_shared_index(shared), size) == NULL
           ? NULL : shared;
}


int
llmgw_prefix_shared_match(const llmgw_prefix_shared_t *shared,
    const uint64_t *blocks, uint32_t n, uint32_t *matched, uint64_t *scratch)
{
    uint32_t  i, sequence;

    for (i = 0; i < LLMGW_PREFIX_TRIES; i++) {
        sequence = __atomic_load_n(&shared->sequence, __ATOMIC_ACQUIRE);

        if (sequence & 1) {
            continue;
        }

        llmgw_prefix_match(llmgw_prefix_shared_index(shared), blocks, n,
                           matched, scratch);

        if (__atomic_load_n(&shared->sequence, __ATOMIC_ACQUIRE) == sequence) {
            return 1;
        }
    }

    return 0;
}


/*
 * The sequence is odd before the first store of a change and even after the
 * last: for other processors by release, and for a process that dies by the
 * order of stores.
 */
static void
shared_step(llmgw_prefix_shared_t *shared)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&shared->sequence, shared->sequence + 1,
                     __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}


uint32_t
llmgw_prefix_shared_record(llmgw_prefix_shared_t *shared, uint32_t replica,
    uint64_t owner, const uint64_t *blocks, uint32_t n)
{
    uint32_t               had;
    llmgw_prefix_index_t  *index;

    index = llmgw_prefix_shared_index(shared);

    shared->writing = replica;
    shared_step(shared);

    if (shared->owners[replica] != owner) {
        llmgw_prefix_forget(index, replica);
        __atomic_store_n(&shared->owners[replica], owner, __ATOMIC_RELEASE);
    }

    had = llmgw_prefix_record(index, replica, blocks, n);

    shared_step(shared);

    return had;
}


void
llmgw_prefix_shared_mend(llmgw_prefix_shared_t *shared)
{
    llmgw_prefix_mend(llmgw_prefix_shared_index(shared), shared->writing);
    shared_step(shared);
}
