
/*
 * What the client has of a stream by now, as far as the next replica has to
 * know it: the tokens' ids, their text, facts of the prompt, the usage.
 *
 * It exists only for streams whose replica sends more than plain tokens: an
 * engine that goes on by position needs none of it.  All that grows with the
 * stream is counted in llmgw_body_memory.
 */

#ifndef _NGX_HTTP_LLMGW_DELIVERED_H_INCLUDED_
#define _NGX_HTTP_LLMGW_DELIVERED_H_INCLUDED_


#include "core/resume.h"
#include "proto/token_message.h"

#include "upstream/worker.h"


#define NGX_HTTP_LLMGW_CHOICES  128      /* whose finish is noted */


typedef struct {
    ngx_http_llmgw_worker_t      *worker;       /* whose memory it takes */

    uint32_t                     *ids;
    size_t                        nids;
    size_t                        ids_max;

    u_char                       *text;
    size_t                        text_len;
    size_t                        text_max;

    uint64_t                      prompt_hash;  /* 0: not known */
    uint32_t                      prompt_tokens;
    uint32_t                      completion_tokens;
    uint32_t                      cached_tokens;

    uint32_t                      nfinished;    /* choices */
    uint64_t                      finished[NGX_HTTP_LLMGW_CHOICES / 64];

    unsigned                      has_usage:1;
} ngx_http_llmgw_delivered_t;


#endif /* _NGX_HTTP_LLMGW_DELIVERED_H_INCLUDED_ */
