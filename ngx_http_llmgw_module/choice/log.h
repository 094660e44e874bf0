
/*
 * The decision log (llmgw_trace_decisions): each decision about a sample of the
 * requests, with all of its inputs; docs/decisions.md has the format, and
 * core/decision/write.h writes the lines.
 *
 *   claim.c  --- what was decided --->  log.c  --- a line --->  log_file.c
 *
 * A request is in the sample or is not, with all of its decisions.  Without the
 * directive, and for requests that are not in the sample, a decision costs one
 * branch.
 *
 * The file is opened as an access_log is: by the master, for appending, and
 * again on USR1.  Each write is of whole lines, so the lines of several workers
 * do not mix; each worker writes a head of its own, whenever it begins a file.
 * Nothing waits for the log: lines that cannot be written are lost and counted,
 * and a worker that lost lines starts again with its head.
 */

#ifndef _NGX_HTTP_LLMGW_LOG_H_INCLUDED_
#define _NGX_HTTP_LLMGW_LOG_H_INCLUDED_


#include "core/admission/admission.h"
#include "core/decision/write.h"
#include "core/outcome.h"

#include "choice/choice.h"


/*
 * The most candidates that a line has, which bounds its memory: if there are
 * more, it has the best.
 */
#define NGX_HTTP_LLMGW_LOG_TOP  4096


#define NGX_HTTP_LLMGW_LOG_ALL  0x80000000      /* a sample of all requests */


/* A peer as the pick read it, under the lock. */
typedef struct {
    uint32_t                      in_flight;
    uint32_t                      foreign;
    uint32_t                      weight;
    uint32_t                      retry_ms;     /* with is_open; 0: being
                                                   probed */
    unsigned                      state:2;      /* llmgw_peer_state_t */
    unsigned                      lacks:3;      /* llmgw_lacks_t, among the
                                                   peers in its state */
    unsigned                      untried:3;    /* as lacks, without the claim's
                                                   exclusions */
    unsigned                      is_open:1;    /* its circuit refuses */
} ngx_http_llmgw_log_seen_t;


struct ngx_http_llmgw_log_s {
    ngx_http_llmgw_srv_conf_t    *conf;
    ngx_open_file_t              *file;
    ngx_uint_t                    sample;       /* out of LOG_ALL */
    ngx_uint_t                    top;
    size_t                        buffer;       /* bytes; 0: none */
    ngx_msec_t                    flush;        /* 0: when the buffer is full */
    u_char                       *start;        /* the buffer; NULL: none */
    u_char                       *pos;
    u_char                       *end;

    /* of this worker */
    ngx_http_llmgw_zone_t        *zone;         /* counts lines */
    ngx_event_t                   event;        /* for flush */
    time_t                        failed;       /* when a write failed last */
    ngx_uint_t                    lost;         /* lines, since last logged */
    u_char                       *line;         /* the next write, with lines
                                                   that have to precede it */
    size_t                        line_bytes;
    unsigned                      begun:1;      /* the head is written */
    unsigned                      torn:1;       /* half a line is at the end */

    /* memory for a decision, of as many replicas */
    ngx_uint_t                    npeers;
    ngx_uint_t                    nseen;        /* 0: the policy ranks, or there
                                                   is no memory */
    llmgw_pick_key_t              key;          /* of the request; numbers
                                                   only */
    ngx_http_llmgw_log_seen_t    *seen;
    llmgw_candidate_t            *candidates;
    double                       *scores;
    double                       *cold;
    uint32_t                     *heap;
    uint32_t                     *shown;
};


/* A request's claim, as logged. */
typedef struct {
    ngx_str_t                     request;      /* its id, UTF-8 */
    ngx_str_t                     class;        /* as in metrics */
    ngx_str_t                     tenant;       /* as in metrics */
    uint64_t                      tenant_hash;  /* if it has no name */
    const char                   *model;        /* the pool's; "": none, or the
                                                   upstream has but one pool */
    ngx_uint_t                    attempts;     /* leases so far */
} ngx_http_llmgw_traced_t;


/* 1: the request is in the sample; 0 for a pool without a log. */
static ngx_inline ngx_uint_t
ngx_http_llmgw_log_takes(const ngx_http_llmgw_srv_conf_t *conf)
{
    return conf->log && (ngx_uint_t) ngx_random() < conf->log->sample;
}


/* The decision about a claim. */
typedef struct {
    ngx_http_llmgw_traced_t      *traced;
    const ngx_http_llmgw_choice_t  *choice;     /* NULL: the ring chose */
    const ngx_http_llmgw_fleet_t *fleet;
    const llmgw_ring_node_t      *nodes;        /* ids of the fleet's peers */
    const llmgw_admission_answer_t  *answer;
    ngx_uint_t                    nblocks;
    unsigned                      is_hedge:1;
} ngx_http_llmgw_decided_t;


/*
 * log.c: _prepare() before the lock is taken, _look() under it before the pick,
 * _decided() after it was released.
 */
void ngx_http_llmgw_log_prepare(ngx_http_llmgw_log_t *log,
    const llmgw_pick_pool_t *pool, const llmgw_pick_key_t *key);
void ngx_http_llmgw_log_look(ngx_http_llmgw_log_t *log,
    const llmgw_pick_pool_t *pool);
void ngx_http_llmgw_log_decided(ngx_http_llmgw_log_t *log,
    const ngx_http_llmgw_decided_t *decided);

/*
 * The admission of a request was decided; outcome: SERVED for admitted, or the
 * refusal's.
 */
void ngx_http_llmgw_log_entry(ngx_http_llmgw_log_t *log,
    const ngx_http_llmgw_traced_t *traced, int64_t tokens,
    llmgw_outcome_t outcome);

/*
 * The claim has ended.  If the queue has refused it, that is logged by a line
 * as of log_entry().
 */
void ngx_http_llmgw_log_ended(ngx_http_llmgw_log_t *log,
    const ngx_http_llmgw_traced_t *traced, llmgw_outcome_t outcome);

/* log_conf.c: llmgw_trace_decisions */
char *ngx_http_llmgw_log_conf(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* log_file.c: the log in this worker; log NULL: does nothing */
void ngx_http_llmgw_log_start(ngx_http_llmgw_log_t *log,
    ngx_http_llmgw_zone_t *zone);
void ngx_http_llmgw_log_stop(ngx_http_llmgw_log_t *log);
void ngx_http_llmgw_log_flush_file(ngx_open_file_t *file, ngx_log_t *errors);

/*
 * Begins a line in *out, after lines that have to precede it.
 * ngx_http_llmgw_log_end() returns 1: there is room now, write the line again;
 * 0: it is written, or lost.
 */
ngx_int_t ngx_http_llmgw_log_begin(ngx_http_llmgw_log_t *log,
    llmgw_line_t *out);
ngx_uint_t ngx_http_llmgw_log_end(ngx_http_llmgw_log_t *log,
    llmgw_line_t *out);


#endif /* _NGX_HTTP_LLMGW_LOG_H_INCLUDED_ */
