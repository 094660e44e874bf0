
/*
 * The usage log: llmgw_usage_log, and how a record is written.
 *
 * nginx opens the file with its other logs, so USR1 opens it again, and its
 * descriptor is asked for each time.  This file creates it beforehand, because
 * nginx would make it readable for everybody.
 *
 * A record is one write(2) at the end of the file.  If that writes only a part
 * of it, a newline ends the part, and the whole record follows.  A record that
 * cannot be written waits in its slot, which the sweep looks for each second.
 */

#include "conf/param.h"
#include "keys/keys.h"
#include "keys/usage.h"


static ngx_int_t ngx_http_llmgw_usage_conf_gateway(ngx_conf_t *cf,
    ngx_str_t *value, void *field);
static ngx_int_t ngx_http_llmgw_usage_make(ngx_str_t *path);
static ngx_int_t ngx_http_llmgw_usage_append(ngx_http_llmgw_keys_t *keys,
    ngx_http_llmgw_usage_log_t *log, const llmgw_usage_t *record);
static ngx_int_t ngx_http_llmgw_usage_failed(ngx_http_llmgw_usage_log_t *log,
    ngx_err_t err);


static const ngx_http_llmgw_param_t  ngx_http_llmgw_usage_params[] = {
    ngx_http_llmgw_param(ngx_http_llmgw_usage_log_t, NULL, STRING, path,
        .right = "a file"),
    ngx_http_llmgw_param(ngx_http_llmgw_usage_log_t, "gateway", OTHER, gateway,
        .read = ngx_http_llmgw_usage_conf_gateway,
        .right = "1 to 64 bytes of UTF-8 without control characters"),
    { .kind = 0 }
};


/* llmgw_usage_log PATH [gateway=NAME]; */

char *
ngx_http_llmgw_usage_log_conf(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                        *rv;
    ngx_http_llmgw_usage_log_t  *log;
    ngx_http_llmgw_main_conf_t  *lmcf = conf;

    if (lmcf->usage_log) {
        return "is duplicate";
    }

    log = ngx_pcalloc(cf->pool, sizeof(ngx_http_llmgw_usage_log_t));
    if (log == NULL) {
        return NGX_CONF_ERROR;
    }

    log->gateway = cf->cycle->hostname;

    rv = ngx_http_llmgw_params(cf, ngx_http_llmgw_usage_params, 1, log);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    if (ngx_conf_full_name(cf->cycle, &log->path, 0) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    lmcf->usage_log = log;

    if (ngx_process == NGX_PROCESS_SIGNALLER) {
        return NGX_CONF_OK;
    }

    if (ngx_http_llmgw_usage_make(&log->path) != NGX_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           "\"llmgw_usage_log\": \"%V\" cannot be written, "
                           "make its folder, and give it to the user that "
                           "starts nginx", &log->path);
        return NGX_CONF_ERROR;
    }

    if (ngx_test_config) {
        return NGX_CONF_OK;             /* nginx would create the file */
    }

    log->file = ngx_conf_open_file(cf->cycle, &log->path);

    return log->file ? NGX_CONF_OK : NGX_CONF_ERROR;
}


static ngx_int_t
ngx_http_llmgw_usage_conf_gateway(ngx_conf_t *cf, ngx_str_t *value,
    void *field)
{
    ngx_str_t  *gateway = field;

    if (value->len >= LLMGW_USAGE_GATEWAY_BYTES
        || !llmgw_usage_name_is_valid(value->data, value->len))
    {
        return NGX_DECLINED;
    }

    *gateway = *value;

    return NGX_OK;
}


/*
 * A test of the configuration creates no file.  NGX_ERROR: errno has the
 * reason.
 */

static ngx_int_t
ngx_http_llmgw_usage_make(ngx_str_t *path)
{
    ngx_fd_t  fd;

    if (ngx_test_config) {
        return ngx_http_llmgw_usage_may_make(path);
    }

    fd = open((char *) path->data, O_WRONLY|O_APPEND|O_CREAT|O_CLOEXEC, 0640);

    if (fd == NGX_INVALID_FILE) {
        return NGX_ERROR;
    }

    (void) ngx_close_file(fd);

    return NGX_OK;
}


