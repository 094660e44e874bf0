
/* llmgw_ssl: which of its directives need each other. */

#include "conf/conf.h"


void
ngx_http_llmgw_ssl_defaults(ngx_http_llmgw_ssl_conf_t *ssl)
{
    ssl->enable = NGX_CONF_UNSET;
    ssl->verify = NGX_CONF_UNSET;
    ssl->session_reuse = NGX_CONF_UNSET;
}


char *
ngx_http_llmgw_ssl_conf_flag(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                       *rv;
    ngx_http_llmgw_srv_conf_t  *lscf = conf;

    rv = ngx_conf_set_flag_slot(cf, cmd, conf);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    lscf->ssl.file = cf->conf_file->file.name.data;
    lscf->ssl.line = cf->conf_file->line;

#if !(NGX_HTTP_SSL)
    if (lscf->ssl.enable) {
        return "needs an nginx that was built with --with-http_ssl_module";
    }
#endif

    return NGX_CONF_OK;
}


/* The first error, with the directive at fault; NULL: none. */

static const char *
ngx_http_llmgw_ssl_fault(ngx_http_llmgw_ssl_conf_t *ssl)
{
    ngx_uint_t  i;

    if (ssl->certificate.len == 0 && ssl->certificate_key.len) {
        return "\"llmgw_ssl_certificate_key\" needs "
               "\"llmgw_ssl_certificate\"";
    }

    if (ssl->certificate.len && ssl->certificate_key.len == 0) {
        return "\"llmgw_ssl_certificate\" needs "
               "\"llmgw_ssl_certificate_key\"";
    }

    if (ssl->verify && ssl->trusted_certificate.len == 0) {
        return "\"llmgw_ssl on\" needs \"llmgw_ssl_trusted_certificate\", the "
               "CA of the replicas, or \"llmgw_ssl_verify off\"";
    }

    for (i = 0; i < ssl->name.len; i++) {
        if (ssl->name.data[i] == '*' || ssl->name.data[i] == ',') {
            return "\"llmgw_ssl_name\" is \"member\" or one name, without "
                   "wildcards";
        }
    }

    return NULL;
}


ngx_int_t
ngx_http_llmgw_ssl_check(ngx_conf_t *cf, ngx_http_llmgw_ssl_conf_t *ssl,
    ngx_str_t *upstream)
{
    size_t       i;
    ngx_str_t   *files[] = {
        &ssl->certificate, &ssl->certificate_key, &ssl->trusted_certificate
    };
    const char  *fault;

    ngx_conf_init_value(ssl->enable, 0);
    ngx_conf_init_value(ssl->verify, 1);
    ngx_conf_init_value(ssl->session_reuse, 1);

    if (ssl->name.data == NULL) {
        ngx_str_set(&ssl->name, "member");
    }

    if (!ssl->enable) {
        return NGX_OK;
    }

    fault = ngx_http_llmgw_ssl_fault(ssl);

    if (fault) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "%s, in upstream \"%V\" in "
                      "%s:%ui", fault, upstream, ssl->file, ssl->line);
        return NGX_ERROR;
    }

    for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (files[i]->len
            && ngx_conf_full_name(cf->cycle, files[i], 1) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}
