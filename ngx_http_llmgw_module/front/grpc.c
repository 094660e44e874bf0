
/*
 * The front for gRPC clients: InferenceGateway.Infer as a stream, and
 * grpc.health.v1 for the pool.
 *
 * A token is not decoded: the replica's message with its signature appended is
 * the client's message (proto/token_message.h).
 */

#include "choice/blocks.h"
#include "core/ring/ring.h"
#include "fleet/body_memory.h"
#include "fleet/table.h"
#include "front/grpc.h"
#include "front/output.h"
#include "front/stream.h"
#include "health.pb-c.h"
#include "http/request_body.h"
#include "http/grpc.h"
#include "http/header.h"
#include "llmgateway.pb-c.h"
#include "proto/grpc/prefix.h"
#include "proto/utf8.h"


/* What a request takes of the worker's memory for bodies, until it ends. */
typedef struct {
    ngx_http_llmgw_pool_t        *pool;
    llmgw_holder_t                holder;
} ngx_http_llmgw_grpc_held_t;


#define NGX_HTTP_LLMGW_INFER   "/llmgateway.InferenceGateway/Infer"
#define NGX_HTTP_LLMGW_HEALTH  "/grpc.health.v1.Health/Check"
#define NGX_HTTP_LLMGW_SERVICE "llmgateway.InferenceGateway"

/* Smaller pieces of a message are not worth a malloc(). */
#define NGX_HTTP_LLMGW_GRPC_PIECE_MIN  64


static ngx_int_t ngx_http_llmgw_grpc_front_handler(ngx_http_request_t *r);
static ngx_uint_t ngx_http_llmgw_grpc_front_is(ngx_http_request_t *r,
    const char *path);
static ngx_int_t ngx_http_llmgw_grpc_front_unknown(ngx_http_request_t *r,
    const char *text);
static void ngx_http_llmgw_grpc_front_refuse(ngx_http_request_t *r,
    llmgw_outcome_t outcome, const char *text);
static void ngx_http_llmgw_grpc_front_infer(ngx_http_request_t *r);
static void ngx_http_llmgw_grpc_front_health(ngx_http_request_t *r);
static ngx_int_t ngx_http_llmgw_grpc_front_message(ngx_http_request_t *r,
    ngx_str_t *body, ngx_str_t *message);
static void *ngx_http_llmgw_grpc_front_alloc(void *data, size_t size);
static void ngx_http_llmgw_grpc_front_free(void *data, void *p);

static ngx_int_t ngx_http_llmgw_grpc_front_read(
    ngx_http_llmgw_stream_t *stream);
static ngx_int_t ngx_http_llmgw_grpc_front_hold(
    ngx_http_llmgw_stream_t *stream, size_t bytes);
static void ngx_http_llmgw_grpc_front_release(void *data);
static ngx_int_t ngx_http_llmgw_grpc_front_decode(
    ngx_http_llmgw_stream_t *stream, ngx_str_t *message);
static const char *ngx_http_llmgw_grpc_front_check(
    Llmgateway__InferRequest *request);
static ngx_int_t ngx_http_llmgw_grpc_front_token(
    ngx_http_llmgw_stream_t *stream, const llmgw_token_t *token);
static void ngx_http_llmgw_grpc_front_end(ngx_http_llmgw_stream_t *stream,
    const llmgw_end_t *end);

static ngx_uint_t ngx_http_llmgw_grpc_front_owns(ngx_http_request_t *r);
static ngx_int_t ngx_http_llmgw_grpc_front_refused(ngx_http_request_t *r,
    ngx_chain_t *body);
static void ngx_http_llmgw_grpc_front_refusal(ngx_uint_t http,
    llmgw_end_t *end);


const ngx_http_llmgw_protocol_t  ngx_http_llmgw_grpc_protocol = {
    .handler = ngx_http_llmgw_grpc_front_handler,
    .owns = ngx_http_llmgw_grpc_front_owns,
    .refuse = ngx_http_llmgw_grpc_front_refused,
    .answer = ngx_http_llmgw_grpc_send,
};


