
/*
 * TLS of an upstream{} block: OpenSSL's context from the files of llmgw_ssl's
 * directives.
 *
 * Settings, names and explanations are those of all our programs (common/tls/).
 * Files are read once for a configuration; a reload reads them again; a change
 * in between causes a warning.  A TLS session is resumed only with the same
 * replica, in the same worker and configuration, so it was verified by the
 * files in force.
 */

#ifndef _NGX_HTTP_LLMGW_SSL_H_INCLUDED_
#define _NGX_HTTP_LLMGW_SSL_H_INCLUDED_


#include "fleet/replica.h"


#if (NGX_HTTP_SSL)

#include "common/tls/context.h"
#include "common/tls/peer.h"


struct ngx_http_llmgw_ssl_s {
    SSL_CTX                      *context;
    BIO_METHOD                   *method;       /* its data: the connection */
    tls_files_t                   files;
    struct stat                   seen[TLS_NFILES];
};


/* The app data of an SSL. */
typedef struct {
    tls_peer_t                    peer;         /* first, as common/tls/
                                                   expects */
    ngx_http_llmgw_replica_t     *replica;
} ngx_http_llmgw_ssl_peer_t;


/*
 * For ngx_http_llmgw_rooms_t: reads the files.  NGX_ERROR: the reason was
 * logged.
 */
ngx_int_t ngx_http_llmgw_ssl_add(ngx_conf_t *cf,
    ngx_http_llmgw_srv_conf_t *conf);

/* From now on no earlier TLS session of this replica is resumed. */
void ngx_http_llmgw_ssl_forget(ngx_http_llmgw_replica_t *replica);

/* Each second: warns of files that have changed since they were read. */
void ngx_http_llmgw_ssl_look(ngx_http_llmgw_pool_t *pool);

#else       /* without SSL llmgw_ssl is refused */

#define ngx_http_llmgw_ssl_add               NULL
#define ngx_http_llmgw_ssl_forget(replica)
#define ngx_http_llmgw_ssl_look(pool)

#endif


#endif /* _NGX_HTTP_LLMGW_SSL_H_INCLUDED_ */
