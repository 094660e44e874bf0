
/*
 * Makes of a walked body what replicas are asked: the body as it is, and beside
 * it what the gateway found in it and decided about the answer.
 */

#include "choice/blocks.h"
#include "core/openai/prompt_text.h"
#include "core/ring/ring.h"
#include "fleet/pool.h"
#include "front/openai/openai_inner.h"
#include "http/header.h"


/* A deadline of more than a day counts as none. */
#define NGX_HTTP_LLMGW_OPENAI_DEADLINE_MAX  86400000


static ngx_int_t ngx_http_llmgw_openai_request(
    ngx_http_llmgw_stream_t *stream);
static ngx_int_t ngx_http_llmgw_openai_members(
    ngx_http_llmgw_stream_t *stream);
static void ngx_http_llmgw_openai_claims(ngx_http_llmgw_stream_t *stream);
static ngx_int_t ngx_http_llmgw_openai_text(const ngx_http_llmgw_ask_t *ask,
    ngx_str_t *prompt);
static ngx_int_t ngx_http_llmgw_openai_said(ngx_http_llmgw_stream_t *stream);
static void ngx_http_llmgw_openai_tier(ngx_http_llmgw_openai_t *o,
    ngx_str_t *tier);
static char *ngx_http_llmgw_openai_answer_id(ngx_http_llmgw_stream_t *stream);
static void ngx_http_llmgw_openai_key(ngx_http_llmgw_stream_t *stream);
static void ngx_http_llmgw_openai_blocks(ngx_http_llmgw_stream_t *stream);
static void ngx_http_llmgw_openai_deadline(ngx_http_llmgw_stream_t *stream);
static void ngx_http_llmgw_openai_cleanup(void *data);


ngx_int_t
ngx_http_llmgw_openai_read(ngx_http_llmgw_stream_t *stream)
{
    ngx_int_t                 rc;
    ngx_http_cleanup_t       *cln;
    ngx_http_request_t       *r;
    ngx_http_llmgw_openai_t  *o = stream->data;

    r = stream->request;

    stream->pool = o->model.pool;
    cln = ngx_http_cleanup_add(r, 0);

    if (cln == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return NGX_DONE;
    }

    cln->handler = ngx_http_llmgw_openai_cleanup;
    cln->data = stream;

    if (o->only) {
        ngx_http_llmgw_claim_only(&stream->claim, o->only);
    }

    rc = ngx_http_llmgw_openai_request(stream);

    if (rc != NGX_OK || ngx_http_llmgw_openai_said(stream) != NGX_OK) {
        ngx_http_finalize_request(r, rc == NGX_DECLINED
                                     ? NGX_HTTP_SERVICE_UNAVAILABLE
                                     : NGX_HTTP_INTERNAL_SERVER_ERROR);
        return NGX_DONE;
    }

    ngx_http_llmgw_openai_claims(stream);
    stream->record.request_id = ngx_http_llmgw_openai_id(r);
    stream->record.usage = &o->usage;
    ngx_http_llmgw_openai_key(stream);
    ngx_http_llmgw_openai_blocks(stream);
    ngx_http_llmgw_openai_deadline(stream);

    return NGX_OK;
}


/* NGX_DECLINED: other requests use up the worker's memory. */

