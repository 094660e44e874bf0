
#include "http/header.h"


ngx_table_elt_t *
ngx_http_llmgw_header_find(ngx_list_t *list, const char *name)
{
    size_t            len;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    len = ngx_strlen(name);

    for (part = &list->part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {
            if (h[i].key.len == len
                && ngx_strncasecmp(h[i].key.data, (u_char *) name, len) == 0)
            {
                return &h[i];
            }
        }
    }

    return NULL;
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
