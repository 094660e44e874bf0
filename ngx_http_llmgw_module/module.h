
/*
 * The module's own types, from the configuration down to one attempt.
 *
 *   srv conf   one upstream{} block of ours
 *   pool       its life in this worker: view, ring, replicas
 *   replica    one member or static address; owns its sessions
 *   session    one HTTP/2 connection to a replica, shared by many attempts
 *   stream     one client's request, from its body to its last byte
 *   attempt    one replica's try at a stream; a stream has one at a time
 *
 * A request's path through the files, in order:
 *
 *   front.c     handler, body, decode          (what gRPC clients speak)
 *   memory.c    where its bytes lie
 *   stream.c    begin, pick, outcome, finish   (no protocol in here)
 *   claim.c     pick and reserve, or line.c: wait
 *   table.c     view, ring
 *   attempt.c   Generate call, its outcome     (what gRPC replicas speak)
 *   session.c   socket, connect, read, write
 *   coalesce.c  or when it is read
 *   output.c    sign, flush, trailers
 *   cork.c      one write a client connection
 *   stream.c    release, exactly once
 *
 * nghttp2's callbacks run inside of session.c's read and write.  They append
 * tokens and note outcomes, and never finalize a request: whatever may end
 * one is put on the worker's list, which a posted event works off at the end
 * of the same turn of the event loop (ngx_http_llmgw_worker_run).
 */

#ifndef _NGX_HTTP_LLMGW_H_INCLUDED_
#define _NGX_HTTP_LLMGW_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_event_connect.h>
#include <ngx_http.h>

#include "core/breaker.h"
#include "core/coalesce.h"
#include "core/admission/hedge.h"
#include "core/admission/high_water.h"
#include "core/policy/pick.h"
#include "core/admission/queue.h"
#include "core/resume.h"
#include "core/ring/ring.h"
#include "proto/grpc/session.h"
#include "proto/members/members.h"
#include "zone/metrics.h"


#define NGX_HTTP_LLMGW_TICK_MS        10     /* view, while streams run */
#define NGX_HTTP_LLMGW_CHECK_MS       1000   /* file, stamps, dead rows */
#define NGX_HTTP_LLMGW_ABSENT_MS      200    /* file, while there is none */
#define NGX_HTTP_LLMGW_STALE_MS       3000   /* agent's heartbeat is 1 s */
#define NGX_HTTP_LLMGW_RING_SLICE     2048   /* points a turn, < 100 us */
#define NGX_HTTP_LLMGW_IO_BYTES       65536  /* one read or write */
#define NGX_HTTP_LLMGW_CHUNK_BYTES    256    /* of a stream's output: first */
#define NGX_HTTP_LLMGW_CHUNK_MAX      8192   /* and as it doubles */
#define NGX_HTTP_LLMGW_CHUNKS_KEPT    1024   /* of the first size, a worker */
#define NGX_HTTP_LLMGW_WAKES          16     /* of other workers, in a turn */
#define NGX_HTTP_LLMGW_CORKED         512    /* connections held in a turn */
#define NGX_HTTP_LLMGW_SHARERS        256    /* cells of the survey: cork.c */
#define NGX_HTTP_LLMGW_ID_BYTES       16     /* of a request id, random */
#define NGX_HTTP_LLMGW_IDS            16     /* drawn at a time */
#define NGX_HTTP_LLMGW_BACKOFF_MS     50     /* first, doubling */
#define NGX_HTTP_LLMGW_BACKOFF_MAX_MS 2000
#define NGX_HTTP_LLMGW_FULL_MS        100    /* a replica said: full */
#define NGX_HTTP_LLMGW_IDLE_MS        60000  /* a spare session */
#define NGX_HTTP_LLMGW_MAX_FAILOVERS  8
#define NGX_HTTP_LLMGW_MAX_RESPONSE   (1024 * 1024)   /* one token */


