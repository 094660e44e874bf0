
/*
 * The key that a request brings: as a Bearer token, as x-api-key, or as the
 * password of Basic, which browsers and `curl -u` send.
 *
 * A header may come once.  Bearer and x-api-key may both come if they are keys
 * of one account.  Basic beside x-api-key may be meant for a proxy in front of
 * us, and is ignored.
 */

#include "http/header.h"
#include "keys/keys.h"


typedef struct {
    ngx_table_elt_t              *header;       /* NULL: there is none */
    ngx_str_t                     key;
    unsigned                      twice:1;
    unsigned                      wrong:1;      /* of no known form */
    unsigned                      basic:1;
} ngx_http_llmgw_credential_t;


static void ngx_http_llmgw_credential_find(ngx_http_request_t *r,
    const char *name, ngx_http_llmgw_credential_t *found);
static void ngx_http_llmgw_credential_authorization(ngx_pool_t *pool,
    ngx_http_llmgw_credential_t *found);
static ngx_int_t ngx_http_llmgw_credential_password(ngx_pool_t *pool,
    const ngx_str_t *encoded, ngx_str_t *password);
static ngx_int_t ngx_http_llmgw_credential_look_up(
    const ngx_http_llmgw_key_set_t *set,
    const ngx_http_llmgw_credential_t *found, const llmgw_key_t **key,
    ngx_http_llmgw_key_failure_t *failure);


ngx_int_t
ngx_http_llmgw_credential(ngx_http_request_t *r,
    ngx_http_llmgw_key_set_t *set, const llmgw_key_t **key,
    ngx_http_llmgw_key_failure_t *failure)
{
    const llmgw_key_t            *second;
    ngx_http_llmgw_credential_t   bearer, api_key;

    ngx_http_llmgw_credential_find(r, "authorization", &bearer);
    ngx_http_llmgw_credential_find(r, "x-api-key", &api_key);

    if (bearer.twice || api_key.twice) {
        *failure = NGX_HTTP_LLMGW_KEY_CONFLICT;
        return NGX_DECLINED;
    }

    if (bearer.header) {
        ngx_http_llmgw_credential_authorization(r->pool, &bearer);
    }

    if (api_key.header) {
        api_key.key = api_key.header->value;
        api_key.wrong = (api_key.key.len == 0);

        if (bearer.basic) {
            bearer.header = NULL;
        }
    }

    if (api_key.header == NULL) {
        return ngx_http_llmgw_credential_look_up(set, &bearer, key, failure);
    }

    if (ngx_http_llmgw_credential_look_up(set, &api_key, key, failure)
        != NGX_OK)
    {
        return NGX_DECLINED;
    }

    if (bearer.header == NULL) {
        return NGX_OK;
    }

    if (ngx_http_llmgw_credential_look_up(set, &bearer, &second, failure)
        != NGX_OK)
    {
        return NGX_DECLINED;
    }

    if (second->account != (*key)->account) {
        *failure = NGX_HTTP_LLMGW_KEY_CONFLICT;
        return NGX_DECLINED;
    }

    return NGX_OK;
}


static void
ngx_http_llmgw_credential_find(ngx_http_request_t *r, const char *name,
    ngx_http_llmgw_credential_t *found)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    ngx_memzero(found, sizeof(ngx_http_llmgw_credential_t));

    for (part = &r->headers_in.headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {
            if (ngx_http_llmgw_header_is(&h[i], name)) {
                found->twice = (found->header != NULL);
                found->header = &h[i];

                if (found->twice) {
                    return;
                }
            }
        }
    }
}


static void
ngx_http_llmgw_credential_authorization(ngx_pool_t *pool,
    ngx_http_llmgw_credential_t *found)
{
    size_t     scheme;
    u_char    *p, *end;
    ngx_str_t  rest;

    p = found->header->value.data;
    end = p + found->header->value.len;

    while (p < end && *p != ' ') {
        p++;
    }

    scheme = p - found->header->value.data;

    while (p < end && *p == ' ') {
        p++;
    }

    rest.data = p;
    rest.len = end - p;

    if (scheme == 6
        && ngx_strncasecmp(found->header->value.data, (u_char *) "Bearer", 6)
           == 0)
    {
        found->key = rest;
        found->wrong = (rest.len == 0);
        return;
    }

    found->basic = scheme == 5
                   && ngx_strncasecmp(found->header->value.data,
                                      (u_char *) "Basic", 5)
                      == 0;
    found->wrong = !found->basic
                   || ngx_http_llmgw_credential_password(pool, &rest,
                                                         &found->key)
                      != NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_credential_password(ngx_pool_t *pool, const ngx_str_t *encoded,
    ngx_str_t *password)
{
    u_char     *p;
    ngx_str_t   text;

    text.data = ngx_pnalloc(pool, ngx_base64_decoded_length(encoded->len) + 1);

    if (text.data == NULL
        || ngx_decode_base64(&text, (ngx_str_t *) encoded) != NGX_OK)
    {
        return NGX_ERROR;
    }

    p = ngx_strlchr(text.data, text.data + text.len, ':');

    if (p == NULL || p + 1 == text.data + text.len) {
        return NGX_ERROR;
    }

    password->data = p + 1;
    password->len = text.data + text.len - password->data;

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_credential_look_up(const ngx_http_llmgw_key_set_t *set,
    const ngx_http_llmgw_credential_t *found, const llmgw_key_t **key,
    ngx_http_llmgw_key_failure_t *failure)
{
    llmgw_moment_t  now;

    if (found->header == NULL || found->wrong) {
        *failure = found->header ? NGX_HTTP_LLMGW_KEY_MALFORMED
                                 : NGX_HTTP_LLMGW_KEY_MISSING;
        return NGX_DECLINED;
    }

    ngx_http_llmgw_keys_now(&now);

    switch (llmgw_keys_find(set->keys, found->key.data, found->key.len,
                            now.unix_ms, key))
    {
    case LLMGW_KEY_VALID:
        return NGX_OK;

    case LLMGW_KEY_EXPIRED:
        *failure = NGX_HTTP_LLMGW_KEY_EXPIRED;
        return NGX_DECLINED;

    default:
        *failure = NGX_HTTP_LLMGW_KEY_UNKNOWN;
        return NGX_DECLINED;
    }
}


void
ngx_http_llmgw_credential_hide(ngx_http_request_t *r)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    for (part = &r->headers_in.headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {
            if (ngx_http_llmgw_header_is(&h[i], "authorization")
                || ngx_http_llmgw_header_is(&h[i], "x-api-key"))
            {
                ngx_str_set(&h[i].value, "");
            }
        }
    }
}
