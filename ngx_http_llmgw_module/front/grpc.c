
/*
 * The front: what gRPC clients speak.  A request comes in here as an HTTP/2
 * request of nginx's, is read, checked and decoded, and becomes a stream;
 * whose tokens leave through output.c.
 */

#include "front/answer.h"
#include "front/body.h"
#include "front/grpc.h"
#include "front/memory.h"
#include "front/output.h"
#include "front/trace.h"
#include "http/header.h"
#include "proto/utf8.h"
#include "upstream/table.h"
#include "health.pb-c.h"
#include "llmgateway.pb-c.h"


#define NGX_HTTP_LLMGW_INFER   "/llmgateway.InferenceGateway/Infer"
#define NGX_HTTP_LLMGW_HEALTH  "/grpc.health.v1.Health/Check"
#define NGX_HTTP_LLMGW_SERVICE "llmgateway.InferenceGateway"


static ngx_uint_t ngx_http_llmgw_front_is(ngx_http_request_t *r,
    const char *path);
static ngx_uint_t ngx_http_llmgw_front_is_grpc(ngx_http_request_t *r);
static ngx_int_t ngx_http_llmgw_front_unimplemented(ngx_http_request_t *r,
    const char *text);
static void ngx_http_llmgw_front_health(ngx_http_request_t *r);
static void ngx_http_llmgw_front_infer(ngx_http_request_t *r);
static ngx_http_llmgw_stream_t *ngx_http_llmgw_front_stream(
    ngx_http_request_t *r);
static ngx_int_t ngx_http_llmgw_front_decode(
    ngx_http_llmgw_stream_t *stream, ngx_str_t *body);
static ngx_int_t ngx_http_llmgw_front_check(
    Llmgateway__InferRequest *request, const char **wrong);
static void ngx_http_llmgw_front_deadline(ngx_http_llmgw_stream_t *stream);
static void *ngx_http_llmgw_front_alloc(void *data, size_t size);
static void ngx_http_llmgw_front_free(void *data, void *p);


