
/*
 * Metrics, declared as data: name, kind, labels, help.  docs/metrics.md tells
 * operators the same, and `make lint` holds the two together.
 *
 * Every worker counts in a row of its own, without a lock or an atomic; a
 * scrape adds the rows up.  When a row's process ends or dies, what it counted
 * moves to the base, so that no sum ever falls.  What is exported for each
 * replica is counted in its slot, by all workers; when the slot is given up it
 * moves to the base as well, as replica "".
 *
 * Label values are bounded: codes, reasons, causes and outcomes are enums, and
 * replicas are those that have a slot.
 */

#ifndef _NGX_HTTP_LLMGW_METRICS_H_INCLUDED_
#define _NGX_HTTP_LLMGW_METRICS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "core/account.h"
#include "core/breaker.h"
#include "core/outcome.h"
#include "core/resume.h"


/* X(name, help): gauges, read where they lie */
#define NGX_HTTP_LLMGW_POOL_GAUGES(X)                                         \
    X(queue_length, "Requests waiting in the queue")                          \
    X(queue_size, "Requests that may wait in the queue")                      \
    X(saturation, "How full the fleet is, by saturation= of llmgw_queue")     \
    X(view_age_seconds, "Age of the agent's last heartbeat")                  \
    X(view_stale, "1: the agent is silent, nginx routes by its last view")    \
    X(view_isolated, "1: the agent is cut off from gossip")                   \
    X(view_members, "Members in the segment")                                 \
    X(streams, "Requests that run or wait")                                   \
    X(sessions, "Connections to replicas")

/* X(name, help): in the replica's slot, by all workers */
#define NGX_HTTP_LLMGW_REPLICA_COUNTERS(X)                                    \
    X(tokens, "Tokens sent to clients, each once")                            \
    X(attempts, "Attempts begun")                                             \
    X(attempt_failures, "Attempts that failed")

#define NGX_HTTP_LLMGW_REPLICA_GAUGES(X)                                      \
    X(in_flight, "Attempts in flight at the replica")                         \
    X(replica_state, "0 ALIVE, 1 SUSPECT, 2 DEAD, 3 LEFT")                    \
    X(replica_routable, "1: the replica is ALIVE, READY and not draining")    \
    X(replica_draining, "1: the replica is draining")                         \
    X(replica_max_capacity, "Concurrent streams that it takes, 0: no limit") \
    X(breaker_state, "0 closed, 1 open, 2 half open")

/* X(name, help): what a replica reports; one that does not has no series */
#define NGX_HTTP_LLMGW_REPORTED_GAUGES(X)                                     \
    X(engine_running, "Requests that the replica's engine runs")              \
    X(engine_waiting, "Requests that wait in the replica's engine")           \
    X(engine_kv_usage,                                                        \
      "Share of the KV cache of the replica's engine that is in use, 0 to 1") \
    X(engine_kv_free_blocks,                                                  \
      "Free blocks of the KV cache of the replica's engine")                  \
    X(engine_hit_ratio,                                                       \
      "Share of its prompts that the replica's engine found in its KV cache") \
    X(replica_queue_depth,                                                    \
      "Requests that wait in the replica's engine, as policies take it")      \
    X(replica_batch,                                                          \
      "Requests that the replica's engine runs, as policies take it")         \
    X(replica_kv_utilization,                                                 \
      "Share of the engine's KV cache in use, as policies take it, 0 to 1")   \
    X(replica_facts_age_seconds, "Age of what the replica reported")          \
    X(replica_group_state,                                                    \
      "Of its standby group: 1 init, 2 standby, 3 waking, 4 active")

/* X(name, label, number of its values, help) */
#define NGX_HTTP_LLMGW_COUNTERS(X)                                            \
    X(failovers, cause, NGX_HTTP_LLMGW_NCAUSES,                               \
      "Streams taken over after they had delivered tokens")                   \
    X(resumes, kind, LLMGW_RESUME_NKINDS,                                     \
      "Streams that went on at another replica, by what it was told")         \
    X(attempts_failed, cause, NGX_HTTP_LLMGW_NCAUSES,                         \
      "Attempts that failed")                                                 \
    X(hedges, outcome, NGX_HTTP_LLMGW_NHEDGES,                                \
      "Second attempts of hedged requests, by outcome")                       \
    X(breaker_transitions, to, NGX_HTTP_LLMGW_NTRANSITIONS,                   \
      "Changes of a replica's circuit")                                       \
    X(openai_tokens, kind, NGX_HTTP_LLMGW_NKINDS,                             \
      "Tokens of requests of OpenAI's API")                                   \
    X(prefix_blocks, result, NGX_HTTP_LLMGW_NRESULTS,                         \
      "Blocks of prompts, by whether their replica had got them before")      \
    X(body_refusals, what, NGX_HTTP_LLMGW_NBODIES,                            \
      "What llmgw_body_memory had no room for")                               \
    X(reads, by, NGX_HTTP_LLMGW_NREADS,                                       \
      "Reads of connections to replicas")                                     \
    X(trace_lines, result, NGX_HTTP_LLMGW_NTRACES,                            \
      "Lines of the decision log")

