
/*
 * Responses that engines keep.  A request that continues a response
 * (previous_response_id), or asks for one by its id, has to go to the process
 * that has made it, and must be of the account that it was made for.  For an
 * unknown response the gateway answers as an engine does: 404, whether the id
 * never existed or is another account's.
 *
 *     POST /v1/responses  ---- raw, response_id ---->  note: id, process,
 *                                                      account (zone/)
 *     POST /v1/responses, previous_response_id  --+
 *     GET, DELETE /v1/responses/ID                |
 *     POST /v1/responses/ID/cancel                +--> find, claim only that
 *     GET /v1/responses/ID/input_items          --+    replica
 *
 * If the replica is full, the request waits for this replica.
 */

#include "choice/prefix_zone.h"
#include "core/ring/ring.h"
#include "fleet/body_memory.h"
#include "fleet/replica.h"
#include "fleet/table.h"
#include "front/openai/openai_inner.h"
#include "http/request_body.h"
#include "keys/keys.h"
#include "zone/responses.h"


#define NGX_HTTP_LLMGW_OPENAI_CHAIN  "/responses/"

/* For a path and its query, under which an engine is asked. */
#define NGX_HTTP_LLMGW_OPENAI_CHAIN_MAX  1024


static ngx_http_llmgw_pool_t *ngx_http_llmgw_openai_chain_pool(
    ngx_http_request_t *r, ngx_http_upstream_srv_conf_t *us,
    const ngx_str_t *id, ngx_http_llmgw_replica_t **replica);
static ngx_int_t ngx_http_llmgw_openai_chain_find(ngx_http_request_t *r,
    ngx_http_llmgw_pool_t *pool, const ngx_str_t *id,
    ngx_http_llmgw_replica_t **replica);
static uint64_t ngx_http_llmgw_openai_chain_account(ngx_http_request_t *r);
static size_t ngx_http_llmgw_openai_chain_id(const u_char *p,
    const u_char *end);
static ngx_int_t ngx_http_llmgw_openai_chain_unknown(ngx_http_request_t *r,
    const ngx_str_t *id);
static ngx_int_t ngx_http_llmgw_openai_chain_ask(ngx_http_request_t *r,
    const ngx_str_t *id, ngx_http_llmgw_openai_t *o);


/* what may follow the id */
static const struct {
    ngx_str_t                      tail;
    ngx_http_llmgw_openai_route_t  route;
} ngx_http_llmgw_openai_chain_routes[] = {
    { ngx_string(""), { NGX_HTTP_GET|NGX_HTTP_DELETE,
                          ngx_string("GET, DELETE, OPTIONS") } },
    { ngx_string("/cancel"), { NGX_HTTP_POST, ngx_string("POST, OPTIONS") } },
    { ngx_string("/input_items"), { NGX_HTTP_GET,
                                    ngx_string("GET, OPTIONS") } }
};

#define NGX_HTTP_LLMGW_OPENAI_CHAIN_NROUTES                                   \
    (sizeof(ngx_http_llmgw_openai_chain_routes)                               \
     / sizeof(ngx_http_llmgw_openai_chain_routes[0]))

/* For requests without a body. */
static const ngx_http_llmgw_path_t  ngx_http_llmgw_openai_chain_path =
    { ngx_string(NGX_HTTP_LLMGW_OPENAI_CHAIN), 0, LLMGATEWAY__API__API_PASS,
      1, 0, NULL, 0 };


const ngx_http_llmgw_openai_route_t *
ngx_http_llmgw_openai_chain_route(ngx_http_request_t *r, ngx_str_t *id)
{
    size_t       len, left;
    u_char      *p, *end;
    ngx_uint_t   i;
    ngx_str_t    tail;

    len = sizeof(NGX_HTTP_LLMGW_OPENAI_CHAIN) - 1;
    end = r->uri.data + r->uri.len;

    for (p = r->uri.data; (size_t) (end - p) > len; p++) {

        if (ngx_memcmp(p, NGX_HTTP_LLMGW_OPENAI_CHAIN, len) != 0
            || !ngx_http_llmgw_openai_path_is_base(r, p - r->uri.data))
        {
            continue;
        }

        id->data = p + len;
        id->len = ngx_http_llmgw_openai_chain_id(id->data, end);
        tail.data = id->data + id->len;
        left = end - tail.data;

        for (i = 0; id->len && i < NGX_HTTP_LLMGW_OPENAI_CHAIN_NROUTES; i++) {
            tail.len = ngx_http_llmgw_openai_chain_routes[i].tail.len;

            if (tail.len == left
                && ngx_strncmp(tail.data,
                               ngx_http_llmgw_openai_chain_routes[i].tail.data,
                               left)
                   == 0)
            {
                return &ngx_http_llmgw_openai_chain_routes[i].route;
            }
        }
    }

    ngx_str_null(id);

    return NULL;
}


