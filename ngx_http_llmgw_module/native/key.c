
/*
 * llmgw_key: the key by which a request under a native pass finds its replica.
 *
 *   a value       the whole value; if it is empty, the client's address
 *   body          of a gRPC message the prompt, so that a prompt has the same
 *                 replica under grpc_pass and llmgw_pass; of any other body
 *                 its first bytes.  Of both at most llmgw_hash's prefix
 *   prompt        of an OpenAI body the key that llmgw_openai finds in it
 *                 (core/openai/affinity_key.h); of any other body the same as
 *                 `body`
 *   prompt_cache_key, user
 *                 that member of an OpenAI body, if it has one; otherwise the
 *                 same as `prompt`
 *   no directive  the client's address
 *
 * A key that is found in the body brings the body's blocks with it, for
 * policies that read prefixes: those of the prompt or of the messages, or of
 * its first bytes.
 */

#include "llmgateway.pb-c.h"
#include "choice/blocks.h"
#include "core/ring/ring.h"
#include "http/request_body.h"
#include "http/header.h"
#include "native/native.h"
#include "proto/grpc/prefix.h"


static ngx_int_t ngx_http_llmgw_native_hash_openai(
    ngx_http_llmgw_native_t *pass, llmgw_openai_by_t by, uint64_t *hash);
static void ngx_http_llmgw_native_body(ngx_http_llmgw_native_t *pass,
    ngx_str_t *key);
static uint64_t ngx_http_llmgw_native_hash_client(ngx_http_request_t *r);
static ngx_int_t ngx_http_llmgw_native_prompt(ngx_http_request_t *r,
    ngx_str_t *prompt);
static void *ngx_http_llmgw_native_alloc(void *data, size_t size);
static void ngx_http_llmgw_native_no_free(void *data, void *p);


/* OPENAI, with the member after it, by llmgw_openai_by_t */

static const ngx_conf_enum_t  ngx_http_llmgw_key_words[] = {
    { ngx_string("body"), NGX_HTTP_LLMGW_KEY_BODY },
    { ngx_string("prompt"), NGX_HTTP_LLMGW_KEY_OPENAI },
    { ngx_string("prompt_cache_key"),
      NGX_HTTP_LLMGW_KEY_OPENAI + LLMGW_OPENAI_BY_CACHE_KEY },
    { ngx_string("user"), NGX_HTTP_LLMGW_KEY_OPENAI + LLMGW_OPENAI_BY_USER },
    { ngx_null_string, 0 }
};


const ngx_http_llmgw_param_t  ngx_http_llmgw_key_params[] = {
    ngx_http_llmgw_param(ngx_http_llmgw_loc_conf_t, NULL, WORD, key_from,
        .words = ngx_http_llmgw_key_words),
    ngx_http_llmgw_param(ngx_http_llmgw_loc_conf_t, NULL, VALUE, key,
        .may_be_empty = 1),
    ngx_http_llmgw_param(ngx_http_llmgw_loc_conf_t, "queue", UPSTREAM,
        key_queue, .needs_queue = 1, .right = "an upstream"),
    { .kind = 0 }
};


char *
ngx_http_llmgw_native_conf_key(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                       *rv;
    ngx_http_llmgw_loc_conf_t  *llcf = conf;

    llcf->key = NULL;
    rv = ngx_http_llmgw_conf_line(cf, cmd, conf);

    if (llcf->key_from > NGX_HTTP_LLMGW_KEY_OPENAI) {
        llcf->key_by = llcf->key_from - NGX_HTTP_LLMGW_KEY_OPENAI;
        llcf->key_from = NGX_HTTP_LLMGW_KEY_OPENAI;
    }

    return rv;
}


uint64_t
ngx_http_llmgw_native_hash(ngx_http_llmgw_native_t *pass)
{
    uint64_t                    hash;
    ngx_str_t                   key;
    ngx_http_request_t         *r;
    ngx_http_llmgw_loc_conf_t  *llcf;

    r = pass->request;
    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llmgw_module);
    ngx_str_null(&key);

    if (llcf->key_from == NGX_HTTP_LLMGW_KEY_OPENAI
        && ngx_http_llmgw_native_hash_openai(pass, llcf->key_by, &hash)
           == NGX_OK)
    {
        return hash;
    }

    if (llcf->key_from != NGX_HTTP_LLMGW_KEY_VALUE) {
        ngx_http_llmgw_native_body(pass, &key);

    } else if (llcf->key) {
        if (ngx_http_complex_value(r, llcf->key, &key) != NGX_OK) {
            key.len = 0;
        }
    }

    return key.len ? llmgw_ring_hash(key.data, key.len)
                   : ngx_http_llmgw_native_hash_client(r);
}


/* NGX_DECLINED: the body is not of that kind. */

