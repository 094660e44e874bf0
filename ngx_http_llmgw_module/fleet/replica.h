
/*
 * A replica as this worker knows it: a member of the segment, or a static
 * `server` line; its sessions and its attempts.
 */

#ifndef _NGX_HTTP_LLMGW_REPLICA_H_INCLUDED_
#define _NGX_HTTP_LLMGW_REPLICA_H_INCLUDED_


#include "core/policy/pick.h"
#include "core/serve/reach.h"

#include "fleet/pool.h"


struct ngx_http_llmgw_replica_s {
    ngx_str_node_t                node;         /* node.str is the id */
    ngx_http_llmgw_pool_t        *pool;
    ngx_http_llmgw_slot_t        *slot;         /* NULL: zone too small */
    llmgw_place_t                 place;        /* the same, and generation */
    ngx_str_t                     signature;    /* added to each of its
                                                   tokens */

    llmgw_member_t                member;
    uint64_t                      resume_group; /* hash of the group's name */
    llmgw_facts_t                 facts;        /* as the table has them */
    ngx_uint_t                    models;       /* number of its list in the
                                                   pool's models; 0: none */
    ngx_http_llmgw_standing_t     standing;     /* in its group */
    size_t                        view_index;   /* of a listed member */
    ngx_sockaddr_t                sockaddr;
    socklen_t                     socklen;
    ngx_str_t                     address;      /* text, in member.grpc */

    ngx_int_t                     index;        /* in table, or -1 */
    ngx_int_t                     next_index;   /* in next, or -1 */

    ngx_queue_t                   sessions;     /* attempt/'s own */
    ngx_queue_t                   attempts;     /* attempt/'s own */
    ngx_uint_t                    nsessions;    /* attempt/'s own */
    void                         *resumed;      /* a TLS session, for the next
                                                   session to resume; NULL:
                                                   none */
    ngx_uint_t                    round;        /* equals the pool's, if
                                                   inert */
    ngx_uint_t                    holders;      /* streams that exclude it, or
                                                   may use no other */

    llmgw_reach_t                 reach;
    ngx_event_t                   retry;        /* timer: the end of its
                                                   back-off */

    unsigned                      is_static:1;
    unsigned                      listed:1;     /* it is in the last view */
    unsigned                      usable_addr:1;
};


ngx_http_llmgw_replica_t *ngx_http_llmgw_replica_find(
    ngx_http_llmgw_pool_t *pool, const char *id);
ngx_http_llmgw_replica_t *ngx_http_llmgw_replica_create(
    ngx_http_llmgw_pool_t *pool, const llmgw_member_t *member);
ngx_uint_t ngx_http_llmgw_replica_is_unused(
    ngx_http_llmgw_replica_t *replica);
void ngx_http_llmgw_replica_destroy(ngx_http_llmgw_replica_t *replica);

/* like: the member whose resume group holds; nearly always member itself. */
void ngx_http_llmgw_replica_update(ngx_http_llmgw_replica_t *replica,
    const llmgw_member_t *member, const llmgw_member_t *like);
void ngx_http_llmgw_replica_unlist(ngx_http_llmgw_replica_t *replica);
void ngx_http_llmgw_replica_stamp(ngx_http_llmgw_replica_t *replica);
void ngx_http_llmgw_replica_set_peer(ngx_http_llmgw_replica_t *replica);
void ngx_http_llmgw_replica_set_load(ngx_http_llmgw_replica_t *replica);
ngx_uint_t ngx_http_llmgw_replica_is_routable(
    ngx_http_llmgw_replica_t *replica);

/* llmgw_reach_is_absent(). */
ngx_uint_t ngx_http_llmgw_replica_is_absent(
    ngx_http_llmgw_replica_t *replica);

/* The facts for core/serve/reach.h. */
void ngx_http_llmgw_replica_gossip(ngx_http_llmgw_replica_t *replica,
    llmgw_reach_facts_t *facts);

/*
 * 1: it reports its models, and so reads GenerateRequest's `openai`
 * (proto/llmgateway.proto).
 */
ngx_uint_t ngx_http_llmgw_replica_reads_openai(
    ngx_http_llmgw_replica_t *replica);

/*
 * 1: it reports a model of that name; 0 stands for the model that it uses if a
 * request names none.
 */
ngx_uint_t ngx_http_llmgw_replica_reports(ngx_http_llmgw_replica_t *replica,
    uint64_t model);

llmgw_liveness_t ngx_http_llmgw_replica_shown(const llmgw_member_t *member,
    const char **cause);

/*
 * Its last report of load, however old; NULL: there is none, or the replica is
 * static.
 */
const llmgw_member_load_t *ngx_http_llmgw_replica_load(
    ngx_http_llmgw_replica_t *replica);

void ngx_http_llmgw_replica_connect_failed(ngx_http_llmgw_replica_t *replica);
void ngx_http_llmgw_replica_connected(ngx_http_llmgw_replica_t *replica);

/*
 * To be called when the replica has refused an attempt as full: other requests
 * avoid it for a moment.
 */
void ngx_http_llmgw_replica_is_full(ngx_http_llmgw_replica_t *replica);


#endif /* _NGX_HTTP_LLMGW_REPLICA_H_INCLUDED_ */
