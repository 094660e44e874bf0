
/*
 * What the client has of a stream by now, as far as the next replica has to
 * know it: the tokens' ids, their text, facts of the prompt, the usage.
 *
 * It is kept only where it can be needed: an engine that sends nothing but
 * plain tokens goes on by their number.  What grows with the stream is counted
 * in llmgw_body_memory; without room it is given up, and with it the stream's
 * chance to be resumed.
 */

#ifndef _NGX_HTTP_LLMGW_DELIVERED_H_INCLUDED_
#define _NGX_HTTP_LLMGW_DELIVERED_H_INCLUDED_


#include "core/resume.h"
#include "proto/token_message.h"

#include "upstream/worker.h"


#define NGX_HTTP_LLMGW_CHOICES  128     /* whose finish can be noted */


/* Bytes that grow in blocks of doubled size. */
typedef struct {
    u_char                       *data;
    size_t                        len;
    size_t                        size;
} ngx_http_llmgw_kept_t;


typedef struct {
    ngx_http_llmgw_worker_t      *worker;       /* whose memory it takes */
    ngx_http_llmgw_kept_t         ids;          /* 4 bytes each */
    ngx_http_llmgw_kept_t         text;

    uint64_t                      prompt_hash;  /* 0: not known */
    uint32_t                      prompt_tokens;
    uint32_t                      completion_tokens;
    uint32_t                      cached_tokens;

    uint32_t                      nfinished;    /* choices */
    uint64_t                      finished[NGX_HTTP_LLMGW_CHOICES / 64];

    llmgw_resume_by_t             by;           /* it went on last */
    unsigned                      is_on:1;      /* llmgw_resume */
    unsigned                      keeps_ids:1;
    unsigned                      keeps_text:1;
    unsigned                      has_begun:1;  /* the client has something */
    unsigned                      has_more:1;   /* than plain tokens */
    unsigned                      has_prompt:1;
    unsigned                      has_usage:1;
    unsigned                      no_ids:1;     /* see llmgw_resume_facts_t */
    unsigned                      never:1;
    unsigned                      no_memory:1;
} ngx_http_llmgw_delivered_t;


/* mode is what llmgw_resume says.  NULL: no memory. */
ngx_http_llmgw_delivered_t *ngx_http_llmgw_delivered_create(ngx_pool_t *pool,
    ngx_http_llmgw_worker_t *worker, llmgw_resume_mode_t mode);

/*
 * Takes note of what goes to the client.  NGX_DECLINED: there was no memory,
 * and what was kept is given up; this is returned once.
 */
ngx_int_t ngx_http_llmgw_delivered_add(ngx_http_llmgw_delivered_t *delivered,
    const llmgw_token_t *token);

/*
 * How a stream of that many tokens goes on, from now until its end; with
 * BY_NOTHING *why says why not.  delivered may be NULL.
 */
llmgw_resume_by_t ngx_http_llmgw_delivered_resume(
    ngx_http_llmgw_delivered_t *delivered, ngx_uint_t tokens,
    ngx_uint_t choices, const char **why);

/* What the next replica is told; it refers to what is kept. */
void ngx_http_llmgw_delivered_tell(
    const ngx_http_llmgw_delivered_t *delivered,
    Llmgateway__Delivered *message);

/* Gives the memory back; safe to call again.  The other facts stay. */
void ngx_http_llmgw_delivered_release(ngx_http_llmgw_delivered_t *delivered);


#endif /* _NGX_HTTP_LLMGW_DELIVERED_H_INCLUDED_ */
