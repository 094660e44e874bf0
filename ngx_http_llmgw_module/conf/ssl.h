
/*
 * TLS to the replicas of an upstream{} block: llmgw_ssl and the directives
 * whose names begin with it.
 */

#ifndef _NGX_HTTP_LLMGW_CONF_SSL_H_INCLUDED_
#define _NGX_HTTP_LLMGW_CONF_SSL_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


typedef struct ngx_http_llmgw_ssl_s  ngx_http_llmgw_ssl_t;

typedef struct {
    ngx_flag_t                    enable;
    ngx_flag_t                    verify;
    ngx_flag_t                    session_reuse;
    ngx_str_t                     certificate;
    ngx_str_t                     certificate_key;
    ngx_str_t                     trusted_certificate;
    ngx_str_t                     name;         /* "member", or a server name */
    u_char                       *file;         /* where llmgw_ssl stands */
    ngx_uint_t                    line;
    ngx_http_llmgw_ssl_t         *made;         /* of these files; NULL: TLS is
                                                   off */
} ngx_http_llmgw_ssl_conf_t;


void ngx_http_llmgw_ssl_defaults(ngx_http_llmgw_ssl_conf_t *ssl);

/* llmgw_ssl on | off */
char *ngx_http_llmgw_ssl_conf_flag(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/*
 * At the end of http{}: values that are not set get their defaults, and file
 * names become full ones.  NGX_ERROR: the reason was logged.
 */
ngx_int_t ngx_http_llmgw_ssl_check(ngx_conf_t *cf,
    ngx_http_llmgw_ssl_conf_t *ssl, ngx_str_t *upstream);


#endif /* _NGX_HTTP_LLMGW_CONF_SSL_H_INCLUDED_ */
