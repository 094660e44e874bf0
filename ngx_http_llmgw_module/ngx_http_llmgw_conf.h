
/*
 * What happens while nginx reads its configuration.
 */

#ifndef _NGX_HTTP_LLMGW_CONF_H_INCLUDED_
#define _NGX_HTTP_LLMGW_CONF_H_INCLUDED_


/* conf.c: the upstream{} directives */
char *ngx_http_llmgw_conf_members(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_llmgw_conf_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_llmgw_conf_hash(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
ngx_http_llmgw_srv_conf_t *ngx_http_llmgw_conf_enable(ngx_conf_t *cf,
    void *conf);
char *ngx_http_llmgw_conf_number(ngx_conf_t *cf, ngx_str_t *param,
    size_t skip, ngx_uint_t min, ngx_uint_t max, ngx_uint_t *field);
char *ngx_http_llmgw_conf_handler(ngx_conf_t *cf,
    ngx_http_handler_pt handler);
char *ngx_http_llmgw_conf_pass(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
ngx_http_upstream_srv_conf_t *ngx_http_llmgw_conf_refer(ngx_conf_t *cf,
    ngx_str_t *name);
ngx_int_t ngx_http_llmgw_conf_check(ngx_conf_t *cf,
    ngx_http_llmgw_main_conf_t *lmcf);

/* policy.c: llmgw_queue, llmgw_breaker, llmgw_hedge */
void ngx_http_llmgw_policy_defaults(ngx_http_llmgw_srv_conf_t *lscf);
char *ngx_http_llmgw_policy_queue(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_llmgw_policy_breaker(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_llmgw_policy_hedge(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* memory.c: request_pool_size */
void ngx_http_llmgw_memory_conf(ngx_conf_t *cf,
    ngx_http_llmgw_main_conf_t *lmcf);

/* status.c, export.c, dashboard.c, variables.c */
char *ngx_http_llmgw_status_conf(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_llmgw_export_conf(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_llmgw_dashboard_conf(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
ngx_int_t ngx_http_llmgw_variables_add(ngx_conf_t *cf);
ngx_int_t ngx_http_llmgw_variables_index(ngx_conf_t *cf,
    ngx_http_llmgw_main_conf_t *lmcf);

/* stock_key.c: llmgw_key */
char *ngx_http_llmgw_stock_conf_key(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


#endif /* _NGX_HTTP_LLMGW_CONF_H_INCLUDED_ */