typedef struct ngx_http_llmgw_worker_s   ngx_http_llmgw_worker_t;
typedef struct ngx_http_llmgw_pool_s     ngx_http_llmgw_pool_t;
typedef struct ngx_http_llmgw_table_s    ngx_http_llmgw_table_t;
typedef struct ngx_http_llmgw_replica_s  ngx_http_llmgw_replica_t;
typedef struct ngx_http_llmgw_session_s  ngx_http_llmgw_session_t;
typedef struct ngx_http_llmgw_attempt_s  ngx_http_llmgw_attempt_t;
typedef struct ngx_http_llmgw_stream_s   ngx_http_llmgw_stream_t;
typedef struct ngx_http_llmgw_zone_s     ngx_http_llmgw_zone_t;
typedef struct ngx_http_llmgw_slot_s     ngx_http_llmgw_slot_t;
typedef struct ngx_http_llmgw_claim_s    ngx_http_llmgw_claim_t;
typedef struct ngx_http_llmgw_wakes_s    ngx_http_llmgw_wakes_t;
typedef struct ngx_http_llmgw_trace_s    ngx_http_llmgw_trace_t;


#include "conf/conf.h"


/* Life in a worker. */

typedef struct {
    llmgw_coalesce_load_t         load;
    ngx_queue_t                   sessions;     /* read at intervals */
    ngx_event_t                   timer;
} ngx_http_llmgw_coalesce_t;


struct ngx_http_llmgw_worker_s {
    ngx_event_t                   run;          /* posted */
    ngx_queue_t                   work;         /* streams that have some */
    ngx_event_t                   wake;         /* posted: wake.c */
    uint32_t                      waking[NGX_HTTP_LLMGW_WAKES];
    ngx_uint_t                    nwaking;      /* process slots to wake */
    ngx_queue_t                   pools;
    ngx_http_llmgw_main_conf_t   *conf;
    ngx_log_t                    *log;
    u_char                       *io;           /* NGX_HTTP_LLMGW_IO_BYTES */
    ngx_chain_t                  *chunks;       /* free ones: chunk.c */
    ngx_uint_t                    nchunks;
    ngx_connection_t            **corked;       /* NGX_HTTP_LLMGW_CORKED */
    ngx_uint_t                    ncorked;
    u_char                        sharers[NGX_HTTP_LLMGW_SHARERS];
    u_char                        ids[NGX_HTTP_LLMGW_IDS]
                                     [NGX_HTTP_LLMGW_ID_BYTES];
    ngx_uint_t                    nids;         /* of these not used yet */
    unsigned                      hands_out:1;  /* connections may be held */
    ngx_http_llmgw_coalesce_t     coalesce;
};


/* Replicas by index and the ring over them: changes as one. */
struct ngx_http_llmgw_table_s {
    ngx_http_llmgw_replica_t    **replicas;
    llmgw_pick_peer_t            *peers;        /* of the same indexes */
    uint32_t                     *weights;      /* that the ring was built of */
    ngx_uint_t                    n;
    llmgw_ring_t                 *ring;
};


struct ngx_http_llmgw_pool_s {
    ngx_queue_t                   queue;        /* of the worker */
    ngx_http_llmgw_worker_t      *worker;
    ngx_http_llmgw_srv_conf_t    *conf;
    ngx_http_llmgw_zone_t        *zone;

    llmgw_members_reader_t       *reader;       /* NULL: static only */
    llmgw_members_view_t          view;
    ngx_http_llmgw_replica_t    **members;      /* of the view, by id */
    ngx_uint_t                    nmembers;
    uint64_t                      generation;   /* that the table shows */
    ngx_msec_t                    looked_ms;    /* at the generation */

    ngx_rbtree_t                  tree;         /* replicas by id */
    ngx_rbtree_node_t             sentinel;
    ngx_http_llmgw_table_t       *table;
    ngx_http_llmgw_table_t       *next;         /* its ring is being built */

    ngx_event_t                   check;
    ngx_event_t                   tick;
    ngx_event_t                   build;
    ngx_msec_t                    loads_ms;     /* read last */

    ngx_queue_t                   waiting;      /* claims in the line */
    ngx_event_t                   line;         /* posted */
    ngx_event_t                   line_timer;

    ngx_uint_t                    streams;      /* running */
    ngx_uint_t                    backing_off;  /* replicas with retry_ms */
    ngx_uint_t                    round;        /* of looking at statics */

