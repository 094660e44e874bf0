
/*
 * Whether a replica is stuck: no request will end unless one arrives or is
 * removed.
 *
 * Consider the steps that compute nothing although requests wait: the batch is
 * empty after it was formed.
 *
 *   - A replica on which nothing ends takes such steps again and again.  As
 *     long as the batch is not empty, its first request (or, where the least
 *     urgent one is preempted, its most urgent) is preempted by none, gets a
 *     token in each step or comes nearer to the first place, and ends.  It can
 *     only be preempted by itself, alone; then the batch is empty.
 *   - In such a step all that decides what comes next is the queue and the
 *     blocks: the order of requests, the blocks that some hold already because
 *     their prompt came from elsewhere, and the names of the free ones, which
 *     are the cache.
 *
 * Therefore, if such a step has the state of an earlier one, it will have it
 * again and again; and a stuck replica reaches such a state, since the number
 * of states is finite.  So exactly the stuck replicas are found.  States are
 * compared by a hash of 64 bits, with the one at the last power of two: a cycle
 * is found however long it is, and however late it begins (Brent).
 *
 * A replica with a deadline, a pending request or reserved blocks is not stuck:
 * its state will change.
 */

#include "sim/model/replica_inner.h"


static uint64_t
stuck_state(const model_replica_t *replica)
{
    uint32_t                i;
    uint64_t                state;
    const model_queue_t    *queue;
    const model_request_t  *request;

    queue = &replica->queue;
    state = model_kv_state(&replica->kv);

    for (i = 0; i < queue->n; i++) {
        request = queue->items[queue->first + i];
        state = model_hashes_mix(state, (uint64_t) (uintptr_t) request);
        state = model_hashes_mix(state, request->progress);
        state = model_hashes_mix(state, request->nblocks);
    }

    return state;
}


void
model_stuck_look(model_replica_t *replica)
{
    uint64_t        state;
    model_stuck_t  *stuck;

    stuck = &replica->stuck;

    if (replica->deadlines.n > 0 || replica->pending.n > 0
        || replica->reserved > 0)
    {
        return;
    }

    if (stuck->steps > 0) {
        stuck->steps++;
        return;
    }

    state = stuck_state(replica);

    if (stuck->nstates > 0 && state == stuck->state) {
        stuck->steps = 1;
        return;
    }

    if ((stuck->nstates & (stuck->nstates - 1)) == 0) {
        stuck->state = state;
    }

    stuck->nstates++;
}


void
model_stuck_forget(model_replica_t *replica)
{
    replica->stuck = (model_stuck_t) { 0 };
}


uint64_t
model_replica_stuck(const model_replica_t *replica)
{
    return replica->stuck.steps;
}
