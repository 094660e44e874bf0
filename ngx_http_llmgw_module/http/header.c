
#include "http/header.h"


ngx_uint_t
ngx_http_llmgw_header_is(ngx_table_elt_t *h, const char *name)
{
    return h->key.len == ngx_strlen(name)
           && ngx_strncasecmp(h->key.data, (u_char *) name, h->key.len) == 0;
}


ngx_table_elt_t *
ngx_http_llmgw_header_find(ngx_list_t *list, const char *name)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    for (part = &list->part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {
            if (ngx_http_llmgw_header_is(&h[i], name)) {
                return &h[i];
            }
        }
    }

    return NULL;
}


ngx_table_elt_t *
ngx_http_llmgw_header_add(ngx_list_t *list, const char *name,
    const ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(list);
    if (h == NULL) {
        return NULL;
    }

    ngx_memzero(h, sizeof(ngx_table_elt_t));

    h->hash = 1;
    h->key.data = (u_char *) name;
    h->key.len = ngx_strlen(name);
    h->lowcase_key = h->key.data;       /* lower case, as all readers expect */
    h->value = *value;

    return h;
}


ngx_int_t
ngx_http_llmgw_header_number(ngx_http_request_t *r, ngx_list_t *list,
    const char *name, ngx_int_t number)
{
    ngx_str_t  value;

    value.data = ngx_pnalloc(r->pool, NGX_INT_T_LEN);
    if (value.data == NULL) {
        return NGX_ERROR;
    }

    value.len = ngx_sprintf(value.data, "%i", number) - value.data;

    return ngx_http_llmgw_header_add(list, name, &value) ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_http_llmgw_header_reason(ngx_list_t *list, const llmgw_end_t *end)
{
    ngx_str_t  reason;

    reason.data = (u_char *) llmgw_outcome_reason(end->outcome);

    if (reason.data == NULL) {
        return NGX_OK;
    }

    reason.len = ngx_strlen(reason.data);

    return ngx_http_llmgw_header_add(list, "llmgw-reason", &reason)
           ? NGX_OK : NGX_ERROR;
}


ngx_uint_t
ngx_http_llmgw_header_is_grpc(ngx_table_elt_t *content_type)
{
    return content_type
           && content_type->value.len >= sizeof("application/grpc") - 1
           && ngx_strncasecmp(content_type->value.data,
                              (u_char *) "application/grpc",
                              sizeof("application/grpc") - 1) == 0;
}
