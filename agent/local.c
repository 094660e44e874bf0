
#include <string.h>

#include "agent/local.h"


void
local_init(local_t *local)
{
    memset(local, 0, sizeof(local_t));
    local->service = LLMGW_SERVICE_STARTING;
    local->shard_us = LOCAL_SHARD_US;
}


static llmgw_service_t
local_judge(const report_t *report)
{
    if (report->goodbye) {
        return LLMGW_SERVICE_STOPPED;
    }

    return report->state == LLMGW_SERVICE_READY
           && report->group.name[0] != '\0'
           && report->group.state != LLMGW_GROUP_ACTIVE
           ? LLMGW_SERVICE_STARTING : report->state;
}


void
local_report(local_t *local, const report_t *report, uint64_t now_us)
{
    local->is_connected = 1;
    local->reported_us = now_us;
    local->draining = report->draining;
    local->max_capacity = report->max_capacity;
    local->active_requests = report->active_requests;
    local->engine = report->engine;
    local->models = report->models;
    local->replica_start_ms = report->replica_start_ms;
    strcpy(local->model_version, report->model_version);
    strcpy(local->resume_group, report->resume_group);
    strcpy(local->detail, report->detail);
    local->group = report->group;
    local->shard = report->shard.facts;
    local->orchestrates = report->pipelines != NULL;
    local->service = local_judge(report);
}


void
local_lost(local_t *local)
{
    local->is_connected = 0;
    local->active_requests = 0;
    local->engine = (llmgw_engine_load_t) { 0 };
    local->orchestrates = 0;
    local->detail[0] = '\0';

    if (local->service != LLMGW_SERVICE_STOPPED) {
        local->service = LLMGW_SERVICE_DOWN;
    }
}


void
local_ended(local_t *local)
{
    if (local->is_connected || local_has_replica(local)) {
        local_lost(local);
    }
}


int
local_has_replica(const local_t *local)
{
    return (local->is_connected && local->service != LLMGW_SERVICE_STOPPED)
           || local->service == LLMGW_SERVICE_READY
           || local->service == LLMGW_SERVICE_STALLED;
}


int
local_is_idle(const local_t *local)
{
    return !local->is_connected || local->active_requests == 0
           || local->service == LLMGW_SERVICE_STOPPED;
}


static uint64_t
local_stalls_us(const local_t *local)
{
    return local->is_connected && (local->service == LLMGW_SERVICE_READY
                                   || local->service
                                      == LLMGW_SERVICE_STARTING)
           ? local->reported_us + LOCAL_STALL_US : UINT64_MAX;
}


static uint64_t
local_expires_us(const local_t *local)
{
    return local->shard.layers ? local->reported_us + local->shard_us
                               : UINT64_MAX;
}


void
local_tick(local_t *local, uint64_t now_us)
{
    if (now_us >= local_stalls_us(local)) {
        local->service = LLMGW_SERVICE_STALLED;
    }

    if (now_us >= local_expires_us(local)) {
        local->shard = (llmgw_shard_t) { .layers = 0 };
        local->models.bytes = 0;
    }
}


uint64_t
local_next_us(const local_t *local)
{
    uint64_t  stalls_us, expires_us;

    stalls_us = local_stalls_us(local);
    expires_us = local_expires_us(local);

    return stalls_us < expires_us ? stalls_us : expires_us;
}


void
local_health(local_t *local, health_verdict_t verdict)
{
    if (local->reported_us != 0) {
        return;
    }

    if (verdict == HEALTH_SERVING) {
        local->service = LLMGW_SERVICE_READY;
        local->draining = 0;
        return;
    }

    if (local->service == LLMGW_SERVICE_STARTING) {
        return;
    }

    switch (verdict) {
    case HEALTH_NOT_SERVING:
        local->service = LLMGW_SERVICE_READY;
        local->draining = 1;
        break;
    case HEALTH_SILENT:
        local->service = LLMGW_SERVICE_STALLED;
        break;
    default:
        local->service = LLMGW_SERVICE_DOWN;
        break;
    }
}


void
local_own(const local_t *local, swim_own_t *own)
{
    own->service = local->service;
    own->draining = local->draining;
    own->model_version = local->model_version;
    own->max_capacity = local->max_capacity;
    own->is_heard = local->is_connected
                    && local->service != LLMGW_SERVICE_STOPPED;
    own->resume_group = local->resume_group[0] ? local->resume_group : NULL;
    own->models = local->models.names;
    own->models_bytes = local->models.bytes;
    own->models_cut = local->models.cut;
    own->group = local->group.name;
    own->group_state = local->group.state;
    own->group_epoch = local->group.epoch;
    own->group_lock = local->group.lock;
    own->shard = &local->shard;
    own->orchestrates = local->orchestrates;
    own->replica_start_ms = local->replica_start_ms;
}
