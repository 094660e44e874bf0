
/* Reactions of attempt/ to changes of the fleet (fleet/events.h). */

#include "attempt/asking.h"
#include "attempt/attempt.h"
#include "attempt/queue.h"
#include "attempt/session.h"


static ngx_int_t ngx_http_llmgw_asking_worker_begins(
    ngx_http_llmgw_worker_t *worker, ngx_cycle_t *cycle);


const ngx_http_llmgw_fleet_events_t  ngx_http_llmgw_asking_events = {
    .worker_begins = ngx_http_llmgw_asking_worker_begins,
    .worker_ends = ngx_http_llmgw_coalesce_done,
    .pool_begins = ngx_http_llmgw_queue_init,
    .pool_ends = ngx_http_llmgw_queue_done,
    .woken = ngx_http_llmgw_queue_run,
    .loads_read = ngx_http_llmgw_queue_loads_read,
    .view_applied = ngx_http_llmgw_queue_view_applied,
    .replica_changed = ngx_http_llmgw_attempt_move_all,
    .replica_left = ngx_http_llmgw_session_retire_all,
    .replica_ends = ngx_http_llmgw_session_destroy_all,
};


static ngx_int_t
ngx_http_llmgw_asking_worker_begins(ngx_http_llmgw_worker_t *worker,
    ngx_cycle_t *cycle)
{
    worker->asking = ngx_pcalloc(worker->memory,
                                 sizeof(ngx_http_llmgw_asking_t));

    if (worker->asking == NULL) {
        return NGX_ERROR;
    }

    ngx_http_llmgw_coalesce_init(worker, cycle);

    return NGX_OK;
}