static const ngx_http_llmgw_front_t  ngx_http_llmgw_grpc_front = {
    .read = ngx_http_llmgw_grpc_front_read,
    .begin = ngx_http_llmgw_grpc_headers,
    .token = ngx_http_llmgw_grpc_front_token,
    .end = ngx_http_llmgw_grpc_front_end,
};


static ngx_int_t
ngx_http_llmgw_grpc_front_handler(ngx_http_request_t *r)
{
    ngx_int_t                        rc;
    ngx_http_client_body_handler_pt  handler;

    if (r != r->main) {
        /* from a mirror or auth_request: only clients can read a stream */
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (r->method != NGX_HTTP_POST || r->http_version < NGX_HTTP_VERSION_20
        || !ngx_http_llmgw_header_is_grpc(r->headers_in.content_type))
    {
        return ngx_http_llmgw_grpc_front_unknown(r,
                "this is a gRPC service: POST application/grpc over HTTP/2");
    }

    if (ngx_http_llmgw_grpc_front_is(r, NGX_HTTP_LLMGW_INFER)) {
        handler = ngx_http_llmgw_grpc_front_infer;

    } else if (ngx_http_llmgw_grpc_front_is(r, NGX_HTTP_LLMGW_HEALTH)) {
        handler = ngx_http_llmgw_grpc_front_health;

    } else {
        return ngx_http_llmgw_grpc_front_unknown(r, "no such method");
    }

    rc = ngx_http_read_client_request_body(r, handler);

    return rc >= NGX_HTTP_SPECIAL_RESPONSE ? rc : NGX_DONE;
}


static ngx_uint_t
ngx_http_llmgw_grpc_front_is(ngx_http_request_t *r, const char *path)
{
    return r->uri.len == ngx_strlen(path)
           && ngx_memcmp(r->uri.data, path, r->uri.len) == 0;
}


/*
 * Two calls finalize the request: the answer's, and that of the phase that
 * called this handler.  So this takes one more reference.
 */

static ngx_int_t
ngx_http_llmgw_grpc_front_unknown(ngx_http_request_t *r, const char *text)
{
    (void) ngx_http_discard_request_body(r);

    r->main->count++;
    ngx_http_llmgw_grpc_front_refuse(r, LLMGW_OUTCOME_UNKNOWN_METHOD, text);

    return NGX_DONE;
}


/* Answers a request that gets no stream.  text must be a constant. */

static void
ngx_http_llmgw_grpc_front_refuse(ngx_http_request_t *r,
    llmgw_outcome_t outcome, const char *text)
{
    llmgw_end_t             end;
    ngx_http_llmgw_pool_t  *pool;
    llmgw_grpc_status_t     status;

    ngx_memzero(&end, sizeof(llmgw_end_t));

    end.outcome = outcome;
    end.text = text;
    end.text_len = ngx_strlen(text);

    status = ngx_http_llmgw_outcome_grpc(&end);

    ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                  "llmgw: answered %s: %s", llmgw_grpc_status_name(status),
                  text);

    pool = ngx_http_llmgw_worker_pool(r);

    if (pool) {
        ngx_http_llmgw_metrics_request(pool->zone, status, outcome);
    }

    ngx_http_llmgw_grpc_answer(r, &end);
}


static void
ngx_http_llmgw_grpc_front_infer(ngx_http_request_t *r)
{
    if (ngx_http_llmgw_stream_open(r, &ngx_http_llmgw_grpc_front, NULL)
        != NGX_OK) {
        ngx_http_llmgw_grpc_front_refuse(r, LLMGW_OUTCOME_INTERNAL,
                                         "out of memory");
    }
}


/* Answers SERVING if there is a replica that requests can be routed to. */