    time_t                        full_logged;

    unsigned                      stale:1;      /* said so in the log */
    unsigned                      absent:1;
    unsigned                      refused:1;
    unsigned                      was_isolated:1;   /* when last applied */
};


struct ngx_http_llmgw_replica_s {
    ngx_str_node_t                node;         /* node.str is the id */
    ngx_http_llmgw_pool_t        *pool;
    ngx_http_llmgw_slot_t        *slot;         /* NULL: zone too small */
    ngx_str_t                     signature;    /* behind each of its tokens */

    llmgw_member_t                member;
    size_t                        view_index;   /* of a listed member */
    ngx_sockaddr_t                sockaddr;
    socklen_t                     socklen;
    ngx_str_t                     address;      /* text, in member.grpc */

    ngx_int_t                     index;        /* in table, or -1 */
    ngx_int_t                     next_index;   /* in next, or -1 */

    ngx_queue_t                   sessions;
    ngx_queue_t                   attempts;
    ngx_uint_t                    nsessions;
    ngx_uint_t                    round;        /* the pool's, if inert */
    ngx_uint_t                    holders;      /* streams that exclude it */

    ngx_msec_t                    suspect_ms;   /* since when, if SUSPECT */
    ngx_msec_t                    retry_ms;     /* connect not before; 0: now */
    ngx_msec_t                    backoff;
    ngx_msec_t                    full_until_ms;

    unsigned                      is_static:1;
    unsigned                      listed:1;     /* in the last view */
    unsigned                      usable_addr:1;
};


struct ngx_http_llmgw_session_s {
    ngx_queue_t                   queue;        /* of the replica */
    ngx_http_llmgw_replica_t     *replica;
    ngx_peer_connection_t         peer;
    ngx_log_t                     log;
    llmgw_grpc_session_t         *grpc;
    ngx_queue_t                   waiting;      /* attempts with no call yet */
    ngx_event_t                   flush;        /* posted */
    ngx_event_t                   timer;        /* back-off, connect, idle */

    u_char                       *pending;      /* the socket took no more */
    size_t                        pending_pos;
    size_t                        pending_last;

    ngx_msec_t                    connect_timeout;
    llmgw_coalesce_source_t       source;
    ngx_queue_t                   coalesced;    /* of worker, at intervals */

    unsigned                      connecting:1;
    unsigned                      connected:1;
    unsigned                      ready:1;      /* the peer's SETTINGS came */
    unsigned                      retired:1;    /* no new streams */
    unsigned                      called:1;     /* a call was opened */
    unsigned                      proven:1;     /* and answered */
};


/* Who wants a replica for a key, and may wait for it: claim.c, line.c. */
struct ngx_http_llmgw_claim_s {
    ngx_queue_t                   queue;        /* of the pool's waiting */
    ngx_http_llmgw_pool_t        *pool;
    uint64_t                      hash;
    ngx_array_t                   excluded;     /* of claim.c's own */
    uint64_t                      ticket;       /* 0: not asked yet */
    uint32_t                      entry;        /* in the line, or NONE */
    void                        (*turn)(ngx_http_llmgw_claim_t *claim);

    ngx_msec_t                    joined_ms;    /* the line */

    unsigned                      granted:1;    /* left the line before */
    unsigned                      is_urgent:1;  /* tokens are out */
    unsigned                      to_line:1;    /* each has said: full */
    unsigned                      no_wait:1;    /* leased now, or never */
    unsigned                      is_last:1;    /* try: not where it failed */
};


/* A replica's slot that is held: replica is NULL where none is. */
typedef struct {
    ngx_http_llmgw_replica_t     *replica;
    ngx_http_llmgw_slot_t        *slot;         /* as it was then */
    llmgw_breaker_ticket_t        ticket;
    ngx_msec_t                    start_ms;
    unsigned                      is_judged:1;
} ngx_http_llmgw_lease_t;


