
/*
 * TLS of a session: the handshake comes between CONNECTING and CONNECTED
 * (session.c).  The handshake blocks no worker, and has to end within the
 * connect time-out.
 *
 *   CONNECTING ----> SHAKING ----> CONNECTED
 *                       |
 *                       v
 *                    failed, with a line that says why and what to do
 */

#ifndef _NGX_HTTP_LLMGW_SESSION_SSL_H_INCLUDED_
#define _NGX_HTTP_LLMGW_SESSION_SSL_H_INCLUDED_


#include "attempt/session.h"


#if (NGX_HTTP_SSL)

/*
 * _begin(): the socket is connected; _shake(): it is ready for more of the
 * handshake.  When the handshake succeeds, ngx_http_llmgw_session_open() is
 * called; when it fails, the session ends.
 */
void ngx_http_llmgw_session_ssl_begin(ngx_http_llmgw_session_t *session);
void ngx_http_llmgw_session_ssl_shake(ngx_http_llmgw_session_t *session);

/* 1: reading continues only when the socket is writable. */
ngx_uint_t ngx_http_llmgw_session_ssl_reads(
    ngx_http_llmgw_session_t *session);

/* To be called while the session's socket is still open. */
void ngx_http_llmgw_session_ssl_done(ngx_http_llmgw_session_t *session);

#else

#define ngx_http_llmgw_session_ssl_begin(session)
#define ngx_http_llmgw_session_ssl_shake(session)
#define ngx_http_llmgw_session_ssl_reads(session)  0
#define ngx_http_llmgw_session_ssl_done(session)

#endif


#endif /* _NGX_HTTP_LLMGW_SESSION_SSL_H_INCLUDED_ */
