
/*
 * A snapshot of a pool or of a zone of keys, taken at once for a page that is
 * written in slices: what all workers have counted, and which members are
 * listed.  The next slice may have another view, so values that may disappear
 * are copied.
 */

#ifndef _NGX_HTTP_LLMGW_SNAPSHOT_H_INCLUDED_
#define _NGX_HTTP_LLMGW_SNAPSHOT_H_INCLUDED_


#include "fleet/replica.h"
#include "fleet/table.h"
#include "keys/keys.h"
#include "pages/facts/fact.h"
#include "proto/members/shards.h"


/*
 * A slot whose replica is not listed; the last element is the sum of all freed
 * slots.
 */
typedef struct {
    ngx_str_t                     id;
    uint64_t                      tokens;
    uint64_t                      attempts;
    uint64_t                      failures;
    uint64_t                      denials;
    u_char                        text[LLMGW_SLOT_ID_BYTES];
} ngx_http_llmgw_gone_t;


/* Counts of all slots, and of freed ones. */
typedef struct {
    uint64_t                      used;
    uint64_t                      in_flight;
    uint64_t                      tokens;
    uint64_t                      attempts;
    uint64_t                      failures;
    uint64_t                      denials;
    double                        tokens_rate;
    double                        attempts_rate;
    uint64_t                      first_token[NGX_HTTP_LLMGW_NFIRST_TOKEN];
} ngx_http_llmgw_slots_t;


/* A gateway or a shard. */
typedef struct {
    llmgw_member_t                member;
    llmgw_member_load_t           load;
    const llmgw_shard_model_t    *model;        /* NULL: none, or unknown */
} ngx_http_llmgw_other_t;


/* A group with standbys. */
typedef struct {
    llmgw_standby_group_t         group;
    char                          name[LLMGW_GROUP_BYTES];
    char                          active[LLMGW_MEMBERS_NAME_BYTES];
                                                /*
                                                 * the active one's id; "": none
                                                 * lives
                                                 */
    llmgw_takeover_t              takeover;     /* zeroed: there was none */
    uint64_t                      phases_ms[2]; /* of the takeover */
} ngx_http_llmgw_standby_t;


/* Facts of a zone of keys. */
typedef struct {
    ngx_http_llmgw_keys_t        *keys;
    llmgw_accounts_words_t        words;
    uint64_t                      failures[NGX_HTTP_LLMGW_KEY_NFAILURES];
    llmgw_account_look_t         *accounts;     /* the first: all others */
    ngx_uint_t                    naccounts;
} ngx_http_llmgw_key_facts_t;


struct ngx_http_llmgw_snapshot_s {
    ngx_http_llmgw_source_index_t source;
    ngx_pool_t                   *memory;       /* of the request */
    ngx_http_llmgw_key_facts_t   *keys;         /* of KEYS; only this */
    ngx_http_llmgw_pool_t        *pool;         /* of POOLS, as all below */
    ngx_str_t                     model;        /* its base model, if the
                                                   upstream has several; empty
                                                   with is_rest */
    unsigned                      has_model:1;  /* the label `model` is shown */
    unsigned                      is_first:1;   /* first of its upstream: has
                                                   what its models share */
    unsigned                      is_rest:1;    /* what was counted for models
                                                   that are no longer bound */
    uint64_t                      now_ms;       /* CLOCK_MONOTONIC */
    ngx_http_llmgw_counters_t     counters;     /* of all workers */
    ngx_http_llmgw_levels_t       levels;       /* of all workers */
    ngx_http_llmgw_slots_t        slots;
    uint64_t                      members[LLMGW_ROLE_SHARD + 1]
                                         [LLMGW_LIVENESS_LEFT + 1];

    ngx_http_llmgw_replica_t    **replicas;     /* listed; held */
    u_char                       *counted;      /* 1: no other has its slot */
    ngx_uint_t                    n;
    ngx_http_llmgw_gone_t        *gone;
    ngx_uint_t                    ngone;
    ngx_http_llmgw_other_t       *others;
    ngx_uint_t                    nothers;
    ngx_http_llmgw_standby_t     *standbys;
    ngx_uint_t                    nstandbys;
};


/*
 * An array with one snapshot for each pool that has a model, one with is_rest
 * if there are several, and then one for each zone of keys, in the request's
 * pool; NULL: out of memory.
 */
ngx_array_t *ngx_http_llmgw_snapshot_take(ngx_http_request_t *r);

/* Releases the replicas; snapshots may be NULL. */
void ngx_http_llmgw_snapshot_release(ngx_array_t *snapshots);


/* keys.c: NULL: out of memory. */
ngx_http_llmgw_key_facts_t *ngx_http_llmgw_snapshot_keys(
    ngx_http_llmgw_keys_t *keys, ngx_pool_t *memory);


/*
 * For the files of scopes: puts a lock service's id, in the form that its tools
 * use.
 */
void ngx_http_llmgw_snapshot_lock(ngx_http_llmgw_writer_t *w, uint64_t lock);

/* Puts quantiles of the weights of times to the first token. */
void ngx_http_llmgw_snapshot_quantiles(ngx_http_llmgw_writer_t *w,
    const uint64_t *weights);


#endif /* _NGX_HTTP_LLMGW_SNAPSHOT_H_INCLUDED_ */