typedef enum {
    NGX_HTTP_LLMGW_LEASED = 0,
    NGX_HTTP_LLMGW_WAITS,
    NGX_HTTP_LLMGW_FULL,
    NGX_HTTP_LLMGW_ASIDE,           /* full but for those it has excluded */
    NGX_HTTP_LLMGW_OPEN,
    NGX_HTTP_LLMGW_EXCLUDED,        /* each has been tried */
    NGX_HTTP_LLMGW_NONE
} ngx_http_llmgw_claim_rc_t;


/* First what each token needs, in one cache line; then the rest. */
struct ngx_http_llmgw_attempt_s {
    ngx_http_llmgw_stream_t      *stream;
    ngx_http_llmgw_replica_t     *replica;      /* NULL: not running */
    ngx_http_llmgw_session_t     *session;
    llmgw_grpc_stream_t          *call;
    size_t                        owed;         /* window to give back */
    ngx_uint_t                    tokens;
    ngx_msec_t                    activity_ms;  /* start, then each token */

    unsigned                      waits:1;      /* in wait_queue */
    unsigned                      ended:1;      /* outcome is there */
    unsigned                      draining:1;   /* llmgw-draining was seen */

    ngx_queue_t                   queue;        /* of the replica */
    ngx_queue_t                   wait_queue;   /* of a session's waiting */
    ngx_http_llmgw_lease_t        lease;

    llmgw_outcome_t               outcome;
    llmgw_cause_t                 cause;
    ngx_int_t                     status;       /* gRPC, where it ended so */
    ngx_str_t                     message;      /* for PASSED; stream's pool */
};


/* The same here; the serving attempt is mostly the first leg. */
struct ngx_http_llmgw_stream_s {
    ngx_queue_t                   work;         /* of the worker */
    ngx_http_request_t           *request;
    ngx_http_llmgw_pool_t        *pool;
    ngx_http_llmgw_attempt_t     *serving;      /* whose tokens are taken */

    /* the client's side */
    ngx_chain_t                  *out;          /* filled, not yet sent */
    ngx_chain_t                  *last;
    ngx_chain_t                  *busy;         /* nginx has it */

    ngx_uint_t                    tokens;
    ngx_msec_t                    token_ms;     /* the last one came */

    unsigned                      is_stock:1;   /* a stock_t's: stock.h */
    unsigned                      queued:1;     /* in work */
    unsigned                      running:1;    /* counted in the pool */
    unsigned                      has_deadline:1;
    unsigned                      has_first_token:1;
    unsigned                      may_restart:1; /* one of those excluded
                                                    failed it, counted */
    unsigned                      saw_full:1;   /* of those excluded */
    unsigned                      waits:1;      /* in the line */
    unsigned                      has_queue_end:1;
    unsigned                      wants_hedge:1; /* the request's flag */
    unsigned                      may_hedge:1;  /* at hedge_ms */
    unsigned                      has_second:1; /* leg, or had one */
    unsigned                      hedged:1;     /* the second leg served */
    unsigned                      retried:1;
    unsigned                      rearm:1;      /* the first token came */
    unsigned                      blocked:1;    /* the client reads slowly */
    unsigned                      finished:1;
    unsigned                      out_failed:1; /* no memory for a token */

    ngx_http_llmgw_attempt_t      legs[2];      /* the second: a hedge */

    /* what is asked, decoded; in the request's pool */
    ngx_http_llmgw_loc_conf_t    *conf;
    ngx_str_t                     prompt;
    ngx_str_t                     request_id;
    ngx_int_t                     max_tokens;
    ngx_http_llmgw_trace_t       *trace;        /* NULL: none */

    llmgw_resume_t                resume;
    ngx_http_llmgw_claim_t        claim;
    ngx_event_t                   timer;        /* one, not cancelable */
    ngx_msec_t                    start_ms;
    ngx_msec_t                    deadline_ms;  /* with has_deadline */
    ngx_msec_t                    queue_end_ms; /* with waits */
    ngx_msec_t                    hedge_ms;     /* with may_hedge */

