
/*
 * Counters of workers, declared as data: name, labels, help.  Status and
 * metrics show it, and all else that they show is declared in pages/facts/.
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

#include "core/body_memory.h"
#include "core/breaker.h"
#include "core/outcome.h"
#include "core/resume.h"


/* X(name, label, number of its values, help) */
#define NGX_HTTP_LLMGW_COUNTERS(X)                                            \
    X(failovers, cause, NGX_HTTP_LLMGW_NCAUSES,                               \
      "Streams taken over after they had delivered tokens")                   \
    X(resumes, kind, LLMGW_RESUME_NKINDS,                                     \
      "Streams continued at another replica, by what it was sent")            \
    X(shard_failures, outcome, NGX_HTTP_LLMGW_NSHARDS,                        \
      "Shards that failed under attempts, by what became of the attempt")     \
    X(attempts_failed, cause, NGX_HTTP_LLMGW_NCAUSES,                         \
      "Attempts that failed")                                                 \
    X(hedges, outcome, NGX_HTTP_LLMGW_NHEDGES,                                \
      "Second attempts of hedged requests, by outcome")                       \
    X(breaker_transitions, to, NGX_HTTP_LLMGW_NTRANSITIONS,                   \
      "Changes of a replica's circuit")                                       \
    X(openai_tokens, kind, NGX_HTTP_LLMGW_NKINDS,                             \
      "Tokens of requests of OpenAI's API")                                   \
    X(prefix_blocks, result, NGX_HTTP_LLMGW_NRESULTS,                         \
      "Blocks of prompts, by whether their replica had seen them before")     \
    X(body_refusals, what, NGX_HTTP_LLMGW_NBODIES,                            \
      "What llmgw_body_memory had no room for")                               \
    X(reads, by, NGX_HTTP_LLMGW_NREADS,                                       \
      "Reads of connections to replicas")                                     \
    X(trace_lines, result, NGX_HTTP_LLMGW_NTRACES,                            \
      "Lines of the decision log")

/* X(name, buckets, help); buckets as vLLM has them */
#define NGX_HTTP_LLMGW_HISTOGRAMS(X)                                          \
    X(first_token_seconds, first_token, "Time from request to first token")   \
    X(inter_token_seconds, inter_token,                                       \
      "Time between two tokens of a stream")                                  \
    X(request_seconds, request, "Time from request to end")                   \
    X(queue_wait_seconds, queue_wait,                                         \
      "Time in the queue, of requests served")                                \
    X(stock_first_byte_seconds, request,                                      \
      "Native passes: time from request to the answer's first byte")          \
    X(stock_request_seconds, request, "Native passes: time from request to end")

#define NGX_HTTP_LLMGW_NCODES        17
#define NGX_HTTP_LLMGW_NBUCKETS      24     /* at most, including +Inf */
#define NGX_HTTP_LLMGW_NFIRST_TOKEN  23     /* of first_token, including +Inf */


typedef enum {
    NGX_HTTP_LLMGW_HEDGE_WON = 0,           /* the second one served */
    NGX_HTTP_LLMGW_HEDGE_LOST,
    NGX_HTTP_LLMGW_NHEDGES
} ngx_http_llmgw_hedge_outcome_t;


typedef enum {
    NGX_HTTP_LLMGW_SHARDS_SURVIVED = 0,     /* other shards continued */
    NGX_HTTP_LLMGW_SHARDS_LOST,
    NGX_HTTP_LLMGW_NSHARDS
} ngx_http_llmgw_shards_outcome_t;


typedef enum {
    NGX_HTTP_LLMGW_READ_EVENT = 0,
    NGX_HTTP_LLMGW_READ_INTERVAL,           /* at intervals: coalesce.c */
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
    NGX_HTTP_LLMGW_KIND_CACHED,             /* of the prompt's tokens */
    NGX_HTTP_LLMGW_NKINDS
} ngx_http_llmgw_token_kind_t;


typedef enum {
    NGX_HTTP_LLMGW_RESULT_HIT = 0,
    NGX_HTTP_LLMGW_RESULT_MISS,
    NGX_HTTP_LLMGW_NRESULTS
} ngx_http_llmgw_result_t;


