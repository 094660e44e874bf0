
/* Checks the invariants between any two events. */

#include <stdio.h>
#include <stdlib.h>

#include "sim/model/replica_inner.h"


static void
check_count(const model_request_t *request, uint32_t *users)
{
    uint32_t  i;

    for (i = 0; i < request->nblocks; i++) {
        users[request->blocks[i]]++;
    }
}


/*
 * Checks the blocks that requests hold; requests with reserved blocks are in no
 * list.
 */
static const char *
check_blocks(const model_replica_t *replica)
{
    uint32_t     i, *users;
    const char  *wrong;

    users = calloc(replica->kv.fresh + 1, sizeof(uint32_t));

    if (users == NULL) {
        return "no memory";
    }

    for (i = 0; i < replica->batch.n; i++) {
        check_count(replica->batch.requests[i], users);
    }

    for (i = 0; i < replica->queue.n; i++) {
        check_count(replica->queue.items[replica->queue.first + i], users);
    }

    wrong = model_kv_check(&replica->kv, users, replica->reserved == 0);
    free(users);

    return wrong;
}


/* Whether a request's blocks hold exactly its computed tokens. */
static int
check_tokens(const model_replica_t *replica, const model_request_t *request)
{
    uint64_t  held, wanted;

    wanted = model_progress(replica, request);
    held = request->tail;

    if (request->nblocks > 0) {
        held += (request->nblocks - 1) * (uint64_t) replica->kv.block_tokens;
        held += request->is_prefilling ? 0 : replica->step - request->filled;
    }

    if (request->is_unchained) {
        wanted -= request->input_tokens;
    }

    /* A request with an empty prompt takes a block, too. */
    return held == wanted + (request->input_tokens == 0);
}


static const char *
check_batch(const model_replica_t *replica)
{
    uint32_t                i, prefilling;
    uint64_t                context;
    const model_request_t  *request;

    prefilling = 0;
    context = 0;

    for (i = 0; i < replica->batch.n; i++) {
        request = replica->batch.requests[i];
        prefilling += request->is_prefilling;

        if (request->state != MODEL_REQUEST_RUNNING) {
            return "a request of the batch does not run";
        }

        if (!request->is_prefilling) {
            context += model_progress(replica, request);
        }

        if (!check_tokens(replica, request)) {
            return "a request's blocks do not hold its tokens";
        }

        if (replica->batch.due[i] < replica->batch.next_due) {
            return "a request is due before all are";
        }
    }

    if (prefilling != replica->batch.prefilling
        || context != replica->batch.context)
    {
        return "the batch's sums are not those of its requests";
    }

    return (int64_t) replica->batch.n > replica->config->max_seqs
           ? "the batch is too large" : NULL;
}


static const char *
check_queue(const model_replica_t *replica)
{
    uint32_t  i;

    for (i = 0; i < replica->queue.n; i++) {

        if (replica->queue.items[replica->queue.first + i]->state
            != MODEL_REQUEST_QUEUED)
        {
            return "a request of the queue is not queued";
        }
    }

    return (replica->queue.n > 0 || replica->batch.n > 0)
           && replica->step_at_us == MODEL_NEVER
           ? "there is work, and no step is due" : NULL;
}


int
model_replica_check(const model_replica_t *replica, char *error,
    size_t bytes)
{
    const char  *wrong;

    wrong = check_batch(replica);

    if (wrong == NULL) {
        wrong = check_queue(replica);
    }

    if (wrong == NULL) {
        wrong = check_blocks(replica);
    }

    if (wrong == NULL) {
        return 0;
    }

    snprintf(error, bytes, "%s", wrong);

    return -1;
}