ngx_int_t
ngx_http_llmgw_usage_may_make(const ngx_str_t *path)
{
    u_char   folder[NGX_MAX_PATH], *last;
    size_t   len;

    if (access((char *) path->data, W_OK) == 0) {
        return NGX_OK;
    }

    if (ngx_errno != NGX_ENOENT) {
        return NGX_ERROR;
    }

    for (len = path->len; len && path->data[len - 1] != '/'; len--) {
        /* void */
    }

    last = ngx_snprintf(folder, sizeof(folder) - 1, "%*s.", len, path->data);
    *last = '\0';

    return access((char *) folder, W_OK|X_OK) == 0 ? NGX_OK : NGX_ERROR;
}


void
ngx_http_llmgw_usage_gateway(const ngx_http_llmgw_keys_t *keys,
    char gateway[LLMGW_USAGE_GATEWAY_BYTES])
{
    u_char                             host[NGX_MAXHOSTNAMELEN + 1];
    size_t                             len;
    const ngx_http_llmgw_usage_log_t  *log;

    log = keys->main->usage_log;

    if (log) {
        llmgw_usage_text(gateway, LLMGW_USAGE_GATEWAY_BYTES, log->gateway.data,
                         log->gateway.len);
        return;
    }

    /* in the master, a cycle that begins is not yet ngx_cycle */

    ngx_memzero(host, sizeof(host));
    (void) gethostname((char *) host, sizeof(host) - 1);
    len = ngx_strlen(host);
    ngx_strlow(host, host, len);

    llmgw_usage_text(gateway, LLMGW_USAGE_GATEWAY_BYTES, host, len);
}


void
ngx_http_llmgw_usage_write_record(ngx_http_llmgw_keys_t *keys, uint32_t slot,
    const llmgw_usage_t *record)
{
    llmgw_accounts_t            *accounts;
    ngx_http_llmgw_usage_log_t  *log;

    log = keys->main->usage_log;

    if (log && ngx_http_llmgw_usage_append(keys, log, record) != NGX_OK) {
        return;
    }

    accounts = ngx_http_llmgw_keys_lock(keys);
    llmgw_accounts_written(accounts, slot, record->n);
    ngx_http_llmgw_keys_unlock(keys);
}


static ngx_int_t
ngx_http_llmgw_usage_append(ngx_http_llmgw_keys_t *keys,
    ngx_http_llmgw_usage_log_t *log, const llmgw_usage_t *record)
{
    char                  text[1 + LLMGW_USAGE_LINE_BYTES], *from, *end;
    ssize_t               n;
    llmgw_usage_source_t  source;

    ngx_http_llmgw_usage_gateway(keys, source.gateway);
    ngx_memcpy(source.birth, ngx_http_llmgw_keys_shared(keys)->accounts->birth,
               sizeof(source.birth));

    text[0] = '\n';
    end = text + 1 + llmgw_usage_write(text + 1, &source, record);

    /* after a failure, a part of a record may be the last in the file */

    from = log->failed ? text : text + 1;
    n = write(log->file->fd, from, end - from);

    if (n > 0 && n < end - from) {
        from = text;
        n = write(log->file->fd, from, end - from);
    }

    if (n != end - from) {
        return ngx_http_llmgw_usage_failed(log, n == -1 ? ngx_errno
                                                        : NGX_ENOSPC);
    }

    if (log->failed) {
        log->failed = 0;
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "llmgw: usage log \"%V\" is written again", &log->path);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_usage_failed(ngx_http_llmgw_usage_log_t *log, ngx_err_t err)
{
    if (!log->failed) {
        log->failed = 1;
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, err,
                      "llmgw: usage log \"%V\" cannot be written, its records "
                      "wait in memory and are tried again each second; make "
                      "room for it and do not stop nginx before", &log->path);
    }

    return NGX_ERROR;
}
