
#include "http/record.h"


/*
 * How many bytes of an id are logged: a client may send one as long as a body.
 */
#define NGX_HTTP_LLMGW_ID_SHOWN  128


ngx_uint_t
ngx_http_llmgw_record_first_token(ngx_http_llmgw_record_t *record)
{
    if (record->has_first_token) {
        return 0;
    }

    record->has_first_token = 1;
    record->first_token_ms = ngx_current_msec - record->start_ms;

    return 1;
}


/* The name is copied: the replica may be gone when the log is written. */

ngx_int_t
ngx_http_llmgw_record_attempt(ngx_http_llmgw_record_t *record,
    ngx_pool_t *pool, ngx_str_t *replica)
{
    if (record->attempts++ == 0) {
        record->queue_ms = ngx_current_msec - record->start_ms;
    }

    record->replica.data = ngx_pstrdup(pool, replica);
    record->replica.len = record->replica.data ? replica->len : 0;

    return record->replica.data ? NGX_OK : NGX_ERROR;
}


ngx_str_t
ngx_http_llmgw_record_own_id(ngx_http_request_t *r)
{
    ngx_str_t                    id;
    ngx_http_variable_value_t   *v;
    ngx_http_llmgw_main_conf_t  *lmcf;

    lmcf = ngx_http_get_module_main_conf(r, ngx_http_llmgw_module);
    v = ngx_http_get_indexed_variable(r, lmcf->request_id_index);

    ngx_str_null(&id);

    if (v && !v->not_found) {
        id.data = v->data;
        id.len = v->len;
    }

    return id;
}


/* The cut is made between two UTF-8 characters. */

ngx_str_t
ngx_http_llmgw_record_id(ngx_http_llmgw_record_t *record)
{
    ngx_str_t  id;

    id = record->request_id;

    if (id.len > NGX_HTTP_LLMGW_ID_SHOWN) {
        id.len = NGX_HTTP_LLMGW_ID_SHOWN;

        while (id.len && (id.data[id.len] & 0xc0) == 0x80) {
            id.len--;
        }
    }

    return id;
}
