
/*
 * A replica as this worker knows it: a member of the segment, or a static
 * `server` line, which counts as a member that is always alive and ready.
 *
 * Its data for the pick are in peer.c.
 *
 * A replica object lives as long as it is listed, is in a table, has attempts
 * or sessions, or is excluded by a stream.  The pool frees what is unused once
 * a second, so none is freed within a callback.
 */

#include "fleet/events.h"
#include "fleet/ssl.h"
#include "fleet/table.h"
#include "llmgateway.pb-c.h"


static ngx_int_t ngx_http_llmgw_replica_sign(
    ngx_http_llmgw_replica_t *replica);
static void ngx_http_llmgw_replica_resolve(ngx_http_llmgw_replica_t *replica);
static void ngx_http_llmgw_replica_new_process(
    ngx_http_llmgw_replica_t *replica, uint64_t start_ms);
static void ngx_http_llmgw_replica_retry_handler(ngx_event_t *ev);


ngx_http_llmgw_replica_t *
ngx_http_llmgw_replica_find(ngx_http_llmgw_pool_t *pool, const char *id)
{
    uint32_t   hash;
    ngx_str_t  key;

    key.data = (u_char *) id;
    key.len = ngx_strlen(id);
    hash = ngx_crc32_long(key.data, key.len);

    return (ngx_http_llmgw_replica_t *)
               ngx_str_rbtree_lookup(&pool->tree, &key, hash);
}


ngx_http_llmgw_replica_t *
ngx_http_llmgw_replica_create(ngx_http_llmgw_pool_t *pool,
    const llmgw_member_t *member)
{
    ngx_http_llmgw_replica_t  *replica;

    replica = ngx_calloc(sizeof(ngx_http_llmgw_replica_t), pool->worker->log);
    if (replica == NULL) {
        return NULL;
    }

    replica->pool = pool;
    replica->index = -1;
    replica->next_index = -1;
    replica->member = *member;

    /* a static line has no name, only its address */
    replica->node.str.data = (u_char *) (member->id[0] ? replica->member.id
                                                       : replica->member.grpc);
    replica->node.str.len = ngx_strlen(replica->node.str.data);
    replica->node.node.key = ngx_crc32_long(replica->node.str.data,
                                            replica->node.str.len);

    if (ngx_http_llmgw_replica_sign(replica) != NGX_OK) {
        ngx_free(replica);
        return NULL;
    }

    ngx_queue_init(&replica->sessions);
    ngx_queue_init(&replica->attempts);

    replica->retry.handler = ngx_http_llmgw_replica_retry_handler;
    replica->retry.data = replica;
    replica->retry.log = pool->worker->log;
    replica->retry.cancelable = 1;

    ngx_rbtree_insert(&pool->tree, &replica->node.node);

    replica->slot = ngx_http_llmgw_zone_attach(pool->zone, &replica->node.str,
                                               &replica->place);
    ngx_http_llmgw_replica_resolve(replica);

    return replica;
}


/*
 * Makes the protobuf fields with the replica's id that are added to each of its
 * tokens.
 */

static ngx_int_t
ngx_http_llmgw_replica_sign(ngx_http_llmgw_replica_t *replica)
{
    Llmgateway__InferResponse  response;

    llmgateway__infer_response__init(&response);

    response.replica_id.data = replica->node.str.data;
    response.replica_id.len = replica->node.str.len;

    replica->signature.len =
        llmgateway__infer_response__get_packed_size(&response);
    replica->signature.data = ngx_alloc(replica->signature.len,
                                        replica->pool->worker->log);

    if (replica->signature.data == NULL) {
        return NGX_ERROR;
    }

    llmgateway__infer_response__pack(&response, replica->signature.data);

    return NGX_OK;
}


ngx_uint_t
ngx_http_llmgw_replica_is_unused(ngx_http_llmgw_replica_t *replica)
{
    return !replica->listed && !replica->is_static
           && replica->index == -1 && replica->next_index == -1
           && replica->holders == 0
           && ngx_queue_empty(&replica->sessions)
           && ngx_queue_empty(&replica->attempts);
}


void
ngx_http_llmgw_replica_destroy(ngx_http_llmgw_replica_t *replica)
{
    if (replica->retry.timer_set) {
        ngx_del_timer(&replica->retry);
    }

    replica->pool->worker->events->replica_ends(replica);

    ngx_http_llmgw_ssl_forget(replica);
    ngx_rbtree_delete(&replica->pool->tree, &replica->node.node);
    ngx_free(replica->signature.data);
    ngx_free(replica);
}


/* The members segment has only numeric addresses. */

static void
ngx_http_llmgw_replica_resolve(ngx_http_llmgw_replica_t *replica)
{
    ngx_int_t    rc;
    ngx_addr_t   addr;
    ngx_pool_t  *pool;

    replica->usable_addr = 0;
    replica->address.data = (u_char *) replica->member.grpc;
    replica->address.len = ngx_strlen(replica->member.grpc);

    pool = ngx_create_pool(512, replica->pool->worker->log);
    if (pool == NULL) {
        return;
    }

    rc = ngx_parse_addr_port(pool, &addr, replica->address.data,
                             replica->address.len);

    if (rc == NGX_OK && ngx_inet_get_port(addr.sockaddr)) {
        ngx_memcpy(&replica->sockaddr, addr.sockaddr, addr.socklen);
        replica->socklen = addr.socklen;
        replica->usable_addr = 1;

    } else {
        ngx_log_error(NGX_LOG_WARN, replica->pool->worker->log, 0,
                      "llmgw: replica \"%V\" is not routed, \"%V\" is no "
                      "address", &replica->node.str, &replica->address);
    }

    ngx_destroy_pool(pool);
}


