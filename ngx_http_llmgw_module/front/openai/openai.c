
/*
 * Requests of OpenAI's API: which request it is, by its path and its method.  A
 * request for a model becomes a stream once its body is walked; all others are
 * answered here.
 */

#include "front/clients.h"
#include "front/openai/openai.h"
#include "front/openai/openai_inner.h"
#include "http/header.h"
#include "http/outcome.h"
#include "keys/keys.h"


static const ngx_str_t  ngx_http_llmgw_openai_models_path =
    ngx_string("/models");

static const ngx_http_llmgw_openai_route_t  ngx_http_llmgw_openai_to_model =
    { NGX_HTTP_POST, ngx_string("POST, OPTIONS") };
static const ngx_http_llmgw_openai_route_t  ngx_http_llmgw_openai_to_models =
    { NGX_HTTP_GET|NGX_HTTP_HEAD, ngx_string("GET, HEAD, OPTIONS") };


static ngx_int_t ngx_http_llmgw_openai_handler(ngx_http_request_t *r);
static const ngx_http_llmgw_openai_route_t *ngx_http_llmgw_openai_route(
    ngx_http_request_t *r, ngx_http_llmgw_openai_asked_t *asked,
    ngx_str_t *rest);
static ngx_int_t ngx_http_llmgw_openai_options(ngx_http_request_t *r,
    const ngx_http_llmgw_openai_route_t *route);
static ngx_int_t ngx_http_llmgw_openai_dismiss(ngx_http_request_t *r,
    const ngx_http_llmgw_openai_route_t *route);
static ngx_int_t ngx_http_llmgw_openai_deny_as(ngx_http_request_t *r,
    const llmgw_openai_error_t *error, llmgw_outcome_t outcome);
static ngx_int_t ngx_http_llmgw_openai_deny_model(ngx_http_request_t *r,
    const ngx_str_t *name, ngx_int_t rc);
static const char *ngx_http_llmgw_openai_media(ngx_http_request_t *r,
    ngx_uint_t is_form);
static ngx_uint_t ngx_http_llmgw_openai_is_type(const ngx_str_t *given,
    const ngx_str_t *type);
static ngx_int_t ngx_http_llmgw_openai_post(ngx_http_request_t *r,
    const ngx_http_llmgw_openai_asked_t *asked);
static ngx_int_t ngx_http_llmgw_openai_open(
    ngx_http_llmgw_openai_body_t *body);
static ngx_uint_t ngx_http_llmgw_openai_owns(ngx_http_request_t *r);


const ngx_http_llmgw_protocol_t  ngx_http_llmgw_openai_protocol = {
    .handler = ngx_http_llmgw_openai_handler,
    .owns = ngx_http_llmgw_openai_owns,
    .refuse = ngx_http_llmgw_openai_refused,
    .answer = ngx_http_llmgw_openai_end,
    .has_models = 1,
};