/* The length of the id; 0: it is not valid. */

static size_t
ngx_http_llmgw_openai_chain_id(const u_char *p, const u_char *end)
{
    u_char  c;
    size_t  n;

    for (n = 0; p + n < end; n++) {
        c = p[n] | 0x20;

        if ((c < 'a' || c > 'z') && (p[n] < '0' || p[n] > '9')
            && p[n] != '_' && p[n] != '-')
        {
            break;
        }
    }

    return n <= LLMGW_RESPONSE_ID_MAX ? n : 0;
}


ngx_int_t
ngx_http_llmgw_openai_chain_open(ngx_http_request_t *r, const ngx_str_t *id)
{
    ngx_uint_t                     i;
    ngx_http_llmgw_openai_t       *o;
    ngx_http_llmgw_loc_conf_t     *llcf;
    ngx_http_upstream_srv_conf_t  *us;

    o = ngx_pcalloc(r->pool, sizeof(ngx_http_llmgw_openai_t));
    if (o == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llmgw_module);

    for (i = 0; (us = ngx_http_llmgw_openai_model_upstream(llcf, i)); i++) {
        o->model.pool = ngx_http_llmgw_openai_chain_pool(r, us, id, &o->only);

        if (o->model.pool) {
            break;
        }
    }

    if (o->model.pool == NULL) {
        return ngx_http_llmgw_openai_chain_unknown(r, id);
    }

    if (ngx_http_llmgw_openai_chain_ask(r, id, o) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->main->count++;

    if (ngx_http_llmgw_stream_open(r, &ngx_http_llmgw_openai_front, o)
        != NGX_OK)
    {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
    }

    return NGX_DONE;
}


static ngx_int_t
ngx_http_llmgw_openai_chain_unknown(ngx_http_request_t *r,
    const ngx_str_t *id)
{
    llmgw_openai_error_t  error;

    llmgw_openai_error_set(&error, NGX_HTTP_NOT_FOUND, NULL, "response_id",
                           "Response with id '%.*s' not found.",
                           (int) id->len, (char *) id->data);

    return ngx_http_llmgw_openai_deny(r, &error);
}


/* Makes of the request one with an empty body, and keeps its query. */

static ngx_int_t
ngx_http_llmgw_openai_chain_ask(ngx_http_request_t *r, const ngx_str_t *id,
    ngx_http_llmgw_openai_t *o)
{
    u_char                        *p;
    ngx_str_t                      tail, args;
    ngx_http_llmgw_pool_t         *pool;
    ngx_http_llmgw_openai_body_t  *body;

    tail.data = id->data + id->len;
    tail.len = r->uri.data + r->uri.len - tail.data;
    args = r->args;

    if (args.len > NGX_HTTP_LLMGW_OPENAI_CHAIN_MAX / 2) {
        args.len = 0;
    }

    body = ngx_pcalloc(r->pool, sizeof(ngx_http_llmgw_openai_body_t));
    p = ngx_pnalloc(r->pool, sizeof("/v1" NGX_HTTP_LLMGW_OPENAI_CHAIN "?")
                             + id->len + tail.len + args.len);
    o->method = ngx_pcalloc(r->pool, r->method_name.len + 1);

    if (body == NULL || p == NULL || o->method == NULL) {
        return NGX_ERROR;
    }

    o->path = (char *) p;
    (void) ngx_sprintf(p, "/v1" NGX_HTTP_LLMGW_OPENAI_CHAIN "%V%V%s%V%Z", id,
                       &tail, args.len ? "?" : "", &args);
    ngx_memcpy(o->method, r->method_name.data, r->method_name.len);

    pool = o->model.pool;

    o->body = body;
    body->request = r;
    body->pool = pool;
    body->asked.path = &ngx_http_llmgw_openai_chain_path;
    body->prefix = ngx_http_llmgw_conf_openai_prefix(pool->conf);
    body->index = &pool->conf->index;

    llmgw_openai_body_begin(&body->body, LLMGATEWAY__API__API_PASS, "", 0,
                            &ngx_http_llmgw_body_heap);
    ngx_http_llmgw_body_memory_holder(r, pool, &body->holder,
                                      ngx_http_llmgw_openai_block_end);

    return NGX_OK;
}


ngx_int_t
ngx_http_llmgw_openai_chain_goes_on(ngx_http_llmgw_openai_t *o,
    llmgw_openai_error_t *error)
{
    u_char                 id[LLMGW_RESPONSE_ID_MAX + LLMGW_JSON_TEXT_ROOM];
    ngx_str_t              name;
    llmgw_json_t           value;
    const uint8_t         *from;
    llmgw_openai_body_t   *body;

    body = &o->body->body;
    value = llmgw_openai_body_value(body, body->previous);
    from = NULL;

    name.data = id;
    name.len = llmgw_json_text(&value, &from, id, sizeof(id));

    if (name.len && from == value.end - 1
        && ngx_http_llmgw_openai_chain_find(o->body->request, o->model.pool,
                                            &name, &o->only)
           == NGX_OK)
    {
        return NGX_OK;
    }

    llmgw_openai_error_set(error, NGX_HTTP_NOT_FOUND,
                           "previous_response_not_found",
                           "previous_response_id",
                           "Previous response with id '%.*s' not found.",
                           (int) name.len, (char *) name.data);

    return NGX_DECLINED;
}


void
ngx_http_llmgw_openai_chain_note(ngx_http_llmgw_stream_t *stream,
    const char *id)
{
    ngx_str_t                  name;
    llmgw_response_t           response;
    ngx_http_llmgw_replica_t  *replica;

    replica = stream->serving->replica;
    name.data = (u_char *) id;
    name.len = ngx_strlen(id);

    response.owner = ngx_http_llmgw_prefix_owner(
                         replica->node.str.data, replica->node.str.len,
                         replica->member.replica_start_ms);
    response.account = ngx_http_llmgw_openai_chain_account(stream->request);

    ngx_http_llmgw_responses_note(stream->pool->zone, &name, &response);
}


/*
 * The pool of that upstream whose replica has the response; NULL: there is
 * none.
 */

static ngx_http_llmgw_pool_t *
ngx_http_llmgw_openai_chain_pool(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us, const ngx_str_t *id,
    ngx_http_llmgw_replica_t **replica)
{
    ngx_uint_t                  i;
    ngx_http_llmgw_upstream_t  *upstream;

    upstream = ngx_http_llmgw_worker_upstream(r, us);

    for (i = 0; upstream && i < upstream->conf->npools; i++) {

        if (upstream->pools[i]
            && ngx_http_llmgw_openai_chain_find(r, upstream->pools[i], id,
                                                replica)
               == NGX_OK)
        {
            return upstream->pools[i];
        }
    }

    return NULL;
}


/*
 * The replica that has the response, if the response is this caller's and the
 * process is alive.
 */

static ngx_int_t
ngx_http_llmgw_openai_chain_find(ngx_http_request_t *r,
    ngx_http_llmgw_pool_t *pool, const ngx_str_t *id,
    ngx_http_llmgw_replica_t **replica)
{
    ngx_uint_t               i;
    llmgw_response_t         response;
    ngx_http_llmgw_table_t  *table;

    if (ngx_http_llmgw_responses_find(pool->zone, id, &response) != NGX_OK
        || response.account != ngx_http_llmgw_openai_chain_account(r))
    {
        return NGX_DECLINED;
    }

    ngx_http_llmgw_pool_look(pool);
    table = pool->table;

    for (i = 0; i < table->n; i++) {

        if (table->owners[i] == response.owner
            && table->replicas[i]->member.service != LLMGW_SERVICE_DOWN
            && table->replicas[i]->member.service != LLMGW_SERVICE_STOPPED)
        {
            *replica = table->replicas[i];
            return NGX_OK;
        }
    }

    return NGX_DECLINED;
}


static uint64_t
ngx_http_llmgw_openai_chain_account(ngx_http_request_t *r)
{
    const ngx_http_llmgw_caller_t  *caller;

    caller = ngx_http_llmgw_caller(r);

    return caller ? llmgw_ring_hash(caller->name.data, caller->name.len) : 0;
}