/* X(name, buckets, help); buckets as vLLM has them */
#define NGX_HTTP_LLMGW_HISTOGRAMS(X)                                          \
    X(first_token_seconds, first_token, "From request to first token")        \
    X(inter_token_seconds, inter_token, "Between two tokens of a stream")     \
    X(request_seconds, request, "From request to end")                        \
    X(queue_wait_seconds, queue_wait, "In the queue, of those served")        \
    X(stock_first_byte_seconds, request,                                      \
      "Of native passes: from request to the answer's first byte")            \
    X(stock_request_seconds, request, "Of native passes: from request to end")

/*
 * X(name, kind, what, help): of classes and tenants, in their groups
 * (core/admission/groups.h).  `what` is the writer of pages/export_group.c.
 */
#define NGX_HTTP_LLMGW_GROUP_COUNTERS(X)                                      \
    X(class_requests, CLASS, requests, "Requests of a class that have ended") \
    X(tenant_requests, TENANT, requests,                                      \
      "Requests of a tenant that have ended")                                 \
    X(class_goodput, CLASS, goodput,                                          \
      "Requests of a class that were served within its targets")

#define NGX_HTTP_LLMGW_GROUP_HISTOGRAMS(X)                                    \
    X(class_first_token_seconds, CLASS, first_token,                          \
      "From a class's request to its first token")                            \
    X(tenant_first_token_seconds, TENANT, first_token,                        \
      "From a tenant's request to its first token")

#define NGX_HTTP_LLMGW_GROUP_GAUGES(X)                                        \
    X(tenant_in_flight, TENANT, in_flight,                                    \
      "Requests of a tenant that run or wait")


/*
 * X(name, what, help): of groups with standbys.  `what` is the writer of
 * pages/export_standby.c.
 */
#define NGX_HTTP_LLMGW_STANDBY_COUNTERS(X)                                    \
    X(group_takeovers, takeovers,                                             \
      "Times that another engine of a group became active")

#define NGX_HTTP_LLMGW_STANDBY_GAUGES(X)                                      \
    X(group_takeover_seconds, seconds,                                        \
      "Of the last takeover: from the death to the active engine, and to its" \
      " first token")                                                         \
    X(group_standbys, standbys, "Engines that stand by or wake")              \
    X(group_conflict, conflict,                                               \
      "1: two lock services have made engines of a group active")

#define NGX_HTTP_LLMGW_NCODES        17
#define NGX_HTTP_LLMGW_NBUCKETS      24     /* at most, with +Inf */
#define NGX_HTTP_LLMGW_NFIRST_TOKEN  23     /* of first_token, with +Inf */


typedef enum {
    NGX_HTTP_LLMGW_HEDGE_WON = 0,           /* the second one served */
    NGX_HTTP_LLMGW_HEDGE_LOST,
    NGX_HTTP_LLMGW_NHEDGES
} ngx_http_llmgw_hedge_outcome_t;


typedef enum {
    NGX_HTTP_LLMGW_READ_EVENT = 0,
    NGX_HTTP_LLMGW_READ_INTERVAL,           /* see coalesce.c */
    NGX_HTTP_LLMGW_NREADS
} ngx_http_llmgw_read_t;


typedef enum {
    NGX_HTTP_LLMGW_TRACE_WRITTEN = 0,
    NGX_HTTP_LLMGW_TRACE_LOST,
    NGX_HTTP_LLMGW_NTRACES
} ngx_http_llmgw_trace_result_t;


typedef enum {
    NGX_HTTP_LLMGW_KIND_PROMPT = 0,
    NGX_HTTP_LLMGW_KIND_COMPLETION,
    NGX_HTTP_LLMGW_KIND_CACHED,             /* of the prompts' */
    NGX_HTTP_LLMGW_NKINDS
} ngx_http_llmgw_token_kind_t;


typedef enum {
    NGX_HTTP_LLMGW_RESULT_HIT = 0,
    NGX_HTTP_LLMGW_RESULT_MISS,
    NGX_HTTP_LLMGW_NRESULTS
} ngx_http_llmgw_result_t;


/* Of body_refusals: a share, or a body that was ended while it was read. */
#define NGX_HTTP_LLMGW_BODY_IDLE     LLMGW_NSHARES
#define NGX_HTTP_LLMGW_NBODIES       (LLMGW_NSHARES + 1)


#define NGX_HTTP_LLMGW_NCAUSES       (LLMGW_CAUSE_INTERNAL + 1)
#define NGX_HTTP_LLMGW_NTRANSITIONS  (LLMGW_BREAKER_RECLOSED + 1)


typedef struct {
    uint64_t                      counts[NGX_HTTP_LLMGW_NBUCKETS];
    uint64_t                      sum_ms;
} ngx_http_llmgw_histogram_t;


#define NGX_HTTP_LLMGW_COUNTER_FIELD(name, label, n, help)                    \
    uint64_t                      name[n];
#define NGX_HTTP_LLMGW_HISTOGRAM_FIELD(name, buckets, help)                   \
    ngx_http_llmgw_histogram_t    name;