char *
ngx_http_llmgw_openai_conf(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    if (ngx_http_llmgw_openai_walk_threads(cf) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return ngx_http_llmgw_conf_pass(cf, cmd, conf);
}


static ngx_int_t
ngx_http_llmgw_openai_handler(ngx_http_request_t *r)
{
    ngx_int_t                             rc;
    ngx_str_t                             rest;
    ngx_http_llmgw_openai_asked_t         asked;
    const ngx_http_llmgw_openai_route_t  *route;

    if (r != r->main) {
        /* from a mirror or auth_request: only clients can read a stream */
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    route = ngx_http_llmgw_openai_route(r, &asked, &rest);

    if (route == &ngx_http_llmgw_openai_to_model
        && r->method == NGX_HTTP_POST)
    {
        return ngx_http_llmgw_openai_post(r, &asked);
    }

    rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK) {
        return rc;
    }

    if (route == NULL || !(r->method & (route->methods|NGX_HTTP_OPTIONS))) {
        return ngx_http_llmgw_openai_dismiss(r, route);
    }

    if (r->method == NGX_HTTP_OPTIONS) {
        return ngx_http_llmgw_openai_options(r, route);
    }

    if (route != &ngx_http_llmgw_openai_to_models) {
        return ngx_http_llmgw_openai_chain_open(r, &rest);
    }

    return rest.len ? ngx_http_llmgw_openai_model_show(r, &rest)
                    : ngx_http_llmgw_openai_models(r);
}


/*
 * The route of the request's path; NULL: there is none.  Sets rest to the
 * model's name after /models/, or to the id of a response.
 */

static const ngx_http_llmgw_openai_route_t *
ngx_http_llmgw_openai_route(ngx_http_request_t *r,
    ngx_http_llmgw_openai_asked_t *asked, ngx_str_t *rest)
{
    u_char                               *p, *end;
    const ngx_str_t                      *path;
    const ngx_http_llmgw_openai_route_t  *route;

    ngx_str_null(rest);
    end = r->uri.data + r->uri.len;
    path = &ngx_http_llmgw_openai_models_path;

    if (ngx_http_llmgw_openai_path_find(r, asked) == NGX_OK) {
        return &ngx_http_llmgw_openai_to_model;
    }

    route = ngx_http_llmgw_openai_chain_route(r, rest);
    if (route) {
        asked->path = NULL;
        return route;
    }

    for (p = r->uri.data; (size_t) (end - p) >= path->len; p++) {

        if (ngx_memcmp(p, path->data, path->len) != 0
            || !ngx_http_llmgw_openai_path_is_base(r, p - r->uri.data))
        {
            continue;
        }

        rest->data = p + path->len;
        rest->len = end - rest->data;

        if (rest->len == 0) {
            return &ngx_http_llmgw_openai_to_models;
        }

        if (rest->data[0] == '/' && rest->len > 1) {
            rest->data++;
            rest->len--;
            return &ngx_http_llmgw_openai_to_models;
        }
    }

    return NULL;
}


/*
 * A browser asks this before its first request.  The operator's add_header
 * determines which other sites may ask.
 */

static ngx_int_t
ngx_http_llmgw_openai_options(ngx_http_request_t *r,
    const ngx_http_llmgw_openai_route_t *route)
{
    static const ngx_str_t  none = ngx_null_string;

    if (ngx_http_llmgw_openai_header(r, NGX_HTTP_NO_CONTENT, &none) != NGX_OK
        || ngx_http_llmgw_header_add(&r->headers_out.headers, "Allow",
                                     &route->allow)
           == NULL)
    {
        return NGX_ERROR;
    }

    return ngx_http_send_header(r);
}


/* Refuses: there is no such path, or it has no such method. */

static ngx_int_t
ngx_http_llmgw_openai_dismiss(ngx_http_request_t *r,
    const ngx_http_llmgw_openai_route_t *route)
{
    int                    uri;
    llmgw_openai_error_t   error;

    uri = ngx_min(r->uri.len, 100);

    if (route == NULL) {
        llmgw_openai_error_set(&error, NGX_HTTP_NOT_FOUND, "unknown_url",
                               NULL, "Unknown request URL: %.*s %.*s.",
                               (int) r->method_name.len, r->method_name.data,
                               uri, r->uri.data);

    } else {
        llmgw_openai_error_of_status(&error, NGX_HTTP_NOT_ALLOWED);
        llmgw_openai_error_set(&error, error.status, error.code, NULL,
                               "Not allowed to %.*s on %.*s, but to %s.",
                               (int) r->method_name.len, r->method_name.data,
                               uri, r->uri.data, route->allow.data);

        if (ngx_http_llmgw_header_add(&r->headers_out.headers, "Allow",
                                      &route->allow)
            == NULL)
        {
            return NGX_ERROR;
        }
    }

    return ngx_http_llmgw_openai_deny(r, &error);
}


ngx_int_t
ngx_http_llmgw_openai_deny(ngx_http_request_t *r,
    const llmgw_openai_error_t *error)
{
    return ngx_http_llmgw_openai_deny_as(r, error,
                                 llmgw_openai_status(error->status)->outcome);
}


static ngx_int_t
ngx_http_llmgw_openai_deny_as(ngx_http_request_t *r,
    const llmgw_openai_error_t *error, llmgw_outcome_t outcome)
{
    llmgw_end_t             end;
    ngx_http_llmgw_pool_t  *pool;

    ngx_memzero(&end, sizeof(llmgw_end_t));
    end.outcome = outcome;

    pool = ngx_http_llmgw_worker_pool(r);

    if (pool) {
        ngx_http_llmgw_metrics_nameless(pool->zone,
                                        ngx_http_llmgw_outcome_grpc(&end),
                                        end.outcome);
    }

    return ngx_http_llmgw_openai_refuse(r, error);
}


static ngx_int_t
ngx_http_llmgw_openai_post(ngx_http_request_t *r,
    const ngx_http_llmgw_openai_asked_t *asked)
{
    ngx_int_t               rc;
    const char             *wrong;
    llmgw_openai_error_t    error;
    ngx_http_llmgw_pool_t  *pool;

    wrong = ngx_http_llmgw_openai_media(r, asked->path->is_form);

    if (wrong) {
        rc = ngx_http_discard_request_body(r);
        if (rc != NGX_OK) {
            return rc;
        }

        llmgw_openai_error_of_status(&error, NGX_HTTP_UNSUPPORTED_MEDIA_TYPE);
        llmgw_openai_error_set(&error, error.status, error.code, NULL, "%s",
                               wrong);
        return ngx_http_llmgw_openai_deny(r, &error);
    }

    pool = ngx_http_llmgw_worker_pool(r);
    if (pool == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_llmgw_openai_receive(r, pool, asked);
}


/* The error in the body's type, or NULL.  A missing type counts as JSON. */

static const char *
ngx_http_llmgw_openai_media(ngx_http_request_t *r, ngx_uint_t is_form)
{
    ngx_table_elt_t         *h;
    static const ngx_str_t   json = ngx_string("application/json");
    static const ngx_str_t   form = ngx_string("multipart/form-data");

    h = ngx_http_llmgw_header_find(&r->headers_in.headers, "content-encoding");

    if (h && h->value.len
        && (h->value.len != 8
            || ngx_strncasecmp(h->value.data, (u_char *) "identity", 8) != 0))
    {
        return "Request bodies must not be compressed.";
    }

    h = r->headers_in.content_type;

    if (is_form) {
        return h && ngx_http_llmgw_openai_is_type(&h->value, &form)
               ? NULL : "The request must be multipart/form-data.";
    }

    if (h == NULL || h->value.len == 0
        || ngx_http_llmgw_openai_is_type(&h->value, &json))
    {
        return NULL;
    }

    return ngx_strncasecmp(h->value.data, (u_char *) "multipart/", 10) == 0
           ? "Files and forms (multipart) are not supported here, the request "
             "must be application/json."
           : "The request's content-type must be application/json.";
}


static ngx_uint_t
ngx_http_llmgw_openai_is_type(const ngx_str_t *given, const ngx_str_t *type)
{
    return given->len >= type->len
           && ngx_strncasecmp(given->data, type->data, type->len) == 0
           && (given->len == type->len || given->data[type->len] == ';'
               || given->data[type->len] == ' ');
}


void
ngx_http_llmgw_openai_received(ngx_http_llmgw_openai_body_t *body)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = body->request;

    if (body->idle) {
        ngx_http_llmgw_body_memory_ended(body->pool);
    }

    rc = body->error.status ? ngx_http_llmgw_openai_deny(r, &body->error)
                            : ngx_http_llmgw_openai_open(body);

    if (rc != NGX_DONE) {
        ngx_http_finalize_request(r, rc);
    }
}


/* NGX_DONE: the stream has the request, or has ended it. */

static ngx_int_t
ngx_http_llmgw_openai_open(ngx_http_llmgw_openai_body_t *body)
{
    ngx_int_t                 rc;
    ngx_str_t                 name;
    ngx_http_request_t       *r;
    llmgw_openai_error_t      error;
    ngx_http_llmgw_openai_t  *o;

    r = body->request;

    o = ngx_pcalloc(r->pool, sizeof(ngx_http_llmgw_openai_t));
    if (o == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    o->body = body;

    name.data = (u_char *) body->body.model;
    name.len = body->body.model_len;

    rc = ngx_http_llmgw_caller_may(ngx_http_llmgw_caller(r), &name)
         ? ngx_http_llmgw_openai_model_find(r, &name, &o->model)
         : NGX_DECLINED;

    if (rc != NGX_OK) {
        return ngx_http_llmgw_openai_deny_model(r, &name, rc);
    }

    if (body->body.previous.end
        && ngx_http_llmgw_openai_chain_goes_on(o, &error) != NGX_OK)
    {
        return ngx_http_llmgw_openai_deny(r, &error);
    }

    return ngx_http_llmgw_stream_open(r, &ngx_http_llmgw_openai_front, o)
           == NGX_OK ? NGX_DONE : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


/*
 * For a model that has replicas and no pool, the client is asked to come back,
 * as for one whose replicas are down.
 */

static ngx_int_t
ngx_http_llmgw_openai_deny_model(ngx_http_request_t *r, const ngx_str_t *name,
    ngx_int_t rc)
{
    llmgw_end_t           end;
    llmgw_openai_error_t  error;

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (rc == NGX_DECLINED) {
        ngx_http_llmgw_openai_model_unknown(&error, name);
        return ngx_http_llmgw_openai_deny(r, &error);
    }

    ngx_memzero(&end, sizeof(llmgw_end_t));
    end.outcome = LLMGW_OUTCOME_NO_REPLICAS;
    ngx_http_llmgw_openai_error_of_end(&error, &end);
    llmgw_openai_error_set(&error, error.status, error.code, NULL,
                           "The model `%.*s` is not routed: this gateway "
                           "serves as many other models as it can.",
                           (int) name->len, (char *) name->data);

    return ngx_http_llmgw_openai_deny_as(r, &error, end.outcome);
}


/*
 * A request that is refused before a location is known, e.g. for a header that
 * is not HTTP, may be of any protocol: gRPC clients identify themselves.
 */

static ngx_uint_t
ngx_http_llmgw_openai_owns(ngx_http_request_t *r)
{
    return !r->valid_location
           && !ngx_http_llmgw_header_is_grpc(r->headers_in.content_type);
}