/*
 * For body_refusals: a share, or this for a body that was ended while it was
 * read.
 */
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

/* Has only uint64_t: rows are added up as arrays of them. */
typedef struct {
    uint64_t                      requests[NGX_HTTP_LLMGW_NCODES]
                                          [LLMGW_NREASONS];
    uint64_t                      nameless[NGX_HTTP_LLMGW_NCODES];
                                                /* by requests whose model is
                                                   not known; without a
                                                   reason */
    NGX_HTTP_LLMGW_COUNTERS(NGX_HTTP_LLMGW_COUNTER_FIELD)
    NGX_HTTP_LLMGW_HISTOGRAMS(NGX_HTTP_LLMGW_HISTOGRAM_FIELD)
    uint64_t                      saturation_unknown;
    uint64_t                      held;
} ngx_http_llmgw_counters_t;


/* metrics.c: the values of a counter's label; NULL: that one is not exported */
#define NGX_HTTP_LLMGW_COUNTER_NAME(name, label, n, help)                     \
    const char *ngx_http_llmgw_metrics_name_##name(unsigned i);

NGX_HTTP_LLMGW_COUNTERS(NGX_HTTP_LLMGW_COUNTER_NAME)

const ngx_msec_t *ngx_http_llmgw_metrics_bounds(ngx_uint_t histogram);
const char *ngx_http_llmgw_metrics_reason_name(unsigned reason);


typedef struct ngx_http_llmgw_zone_s  ngx_http_llmgw_zone_t;
typedef struct ngx_http_llmgw_slot_s  ngx_http_llmgw_slot_t;


/* A request has ended, with a gRPC code and perhaps with one of our reasons. */
void ngx_http_llmgw_metrics_request(ngx_http_llmgw_zone_t *zone,
    ngx_uint_t code, llmgw_outcome_t outcome);

/*
 * The same for a request that was refused before its model was known, e.g.
 * because that does not exist.
 */
void ngx_http_llmgw_metrics_nameless(ngx_http_llmgw_zone_t *zone,
    ngx_uint_t code, llmgw_outcome_t outcome);

/* Adds these counts to `to`, as if they were its own requests. */
void ngx_http_llmgw_metrics_take_nameless(ngx_http_llmgw_counters_t *to,
    const ngx_http_llmgw_counters_t *from);

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
void ngx_http_llmgw_metrics_shards(ngx_http_llmgw_zone_t *zone,
    ngx_http_llmgw_shards_outcome_t outcome, ngx_uint_t n);
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

/*
 * A prompt went to a replica: how many of its blocks the replica had before,
 * and how many not.
 */
void ngx_http_llmgw_metrics_prefix(ngx_http_llmgw_zone_t *zone,
    ngx_uint_t hits, ngx_uint_t misses);

/* A request was not held, since no replica reports how full it is. */
void ngx_http_llmgw_metrics_saturation_unknown(ngx_http_llmgw_zone_t *zone);

void ngx_http_llmgw_metrics_body_refusal(ngx_http_llmgw_zone_t *zone,
    ngx_uint_t what);

/* A request starts or stops waiting because no replica is there. */
void ngx_http_llmgw_metrics_held(ngx_http_llmgw_zone_t *zone, int change);

/*
 * Levels: a worker without a row has none, as nothing could take them back if
 * it died.
 */
void ngx_http_llmgw_metrics_streams(ngx_http_llmgw_zone_t *zone, int change);
void ngx_http_llmgw_metrics_sessions(ngx_http_llmgw_zone_t *zone, int change);
void ngx_http_llmgw_metrics_body_bytes(ngx_http_llmgw_zone_t *zone,
    llmgw_share_t share, ssize_t change);

/* Adds `from` to `to`; zero: and sets `from` to 0, as it is given up. */
void ngx_http_llmgw_metrics_add(ngx_http_llmgw_counters_t *to,
    ngx_http_llmgw_counters_t *from, ngx_uint_t zero);


#endif /* _NGX_HTTP_LLMGW_METRICS_H_INCLUDED_ */
