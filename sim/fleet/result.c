
#include <stdlib.h>

#include "sim/fleet/fleet_inner.h"


const char *const  fleet_status_names[FLEET_STATUSES] = {
    [FLEET_NOT_ARRIVED] = "not_arrived",
    [FLEET_COMPLETED] = "completed",
    [FLEET_LENGTH_CAPPED] = "length_capped",
    [FLEET_TIMED_OUT] = "timed_out",
    [FLEET_REJECTED_ADMISSION] = "rejected_admission",
    [FLEET_REJECTED_ROUTING] = "rejected_routing",
    [FLEET_GATEWAY_REJECTED] = "gateway_rejected",
    [FLEET_GATEWAY_SHED] = "gateway_shed",
    [FLEET_GATEWAY_EXPIRED] = "gateway_expired",
    [FLEET_GATEWAY_EVICTED] = "gateway_evicted",
    [FLEET_UNSERVABLE] = "unservable",
    [FLEET_DROPPED_AT_DECODE_KV] = "dropped_at_decode_kv",
    [FLEET_IN_INSTANCE] = "in_instance_at_horizon",
    [FLEET_IN_GATEWAY] = "in_gateway_at_horizon",
    [FLEET_LOST] = "lost",
};


const fleet_outcome_t  fleet_outcome_none = {
    .ttft_us = FLEET_NEVER, .e2e_us = FLEET_NEVER,
    .sched_delay_us = FLEET_NEVER, .gw_enqueue_us = FLEET_NEVER,
    .gw_dispatch_us = FLEET_NEVER, .route_us = FLEET_NEVER,
    .end_us = FLEET_NEVER, .detail = "",
    .replica = FLEET_NONE, .split = FLEET_NONE
};


void
fleet_result_end(fleet_result_t *result, const loop_t *loop)
{
    uint32_t          i;
    model_facts_t     facts;
    fleet_replica_t  *replica;

    result->events = loop->turns;
    result->clock_us = loop->clock_us;

    for (i = 0; i < result->nreplicas; i++) {
        replica = &result->replicas[i];
        model_replica_facts(replica->model, &facts);
        replica->ended_us = model_replica_ended(replica->model);
        replica->still_queued = facts.queue_depth;
        replica->still_running = facts.batch_size;
    }
}


static void
result_free_requests(fleet_memory_t *memory, size_t nsplits)
{
    size_t    i;
    uint32_t  k;

    for (i = 0; i < memory->npages; i++) {

        for (k = 0; k < WORK_PAGE; k++) {
            free(memory->pages[i][k].hashes);
        }

        free(memory->pages[i]);
    }

    for (i = 0; i < nsplits; i++) {
        free(memory->halves[i]);
    }

    free(memory->pages);
    free(memory->halves);
}


static void
result_free_memory(fleet_result_t *result)
{
    fleet_memory_t  *memory = result->memory;

    result_free_requests(memory, result->nsplits);
    work_arena_done(&memory->texts);
    free(memory->nodes);
    free(memory);
}


void
fleet_result_done(fleet_result_t *result)
{
    uint32_t  i;

    for (i = 0; i < result->nreplicas; i++) {
        model_replica_destroy(result->replicas[i].model);
    }

    if (result->memory_done != NULL) {
        result->memory_done(result->memory);

    } else if (result->memory != NULL) {
        result_free_memory(result);
    }

    free(result->outcomes);
    free(result->replicas);
    free(result->classes);
    free(result->splits);
    *result = (fleet_result_t) { 0 };
}