static ngx_int_t
ngx_http_llmgw_openai_request(ngx_http_llmgw_stream_t *stream)
{
    ngx_int_t                   rc;
    llmgw_openai_body_t        *body;
    ngx_http_llmgw_openai_t    *o = stream->data;
    Llmgateway__OpenaiRequest  *request;

    body = &o->body->body;
    request = &o->request;

    llmgateway__openai_request__init(request);

    request->api = body->api;
    request->body.data = (uint8_t *) body->bytes;
    request->body.len = body->len;
    request->features = body->features;
    request->stream = body->stream;
    request->include_usage = body->include_usage;
    request->created = ngx_time();
    request->model = (char *) body->model;
    request->engine_model = (char *) o->model.engine.data;
    request->max_tokens = body->max_tokens;
    request->id = ngx_http_llmgw_openai_answer_id(stream);

    if (o->method) {
        request->method = o->method;
        request->path = o->path;

    } else if (body->api == LLMGATEWAY__API__API_PASS) {
        request->path = ngx_http_llmgw_openai_path_engine(
                            stream->request->pool, &o->body->asked);
    }

    if (o->body->asked.path->is_form) {
        request->content_type = (char *)
              stream->request->headers_in.content_type->value.data;
    }

    if (request->id == NULL || request->path == NULL) {
        return NGX_ERROR;
    }

    rc = ngx_http_llmgw_openai_members(stream);
    if (rc != NGX_OK) {
        return rc;
    }

    o->usage.model.data = (u_char *) body->model;
    o->usage.model.len = body->model_len;
    o->usage.prompt_bytes = o->body->asked.path->is_free ? 0 : body->len;
    o->is_pass = (body->api != LLMGATEWAY__API__API_CHAT
                  && body->api != LLMGATEWAY__API__API_COMPLETIONS);

    stream->holds = !body->stream;
    stream->pings = body->stream && !o->is_pass && stream->conf->sse_keepalive;

    stream->ask.openai = request;
    stream->ask.text = ngx_http_llmgw_openai_text;
    stream->ask.max_tokens = body->max_tokens
                             ? (ngx_uint_t) body->max_tokens
                             : stream->conf->default_max_tokens;
    stream->ask.token_limit = NGX_HTTP_LLMGW_NO_TOKEN_LIMIT;
    stream->ask.choices = o->is_pass ? 0 : body->n * body->prompts;
    stream->ask.want = body->stream && !o->is_pass
                       ? LLMGATEWAY__WANT__WANT_CHUNKS
                       : LLMGATEWAY__WANT__WANT_PLAIN;

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_openai_members(ngx_http_llmgw_stream_t *stream)
{
    size_t                      i, n, bytes;
    Llmgateway__Member         *member, **link;
    llmgw_openai_body_t        *body;
    ngx_http_llmgw_openai_t    *o = stream->data;

    body = &o->body->body;
    n = body->nmembers;
    bytes = n * (sizeof(void *) + sizeof(Llmgateway__Member));

    if (ngx_http_llmgw_openai_body_needs(o->body, bytes) != NGX_OK) {
        return NGX_DECLINED;
    }

    link = ngx_palloc(stream->request->pool, bytes);
    if (link == NULL) {
        return NGX_ERROR;
    }

    member = (Llmgateway__Member *) (link + n);

    for (i = 0; i < n; i++) {
        llmgateway__member__init(&member[i]);

        member[i].key = (char *) body->members[i].key;
        member[i].begin = body->members[i].begin;
        member[i].value = body->members[i].value;
        member[i].end = body->members[i].end;
        link[i] = &member[i];
    }

    o->request.members = link;
    o->request.n_members = n;

    return NGX_OK;
}


static void
ngx_http_llmgw_openai_claims(ngx_http_llmgw_stream_t *stream)
{
    ngx_http_llmgw_openai_t  *o = stream->data;

    o->engine = o->model.engine.len ? o->model.engine : o->usage.model;
    stream->model = o->engine.len ? &o->engine : NULL;
    stream->is_named = o->model.is_named;
}


/* Made when it is first needed: a body may have megabytes of text. */

static ngx_int_t
ngx_http_llmgw_openai_text(const ngx_http_llmgw_ask_t *ask, ngx_str_t *prompt)
{
    size_t                    bytes;
    ngx_http_llmgw_stream_t  *stream;
    ngx_http_llmgw_openai_t  *o;

    stream = ngx_queue_data(ask, ngx_http_llmgw_stream_t, ask);
    o = stream->data;

    bytes = o->is_pass ? 0 : llmgw_openai_text_room(&o->body->body);

    if (o->prompt.data == NULL && bytes > 0) {

        if (ngx_http_llmgw_openai_body_needs(o->body, bytes) != NGX_OK) {
            return NGX_ERROR;
        }

        o->prompt.data = (u_char *) llmgw_openai_text(&o->body->body,
                                                      &o->prompt.len);
        if (o->prompt.data == NULL) {
            return NGX_ERROR;
        }
    }

    *prompt = o->prompt;

    return NGX_OK;
}


/* The body has no member for a tenant. */

static ngx_int_t
ngx_http_llmgw_openai_said(ngx_http_llmgw_stream_t *stream)
{
    ngx_http_llmgw_said_t     said;
    ngx_http_llmgw_openai_t  *o = stream->data;

    ngx_memzero(&said, sizeof(ngx_http_llmgw_said_t));
    ngx_http_llmgw_openai_tier(o, &said.class);

    if (stream->pool->conf->rules->rule == LLMGW_RULE_TOKEN_BUCKET
        && !o->body->asked.path->is_free)
    {
        said.text_bytes = llmgw_openai_text_bytes(&o->body->body);
    }

    return ngx_http_llmgw_entry_said(stream, &said);
}


/*
 * Two tiers leave the choice to the server, so they are no class.  Of others
 * the bytes are used as they are in the body: no class's name needs an escape.
 */

static void
ngx_http_llmgw_openai_tier(ngx_http_llmgw_openai_t *o, ngx_str_t *tier)
{
    llmgw_json_t  value;

    value = llmgw_openai_body_value(&o->body->body, o->body->body.tier);

    if (value.kind == LLMGW_JSON_STRING && !llmgw_json_is(value, "auto")
        && !llmgw_json_is(value, "default"))
    {
        tier->data = (u_char *) value.begin + 1;
        tier->len = value.end - value.begin - 2;
    }
}


/* The client's request id may repeat; this one must not. */

static char *
ngx_http_llmgw_openai_answer_id(ngx_http_llmgw_stream_t *stream)
{
    u_char                   *p;
    ngx_str_t                 id;
    ngx_http_llmgw_openai_t  *o = stream->data;

    id = ngx_http_llmgw_trace_random(stream);
    if (id.len == 0) {
        return NULL;
    }

    p = ngx_pnalloc(stream->request->pool, sizeof("chatcmpl-") + id.len);
    if (p) {
        (void) ngx_sprintf(p, "%s-%V%Z",
                           o->body->body.api == LLMGATEWAY__API__API_CHAT
                           ? "chatcmpl" : "cmpl", &id);
    }

    return (char *) p;
}


/*
 * The key of the body, or of llmgw_key if that has a value.  The body's was
 * made for the location's own upstream; that of the model may need another
 * prefix.
 */

static void
ngx_http_llmgw_openai_key(ngx_http_llmgw_stream_t *stream)
{
    ngx_str_t                              key;
    ngx_uint_t                             prefix;
    ngx_http_llmgw_openai_t               *o = stream->data;

    prefix = ngx_http_llmgw_conf_openai_prefix(stream->pool->conf);

    stream->key = prefix == o->body->prefix
                  ? o->body->key
                  : llmgw_openai_affinity_key(&o->body->body, prefix,
                                              o->body->by);

    if (stream->conf->key
        && ngx_http_complex_value(stream->request, stream->conf->key, &key)
           == NGX_OK
        && key.len)
    {
        stream->key = llmgw_ring_hash(key.data, key.len);
    }
}


/* As ngx_http_llmgw_openai_key(), for the blocks. */

static void
ngx_http_llmgw_openai_blocks(ngx_http_llmgw_stream_t *stream)
{
    ngx_http_llmgw_claim_t        *claim;
    ngx_http_llmgw_openai_t       *o = stream->data;
    const ngx_http_llmgw_index_t  *index;

    claim = &stream->claim;
    index = &stream->pool->conf->index;

    if (index == o->body->index) {
        claim->blocks = o->body->blocks;
        claim->nblocks = o->body->nblocks;
        return;
    }

    claim->nblocks = ngx_http_llmgw_blocks_of_body(index,
                                                   stream->request->pool,
                                                   &o->body->body,
                                                   &claim->blocks);
}


/*
 * The deadline in the header of llmgw_timeout_header: seconds, perhaps with
 * decimals.
 */

static void
ngx_http_llmgw_openai_deadline(ngx_http_llmgw_stream_t *stream)
{
    ngx_int_t         ms;
    ngx_table_elt_t  *h;

    if (stream->conf->timeout_header.len == 0) {
        return;
    }

    h = ngx_http_llmgw_header_find(
            &stream->request->headers_in.headers,
            (char *) stream->conf->timeout_header.data);

    ms = h ? ngx_atofp(h->value.data, h->value.len, 3) : NGX_ERROR;

    if (ms > 0 && ms <= NGX_HTTP_LLMGW_OPENAI_DEADLINE_MAX) {
        stream->ask.deadline_ms = stream->record.start_ms + ms;
        stream->ask.has_deadline = 1;
    }
}


/* Counts what was delivered, whatever ended the request. */

static void
ngx_http_llmgw_openai_cleanup(void *data)
{
    ngx_http_llmgw_stream_t      *stream = data;
    ngx_http_llmgw_openai_t      *o = stream->data;
    const llmgw_openai_memory_t  *memory;

    if (o->prompt.data) {
        memory = o->body->body.memory;
        (void) memory->resize(memory->data, o->prompt.data, 0);
        ngx_str_null(&o->prompt);
    }

    if (!o->has_usage) {
        o->usage.completion_tokens = stream->record.tokens;
    }

    ngx_http_llmgw_metrics_openai(stream->pool->zone, o->usage.prompt_tokens,
                                  o->usage.completion_tokens,
                                  o->usage.cached_tokens);

    ngx_http_llmgw_body_memory_give(stream->pool, LLMGW_SHARE_ANSWERS, o->held);
    o->held = 0;
}