static void
ngx_http_llmgw_grpc_front_health(ngx_http_request_t *r)
{
    u_char                                  buf[16];
    ngx_str_t                               body, message;
    ProtobufCAllocator                      allocator;
    ngx_http_llmgw_pool_t                  *pool;
    Grpc__Health__V1__HealthCheckRequest   *request;
    Grpc__Health__V1__HealthCheckResponse   response;

    if (ngx_http_llmgw_grpc_front_message(r, &body, &message) != NGX_OK) {
        return;
    }

    allocator.alloc = ngx_http_llmgw_grpc_front_alloc;
    allocator.free = ngx_http_llmgw_grpc_front_free;
    allocator.allocator_data = r;

    request = grpc__health__v1__health_check_request__unpack(&allocator,
                                                   message.len, message.data);
    if (request == NULL) {
        ngx_http_llmgw_grpc_front_refuse(r, LLMGW_OUTCOME_BAD_REQUEST,
                                  "the message is not a HealthCheckRequest");
        return;
    }

    if (request->service[0]
        && ngx_strcmp(request->service, NGX_HTTP_LLMGW_SERVICE) != 0)
    {
        ngx_http_llmgw_grpc_front_refuse(r, LLMGW_OUTCOME_NOT_FOUND,
                                         "no such service");
        return;
    }

    pool = ngx_http_llmgw_worker_pool(r);

    grpc__health__v1__health_check_response__init(&response);

    response.status = pool && ngx_http_llmgw_table_has_routable(pool)
        ? GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING
        : GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING;

    ngx_http_llmgw_grpc_answer_message(r, buf,
        grpc__health__v1__health_check_response__pack(&response, buf));
}


/*
 * Sets message to the request's only message: the body must be one prefix and
 * exactly as many bytes as that gives.  NGX_DONE: the body is something else,
 * and the request was refused.
 */

static ngx_int_t
ngx_http_llmgw_grpc_front_message(ngx_http_request_t *r, ngx_str_t *body,
    ngx_str_t *message)
{
    llmgw_outcome_t  outcome;
    const char      *wrong;

    outcome = LLMGW_OUTCOME_BAD_REQUEST;

    if (ngx_http_llmgw_body_bytes(r, NGX_MAX_SIZE_T_VALUE, body) != NGX_OK) {
        outcome = LLMGW_OUTCOME_INTERNAL;
        wrong = "the request could not be read";

    } else if (body->len < LLMGW_GRPC_PREFIX_BYTES) {
        wrong = "the request holds no message";

    } else if (body->data[0] == 1) {
        outcome = LLMGW_OUTCOME_UNKNOWN_METHOD;
        wrong = "compressed messages are not supported";

    } else if (body->data[0] != 0
               || llmgw_grpc_prefix_len(body->data)
                  != body->len - LLMGW_GRPC_PREFIX_BYTES)
    {
        wrong = "the request is not one whole message";

    } else {
        message->data = body->data + LLMGW_GRPC_PREFIX_BYTES;
        message->len = body->len - LLMGW_GRPC_PREFIX_BYTES;
        return NGX_OK;
    }

    ngx_http_llmgw_grpc_front_refuse(r, outcome, wrong);

    return NGX_DONE;
}


/*
 * The prompt and the ids may have any length, so they get memory of their own.
 */

static void *
ngx_http_llmgw_grpc_front_alloc(void *data, size_t size)
{
    ngx_http_request_t  *r = data;

    return size > NGX_HTTP_LLMGW_GRPC_PIECE_MIN
           ? ngx_pmemalign(r->pool, size, NGX_POOL_ALIGNMENT)
           : ngx_palloc(r->pool, size);
}


static void
ngx_http_llmgw_grpc_front_free(void *data, void *p)
{
    /* the request's pool is freed as a whole */
}


static ngx_int_t
ngx_http_llmgw_grpc_front_read(ngx_http_llmgw_stream_t *stream)
{
    ngx_str_t                  body, message;
    ngx_msec_t                 ms;
    ngx_http_request_t        *r;

    r = stream->request;

    if (ngx_http_llmgw_grpc_front_message(r, &body, &message) != NGX_OK
        || ngx_http_llmgw_grpc_front_hold(stream, message.len) != NGX_OK
        || ngx_http_llmgw_grpc_front_decode(stream, &message) != NGX_OK)
    {
        return NGX_DONE;
    }

    ngx_http_llmgw_body_free(r, &body);

    ms = ngx_http_llmgw_grpc_timeout(r);

    if (ms) {
        stream->ask.deadline_ms = stream->record.start_ms + ms;
        stream->ask.has_deadline = 1;
    }

    return NGX_OK;
}


/*
 * Counts the decoded message, which is about as long.  NGX_DONE: the request
 * was refused.
 */

