
/*
 * TLS of an upstream{} block: OpenSSL's context of its files, and its reading
 * and writing.
 *
 * OpenSSL reads and writes by nginx's own functions for a plain socket, which
 * keep the events' readiness right, and reads ahead: a wake-up costs one
 * recv(2), as it does without TLS, however many records came.
 */

#include "fleet/ssl.h"


#if (NGX_HTTP_SSL)


static void ngx_http_llmgw_ssl_cleanup(void *data);
static int ngx_http_llmgw_ssl_keep(SSL *connection, SSL_SESSION *one);
static BIO_METHOD *ngx_http_llmgw_ssl_method(void);
static int ngx_http_llmgw_ssl_bio_read(BIO *bio, char *buf, int size);
static int ngx_http_llmgw_ssl_bio_write(BIO *bio, const char *buf, int size);
static long ngx_http_llmgw_ssl_bio_ctrl(BIO *bio, int cmd, long number,
    void *data);


ngx_int_t
ngx_http_llmgw_ssl_add(ngx_conf_t *cf, ngx_http_llmgw_srv_conf_t *conf)
{
    char                        error[TLS_ERROR_BYTES];
    ngx_pool_cleanup_t         *cln;
    ngx_http_llmgw_ssl_t       *made;
    ngx_http_llmgw_ssl_conf_t  *ssl;

    ssl = &conf->ssl;
    made = ngx_pcalloc(cf->pool, sizeof(ngx_http_llmgw_ssl_t));
    cln = ngx_pool_cleanup_add(cf->pool, 0);

    if (made == NULL || cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_llmgw_ssl_cleanup;
    cln->data = made;

    if (ssl->certificate.len) {
        made->files.cert = (char *) ssl->certificate.data;
        made->files.key = (char *) ssl->certificate_key.data;
    }

    if (ssl->verify) {
        made->files.ca = (char *) ssl->trusted_certificate.data;
    }

    made->files.has_tickets = ssl->session_reuse;

    /*
     * looked at before they are read: if a file changes in between, that counts
     * as a change
     */

    (void) tls_files_look(&made->files, made->seen, made->seen);
    made->context = tls_context(&made->files, error);

    if (made->context == NULL) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"llmgw_ssl\" of upstream \"%V\" in %s:%ui: %s",
                      &conf->name, ssl->file, ssl->line, error);
        return NGX_ERROR;
    }

    made->method = ngx_http_llmgw_ssl_method();
    if (made->method == NULL) {
        return NGX_ERROR;
    }

    SSL_CTX_set_read_ahead(made->context, 1);

    if (ssl->session_reuse) {
        SSL_CTX_set_session_cache_mode(made->context, SSL_SESS_CACHE_CLIENT
                                       |SSL_SESS_CACHE_NO_INTERNAL);
        SSL_CTX_sess_set_new_cb(made->context, ngx_http_llmgw_ssl_keep);
    }

    ssl->made = made;

    return NGX_OK;
}


static void
ngx_http_llmgw_ssl_cleanup(void *data)
{
    ngx_http_llmgw_ssl_t  *made = data;

    SSL_CTX_free(made->context);
    BIO_meth_free(made->method);
}


/*
 * The replica has sent a ticket: the next connection to it resumes this
 * session.
 */

static int
ngx_http_llmgw_ssl_keep(SSL *connection, SSL_SESSION *one)
{
    ngx_http_llmgw_ssl_peer_t  *of;

    of = SSL_get_app_data(connection);
    ngx_http_llmgw_ssl_forget(of->replica);
    of->replica->resumed = one;

    return 1;
}


void
ngx_http_llmgw_ssl_forget(ngx_http_llmgw_replica_t *replica)
{
    SSL_SESSION_free(replica->resumed);
    replica->resumed = NULL;
}


void
ngx_http_llmgw_ssl_look(ngx_http_llmgw_pool_t *pool)
{
    ngx_uint_t             i;
    struct stat            now[TLS_NFILES];
    ngx_http_llmgw_ssl_t  *made;

    made = pool->conf->ssl.made;

    if (made == NULL || ngx_worker != 0
        || !tls_files_look(&made->files, now, made->seen))
    {
        return;
    }

    /* the master has read them; a worker may not be allowed to look */

    for (i = 0; i < TLS_NFILES; i++) {
        if (now[i].st_ino == 0 && made->seen[i].st_ino) {
            return;
        }
    }

    ngx_memcpy(made->seen, now, sizeof(now));

    ngx_log_error(NGX_LOG_WARN, pool->worker->log, 0,
                  "llmgw: certificates of upstream \"%V\" have changed, a "
                  "reload takes them", &pool->conf->name);
}


/* --- what OpenSSL reads and writes */

static BIO_METHOD *
ngx_http_llmgw_ssl_method(void)
{
    BIO_METHOD  *method;

    /* there are few types, and no code finds this method by its type */

    method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "nginx connection");

    if (method == NULL
        || !BIO_meth_set_read(method, ngx_http_llmgw_ssl_bio_read)
        || !BIO_meth_set_write(method, ngx_http_llmgw_ssl_bio_write)
        || !BIO_meth_set_ctrl(method, ngx_http_llmgw_ssl_bio_ctrl))
    {
        BIO_meth_free(method);
        return NULL;
    }

    return method;
}


static int
ngx_http_llmgw_ssl_bio_read(BIO *bio, char *buf, int size)
{
    ssize_t            n;
    ngx_connection_t  *c;

    c = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);

    if (c->read->eof) {
        return 0;
    }

    n = c->read->ready ? ngx_recv(c, (u_char *) buf, size) : NGX_AGAIN;

    if (n == NGX_AGAIN) {
        BIO_set_retry_read(bio);
        return -1;
    }

    return (int) n;
}


static int
ngx_http_llmgw_ssl_bio_write(BIO *bio, const char *buf, int size)
{
    ssize_t            n;
    ngx_connection_t  *c;

    c = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    n = ngx_send(c, (u_char *) buf, size);

    if (n == NGX_AGAIN) {
        BIO_set_retry_write(bio);
        return -1;
    }

    return (int) n;
}


static long
ngx_http_llmgw_ssl_bio_ctrl(BIO *bio, int cmd, long number, void *data)
{
    ngx_connection_t  *c;

    c = BIO_get_data(bio);

    switch (cmd) {

    case BIO_CTRL_FLUSH:
        return 1;

    case BIO_CTRL_EOF:
        return c->read->eof;

    default:
        return 0;
    }
}

#endif
