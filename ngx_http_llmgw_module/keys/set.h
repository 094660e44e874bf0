
/*
 * A key file that is read, in steps of less than a millisecond: when nginx
 * starts, and again by each worker when it has changed (set_watch.c).
 */

#ifndef _NGX_HTTP_LLMGW_KEY_SET_H_INCLUDED_
#define _NGX_HTTP_LLMGW_KEY_SET_H_INCLUDED_


#include "keys/keys.h"


typedef struct {
    ngx_http_llmgw_key_file_t     file;
    ngx_fd_t                      fd;           /* NGX_INVALID_FILE: it was
                                                   read */
    char                         *text;         /* until keys has it */
    size_t                        len;
    llmgw_keys_t                 *keys;
    llmgw_keys_error_t            error;
} ngx_http_llmgw_key_load_t;


/* NGX_ERROR: load->error says why, and nothing is to be ended. */
ngx_int_t ngx_http_llmgw_key_load_begin(ngx_http_llmgw_key_load_t *load,
    const char *path);

/*
 * NGX_AGAIN: call again; NGX_OK: load->keys is whole, and the caller's; NGX_
 * DECLINED: the file has changed meanwhile; NGX_ERROR: load->error says why.
 */
ngx_int_t ngx_http_llmgw_key_load_step(ngx_http_llmgw_key_load_t *load);

/* Frees what there is, but keys that are the caller's; idempotent. */
void ngx_http_llmgw_key_load_end(ngx_http_llmgw_key_load_t *load);


#endif /* _NGX_HTTP_LLMGW_KEY_SET_H_INCLUDED_ */