    /* for the log */
    ngx_http_log_handler_pt       log_handler;  /* before ours */
    ngx_str_t                     replica;
    llmgw_route_t                 route;
    ngx_uint_t                    attempts;
    ngx_uint_t                    failovers;
    ngx_msec_t                    first_token_ms;
    ngx_msec_t                    queue_ms;     /* until the first attempt */
    llmgw_grpc_status_t           status;       /* with finished */
    const char                   *reason;       /* the same; NULL: none */
};


extern ngx_module_t  ngx_http_llmgw_module;


/* worker.c: what a worker has once */
ngx_int_t ngx_http_llmgw_worker_init(ngx_http_llmgw_main_conf_t *lmcf,
    ngx_cycle_t *cycle);
void ngx_http_llmgw_worker_done(void *data);
ngx_http_llmgw_pool_t *ngx_http_llmgw_worker_pool(ngx_http_request_t *r);
ngx_http_llmgw_pool_t *ngx_http_llmgw_worker_pool_of(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us);
void ngx_http_llmgw_worker_post(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_worker_forget(ngx_http_llmgw_stream_t *stream);

/* wake.c: between workers */
ngx_int_t ngx_http_llmgw_wake_init(ngx_cycle_t *cycle,
    ngx_http_llmgw_main_conf_t *lmcf);
ngx_int_t ngx_http_llmgw_wake_listen(ngx_http_llmgw_worker_t *worker,
    ngx_cycle_t *cycle);
void ngx_http_llmgw_wake_process(ngx_http_llmgw_worker_t *worker,
    uint32_t process);
void ngx_http_llmgw_wake_flush(ngx_http_llmgw_worker_t *worker);

/* claim.c: pick and reserve, or wait, as one step */
void ngx_http_llmgw_claim_init(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_pool_t *pool, uint64_t hash);
ngx_http_llmgw_claim_rc_t ngx_http_llmgw_claim(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_lease_t *lease, llmgw_route_t *route);
ngx_uint_t ngx_http_llmgw_claim_second(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_replica_t *first, ngx_uint_t budget,
    ngx_http_llmgw_lease_t *lease);
void ngx_http_llmgw_claim_leave(ngx_http_llmgw_claim_t *claim);
ngx_uint_t ngx_http_llmgw_claim_waits_open(ngx_http_llmgw_claim_t *claim);
void ngx_http_llmgw_claim_exclude(ngx_http_llmgw_claim_t *claim,
    ngx_pool_t *pool, ngx_http_llmgw_replica_t *replica, ngx_uint_t failed);
void ngx_http_llmgw_claim_clear_excluded(ngx_http_llmgw_claim_t *claim);

/* lease.c: a slot that is held */
void ngx_http_llmgw_lease_begin_locked(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_lease_t *lease, ngx_uint_t forced);
void ngx_http_llmgw_lease_proves(ngx_http_llmgw_lease_t *lease);
void ngx_http_llmgw_lease_fails(ngx_http_llmgw_lease_t *lease);
void ngx_http_llmgw_lease_end(ngx_http_llmgw_lease_t *lease,
    llmgw_verdict_t verdict);

/* line.c: whose turn it is */
void ngx_http_llmgw_line_init(ngx_http_llmgw_pool_t *pool);
void ngx_http_llmgw_line_done(ngx_http_llmgw_pool_t *pool);
void ngx_http_llmgw_line_joined(ngx_http_llmgw_claim_t *claim);
void ngx_http_llmgw_line_left(ngx_http_llmgw_claim_t *claim);
void ngx_http_llmgw_line_wake(ngx_http_llmgw_pool_t *pool);
void ngx_http_llmgw_line_run(ngx_http_llmgw_pool_t *pool);

/* pool.c: view and timers */
ngx_http_llmgw_pool_t *ngx_http_llmgw_pool_create(
    ngx_http_llmgw_srv_conf_t *conf, ngx_http_llmgw_worker_t *worker);
void ngx_http_llmgw_pool_destroy(ngx_http_llmgw_pool_t *pool);
void ngx_http_llmgw_pool_look(ngx_http_llmgw_pool_t *pool);
void ngx_http_llmgw_pool_loads(ngx_http_llmgw_pool_t *pool);
void ngx_http_llmgw_pool_stream_begins(ngx_http_llmgw_pool_t *pool);
void ngx_http_llmgw_pool_stream_ends(ngx_http_llmgw_pool_t *pool);
ngx_uint_t ngx_http_llmgw_pool_is_stale(ngx_http_llmgw_pool_t *pool);
uint64_t ngx_http_llmgw_monotonic_ms(void);

/* table.c: replicas, ring, pick */
ngx_int_t ngx_http_llmgw_table_update(ngx_http_llmgw_pool_t *pool);
ngx_int_t ngx_http_llmgw_table_build(ngx_http_llmgw_pool_t *pool,
    size_t budget);
void ngx_http_llmgw_table_destroy(ngx_http_llmgw_table_t *table);
void ngx_http_llmgw_table_finish(ngx_http_llmgw_pool_t *pool);
void ngx_http_llmgw_table_peers(ngx_http_llmgw_pool_t *pool,
    llmgw_pick_pool_t *peers);
ngx_uint_t ngx_http_llmgw_table_has_routable(ngx_http_llmgw_pool_t *pool);

/* replica.c: one of them */
ngx_http_llmgw_replica_t *ngx_http_llmgw_replica_find(
    ngx_http_llmgw_pool_t *pool, const char *id);
ngx_http_llmgw_replica_t *ngx_http_llmgw_replica_create(
    ngx_http_llmgw_pool_t *pool, const llmgw_member_t *member);
ngx_uint_t ngx_http_llmgw_replica_is_unused(
    ngx_http_llmgw_replica_t *replica);
void ngx_http_llmgw_replica_destroy(ngx_http_llmgw_replica_t *replica);
void ngx_http_llmgw_replica_update(ngx_http_llmgw_replica_t *replica,
    const llmgw_member_t *member);
void ngx_http_llmgw_replica_unlist(ngx_http_llmgw_replica_t *replica);
void ngx_http_llmgw_replica_stamp(ngx_http_llmgw_replica_t *replica);
void ngx_http_llmgw_replica_set_peer(ngx_http_llmgw_replica_t *replica);
void ngx_http_llmgw_replica_set_foreign(ngx_http_llmgw_replica_t *replica);
llmgw_peer_state_t ngx_http_llmgw_replica_state(
    ngx_http_llmgw_replica_t *replica);
ngx_uint_t ngx_http_llmgw_replica_is_routable(
    ngx_http_llmgw_replica_t *replica);
llmgw_liveness_t ngx_http_llmgw_replica_shown(const llmgw_member_t *member,
    const char **cause);
void ngx_http_llmgw_replica_connect_failed(ngx_http_llmgw_replica_t *replica);
void ngx_http_llmgw_replica_connected(ngx_http_llmgw_replica_t *replica);
void ngx_http_llmgw_replica_may_retry(ngx_http_llmgw_replica_t *replica);
void ngx_http_llmgw_replica_is_full(ngx_http_llmgw_replica_t *replica);

/* session.c, session_io.c: connections to replicas */
ngx_http_llmgw_session_t *ngx_http_llmgw_session_get(
    ngx_http_llmgw_replica_t *replica, ngx_msec_t connect_timeout);
void ngx_http_llmgw_session_wake(ngx_http_llmgw_session_t *session);
void ngx_http_llmgw_session_wake_waiting(ngx_http_llmgw_replica_t *replica);
void ngx_http_llmgw_session_ready(ngx_http_llmgw_session_t *session);
void ngx_http_llmgw_session_retire(ngx_http_llmgw_session_t *session);
void ngx_http_llmgw_session_proves(ngx_http_llmgw_session_t *session);
void ngx_http_llmgw_session_connected(ngx_http_llmgw_session_t *session);
void ngx_http_llmgw_session_read_handler(ngx_event_t *rev);
void ngx_http_llmgw_session_read(ngx_http_llmgw_session_t *session);
void ngx_http_llmgw_session_write_handler(ngx_event_t *wev);
void ngx_http_llmgw_session_flush_handler(ngx_event_t *ev);
void ngx_http_llmgw_session_fail(ngx_http_llmgw_session_t *session,
    const char *error);
void ngx_http_llmgw_session_destroy(ngx_http_llmgw_session_t *session);
void ngx_http_llmgw_session_retire_all(ngx_http_llmgw_replica_t *replica);

/* coalesce.c: or they are read at intervals */
void ngx_http_llmgw_coalesce_init(ngx_http_llmgw_worker_t *worker,
    ngx_cycle_t *cycle);
void ngx_http_llmgw_coalesce_done(ngx_http_llmgw_worker_t *worker);
void ngx_http_llmgw_coalesce_event(ngx_http_llmgw_session_t *session);
void ngx_http_llmgw_coalesce_written(ngx_http_llmgw_session_t *session);
void ngx_http_llmgw_coalesce_leave(ngx_http_llmgw_session_t *session);

/* attempt.c: one replica's try at a stream, over gRPC */
void ngx_http_llmgw_attempt_start(ngx_http_llmgw_attempt_t *attempt);
void ngx_http_llmgw_attempt_call(ngx_http_llmgw_attempt_t *attempt);
void ngx_http_llmgw_attempt_end(ngx_http_llmgw_attempt_t *attempt,
    llmgw_outcome_t outcome, llmgw_cause_t cause);
void ngx_http_llmgw_attempt_stop(ngx_http_llmgw_attempt_t *attempt);
void ngx_http_llmgw_attempt_consume(ngx_http_llmgw_attempt_t *attempt);
const llmgw_grpc_callbacks_t *ngx_http_llmgw_attempt_callbacks(void);

/* stream.c: one client's request */
void ngx_http_llmgw_stream_begin(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_stream_token(ngx_http_llmgw_attempt_t *attempt,
    const u_char *message, size_t len);
void ngx_http_llmgw_stream_run(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_stream_unblocked(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_stream_finish(ngx_http_llmgw_stream_t *stream,
    llmgw_grpc_status_t status, const char *reason, ngx_str_t *message);
void ngx_http_llmgw_stream_abort(ngx_http_llmgw_stream_t *stream);
ngx_uint_t ngx_http_llmgw_stream_hedge(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_stream_cleanup(void *data);

/* timer.c: whatever it waits for */
void ngx_http_llmgw_timer_init(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_timer_done(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_timer_arm(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_timer_attempt_failed(ngx_http_llmgw_attempt_t *leg);
void ngx_http_llmgw_stream_may_hedge(ngx_http_llmgw_stream_t *stream);

/* metrics.c: counting; picture.h, export.h and status.h: telling */
void ngx_http_llmgw_metrics_request(ngx_http_llmgw_pool_t *pool,
    llmgw_grpc_status_t status, const char *reason);
void ngx_http_llmgw_metrics_end(ngx_http_llmgw_stream_t *stream,
    llmgw_grpc_status_t status, const char *reason);
void ngx_http_llmgw_metrics_token(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_replica_t *replica);
void ngx_http_llmgw_metrics_stock_first_byte(
    ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_metrics_stock_end(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_metrics_queued(ngx_http_llmgw_pool_t *pool,
    ngx_msec_t ms);
void ngx_http_llmgw_metrics_attempt(ngx_http_llmgw_attempt_t *attempt);
void ngx_http_llmgw_metrics_again(ngx_http_llmgw_stream_t *stream,
    llmgw_cause_t cause);
void ngx_http_llmgw_metrics_hedge(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_hedge_outcome_t outcome);
void ngx_http_llmgw_metrics_streams(ngx_http_llmgw_pool_t *pool, int change);
void ngx_http_llmgw_metrics_sessions(ngx_http_llmgw_pool_t *pool, int change);
void ngx_http_llmgw_metrics_read(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_read_t by);
void ngx_http_llmgw_metrics_breaker(ngx_http_llmgw_pool_t *pool,
    llmgw_breaker_change_t change);
void ngx_http_llmgw_metrics_add(ngx_http_llmgw_counters_t *to,
    ngx_http_llmgw_counters_t *from, ngx_uint_t zero);


#include "front/grpc.h"


#endif /* _NGX_HTTP_LLMGW_H_INCLUDED_ */