static ngx_int_t
ngx_http_llmgw_native_hash_openai(ngx_http_llmgw_native_t *pass,
    llmgw_openai_by_t by, uint64_t *hash)
{
    ngx_str_t                   bytes;
    llmgw_openai_body_t         body;
    llmgw_openai_error_t        error;
    ngx_http_llmgw_srv_conf_t  *conf;

    conf = pass->pool->conf;

    if (ngx_http_llmgw_body_bytes(pass->request, NGX_MAX_SIZE_T_VALUE, &bytes)
        != NGX_OK
        || llmgw_openai_body_read(&body, LLMGW_OPENAI_ANY_API, bytes.data,
                                  bytes.len, &ngx_http_llmgw_body_heap,
                                  &error)
           != 0)
    {
        return NGX_DECLINED;
    }

    *hash = llmgw_openai_affinity_key(&body,
                                      ngx_http_llmgw_conf_openai_prefix(conf),
                                      by);
    pass->claim.nblocks = ngx_http_llmgw_blocks_of_body(&conf->index,
                                                        pass->request->pool,
                                                        &body,
                                                        &pass->claim.blocks);
    llmgw_openai_body_done(&body);

    return NGX_OK;
}


/*
 * The part of the body to hash: a gRPC message's prompt, or any other body's
 * first bytes.  It is as long as the blocks need; the key takes a part of it.
 */

static void
ngx_http_llmgw_native_body(ngx_http_llmgw_native_t *pass, ngx_str_t *key)
{
    size_t                      most;
    ngx_http_request_t         *r;
    ngx_http_llmgw_srv_conf_t  *conf;

    r = pass->request;
    conf = pass->pool->conf;
    most = conf->index.shm_zone ? conf->index.match * conf->index.block : 0;

    if (!ngx_http_llmgw_header_is_grpc(r->headers_in.content_type)
        || ngx_http_llmgw_native_prompt(r, key) != NGX_OK)
    {
        (void) ngx_http_llmgw_body_bytes(r, ngx_max(conf->prefix, most), key);
    }

    pass->claim.nblocks = ngx_http_llmgw_blocks_of_prompt(&conf->index,
                                                          r->pool, key,
                                                          &pass->claim.blocks);
    key->len = ngx_min(key->len, conf->prefix);
}


/* Hashes only the address: the port differs with each connection. */

static uint64_t
ngx_http_llmgw_native_hash_client(ngx_http_request_t *r)
{
    struct sockaddr      *sa;
    struct sockaddr_in   *sin;
#if (NGX_HAVE_INET6)
    struct sockaddr_in6  *sin6;
#endif

    sa = r->connection->sockaddr;

    switch (sa->sa_family) {

    case AF_INET:
        sin = (struct sockaddr_in *) sa;
        return llmgw_ring_hash(&sin->sin_addr, sizeof(sin->sin_addr));

#if (NGX_HAVE_INET6)
    case AF_INET6:
        sin6 = (struct sockaddr_in6 *) sa;
        return llmgw_ring_hash(&sin6->sin6_addr, sizeof(sin6->sin6_addr));
#endif

    default:
        return llmgw_ring_hash(r->connection->addr_text.data,
                               r->connection->addr_text.len);
    }
}


/* The length of a gRPC message's prompt, or of the whole body. */

size_t
ngx_http_llmgw_native_text_bytes(ngx_http_request_t *r)
{
    size_t        total;
    ngx_str_t     prompt;
    ngx_chain_t  *cl;

    if (ngx_http_llmgw_header_is_grpc(r->headers_in.content_type)
        && ngx_http_llmgw_native_prompt(r, &prompt) == NGX_OK)
    {
        return prompt.len;
    }

    if (r->headers_in.content_length_n > 0) {
        return r->headers_in.content_length_n;
    }

    total = 0;

    for (cl = r->request_body ? r->request_body->bufs : NULL; cl;
         cl = cl->next)
    {
        total += ngx_buf_size(cl->buf);
    }

    return total;
}


/*
 * The first message's prompt.  InferRequest and GenerateRequest have the prompt
 * in the same field, so either is decoded as the latter.
 */

static ngx_int_t
ngx_http_llmgw_native_prompt(ngx_http_request_t *r, ngx_str_t *prompt)
{
    size_t                        len;
    u_char                       *p;
    ngx_str_t                     body;
    ProtobufCAllocator            allocator;
    Llmgateway__GenerateRequest  *request;

    if (ngx_http_llmgw_body_bytes(r, NGX_MAX_SIZE_T_VALUE, &body) != NGX_OK
        || body.len < LLMGW_GRPC_PREFIX_BYTES)
    {
        return NGX_DECLINED;
    }

    p = body.data;
    len = llmgw_grpc_prefix_len(p);

    if (p[0] != 0 || len > body.len - LLMGW_GRPC_PREFIX_BYTES) {
        return NGX_DECLINED;
    }

    allocator.alloc = ngx_http_llmgw_native_alloc;
    allocator.free = ngx_http_llmgw_native_no_free;
    allocator.allocator_data = r->pool;

    request = llmgateway__generate_request__unpack(&allocator, len,
                                               p + LLMGW_GRPC_PREFIX_BYTES);

    if (request == NULL || request->prompt.len == 0) {
        return NGX_DECLINED;
    }

    prompt->data = request->prompt.data;
    prompt->len = request->prompt.len;

    return NGX_OK;
}


static void *
ngx_http_llmgw_native_alloc(void *data, size_t size)
{
    return ngx_palloc(data, size);
}


static void
ngx_http_llmgw_native_no_free(void *data, void *p)
{
    /* the request's pool is freed as a whole */
}
