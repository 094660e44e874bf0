
/*
 * The locations that answer by themselves.
 */

#ifndef _NGX_HTTP_LLMGW_PAGES_H_INCLUDED_
#define _NGX_HTTP_LLMGW_PAGES_H_INCLUDED_


#include "conf/conf.h"


/* llmgw_status, llmgw_metrics, llmgw_dashboard */
char *ngx_http_llmgw_status_conf(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_llmgw_export_conf(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_llmgw_dashboard_conf(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


#endif /* _NGX_HTTP_LLMGW_PAGES_H_INCLUDED_ */