ngx_int_t
ngx_http_llmgw_front_handler(ngx_http_request_t *r)
{
    ngx_int_t                        rc;
    ngx_http_client_body_handler_pt  handler;

    if (r != r->main) {
        /* a mirror or auth_request: a stream has one reader, the client */
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (!ngx_http_llmgw_front_is_grpc(r)) {
        return ngx_http_llmgw_front_unimplemented(r,
                "this is a gRPC service: POST application/grpc over HTTP/2");
    }

    if (ngx_http_llmgw_front_is(r, NGX_HTTP_LLMGW_INFER)) {
        ngx_http_llmgw_memory_lend(r);
        handler = ngx_http_llmgw_front_infer;

    } else if (ngx_http_llmgw_front_is(r, NGX_HTTP_LLMGW_HEALTH)) {
        handler = ngx_http_llmgw_front_health;

    } else {
        return ngx_http_llmgw_front_unimplemented(r, "no such method");
    }

    rc = ngx_http_read_client_request_body(r, handler);

    return rc >= NGX_HTTP_SPECIAL_RESPONSE ? rc : NGX_DONE;
}


/* The answer finalizes the request, and so does the phase that called us. */

static ngx_int_t
ngx_http_llmgw_front_unimplemented(ngx_http_request_t *r, const char *text)
{
    (void) ngx_http_discard_request_body(r);

    r->main->count++;
    ngx_http_llmgw_answer_text(r, LLMGW_GRPC_UNIMPLEMENTED, text);

    return NGX_DONE;
}


static ngx_uint_t
ngx_http_llmgw_front_is(ngx_http_request_t *r, const char *path)
{
    return r->uri.len == ngx_strlen(path)
           && ngx_memcmp(r->uri.data, path, r->uri.len) == 0;
}


static ngx_uint_t
ngx_http_llmgw_front_is_grpc(ngx_http_request_t *r)
{
    return r->method == NGX_HTTP_POST
           && r->http_version >= NGX_HTTP_VERSION_20
           && ngx_http_llmgw_header_is_grpc(r->headers_in.content_type);
}


/* Serving: somebody would take a request now. */

static void
ngx_http_llmgw_front_health(ngx_http_request_t *r)
{
    u_char                                  buf[16];
    ngx_str_t                               body;
    ProtobufCAllocator                      allocator;
    ngx_http_llmgw_pool_t                  *pool;
    Grpc__Health__V1__HealthCheckRequest   *request;
    Grpc__Health__V1__HealthCheckResponse   response;

    if (ngx_http_llmgw_body_message(r, &body) != NGX_OK) {
        return;
    }

    allocator.alloc = ngx_http_llmgw_front_alloc;
    allocator.free = ngx_http_llmgw_front_free;
    allocator.allocator_data = r;

    request = grpc__health__v1__health_check_request__unpack(&allocator,
                                                         body.len, body.data);
    if (request == NULL) {
        ngx_http_llmgw_answer_text(r, LLMGW_GRPC_INVALID_ARGUMENT,
                                   "the message is no HealthCheckRequest");
        return;
    }

    if (request->service[0]
        && ngx_strcmp(request->service, NGX_HTTP_LLMGW_SERVICE) != 0)
    {
        ngx_http_llmgw_answer_text(r, LLMGW_GRPC_NOT_FOUND,
                                   "no such service");
        return;
    }

    pool = ngx_http_llmgw_worker_pool(r);

    grpc__health__v1__health_check_response__init(&response);

    response.status = pool && ngx_http_llmgw_table_has_routable(pool)
        ? GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING
        : GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING;

    ngx_http_llmgw_answer_message(r, buf,
        grpc__health__v1__health_check_response__pack(&response, buf));
}


static void
ngx_http_llmgw_front_infer(ngx_http_request_t *r)
{
    ngx_str_t                 body;
    ngx_http_llmgw_stream_t  *stream;

    if (ngx_http_llmgw_body_message(r, &body) != NGX_OK) {
        return;
    }

    stream = ngx_http_llmgw_front_stream(r);
    if (stream == NULL) {
        ngx_http_llmgw_answer_text(r, LLMGW_GRPC_INTERNAL, "out of memory");
        return;
    }

    if (ngx_http_llmgw_front_decode(stream, &body) != NGX_OK) {
        return;
    }

    ngx_http_llmgw_body_free(r, &body);
    ngx_http_llmgw_front_deadline(stream);
    ngx_http_llmgw_trace_read(stream);

    /* a client that resets or leaves ends the request, and by its cleanup
     * the stream */

    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_llmgw_output_write_handler;

    ngx_http_llmgw_stream_begin(stream);
}


static ngx_http_llmgw_stream_t *
ngx_http_llmgw_front_stream(ngx_http_request_t *r)
{
    ngx_http_cleanup_t       *cln;
    ngx_pool_cleanup_t       *chunks;
    ngx_http_llmgw_pool_t    *pool;
    ngx_http_llmgw_stream_t  *stream;

    pool = ngx_http_llmgw_worker_pool(r);
    stream = ngx_http_llmgw_memory_alloc(r, sizeof(ngx_http_llmgw_stream_t));
    cln = ngx_http_cleanup_add(r, 0);
    chunks = ngx_pool_cleanup_add(r->pool, 0);

    if (pool == NULL || stream == NULL || cln == NULL || chunks == NULL) {
        return NULL;
    }

    ngx_memzero(stream, sizeof(ngx_http_llmgw_stream_t));

    stream->request = r;
    stream->conf = ngx_http_get_module_loc_conf(r, ngx_http_llmgw_module);
    stream->pool = pool;
    stream->start_ms = ngx_current_msec;

    cln->handler = ngx_http_llmgw_stream_cleanup;
    cln->data = stream;

    chunks->handler = ngx_http_llmgw_chunk_cleanup;
    chunks->data = stream;

    ngx_http_set_ctx(r, stream, ngx_http_llmgw_module);

    return stream;
}


/* NGX_DONE: answered. */

static ngx_int_t
ngx_http_llmgw_front_decode(ngx_http_llmgw_stream_t *stream, ngx_str_t *body)
{
    size_t                     prefix;
    const char                *wrong;
    ProtobufCAllocator         allocator;
    ngx_http_request_t        *r;
    Llmgateway__InferRequest  *request;

    r = stream->request;

    allocator.alloc = ngx_http_llmgw_front_alloc;
    allocator.free = ngx_http_llmgw_front_free;
    allocator.allocator_data = r;

    request = llmgateway__infer_request__unpack(&allocator, body->len,
                                                body->data);

    if (ngx_http_llmgw_front_check(request, &wrong) != NGX_OK) {
        ngx_http_llmgw_answer_text(r, LLMGW_GRPC_INVALID_ARGUMENT, wrong);
        return NGX_DONE;
    }

    stream->prompt.data = request->prompt.data;
    stream->prompt.len = request->prompt.len;
    stream->max_tokens = request->max_tokens;
    stream->request_id.data = (u_char *) request->request_id;
    stream->request_id.len = ngx_strlen(request->request_id);

    ngx_http_llmgw_trace_request_id(stream);

    stream->wants_hedge = request->hedge;

    prefix = ngx_min(stream->prompt.len, stream->pool->conf->prefix);

    ngx_http_llmgw_claim_init(&stream->claim, stream->pool,
                              llmgw_ring_hash(stream->prompt.data, prefix));

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_front_check(Llmgateway__InferRequest *request,
    const char **wrong)
{
    *wrong = "the message is no InferRequest";

    if (request == NULL) {
        return NGX_ERROR;
    }

    *wrong = "prompt, client_id and request_id must be UTF-8";

    if (!llmgw_utf8_is_valid(request->prompt.data, request->prompt.len)
        || !llmgw_utf8_is_valid(request->client_id,
                                ngx_strlen(request->client_id))
        || !llmgw_utf8_is_valid(request->request_id,
                                ngx_strlen(request->request_id)))
    {
        return NGX_ERROR;
    }

    *wrong = "max_tokens must be 1 or more";

    return request->max_tokens >= 1 ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_llmgw_front_deadline(ngx_http_llmgw_stream_t *stream)
{
    uint64_t          ms;
    ngx_table_elt_t  *h;

    h = ngx_http_llmgw_header_find(&stream->request->headers_in.headers,
                                   "grpc-timeout");

    ms = h ? llmgw_grpc_timeout_decode((char *) h->value.data, h->value.len)
           : 0;

    /* beyond a year it is none, and nginx's timers stay in their range */

    if (ms && ms < 365ull * 24 * 3600 * 1000) {
        stream->deadline_ms = stream->start_ms + (ngx_msec_t) ms;
        stream->has_deadline = 1;
    }
}


static void *
ngx_http_llmgw_front_alloc(void *data, size_t size)
{
    return ngx_http_llmgw_memory_alloc(data, size);
}


static void
ngx_http_llmgw_front_free(void *data, void *p)
{
    /* the request's pool goes as a whole */
}
