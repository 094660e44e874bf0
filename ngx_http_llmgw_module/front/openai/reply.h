
/*
 * Answers as OpenAI's API has them: JSON, with the headers that each answer
 * has.
 */

#ifndef _NGX_HTTP_LLMGW_HTTP_OPENAI_H_INCLUDED_
#define _NGX_HTTP_LLMGW_HTTP_OPENAI_H_INCLUDED_


#include "conf/conf.h"
#include "front/openai/fault.h"


/*
 * The request's id: the client's x-request-id, or else $request_id.  Empty:
 * no memory.
 */
ngx_str_t ngx_http_llmgw_openai_id(ngx_http_request_t *r);

/*
 * Sets status and content type, which may have parameters, and adds the
 * headers that each answer has.
 */
ngx_int_t ngx_http_llmgw_openai_header(ngx_http_request_t *r,
    ngx_uint_t status, const ngx_str_t *type);

/*
 * Answer as a content handler does, whose result they return: with a JSON text
 * that lives as long as the request, or with an error.
 */
ngx_int_t ngx_http_llmgw_openai_answer(ngx_http_request_t *r,
    ngx_uint_t status, const ngx_str_t *json);
ngx_int_t ngx_http_llmgw_openai_refuse(ngx_http_request_t *r,
    const llmgw_openai_error_t *error);

/* Makes an error of what nginx itself refuses (ngx_http_llmgw_protocol_t). */
ngx_int_t ngx_http_llmgw_openai_refused(ngx_http_request_t *r,
    ngx_chain_t *body);


#endif /* _NGX_HTTP_LLMGW_HTTP_OPENAI_H_INCLUDED_ */
