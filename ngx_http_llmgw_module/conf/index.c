
/* llmgw_prefix_index: the memory of policies that read prefixes. */

#include "conf/conf.h"
#include "core/prefix/blocks.h"


/* 32 bytes each: more would not fit a zone's 32-bit numbers */
#define NGX_HTTP_LLMGW_MAX_BLOCKS   10000000

/* a request holds 8 bytes for each, and matches them one by one */
#define NGX_HTTP_LLMGW_MAX_MATCH    4096

#define NGX_HTTP_LLMGW_MATCH_DEFAULT  256


static char *ngx_http_llmgw_index_param(ngx_conf_t *cf,
    ngx_http_llmgw_index_t *index, ngx_str_t *param);
static char *ngx_http_llmgw_index_size(ngx_conf_t *cf,
    ngx_http_llmgw_index_t *index, ngx_str_t *param);


void
ngx_http_llmgw_index_defaults(ngx_http_llmgw_srv_conf_t *lscf)
{
    lscf->index.block = 64;
    lscf->index.blocks = 2000;
    lscf->index.match = NGX_HTTP_LLMGW_MATCH_DEFAULT;
    lscf->index.size = 16 * 1024 * 1024;
}


char *
ngx_http_llmgw_index_conf(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                       *rv;
    ngx_str_t                  *value;
    ngx_uint_t                  i;
    ngx_http_llmgw_srv_conf_t  *lscf;

    lscf = ngx_http_llmgw_conf_enable(cf, conf);
    if (lscf == NULL) {
        return NGX_CONF_ERROR;
    }

    if (lscf->index.set) {
        return "is duplicate";
    }

    lscf->index.set = 1;
    lscf->index.file = cf->conf_file->file.name.data;
    lscf->index.line = cf->conf_file->line;
    lscf->index.match = 0;

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {
        rv = ngx_http_llmgw_index_param(cf, &lscf->index, &value[i]);
        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    if (lscf->index.match == 0) {
        lscf->index.match = ngx_min(NGX_HTTP_LLMGW_MATCH_DEFAULT,
                                    lscf->index.blocks);
    }

    if (lscf->index.match > lscf->index.blocks) {
        return "has a \"match\" above its \"blocks\"";
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_llmgw_index_param(ngx_conf_t *cf, ngx_http_llmgw_index_t *index,
    ngx_str_t *param)
{
    if (ngx_strncmp(param->data, "block=", 6) == 0) {
        return ngx_http_llmgw_conf_number(cf, param, 6,
                                          LLMGW_BLOCKS_MIN_BYTES,
                                          LLMGW_BLOCKS_MAX_BYTES,
                                          &index->block);
    }

    if (ngx_strncmp(param->data, "blocks=", 7) == 0) {
        return ngx_http_llmgw_conf_number(cf, param, 7, 1,
                                          NGX_HTTP_LLMGW_MAX_BLOCKS,
                                          &index->blocks);
    }

    if (ngx_strncmp(param->data, "match=", 6) == 0) {
        return ngx_http_llmgw_conf_number(cf, param, 6, 1,
                                          NGX_HTTP_LLMGW_MAX_MATCH,
                                          &index->match);
    }

    if (ngx_strncmp(param->data, "size=", 5) == 0) {
        return ngx_http_llmgw_index_size(cf, index, param);
    }

    return ngx_http_llmgw_conf_invalid(cf, param);
}


static char *
ngx_http_llmgw_index_size(ngx_conf_t *cf, ngx_http_llmgw_index_t *index,
    ngx_str_t *param)
{
    ssize_t    size;
    ngx_str_t  text;

    text.data = param->data + 5;
    text.len = param->len - 5;
    size = ngx_parse_size(&text);

    if (size == NGX_ERROR || size < (ssize_t) (16 * ngx_pagesize)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid \"%V\", at least size=%uzk is needed",
                           param, 16 * ngx_pagesize / 1024);
        return NGX_CONF_ERROR;
    }

    index->size = size;

    return NGX_CONF_OK;
}
