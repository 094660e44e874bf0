
/*
 * What llmgw_metrics reports of replicas: one row of numbers for each, gathered
 * in one pass, so that a replica's memory is read once for all its series.  The
 * listed replicas come first, then slots whose replica is no longer listed.
 */

#ifndef _NGX_HTTP_LLMGW_EXPORT_H_INCLUDED_
#define _NGX_HTTP_LLMGW_EXPORT_H_INCLUDED_


#include "pages/snapshot.h"


#define NGX_HTTP_LLMGW_NSTATES  (LLMGW_LIVENESS_LEFT + 1)
#define NGX_HTTP_LLMGW_NROLES   (LLMGW_ROLE_SHARD + 1)


#define NGX_HTTP_LLMGW_FACT(name, help)  NGX_HTTP_LLMGW_FACT_##name,

/* The columns of a row: counters first, then gauges. */
typedef enum {
    NGX_HTTP_LLMGW_REPLICA_COUNTERS(NGX_HTTP_LLMGW_FACT)
    NGX_HTTP_LLMGW_REPLICA_GAUGES(NGX_HTTP_LLMGW_FACT)
    NGX_HTTP_LLMGW_NFACTS
} ngx_http_llmgw_fact_column_t;


#define NGX_HTTP_LLMGW_REPORTED(name, help)  NGX_HTTP_LLMGW_REPORTED_##name,

typedef enum {
    NGX_HTTP_LLMGW_REPORTED_GAUGES(NGX_HTTP_LLMGW_REPORTED)
    NGX_HTTP_LLMGW_NREPORTED
} ngx_http_llmgw_reported_t;


typedef struct {
    ngx_str_t                     id;
    uint64_t                      values[NGX_HTTP_LLMGW_NFACTS];

    /* of those that are listed */
    double                        reported[NGX_HTTP_LLMGW_NREPORTED];
                                                /* below 0: it is not */
    ngx_str_t                     model;        /* base model, escaped, or "" */
} ngx_http_llmgw_fact_t;


/* All rows of one pool. */
typedef struct {
    ngx_http_llmgw_snapshot_t    *snapshot;
    ngx_str_t                     name;         /* escaped, for a label */
    ngx_http_llmgw_fact_t        *rows;
    ngx_uint_t                    nlisted;
    ngx_uint_t                    nrows;
    uint64_t                      base[NGX_HTTP_LLMGW_NFACTS];
    ngx_uint_t                    members[NGX_HTTP_LLMGW_NROLES]
                                         [NGX_HTTP_LLMGW_NSTATES];
} ngx_http_llmgw_facts_t;


/* Behind what was written, 2 * name->len bytes at most, for a label. */
u_char *ngx_http_llmgw_facts_escape(u_char *p, const ngx_str_t *name);

/* An array with one entry for each snapshot; NULL: out of memory. */
ngx_http_llmgw_facts_t *ngx_http_llmgw_facts_gather(ngx_array_t *snapshots,
    ngx_pool_t *pool);


#endif /* _NGX_HTTP_LLMGW_EXPORT_H_INCLUDED_ */