static ngx_int_t
ngx_http_llmgw_grpc_front_hold(ngx_http_llmgw_stream_t *stream, size_t bytes)
{
    ngx_http_cleanup_t          *cln;
    ngx_http_request_t          *r;
    ngx_http_llmgw_grpc_held_t  *held;

    r = stream->request;
    held = ngx_palloc(r->pool, sizeof(ngx_http_llmgw_grpc_held_t));
    cln = ngx_http_cleanup_add(r, 0);

    if (held == NULL || cln == NULL) {
        ngx_http_llmgw_grpc_front_refuse(r, LLMGW_OUTCOME_INTERNAL,
                                         "out of memory");
        return NGX_DONE;
    }

    held->pool = stream->pool;
    ngx_http_llmgw_body_memory_holder(r, held->pool, &held->holder, NULL);
    llmgw_holder_whole(&held->holder);

    cln->handler = ngx_http_llmgw_grpc_front_release;
    cln->data = held;

    if (ngx_http_llmgw_body_memory_hold(held->pool, &held->holder, bytes)
        != NGX_OK)
    {
        ngx_http_llmgw_grpc_front_refuse(r, LLMGW_OUTCOME_TOO_LARGE,
                                "the gateway holds too many large requests");
        return NGX_DONE;
    }

    return NGX_OK;
}


static void
ngx_http_llmgw_grpc_front_release(void *data)
{
    ngx_http_llmgw_grpc_held_t  *held = data;

    (void) ngx_http_llmgw_body_memory_hold(held->pool, &held->holder, 0);
}


static ngx_int_t
ngx_http_llmgw_grpc_front_decode(ngx_http_llmgw_stream_t *stream,
    ngx_str_t *message)
{
    size_t                     prefix;
    const char                *wrong;
    ProtobufCAllocator         allocator;
    ngx_http_llmgw_said_t      said;
    Llmgateway__InferRequest  *request;

    allocator.alloc = ngx_http_llmgw_grpc_front_alloc;
    allocator.free = ngx_http_llmgw_grpc_front_free;
    allocator.allocator_data = stream->request;

    request = llmgateway__infer_request__unpack(&allocator, message->len,
                                                message->data);
    wrong = ngx_http_llmgw_grpc_front_check(request);

    if (wrong) {
        ngx_http_llmgw_grpc_front_refuse(stream->request,
                                         LLMGW_OUTCOME_BAD_REQUEST, wrong);
        return NGX_DONE;
    }

    stream->ask.prompt.data = request->prompt.data;
    stream->ask.prompt.len = request->prompt.len;
    stream->ask.max_tokens = request->max_tokens;
    stream->ask.token_limit = request->max_tokens;
    stream->ask.choices = 1;
    stream->wants_hedge = request->hedge;
    stream->record.request_id.data = (u_char *) request->request_id;
    stream->record.request_id.len = ngx_strlen(request->request_id);

    said.text_bytes = request->prompt.len;
    said.class.data = (u_char *) request->slo_class;
    said.class.len = ngx_strlen(request->slo_class);
    said.tenant.data = (u_char *) request->tenant_id;
    said.tenant.len = ngx_strlen(request->tenant_id);

    if (ngx_http_llmgw_entry_said(stream, &said) != NGX_OK) {
        ngx_http_llmgw_grpc_front_refuse(stream->request,
                                         LLMGW_OUTCOME_INTERNAL,
                                         "out of memory");
        return NGX_DONE;
    }

    prefix = ngx_min(request->prompt.len, stream->pool->conf->prefix);
    stream->key = llmgw_ring_hash(request->prompt.data, prefix);

    stream->claim.nblocks = ngx_http_llmgw_blocks_of_prompt(
                                &stream->pool->conf->index,
                                stream->request->pool, &stream->ask.prompt,
                                &stream->claim.blocks);

    return NGX_OK;
}


/* The error of the request, or NULL. */