#define NGX_HTTP_LLMGW_HISTOGRAM_INDEX(name, buckets, help)                   \
    NGX_HTTP_LLMGW_HISTOGRAM_##name,

typedef enum {
    NGX_HTTP_LLMGW_HISTOGRAMS(NGX_HTTP_LLMGW_HISTOGRAM_INDEX)
    NGX_HTTP_LLMGW_NHISTOGRAMS
} ngx_http_llmgw_histogram_index_t;

/* Nothing but uint64_t: rows are added up as arrays of them. */
typedef struct {
    uint64_t                      requests[NGX_HTTP_LLMGW_NCODES]
                                          [LLMGW_NREASONS];
    NGX_HTTP_LLMGW_COUNTERS(NGX_HTTP_LLMGW_COUNTER_FIELD)
    NGX_HTTP_LLMGW_HISTOGRAMS(NGX_HTTP_LLMGW_HISTOGRAM_FIELD)
    uint64_t                      saturation_unknown;
} ngx_http_llmgw_counters_t;


/* metrics.c: the values of a counter's label; NULL: that one is not exported */
#define NGX_HTTP_LLMGW_COUNTER_NAME(name, label, n, help)                     \
    const char *ngx_http_llmgw_metrics_name_##name(ngx_uint_t i);

NGX_HTTP_LLMGW_COUNTERS(NGX_HTTP_LLMGW_COUNTER_NAME)

const ngx_msec_t *ngx_http_llmgw_metrics_bounds(ngx_uint_t histogram);
const char *ngx_http_llmgw_metrics_reason_name(ngx_uint_t reason);


typedef struct ngx_http_llmgw_zone_s  ngx_http_llmgw_zone_t;
typedef struct ngx_http_llmgw_slot_s  ngx_http_llmgw_slot_t;


/* A request has ended, with a gRPC code and perhaps a reason of ours. */
void ngx_http_llmgw_metrics_request(ngx_http_llmgw_zone_t *zone,
    ngx_uint_t code, llmgw_outcome_t outcome);

/* Adds ms to one of the histograms. */
void ngx_http_llmgw_metrics_time(ngx_http_llmgw_zone_t *zone,
    ngx_http_llmgw_histogram_index_t histogram, ngx_msec_t ms);

/* How long a client waited for tokens. */
void ngx_http_llmgw_metrics_tokens(ngx_http_llmgw_zone_t *zone,
    ngx_uint_t is_first, ngx_msec_t ms);

/* What a request of OpenAI's API has used, once at its end. */
void ngx_http_llmgw_metrics_openai(ngx_http_llmgw_zone_t *zone,
    ngx_uint_t prompt, ngx_uint_t completion, ngx_uint_t cached);

void ngx_http_llmgw_metrics_attempt_failed(ngx_http_llmgw_zone_t *zone,
    llmgw_cause_t cause);
void ngx_http_llmgw_metrics_failover(ngx_http_llmgw_zone_t *zone,
    llmgw_cause_t cause);
void ngx_http_llmgw_metrics_resume(ngx_http_llmgw_zone_t *zone,
    llmgw_resume_by_t by);
void ngx_http_llmgw_metrics_hedge(ngx_http_llmgw_zone_t *zone,
    ngx_http_llmgw_hedge_outcome_t outcome);
void ngx_http_llmgw_metrics_read(ngx_http_llmgw_zone_t *zone,
    ngx_http_llmgw_read_t by);
void ngx_http_llmgw_metrics_trace(ngx_http_llmgw_zone_t *zone,
    ngx_http_llmgw_trace_result_t result, ngx_uint_t nlines);
void ngx_http_llmgw_metrics_breaker(ngx_http_llmgw_zone_t *zone,
    llmgw_breaker_change_t change);

/* A prompt went to a replica: so many of its blocks had before, or not. */
void ngx_http_llmgw_metrics_prefix(ngx_http_llmgw_zone_t *zone,
    ngx_uint_t hits, ngx_uint_t misses);

/* A request was not held, since no replica tells how full it is. */
void ngx_http_llmgw_metrics_saturation_unknown(ngx_http_llmgw_zone_t *zone);

void ngx_http_llmgw_metrics_body_refusal(ngx_http_llmgw_zone_t *zone,
    ngx_uint_t what);

/* Levels: a worker without a row has none, as nobody could take them back. */
void ngx_http_llmgw_metrics_streams(ngx_http_llmgw_zone_t *zone, int change);
void ngx_http_llmgw_metrics_sessions(ngx_http_llmgw_zone_t *zone, int change);
void ngx_http_llmgw_metrics_body_bytes(ngx_http_llmgw_zone_t *zone,
    llmgw_share_t share, ssize_t change);

/* Adds one row to another, and zeroes it if it is given up. */
void ngx_http_llmgw_metrics_add(ngx_http_llmgw_counters_t *to,
    ngx_http_llmgw_counters_t *from, ngx_uint_t zero);


#endif /* _NGX_HTTP_LLMGW_METRICS_H_INCLUDED_ */
