
/*
 * Reads a key file, in steps of less than a millisecond: when nginx starts, and
 * again in each worker when it has changed (set_watch.c).
 */

#ifndef _NGX_HTTP_LLMGW_KEY_SET_H_INCLUDED_
#define _NGX_HTTP_LLMGW_KEY_SET_H_INCLUDED_


#include "keys/keys.h"


typedef struct {
    ngx_http_llmgw_key_file_t     file;
    ngx_fd_t                      fd;           /* NGX_INVALID_FILE: all was
                                                   read */
    char                         *text;         /* until keys owns it */
    size_t                        len;
    llmgw_keys_t                 *keys;
    llmgw_keys_error_t            error;
} ngx_http_llmgw_key_load_t;


/* NGX_ERROR: load->error has the reason, and load_end() is not needed. */
ngx_int_t ngx_http_llmgw_key_load_begin(ngx_http_llmgw_key_load_t *load,
    const char *path);

/*
 * NGX_AGAIN: call again; NGX_OK: load->keys is whole, and belongs to the
 * caller; NGX_DECLINED: the file has changed meanwhile; NGX_ERROR: load->error
 * has the reason.
 */
ngx_int_t ngx_http_llmgw_key_load_step(ngx_http_llmgw_key_load_t *load);

/* Frees everything but keys that belong to the caller; idempotent. */
void ngx_http_llmgw_key_load_end(ngx_http_llmgw_key_load_t *load);


#endif /* _NGX_HTTP_LLMGW_KEY_SET_H_INCLUDED_ */