static const char *
ngx_http_llmgw_grpc_front_check(Llmgateway__InferRequest *request)
{
    if (request == NULL) {
        return "the message is not an InferRequest";
    }

    if (!llmgw_utf8_is_valid(request->prompt.data, request->prompt.len)
        || !llmgw_utf8_is_valid(request->client_id,
                                ngx_strlen(request->client_id))
        || !llmgw_utf8_is_valid(request->request_id,
                                ngx_strlen(request->request_id)))
    {
        return "prompt, client_id and request_id must be UTF-8";
    }

    if (!llmgw_utf8_is_valid(request->slo_class, ngx_strlen(request->slo_class))
        || !llmgw_utf8_is_valid(request->tenant_id,
                                ngx_strlen(request->tenant_id)))
    {
        return "slo_class and tenant_id must be UTF-8";
    }

    return request->max_tokens >= 1 ? NULL : "max_tokens must be 1 or more";
}


static ngx_int_t
ngx_http_llmgw_grpc_front_token(ngx_http_llmgw_stream_t *stream,
    const llmgw_token_t *token)
{
    u_char     *p;
    ngx_buf_t  *b;
    ngx_str_t  *signature;

    if (token->more && token->text_len == 0 && !token->is_final) {
        return NGX_OK;      /* there is no message to check */
    }

    signature = &stream->serving->replica->signature;

    b = ngx_http_llmgw_output_room(stream, LLMGW_GRPC_PREFIX_BYTES
                                           + token->len + signature->len);
    if (b == NULL) {
        return NGX_ERROR;
    }

    p = llmgw_grpc_prefix_write(b->last, token->len + signature->len);
    p = ngx_cpymem(p, token->message, token->len);
    b->last = ngx_cpymem(p, signature->data, signature->len);

    return NGX_OK;
}


static void
ngx_http_llmgw_grpc_front_end(ngx_http_llmgw_stream_t *stream,
    const llmgw_end_t *end)
{
    ngx_http_request_t  *r;

    r = stream->request;

    if (!r->header_sent && stream->out == NULL) {
        ngx_http_llmgw_grpc_answer(r, end);
        return;
    }

    if (ngx_http_llmgw_grpc_trailers(r, end) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_ERROR);
        return;
    }

    ngx_http_llmgw_output_last(stream);
}


static ngx_uint_t
ngx_http_llmgw_grpc_front_owns(ngx_http_request_t *r)
{
    return ngx_http_llmgw_header_is_grpc(r->headers_in.content_type);
}


static ngx_int_t
ngx_http_llmgw_grpc_front_refused(ngx_http_request_t *r, ngx_chain_t *body)
{
    llmgw_end_t  end;

    ngx_http_llmgw_grpc_front_refusal(r->headers_out.status, &end);

    r->headers_out.status_line.len = 0;
    ngx_http_clear_location(r);
    r->keepalive = r->keepalive && r->http_version >= NGX_HTTP_VERSION_20;

    return ngx_http_llmgw_grpc_only(r, &end);
}


/*
 * The outcome for an HTTP status.  A status by which nginx means something more
 * exact than gRPC's general mapping has its own case.
 */

static void
ngx_http_llmgw_grpc_front_refusal(ngx_uint_t http, llmgw_end_t *end)
{
    static const char  text[] = "refused by the gateway";

    ngx_memzero(end, sizeof(llmgw_end_t));

    end->text = text;
    end->text_len = sizeof(text) - 1;

    switch (http) {

    case NGX_HTTP_REQUEST_ENTITY_TOO_LARGE:
        end->outcome = LLMGW_OUTCOME_TOO_LARGE;
        break;

    case NGX_HTTP_BAD_REQUEST:
        end->outcome = LLMGW_OUTCOME_BAD_REQUEST;
        break;

    case NGX_HTTP_REQUEST_TIME_OUT:
        end->outcome = LLMGW_OUTCOME_DEADLINE;
        break;

    case NGX_HTTP_INTERNAL_SERVER_ERROR:
        end->outcome = LLMGW_OUTCOME_INTERNAL;
        break;

    default:
        end->outcome = LLMGW_OUTCOME_REFUSED;
        end->status = http == NGX_HTTP_TOO_MANY_REQUESTS
                      ? LLMGW_GRPC_RESOURCE_EXHAUSTED
                      : llmgw_grpc_status_of_http(http);
        break;
    }
}
