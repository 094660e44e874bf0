
/*
 * The locations that answer by themselves.
 */

#ifndef _NGX_HTTP_LLMGW_PAGES_H_INCLUDED_
#define _NGX_HTTP_LLMGW_PAGES_H_INCLUDED_


#include "conf/param.h"


/* A directive that makes its location a page. */
typedef struct {
    ngx_http_handler_pt           handler;  /* for a GET or HEAD that may see
                                               the page; its body was
                                               discarded */
    const ngx_http_llmgw_param_t *params;   /* for ngx_http_llmgw_page_conf_t */

    /* Checks the parameters.  NULL: nothing to check. */
    ngx_int_t                   (*init)(ngx_conf_t *cf,
                                    ngx_http_llmgw_page_conf_t *conf);
} ngx_http_llmgw_page_kind_t;


struct ngx_http_llmgw_page_conf_s {
    const ngx_http_llmgw_page_kind_t *kind;
    ngx_str_t                     directive;
    ngx_uint_t                    access;   /* ngx_http_llmgw_access_t */
    ngx_uint_t                    is_logged;    /* its first 403 was logged */
    ngx_str_t                     url;      /* of llmgw_dashboard: the status */
    ngx_str_t                     etag;     /* of llmgw_dashboard */
    ngx_http_upstream_srv_conf_t *upstream; /* of llmgw_ready; NULL: any */
};


/* The handler of each directive; cmd->post is the kind. */
char *ngx_http_llmgw_page_conf(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* The content handler of the location. */
ngx_int_t ngx_http_llmgw_page_location(ngx_http_request_t *r);

ngx_http_llmgw_page_conf_t *ngx_http_llmgw_page_conf_of(
    ngx_http_request_t *r);

extern const ngx_http_llmgw_page_kind_t  ngx_http_llmgw_status_kind;
extern const ngx_http_llmgw_page_kind_t  ngx_http_llmgw_export_kind;
extern const ngx_http_llmgw_page_kind_t  ngx_http_llmgw_dashboard_kind;
extern const ngx_http_llmgw_page_kind_t  ngx_http_llmgw_ready_kind;

/* For pages whose only parameter is access=. */
extern const ngx_http_llmgw_param_t  ngx_http_llmgw_page_params[];


#endif /* _NGX_HTTP_LLMGW_PAGES_H_INCLUDED_ */