void
ngx_http_llmgw_replica_update(ngx_http_llmgw_replica_t *replica,
    const llmgw_member_t *member, const llmgw_member_t *like)
{
    ngx_uint_t  moved;

    moved = ngx_strcmp(replica->member.grpc, member->grpc) != 0;

    llmgw_reach_update(&replica->reach, member->liveness, ngx_current_msec);

    if (member->replica_start_ms != replica->member.replica_start_ms) {
        ngx_http_llmgw_replica_new_process(replica,
                                           member->replica_start_ms);
    }

    replica->member = *member;
    replica->resume_group = llmgw_ring_hash(like->resume_group,
                                            ngx_strlen(like->resume_group));
    replica->listed = 1;

    if (moved) {
        /* failures at the last address do not count against the new one */
        replica->pool->worker->events->replica_left(replica);
        ngx_http_llmgw_replica_connected(replica);
        ngx_http_llmgw_replica_resolve(replica);
    }

    ngx_http_llmgw_replica_set_peer(replica);
    replica->pool->worker->events->replica_changed(replica);
}


/* Its tombstone has expired, or its static line is inert now. */

void
ngx_http_llmgw_replica_unlist(ngx_http_llmgw_replica_t *replica)
{
    replica->listed = 0;
    replica->models = 0;

    ngx_http_llmgw_replica_set_peer(replica);
    replica->pool->worker->events->replica_left(replica);
}


ngx_uint_t
ngx_http_llmgw_replica_reads_openai(ngx_http_llmgw_replica_t *replica)
{
    return replica->member.models != 0;
}


ngx_uint_t
ngx_http_llmgw_replica_reports(ngx_http_llmgw_replica_t *replica,
    uint64_t model)
{
    return replica->models
           && (model == 0
               || llmgw_models_list_has(&replica->pool->upstream->models.known,
                                        replica->models, model));
}


/*
 * The state for operators, as the agent's own listing has it.  Sets *cause to
 * the reason why it is DEAD, or to NULL; cause may be NULL.
 */

llmgw_liveness_t
ngx_http_llmgw_replica_shown(const llmgw_member_t *member, const char **cause)
{
    const char        *why;
    llmgw_liveness_t   state;

    state = member->liveness;
    why = (state == LLMGW_LIVENESS_DEAD) ? "timeout" : NULL;

    if (member->service == LLMGW_SERVICE_DOWN) {
        state = LLMGW_LIVENESS_DEAD;
        why = "down";

    } else if (member->service == LLMGW_SERVICE_STOPPED) {
        state = LLMGW_LIVENESS_LEFT;
        why = NULL;
    }

    if (cause) {
        *cause = why;
    }

    return state;
}


/*
 * Stamps the slot as in use.  A worker that was stopped for long may find that
 * the slot has been given to another replica meanwhile.
 */

void
ngx_http_llmgw_replica_stamp(ngx_http_llmgw_replica_t *replica)
{
    ngx_http_llmgw_slot_t  *slot;

    slot = replica->slot;

    if (slot && slot->admission.generation == replica->place.generation) {
        slot->admission.stamp_ms = ngx_current_msec;
        return;
    }

    replica->slot = ngx_http_llmgw_zone_attach(replica->pool->zone,
                                               &replica->node.str,
                                               &replica->place);
    ngx_http_llmgw_replica_set_peer(replica);
}


/*
 * The replica is another process now: failures of the last one do not count
 * against it.
 */

static void
ngx_http_llmgw_replica_new_process(ngx_http_llmgw_replica_t *replica,
    uint64_t start_ms)
{
    ngx_http_llmgw_zone_t  *zone;

    ngx_http_llmgw_replica_connected(replica);

    if (replica->slot == NULL) {
        return;
    }

    zone = replica->pool->zone;

    ngx_http_llmgw_zone_lock(zone);
    llmgw_slots_renew(zone->self.shared, replica->place, start_ms);
    ngx_http_llmgw_zone_unlock(zone);
}


void
ngx_http_llmgw_replica_connect_failed(ngx_http_llmgw_replica_t *replica)
{
    ngx_msec_t  backoff;

    backoff = llmgw_reach_failed(&replica->reach, ngx_current_msec);

    if (replica->retry.timer_set) {
        ngx_del_timer(&replica->retry);
    }

    ngx_add_timer(&replica->retry, backoff);
    ngx_http_llmgw_replica_set_peer(replica);
}


static void
ngx_http_llmgw_replica_retry_handler(ngx_event_t *ev)
{
    ngx_http_llmgw_replica_set_peer(ev->data);
}


/* Permits connections again, and clears the counts. */

void
ngx_http_llmgw_replica_connected(ngx_http_llmgw_replica_t *replica)
{
    if (replica->reach.backoff_ms == 0) {
        return;
    }

    llmgw_reach_renewed(&replica->reach);

    if (replica->retry.timer_set) {
        ngx_del_timer(&replica->retry);
    }

    ngx_http_llmgw_replica_set_peer(replica);
}


void
ngx_http_llmgw_replica_is_full(ngx_http_llmgw_replica_t *replica)
{
    ngx_http_llmgw_zone_t      *zone;
    const llmgw_member_load_t  *load;

    if (replica->slot == NULL) {
        return;
    }

    zone = replica->pool->zone;
    load = ngx_http_llmgw_replica_load(replica);

    ngx_http_llmgw_zone_lock(zone);
    llmgw_admission_full(&zone->self, replica->place,
                         load ? load->active_requests : 0, ngx_current_msec);
    ngx_http_llmgw_zone_unlock(zone);
}
