
/* llmgw_prefix_index: the memory of policies that read prefixes. */

#include "conf/param.h"
#include "core/prefix/blocks.h"


/* 32 bytes each: more would not fit a zone's 32-bit numbers */
#define NGX_HTTP_LLMGW_MAX_BLOCKS   10000000

/* a request keeps 8 bytes for each, and matches them one by one */
#define NGX_HTTP_LLMGW_MAX_MATCH    4096

#define NGX_HTTP_LLMGW_MATCH_DEFAULT  256


const ngx_http_llmgw_param_t  ngx_http_llmgw_index_params[] = {
    ngx_http_llmgw_srv_param("block", NUMBER, index.block,
        .min = LLMGW_BLOCKS_MIN_BYTES, .max = LLMGW_BLOCKS_MAX_BYTES),
    ngx_http_llmgw_srv_param("blocks", NUMBER, index.blocks, .min = 1,
        .max = NGX_HTTP_LLMGW_MAX_BLOCKS),
    ngx_http_llmgw_srv_param("match", NUMBER, index.match, .min = 1,
        .max = NGX_HTTP_LLMGW_MAX_MATCH),
    ngx_http_llmgw_srv_param("size", ZONE, index.size),
    { .kind = 0 }
};


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
    ngx_http_llmgw_srv_conf_t  *lscf = conf;

    lscf->index.set = 1;
    lscf->index.file = cf->conf_file->file.name.data;
    lscf->index.line = cf->conf_file->line;
    lscf->index.match = 0;

    rv = ngx_http_llmgw_conf_line(cf, cmd, conf);

    if (lscf->index.match == 0) {
        lscf->index.match = ngx_min(NGX_HTTP_LLMGW_MATCH_DEFAULT,
                                    lscf->index.blocks);
    }

    if (rv == NGX_CONF_OK && lscf->index.match > lscf->index.blocks) {
        return "has a \"match\" above its \"blocks\"";
    }

    return rv;
}
