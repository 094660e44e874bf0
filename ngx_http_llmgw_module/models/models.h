
/*
 * The models of an upstream's members, as one worker has read them: the lists
 * of names in the segment (proto/members/members.h), each once, and what
 * follows from them (core/models.h).
 */

#ifndef _NGX_HTTP_LLMGW_MODELS_H_INCLUDED_
#define _NGX_HTTP_LLMGW_MODELS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "core/models.h"
#include "proto/members/members.h"


typedef struct {
    llmgw_models_t                known;
    uint64_t                      wanted;       /* hash of the base model whose
                                                   replicas are taken; 0: any */
    ngx_log_t                    *log;
    ngx_str_t                    *upstream;     /* the upstream's name, for the
                                                   log */
    const char                  **names;        /* in all lists, as last asked
                                                   for; or NULL */
    size_t                        nnames;
    unsigned                      incomplete:1; /* some list could not be
                                                   read */
} ngx_http_llmgw_models_t;


/* wanted: the base model's name; empty: any. */
void ngx_http_llmgw_models_init(ngx_http_llmgw_models_t *models,
    ngx_str_t *upstream, ngx_str_t *wanted, ngx_log_t *log);
void ngx_http_llmgw_models_done(ngx_http_llmgw_models_t *models);

/*
 * A new view: reads the lists that are not known yet, and counts every list's
 * members from 0.
 */
void ngx_http_llmgw_models_begin(ngx_http_llmgw_models_t *models,
    llmgw_members_reader_t *reader, const llmgw_members_view_t *view);

/* The number of a member's list; 0: it has none. */
ngx_uint_t ngx_http_llmgw_models_of(ngx_http_llmgw_models_t *models,
    const llmgw_member_t *member);

/* 1: a replica with this list has the model that is wanted. */
ngx_uint_t ngx_http_llmgw_models_takes(ngx_http_llmgw_models_t *models,
    const llmgw_member_t *member);

/*
 * Notes that a member of the view has this list.  stands_by: requests wait for
 * it if no replica is ready.
 */
void ngx_http_llmgw_models_count(ngx_http_llmgw_models_t *models,
    ngx_uint_t number, const llmgw_member_t *member, ngx_uint_t isolated,
    ngx_uint_t stands_by);

/*
 * To be called when all members are counted and the upstream has one pool:
 * chooses its base model, and warns of others.  1: lists that it marks have
 * changed.
 */
ngx_uint_t ngx_http_llmgw_models_settle(ngx_http_llmgw_models_t *models,
    uint64_t *base);

/* To be called when all pools have taken their members: frees unused lists. */
void ngx_http_llmgw_models_end(ngx_http_llmgw_models_t *models);

/* 1: the base model of replicas with this list is not routed. */
ngx_uint_t ngx_http_llmgw_models_is_other(ngx_http_llmgw_models_t *models,
    ngx_uint_t number);

/*
 * Makes models->names: the names that living members serve, ascending, each
 * once.  They are kept until the next view.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_llmgw_models_name(ngx_http_llmgw_models_t *models);


#endif /* _NGX_HTTP_LLMGW_MODELS_H_INCLUDED_ */
