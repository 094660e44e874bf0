
/*
 * TLS of a session: between CONNECTING and CONNECTED (session.c) stands the
 * handshake, which no worker waits for, within the time for connecting.
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
 * The socket is connected, or ready for more.  At the end of the handshake
 * comes ngx_http_llmgw_session_open(), or the end of the session.
 */
void ngx_http_llmgw_session_ssl_begin(ngx_http_llmgw_session_t *session);
void ngx_http_llmgw_session_ssl_shake(ngx_http_llmgw_session_t *session);

/* 1: reading continues only when the socket is writable. */
ngx_uint_t ngx_http_llmgw_session_ssl_reads(
    ngx_http_llmgw_session_t *session);

/* While its socket is open. */
void ngx_http_llmgw_session_ssl_done(ngx_http_llmgw_session_t *session);

#else

#define ngx_http_llmgw_session_ssl_begin(session)
#define ngx_http_llmgw_session_ssl_shake(session)
#define ngx_http_llmgw_session_ssl_reads(session)  0
#define ngx_http_llmgw_session_ssl_done(session)

#endif


#endif /* _NGX_HTTP_LLMGW_SESSION_SSL_H_INCLUDED_ */
